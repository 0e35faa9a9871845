//! What a format's reader hands on: requests as they stood in the source, with their places.

use crate::{Batch, Error, ErrorKind, NONE, Object, Place, Result};
use rustc_hash::FxHashMap;

/// Most objects or actors a trace may have; more means that the column is something else.
pub const MOST_IDS: usize = 1 << 20;
/// Bytes of all their names, as compression makes long ones of a small file.
const MOST_NAMES: usize = 256 << 20;

/// One past the last byte a request may touch: 1 EiB, beyond any device.
pub const MOST_BYTES: i64 = 1 << 60;

/// Where the rows of a chunk stood.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Not kept.
    #[default]
    Unknown,
    /// The first record on this line, one a line.
    Line(u64),
    /// The first record at this byte, one every so many bytes.
    Byte(u64, u64),
}

/// Requests in source order, times as the source gives them (nanoseconds, any origin).
#[derive(Debug, Default)]
pub struct Chunk {
    /// The requests.
    pub batch: Batch,
    /// Where they stood.
    pub origin: Origin,
    /// Records without a request: before which row, and how many so far.
    pub skips: Vec<(usize, u64)>,
    /// Records understood that are no requests.
    pub other: u64,
    /// Records put right.
    pub repaired: u64,
    /// Actors of the batch by their id within it, where a line-oriented format has them.
    pub actors: Ids,
    /// Damaged records by their line or byte within the chunk.
    pub damaged: Vec<(u64, Error)>,
    /// Whether the last request's line ends with the file and without its end: it may be cut.
    pub open: bool,
}

impl Chunk {
    /// Empties it and keeps the memory.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.origin = Origin::Unknown;
        self.skips.clear();
        self.other = 0;
        self.repaired = 0;
        self.damaged.clear();
        self.open = false;
        self.actors.clear();
    }

    /// Place of a row.
    pub fn place(&self, row: usize) -> Place {
        let at = self.skips.partition_point(|&(before, _)| before <= row);
        let skipped = if at == 0 { 0 } else { self.skips[at - 1].1 };
        let record = row as u64 + skipped;
        match self.origin {
            Origin::Unknown => Place::Whole,
            Origin::Byte(first, step) => Place::Byte(first + record * step),
            Origin::Line(first) => Place::Line(first + record),
        }
    }

    /// Appends one request without latency, flags and actor; see [`Chunk::fill`].
    #[inline]
    pub fn push(&mut self, time: i64, op: u8, object: u32, offset: i64, size: i64) {
        self.batch.time.push(time);
        self.batch.op.push(op);
        self.batch.object.push(object);
        self.batch.offset.push(offset);
        self.batch.size.push(size);
    }

    /// Makes room for so many requests more.
    pub fn reserve(&mut self, requests: usize) {
        self.batch.time.reserve(requests);
        self.batch.op.reserve(requests);
        self.batch.object.reserve(requests);
        self.batch.offset.reserve(requests);
        self.batch.size.reserve(requests);
    }

    /// Completes the columns that a format does not have: unknown latency, no flags, actor 0.
    pub fn fill(&mut self) {
        let n = self.batch.len();
        self.batch.latency.resize(n, NONE);
        self.batch.flags.resize(n, 0);
        self.batch.actor.resize(n, 0);
        debug_assert!(self.batch.content.is_empty() || self.batch.content.len() == n);
        debug_assert!(self.batch.result.is_empty() || self.batch.result.len() == n);
        debug_assert!(self.batch.other.is_empty() || self.batch.other.len() == n);
        debug_assert!(self.batch.after.is_empty() || self.batch.after.len() == n);
        debug_assert!(self.batch.think.is_empty() || self.batch.think.len() == n);
    }
}

/// Dense ids in order of first appearance, for numbers or texts.
#[derive(Debug, Default)]
pub struct Ids {
    numbers: FxHashMap<u64, u32>,
    texts: FxHashMap<Box<[u8]>, u32>,
    keys: Vec<Key>,
    last_number: Option<(u64, u32)>,
    last_text: u32,
    /// Bytes of all texts.
    bytes: usize,
}

/// What an id stands for in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A number, such as an SPC unit or a device.
    Number(u64),
    /// Bytes of the source.
    Text(Box<[u8]>),
}

impl Key {
    /// The name people see.
    pub fn name(&self) -> String {
        match self {
            Key::Number(n) => n.to_string(),
            Key::Text(t) => String::from_utf8_lossy(t).into_owned(),
        }
    }
}

impl Ids {
    /// Id of a number.
    #[inline]
    pub fn number(&mut self, n: u64) -> u32 {
        match self.last_number {
            Some((last, id)) if last == n => id,
            _ => self.number_slow(n),
        }
    }

    fn number_slow(&mut self, n: u64) -> u32 {
        let next = self.keys.len() as u32;
        let id = *self.numbers.entry(n).or_insert(next);
        if id == next {
            self.keys.push(Key::Number(n));
        }
        self.last_number = Some((n, id));
        id
    }

    /// Id of a text.
    #[inline]
    pub fn text(&mut self, text: &[u8]) -> u32 {
        if let Some(Key::Text(last)) = self.keys.get(self.last_text as usize)
            && **last == *text
        {
            return self.last_text;
        }
        let id = match self.texts.get(text) {
            Some(&id) => id,
            None => {
                let id = self.keys.len() as u32;
                self.bytes += text.len();
                self.texts.insert(text.into(), id);
                self.keys.push(Key::Text(text.into()));
                id
            }
        };
        self.last_text = id;
        id
    }

    /// Id of a key.
    pub fn key(&mut self, key: &Key) -> u32 {
        match key {
            Key::Number(n) => self.number(*n),
            Key::Text(t) => self.text(t),
        }
    }

    /// The keys by id.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        *self = Ids::default();
    }

    /// The objects by id.
    pub fn objects(&self) -> Vec<Object> {
        self.keys.iter().enumerate().map(|(id, key)| Object { id: id as u32, name: key.name() }).collect()
    }

    /// # Errors
    /// When there are more than [`MOST_IDS`], or their names take too much memory.
    pub fn check(&self) -> Result<()> {
        if self.bytes > MOST_NAMES {
            let what = format!("names of objects have more than {} MiB together", MOST_NAMES >> 20);
            return Err(Error::new(ErrorKind::TooLarge, what).help("check which column names the object"));
        }
        if self.keys.len() <= MOST_IDS {
            return Ok(());
        }
        Err(Error::new(ErrorKind::TooLarge, format!("more than {MOST_IDS} objects"))
            .help("check which column names the object"))
    }
}
