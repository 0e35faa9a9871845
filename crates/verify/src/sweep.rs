//! Reading files from end to end to see whether every block holds what it should.

use crate::blocks::{Before, Block, Kind, Room};
use crate::ledger::{ANY, Allowed, Ledger};
use crate::verifier::{Counts, Unsynced, Verifier};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// Bytes read at once, about.
const PIECE: usize = 4 << 20;
const ALIGN: usize = 4096;
/// Blocks that hold something else than was written, after which a file is another one.
const PROBES: u64 = 64;
/// Blocks that are asked for at most, to find these or one that holds what was written.
const CANDIDATES: u64 = 1 << 16;
/// Unreadable blocks that are named.
const NAMED: usize = 8;

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
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Of blocks whose last write was not stable.
    pub unsynced: Unsynced,
    /// Bytes that could not be read, because the file ended before.
    pub missing: u64,
    /// Blocks that could not be read.
    pub unreadable: Unreadable,
    /// It was stopped.
    pub stopped: bool,
}

/// Blocks that could not be read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// How many.
    pub blocks: u64,
    /// Bytes at which the first of them begin.
    pub first: Vec<u64>,
    /// What the operating system said to the first.
    pub reason: String,
}

impl Unreadable {
    fn add(&mut self, at: u64, bytes: u64, unit: u64, cause: &io::Error) {
        if self.blocks == 0 {
            self.reason = cause.to_string();
        }
        let places = (at..at + bytes).step_by(unit as usize);
        self.first.extend(places.take(NAMED - self.first.len().min(NAMED)));
        self.blocks += bytes.div_ceil(unit);
    }

    /// In words, where there are any.
    pub fn tell(&self) -> Option<String> {
        let places: Vec<String> = self.first.iter().map(u64::to_string).collect();
        let (blocks, at) = match self.blocks {
            0 => return None,
            1 => ("1 block".to_string(), "byte"),
            more => (format!("{more} blocks"), "bytes"),
        };
        let more = if self.blocks > places.len() as u64 { " and more" } else { "" };
        Some(format!("{blocks} cannot be read, at {at} {}{more}: {}", places.join(", "), self.reason))
    }
}

impl Verifier {
    /// Reads a file from end to end. What cannot be read is counted. `advance` is told of bytes that are done, and may end
    /// it.
    pub fn sweep(
        &self,
        number: u64,
        file: &impl FileExt,
        when: When,
        mut advance: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Swept {
        let Some(ledger) = self.ledger(number) else { return Swept::default() };
        // Direct reads are of whole pages, whatever the blocks are.
        let grain = self.blocks.unit().next_multiple_of(ALIGN);
        let piece = grain * (PIECE / grain).max(1);
        let mut memory = vec![0; piece + ALIGN];
        let first = memory.as_ptr().align_offset(ALIGN);
        let buffer = &mut memory[first..first + piece];
        let (mut at, size) = (0, ledger.end());
        let mut sweep = Sweep {
            verifier: self,
            number,
            ledger: &ledger,
            when,
            allowed: Vec::new(),
            room: Room::default(),
            swept: Swept::default(),
        };
        // Where nothing of a whole piece could be read, the next one that fails is not tried block by block.
        let mut dead = false;
        while at < size {
            let length = ((size - at) as usize).min(piece);
            let mut flow = ControlFlow::Continue(());
            match sweep.read(file, at, &mut buffer[..length.next_multiple_of(ALIGN).min(piece)], length) {
                Ok(()) => {
                    dead = false;
                    flow = advance(length as u64);
                }
                Err(e) if dead => {
                    sweep.unreadable(at, length as u64, &e);
                    flow = advance(length as u64);
                }
                Err(_) => {
                    dead = true;
                    for inside in (0..length).step_by(grain) {
                        let (at, length) = (at + inside as u64, (length - inside).min(grain));
                        match sweep.read(file, at, &mut buffer[..length.next_multiple_of(ALIGN)], length) {
                            Ok(()) => dead = false,
                            Err(e) => sweep.unreadable(at, length as u64, &e),
                        }
                        flow = advance(length as u64);
                        if flow.is_break() {
                            break;
                        }
                    }
                }
            }
            at += length as u64;
            if flow.is_break() {
                sweep.swept.stopped = true;
                break;
            }
        }
        sweep.swept
    }

    /// Whether a file holds anything that was written under this verification, judged by blocks all over it; also if
    /// nothing is known of any, or none can be read.
    pub fn recognises(&self, number: u64, file: &impl FileExt) -> bool {
        let Some(ledger) = self.ledger(number) else { return true };
        let unit = self.blocks.unit();
        let (mut memory, mut room) = (vec![0; 2 * unit.next_multiple_of(ALIGN) + ALIGN], Room::default());
        let first = memory.as_ptr().align_offset(ALIGN);
        let (mut allowed, mut foreign) = (Vec::new(), 0);
        let (blocks, filled) = (ledger.blocks(), ledger.about.before == Before::Filled);
        let candidates = CANDIDATES.min(blocks);
        for candidate in 0..candidates {
            let block = (u128::from(blocks) * u128::from(candidate) / u128::from(candidates)) as u64;
            let at = block * unit as u64;
            ledger.after_crash(at, unit as u64, &mut allowed);
            // Of a block that was written in part, its beginning is known.
            let told = allowed.first().filter(|one| !one.skip && one.filled > 0 && (one.high > 0 || filled));
            let Some(told) = told else { continue };
            // Direct reads begin at pages, and blocks may be parts of one.
            let from = at - at % ALIGN as u64;
            let inside = (at - from) as usize;
            let length = (inside + unit).next_multiple_of(ALIGN);
            let buffer = &mut memory[first..first + length];
            let Ok(got) = read_all(file, buffer, from) else { continue };
            let bytes = &buffer[inside.min(got)..got.min(inside + unit.min(told.filled as usize))];
            let block = Block { file: number, block };
            let marked = bytes.chunks_exact(crate::SECTOR).any(|sector| match self.blocks.kind() {
                Kind::Marked(marks) => self.blocks.mark(sector).is_some_and(|mark| mark.key == marks.key()),
                Kind::Content(_) => false,
            });
            let oldest = told.low.min(told.high.saturating_sub(64));
            let mut is = |generation| self.blocks.holds(block, generation, 0, bytes, &mut room);
            if marked || !bytes.is_empty() && (oldest..=told.high).any(&mut is) {
                return true;
            }
            // What was before a write, or parts of several, says nothing.
            foreign += u64::from(!told.loose && (told.low > 0 || filled));
            if foreign == PROBES {
                break;
            }
        }
        foreign == 0
    }
}

/// A sweep that goes on.
struct Sweep<'a> {
    verifier: &'a Verifier,
    number: u64,
    ledger: &'a Ledger,
    when: When,
    allowed: Vec<Allowed>,
    room: Room,
    swept: Swept,
}

