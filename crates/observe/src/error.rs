//! One error for what keeps an observation from starting.
//!
//! Rules: say what is wrong, where, and what to do about it. Once an observation runs, whatever
//! goes wrong is an event beside the samples and never ends the run.

use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an observation cannot start, or a device cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: {what}: {cause}", path = path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// Nothing that keeps block counters lies behind a path.
    #[error("{path}: no block device lies behind it: {reason}", path = path.display())]
    NoDevice {
        /// The path that was asked about.
        path: PathBuf,
        /// Which file system or kind of file it is.
        reason: String,
    },
    /// An option that cannot be used.
    #[error("{0}")]
    Option(String),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path, cause: std::io::Error) -> Error {
        Error::Io { what, path: path.into(), cause }
    }
}
