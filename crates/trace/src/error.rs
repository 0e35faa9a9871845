//! One error for everything that reads or writes traces and models.
//!
//! Rules: say what is wrong, where (file, then line or byte), and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Where in a file something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// The file as a whole.
    #[default]
    Whole,
    /// Line, counted from 1.
    Line(u64),
    /// Byte offset, counted from 0.
    Byte(u64),
}

/// What went wrong, where, and what to do.
#[derive(Debug, Default)]
pub struct Error {
    path: Option<PathBuf>,
    place: Place,
    what: String,
    help: String,
    cause: Option<std::io::Error>,
}

impl Error {
    /// An error with its description, for instance `"size \"x\" is not a number"`.
    pub fn new(what: impl Into<String>) -> Self {
        Error { what: what.into(), ..Error::default() }
    }

    /// An operating-system error met while doing `what` to `path`.
    pub fn io(what: &str, path: &Path, cause: std::io::Error) -> Self {
        Error {
            path: Some(path.into()),
            what: format!("{what}: {cause}"),
            cause: Some(cause),
            ..Error::default()
        }
    }

    /// Names the file.
    pub fn path(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.into());
        self
    }

    /// Names the line or byte.
    pub fn at(mut self, place: Place) -> Self {
        if self.place == Place::Whole {
            self.place = place;
        }
        self
    }

    /// Says what the reader of the message can do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}", path.display())?;
            match self.place {
                Place::Whole => {}
                Place::Line(n) => write!(f, ", line {n}")?,
                Place::Byte(n) => write!(f, ", byte {n}")?,
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.what)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

impl From<loadstone_files::Error> for Error {
    fn from(error: loadstone_files::Error) -> Error {
        Error { path: Some(error.path), what: error.what, cause: error.cause, ..Error::default() }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|e| e as _)
    }
}
