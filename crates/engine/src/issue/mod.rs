//! When a request goes out: the loops that issue requests, and what each request waits for.

pub mod arrival;
pub mod arrival_trace;
pub mod completion_order;
pub mod context;
pub mod dependencies;
pub mod dependency_graph;
pub mod depth_search;
pub mod flow;
pub mod path_locks;
pub mod pausing;
pub mod priorities;
pub mod spin;
pub mod sync_loop;
pub mod take;
pub mod uring_loop;
