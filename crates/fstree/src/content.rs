//! Content of chunks from their numbers.

use crate::Result;
use crate::chunks::{Chunks, Ratio};
use crate::tree::{Chunking, Meta, Resemblance, Series};
use loadstone_content::{ChunkMaker, Cutter};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Chunks so short that their number does not fit are told apart by their rank among those of their size.
const SHORT: u32 = 5;

/// Makes the content of chunks.
pub struct Content<'a> {
    chunks: Cow<'a, Chunks>,
    maker: ChunkMaker,
    ranks: FxHashMap<u32, u32>,
}

impl<'a> Content<'a> {
    /// Of a series; `seed` counts where it has none of its own, as one that was scanned.
    ///
    /// # Errors
    /// For chunks so small that no content is cut into them.
    pub fn new(series: &'a Series, seed: u64) -> Result<Content<'a>> {
        Content::of(Cow::Borrowed(&series.chunks), &series.meta, seed)
    }

    pub(crate) fn of(chunks: Cow<'a, Chunks>, meta: &Meta, seed: u64) -> Result<Content<'a>> {
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
        Ok(Content { chunks, maker, ranks })
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
        let number = if self.chunks.size(chunk) < SHORT {
            self.ranks.get(&chunk).copied().unwrap_or(0)
        } else {
            chunk
        };
        let ratio = self.chunks.ratio(chunk);
        let ratio = if ratio == Ratio::UNKNOWN { 1.0 } else { ratio.value() };
        self.maker.fill_again(pass, number, ratio, bytes);
    }
}
