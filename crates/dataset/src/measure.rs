//! What a deduplicator sees of a series: chunks by how often they occur, snapshot by snapshot.
//!
//! The thesis counts chunks that occur once (unique), twice (one duplicate) and three times (two duplicates), over all
//! snapshots up to one (figures 4.5 to 4.11); both that and the same within each snapshot is told.

use crate::extensions::is_known;
use crate::tree::{Kind, Series, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Chunks, and how often they occur.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Regular files.
    pub files: u64,
    /// Bytes of chunks.
    pub bytes: u64,
    /// Chunks.
    pub chunks: u64,
    /// Chunks that differ.
    pub distinct: u64,
    /// Their bytes.
    pub distinct_bytes: u64,
    /// What codecs would make of those; where no ratio was measured they count in full.
    pub compressed_bytes: f64,
    /// Chunks that occur once.
    pub unique: u64,
    /// Twice.
    pub dup1: u64,
    /// Three times.
    pub dup2: u64,
}

impl Counts {
    /// Bytes for each one of distinct chunks; 1 of nothing.
    pub fn dedup_ratio(&self) -> f64 {
        if self.distinct_bytes == 0 { 1.0 } else { self.bytes as f64 / self.distinct_bytes as f64 }
    }

    /// How many times smaller codecs make the distinct chunks; 1 of nothing.
    pub fn compress_ratio(&self) -> f64 {
        if self.distinct_bytes == 0 { 1.0 } else { self.distinct_bytes as f64 / self.compressed_bytes }
    }
}

/// One snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Where it came from.
    pub label: String,
    /// Directories, the root among them.
    pub directories: u64,
    /// Files by depth: in the root, in its directories, and so on.
    pub depths: Vec<u64>,
    /// Files by size: empty ones, then of less than 2, 4, 8, .. bytes.
    pub sizes: Vec<u64>,
    /// Files by extension, where it is widely known; `none` and `other`.
    pub types: BTreeMap<String, u64>,
    /// Files of those whose content could not be read: they have a name, and no chunks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: u64,
    /// It alone.
    pub alone: Counts,
    /// All snapshots up to it together.
    pub together: Counts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Counts every snapshot of a series.
pub fn measure(series: &Series) -> Vec<Measured> {
    let count = series.chunks.len();
    let (mut together, mut occurs) = (Counts::default(), vec![0u32; count]);
    let mut alone_occurs = vec![0u32; count];
    let mut measured = Vec::new();
    for tree in &series.trees {
        let mut one = files_of(series, tree);
        let mut alone = Counts { files: one.sizes.iter().sum(), ..Counts::default() };
        together.files += alone.files;
        for chunk in &tree.refs {
            add(series, *chunk, &mut alone_occurs, &mut alone);
            add(series, *chunk, &mut occurs, &mut together);
        }
        for chunk in &tree.refs {
            alone_occurs[*chunk as usize] = 0;
        }
        (one.alone, one.together) = (alone, together);
        measured.push(one);
    }
    measured
}

/// A tree's files, its chunks not counted yet.
fn files_of(series: &Series, tree: &Tree) -> Measured {
    let depths = tree.depths();
    let mut types = vec![0u64; series.names.extensions.len()];
    let mut one =
        Measured { label: tree.label.clone(), directories: tree.dirs() as u64, ..Measured::default() };
    for entry in (0..tree.len() as u32).map(|file| tree.file(file)) {
        if matches!(entry.mark.kind(), Kind::File | Kind::Unreadable) {
            count(&mut one.depths, usize::from(depths[entry.dir as usize]));
            count(&mut one.sizes, (u64::BITS - entry.size.leading_zeros()) as usize);
            types[usize::from(entry.extension)] += 1;
            one.unreadable += u64::from(entry.mark.kind() == Kind::Unreadable);
        }
    }
    for (extension, files) in series.names.extensions.iter().zip(types).filter(|(_, files)| *files > 0) {
        let name = match std::str::from_utf8(extension) {
            Ok("") => "none",
            Ok(name) if is_known(name) => name,
            _ => "other",
        };
        *one.types.entry(name.to_string()).or_insert(0) += files;
    }
    one
}

