//! The engine: executes plans.
//!
//! A worker is a *source* (where the next request comes from), a *pacer* (when it goes out), a
//! *backend* (what performs it) and a *recorder* (what is kept of it). Sources are decoded and
//! placed on their targets by a thread of their own; the hot loops in [`worker`] and `queue` only
//! take a request, wait for its time, perform it and count it. Nothing here prints.

mod arrival;
mod arrival_trace;
mod backend;
mod backing;
mod buffer;
mod caches;
pub mod clock;
mod copy;
mod dataset;
mod depend;
mod descriptors;
mod draw;
mod error;
mod flight;
mod free;
mod graph;
pub mod histogram;
mod holes;
mod live;
mod locked;
mod log;
mod logfile;
mod mapped;
mod material;
mod memory;
mod names;
mod needs;
pub mod open;
mod order;
mod outcome;
mod own;
mod place;
mod plain;
mod prepare;
mod priority;
mod program;
mod queue;
mod recorder;
mod rehearse;
mod remount;
mod request;
mod run;
mod set;
mod skew;
mod source;
mod spin;
mod target;
mod team;
mod tree;
mod turns;
mod uniform;
mod verification;
mod worker;
mod writeback;

pub use backend::uring::available as uring_available;
pub use draw::values as draw_values;
pub use error::{Error, Result};
pub use flight::Level;
pub use live::{Counts, Live, LiveKind};
pub use outcome::{OpRow, Outcome, Summary, WorkerLevel};
pub use program::{Span, Tally};
pub use recorder::{Late, Line, Row};
pub use rehearse::rehearse;
pub use request::SHORT;
pub use run::{Run, start};
pub use verification::{Told, Verified, verify_later};
pub use worker::Unissued;
pub use writeback::WrittenBack;
