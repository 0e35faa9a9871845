//! The chunks of a series one after the other, for whoever writes them without the files they are in.
//!
//! Snapshot after snapshot and file after file, in the order of the series, make one long row of chunks, the tape. Where
//! chunks were cut by FastCDC nothing lies between them, so a chunker of the same sizes cuts the tape where they end.
//! Chunks of one size each take that size, what the last one of a file lacks as zeros: as in a file system, every file
//! begins at a block. Holes take nothing. Behind its end the tape begins again with other bytes of the same chunks: what
//! was alike stays so within a pass, and no two passes have anything in common.

use crate::chunks::Ratio;
use crate::content::{Content, Relations};
use crate::tree::{Chunking, Series};
use crate::{Error, Result};
use std::borrow::Cow;
use std::path::Path;

/// Chunks whose places are remembered: one of so many.
const EVERY: usize = 64;

/// The chunks of a series, or of one of its snapshots, in a row.
pub struct Tape {
    content: Content<'static>,
    refs: Vec<u32>,
    /// Byte at which every `EVERY`th chunk begins.
    marks: Vec<u64>,
    bytes: u64,
    /// Bytes that each takes, where all take as many.
    slot: Option<u32>,
    largest: u64,
}

/// A chunk that was made to have a part of it, kept as the next part is often wanted next.
#[derive(Default)]
pub struct Piece {
    what: Option<(u64, u32)>,
    bytes: Vec<u8>,
}

/// What is known of a stretch of a tape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Its bytes.
    pub bytes: u64,
    /// Those of chunks that did not occur in it before.
    pub unique: u64,
    /// What codecs make of all of it, chunk by chunk.
    pub packed: f64,
}

impl Share {
    /// Bytes for each unique one; 1 of nothing.
    pub fn dedupe(&self) -> f64 {
        if self.unique == 0 { 1.0 } else { self.bytes as f64 / self.unique as f64 }
    }

    /// How many times smaller codecs make it; 1 of nothing.
    pub fn compress(&self) -> f64 {
        if self.packed > 0.0 { self.bytes as f64 / self.packed } else { 1.0 }
    }
}

impl Tape {
    /// That of a file; of all snapshots, or of the one with this number. `seed` is that of the content where the series
    /// has none of its own.
    ///
    /// # Errors
    /// When the file cannot be read or is not whole, or there is no such snapshot or nothing in it.
    pub fn load(path: &Path, snapshot: Option<usize>, seed: u64) -> Result<Tape> {
        Tape::new(Series::load(path)?, snapshot, seed).map_err(|e| Error::file(path, e.to_string()))
    }

    /// That of a series.
    ///
    /// # Errors
    /// When there is no such snapshot or nothing in it, or chunks are not as their chunking says.
    pub fn new(series: Series, snapshot: Option<usize>, seed: u64) -> Result<Tape> {
        let relations = Relations::of(&series);
        let Series { meta, chunks, trees, .. } = series;
        let count = trees.len();
        let wanted = match snapshot {
            None => &trees[..],
            Some(number) => match trees.get(number) {
                Some(tree) => std::slice::from_ref(tree),
                None => {
                    let text = format!("snapshot {number}: there are {count}, the first is 0");
                    return Err(Error::Option(text));
                }
            },
        };
        let refs: Vec<u32> = wanted.iter().flat_map(|tree| &tree.refs).copied().collect();
        if refs.is_empty() {
            return Err(Error::Option("has no chunks to write: its files are empty; use another one".into()));
        }
        let slot = match meta.chunking {
            Chunking::Fixed { size } => Some(size),
            Chunking::Fastcdc { .. } => None,
        };
        if let Some((slot, size)) = slot
            .and_then(|slot| (0..chunks.len() as u32).map(|c| (slot, chunks.size(c))).find(|(s, c)| c > s))
        {
            let text =
                format!("has a chunk of {size} bytes, where none has more than {slot}; copy or scan again");
            return Err(Error::Option(text));
        }
        let content = Content::of(Cow::Owned(chunks), relations, &meta, seed)?;
        let mut tape = Tape { content, refs, marks: Vec::new(), bytes: 0, slot, largest: 0 };
        let mut marks = Vec::with_capacity(tape.refs.len().div_ceil(EVERY));
        for (i, chunk) in tape.refs.iter().enumerate() {
            if i % EVERY == 0 {
                marks.push(tape.bytes);
            }
            let width = tape.width(*chunk);
            (tape.bytes, tape.largest) = (tape.bytes + width, tape.largest.max(width));
        }
        tape.marks = marks;
        Ok(tape)
    }

    /// Bytes of a pass.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the largest chunk.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Bytes of every chunk, where they were cut into blocks of one size.
    pub fn block(&self) -> Option<u32> {
        self.slot
    }

    /// Bytes that a chunk takes.
    fn width(&self, chunk: u32) -> u64 {
        self.slot.unwrap_or_else(|| self.content.chunks().size(chunk)).into()
    }

