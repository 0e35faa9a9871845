//! What keeps content from being made or examined. Every text says what, where, and what to do.

use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why content cannot be made, or told of.
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
    /// Something asked for that cannot be had.
    #[error("{0}")]
    Option(String),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path, cause: std::io::Error) -> Error {
        Error::Io { what, path: path.into(), cause }
    }
}
