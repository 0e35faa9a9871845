//! The 48-byte records of one per-CPU file.

use super::event::{Action, Category, Event};
use crate::chunk::Chunk;
use crate::cursor::Cursor;
use crate::input::Input;
use crate::{Error, ErrorKind, Result};
use rustc_hash::FxHashMap;

/// Bytes of a record before its payload.
const RECORD: usize = 48;

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// Flag in the action: an 8-byte cgroup id stands before the payload.
const CGROUP: u32 = 0x100;

/// One record: an event, or a note.
#[derive(Debug, Clone)]
pub struct Record {
    /// What it says of a request.
    pub event: Event,
    /// Low half of the action without the cgroup flag.
    pub code: u16,
    /// First bytes of a note's payload.
    pub note: [u8; 16],
    big: bool,
}

impl Record {
    /// Two numbers at the start of a payload.
    pub fn pair(&self) -> [u32; 2] {
        let number = |at: usize| {
            let bytes = [self.note[at], self.note[at + 1], self.note[at + 2], self.note[at + 3]];
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
    bytes: Cursor,
    sequences: FxHashMap<u32, Sequence>,
    max_damaged: u64,
    ended: bool,
    /// Bytes from damage on that was passed over, to the end of the file.
    pub unread: u64,
}

impl Records {
    /// Reads a file from its start.
    pub fn new(input: Input, max_damaged: u64) -> Records {
        let (bytes, sequences) = (Cursor::new(input), FxHashMap::default());
        Records { bytes, sequences, max_damaged, ended: false, unread: 0 }
    }

    /// Events missing between the first and the last sequence number of every CPU.
    pub fn lost(&self) -> u64 {
        self.sequences.values().map(|s| (u64::from(s.last - s.first) + 1).saturating_sub(s.count)).sum()
    }

    fn damaged(&self, what: String) -> Error {
        self.place(Error::malformed(what))
    }

    fn cut(&self, what: String) -> Error {
        self.place(Error::new(ErrorKind::Truncated, what))
    }

    fn place(&self, error: Error) -> Error {
        self.bytes
            .place(error)
            .help("copy the capture again; `max_damaged` 1 reads what stands before the damage and says so")
    }

    /// The next record; `None` at the end, or at damage that may be passed over.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged where that is no end.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<Option<Record>> {
        if self.ended {
            return Ok(None);
        }
        match self.read() {
            Err(error) if self.max_damaged > 0 && error.kind() != ErrorKind::Io => {
                // Without a length that can be trusted the next record cannot be found.
                self.ended = true;
                chunk.damaged.push((self.bytes.at(), error));
                self.unread = self.bytes.skip_rest()?;
                Ok(None)
            }
            other => other,
        }
    }

    fn read(&mut self) -> Result<Option<Record>> {
        let head = self.bytes.peek(RECORD)?;
        if head.is_empty() {
            self.ended = true;
            return Ok(None);
        }
        let Ok(head) = <[u8; RECORD]>::try_from(head) else {
            let n = head.len();
            return Err(self.cut(format!("truncated record: {n} of {RECORD} bytes")));
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
        let category = Category::from_bits_retain((action >> 16) as u16);
        let event = Event {
            time: long(8),
            sector: long(16),
            bytes: word(24),
            action: match code {
                1 => Action::Queue,
                7 => Action::Issue,
                8 => Action::Complete,
                _ => Action::Other,
            },
            category,
            pid: word(32),
            device: word(36),
            failed: half(44) != 0,
        };
        event.check().map_err(|e| self.place(e))?;
        let mut record = Record { event, code, note: [0; 16], big };
        let (cpu, number) = (word(40), word(4));
        if !category.contains(Category::NOTIFY) {
            let seen =
                self.sequences.entry(cpu).or_insert(Sequence { first: number, last: number, count: 0 });
            seen.first = seen.first.min(number);
            seen.last = seen.last.max(number);
            seen.count += 1;
            if self.sequences.len() > 1 << 16 {
                return Err(self.damaged("events of more than 65,536 CPUs".into()));
            }
        } else if let Some(seen) = self.sequences.get_mut(&cpu)
            && Some(number) == seen.last.checked_add(1)
        {
            // The kernel leaves the number of notes unset; encoders of text captures count them.
            seen.last = number;
            seen.count += 1;
        }
        let whole = self.bytes.peek(RECORD + payload)?;
        if whole.len() < RECORD + payload {
            let n = whole.len() - RECORD;
            return Err(self.cut(format!("truncated record: {n} of {payload} bytes of payload")));
        }
        let skip = if action & CGROUP != 0 { 8 } else { 0 };
        let text = whole.get(RECORD + skip..).unwrap_or(b"");
        let n = text.len().min(16);
        record.note[..n].copy_from_slice(&text[..n]);
        self.bytes.skip(RECORD + payload);
        Ok(Some(record))
    }
}
