//! Content of chunks from their numbers.

use crate::Result;
use crate::chunks::{Chunks, Ratio};
use crate::relations::{Replaced, neighbours, replaced};
use crate::tree::{Chunking, Meta, Resemblance, Series, Stays};
use loadstone_content::{ChunkMaker, Cutter};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

/// Chunks so short that their number does not fit are told apart by their rank among those of their size.
const SHORT: u32 = 5;
/// Smallest chunk of which a part can be another one's, bytes.
const LEAST: u32 = 1 << 10;
/// From this ratio on chunks are mostly padding, and parts of two of them may be alike.
const PADDING: f64 = 16.0;
/// Chunks of which each has a part of the one before, in a row.
const DEEP: u32 = 64;

/// Makes the content of chunks.
pub struct Content<'a> {
    chunks: Cow<'a, Chunks>,
    maker: ChunkMaker,
    ranks: FxHashMap<u32, u32>,
    /// Of each chunk one that it lies beside; nothing where chunks resemble none.
    beside: Vec<u32>,
    versions: FxHashMap<u32, Version>,
}

/// A chunk as another version of one as long.
struct Version {
    of: u32,
    /// The first of all of them.
    first: u32,
    /// How many versions are between.
    depth: u32,
    /// What is its own.
    own: Range<usize>,
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

/// Chunks that took the place of one and have some of it: as many of all new ones in files that changed, and as much of them,
/// as is told.
fn versions(series: &Series, stays: &Stays) -> FxHashMap<u32, Version> {
    let mut versions: FxHashMap<u32, Version> = FxHashMap::default();
    for Replaced { pairs, others } in replaced(series) {
        // Where more did than should some have nothing of what was there.
        let replaced = pairs.len() as f64 / (pairs.len() as f64 + f64::from(others)).max(1.0);
        for (chunk, of) in pairs {
            let size = series.chunks.size(chunk);
            let ratio = |chunk| series.chunks.ratio(chunk).value();
            let drawn = (u64::from(chunk) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let share = |shift: u32| (drawn >> shift & 0xffff) as f64 / 65536.0;
            let stays = if share(48) * replaced < stays.replaced() { stays.draw(share(32)) } else { 0 };
            if stays == 0 || size < LEAST || ratio(chunk) >= PADDING || ratio(of) >= PADDING {
                continue;
            }
            let (depth, first) = versions.get(&of).map_or((0, of), |of| (of.depth + 1, of.first));
            if depth < DEEP {
                let before = (share(16) * (stays + 1) as f64) as usize;
                let at = |part: usize| size as usize * part / Stays::PARTS;
                let own = at(before)..at(Stays::PARTS - stays + before);
                versions.insert(chunk, Version { of, first, depth, own });
            }
        }
    }
    versions
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
        Ok(Content { chunks, maker, ranks, beside, versions })
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
        let mut own = vec![0; bytes.len()];
        self.fill_alone(chunk, pass, &mut own);
        self.fill(version.of, pass, bytes);
        self.maker.take_over(version.first, bytes, &own, version.own.clone());
    }

    /// The same of a chunk that has nothing of another.
    fn fill_alone(&self, chunk: u32, pass: u64, bytes: &mut [u8]) {
        let number = if self.chunks.size(chunk) < SHORT {
            self.ranks.get(&chunk).copied().unwrap_or(0)
        } else {
            chunk
        };
        let ratio = self.chunks.ratio(chunk);
        let ratio = if ratio == Ratio::UNKNOWN { 1.0 } else { ratio.value() };
        let neighbour = self.beside.get(chunk as usize).copied().unwrap_or(number);
        self.maker.fill_beside(neighbour, pass, number, ratio, bytes);
    }
}
