//! What every block of a file may hold: which generations were written, which of them must have arrived, which are stable.
//!
//! A write of a whole block begins a generation. When it has completed and nothing else was under way, reads must find
//! it: it is the block's *floor*. When a sync that began later has completed, it must also survive a loss of power: it is
//! the *durable* floor. Writes of a part of a block repeat what is there, so they change nothing that could be told.
//! Of writes that overlap any may win, so the block may be any mixture of theirs until the next one that is alone.

use crate::blocks::Before;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Blocks that share a lock.
const GROUP: usize = 32;

/// Nobody knows what is there, since it was given back or a part was written first.
const UNKNOWN: u8 = 1;
/// It may be a mixture of all generations from the floor on.
const MIXED: u8 = 2;
/// Of what is under way: several overlapped.
const RACED: u8 = 4;
/// Of what is under way: a write failed or was short.
const FAILED: u8 = 8;
/// Of what is under way: a write covered a part of it.
const PART: u8 = 16;
/// Of what is under way: a write covered a part of one of its sectors.
const CUT: u8 = 32;

/// No generation is known to be stable.
const NONE: u32 = u32::MAX;

/// What is known of one block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry {
    /// Last generation that was begun.
    pub latest: u32,
    /// Oldest that a read may find.
    pub floor: u32,
    /// Oldest that may be there after a loss of power, while the floor is not stable itself.
    pub durable: u32,
    /// Syncs that had begun when the floor was there.
    pub epoch: u32,
    /// Writes under way.
    pub flying: u16,
    /// As above.
    pub flags: u8,
}

/// How a write ended, as far as one block is concerned.
#[derive(Debug, Clone, Copy)]
struct Ended {
    whole: bool,
    arrived: bool,
    /// The sync that the next write needs, and the last that has completed.
    epoch: u32,
    synced: u32,
    /// The write was stable when it completed.
    stable: bool,
    /// Writes that overlap mix by bytes.
    mapped: bool,
}

impl Entry {
    fn begin(&mut self, cover: Cover, before: Before) -> u32 {
        if self.flying > 0 {
            self.flags |= RACED;
        }
        self.flying = self.flying.saturating_add(1);
        match cover {
            Cover::Whole => self.latest += 1,
            Cover::Sectors | Cover::Bytes => {
                self.flags |= PART | if cover == Cover::Bytes { CUT } else { 0 };
                let untouched = self.latest == 0 && before != Before::Filled;
                if untouched || (cover == Cover::Bytes && self.flags & MIXED != 0) {
                    self.forget();
                }
            }
        }
        self.latest
    }

    fn end(&mut self, how: Ended) {
        self.flying = self.flying.saturating_sub(1);
        if how.whole && !how.arrived {
            self.flags |= FAILED;
        }
        if self.flying > 0 {
            return;
        }
        let flags = self.flags;
        self.flags &= UNKNOWN | MIXED;
        let (raced, failed, part) = (flags & RACED != 0, flags & FAILED != 0, flags & PART != 0);
        if raced && (part || how.mapped) {
            // Which part of which write won?
            self.flags |= if flags & CUT != 0 || how.mapped { UNKNOWN } else { MIXED };
        } else if failed {
            self.flags |= MIXED;
        } else if !part {
            // Of a chain that began at a floor that was alone, this is the first.
            self.raise(if raced { self.floor + 1 } else { self.latest }, how);
            self.flags = if self.floor < self.latest { MIXED } else { 0 };
        }
        if self.flags & UNKNOWN != 0 {
            self.durable = NONE;
        }
    }

    fn raise(&mut self, floor: u32, how: Ended) {
        if self.flags & UNKNOWN == 0 && self.epoch <= how.synced {
            self.durable = self.floor;
        }
        self.floor = floor;
        self.epoch = how.epoch;
        if how.stable {
            (self.durable, self.epoch) = (floor, 0);
        }
    }

    /// From now on nobody knows what is there.
    fn forget(&mut self) {
        self.flags |= UNKNOWN;
        self.durable = NONE;
    }

