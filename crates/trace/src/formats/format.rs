//! What a format is, and what its reader gives.

use crate::chunk::Chunk;
use crate::input::Input;
use crate::options::OpenOptions;
use crate::{Info, Result};

/// Requests of one trace in source order.
pub trait Source: Send {
    /// Replaces the chunk by the next one; `false` at the end. A chunk may be empty of requests.
    ///
    /// # Errors
    /// Names file and place.
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool>;

    /// Adds what the source knows: objects, actors, clock, losses; final after the end.
    fn info(&self, info: &mut Info);

    /// Whether time 0 is the first request's; otherwise times count from the start as they are.
    fn zero_is_first(&self) -> bool {
        true
    }

    /// Time 0 where the source knows it better than by its first request.
    fn zero(&self) -> Option<i64> {
        None
    }

    /// Time of the last request from the start of the trace, where it is cheaply known.
    fn span(&self) -> Option<i64> {
        None
    }
}

/// What opening a format gives.
pub type Opened = Result<Box<dyn Source>>;

/// How a format is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Its content tells it.
    Content,
    /// It must be named: what looks like it may be something else, with another unit or polarity.
    Name,
}

/// A format as the table knows it.
pub struct Format {
    /// The name `--format` takes.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Endings of file names that promise it.
    pub extensions: &'static [&'static str],
    /// How it is known.
    pub known: Known,
    /// The names of its columns in a line before the first request, where files have been seen with one; `|` stands between
    /// names of one column.
    pub header: &'static [&'static str],
    /// Whether the first bytes are of this format; `all` when they are the whole file.
    pub detect: fn(head: &[u8], all: bool) -> bool,
    /// Opens it.
    pub open: fn(Vec<Input>, &OpenOptions) -> Opened,
}

/// The only input of a format whose traces are single files.
///
/// # Errors
/// When there are several.
pub fn single(mut inputs: Vec<Input>) -> Result<Input> {
    match (inputs.pop(), inputs.is_empty()) {
        (Some(input), true) => Ok(input),
        _ => Err(crate::Error::new(
            crate::ErrorKind::Option,
            "several files were given, but only blktrace traces are sets of files",
        )
        .help("give one file at a time")),
    }
}

impl Format {
    /// Whether a line names the columns of this format in their order.
    pub fn is_header(&self, line: &[u8]) -> bool {
        let plain = |name: &[u8]| -> Vec<u8> {
            // A unit may follow in brackets.
            let name = name.split(|c| *c == b'(').next().unwrap_or(name);
            name.iter().filter(|c| c.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect()
        };
        let is = |name: &[u8], known: &str| known.split('|').any(|k| plain(k.as_bytes()) == plain(name));
        let fits = |names: Vec<&[u8]>| {
            names.len() == self.header.len()
                && names.iter().zip(self.header).all(|(name, known)| is(name, known))
        };
        let line = line.trim_ascii();
        let line = line.strip_prefix(b"#").map_or(line, |rest| rest.trim_ascii());
        let by = |separator: u8| line.split(|c| *c == separator).collect::<Vec<_>>();
        let blanks = || line.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()).collect();
        !self.header.is_empty() && (fits(by(b',')) || fits(by(b'\t')) || fits(blanks()))
    }
}

/// Whether a head has lines, and all of its first few are of a format.
pub fn begins_with(head: &[u8], all: bool, is_one: impl Fn(&[u8]) -> bool) -> bool {
    let mut lines = head_lines(head, all).take(4).peekable();
    lines.peek().is_some() && lines.all(is_one)
}

/// The first lines of a head, without a last one that is cut.
pub fn head_lines(head: &[u8], all: bool) -> impl Iterator<Item = &[u8]> {
    let end = if all { head.len() } else { memchr::memrchr(b'\n', head).unwrap_or(0) };
    head[..end]
        .split(|&c| c == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|l| !l.is_empty())
}