    /// Which chunk of the row lies at a byte of a pass, and where that chunk begins.
    fn find(&self, at: u64) -> (usize, u64) {
        let mark = self.marks.partition_point(|mark| *mark <= at) - 1;
        let (mut index, mut begin) = (mark * EVERY, self.marks[mark]);
        loop {
            let width = self.width(self.refs[index]);
            if at < begin + width {
                return (index, begin);
            }
            (index, begin) = (index + 1, begin + width);
        }
    }

    /// Where the first chunk begins that begins at a byte of the tape or behind it.
    pub fn next(&self, position: u64) -> u64 {
        let at = position % self.bytes;
        let (index, begin) = self.find(at);
        position - at + if begin == at { at } else { begin + self.width(self.refs[index]) }
    }

    /// What the tape has from byte `position` on; beyond its end that of later passes.
    pub fn fill(&self, position: u64, mut bytes: &mut [u8], piece: &mut Piece) {
        let (mut pass, at) = (position / self.bytes, position % self.bytes);
        let (mut index, begin) = self.find(at);
        let mut inside = (at - begin) as usize;
        while !bytes.is_empty() {
            let chunk = self.refs[index];
            let width = self.width(chunk) as usize;
            let (now, rest) = bytes.split_at_mut((width - inside).min(bytes.len()));
            if now.len() == width {
                self.whole(pass, chunk, now);
            } else {
                if piece.what != Some((pass, chunk)) {
                    piece.bytes.resize(width, 0);
                    self.whole(pass, chunk, &mut piece.bytes);
                    piece.what = Some((pass, chunk));
                }
                now.copy_from_slice(&piece.bytes[inside..inside + now.len()]);
            }
            (index, inside, bytes) = (index + 1, 0, rest);
            if index == self.refs.len() {
                (index, pass) = (0, pass + 1);
            }
        }
    }

    /// A chunk and what it lacks.
    fn whole(&self, pass: u64, chunk: u32, bytes: &mut [u8]) {
        let (data, lack) = bytes.split_at_mut(self.content.chunks().size(chunk) as usize);
        self.content.fill(chunk, pass, data);
        lack.fill(0);
    }

    /// What the first `bytes` of the tape hold, over as many passes as they take. A chunk of which a part is left at the
    /// end counts by that part.
    pub fn share(&self, bytes: u64) -> Share {
        let passes = bytes / self.bytes;
        let rest = self.first(bytes % self.bytes);
        if passes == 0 {
            return rest;
        }
        let whole = self.first(self.bytes);
        Share {
            bytes,
            unique: rest.unique + passes * whole.unique,
            packed: rest.packed + passes as f64 * whole.packed,
        }
    }