    /// What may be there after a loss of power, where the last sync that completed was this one.
    fn after_crash(&self, synced: u32) -> Allowed {
        let sure = if self.epoch <= synced { self.floor } else { self.durable };
        let known = self.flags & UNKNOWN == 0 && sure != NONE;
        let low = if known { sure } else { 0 };
        // The page cache may have written a page while it was being changed.
        let open = low < self.latest;
        Allowed { low, high: self.latest, loose: open, open, skip: !known }
    }
}

/// How much of a block a write covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cover {
    Whole,
    /// Some whole sectors.
    Sectors,
    /// Any bytes.
    Bytes,
}

/// What a block may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// Oldest generation.
    pub low: u32,
    /// Newest.
    pub high: u32,
    /// Sector by sector any of these.
    pub loose: bool,
    /// It was being written, so a sector may be of several, too.
    pub open: bool,
    /// Nobody knows.
    pub skip: bool,
}

/// What is kept of a file besides its blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub size: u64,
    /// What was in it.
    pub before: Before,
    /// Each write is stable when it completes.
    pub stable: bool,
    /// Its space is given back at times.
    pub discards: bool,
    /// It is written through memory, where stores that overlap mix by bytes, not by sectors.
    pub mapped: bool,
}

/// What every block of a file may hold.
pub struct Ledger {
    /// The file.
    pub about: About,
    unit: u64,
    groups: Box<[Mutex<[Entry; GROUP]>]>,
    /// Number of the sync that will make stable what is written now.
    epoch: AtomicU32,
    /// The last sync that has completed.
    synced: AtomicU32,
}

impl Ledger {
    /// Of a file of which nothing has been written.
    pub fn new(about: About, unit: usize) -> Ledger {
        let groups = about.size.div_ceil((unit * GROUP) as u64);
        let groups = (0..groups).map(|_| Mutex::new([Entry::default(); GROUP])).collect();
        // What was there before is stable.
        let (epoch, synced) = (AtomicU32::new(1), AtomicU32::new(0));
        Ledger { about, unit: unit as u64, groups, epoch, synced }
    }

    /// Blocks it has.
    pub fn blocks(&self) -> u64 {
        self.about.size.div_ceil(self.unit)
    }

    /// Gives every block of a range to `each`: its number, its entry, the bytes of it from and to which the range goes.
    #[inline(always)]
    fn each(&self, at: u64, size: u64, mut each: impl FnMut(u64, &mut Entry, usize, usize)) {
        let end = (at + size).min(self.about.size.next_multiple_of(self.unit));
        let (mut at, unit) = (at, self.unit);
        while at < end {
            let block = at / unit;
            let Some(group) = self.groups.get(block as usize / GROUP) else { return };
            let mut entries = group.lock().unwrap_or_else(|e| e.into_inner());
            for (i, entry) in entries.iter_mut().enumerate().skip(block as usize % GROUP) {
                if at >= end {
                    break;
                }
                let block = block / GROUP as u64 * GROUP as u64 + i as u64;
                let (from, to) = (at - block * unit, (end - block * unit).min(unit));
                each(block, entry, from as usize, to as usize);
                at = (block + 1) * unit;
            }
        }
    }

    #[inline(always)]
    fn cover(&self, block: u64, from: usize, to: usize) -> Cover {
        // The last block may be cut short by the end of the file.
        let end = self.unit.min(self.about.size - block * self.unit) as usize;
        match (from, to) {
            (0, to) if to >= end => Cover::Whole,
            (from, to) if from % crate::SECTOR == 0 && to % crate::SECTOR == 0 => Cover::Sectors,
            _ => Cover::Bytes,
        }
    }

    /// A write of a range begins; `each` is told of every block what to write: the block, the generation, from which to
    /// which of its bytes.
    #[inline]
    pub fn begin_write(&self, at: u64, size: u64, mut each: impl FnMut(u64, u32, usize, usize)) {
        self.each(at, size, |block, entry, from, to| {
            let generation = entry.begin(self.cover(block, from, to), self.about.before);
            each(block, generation, from, to);
        });
    }

