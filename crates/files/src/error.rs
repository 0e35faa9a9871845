//! What keeps a path from being used.

use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Which path, what is wrong with it, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}", path = shown(path.as_os_str().as_encoded_bytes()))]
pub struct Error {
    /// The path.
    pub path: PathBuf,
    /// What is wrong and what to do.
    pub what: String,
    /// The system's answer, where it gave one.
    #[source]
    pub cause: Option<io::Error>,
}

impl Error {
    /// Something is wrong with a path.
    pub fn new(path: &Path, what: impl Into<String>) -> Error {
        Error { path: path.into(), what: what.into(), cause: None }
    }

    /// The system refused what was being done.
    pub fn io(path: &Path, what: &str, cause: io::Error) -> Error {
        Error { path: path.into(), what: format!("{what}: {cause}"), cause: Some(cause) }
    }

    /// Adds what to do.
    pub fn help(mut self, help: &str) -> Error {
        self.what = format!("{}; {help}", self.what);
        self
    }
}

/// A name as it may be printed: control characters and bytes that are no text are escaped.
pub fn shown(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            if char.is_control() { text.extend(char.escape_default()) } else { text.push(char) }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}
