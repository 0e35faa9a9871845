//! Chunks as they are made, one after the other, to be written together.
//!
//! A chunk that comes again is kept for a while, and what comes again is written from there: files that are there
//! twice are often near each other. Nothing is copied; chunks lie where they were made until they are written.

use crate::tree::{Series, Tree};
use loadstone_fstree::Content;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::Range;

/// Bytes of chunks that a thread keeps.
const KEEP: usize = 32 << 20;

/// Which chunks come more than once in some files, a bit each.
pub(super) struct Repeats(Vec<u64>);

impl Repeats {
    pub fn of(series: &Series, tree: &Tree, files: &[u32]) -> Repeats {
        let words = series.chunks.len().div_ceil(64);
        let (mut once, mut again) = (vec![0u64; words], vec![0u64; words]);
        for chunk in files.iter().flat_map(|file| tree.chunks_of(*file)) {
            let (word, bit) = (*chunk as usize / 64, 1 << (chunk % 64));
            again[word] |= once[word] & bit;
            once[word] |= bit;
        }
        Repeats(again)
    }

    fn has(&self, chunk: u32) -> bool {
        self.0[chunk as usize / 64] >> (chunk % 64) & 1 != 0
    }
}

/// A stretch of what waits to be written: of what is kept, or else of what was made for this once.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    is_kept: bool,
    range: Range<usize>,
}

/// Chunks that wait to be written, and some that come again.
pub(super) struct Made<'a> {
    content: &'a Content<'a>,
    repeats: &'a Repeats,
    /// Chunks that are needed once: they begin anew with every write.
    fresh: Vec<u8>,
    used: usize,
    kept: Kept,
    waiting: Vec<Stretch>,
    bytes: usize,
}

impl<'a> Made<'a> {
    pub fn new(content: &'a Content<'a>, repeats: &'a Repeats) -> Made<'a> {
        let kept = Kept::new(KEEP);
        Made { content, repeats, fresh: Vec::new(), used: 0, kept, waiting: Vec::new(), bytes: 0 }
    }

    /// A chunk behind those that wait.
    pub fn push(&mut self, chunk: u32) {
        let size = self.content.size(chunk) as usize;
        let mut known = None;
        if self.repeats.has(chunk) {
            known = self.kept.find(chunk, size);
            if known.is_none() {
                known = self.kept.room(chunk, size, &self.waiting);
                if let Some(range) = &known {
                    self.content.fill(chunk, 0, &mut self.kept.bytes[range.clone()]);
                }
            }
        }
        let is_kept = known.is_some();
        let range = known.unwrap_or_else(|| {
            let range = self.used..self.used + size;
            if self.fresh.len() < range.end {
                self.fresh.resize(range.end, 0);
            }
            self.content.fill(chunk, 0, &mut self.fresh[range.clone()]);
            self.used = range.end;
            range
        });
        self.bytes += size;
        match self.waiting.last_mut() {
            Some(last) if last.is_kept == is_kept && last.range.end == range.start => {
                last.range.end = range.end;
            }
            _ => self.waiting.push(Stretch { is_kept, range }),
        }
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.bytes
    }

    /// What waits, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.waiting.iter().map(|stretch| {
            let of = if stretch.is_kept { &self.kept.bytes } else { &self.fresh };
            &of[stretch.range.clone()]
        })
    }

    /// Nothing waits any more.
    pub fn clear(&mut self) {
        self.waiting.clear();
        (self.used, self.bytes) = (0, 0);
    }

    /// Writes what waits; tells its bytes.
    pub fn write(&mut self, into: &mut impl Write) -> io::Result<u64> {
        let mut slices: Vec<IoSlice<'_>> = self.pieces().map(IoSlice::new).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match into.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => IoSlice::advance_slices(&mut rest, n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let bytes = self.bytes as u64;
        self.clear();
        Ok(bytes)
    }
}

/// Chunks in a ring: those that were made last.
struct Kept {
    bytes: Vec<u8>,
    /// Where the next one goes.
    at: usize,
    most: usize,
    /// Where chunks begin.
    places: FxHashMap<u32, usize>,
    /// Chunks and where they lie, the oldest first.
    order: VecDeque<(u32, Range<usize>)>,
}

impl Kept {
    fn new(most: usize) -> Kept {
        Kept { bytes: Vec::new(), at: 0, most, places: FxHashMap::default(), order: VecDeque::new() }
    }

    fn find(&self, chunk: u32, size: usize) -> Option<Range<usize>> {
        self.places.get(&chunk).map(|at| *at..at + size)
    }