fn count(counts: &mut Vec<u64>, at: usize) {
    counts.resize(counts.len().max(at + 1), 0);
    counts[at] += 1;
}

fn add(series: &Series, chunk: u32, occurs: &mut [u32], counts: &mut Counts) {
    let size = series.chunks.size(chunk);
    let times = &mut occurs[chunk as usize];
    *times = times.saturating_add(1);
    counts.chunks += 1;
    counts.bytes += u64::from(size);
    match *times {
        1 => {
            counts.distinct += 1;
            counts.distinct_bytes += u64::from(size);
            counts.compressed_bytes += f64::from(size) / series.chunks.ratio(chunk).value();
            counts.unique += 1;
        }
        2 => (counts.unique, counts.dup1) = (counts.unique - 1, counts.dup1 + 1),
        3 => (counts.dup1, counts.dup2) = (counts.dup1 - 1, counts.dup2 + 1),
        4 => counts.dup2 -= 1,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::{Packed, Ratio};
    use crate::names::{Interner, Names};
    use crate::tree::{Chunking, Entry, Mark, Meta, State};
    use crate::{Chunks, Name};

    /// Two snapshots with a file in a directory and a link to it.
    fn example() -> Series {
        let (mut names, mut chunks) = (Names::new(), Chunks::new(12));
        let mut interner = Interner::new(&names);
        let name = interner.name(&mut names, b"one.txt").unwrap();
        let extension = interner.extension(&mut names, b"one.txt");
        for i in 0..5 {
            chunks.add(Packed::new(1000 + i, Ratio(i as u8 + 1)), &[i as u8; 12]).unwrap();
        }
        let tree = |label: &str| {
            let mut tree = Tree::new(label);
            let dir = tree.add_dir(0, Name::made(3));
            let mark = Mark::new(Kind::File, State::New);
            let entry = Entry { dir, name, extension, mark, size: 3006, private: &[] };
            tree.add_file(&entry, &[1, 2, 3]).unwrap();
            let mark = Mark::new(Kind::Hard, State::Unmodified);
            tree.add_file(&Entry { dir: 0, mark, ..entry }, &[]).unwrap();
            tree
        };
        let trees = vec![tree("first"), tree("second")];
        let meta = Meta::new(Chunking::default(), "");
        Series { meta, chunks, names, trees }
    }

    #[test]
    fn chunks_are_counted_by_how_often_they_occur() {
        let mut series = example();
        series.trees[1].refs = vec![2, 2, 4];
        let measured = measure(&series);
        // One in a directory of the root; the other entry is a link.
        assert_eq!((&measured[0].depths[..], measured[0].sizes.len()), (&[0, 1][..], 13));
        assert_eq!(measured[0].types, BTreeMap::from([("txt".to_string(), 1)]));
        let of = |counts: &Counts| (counts.chunks, counts.distinct, counts.unique, counts.dup1, counts.dup2);
        assert_eq!(of(&measured[0].alone), (3, 3, 3, 0, 0));
        assert_eq!(of(&measured[1].alone), (3, 2, 1, 1, 0));
        // 1 and 3 and 4 once, 2 three times.
        assert_eq!(of(&measured[1].together), (6, 4, 3, 0, 1));
        assert_eq!(measured[1].together.bytes, 1001 + 1002 + 1003 + 2 * 1002 + 1004);
        assert_eq!(measured[1].together.distinct_bytes, 1001 + 1002 + 1003 + 1004);
        assert!((measured[1].alone.dedup_ratio() - 3008.0 / 2006.0).abs() < 1e-12);
        assert!((1.0..1.2).contains(&measured[1].alone.compress_ratio()));
        assert_eq!(Counts::default().dedup_ratio(), 1.0);
    }
}
