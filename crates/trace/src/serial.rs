//! Lines of a text file one after the other, for formats in which a line depends on those before it.

use crate::input::{Input, read_full};
use crate::{Error, ErrorKind, Place, Result};

/// Bytes asked for at once.
const BLOCK: usize = 1 << 20;

/// Longest line of a text trace.
const LONGEST: usize = 1 << 22;

/// A text file being read line by line.
pub struct Serial {
    input: Input,
    buffer: Vec<u8>,
    at: usize,
    line: u64,
    ended: bool,
}

impl Serial {
    /// Reads a file from where it stands.
    pub fn new(input: Input) -> Serial {
        let line = input.lines_skipped;
        Serial { input, buffer: Vec::new(), at: 0, line, ended: false }
    }

    /// The next line without its end; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is longer than 4 MiB.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut searched = self.at;
        let end = loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                break searched + end;
            }
            if self.ended {
                if self.at == self.buffer.len() {
                    return Ok(None);
                }
                break self.buffer.len();
            }
            searched = self.buffer.len() - self.at;
            if searched > LONGEST {
                return Err(Error::new(ErrorKind::TooLarge, "the line is longer than 4 MiB")
                    .path(&self.input.path)
                    .at(Place::Line(self.line + 1))
                    .help("this is no text trace"));
            }
            self.more()?;
        };
        let from = self.at;
        self.at = (end + 1).min(self.buffer.len());
        self.line += 1;
        let line = &self.buffer[from..end];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Drops what was read and reads on behind the rest.
    fn more(&mut self) -> Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let rest = self.buffer.len();
        self.buffer.resize(rest + BLOCK, 0);
        let n = read_full(&mut self.input, &mut self.buffer[rest..]).map_err(|e| self.input.error(e))?;
        self.buffer.truncate(rest + n);
        self.ended = n < BLOCK;
        Ok(())
    }

    /// Number of the line read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Says where the line read last stands.
    pub fn place(&self, error: Error) -> Error {
        self.place_at(self.line, error)
    }

    /// Says where a line read before stands.
    pub fn place_at(&self, line: u64, error: Error) -> Error {
        error.path(&self.input.path).at(Place::Line(line))
    }
}
