//! The 48-byte records of one per-CPU file.

use crate::chunk::{Chunk, MOST_BYTES};
use crate::input::{Input, read_full};
use crate::{Error, Place, Result};
use rustc_hash::FxHashMap;

/// Bytes of a record before its payload.
const RECORD: usize = 48;

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// Flag in the action: an 8-byte cgroup id stands before the payload.
const CGROUP: u32 = 0x100;

/// Category bits, the upper half of the action.
pub mod cat {
    #![allow(missing_docs)]
    pub const WRITE: u16 = 1 << 1;
    pub const FLUSH: u16 = 1 << 2;
    pub const SYNC: u16 = 1 << 3;
    pub const PC: u16 = 1 << 9;
    pub const NOTIFY: u16 = 1 << 10;
    pub const AHEAD: u16 = 1 << 11;
    pub const META: u16 = 1 << 12;
    pub const DISCARD: u16 = 1 << 13;
    pub const FUA: u16 = 1 << 15;
}

/// The actions that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Q: asked for.
    Queue,
    /// D: given to the driver.
    Issue,
    /// C: done.
    Complete,
    /// Merges, splits, plugs, remaps, ...
    Other,
}

/// One record.
#[derive(Debug, Clone)]
pub struct Event {
    /// Nanoseconds of the tracing host's clock.
    pub time: u64,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Bytes.
    pub bytes: u32,
    /// What happened.
    pub action: Action,
    /// Low half of the action without the cgroup flag.
    pub code: u16,
    /// Bits of [`cat`].
    pub category: u16,
    /// Process.
    pub pid: u32,
    /// `(major << 20) + minor`.
    pub device: u32,
    /// Errno of a completion, 0 for success.
    pub error: u16,
    /// First bytes of a note's payload.
    pub note: [u8; 16],
    big: bool,
}

impl Event {
    /// Two numbers at the start of a payload.
    pub fn pair(&self, note: &[u8; 16]) -> [u32; 2] {
        let number = |at: usize| {
            let bytes = [note[at], note[at + 1], note[at + 2], note[at + 3]];
            if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        [number(0), number(4)]
    }
}

/// Byte order by the magic; `None` when there is none.
fn order(head: &[u8]) -> Option<bool> {
    let bytes: [u8; 4] = head.get(..4)?.try_into().ok()?;
    if u32::from_le_bytes(bytes) & 0xffff_ff00 == MAGIC {
        Some(false)
    } else if u32::from_be_bytes(bytes) & 0xffff_ff00 == MAGIC {
        Some(true)
    } else {
        None
    }
}

/// Whether bytes begin with a record.
pub fn is_record(head: &[u8]) -> bool {
    order(head).is_some()
}

/// Sequence numbers seen of one CPU.
#[derive(Debug, Default)]
struct Sequence {
    first: u32,
    last: u32,
    count: u64,
}

/// The records of a file, one by one.
pub struct Records {
    input: Input,
    at: u64,
    buffer: Vec<u8>,
    start: usize,
    sequences: FxHashMap<u32, Sequence>,
    max_damaged: u64,
    ended: bool,
}

impl Records {
    /// Reads a file from its start.
    pub fn new(input: Input, max_damaged: u64) -> Records {
        Records {
            input,
            at: 0,
            buffer: Vec::new(),
            start: 0,
            sequences: FxHashMap::default(),
            max_damaged,
            ended: false,
        }
    }

    /// Events missing between the first and the last sequence number of every CPU.
    pub fn lost(&self) -> u64 {
        self.sequences.values().map(|s| (u64::from(s.last - s.first) + 1).saturating_sub(s.count)).sum()
    }

    /// Makes `n` bytes available; fewer at the end of the file.
    fn need(&mut self, n: usize) -> Result<&[u8]> {
        if self.buffer.len() - self.start < n {
            self.buffer.drain(..self.start);
            self.start = 0;
            let filled = self.buffer.len();
            self.buffer.resize((1 << 18).max(n), 0);
            let got =
                read_full(&mut self.input, &mut self.buffer[filled..]).map_err(|e| self.input.error(e))?;
            self.buffer.truncate(filled + got);
        }
        let end = self.buffer.len().min(self.start + n);
        Ok(&self.buffer[self.start..end])
    }