    /// What the first bytes of one pass hold.
    fn first(&self, bytes: u64) -> Share {
        let chunks = self.content.chunks();
        let (mut seen, mut left) = (vec![false; chunks.len()], bytes);
        let mut share = Share { bytes, unique: 0, packed: 0.0 };
        for chunk in &self.refs {
            if left == 0 {
                break;
            }
            let (width, ratio) = (self.width(*chunk).min(left), chunks.ratio(*chunk));
            let data = u64::from(chunks.size(*chunk)).min(left);
            share.packed += data as f64 / if ratio == Ratio::UNKNOWN { 1.0 } else { ratio.value() };
            if !std::mem::replace(&mut seen[*chunk as usize], true) {
                share.unique += width;
            }
            left -= width;
        }
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::Chunks;
    use crate::names::{Name, Names};
    use crate::tree::{Entry, Kind, Mark, Meta, State, Tree};
    use fastcdc::v2020::FastCDC;
    use proptest::prelude::*;

    fn series(chunking: Chunking, sizes: &[u32], snapshots: &[Vec<Vec<u32>>]) -> Series {
        let (mut chunks, mut names) = (Chunks::new(0), Names::new());
        names.extensions = vec![Vec::new()];
        for size in sizes {
            chunks.push(*size, Ratio::nearest(1.5)).unwrap();
        }
        let mut trees = Vec::new();
        for files in snapshots {
            let mut tree = Tree::new("");
            for (number, file) in (0..).zip(files) {
                let size = file.iter().map(|chunk| u64::from(chunks.size(*chunk))).sum();
                let (name, mark) = (Name::made(number), Mark::new(Kind::File, State::New));
                let entry = Entry { dir: 0, name, extension: 0, mark, size, private: &[] };
                tree.add_file(&entry, file).unwrap();
            }
            trees.push(tree);
        }
        let meta = Meta { seed: Some(7), ..Meta::new(chunking, "none") };
        Series { meta, chunks, names, trees }
    }

    fn read(tape: &Tape, position: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        tape.fill(position, &mut bytes, &mut Piece::default());
        bytes
    }

    /// Two snapshots of two files each, with duplicates within and between them.
    fn two() -> Series {
        let snapshots = [vec![vec![0, 1], vec![2, 0]], vec![vec![0, 1], vec![3, 2, 0]]];
        series(Chunking::default(), &[5000, 9000, 3000, 4000], &snapshots)
    }

    #[test]
    fn it_has_the_bytes_that_files_of_the_series_have() {
        let series = two();
        let content = Content::new(&series, 0).unwrap();
        let mut asked = Vec::new();
        for chunk in [0, 1, 2, 0, 0, 1, 3, 2, 0] {
            let at = asked.len();
            asked.resize(at + content.size(chunk) as usize, 0);
            content.fill(chunk, 0, &mut asked[at..]);
        }
        let tape = Tape::new(two(), None, 0).unwrap();
        assert_eq!(tape.bytes(), 48_000);
        assert!(read(&tape, 0, 48_000) == asked);
        let second = Tape::new(two(), Some(1), 0).unwrap();
        assert!(read(&second, 0, 26_000) == asked[22_000..]);
    }

    #[test]
    fn a_chunker_finds_the_duplicates_of_the_dataset() {
        let tape = Tape::new(two(), None, 0).unwrap();
        // Three passes: within each the same four chunks, and nothing of another.
        let bytes = read(&tape, 0, 3 * 48_000);
        let found: Vec<_> = FastCDC::new(&bytes, 2 << 10, 8 << 10, 64 << 10).collect();
        assert_eq!(found.len(), 27);
        let unique: std::collections::HashSet<_> =
            found.iter().map(|chunk| &bytes[chunk.offset..chunk.offset + chunk.length]).collect();
        assert_eq!(unique.len(), 12);
        let told = tape.share(3 * 48_000);
        assert_eq!((told.bytes, told.unique), (144_000, 63_000));
        assert_eq!(told.unique, unique.iter().map(|chunk| chunk.len() as u64).sum::<u64>());
    }

    #[test]
    fn files_of_blocks_begin_at_blocks() {
        let tape = Tape::new(
            series(Chunking::Fixed { size: 4096 }, &[4096, 100], &[vec![vec![0, 1], vec![0]]]),
            None,
            0,
        )
        .unwrap();
        let bytes = read(&tape, 0, 3 * 4096);
        assert!(bytes[..4096] == bytes[8192..]);
        assert!(bytes[4096..4196] != [0; 100] && bytes[4196..8192].iter().all(|byte| *byte == 0));
        assert_eq!((tape.block(), tape.bytes()), (Some(4096), 12_288));
        assert_eq!(tape.share(12_288).dedupe(), 1.5);
    }

    #[test]
    fn shares_are_of_as_many_bytes() {
        let tape = Tape::new(two(), None, 0).unwrap();
        assert_eq!((tape.share(0).dedupe(), tape.share(0).compress()), (1.0, 1.0));
        assert_eq!(tape.share(17_000).dedupe(), 1.0);
        // 2,000 of 5,000 bytes that were there before.
        assert_eq!((tape.share(19_000).unique, tape.share(19_000).bytes), (17_000, 19_000));
        assert!((tape.share(48_000).compress() / 1.5 - 1.0).abs() < 0.02);
        let passes = tape.share(96_000 + 19_000);
        assert_eq!(passes.unique, 2 * 21_000 + 17_000);
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let say = |series, snapshot| Tape::new(series, snapshot, 0).err().unwrap().to_string();
        assert_eq!(say(two(), Some(2)), "snapshot 2: there are 2, the first is 0");
        assert!(say(series(Chunking::default(), &[], &[vec![]]), None).contains("no chunks to write"));
        assert!(say(series(Chunking::default(), &[], &[]), None).contains("no chunks to write"));
        let larger = series(Chunking::Fixed { size: 4096 }, &[4097], &[vec![vec![0]]]);
        assert!(say(larger, None).contains("4097 bytes, where none has more than 4096"));
        let missing = tempfile::tempdir().unwrap().path().join("x.fst");
        let told = Tape::load(&missing, None, 0).err().unwrap().to_string();
        assert!(told.starts_with(&format!("{}: ", missing.display())));
    }

    proptest! {
        #[test]
        fn any_stretch_is_that_of_the_whole(
            sizes in prop::collection::vec(1u32..9000, 1..200), fixed: bool, from in 0u64..2_000_000, size in 0usize..40_000,
            cut in 0usize..40_000,
        ) {
            let chunking = if fixed { Chunking::Fixed { size: 9000 } } else { Chunking::default() };
            let files = vec![(0..sizes.len() as u32).collect()];
            let tape = Tape::new(series(chunking, &sizes, &[files]), None, 0).unwrap();
            let whole = read(&tape, from, size);
            // The same in two pieces, the second of which goes on where the first has ended.
            let (mut bytes, mut piece, cut) = (vec![0; size], Piece::default(), cut.min(size));
            tape.fill(from, &mut bytes[..cut], &mut piece);
            tape.fill(from + cut as u64, &mut bytes[cut..], &mut piece);
            prop_assert!(whole == bytes);
            let next = tape.next(from);
            prop_assert!(next >= from && next < from + tape.largest());
            prop_assert_eq!(tape.next(next), next);
        }
    }
}
