//! Features of when a request goes out, and after what.

pub(crate) mod after;
pub(crate) mod gap;
pub(crate) mod outstanding;
pub(crate) mod think;
