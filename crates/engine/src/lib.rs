//! The engine: executes plans.
//!
//! A worker is a *source* (where the next request comes from), a *pacer* (when it goes out), a
//! *backend* (what performs it) and a *recorder* (what is kept of it). Threads of their own decode
//! requests and place them on their targets ([`source`]); the loops in [`issue`] only take a
//! request, wait for its time, perform it and count it. Nothing here prints.

#![warn(clippy::missing_errors_doc)]

mod backend;
pub mod clock;
mod error;
mod fileset;
mod host;
mod issue;
mod metrics;
mod payload;
mod replay_tree;
mod request;
mod run;
mod source;
mod verification;
mod workload_vm;

pub use backend::uring::available as uring_available;
pub use error::{Error, Result};
pub use host::write_back::WrittenBack;
pub use issue::depth_search::Depths;
pub use metrics::histogram;
pub use metrics::in_flight::Level;
pub use metrics::live::{Counts, Live, LiveKind};
pub use metrics::recorder::{Late, Line, Row, Unissued};
pub use request::SHORT;
pub use run::outcome::{OpRow, Outcome, Summary, WorkerLevel};
pub use run::rehearse::rehearse;
pub use run::{Run, start};
pub use source::open;
pub use source::variables::values as draw_values;
pub use verification::{Told, Verified, verify_later};
pub use workload_vm::{Span, Tally};
