//! What can go wrong with a verification itself.

use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Blocks of a size that cannot be had.
    #[error("blocks of {0} bytes cannot be verified: use a multiple of 512 up to 1048576")]
    Unit(usize),
    /// Content that cannot be had.
    #[error("{0}")]
    Content(String),
    /// A path that cannot be used.
    #[error(transparent)]
    Path(#[from] loadstone_files::Error),
    /// It is none, or damaged.
    #[error("{path}: {what}", path = .0.display(), what = .1)]
    State(PathBuf, String),
    /// It cannot be written.
    #[error("{path}: cannot be written: {what}", path = .0.display(), what = .1)]
    Write(PathBuf, String),
}
