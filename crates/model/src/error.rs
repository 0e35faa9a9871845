//! What keeps a model from being fitted, read or drawn from.

use std::path::Path;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A trace or a file could not be read or written.
    Trace,
    /// Options, dimensions or a change ask for what cannot be.
    Asked,
    /// Keys of 64 bits have no room for the dimensions.
    TooWide,
    /// The requests are impossible, too many, or none.
    Requests,
    /// A model breaks a law of the format.
    Damaged,
    /// A model has a newer format than this program reads.
    Version,
    /// The program or the system failed.
    Defect,
}

/// What went wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{told}")]
pub struct Error {
    kind: ErrorKind,
    told: loadstone_trace::Error,
}

impl Error {
    /// An error of a kind with its description.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Error {
        Error { kind, told: loadstone_trace::Error::malformed(what) }
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What there is to tell: text, file and place.
    pub fn told(&self) -> &loadstone_trace::Error {
        &self.told
    }

    /// Says what the reader of the message can do.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Error {
        Error { told: self.told.help(help), ..self }
    }

    /// Names the file.
    #[must_use]
    pub fn path(self, path: &Path) -> Error {
        Error { told: self.told.path(path), ..self }
    }
}

impl From<loadstone_trace::Error> for Error {
    fn from(told: loadstone_trace::Error) -> Error {
        Error { kind: ErrorKind::Trace, told }
    }
}

impl From<loadstone_files::Error> for Error {
    fn from(error: loadstone_files::Error) -> Error {
        loadstone_trace::Error::from(error).into()
    }
}

impl From<Error> for loadstone_trace::Error {
    fn from(error: Error) -> loadstone_trace::Error {
        error.told
    }
}
