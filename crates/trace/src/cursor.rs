//! Bytes of a file in turn, as many at once as are needed.

use crate::input::{Input, read_full};
use crate::{Error, Place, Result};

/// Bytes asked for at once.
const BLOCK: usize = 1 << 18;

/// A file being read front to back.
pub struct Cursor {
    input: Input,
    buffer: Vec<u8>,
    start: usize,
    at: u64,
}

impl Cursor {
    /// Reads a file from its start.
    pub fn new(input: Input) -> Cursor {
        Cursor { input, buffer: Vec::new(), start: 0, at: 0 }
    }

    /// The next `n` bytes, which are not passed over; fewer at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn peek(&mut self, n: usize) -> Result<&[u8]> {
        if self.buffer.len() - self.start < n {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        // In steps, so that a length that is a lie does not take its memory before the file ends.
        while self.buffer.len() < n {
            let filled = self.buffer.len();
            let want = BLOCK.max((n - filled).min(filled.max(BLOCK)));
            self.buffer.resize(filled + want, 0);
            let got = read_full(&mut self.input, &mut self.buffer[filled..]);
            self.buffer.truncate(filled + got.as_ref().map_or(0, |got| *got));
            let got = got.map_err(|e| self.input.error(e))?;
            if got < want {
                break;
            }
        }
        let end = self.buffer.len().min(self.start + n);
        Ok(&self.buffer[self.start..end])
    }

    /// Passes over bytes that were peeked at.
    pub fn skip(&mut self, n: usize) {
        self.start = (self.start + n).min(self.buffer.len());
        self.at += n as u64;
    }

    /// Passes over the rest of the file; how many bytes these are.
    ///
    /// # Errors
    /// When the file cannot be read to its end.
    pub fn skip_rest(&mut self) -> Result<u64> {
        let from = self.at;
        loop {
            match self.peek(BLOCK)?.len() {
                0 => return Ok(self.at - from),
                n => self.skip(n),
            }
        }
    }

    /// Where the next byte stands.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Names the file and the place of its next byte.
    pub fn place(&self, error: Error) -> Error {
        error.path(&self.input.path).at(Place::Byte(self.at))
    }

    /// The file's path.
    pub fn path(&self) -> &std::path::Path {
        &self.input.path
    }
}
