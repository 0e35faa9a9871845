//! What chunks have to do with each other, as far as the files that have them tell: what each lies beside, and what it took
//! the place of.
//!
//! All of it follows from the snapshot in which a chunk comes first and from the one before, so what comes later changes none.

use crate::tree::{Kind, Series, Tree};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Chunks that come among others of a file and resemble them; more in a row resemble each other.
const AMONG: usize = 8;
/// A chunk that has not been met.
const UNMET: u32 = u32::MAX;

/// Of each chunk one that it lies beside in the file that has it first: itself, or where a few come among others, what is
/// before them or behind them.
pub(crate) fn neighbours(series: &Series) -> Vec<u32> {
    let mut beside = vec![UNMET; series.chunks.len()];
    for tree in &series.trees {
        for file in 0..tree.len() as u32 {
            let list = tree.chunks_of(file);
            let mut at = 0;
            while at < list.len() {
                let is_met = |chunk: &u32| beside[*chunk as usize] != UNMET;
                let fresh = list[at..].iter().take_while(|chunk| !is_met(chunk)).count();
                let other = if at > 0 { list.get(at - 1) } else { list.get(fresh) };
                let other = other.filter(|_| fresh <= AMONG).map(|chunk| beside[*chunk as usize]);
                for chunk in &list[at..at + fresh] {
                    beside[*chunk as usize] = other.unwrap_or(*chunk);
                }
                at += fresh + 1;
            }
        }
    }
    beside
}

/// A new chunk of a file whose path was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct New {
    /// The chunk.
    pub chunk: u32,
    /// Which of those that came it is.
    pub index: usize,
    /// A chunk as long that the same path had at the same byte.
    pub whole: Option<u32>,
}

/// What came between two chunks of a file that stayed in their order, and what it took the place of.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Chunks that were there.
    pub was: Vec<u32>,
    /// Where each of them began, and where the last one ended, bytes.
    pub starts: Vec<u64>,
    /// The same of the chunks that came.
    pub comes: Vec<u64>,
    /// Those that no file had.
    pub new: Vec<New>,
}

impl Stretch {
    /// Bytes that were there.
    #[must_use]
    pub fn was_bytes(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Bytes that came.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.comes.last().copied().unwrap_or(0)
    }

    /// Whether one chunk came.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.comes.len() == 2
    }

    /// Chunks that were there and those that came in their place, among them the one that came at `index`: one for one from
    /// both ends, as content decides on cuts, and in the middle one for several or several for one.
    pub(crate) fn around(&self, index: usize) -> Option<(Range<usize>, Range<usize>)> {
        let (was, comes) = (self.was.len(), self.comes.len() - 1);
        let pairs = was.min(comes).checked_sub(1)?;
        let (front, back) = (pairs / 2, pairs - pairs / 2);
        Some(if index < front {
            (index..index + 1, index..index + 1)
        } else if index >= comes - back {
            let at = index + was - comes;
            (at..at + 1, index..index + 1)
        } else {
            (front..was - back, front..comes - back)
        })
    }
}

/// What took the place of what, for each snapshot: what came in files whose paths were there before.
pub fn replaced(series: &Series, each: &mut dyn FnMut(Vec<Stretch>)) {
    let mut met = vec![false; series.chunks.len()];
    let mut before: Option<(&Tree, FxHashMap<u64, u32>)> = None;
    for tree in &series.trees {
        let mut all = Vec::new();
        let paths = tree.path_hashes(&series.names);
        let regular = |file: u32| tree.file(file).mark.kind() == Kind::File;
        for (file, path) in (0..).zip(&paths).filter(|(file, _)| regular(*file)) {
            let list = tree.chunks_of(file);
            if let Some((old, paths)) = &before
                && list.iter().any(|chunk| !met[*chunk as usize])
                && let Some(was) = paths.get(path)
            {
                stretches(series, (old.chunks_of(*was), list), &mut met, &mut all);
            }
            list.iter().for_each(|chunk| met[*chunk as usize] = true);
        }
        before = Some((tree, paths.into_iter().zip(0..).collect()));
        each(all);
    }
}

