//! Features that are columns of the trace.

pub(crate) mod actor;
pub(crate) mod flags;
pub(crate) mod latency;
pub(crate) mod object;
pub(crate) mod op;
pub(crate) mod result;
pub(crate) mod size;
