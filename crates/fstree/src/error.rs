//! What keeps a series from being read, made or written. Every text says what, where, and what to do.

use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something cannot be done.
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
    /// A file is not what it should be.
    #[error("{path}: {what}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// Something asked for that cannot be had.
    #[error("{0}")]
    Option(String),
    /// A path that cannot be used.
    #[error(transparent)]
    Path(#[from] loadstone_files::Error),
    /// Content that cannot be made.
    #[error(transparent)]
    Content(#[from] loadstone_content::Error),
}

impl Error {
    /// The operating system refused `what` was being done to a file.
    pub fn io(what: &'static str, path: &Path, cause: std::io::Error) -> Error {
        Error::Io { what, path: path.into(), cause }
    }

    /// A file is not what it should be.
    pub fn file(path: &Path, what: impl Into<String>) -> Error {
        Error::File { path: path.into(), what: what.into() }
    }
}