/// Adds the stretches of a file that have chunks that have not been met.
fn stretches(series: &Series, (old, list): (&[u32], &[u32]), met: &mut [bool], into: &mut Vec<Stretch>) {
    let bytes = |chunk: &u32| u64::from(series.chunks.size(*chunk));
    let mut places: Vec<(u32, usize)> = old.iter().copied().zip(0..).collect();
    places.sort_unstable();
    let whole = as_long(series, old, list);
    let (mut from, mut begin) = (0, 0);
    for i in 0..=list.len() {
        let to = match list.get(i) {
            None => old.len(),
            Some(chunk) => {
                let next = places.partition_point(|place| *place < (*chunk, from));
                match places.get(next) {
                    Some((other, to)) if other == chunk => *to,
                    _ => continue,
                }
            }
        };
        let mut new = Vec::new();
        for (index, (chunk, whole)) in list[begin..i].iter().zip(&whole[begin..i]).enumerate() {
            if !std::mem::replace(&mut met[*chunk as usize], true) {
                new.push(New { chunk: *chunk, index, whole: *whole });
            }
        }
        if !new.is_empty() {
            let starts = |all: &[u32]| {
                let mut sum = 0;
                let ends = all.iter().map(|chunk| {
                    sum += bytes(chunk);
                    sum
                });
                std::iter::once(0).chain(ends).collect()
            };
            let was = old[from..to].to_vec();
            into.push(Stretch { starts: starts(&was), comes: starts(&list[begin..i]), was, new });
        }
        (from, begin) = (to + 1, i + 1);
    }
}

