//! Observes the host while a load runs: raw cumulative counters of /proc and /sys at an absolute
//! cadence on `CLOCK_MONOTONIC`, and user probes beside them.
//!
//! Nothing is derived here: rates and averages are differences of these counters, taken where the
//! intervals of a comparison are known (`loadstone.observe`).
//!
//! ```no_run
//! use loadstone_observe::{Observation, Options, device};
//! let mut options = Options::default();
//! options.device = device::resolve("/var/tmp".as_ref()).ok();
//! let observation = Observation::start(options)?;
//! // ... the load runs ...
//! let samples = observation.stop();
//! assert_eq!(samples.time.len(), samples.column("context_switches").unwrap().len());
//! # Ok::<(), loadstone_observe::Error>(())
//! ```

#![warn(clippy::missing_errors_doc)]

pub mod clock;
pub mod device;
mod error;
mod event;
pub mod parse;
mod probe;
mod sampler;
mod stop;

pub use device::Device;
pub use error::{Error, Result};
pub use event::Event;
pub use probe::{Probe, Reading};
pub use sampler::{COLUMNS, NONE, Observation, Options, Samples};