    /// A write of a range has ended, of which `done` bytes went; `stable`: they are stable.
    #[inline]
    pub fn end_write(&self, at: u64, size: u64, done: u64, stable: bool) {
        let (epoch, synced) = (self.epoch.load(Relaxed), self.synced.load(Relaxed));
        let (stable, mapped) = (stable || self.about.stable, self.about.mapped);
        self.each(at, size, |block, entry, from, to| {
            let whole = self.cover(block, from, to) == Cover::Whole;
            let arrived = block * self.unit + to as u64 <= at + done;
            entry.end(Ended { whole, arrived, epoch, synced, stable, mapped });
        });
    }

    /// What the blocks of a range may hold at the beginning of a read; those that are being written are `loose`.
    #[inline]
    pub fn begin_read(&self, at: u64, size: u64, seen: &mut Vec<Allowed>) {
        seen.clear();
        self.each(at, size, |_, entry, _, _| {
            let (open, skip) = (entry.flying > 0, entry.flags & UNKNOWN != 0);
            let loose = open || entry.flags & MIXED != 0;
            seen.push(Allowed { low: entry.floor, high: entry.latest, loose, open, skip });
        });
    }

    /// Adds to that what was written meanwhile.
    #[inline]
    pub fn end_read(&self, at: u64, size: u64, seen: &mut [Allowed]) {
        let mut seen = seen.iter_mut();
        self.each(at, size, |_, entry, _, _| {
            let Some(seen) = seen.next() else { return };
            seen.open |= entry.flying > 0 || entry.latest != seen.high;
            seen.loose |= seen.open || entry.flags & MIXED != 0;
            seen.skip |= entry.flags & UNKNOWN != 0;
            seen.high = entry.latest;
        });
    }

    /// What the blocks of a range may hold after a loss of power.
    pub fn after_crash(&self, at: u64, size: u64, allowed: &mut Vec<Allowed>) {
        let synced = self.synced.load(Relaxed);
        allowed.clear();
        self.each(at, size, |_, entry, _, _| allowed.push(entry.after_crash(synced)));
    }

    /// A range begins to be given back: nobody knows what will be read there.
    pub fn begin_discard(&self, at: u64, size: u64) {
        self.each(at, size, |_, entry, _, _| {
            entry.begin(Cover::Bytes, self.about.before);
            entry.forget();
        });
    }

    /// A range was given back, or perhaps not.
    pub fn end_discard(&self, at: u64, size: u64) {
        self.each(at, size, |_, entry, _, _| {
            let (epoch, synced) = (0, 0);
            let (stable, mapped) = (false, false);
            entry.end(Ended { whole: false, arrived: false, epoch, synced, stable, mapped });
            entry.forget();
        });
    }

    /// A sync begins; its number is for [`Ledger::end_sync`].
    #[inline]
    pub fn begin_sync(&self) -> u32 {
        self.epoch.fetch_add(1, Relaxed)
    }

    /// A sync has completed.
    #[inline]
    pub fn end_sync(&self, sync: u32) {
        self.synced.fetch_max(sync, Relaxed);
    }

