//! Verification of one request at a time, as whoever performs it says how far it is.

use crate::blocks::{Block, Room};
use crate::ledger::Allowed;
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
}

/// Verifies one request after the other.
pub struct Checker {
    verifier: Arc<Verifier>,
    under: Under,
    file: u64,
    at: u64,
    size: u64,
    seen: Vec<Allowed>,
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
            at: 0,
            size: 0,
            seen: Vec::new(),
            room: Room::default(),
            counts: Counts::default(),
        }
    }

    #[inline(always)]
    fn is_under(&mut self, under: Under, file: u64, at: u64, size: u64) {
        (self.under, self.file, self.at, self.size) = (under, file, at, size);
    }

    /// A write of `bytes` to byte `at` of a file is about to begin: they are made.
    #[inline]
    pub fn write(&mut self, file: u64, at: u64, bytes: &mut [u8]) {
        let Checker { verifier, room, .. } = self;
        let Some(ledger) = verifier.ledger(file) else { return };
        let (unit, mut rest) = (verifier.blocks.unit() as u64, &mut *bytes);
        let mut first = (at % unit) as usize;
        ledger.begin_write(at, bytes_len(rest), |block, generation, from, to| {
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(to - from);
            verifier.blocks.fill(Block { file, block }, generation, first, piece, &mut room.scratch);
            (first, rest) = (0, after);
        });
        self.is_under(Under::Write, file, at, bytes.len() as u64);
    }

    /// A read is about to begin.
    #[inline]
    pub fn read(&mut self, file: u64, at: u64, size: u64) {
        let Some(ledger) = self.verifier.ledger(file) else { return };
        ledger.begin_read(at, size, &mut self.seen);
        self.is_under(Under::Read, file, at, size);
    }

    /// Space is about to be given back.
    pub fn discard(&mut self, file: u64, at: u64, size: u64) {
        let Some(ledger) = self.verifier.ledger(file) else { return };
        ledger.begin_discard(at, size);
        self.is_under(Under::Discard, file, at, size);
    }

    /// A sync is about to begin.
    #[inline]
    pub fn sync(&mut self, file: u64) {
        let Some(ledger) = self.verifier.ledger(file) else { return };
        let number = ledger.begin_sync();
        self.is_under(Under::Sync(number), file, 0, 0);
    }

    /// What was about to begin has ended with this result, as of a system call; `stable`: what was written was to be
    /// stable by then. `bytes` gives what was read, by the bytes asked for and those that came.
    #[inline]
    pub fn ended<'a>(&mut self, result: i64, stable: bool, bytes: impl FnOnce(usize, usize) -> &'a [u8]) {
        let Checker { verifier, under, file, at, size, seen, room, counts } = self;
        let Some(ledger) = verifier.ledger(*file) else { return };
        match std::mem::replace(under, Under::Nothing) {
            Under::Nothing => {}
            Under::Read if result > 0 => {
                ledger.end_read(*at, *size, seen);
                let bytes = bytes(*size as usize, (result as u64).min(*size) as usize);
                let judged = verifier.judge(*file, *at, bytes, seen, room);
                counts.checked += judged.checked;
                counts.raced += judged.raced;
                counts.unknown += judged.unknown;
            }
            Under::Read => {}
            Under::Write => ledger.end_write(*at, *size, result.max(0) as u64, stable),
            Under::Discard => ledger.end_discard(*at, *size),
            Under::Sync(number) if result >= 0 => ledger.end_sync(number),
            Under::Sync(_) => {}
        }
    }
}

fn bytes_len(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

impl Drop for Checker {
    fn drop(&mut self) {
        self.verifier.count(&self.counts);
    }
}
