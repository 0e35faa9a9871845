//! Fresh chunks that are in the new tree more than once, and the files that share them.

use super::supply::Place;
use crate::profile::Step;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Two files with as many chunks that are there twice are copies of each other; fewer are as many by chance.
const COPIES: u32 = 8;

/// A chunk that is to be there so many times more.
struct Open {
    chunk: u32,
    left: u32,
    /// The last file that has it.
    file: u32,
}

/// Chunks that files of one group share, in the order in which the last file has them.
#[derive(Default)]
struct Line {
    inner: VecDeque<Open>,
    /// Those that were made for the end of a file.
    ends: VecDeque<Open>,
    /// Times that they are still to be there.
    owed: u64,
    /// Places that are still to be filled.
    places: u64,
}

impl Line {
    /// A chunk that another file has, or (`own`) this one.
    fn take(&mut self, file: u32, own: bool, place: Place, fits: &dyn Fn(u32) -> bool) -> Option<u32> {
        let lines = if place == Place::Inner {
            [&mut self.inner, &mut self.ends]
        } else {
            [&mut self.ends, &mut self.inner]
        };
        for line in lines {
            // What this file has is at the end.
            let at = if own { line.partition_point(|one| one.file != file) } else { 0 };
            let found = line.get(at).is_some_and(|one| (one.file == file) == own && fits(one.chunk));
            if let Some(mut one) = if found { line.remove(at) } else { None } {
                self.owed -= 1;
                (one.left, one.file) = (one.left - 1, file);
                let chunk = one.chunk;
                if one.left > 0 {
                    line.push_back(one);
                }
                return Some(chunk);
            }
        }
        None
    }
}

/// What the file that is made has of one kind of chunks.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    /// Its group.
    key: u32,
    /// Chunks that are still to come, and how many of these the file has itself before.
    left: u32,
    own: u32,
}

/// Chunks that are there twice, and more often.
#[derive(Default)]
pub(super) struct Shared {
    lines: [FxHashMap<u32, Line>; 2],
    /// Files to come of those that go in pairs, by how many of their chunks are there twice.
    pairs: FxHashMap<u32, u64>,
    shares: [Share; 2],
    file: u32,
}

impl Shared {
    /// For the files of a step, times a factor.
    pub fn new(step: &Step, factor: f64) -> Shared {
        let mut shared = Shared::default();
        let new = step.new.iter().map(|row| (row.count, row.twice, row.often));
        let changed = step.changed.iter().map(|row| (row.count, row.twice, row.often));
        let mut places = [0.0; 2];
        let mut files: FxHashMap<u32, f64> = FxHashMap::default();
        for (count, twice, often) in new.chain(changed).filter(|(_, twice, often)| twice + often > 0) {
            let count = f64::from(count) * factor;
            places[0] += count * f64::from(twice);
            places[1] += count * f64::from(often);
            if twice >= COPIES {
                *files.entry(twice).or_default() += count;
            }
        }
        for (twice, files) in files {
            let files = (files / 2.0 + 1e-9) as u64 * 2;
            let there = files * u64::from(twice);
            places[0] -= there as f64;
            shared.pairs.insert(twice, files);
            shared.lines[0].insert(twice, Line { places: there, ..Line::default() });
        }
        for (lines, places) in shared.lines.iter_mut().zip(places) {
            lines.insert(0, Line { places: places.max(0.0).round() as u64, ..Line::default() });
        }
        shared
    }

    /// Goes on to another file, of whose chunks so many are there twice and more often, and of these so many in the file
    /// itself before.
    pub fn begin(&mut self, (twice, often): (u32, u32), own: (u32, u32)) {
        self.file += 1;
        let files = self.pairs.get_mut(&twice).filter(|files| **files > 0);
        let paired = files.map(|files| *files -= 1).is_some();
        let key = if paired { twice } else { 0 };
        self.shares = [Share { key, left: twice, own: own.0 }, Share { key: 0, left: often, own: own.1 }];
    }

    /// A chunk that is there already, for the next place of the file; `often`: of those that are there more than twice.
    pub fn take(&mut self, often: bool, place: Place, fits: &dyn Fn(u32) -> bool) -> Option<u32> {
        let share = &mut self.shares[usize::from(often)];
        let own = share.left <= share.own;
        share.left = share.left.saturating_sub(1);
        let line = self.lines[usize::from(often)].entry(share.key).or_default();
        line.places = line.places.saturating_sub(1);
        // Where as many are owed as there are places, nothing new can be there again.
        let whole = line.owed > 0 && line.owed >= line.places;
        let first = line.take(self.file, own, place, fits);
        first.or_else(|| if own || whole { line.take(self.file, !own, place, fits) } else { None })
    }

    /// A chunk that was made for a place of the file, and is to be there so many times more.
    pub fn made(&mut self, often: bool, chunk: u32, left: u32, place: Place) {
        let line = self.lines[usize::from(often)].entry(self.shares[usize::from(often)].key).or_default();
        line.owed += u64::from(left);
        let open = Open { chunk, left, file: self.file };
        if place == Place::Inner { &mut line.inner } else { &mut line.ends }.push_back(open);
    }
}
