//! What all threads of a run share: the ledgers of its files, and what was found wrong.

use crate::blocks::{Before, Block, Blocks, Room};
use crate::damage::{Damage, Read, Wrong};
use crate::ledger::{Allowed, Ledger};
use crate::shelf::Shelf;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Most damaged blocks that are kept; all are counted.
const KEPT: usize = 1000;
/// Damaged blocks without marks for which others are searched for what they hold, and how many are: that takes a while.
const SEARCHED: u64 = 4;
const OTHERS: usize = 1 << 20;

/// How many blocks were looked at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Blocks that were compared.
    pub checked: u64,
    /// Of these, those that could be of several generations, because writes raced with the read or with each other.
    pub raced: u64,
    /// Blocks of which nobody knows what they should hold.
    pub unknown: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.checked += other.checked;
        self.raced += other.raced;
        self.unknown += other.unknown;
    }
}

/// Blocks whose last write was not synced when the power went, and what they hold.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Unsynced {
    /// The last write.
    pub newest: u64,
    /// An older one, as it may be.
    pub older: u64,
    /// A mixture, as it may be.
    pub mixed: u64,
}

#[derive(Default)]
struct Wrongs {
    kept: FxHashMap<(u64, u64), Damage>,
    /// Findings by kind, of a block each time it was read.
    counts: BTreeMap<Wrong, u64>,
    counted: Counts,
    names: FxHashMap<u64, String>,
}

/// Knows what files should hold, and takes note of what they hold instead.
pub struct Verifier {
    /// How blocks are made.
    pub blocks: Blocks,
    /// What targets may hold, by their numbers.
    pub files: Vec<Arc<Ledger>>,
    /// What files may hold that come and go.
    pub shelf: Shelf,
    wrongs: Mutex<Wrongs>,
}

/// What came of it.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Findings {
    /// Blocks that were looked at.
    pub counts: Counts,
    /// Damages by kind, as often as they were seen.
    pub wrong: BTreeMap<Wrong, u64>,
    /// Damaged blocks in the order of files and places; the first thousand.
    pub damages: Vec<Damage>,
}

impl Verifier {
    /// For these files, numbered from 0.
    pub fn new(blocks: Blocks, files: Vec<Ledger>) -> Verifier {
        let files = files.into_iter().map(Arc::new).collect();
        Verifier { blocks, files, shelf: Shelf::default(), wrongs: Mutex::default() }
    }

    /// The ledger of a file, if its content is known at all.
    #[inline(always)]
    pub fn ledger(&self, file: u64) -> Option<Arc<Ledger>> {
        match self.files.get(file as usize) {
            Some(ledger) => Some(ledger.clone()),
            None => self.shelf.find(file),
        }
    }

    /// Compares what was read from byte `at` of a file on with what its blocks may hold.
    #[inline]
    pub fn judge(
        &self,
        file: u64,
        before: Before,
        at: u64,
        bytes: &[u8],
        allowed: &[Allowed],
        room: &mut Room,
    ) -> Counts {
        let mut counts = Counts::default();
        let unit = self.blocks.unit();
        if let [first, ..] = allowed
            && allowed.iter().all(|other| other == first && other.is_whole(unit))
            && at.is_multiple_of(unit as u64)
            && bytes.len() == allowed.len() * unit
            && (first.high > 0 || before == Before::Filled)
            && self.blocks.hold(Block { file, block: at / unit as u64 }, first.high, bytes)
        {
            counts.checked = allowed.len() as u64;
            return counts;
        }
        let (mut block, mut inside, mut rest) = (at / unit as u64, (at % unit as u64) as usize, bytes);
        for allowed in allowed {
            if rest.is_empty() {
                break;
            }
            let (bytes, after) = rest.split_at((unit - inside).min(rest.len()));
            // Before anything is written all of a block is known.
            let known = match (allowed.high, before) {
                (0, Before::Zeros) => unit,
                _ => allowed.filled as usize,
            };
            let bytes = &bytes[..known.saturating_sub(inside).min(bytes.len())];
            let read = Read { block: Block { file, block }, inside, bytes, allowed: *allowed, before };
            let skip = allowed.skip || bytes.is_empty();
            match skip {
                true => counts.unknown += 1,
                false => counts.checked += 1,
            }
            counts.raced += u64::from(allowed.loose && !skip);
            if !skip && !read.is_right(&self.blocks, room) {
                self.note(&read, room);
            }
            (block, inside, rest) = (block + 1, 0, after);
        }
        counts
    }

    #[cold]
    fn note(&self, read: &Read, room: &mut Room) {
        let searched = {
            let wrongs = self.wrongs();
            wrongs.counts.values().sum::<u64>() < SEARCHED
        };
        let others = self.files.iter().zip(0..).filter(|_| searched).flat_map(|(ledger, file)| {
            ledger.entries().zip(0..).map(move |(entry, block)| (Block { file, block }, entry.latest))
        });
        let others = others.filter(|(block, _)| *block != read.block).take(OTHERS);
        let damage = read.damage(&self.blocks, others, room);
        let mut wrongs = self.wrongs();
        *wrongs.counts.entry(damage.wrong).or_default() += 1;
        let full = wrongs.kept.len() >= KEPT;
        match wrongs.kept.get_mut(&(damage.file, damage.at)) {
            Some(known) => *known = Damage { times: known.times + 1, ..damage },
            None if full => {}
            None => drop(wrongs.kept.insert((damage.file, damage.at), damage)),
        }
    }

    fn wrongs(&self) -> std::sync::MutexGuard<'_, Wrongs> {
        self.wrongs.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Counts as unknown the blocks of a file of `length` bytes that lie behind all that is known of it.
    pub fn count_behind(&self, file: u64, length: u64) {
        let unit = self.blocks.unit() as u64;
        let known = self.ledger(file).map_or(0, |ledger| ledger.end().div_ceil(unit));
        self.count(&Counts { unknown: length.div_ceil(unit).saturating_sub(known), ..Counts::default() });
    }

    /// Adds to what was looked at.
    pub fn count(&self, counts: &Counts) {
        self.wrongs().counted.add(counts);
    }

    /// What was found so far.
    pub fn findings(&self) -> Findings {
        let wrongs = self.wrongs();
        let mut damages: Vec<_> = wrongs.kept.values().cloned().collect();
        damages.sort_by_key(|damage| (damage.file, damage.at));
        Findings { counts: wrongs.counted, wrong: wrongs.counts.clone(), damages }
    }

    /// Says what files are called that have come and gone.
    pub fn name(&self, names: impl IntoIterator<Item = (u64, String)>) {
        self.wrongs().names.extend(names);
    }

    /// Name of a file.
    pub fn path(&self, file: u64) -> String {
        match self.files.get(file as usize) {
            Some(ledger) => ledger.about.path.display().to_string(),
            None => self.wrongs().names.get(&file).cloned().unwrap_or_else(|| "a file that is gone".into()),
        }
    }
}