/// Of each chunk of a file another one that began and ended where it does.
fn as_long(series: &Series, old: &[u32], list: &[u32]) -> Vec<Option<u32>> {
    let (mut at, mut was_at) = (0, 0u64);
    let mut old = old.iter().peekable();
    let one = |chunk: &u32| {
        let size = u64::from(series.chunks.size(*chunk));
        while let Some(was) = old.next_if(|_| was_at < at) {
            was_at += u64::from(series.chunks.size(*was));
        }
        let was = old
            .peek()
            .filter(|was| was_at == at && ***was != *chunk && u64::from(series.chunks.size(***was)) == size);
        at += size;
        was.map(|was| **was)
    };
    list.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chunks;
    use crate::chunks::Ratio;
    use crate::names::{Name, Names};
    use crate::tree::{Chunking, Entry, Mark, Meta, State};

    /// Of chunks of sizes, in files of one name each.
    fn series(sizes: &[u32], snapshots: &[&[&[u32]]]) -> Series {
        let meta = Meta::new(Chunking::default(), "none");
        let mut series = Series { meta, chunks: Chunks::new(0), names: Names::new(), trees: Vec::new() };
        for size in sizes {
            series.chunks.push(*size, Ratio::UNKNOWN).unwrap();
        }
        let mark = Mark::new(Kind::File, State::New);
        for files in snapshots {
            let mut tree = Tree::new("");
            for (chunks, name) in files.iter().zip(1..) {
                let name = Name::made(name);
                tree.add_file(&Entry { dir: 0, name, extension: 0, mark, size: 0, private: &[] }, chunks)
                    .unwrap();
            }
            series.trees.push(tree);
        }
        series
    }

    #[test]
    fn chunks_that_come_among_others_lie_beside_them() {
        let many: Vec<u32> = (20..29).collect();
        let long = [&[0], &many[..], &[4]].concat();
        let beside = neighbours(&series(
            &[9; 29],
            &[&[&[0, 1, 2, 2], &[3, 1, 4]], &[&[0, 5, 6, 2, 7], &[8, 9, 3, 1], &long]],
        ));
        // The first three are themselves; later ones are beside what is before them, or behind.
        assert_eq!(beside[..10], [0, 1, 2, 1, 1, 0, 0, 2, 1, 1]);
        assert!(many.iter().all(|chunk| beside[*chunk as usize] == *chunk));
    }

    #[test]
    fn a_chunk_takes_the_place_of_one_as_long_at_the_same_byte() {
        let sizes = [100, 200, 300, 100, 200, 300, 250, 50, 100, 300];
        let first: &[&[u32]] = &[&[0, 1, 2], &[0, 1]];
        // The second is as long as that before, the third has grown and moved what is behind it, and moves back with the next.
        let second: &[&[u32]] = &[&[3, 4, 2], &[0, 6, 5]];
        let third: &[&[u32]] = &[&[3, 7, 8, 7, 9], &[3, 4]];
        let mut found = Vec::new();
        replaced(&series(&sizes, &[first, second, third]), &mut |all| {
            let all = all.iter().flat_map(|stretch| &stretch.new);
            found.push(all.map(|new| (new.chunk, new.whole)).collect::<Vec<_>>());
        });
        assert_eq!(
            found,
            [
                vec![],
                vec![(3, Some(0)), (4, Some(1)), (6, None), (5, None)],
                vec![(7, None), (8, None), (9, Some(2))]
            ]
        );
    }

    #[test]
    fn chunks_between_two_that_stayed_take_the_place_of_what_was_there() {
        // One in the place of one, two of one, one of two, two added, and a beginning and an end.
        let first: &[&[u32]] = &[&[0, 1, 2], &[0, 1, 2], &[0, 1, 2, 3], &[0, 1], &[0, 1, 2, 1]];
        let second: &[&[u32]] = &[&[0, 4, 2], &[0, 5, 6, 2], &[0, 7, 3], &[0, 8, 9, 1], &[10, 1, 2, 11]];
        let mut found = Vec::new();
        let sizes = [100, 200, 300, 99, 98, 97, 96, 95, 94, 93, 92, 91];
        replaced(&series(&sizes, &[first, second]), &mut |all| {
            for stretch in all {
                assert_eq!(stretch.starts.len(), stretch.was.len() + 1);
                let new: Vec<_> =
                    stretch.new.iter().map(|new| (new.chunk, stretch.comes[new.index])).collect();
                let bytes = [stretch.was_bytes(), stretch.bytes()];
                found.push((new, stretch.was.clone(), bytes, stretch.is_alone()));
            }
        });
        assert_eq!(
            found,
            [
                (vec![(4, 0)], vec![1], [200, 98], true),
                (vec![(5, 0), (6, 97)], vec![1], [200, 193], false),
                (vec![(7, 0)], vec![1, 2], [500, 95], true),
                (vec![(8, 0), (9, 94)], vec![], [0, 187], false),
                (vec![(10, 0)], vec![0], [100, 92], true),
                (vec![(11, 0)], vec![1], [200, 91], true),
            ]
        );
    }

    #[test]
    fn chunks_take_the_place_of_one_each_from_both_ends() {
        let around = |was: usize, comes: usize| {
            let stretch = Stretch { was: vec![0; was], comes: vec![0; comes + 1], ..Stretch::default() };
            (0..comes).map(|index| stretch.around(index)).collect::<Vec<_>>()
        };
        assert_eq!(around(0, 2), [None, None]);
        let one = |was: usize, came: usize| Some((was..was + 1, came..came + 1));
        assert_eq!(around(3, 3), [one(0, 0), one(1, 1), one(2, 2)]);
        assert_eq!(around(5, 3), [one(0, 0), Some((1..4, 1..2)), one(4, 2)]);
        let split = Some((1..2, 1..3));
        assert_eq!(around(3, 4), [one(0, 0), split.clone(), split, one(2, 3)]);
    }
}
