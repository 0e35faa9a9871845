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

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system refused to read or write; the source is its answer, where it gave one.
    Io,
    /// Options, or files that were named together, ask for what cannot be.
    Option,
    /// The content is of no known format, or of more than one.
    Unrecognised,
    /// The format is known, but not this version, codec or type of it.
    Unsupported,
    /// The content breaks a rule of its format.
    Malformed,
    /// The content ends within a record.
    Truncated,
    /// Time goes back further than requests are put in order.
    OutOfOrder,
    /// More than this program counts or memory holds.
    TooLarge,
    /// There are no requests.
    Empty,
    /// The program failed.
    Defect,
}

/// What went wrong, where, and what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: Option<PathBuf>,
    place: Place,
    what: String,
    help: String,
    cause: Option<std::io::Error>,
}

impl Error {
    /// An error of a kind with its description, for instance `"no format is called x"`.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Error { kind, path: None, place: Place::Whole, what: what.into(), help: String::new(), cause: None }
    }

    /// An operating-system error met while doing `what` to `path`.
    pub fn io(what: &str, path: &Path, cause: std::io::Error) -> Self {
        let error = Error::new(ErrorKind::Io, format!("{what}: {cause}")).path(path);
        Error { cause: Some(cause), ..error }
    }

    /// Content that breaks a rule of its format, for instance `"size \"x\" is not a number"`.
    pub fn malformed(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::Malformed, what)
    }

    /// A file that is not there.
    pub fn missing(path: &Path) -> Self {
        let error = Error::new(ErrorKind::Io, "there is no such file").path(path).help("check the path");
        // ENOENT, which callers may look at.
        Error { cause: Some(std::io::Error::from_raw_os_error(2)), ..error }
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The system's answer, where it refused something.
    pub fn cause(&self) -> Option<&std::io::Error> {
        self.cause.as_ref()
    }

    /// The file it is about, where there is one.
    pub fn file(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Where in the file.
    pub fn place(&self) -> Place {
        self.place
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
        Error { cause: error.cause, ..Error::new(ErrorKind::Io, error.what).path(&error.path) }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|e| e as _)
    }
}
