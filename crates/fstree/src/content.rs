//! Content of chunks from their numbers.

use crate::Result;
use crate::chunks::{Chunks, Ratio};
use crate::relations::{Stretch, neighbours, replaced};
use crate::tree::{Chunking, Lz4, Meta, Resemblance, Series, Shares, Stays, draw};
use loadstone_content::{ChunkMaker, Cutter, Ratios, seed};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

/// Chunks so short that their number does not fit are told apart by their rank among those of their size.
const SHORT: u32 = 5;
/// Smallest chunk of which a part can be another one's, bytes.
const LEAST: u32 = 1 << 10;
/// From this ratio on chunks are mostly padding, and parts of two of them may be alike.
const PADDING: f64 = 16.0;
/// Bytes of its own that a chunk has at a place, at least: enough that it is no other one.
const LEAST_EDIT: u32 = 16;
/// Chunks that are made for one at most, as it has a part of another one that has a part of a third.
const MOST_MADE: u32 = 64;

/// Makes the content of chunks.
pub struct Content<'a> {
    chunks: Cow<'a, Chunks>,
    maker: ChunkMaker,
    ranks: FxHashMap<u32, u32>,
    /// Of each chunk one that it lies beside; nothing where chunks resemble none.
    beside: Vec<u32>,
    versions: FxHashMap<u32, Version>,
    /// What lz4 makes of chunks; nothing where it makes what Zstandard does.
    lz4: Option<Shares>,
}

/// A chunk as another version of those whose place it took.
struct Version {
    /// What it has of others.
    parts: Vec<Part>,
    /// Whose last bytes it has.
    tail: u32,
    /// How many chunks are made for it.
    cost: u32,
}

/// Bytes that a chunk has of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    at: u32,
    length: u32,
    of: u32,
    from: u32,
}

/// What the content of a series' chunks is made by beside their numbers.
pub(crate) struct Relations {
    beside: Vec<u32>,
    versions: FxHashMap<u32, Version>,
}

impl Relations {
    pub fn of(series: &Series) -> Relations {
        let beside = series.meta.resemblance.map_or_else(Vec::new, |_| neighbours(series));
        let versions =
            series.meta.stays.as_ref().map_or_else(FxHashMap::default, |stays| versions(series, stays));
        Relations { beside, versions }
    }
}

/// Chunks that took the place of others and have some of them: as many of all new ones in files that changed, and as much of
/// them, as is told.
fn versions(series: &Series, stays: &Stays) -> FxHashMap<u32, Version> {
    let mut versions: FxHashMap<u32, Version> = FxHashMap::default();
    let size = |chunk| series.chunks.size(chunk);
    let fits = |chunk: u32| size(chunk) >= LEAST && series.chunks.ratio(chunk).value() < PADDING;
    replaced(series, &mut |all| {
        let new = || all.iter().flat_map(|stretch| &stretch.new);
        // Where more are as long as what they took the place of than should be, some are as others are.
        let as_long = new().filter(|new| new.whole.is_some()).count() as f64 / new().count().max(1) as f64;
        for (stretch, new) in all.iter().flat_map(|stretch| stretch.new.iter().map(move |new| (stretch, new)))
        {
            if !fits(new.chunk) {
                continue;
            }
            let mut drawn = Drawn(u64::from(new.chunk));
            let whole = new.whole.filter(|_| drawn.next() * as_long < stays.replaced());
            let mut parts = match whole {
                Some(of) => {
                    let sizes = vec![0, size(of).into()];
                    let one =
                        Stretch { was: vec![of], starts: sizes.clone(), comes: sizes, ..Stretch::default() };
                    parts(&one, 0, (&stays.parts, stays.edits()), &mut drawn)
                }
                None => {
                    let counts = if stretch.is_alone() { stays.alone } else { stays.others() };
                    parts(stretch, new.index, (&counts, stays.edits()), &mut drawn)
                }
            };
            parts.retain(|part| fits(part.of));
            if let Some(first) = parts.first_mut().filter(|part| part.at == 0 && part.from > 0) {
                // It begins as chunks do, not as the middle of one.
                let head = SHORT.min(first.length);
                *first = Part { at: head, length: first.length - head, from: first.from + head, ..*first };
            }
            let cost = limit(&mut parts, |of| versions.get(&of).map_or(1, |of| of.cost));
            let Some(last) = parts.last() else { continue };
            let ends = last.at + last.length == size(new.chunk) && last.from + last.length == size(last.of);
            let tail = if ends { versions.get(&last.of).map_or(last.of, |of| of.tail) } else { new.chunk };
            versions.insert(new.chunk, Version { parts, tail, cost });
        }
    });
    versions
}