    /// Room for a chunk in place of the oldest; nothing where these wait to be written, or it is too large.
    fn room(&mut self, chunk: u32, size: usize, waiting: &[Stretch]) -> Option<Range<usize>> {
        let at = if self.at + size > self.most { 0 } else { self.at };
        let range = at..at + size;
        let meets = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        if range.end > self.most || waiting.iter().any(|stretch| stretch.is_kept && meets(&stretch.range)) {
            return None;
        }
        if at < self.at {
            // What lies behind the last one is older than what the ring begins with.
            self.forget(|range, end| range.start >= end);
        }
        self.forget(|range, _| meets(range));
        if self.bytes.is_empty() {
            // The kernel gives it page by page, as it is written.
            self.bytes = vec![0; self.most];
        }
        self.at = range.end;
        self.places.insert(chunk, range.start);
        self.order.push_back((chunk, range.clone()));
        Some(range)
    }

    /// Lets the oldest go, as long as they are such; told where they lie, and where the last one ends.
    fn forget(&mut self, is_such: impl Fn(&Range<usize>, usize) -> bool) {
        while let Some((chunk, _)) = self.order.front().filter(|(_, range)| is_such(range, self.at)) {
            self.places.remove(chunk);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_chunks_make_room() {
        let mut kept = Kept::new(100);
        assert_eq!(kept.room(1, 60, &[]), Some(0..60));
        assert_eq!(kept.room(2, 30, &[]), Some(60..90));
        assert_eq!((kept.find(1, 60), kept.find(2, 30)), (Some(0..60), Some(60..90)));
        // It does not fit behind them, so it takes the place of the first.
        assert_eq!(kept.room(3, 20, &[]), Some(0..20));
        assert_eq!((kept.find(1, 60), kept.find(2, 30)), (None, Some(60..90)));
        assert_eq!(kept.room(4, 50, &[]), Some(20..70));
        assert_eq!((kept.find(2, 30), kept.find(3, 20)), (None, Some(0..20)));
        assert_eq!(kept.room(5, 40, &[]), Some(0..40));
        assert_eq!((kept.find(3, 20), kept.find(4, 50), kept.find(5, 40)), (None, None, Some(0..40)));
        assert_eq!(kept.room(6, 101, &[]), None);
    }

    #[test]
    fn what_waits_is_not_overwritten() {
        let mut kept = Kept::new(100);
        kept.room(1, 60, &[]);
        let waiting = [Stretch { is_kept: true, range: 10..20 }];
        assert_eq!(kept.room(2, 50, &waiting), None);
        assert_eq!(kept.find(1, 60), Some(0..60));
        assert_eq!(kept.room(2, 40, &waiting), Some(60..100));
        let elsewhere = [Stretch { is_kept: false, range: 10..20 }];
        assert_eq!(kept.room(3, 50, &elsewhere), Some(0..50));
    }

    #[test]
    fn what_comes_again_has_the_bytes_that_it_was_made_with() {
        use crate::tree::{Chunking, Meta};
        let (mut chunks, sizes) = (crate::Chunks::new(0), [5000, 9000, 3000, 16_000, 2, 30_000]);
        for size in sizes {
            chunks.push(size, crate::Ratio(30)).unwrap();
        }
        let meta = Meta { seed: Some(1), ..Meta::new(Chunking::default(), "") };
        let series = Series { meta, chunks, names: crate::Names::new(), trees: Vec::new() };
        let content = Content::new(&series, 0).unwrap();
        // All but chunk 2 come again, and the ring holds two or three of them.
        let repeats = Repeats(vec![0b11_1011]);
        let kept = Kept::new(20_000);
        let mut made = Made { kept, ..Made::new(&content, &repeats) };
        let (mut found, mut asked) = (Vec::new(), Vec::new());
        for (i, chunk) in (0..400u32).map(|i| (i, i * i % 7 % 6)) {
            made.push(chunk);
            let at = asked.len();
            asked.resize(at + sizes[chunk as usize] as usize, 0);
            content.fill(chunk, 0, &mut asked[at..]);
            if i % 3 == 0 {
                made.write(&mut found).unwrap();
            }
        }
        made.write(&mut found).unwrap();
        assert!(found == asked);
    }

    #[test]
    fn chunks_that_come_again_are_known() {
        let names = crate::Names::new();
        let mut tree = Tree::new("one");
        let mark = crate::Mark::new(crate::Kind::File, crate::State::New);
        let entry =
            crate::Entry { dir: 0, name: crate::Name::made(1), extension: 0, mark, size: 0, private: &[] };
        for chunks in [&[0, 70, 3][..], &[70, 1], &[3, 1]] {
            tree.add_file(&entry, chunks).unwrap();
        }
        let meta = crate::Meta::new(crate::Chunking::default(), "");
        let mut series = Series { meta, chunks: crate::Chunks::new(0), names, trees: Vec::new() };
        (0..71).for_each(|i| assert_eq!(series.chunks.push(3000, crate::Ratio(1)).unwrap(), i));
        let of = |files: &[u32]| {
            let repeats = Repeats::of(&series, &tree, files);
            (0..71).filter(|chunk| repeats.has(*chunk)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[0, 1, 2]), [1, 3, 70]);
        assert_eq!(of(&[1, 2]), [1]);
    }
}