    fn damaged(&self, what: String) -> Error {
        Error::new(what)
            .path(&self.input.path)
            .at(Place::Byte(self.at))
            .help("copy the capture again; --max-damaged 1 reads what stands before the damage and says so")
    }

    /// The next record; `None` at the end, or at damage that may be passed over.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<Option<Event>> {
        if self.ended {
            return Ok(None);
        }
        match self.read() {
            Err(error) if self.max_damaged > 0 => {
                // Without a length that can be trusted the next record cannot be found.
                self.ended = true;
                chunk.damaged.push((self.at, error));
                Ok(None)
            }
            other => other,
        }
    }

    fn read(&mut self) -> Result<Option<Event>> {
        let at = self.at;
        let head = self.need(RECORD)?;
        if head.is_empty() {
            self.ended = true;
            return Ok(None);
        }
        let Ok(head) = <[u8; RECORD]>::try_from(head) else {
            let n = head.len();
            return Err(self.damaged(format!("truncated record: {n} of {RECORD} bytes")));
        };
        let Some(big) = order(&head) else {
            return Err(self.damaged("no blktrace record begins here".into()));
        };
        let word = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let long = |at: usize| {
            let (a, b) = (u64::from(word(at)), u64::from(word(at + 4)));
            if big { a << 32 | b } else { b << 32 | a }
        };
        let half = |at: usize| {
            let bytes = [head[at], head[at + 1]];
            if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let version = word(0) & 0xff;
        if version != VERSION {
            return Err(self.damaged(format!("record version {version}; this build reads version {VERSION}")));
        }
        let payload = usize::from(half(46));
        let action = word(28);
        let code = (action & 0xffff & !CGROUP) as u16;
        let category = (action >> 16) as u16;
        let mut event = Event {
            time: long(8),
            sector: long(16),
            bytes: word(24),
            action: match code {
                1 => Action::Queue,
                7 => Action::Issue,
                8 => Action::Complete,
                _ => Action::Other,
            },
            code,
            category,
            pid: word(32),
            device: word(36),
            error: half(44),
            note: [0; 16],
            big,
        };
        if event.time > i64::MAX as u64 {
            return Err(self.damaged(format!("time {} ns is beyond any clock", event.time)));
        }
        let end = event.sector.saturating_mul(512).saturating_add(u64::from(event.bytes));
        if event.action == Action::Queue && event.bytes > 0 && end > MOST_BYTES as u64 {
            return Err(self.damaged(format!("sector {} lies beyond any device (1 EiB)", event.sector)));
        }
        let (cpu, number) = (word(40), word(4));
        if category & cat::NOTIFY == 0 {
            let seen =
                self.sequences.entry(cpu).or_insert(Sequence { first: number, last: number, count: 0 });
            seen.first = seen.first.min(number);
            seen.last = seen.last.max(number);
            seen.count += 1;
            if self.sequences.len() > 1 << 16 {
                return Err(self.damaged("events of more than 65,536 CPUs".into()));
            }
        } else if let Some(seen) = self.sequences.get_mut(&cpu)
            && number == seen.last.wrapping_add(1)
        {
            // The kernel leaves the number of notes unset; encoders of text captures count them.
            seen.last = number;
            seen.count += 1;
        }
        self.start += RECORD;
        let body = self.need(payload)?;
        if body.len() < payload {
            let n = body.len();
            return Err(self.damaged(format!("truncated record: {n} of {payload} bytes of payload")));
        }
        let skip = if action & CGROUP != 0 { 8 } else { 0 };
        let text = body.get(skip..).unwrap_or(b"");
        let n = text.len().min(16);
        event.note[..n].copy_from_slice(&text[..n]);
        self.start += payload;
        self.at = at + (RECORD + payload) as u64;
        Ok(Some(event))
    }
}
