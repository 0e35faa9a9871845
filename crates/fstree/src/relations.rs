//! What chunks have to do with each other, as far as the files that have them tell: what each lies beside, and what it took
//! the place of.
//!
//! All of it follows from the snapshot in which a chunk comes first and from the one before, so what comes later changes none.

use crate::tree::{Kind, Series, Tree};
use rustc_hash::FxHashMap;

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

/// A new chunk and what it took the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Successor {
    /// The new one.
    pub chunk: u32,
    /// One as long that the same path had at the same byte.
    pub whole: Option<u32>,
    /// Where it is the first between two chunks that stayed: the first that was there before.
    pub first: Option<u32>,
    /// Where it is the last: the last that was.
    pub last: Option<u32>,
}

impl Successor {
    /// The single chunk between two that stayed, of which it took the place by itself.
    #[must_use]
    pub fn alone(&self) -> Option<u32> {
        self.first.filter(|_| self.first == self.last)
    }
}

/// New chunks of one snapshot in files whose paths were there before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Those that took the place of one as long, or begin or end what took the place of others.
    pub successors: Vec<Successor>,
    /// How many did not take the place of one as long.
    pub others: u32,
}

impl Replaced {
    /// How many did.
    #[must_use]
    pub fn as_long(&self) -> usize {
        self.successors.iter().filter(|new| new.whole.is_some()).count()
    }
}

/// What took the place of what, snapshot by snapshot.
#[must_use]
pub fn replaced(series: &Series) -> Vec<Replaced> {
    let mut all = Vec::new();
    let mut met = vec![false; series.chunks.len()];
    let mut before: Option<(&Tree, FxHashMap<u64, u32>)> = None;
    for tree in &series.trees {
        let mut replaced = Replaced::default();
        let paths = tree.path_hashes(&series.names);
        let regular = |file: u32| tree.file(file).mark.kind() == Kind::File;
        for (file, path) in (0..).zip(&paths).filter(|(file, _)| regular(*file)) {
            let list = tree.chunks_of(file);
            if let Some((old, paths)) = &before
                && list.iter().any(|chunk| !met[*chunk as usize])
                && let Some(was) = paths.get(path)
            {
                let mut successors: Vec<_> = list
                    .iter()
                    .map(|chunk| Successor { chunk: *chunk, whole: None, first: None, last: None })
                    .collect();
                let old = old.chunks_of(*was);
                as_long(series, old, &mut successors);
                between(old, &mut successors);
                let is_new = |new: &Successor| !std::mem::replace(&mut met[new.chunk as usize], true);
                for new in successors.into_iter().filter(is_new) {
                    replaced.others = replaced.others.saturating_add(u32::from(new.whole.is_none()));
                    if new.whole.or(new.first).or(new.last).is_some() {
                        replaced.successors.push(new);
                    }
                }
            }
            list.iter().for_each(|chunk| met[*chunk as usize] = true);
        }
        before = Some((tree, paths.into_iter().zip(0..).collect()));
        all.push(replaced);
    }
    all
}

/// Tells chunks of a file that begin and end where other ones did.
fn as_long(series: &Series, old: &[u32], all: &mut [Successor]) {
    let (mut at, mut was_at) = (0, 0u64);
    let mut old = old.iter().peekable();
    for new in all {
        let size = u64::from(series.chunks.size(new.chunk));
        while let Some(was) = old.next_if(|_| was_at < at) {
            was_at += u64::from(series.chunks.size(*was));
        }
        if was_at == at
            && let Some(was) = old.peek()
            && **was != new.chunk
            && u64::from(series.chunks.size(**was)) == size
        {
            new.whole = Some(**was);
        }
        at += size;
    }
}

/// Tells which chunks of a file are first and last between two that stayed in their order, and what was there.
fn between(old: &[u32], all: &mut [Successor]) {
    let mut places: Vec<(u32, usize)> = old.iter().copied().zip(0..).collect();
    places.sort_unstable();
    let (mut from, mut begin) = (0, 0);
    for i in 0..=all.len() {
        let to = match all.get(i) {
            None => old.len(),
            Some(new) => {
                let next = places.partition_point(|place| *place < (new.chunk, from));
                match places.get(next) {
                    Some((chunk, to)) if *chunk == new.chunk => *to,
                    _ => continue,
                }
            }
        };
        let (was, new) = (&old[from..to], &mut all[begin..i]);
        if !new.is_empty() {
            new[0].first = was.first().copied();
            new[new.len() - 1].last = was.last().copied();
        }
        (from, begin) = (to + 1, i + 1);
    }
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
        let found = replaced(&series(&sizes, &[first, second, third]));
        let of = |replaced: &Replaced| {
            let pairs = replaced.successors.iter().filter_map(|new| new.whole.map(|was| (new.chunk, was)));
            (pairs.collect::<Vec<_>>(), replaced.others)
        };
        let found: Vec<_> = found.iter().map(of).collect();
        assert_eq!(found, [(vec![], 0), (vec![(3, 0), (4, 1)], 2), (vec![(9, 2)], 2)]);
    }

    #[test]
    fn chunks_between_two_that_stayed_begin_and_end_as_others_did() {
        // One in the place of one, two of one, one of two, two added, and a beginning and an end.
        let first: &[&[u32]] = &[&[0, 1, 2], &[0, 1, 2], &[0, 1, 2, 3], &[0, 1], &[0, 1, 2, 1]];
        let second: &[&[u32]] = &[&[0, 4, 2], &[0, 5, 6, 2], &[0, 7, 3], &[0, 8, 9, 1], &[10, 1, 2, 11]];
        let found = replaced(&series(&[100, 200, 300, 99, 98, 97, 96, 95, 94, 93, 92, 91], &[first, second]));
        let of = |new: &Successor| (new.chunk, new.first, new.last, new.alone());
        assert_eq!(
            found[1].successors.iter().map(of).collect::<Vec<_>>(),
            [
                (4, Some(1), Some(1), Some(1)),
                (5, Some(1), None, None),
                (6, None, Some(1), None),
                (7, Some(1), Some(2), None),
                (10, Some(0), Some(0), Some(0)),
                (11, Some(1), Some(1), Some(1)),
            ]
        );
        assert_eq!(found[1].others, 8);
    }
}
