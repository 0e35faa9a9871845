//! Content of chunks from their numbers.

use crate::Result;
use crate::chunks::{Chunks, Ratio};
use crate::relations::{Successor, neighbours, replaced};
use crate::tree::{Chunking, Lz4, Meta, Resemblance, Series, Shares, Stays, draw};
use loadstone_content::{ChunkMaker, Cutter, Ratios};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Chunks so short that their number does not fit are told apart by their rank among those of their size.
const SHORT: u32 = 5;
/// Smallest chunk of which a part can be another one's, bytes.
const LEAST: u32 = 1 << 10;
/// From this ratio on chunks are mostly padding, and parts of two of them may be alike.
const PADDING: f64 = 16.0;
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
    /// What it begins with: so many bytes that another one begins with.
    head: (u32, usize),
    /// What it ends with.
    end: (u32, usize),
    /// Whose last bytes it has.
    tail: u32,
    /// How many chunks are made for it.
    cost: u32,
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
    let ratio = |chunk| series.chunks.ratio(chunk).value();
    let fits = |chunk: u32| series.chunks.size(chunk) >= LEAST && ratio(chunk) < PADDING;
    for all in replaced(series) {
        // Where more are as long as what they took the place of than should be, some are as others are.
        let (as_long, others) = (all.as_long() as f64, f64::from(all.others));
        let share = as_long / (as_long + others).max(1.0);
        for new in all.successors.into_iter().filter(|new| fits(new.chunk)) {
            let drawn = Drawn::of(new.chunk);
            let new =
                Successor { whole: new.whole.filter(|_| drawn.share(3) * share < stays.replaced()), ..new };
            let [head, end] = ends(&new, stays, &drawn, |chunk| series.chunks.size(chunk) as usize)
                .map(|(of, bytes)| (of, if fits(of) { bytes } else { 0 }));
            let cost = |(of, bytes): (u32, usize)| match bytes {
                0 => 0,
                _ => versions.get(&of).map_or(1, |of| of.cost),
            };
            let cost = 1 + cost(head) + if head.0 == end.0 && head.1 > 0 { 0 } else { cost(end) };
            if head.1 + end.1 == 0 || cost > MOST_MADE {
                continue;
            }
            let tail = match end {
                (_, 0) => new.chunk,
                (of, _) => versions.get(&of).map_or(of, |of| of.tail),
            };
            versions.insert(new.chunk, Version { head, end, tail, cost });
        }
    }
    versions
}

/// Shares, from 0 to before 1, that follow from the number of a chunk.
struct Drawn(u64);

impl Drawn {
    fn of(chunk: u32) -> Drawn {
        Drawn((u64::from(chunk) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// One of four.
    fn share(&self, which: u32) -> f64 {
        (self.0 >> (16 * which) & 0xffff) as f64 / 65536.0
    }
}

/// How many bytes of which chunks a new one begins and ends with.
fn ends(new: &Successor, stays: &Stays, drawn: &Drawn, size: impl Fn(u32) -> usize) -> [(u32, usize); 2] {
    let own = size(new.chunk);
    let bytes = |of: u32, parts: usize| own.min(size(of)) * parts / Stays::PARTS;
    // A part at least is its own, or it would be another one's.
    let cut = |head: (u32, usize), end: (u32, usize)| {
        let most = own - own / Stays::PARTS;
        let bytes = head.1.min(most);
        [(head.0, bytes), (end.0, end.1.min(most - bytes))]
    };
    let (counts, of) = match (new.whole, new.alone()) {
        (Some(of), _) => (&stays.parts[..], of),
        (None, Some(of)) => (&stays.alone[..], of),
        (None, None) => {
            let of = |of: Option<u32>, counts: &[u32], drawn| {
                of.map_or((new.chunk, 0), |of| (of, bytes(of, draw(counts, drawn))))
            };
            let head = of(new.first, &stays.first, drawn.share(2));
            let end = of(new.last, &stays.last, drawn.share(0));
            return cut(head, end);
        }
    };
    let parts = draw(counts, drawn.share(2));
    let before = (drawn.share(1) * (parts + 1) as f64) as usize;
    let head = bytes(of, before);
    cut((of, head), (of, bytes(of, parts) - head))
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
        self.fill_alone(chunk, pass, bytes);
        let made = |(of, bytes)| {
            let mut other = vec![0; if bytes > 0 { self.size(of) as usize } else { 0 }];
            if bytes > 0 {
                self.fill(of, pass, &mut other);
            }
            other
        };
        let head = made(version.head);
        let other = (version.end.0 != version.head.0 || head.is_empty()).then(|| made(version.end));
        let end = other.as_ref().unwrap_or(&head);
        self.maker.take_over(
            (version.tail, self.size(version.tail) as usize),
            bytes,
            &head[..version.head.1],
            &end[end.len() - version.end.1..],
        );
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