    /// All entries, group by group; each group as it is at one moment.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let left = self.blocks() as usize;
        self.groups.iter().flat_map(|group| *group.lock().unwrap_or_else(|e| e.into_inner())).take(left)
    }

    /// Number of the next sync, and of the last that has completed.
    pub fn syncs(&self) -> (u32, u32) {
        // The completed one first: it is never too new for the entries read after it.
        let synced = self.synced.load(Relaxed);
        (self.epoch.load(Relaxed), synced)
    }

    /// A ledger as it was kept: of every block the entry that `next` gives.
    ///
    /// # Errors
    /// Those of `next`.
    pub fn restore<E>(
        about: About,
        unit: usize,
        (epoch, synced): (u32, u32),
        mut next: impl FnMut() -> Result<Entry, E>,
    ) -> Result<Ledger, E> {
        let blocks = about.size.div_ceil(unit as u64);
        // Grown as entries come: a size alone shall not take memory.
        let mut groups = Vec::new();
        let mut block = 0;
        while block < blocks {
            let mut group = [Entry::default(); GROUP];
            for entry in group.iter_mut().take((blocks - block).min(GROUP as u64) as usize) {
                *entry = next()?;
                if entry.flying > 0 {
                    // How these ended nobody has seen.
                    let left = if entry.flags & CUT != 0 { UNKNOWN } else { MIXED };
                    (entry.flying, entry.flags) = (0, entry.flags & UNKNOWN | left);
                }
            }
            groups.push(Mutex::new(group));
            block += GROUP as u64;
        }
        let (epoch, synced) = (AtomicU32::new(epoch), AtomicU32::new(synced));
        Ok(Ledger { about, unit: unit as u64, groups: groups.into(), epoch, synced })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: usize = 4096;

    fn ledger(before: Before) -> Ledger {
        let path = PathBuf::from("f");
        let (stable, discards, mapped) = (false, false, false);
        Ledger::new(About { path, size: 10 * 4096 + 100, before, stable, discards, mapped }, UNIT)
    }

    fn write(ledger: &Ledger, at: u64, size: u64) -> Vec<(u64, u32, usize, usize)> {
        let mut told = Vec::new();
        ledger.begin_write(at, size, |block, generation, from, to| told.push((block, generation, from, to)));
        told
    }

    fn read(ledger: &Ledger, at: u64) -> Allowed {
        let mut seen = Vec::new();
        ledger.begin_read(at, 4096, &mut seen);
        ledger.end_read(at, 4096, &mut seen);
        seen[0]
    }

    fn crash(ledger: &Ledger, at: u64) -> Allowed {
        let mut allowed = Vec::new();
        ledger.after_crash(at, 4096, &mut allowed);
        allowed[0]
    }

    fn strict(generation: u32) -> Allowed {
        Allowed { low: generation, high: generation, loose: false, open: false, skip: false }
    }

    fn loose(low: u32, high: u32) -> Allowed {
        Allowed { low, high, loose: true, open: false, skip: false }
    }

    fn open(low: u32, high: u32) -> Allowed {
        Allowed { open: true, ..loose(low, high) }
    }

    #[test]
    fn a_write_that_is_alone_must_be_read() {
        let ledger = ledger(Before::Filled);
        assert_eq!(read(&ledger, 0), strict(0));
        assert_eq!(write(&ledger, 4096, 8192), [(1, 1, 0, 4096), (2, 1, 0, 4096)]);
        assert_eq!(read(&ledger, 4096), open(0, 1));
        ledger.end_write(4096, 8192, 8192, false);
        assert_eq!(
            (read(&ledger, 0), read(&ledger, 4096), read(&ledger, 8192)),
            (strict(0), strict(1), strict(1))
        );
        // The end of the file ends the last block.
        assert_eq!(write(&ledger, 40960, 100), [(10, 1, 0, 100)]);
        ledger.end_write(40960, 100, 100, false);
        assert_eq!(read(&ledger, 40960), strict(1));
    }

    #[test]
    fn failed_and_short_writes_may_have_arrived_or_not() {
        let ledger = ledger(Before::Filled);
        write(&ledger, 0, 12288);
        ledger.end_write(0, 12288, 5000, false);
        assert_eq!(
            (read(&ledger, 0), read(&ledger, 4096), read(&ledger, 8192)),
            (strict(1), loose(0, 1), loose(0, 1))
        );
        write(&ledger, 4096, 4096);
        ledger.end_write(4096, 4096, 4096, false);
        assert_eq!(read(&ledger, 4096), strict(2));
    }

    #[test]
    fn of_writes_that_overlap_any_may_win_but_nothing_older() {
        let ledger = ledger(Before::Filled);
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        write(&ledger, 0, 4096);
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        assert_eq!(read(&ledger, 0), open(1, 3));
        ledger.end_write(0, 4096, 4096, false);
        assert_eq!(read(&ledger, 0), loose(2, 3));
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        assert_eq!(read(&ledger, 0), strict(4));
    }

    #[test]
    fn stores_to_memory_that_overlap_leave_nobody_knows_what() {
        let path = PathBuf::from("f");
        let (before, stable, discards, mapped) = (Before::Filled, false, false, true);
        let ledger = Ledger::new(About { path, size: 4096, before, stable, discards, mapped }, UNIT);
        write(&ledger, 0, 4096);
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        ledger.end_write(0, 4096, 4096, false);
        assert!(read(&ledger, 0).skip);
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        assert_eq!(read(&ledger, 0), strict(3));
    }

    #[test]
    fn parts_repeat_what_is_there() {
        let ledger = ledger(Before::Filled);
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        assert_eq!(write(&ledger, 100, 8000), [(0, 1, 100, 4096), (1, 0, 0, 4004)]);
        ledger.end_write(100, 8000, 0, false);
        assert_eq!((read(&ledger, 0), read(&ledger, 4096)), (strict(1), strict(0)));
        // A part that races with a whole may leave any mixture, inside of sectors, too.
        for (size, expected) in [(512, loose(1, 2)), (500, Allowed { skip: true, ..loose(1, 3) })] {
            write(&ledger, 0, 4096);
            write(&ledger, 0, size);
            ledger.end_write(0, 4096, 4096, false);
            ledger.end_write(0, size, size, false);
            assert_eq!(read(&ledger, 0), expected);
        }
        write(&ledger, 0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        assert_eq!(read(&ledger, 0), strict(4));
    }

    #[test]
    fn what_nobody_knows_is_not_judged() {
        let ledger = ledger(Before::Zeros);
        assert_eq!(read(&ledger, 0), strict(0));
        write(&ledger, 512, 512);
        ledger.end_write(512, 512, 512, false);
        assert!(read(&ledger, 0).skip && !read(&ledger, 4096).skip);
        ledger.begin_discard(4096, 4096);
        ledger.end_discard(4096, 4096);
        assert!(read(&ledger, 4096).skip && crash(&ledger, 4096).skip);
        write(&ledger, 0, 8192);
        ledger.end_write(0, 8192, 8192, false);
        assert_eq!((read(&ledger, 0), read(&ledger, 4096)), (strict(1), strict(1)));
        // What was given back may come back with the power, until the new data is stable.
        assert!(crash(&ledger, 4096).skip);
        ledger.end_sync(ledger.begin_sync());
        assert_eq!(crash(&ledger, 4096), strict(1));
    }

    #[test]
    fn of_a_write_and_a_discard_that_overlap_either_may_win() {
        let ledger = ledger(Before::Filled);
        ledger.begin_discard(0, 4096);
        write(&ledger, 0, 4096);
        ledger.end_discard(0, 4096);
        ledger.end_write(0, 4096, 4096, false);
        assert!(read(&ledger, 0).skip);
    }

    #[test]
    fn what_was_synced_survives_a_loss_of_power() {
        let ledger = ledger(Before::Filled);
        let go = |at| {
            write(&ledger, at, 4096);
            ledger.end_write(at, 4096, 4096, false);
        };
        go(0);
        assert_eq!(crash(&ledger, 0), open(0, 1));
        let sync = ledger.begin_sync();
        go(4096);
        assert_eq!(crash(&ledger, 0), open(0, 1));
        ledger.end_sync(sync);
        assert_eq!((crash(&ledger, 0), crash(&ledger, 4096)), (strict(1), open(0, 1)));
        go(0);
        assert_eq!(crash(&ledger, 0), open(1, 2));
        go(0);
        assert_eq!(crash(&ledger, 0), open(1, 3));
        write(&ledger, 4096, 4096);
        ledger.end_write(4096, 4096, 4096, true);
        assert_eq!(crash(&ledger, 4096), strict(2));
        go(4096);
        assert_eq!(crash(&ledger, 4096), open(2, 3));
    }

    #[test]
    fn a_ledger_that_was_kept_is_the_same() {
        let ledger = ledger(Before::Filled);
        write(&ledger, 0, 20480);
        ledger.end_write(0, 8192, 8192, false);
        ledger.end_sync(ledger.begin_sync());
        let mut kept = ledger.entries();
        let next = || kept.next().ok_or(());
        let again = Ledger::restore(ledger.about.clone(), UNIT, ledger.syncs(), next).unwrap();
        assert_eq!(
            (read(&again, 0), crash(&again, 0), read(&again, 12288)),
            (strict(1), strict(1), loose(0, 1))
        );
        assert_eq!(again.entries().count(), 11);
    }
}
