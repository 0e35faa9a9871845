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

/// New chunks of one snapshot in files whose paths were there before.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Those that took the place of one as long: each with that one, which the same path had at the same byte.
    pub pairs: Vec<(u32, u32)>,
    /// How many others there are.
    pub others: u32,
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
                in_place(series, old.chunks_of(*was), list, |chunk, was| {
                    if !std::mem::replace(&mut met[chunk as usize], true) {
                        replaced.pairs.push((chunk, was));
                    }
                });
                let others = list.iter().filter(|chunk| !std::mem::replace(&mut met[**chunk as usize], true));
                replaced.others = replaced.others.saturating_add(others.count() as u32);
            }
            list.iter().for_each(|chunk| met[*chunk as usize] = true);
        }
        before = Some((tree, paths.into_iter().zip(0..).collect()));
        all.push(replaced);
    }
    all
}

/// Tells chunks of a file that begin and end where other ones did.
fn in_place(series: &Series, old: &[u32], new: &[u32], mut tell: impl FnMut(u32, u32)) {
    let (mut at, mut was_at) = (0, 0u64);
    let mut old = old.iter().peekable();
    for chunk in new {
        let size = u64::from(series.chunks.size(*chunk));
        while let Some(was) = old.next_if(|_| was_at < at) {
            was_at += u64::from(series.chunks.size(*was));
        }
        if was_at == at
            && let Some(was) = old.peek()
            && *was != chunk
            && u64::from(series.chunks.size(**was)) == size
        {
            tell(*chunk, **was);
        }
        at += size;
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
        let meta = Meta {
            chunking: Chunking::default(),
            chunker: "none".into(),
            codec: None,
            seed: None,
            resemblance: None,
            stays: None,
        };
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
        let of = |pairs: &[(u32, u32)], others| Replaced { pairs: pairs.to_vec(), others };
        assert_eq!(found, [of(&[], 0), of(&[(3, 0), (4, 1)], 2), of(&[(9, 2)], 2)]);
    }
}
