//! Verification of one request at a time, as whoever performs it says how far it is.

use crate::blocks::{Block, Kind, Room};
use crate::ledger::{Allowed, Ledger};
use crate::verifier::{Counts, Verifier};
use std::sync::Arc;

/// What is under way.
#[derive(Debug, Clone, Copy)]
enum Under {
    Nothing,
    Read,
    Write,
    Discard,
    Sync(u32),
    Echo,
}

/// Verifies one request after the other.
pub struct Checker {
    verifier: Arc<Verifier>,
    under: Under,
    file: u64,
    ledger: Option<Arc<Ledger>>,
    at: u64,
    size: u64,
    /// What the blocks of the last read may have held.
    seen: Vec<Allowed>,
    /// Generations of the blocks of the last write.
    begun: Vec<u32>,
    room: Room,
    counts: Counts,
}

impl Checker {
    /// Of what `verifier` knows.
    pub fn new(verifier: Arc<Verifier>) -> Checker {
        Checker {
            verifier,
            under: Under::Nothing,
            file: 0,
            ledger: None,
            at: 0,
            size: 0,
            seen: Vec::new(),
            begun: Vec::new(),
            room: Room::default(),
            counts: Counts::default(),
        }
    }

    /// Takes note of what is about to begin.
    #[inline(always)]
    fn begin(&mut self, under: Under, file: u64, at: u64, size: u64) {
        if self.ledger.is_none() || self.file != file {
            self.ledger = self.verifier.ledger(file);
        }
        (self.under, self.file, self.at, self.size) = (under, file, at, size);
    }

    /// A write of `size` bytes to byte `at` of a file is about to begin; [`Checker::fill`] or [`Checker::fill_strip`] makes
    /// them.
    #[inline]
    pub fn write(&mut self, file: u64, at: u64, size: u64) {
        self.begin(Under::Write, file, at, size);
        self.begun.clear();
        if let Some(ledger) = &self.ledger {
            ledger.begin_write(at, size, &mut self.begun);
        }
    }

    /// Makes the bytes of the write that is about to begin.
    #[inline]
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let Checker { verifier, file, at, begun, room, .. } = self;
        let unit = verifier.blocks.unit();
        let (first, mut inside, mut rest) = (*at / unit as u64, (*at % unit as u64) as usize, bytes);
        for (block, generation) in (first..).zip(begun) {
            let (piece, after) = rest.split_at_mut((unit - inside).min(rest.len()));
            verifier.blocks.fill(Block { file: *file, block }, *generation, inside, piece, &mut room.scratch);
            (inside, rest) = (0, after);
        }
    }

    /// Makes them in a strip, and says where in it they begin; nothing where its blocks are of several generations.
    #[inline]
    pub fn fill_strip(&mut self, strip: &mut [u8]) -> Option<usize> {
        let unit = self.verifier.blocks.unit() as u64;
        let (block, inside) = (self.at / unit, (self.at % unit) as usize);
        let (generation, others) = self.begun.split_first()?;
        let covered = self.begun.len() as u64 * unit >= inside as u64 + self.size;
        if !covered || others.iter().any(|other| other != generation) {
            return None;
        }
        let first = Block { file: self.file, block };
        self.verifier.blocks.fill_strip(first, *generation, inside, self.size as usize, strip)
    }

    /// Makes a strip ready, of [`STRIP`] bytes; false where blocks cannot be made in one.
    pub fn prepare(&self, strip: &mut [u8]) -> bool {
        let Kind::Marked(marks) = self.verifier.blocks.kind() else { return false };
        marks.prepare(strip);
        true
    }

    /// What the last read got is about to be written again where it was, with nothing changed.
    pub fn echo(&mut self, file: u64, at: u64, size: u64) {
        let same = (self.file, self.at, self.size) == (file, at, size);
        self.begin(Under::Echo, file, at, size);
        if let Some(ledger) = &self.ledger {
            ledger.begin_echo(at, size, if same { &self.seen } else { &[] });
        }
    }

    /// A read is about to begin.
    #[inline]
    pub fn read(&mut self, file: u64, at: u64, size: u64) {
        self.seen.clear();
        self.begin(Under::Read, file, at, size);
        if let Some(ledger) = &self.ledger {
            ledger.begin_read(at, size, &mut self.seen);
        }
    }

    /// A read is about to begin that may get what had been read ahead some time ago.
    pub fn read_late(&mut self, file: u64, at: u64, size: u64) {
        self.read(file, at, size);
        self.seen.iter_mut().for_each(|seen| (seen.low, seen.loose, seen.open) = (0, true, true));
    }

    /// Space is about to be given back, or written with what nobody knows.
    pub fn discard(&mut self, file: u64, at: u64, size: u64) {
        self.begin(Under::Discard, file, at, size);
        if let Some(ledger) = &self.ledger {
            ledger.begin_discard(at, size);
        }
    }

    /// A sync is about to begin.
    #[inline]
    pub fn sync(&mut self, file: u64) {
        self.begin(Under::Nothing, file, 0, 0);
        if let Some(ledger) = &self.ledger {
            self.under = Under::Sync(ledger.begin_sync());
        }
    }

    /// What is known of a file.
    pub fn ledger(&self, file: u64) -> Option<Arc<Ledger>> {
        self.verifier.ledger(file)
    }

    /// What was about to begin has ended with this result, as of a system call; `stable`: what was written was to be
    /// stable by then. `bytes` gives what was read, by the bytes asked for and those that came.
    #[inline]
    pub fn ended<'a>(&mut self, result: i64, stable: bool, bytes: impl FnOnce(usize, usize) -> &'a [u8]) {
        let Checker { verifier, under, file, ledger, at, size, seen, room, counts, .. } = self;
        let Some(ledger) = ledger else { return };
        match std::mem::replace(under, Under::Nothing) {
            Under::Nothing => {}
            Under::Read if result > 0 => {
                ledger.end_read(*at, *size, seen);
                let bytes = bytes(*size as usize, (result as u64).min(*size) as usize);
                let judged = verifier.judge(*file, ledger.about.before, *at, bytes, seen, room);
                counts.checked += judged.checked;
                counts.raced += judged.raced;
                counts.unknown += judged.unknown;
            }
            Under::Read => {}
            Under::Write => ledger.end_write(*at, *size, result.max(0) as u64, stable),
            Under::Discard => ledger.end_discard(*at, *size),
            Under::Echo => ledger.end_echo(*at, *size),
            Under::Sync(number) if result >= 0 => ledger.end_sync(number),
            Under::Sync(_) => {}
        }
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        self.verifier.count(&self.counts);
    }
}
