//! Reading files from end to end to see whether every block holds what it should.

use crate::blocks::{Before, Block, Kind, Room};
use crate::ledger::Allowed;
use crate::verifier::{Counts, Unsynced, Verifier};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Bytes read at once, about.
const PIECE: usize = 4 << 20;
const ALIGN: usize = 4096;
/// Stands for any later generation.
pub const ANY: u32 = u32::MAX - 1;
/// Blocks looked at to tell whose a file is.
const PROBES: u64 = 64;

/// When a sweep takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After writes have ended as usual.
    Ended,
    /// After power was lost, or anything else that only what is stable must survive. `running`: the state was kept
    /// before that, so there may be later writes that it does not know.
    Crashed {
        /// Whether it was.
        running: bool,
    },
}

/// What a sweep saw besides damages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// Of blocks whose last write was not stable.
    pub unsynced: Unsynced,
    /// Bytes that could not be read, because the file ended before.
    pub missing: u64,
    /// It was stopped.
    pub stopped: bool,
}

impl Verifier {
    /// Reads a file from end to end. `advance` is told of bytes that are done, and may end it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn sweep(
        &self,
        number: u64,
        file: &File,
        when: When,
        mut advance: impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<Swept> {
        let mut swept = Swept::default();
        let Some(ledger) = self.ledger(number) else { return Ok(swept) };
        let before = ledger.about.before;
        let unit = self.blocks.unit();
        let piece = unit.next_multiple_of(ALIGN) * (PIECE / unit.next_multiple_of(ALIGN)).max(1);
        let mut memory = vec![0; piece + ALIGN];
        let first = memory.as_ptr().align_offset(ALIGN);
        let buffer = &mut memory[first..first + piece];
        let (mut allowed, mut room) = (Vec::new(), Room::default());
        let (mut at, size) = (0, ledger.end());
        while at < size {
            // Direct reads are of whole sectors, also where the file ends before.
            let wanted = ((size - at) as usize).next_multiple_of(ALIGN).min(piece);
            let got = read_all(file, &mut buffer[..wanted], at)?.min((size - at) as usize);
            let bytes = &mut buffer[..((size - at) as usize).min(piece)];
            swept.missing += (bytes.len() - got) as u64;
            // What a file no longer has reads as nothing, which is as good as zeros.
            bytes[got..].fill(0);
            match when {
                When::Ended => ledger.begin_read(at, bytes.len() as u64, &mut allowed),
                When::Crashed { running } => {
                    ledger.after_crash(at, bytes.len() as u64, &mut allowed);
                    if running {
                        for (allowed, bytes) in allowed.iter_mut().zip(bytes.chunks(unit)) {
                            (allowed.high, allowed.loose, allowed.open) = (ANY, true, true);
                            // It may have been given back since.
                            let hole = |sector: &[u8]| sector.iter().all(|byte| *byte == 0);
                            allowed.skip |= ledger.about.discards && bytes.chunks(crate::SECTOR).any(hole);
                        }
                    } else {
                        self.tell_unsynced(
                            (number, before),
                            at,
                            bytes,
                            &allowed,
                            &mut swept.unsynced,
                            &mut room,
                        );
                    }
                }
            }
            let counts = self.judge(number, before, at, bytes, &allowed, &mut room);
            self.count(&Counts { raced: if when == When::Ended { counts.raced } else { 0 }, ..counts });
            at += bytes.len() as u64;
            if advance(bytes.len() as u64).is_break() {
                swept.stopped = true;
                break;
            }
        }
        Ok(swept)
    }

    /// Whether a file holds anything that was written under this verification, judged by blocks all over it; also if
    /// nothing is known of any.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn recognises(&self, number: u64, file: &File) -> io::Result<bool> {
        let Some(ledger) = self.ledger(number) else { return Ok(true) };
        let unit = self.blocks.unit();
        let (mut memory, mut room) = (vec![0; 2 * unit.next_multiple_of(ALIGN) + ALIGN], Room::default());
        let first = memory.as_ptr().align_offset(ALIGN);
        let (mut allowed, mut known) = (Vec::new(), false);
        let blocks = ledger.blocks();
        for probe in 0..PROBES.min(blocks) {
            // Direct reads begin at pages, and blocks may be parts of one.
            let at = blocks / PROBES.min(blocks) * probe * unit as u64;
            let from = at - at % ALIGN as u64;
            let inside = (at - from) as usize;
            let length = (inside + unit).next_multiple_of(ALIGN);
            let buffer = &mut memory[first..first + length];
            let got = read_all(file, buffer, from)?;
            let bytes = &buffer[inside.min(got)..got.min(inside + unit)];
            ledger.after_crash(at, bytes.len() as u64, &mut allowed);
            let Some(allowed) = allowed
                .first()
                .filter(|allowed| !allowed.skip && allowed.high > 0 || ledger.about.before == Before::Filled)
            else {
                continue;
            };
            known = true;
            let block = Block { file: number, block: at / unit as u64 };
            let marked = bytes.chunks_exact(crate::SECTOR).any(|sector| match self.blocks.kind() {
                Kind::Marked(marks) => self.blocks.mark(sector).is_some_and(|mark| mark.key == marks.key()),
                Kind::Content(_) => false,
            });
            let oldest = allowed.low.min(allowed.high.saturating_sub(64));
            if marked
                || (oldest..=allowed.high)
                    .any(|generation| self.blocks.holds(block, generation, 0, bytes, &mut room))
            {
                return Ok(true);
            }
        }
        Ok(!known)
    }

    fn tell_unsynced(
        &self,
        (file, before): (u64, Before),
        at: u64,
        bytes: &[u8],
        allowed: &[Allowed],
        unsynced: &mut Unsynced,
        room: &mut Room,
    ) {
        let unit = self.blocks.unit();
        let first = at / unit as u64;
        for ((block, bytes), allowed) in (first..).zip(bytes.chunks(unit)).zip(allowed) {
            if allowed.skip || allowed.low == allowed.high {
                continue;
            }
            let mut is = |generation| {
                (generation > 0 || before == Before::Filled)
                    && self.blocks.holds(Block { file, block }, generation, 0, bytes, room)
            };
            let tried = (allowed.low..allowed.high).rev().take(64).chain([allowed.low]);
            if is(allowed.high) {
                unsynced.newest += 1;
            } else if bytes.iter().all(|byte| *byte == 0) || tried.into_iter().any(is) {
                unsynced.older += 1;
            } else {
                unsynced.mixed += 1;
            }
        }
    }
}

impl Swept {
    /// Adds that of another file.
    pub fn add(&mut self, other: &Swept) {
        self.unsynced.newest += other.unsynced.newest;
        self.unsynced.older += other.unsynced.older;
        self.unsynced.mixed += other.unsynced.mixed;
        self.missing += other.missing;
        self.stopped |= other.stopped;
    }
}

/// Reads until the buffer is full or the file ends.
fn read_all(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], at + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Behind the end of a file that direct reads have come to, but not a multiple of a sector.
            Err(e) if got > 0 && e.raw_os_error() == Some(22) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}
