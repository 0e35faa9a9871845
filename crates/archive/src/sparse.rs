//! Where the data of sparse files lies: in headers of GNU tar, or in records of pax (GNU tar's manual, "Storing Sparse Files").

use crate::MOST_PIECES;
use crate::head::{BLOCK, number};
use std::io::{self, Read};

/// Digits of a number in a list of pieces, and more.
const MOST_DIGITS: usize = 20;

/// Pieces of a sparse file as they come.
#[derive(Default)]
pub struct Pieces {
    pub all: Vec<(u64, u64)>,
    end: u64,
    bytes: u64,
}

impl Pieces {
    /// Adds those of a header, 24 bytes each; an empty field ends them.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn fields(&mut self, fields: &[u8]) -> Result<(), String> {
        for field in fields.chunks_exact(24).take_while(|field| field[0] != 0 && field[12] != 0) {
            self.add(number(&field[..12])?, number(&field[12..])?)?;
        }
        Ok(())
    }

    fn add(&mut self, offset: u64, length: u64) -> Result<(), String> {
        let Some(end) = offset.checked_add(length).filter(|_| offset >= self.end) else {
            return Err(format!(
                "{length} bytes of a sparse file at {offset}, where {} are before",
                self.end
            ));
        };
        (self.end, self.bytes) = (end, self.bytes + length);
        if length > 0 {
            self.all.push((offset, length));
        }
        if self.all.len() > MOST_PIECES {
            return Err(format!("a sparse file of more than {MOST_PIECES} pieces"));
        }
        Ok(())
    }

    /// Refuses pieces that are not those of a file of `size` bytes whose data has `has`.
    ///
    /// # Errors
    /// When pieces overlap, or reach beyond the file.
    pub fn check(&self, size: u64, has: u64) -> Result<(), String> {
        let Pieces { end, bytes, .. } = self;
        if *end > size || *bytes != has {
            return Err(format!(
                "a sparse file of {size} bytes with {bytes} of data up to {end}, of which {has} follow"
            ));
        }
        Ok(())
    }
}

/// What records of pax say of a sparse file.
#[derive(Default)]
pub struct Told {
    /// Its name; the header has another one for readers that do not know sparse files.
    pub name: Option<Vec<u8>>,
    /// Bytes of the file, holes among them.
    pub size: Option<u64>,
    /// Major and minor number; 0.0 and 0.1 may tell none.
    pub version: Option<(u64, u64)>,
    /// Where its data lies, before version 1.0.
    pub pieces: Pieces,
    offset: Option<u64>,
}

impl Told {
    /// Takes one record. `key` lacks its prefix `GNU.sparse.`.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let version = |told: &Told| told.version.unwrap_or_default();
        match key {
            b"name" => self.name = Some(value.to_vec()),
            b"size" | b"realsize" => self.size = Some(decimal(value)?),
            b"major" => self.version = Some((decimal(value)?, version(self).1)),
            b"minor" => self.version = Some((version(self).0, decimal(value)?)),
            b"offset" => self.offset = Some(decimal(value)?),
            b"numbytes" => {
                let offset = self.offset.take().ok_or("a piece of a sparse file without its offset")?;
                self.pieces.add(offset, decimal(value)?)?;
            }
            b"map" if value.is_empty() => {}
            b"map" => {
                let mut numbers = value.split(|byte| *byte == b',');
                while let Some(offset) = numbers.next() {
                    let length = numbers.next().ok_or("an offset of a sparse file without its length")?;
                    self.pieces.add(decimal(offset)?, decimal(length)?)?;
                }
            }
            b"numblocks" => {}
            _ => {
                let key = String::from_utf8_lossy(key);
                return Err(format!("a record of a sparse file that is not known: {key:?}"));
            }
        }
        Ok(())
    }
}

fn decimal(digits: &[u8]) -> Result<u64, String> {
    let number =
        std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|text| text.parse().ok()).ok_or_else(|| "a number of a sparse file that is none".into())
}

/// Reads the pieces that the content of a member begins with: how many there are, offset and length of each, a line for
/// each number, in whole blocks.
///
/// # Errors
/// When it is damaged.
pub fn listed(content: impl Read) -> io::Result<Pieces> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut lines = Lines { content, block: [0; BLOCK], at: BLOCK };
    let many = lines.number()?;
    let mut pieces = Pieces::default();
    for _ in 0..many {
        let (offset, length) = (lines.number()?, lines.number()?);
        pieces.add(offset, length).map_err(invalid)?;
    }
    Ok(pieces)
}

struct Lines<R> {
    content: R,
    block: [u8; BLOCK],
    at: usize,
}

impl<R: Read> Lines<R> {
    fn number(&mut self) -> io::Result<u64> {
        let mut digits = Vec::new();
        loop {
            if self.at == BLOCK {
                self.content.read_exact(&mut self.block)?;
                self.at = 0;
            }
            let byte = self.block[self.at];
            self.at += 1;
            if byte == b'\n' || digits.len() > MOST_DIGITS {
                return decimal(&digits).map_err(|what| io::Error::new(io::ErrorKind::InvalidData, what));
            }
            digits.push(byte);
        }
    }
}

/// An error of a list of pieces, with the member's byte.
pub fn at(error: io::Error, byte: u64) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            crate::wrong(byte, "a sparse file that ends within the list of its pieces".into())
        }
        kind => io::Error::new(kind, format!("byte {byte}: {error}")),
    }
}
