//! What every block of a file may hold: which generations were written, which of them must have arrived, which are stable.
//!
//! A write of a whole block begins a generation. When it has completed and nothing else was under way, reads must find
//! it: it is the block's *floor*. When a sync that began later has completed, it must also survive a loss of power: it is
//! the *durable* floor. Writes of a part of a block repeat what is there, so they change nothing that could be told.
//! Of writes that overlap any may win, so the block may be any mixture of theirs until the next one that is alone.

use crate::blocks::Before;
use crate::mark::SECTOR;
use crate::memory;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, RwLock};

/// Blocks that are made room for at once without a look at how much memory there is.
const MANY: u64 = 1 << 16;
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
/// Of what is under way: a write did not arrive that made the file longer.
const SHORT: u8 = 64;
/// Of what is under way: the file is cut before its end.
const CUTTING: u8 = 128;

/// No generation is known to be stable.
const NONE: u32 = u32::MAX;
/// Generations of a block: numbers near the largest have other meanings. Once they are used up they begin anew where no
/// other write is under way; until then, writes have the last one.
pub const MOST_GENERATION: u32 = u32::MAX - (1 << 16);
/// Syncs of a file that are told apart; further ones make nothing stable that is known of.
const MOST_SYNC: u32 = u32::MAX - 1;

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
    /// Bytes from its beginning that were written; what lies behind is zeros, or nothing.
    pub filled: u32,
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
    /// It may have made the file longer.
    longer: bool,
    /// The sync that the next write needs, and the last that has completed.
    epoch: u32,
    synced: u32,
    /// The write was stable when it completed.
    stable: bool,
    /// Writes that overlap mix by bytes.
    mapped: bool,
}

impl Entry {
    fn begin(&mut self, from: usize, to: usize) -> u32 {
        if self.flying > 0 {
            self.flags |= RACED;
        }
        self.flying = self.flying.saturating_add(1);
        let cut = !(from.is_multiple_of(SECTOR) && to.is_multiple_of(SECTOR));
        self.flags |= if cut { CUT } else { 0 };
        if self.is_whole(from, to) {
            self.next();
            self.filled = to as u32;
            return self.latest;
        }
        self.flags |= PART;
        if from > self.filled as usize || (cut && self.flags & MIXED != 0) {
            self.forget();
        } else {
            self.filled = self.filled.max(to as u32);
        }
        self.latest
    }

    /// The next generation; `flying` counts its write already.
    #[inline(always)]
    fn next(&mut self) {
        if self.latest < MOST_GENERATION {
            self.latest += 1;
        } else if self.flying == 1 {
            // What is there has a number that would be newer: nobody knows, until this write has ended alone.
            self.forget();
            (self.floor, self.latest) = (0, 1);
        }
    }

    /// Whether these bytes are all that is known of the block.
    #[inline(always)]
    fn is_whole(&self, from: usize, to: usize) -> bool {
        from == 0 && to >= self.filled as usize
    }