/// Removes the parts of the chunk that contributes least, and again, until the cost is within the limit. Returns the cost.
fn limit(parts: &mut Vec<Part>, cost: impl Fn(u32) -> u32) -> u32 {
    loop {
        let mut of: Vec<(u32, u32)> = Vec::new();
        for part in &*parts {
            match of.iter_mut().find(|(chunk, _)| *chunk == part.of) {
                Some((_, bytes)) => *bytes += part.length,
                None => of.push((part.of, part.length)),
            }
        }
        let all = of.iter().fold(1u32, |sum, (chunk, _)| sum.saturating_add(cost(*chunk)));
        let least = of.iter().min_by_key(|(_, bytes)| *bytes).map(|(chunk, _)| *chunk);
        match least {
            Some(least) if all > MOST_MADE => parts.retain(|part| part.of != least),
            _ => return all,
        }
    }
}

/// Shares, from 0 to before 1, that follow from the number of a chunk.
struct Drawn(u64);

impl Drawn {
    fn next(&mut self) -> f64 {
        self.0 = seed::mix(self.0);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a chunk has of what was in its place: so many sixteenths as come, between as many edits as come. Before the first edit
/// at a place all is where it was, behind it what ends there as it did.
fn parts(stretch: &Stretch, index: usize, (counts, edits): (&[u32], f64), drawn: &mut Drawn) -> Vec<Part> {
    let stays = draw(counts, drawn.next()) as f64 / Stays::PARTS as f64;
    let Some((was, comes)) = stretch.around(index).filter(|_| stays > 0.0) else { return Vec::new() };
    let size = (stretch.comes[index + 1] - stretch.comes[index]) as u32;
    let was = stretch.starts[was.start] as i64..stretch.starts[was.end] as i64;
    let [first, last] = [comes.start, comes.end].map(|at| stretch.comes[at] as i64);
    let begins = stretch.comes[index] as i64;
    // The number of edits is geometric.
    let more = (1.0 - drawn.next()).ln() / (1.0 - 1.0 / edits).ln();
    let edits = (1 + more as u32).min(size / LEAST_EDIT / 4);
    let changed = ((f64::from(size) * (1.0 - stays)) as u32).max(edits * LEAST_EDIT);
    let mut cuts: Vec<u32> = (0..edits).map(|_| (drawn.next() * f64::from(size - changed)) as u32).collect();
    cuts.sort_unstable();
    let mut parts = Vec::new();
    let (mut at, mut kept) = (0, 0);
    for (edit, cut) in (0..=edits).zip(cuts.into_iter().chain([size - changed])) {
        let moved = if edit == 0 && begins == first { was.start - first } else { was.end - last };
        source(stretch, &was, (at, cut - kept), begins + i64::from(at) + moved, &mut parts);
        at += cut - kept + changed * (edit + 1) / edits - changed * edit / edits;
        kept = cut;
    }
    parts
}

/// Adds the parts of old chunks that so many bytes come from.
fn source(stretch: &Stretch, was: &Range<i64>, (at, length): (u32, u32), from: i64, parts: &mut Vec<Part>) {
    let end = (from + i64::from(length)).min(was.end);
    let begin = from.max(was.start);
    let mut chunk = stretch.starts.partition_point(|start| *start as i64 <= begin).saturating_sub(1);
    while let Some([start, next]) = stretch.starts[chunk..].first_chunk::<2>().copied() {
        let (first, last) = (begin.max(start as i64), end.min(next as i64));
        if first >= last {
            break;
        }
        parts.push(Part {
            at: at + (first - from) as u32,
            length: (last - first) as u32,
            of: stretch.was[chunk],
            from: (first - start as i64) as u32,
        });
        chunk += 1;
    }
}

impl<'a> Content<'a> {
    /// Of a series; `seed` counts where it has none of its own, as one that was scanned.
    ///
    /// # Errors
    /// For chunks so small that no content is cut into them.
    pub fn new(series: &'a Series, seed: u64) -> Result<Content<'a>> {
        Content::of(Cow::Borrowed(&series.chunks), Relations::of(series), &series.meta, seed)
    }

    pub(crate) fn of(
        chunks: Cow<'a, Chunks>,
        relations: Relations,
        meta: &Meta,
        seed: u64,
    ) -> Result<Content<'a>> {
        let cutter = match meta.chunking {
            Chunking::Fixed { .. } => None,
            Chunking::Fastcdc { min, average, max } => {
                Some(Cutter { min: min as usize, average: average as usize, max: max as usize })
            }
        };
        let (mut ranks, mut next) = (FxHashMap::default(), [0u32; SHORT as usize]);
        for chunk in 0..chunks.len() as u32 {
            let size = chunks.size(chunk);
            if size < SHORT {
                let rank = &mut next[size as usize];
                ranks.insert(chunk, *rank);
                *rank += 1;
            }
        }
        let mut maker = ChunkMaker::new(meta.seed.unwrap_or(seed), cutter)?;
        if let Some(Resemblance { near, far }) = meta.resemblance {
            maker = maker.resembling(meta.chunking.average() as usize, near, far);
        }
        let Relations { beside, versions } = relations;
        let lz4 = meta.lz4.as_ref().map(Lz4::shares);
        Ok(Content { chunks, maker, ranks, beside, versions, lz4 })
    }

    /// The chunks.
    pub(crate) fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// Bytes of a chunk.
    pub fn size(&self, chunk: u32) -> u32 {
        self.chunks.size(chunk)
    }

    /// A chunk, into `bytes` of its size; `pass` above 0 gives it bytes that it has in no other pass, if they are more
    /// than a few.
    pub fn fill(&self, chunk: u32, pass: u64, bytes: &mut [u8]) {
        let Some(version) = self.versions.get(&chunk) else { return self.fill_alone(chunk, pass, bytes) };
        // Its own bytes are made in one piece, so that their matches refer to those bytes alone.
        let taken: u32 = version.parts.iter().map(|part| part.length).sum();
        let mut own = vec![0; bytes.len() - taken as usize];
        self.fill_alone(chunk, pass, &mut own);
        let (mut of, mut other, mut own, mut at) = (None, Vec::new(), &own[..], 0);
        for part in &version.parts {
            if of != Some(part.of) {
                of = Some(part.of);
                other.resize(self.size(part.of) as usize, 0);
                self.fill(part.of, pass, &mut other);
            }
            let range = |from: u32| from as usize..(from + part.length) as usize;
            let (edit, rest) = own.split_at(part.at as usize - at);
            bytes[at..part.at as usize].copy_from_slice(edit);
            bytes[range(part.at)].copy_from_slice(&other[range(part.from)]);
            (own, at) = (rest, (part.at + part.length) as usize);
        }
        bytes[at..].copy_from_slice(own);
        self.maker.end((version.tail, self.size(version.tail) as usize), bytes);
    }

    /// The same of a chunk that has nothing of another.
    fn fill_alone(&self, chunk: u32, pass: u64, bytes: &mut [u8]) {
        let number = if self.chunks.size(chunk) < SHORT {
            self.ranks.get(&chunk).copied().unwrap_or(0)
        } else {
            chunk
        };
        let (size, ratio) = (self.chunks.size(chunk), self.chunks.ratio(chunk));
        let ratios = match &self.lz4 {
            Some(lz4) if ratio != Ratio::UNKNOWN => {
                Ratios { zstd: ratio.value(), lz4: Some(lz4.ratio(size, ratio)) }
            }
            _ => ratio.value().into(),
        };
        let neighbour = self.beside.get(chunk as usize).copied().unwrap_or(number);
        self.maker.fill_beside(neighbour, pass, number, ratios, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{Name, Names};
    use crate::tree::{Entry, Kind, Mark, State, Tree};
    use std::collections::HashSet;

    /// A file of chunks that all change, and by how many bytes each becomes longer.
    fn series(sizes: &[u32], longer: u32, stays: Stays) -> Series {
        let meta = Meta { stays: Some(stays), seed: Some(1), ..Meta::new(Chunking::default(), "none") };
        let mut series = Series { meta, chunks: Chunks::new(0), names: Names::new(), trees: Vec::new() };
        let mark = Mark::new(Kind::File, State::New);
        for more in [0, longer] {
            let list: Vec<u32> =
                sizes.iter().map(|size| series.chunks.push(size + more, Ratio(30)).unwrap()).collect();
            let mut tree = Tree::new("");
            let entry = Entry { dir: 0, name: Name::made(1), extension: 0, mark, size: 0, private: &[] };
            tree.add_file(&entry, &list).unwrap();
            series.trees.push(tree);
        }
        series
    }

    fn file(series: &Series, snapshot: usize) -> Vec<u8> {
        let (content, mut bytes) = (Content::new(series, 0).unwrap(), Vec::new());
        for chunk in series.trees[snapshot].chunks_of(0) {
            let at = bytes.len();
            bytes.resize(at + content.size(*chunk) as usize, 0);
            content.fill(*chunk, 0, &mut bytes[at..]);
        }
        bytes
    }

    #[test]
    fn chunks_that_change_keep_what_is_told_between_edits() {
        let sizes: Vec<u32> = (0..200).map(|i| 6000 + i * 7919 % 9000).collect();
        for (longer, parts, edits) in [(0, 12, 2), (90, 12, 3), (90, 4, 1)] {
            let mut counts = [0; Stays::PARTS + 1];
            counts[parts] = 200;
            let stays = Stays { others: 200, several: counts, edits: 200 * edits, ..Stays::default() };
            let series = series(&sizes, longer, stays);
            let [old, new] = [0, 1].map(|snapshot| file(&series, snapshot));
            let cuts: Vec<_> = fastcdc::v2020::FastCDC::new(&new, 2 << 10, 8 << 10, 64 << 10)
                .map(|cut| cut.length as u32)
                .collect();
            assert_eq!(cuts, sizes.iter().map(|size| size + longer).collect::<Vec<_>>());
            let known: HashSet<_> = old.windows(32).collect();
            let mut is_known = vec![false; new.len()];
            for (at, _) in new.windows(32).enumerate().filter(|(_, window)| known.contains(window)) {
                is_known[at..at + 32].fill(true);
            }
            let share = is_known.iter().filter(|is| **is).count() as f64 / new.len() as f64;
            assert!((share - parts as f64 / 16.0).abs() < 0.04, "{longer} {parts}: {share}");
            let changed = is_known.windows(2).filter(|both| both[0] && !both[1]).count() as f64 / 200.0;
            assert!((changed / f64::from(edits) - 1.0).abs() < 0.35, "{longer} {edits}: {changed}");
        }
    }

    #[test]
    fn what_costs_too_much_is_left_out() {
        let part = |of, length| Part { at: 0, length, of, from: 0 };
        let mut parts = vec![part(1, 50), part(2, 30), part(1, 10), part(3, 40)];
        assert_eq!(limit(&mut parts, |_| 20), 61);
        assert_eq!(parts.len(), 4);
        assert_eq!(limit(&mut parts, |_| 30), 61);
        assert_eq!(parts.iter().map(|part| part.of).collect::<Vec<_>>(), [1, 1, 3]);
        assert_eq!(limit(&mut parts, |_| 64), 1);
        assert!(parts.is_empty());
    }
}