impl Sweep<'_> {
    fn unit(&self) -> usize {
        self.verifier.blocks.unit()
    }

    fn unreadable(&mut self, at: u64, bytes: u64, cause: &io::Error) {
        self.swept.unreadable.add(at, bytes, self.unit() as u64, cause);
    }

    /// Reads a stretch, whose first `length` bytes belong to the file, and compares it.
    fn read(&mut self, file: &impl FileExt, at: u64, buffer: &mut [u8], length: usize) -> io::Result<()> {
        let got = read_all(file, buffer, at)?.min(length);
        let bytes = &mut buffer[..length];
        self.swept.missing += (length - got) as u64;
        // What a file no longer has reads as nothing, which is as good as zeros.
        bytes[got..].fill(0);
        match self.when {
            When::Ended => self.ledger.begin_read(at, length as u64, &mut self.allowed),
            When::Crashed { running } => {
                self.ledger.after_crash(at, length as u64, &mut self.allowed);
                if running {
                    let (unit, discards) = (self.unit(), self.ledger.about.discards);
                    for (allowed, bytes) in self.allowed.iter_mut().zip(bytes.chunks(unit)) {
                        (allowed.high, allowed.loose, allowed.open) = (ANY, true, true);
                        // It may have been given back since.
                        let hole = |sector: &[u8]| sector.iter().all(|byte| *byte == 0);
                        allowed.skip |= discards && bytes.chunks(crate::SECTOR).any(hole);
                    }
                } else {
                    self.tell_unsynced(at, bytes);
                }
            }
        }
        let Sweep { verifier, number, ledger, when, allowed, room, .. } = self;
        let counts = verifier.judge(*number, ledger.about.before, at, bytes, allowed, room);
        verifier.count(&Counts { raced: if *when == When::Ended { counts.raced } else { 0 }, ..counts });
        Ok(())
    }

    fn tell_unsynced(&mut self, at: u64, bytes: &[u8]) {
        let unit = self.unit();
        let Sweep { verifier, number: file, ledger, allowed, room, swept, .. } = self;
        let (before, unsynced) = (ledger.about.before, &mut swept.unsynced);
        let first = at / unit as u64;
        for ((block, bytes), allowed) in (first..).zip(bytes.chunks(unit)).zip(allowed.iter()) {
            if allowed.skip || allowed.low == allowed.high {
                continue;
            }
            let mut is = |generation| {
                (generation > 0 || before == Before::Filled)
                    && verifier.blocks.holds(Block { file: *file, block }, generation, 0, bytes, room)
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
    /// Adds that of another file, whose unreadable blocks are counted and not named.
    pub fn add(&mut self, other: &Swept) {
        self.unsynced.newest += other.unsynced.newest;
        self.unsynced.older += other.unsynced.older;
        self.unsynced.mixed += other.unsynced.mixed;
        self.missing += other.missing;
        self.unreadable.blocks += other.unreadable.blocks;
        self.stopped |= other.stopped;
    }
}

/// Reads until the buffer is full or the file ends.
fn read_all(file: &impl FileExt, buffer: &mut [u8], at: u64) -> io::Result<usize> {
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