    fn end(&mut self, how: Ended) {
        self.flying = self.flying.saturating_sub(1);
        if !how.arrived {
            self.flags |= if how.whole { FAILED } else { 0 } | if how.longer { SHORT } else { 0 };
        }
        if self.flying > 0 {
            return;
        }
        let flags = self.flags;
        self.flags &= UNKNOWN | MIXED;
        let (raced, failed, part) = (flags & RACED != 0, flags & FAILED != 0, flags & PART != 0);
        if flags & SHORT != 0 {
            self.flags |= UNKNOWN;
        } else if raced && (part || how.mapped || flags & CUT != 0) {
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

    /// A call begins that cuts the file before the block's end.
    fn begin_cut(&mut self) {
        self.flags |= if self.flying > 0 { RACED } else { 0 } | CUTTING | CUT | PART;
        self.flying = self.flying.saturating_add(1);
    }

    /// That call has ended: the block has `size` bytes at most; `None`: nothing was cut.
    fn end_cut(&mut self, size: Option<u64>) {
        let alone = self.flags & (CUTTING | RACED) == CUTTING && self.flying == 1;
        if self.flags & CUTTING != 0 {
            self.flying = self.flying.saturating_sub(1);
        }
        if self.flying == 0 {
            self.flags &= UNKNOWN | MIXED;
        }
        if !alone {
            // Of what others wrote meanwhile nobody knows whether it was cut.
            self.forget();
            return;
        }
        let Some(left) = size.filter(|left| u64::from(self.filled) > *left) else { return };
        self.filled = left as u32;
        self.durable = NONE;
        if left == 0 {
            // Its generations go on, so that none comes again.
            (self.floor, self.flags) = (self.latest, 0);
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
        Allowed { low, high: self.latest, loose: open, open, skip: !known, filled: self.filled }
    }
}

/// Stands for any later generation.
pub const ANY: u32 = u32::MAX - 1;

/// What a block may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// Oldest generation.
    pub low: u32,
    /// Newest.
    pub high: u32,
    /// Sector by sector any of these.
    pub loose: bool,
    /// It was being written, so a sector may be of several, byte by byte.
    pub open: bool,
    /// Nobody knows.
    pub skip: bool,
    /// Bytes of it that are known.
    pub filled: u32,
}

impl Allowed {
    /// Whether the newest generation of all its bytes can be asked for, and no other was being written.
    #[inline(always)]
    pub fn is_whole(&self, unit: usize) -> bool {
        !self.loose && !self.skip && self.filled as usize == unit
    }
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
    /// The file becomes longer, and shorter.
    grows: bool,
    groups: RwLock<Vec<Mutex<Vec<Entry>>>>,
    /// Number of the sync that will make stable what is written now.
    epoch: AtomicU32,
    /// The last sync that has completed.
    synced: AtomicU32,
    /// Streams that hold back what was written.
    lagging: AtomicU32,
    /// Where the blocks end that there is room for.
    reaches: AtomicU64,
    /// There was no memory for more blocks.
    full: AtomicBool,
    /// Calls under way that cut the file.
    cuts: AtomicU32,
    /// Nobody knows what is anywhere, nor what comes there without a write.
    forgotten: AtomicBool,
}

impl Ledger {
    /// Of a file of which nothing has been written.
    pub fn new(about: About, unit: usize) -> Ledger {
        let mut ledger = Ledger {
            about,
            unit: unit as u64,
            grows: false,
            groups: RwLock::default(),
            // What was there before is stable.
            epoch: AtomicU32::new(1),
            synced: AtomicU32::new(0),
            lagging: AtomicU32::new(0),
            reaches: AtomicU64::new(0),
            full: AtomicBool::new(false),
            cuts: AtomicU32::new(0),
            forgotten: AtomicBool::new(false),
        };
        let mut groups = Vec::new();
        ledger.extend(&mut groups, ledger.blocks());
        ledger.reaches = AtomicU64::new(ledger.blocks() * ledger.unit);
        ledger.groups = RwLock::new(groups);
        ledger
    }

    /// The same of a file that may become longer.
    pub fn growing(about: About, unit: usize) -> Ledger {
        Ledger { grows: true, ..Ledger::new(about, unit) }
    }

    /// Blocks it has, or had at first.
    pub fn blocks(&self) -> u64 {
        self.about.size.div_ceil(self.unit)
    }

    /// Where what is known of it ends, bytes.
    pub fn end(&self) -> u64 {
        if !self.grows {
            return self.about.size;
        }
        let last = (0u64..).zip(self.entries()).filter(|(_, entry)| entry.filled > 0).last();
        last.map_or(0, |(block, entry)| block * self.unit + u64::from(entry.filled))
    }

    /// A block that nothing was written to.
    fn fresh(&self, block: u64) -> Entry {
        let room = self.about.size.saturating_sub(block * self.unit).min(self.unit) as u32;
        let filled = if self.about.before == Before::Filled { room } else { 0 };
        let mut entry = Entry { filled, ..Entry::default() };
        if self.cuts.load(Relaxed) > 0 || self.forgotten.load(Relaxed) {
            entry.forget();
        }
        entry
    }

    /// Adds entries until there are so many.
    #[cold]
    fn extend(&self, groups: &mut Vec<Mutex<Vec<Entry>>>, blocks: u64) {
        let (whole, rest) = (blocks / GROUP as u64, blocks % GROUP as u64);
        let last = whole + u64::from(rest > 0);
        for number in (groups.len() as u64).saturating_sub(1)..last {
            let first = number * GROUP as u64;
            let wanted = (blocks - first).min(GROUP as u64);
            if groups.len() as u64 == number {
                groups.push(Mutex::new(Vec::with_capacity(wanted as usize)));
            }
            let group = groups[number as usize].get_mut().unwrap_or_else(|e| e.into_inner());
            let have = group.len() as u64;
            group.extend((first + have..first + wanted.max(have)).map(|block| self.fresh(block)));
        }
    }

    /// Makes room for blocks up to byte `end`, if they may be written.
    #[inline(always)]
    fn reach(&self, end: u64) {
        if self.grows && self.reaches.load(Relaxed) < end && !self.full.load(Relaxed) {
            self.lengthen(end.div_ceil(self.unit));
        }
    }

    /// Makes room for so many blocks, unless there is no memory for them: a number in a script may lead far beyond what is
    /// written. Blocks that have no room are never judged.
    #[cold]
    fn lengthen(&self, blocks: u64) {
        let mut groups = self.groups.write().unwrap_or_else(|e| e.into_inner());
        let more = blocks.saturating_sub(self.reaches.load(Relaxed) / self.unit);
        if more > MANY && memory::check(more).is_err() {
            self.full.store(true, Relaxed);
            return;
        }
        self.extend(&mut groups, blocks);
        self.reaches.fetch_max(blocks * self.unit, Relaxed);
    }

    /// Gives every block of a range that there is to `each`: its number, its entry, the bytes of it from and to which the range goes.
    #[inline(always)]
    fn each(&self, at: u64, size: u64, mut each: impl FnMut(u64, &mut Entry, usize, usize)) {
        let (mut at, unit, end) = (at, self.unit, at + size);
        let groups = self.groups.read().unwrap_or_else(|e| e.into_inner());
        while at < end {
            let block = at / unit;
            let Some(group) = groups.get((block / GROUP as u64) as usize) else { return };
            let mut entries = group.lock().unwrap_or_else(|e| e.into_inner());
            let first = block / GROUP as u64 * GROUP as u64;
            if first + entries.len() as u64 <= block {
                return;
            }
            for (i, entry) in entries.iter_mut().enumerate().skip((block - first) as usize) {
                if at >= end {
                    break;
                }
                let block = first + i as u64;
                let (from, to) = (at - block * unit, (end - block * unit).min(unit));
                each(block, entry, from as usize, to as usize);
                at = (block + 1) * unit;
            }
        }
    }

    /// A write of a range begins; `begun` is told the generation to write of each of its blocks that there are.
    #[inline]
    pub fn begin_write(&self, at: u64, size: u64, begun: &mut Vec<u32>) {
        begun.clear();
        self.reach(at + size);
        self.each(at, size, |_, entry, from, to| begun.push(entry.begin(from, to)));
    }

    /// A write of a range has ended, of which `done` bytes went; `stable`: they are stable.
    #[inline]
    pub fn end_write(&self, at: u64, size: u64, done: u64, stable: bool) {
        let (epoch, synced) = (self.epoch.load(Relaxed), self.synced.load(Relaxed));
        let (stable, mapped) = (stable || self.about.stable, self.about.mapped);
        let longer = self.grows || self.about.before != Before::Filled;
        self.each(at, size, |block, entry, from, to| {
            let whole = entry.is_whole(from, to);
            let arrived = block * self.unit + to as u64 <= at + done;
            entry.end(Ended { whole, arrived, longer, epoch, synced, stable, mapped });
        });
    }

    /// What the blocks of a range may hold at the beginning of a read; those that are being written are `loose`.
    #[inline]
    pub fn begin_read(&self, at: u64, size: u64, seen: &mut Vec<Allowed>) {
        seen.clear();
        let lags = self.lagging.load(Relaxed) > 0;
        self.each(at, size, |_, entry, _, _| {
            let (open, skip) = (entry.flying > 0, lags || entry.flags & (UNKNOWN | CUTTING) != 0);
            let loose = open || entry.flags & MIXED != 0;
            let (low, high, filled) = (entry.floor, entry.latest, entry.filled);
            seen.push(Allowed { low, high, loose, open, skip, filled });
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
            seen.skip |= entry.flags & (UNKNOWN | CUTTING) != 0;
            // Generations have begun anew meanwhile.
            seen.skip |= entry.latest < seen.high;
            (seen.high, seen.filled) = (entry.latest, seen.filled.min(entry.filled));
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
        // What lies beyond the end so far may be there then.
        self.reach(at + size);
        self.each(at, size, |_, entry, _, _| {
            entry.begin(1, 1);
            entry.forget();
        });
    }

    /// A range was given back, or perhaps not.
    pub fn end_discard(&self, at: u64, size: u64) {
        self.each(at, size, |_, entry, _, _| {
            let (epoch, synced) = (0, 0);
            let (stable, mapped, longer) = (false, false, false);
            entry.end(Ended { whole: false, arrived: false, longer, epoch, synced, stable, mapped });
            entry.forget();
        });
    }

    /// A sync begins; its number is for [`Ledger::end_sync`].
    #[inline]
    pub fn begin_sync(&self) -> u32 {
        // The first has number 1, so 0 makes nothing stable.
        self.epoch.fetch_update(Relaxed, Relaxed, |epoch| (epoch < MOST_SYNC).then(|| epoch + 1)).unwrap_or(0)
    }

    /// A sync has completed.
    #[inline]
    pub fn end_sync(&self, sync: u32) {
        self.synced.fetch_max(sync, Relaxed);
    }

    /// What was read is about to be written again, with nothing changed; `seen`: what was known when it was read.
    pub fn begin_echo(&self, at: u64, size: u64, seen: &[Allowed]) {
        let mut seen = seen.iter();
        self.each(at, size, |_, entry, _, _| {
            // Somebody may have written since; then this brings back what was there before.
            let same = seen.next().is_some_and(|seen| seen.high == entry.latest && !seen.open);
            let unknown = entry.flags & UNKNOWN != 0 || !same;
            entry.begin(1, 1);
            if unknown {
                entry.forget();
            }
        });
    }

    /// That write has ended.
    pub fn end_echo(&self, at: u64, size: u64) {
        self.each(at, size, |_, entry, _, _| {
            let (stable, mapped, longer) = (false, self.about.mapped, false);
            let (epoch, synced) = (0, 0);
            entry.end(Ended { whole: false, arrived: true, longer, epoch, synced, stable, mapped });
        });
    }

    /// A call begins that makes the file `size` bytes long.
    pub fn begin_cut(&self, size: u64) {
        self.behind(size, || _ = self.cuts.fetch_add(1, Relaxed), |entry, _| entry.begin_cut());
    }

    /// That call has ended. Where it was `done`, what lay behind `size` is gone, and what is new is zeros.
    pub fn end_cut(&self, size: u64, done: bool) {
        // What streams hold back comes behind the cut.
        let lags = self.lagging.load(Relaxed) > 0;
        let end = |entry: &mut Entry, left| {
            entry.end_cut(done.then_some(left));
            if lags {
                entry.forget();
            }
        };
        self.behind(size, || _ = self.cuts.fetch_sub(1, Relaxed), end);
    }

    /// Gives every block that goes on behind byte `size` to `each`, with its bytes before that. `first` comes before, while
    /// nobody adds blocks.
    fn behind(&self, size: u64, first: impl FnOnce(), each: impl Fn(&mut Entry, u64)) {
        let groups = self.groups.write().unwrap_or_else(|e| e.into_inner());
        first();
        for (number, group) in groups.iter().enumerate() {
            let mut entries = group.lock().unwrap_or_else(|e| e.into_inner());
            for (i, entry) in entries.iter_mut().enumerate() {
                let left = size.saturating_sub((number * GROUP + i) as u64 * self.unit);
                if left < self.unit {
                    each(entry, left);
                }
            }
        }
    }

    /// From now on nobody knows what is anywhere.
    pub fn forget(&self) {
        let groups = self.groups.write().unwrap_or_else(|e| e.into_inner());
        self.forgotten.store(true, Relaxed);
        for group in groups.iter() {
            group.lock().unwrap_or_else(|e| e.into_inner()).iter_mut().for_each(Entry::forget);
        }
    }

    /// A stream begins (`by` 1) or ends (-1) to hold back what was written: meanwhile others may read what was there.
    pub fn lag(&self, by: i32) {
        if by > 0 {
            self.lagging.fetch_add(1, Relaxed);
        } else {
            self.lagging.fetch_sub(1, Relaxed);
        }
    }

    /// All entries, group by group; each group as it is at one moment.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let group = |number: usize| -> Option<Vec<Entry>> {
            let groups = self.groups.read().unwrap_or_else(|e| e.into_inner());
            Some(groups.get(number)?.lock().unwrap_or_else(|e| e.into_inner()).clone())
        };
        (0..).map_while(group).flatten()
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
        let size = about.size;
        let blocks = size.div_ceil(unit as u64);
        // Grown as entries come: a size alone shall not take memory.
        let mut groups = Vec::new();
        let mut block = 0;
        while block < blocks {
            let mut group = Vec::new();
            for _ in 0..(blocks - block).min(GROUP as u64) {
                let mut entry: Entry = next()?;
                if entry.flying > 0 {
                    // How these ended nobody has seen.
                    let left = if entry.flags & CUT != 0 { UNKNOWN } else { MIXED };
                    (entry.flying, entry.flags) = (0, (entry.flags & UNKNOWN) | left);
                }
                entry.filled = entry.filled.min(unit as u32);
                group.push(entry);
            }
            groups.push(Mutex::new(group));
            block += GROUP as u64;
        }
        let about = About { size: 0, ..about.clone() };
        let mut ledger = Ledger::new(about, unit);
        ledger.about.size = size;
        ledger.groups = RwLock::new(groups);
        (*ledger.epoch.get_mut(), *ledger.synced.get_mut()) = (epoch, synced);
        Ok(ledger)
    }
}

#[cfg(test)]
mod tests;
