//! What is counted of a run: latencies, requests in flight, progress, and the full log.

pub mod histogram;
pub mod in_flight;
pub mod live;
pub mod log;
pub mod log_file;
pub mod progress;
pub mod recorder;
