//! Content of files from the numbers of their chunks.

use crate::tree::{Chunking, Series, Tree, tag};
use crate::{Ratio, Result};
use loadstone_content::{ChunkMaker, Cutter};
use rustc_hash::FxHashMap;
use std::io;

/// Chunks so short that their number does not fit are told apart by their rank among those of their size.
const SHORT: u32 = 5;

/// Makes the content of a series.
pub(super) struct Content<'a> {
    series: &'a Series,
    maker: ChunkMaker,
    ranks: FxHashMap<u32, u32>,
}

impl<'a> Content<'a> {
    pub fn new(series: &'a Series, seed: u64) -> Result<Content<'a>> {
        let cutter = match series.meta.chunking {
            Chunking::Fixed { .. } => None,
            Chunking::Fastcdc { min, average, max } => {
                Some(Cutter { min: min as usize, average: average as usize, max: max as usize })
            }
        };
        let (mut ranks, mut next) = (FxHashMap::default(), [0u32; SHORT as usize]);
        for chunk in 0..series.chunks.len() as u32 {
            let size = series.chunks.size(chunk);
            if size < SHORT {
                let rank = &mut next[size as usize];
                ranks.insert(chunk, *rank);
                *rank += 1;
            }
        }
        Ok(Content { series, maker: ChunkMaker::new(seed, cutter)?, ranks })
    }

    /// A chunk, behind what `into` has.
    pub fn chunk(&self, chunk: u32, into: &mut Vec<u8>) {
        let at = into.len();
        let size = self.series.chunks.size(chunk);
        into.resize(at + size as usize, 0);
        let number = if size < SHORT { self.ranks.get(&chunk).copied().unwrap_or(0) } else { chunk };
        let ratio = self.series.chunks.ratio(chunk);
        let ratio = if ratio == Ratio::UNKNOWN { 1.0 } else { ratio.value() };
        self.maker.fill(number, ratio, &mut into[at..]);
    }
}

/// Holes of a file: offset and length, ascending.
pub(super) fn holes(tree: &Tree, file: u32) -> Vec<(u64, u64)> {
    let record =
        tree.private_of(file).find(|(tag, _)| *tag == tag::HOLES).map_or(&[][..], |(_, bytes)| bytes);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    record.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..]))).collect()
}

/// A file's content as a stream, its holes as zeros.
pub(super) struct Stream<'a> {
    content: &'a Content<'a>,
    chunks: std::slice::Iter<'a, u32>,
    holes: std::vec::IntoIter<(u64, u64)>,
    hole: Option<(u64, u64)>,
    at: u64,
    left: u64,
    buffer: &'a mut Vec<u8>,
    used: usize,
}

impl<'a> Stream<'a> {
    pub fn new(content: &'a Content<'a>, tree: &'a Tree, file: u32, buffer: &'a mut Vec<u8>) -> Stream<'a> {
        buffer.clear();
        let mut holes = holes(tree, file).into_iter();
        let hole = holes.next();
        let left = tree.file(file).size;
        Stream { content, chunks: tree.chunks_of(file).iter(), holes, hole, at: 0, left, buffer, used: 0 }
    }
}

impl io::Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut room = (into.len() as u64).min(self.left) as usize;
        if room == 0 {
            return Ok(0);
        }
        if let Some((offset, length)) = self.hole {
            if self.at >= offset {
                let inside = (offset + length).saturating_sub(self.at);
                let zeros = room.min(inside as usize);
                into[..zeros].fill(0);
                if zeros as u64 == inside {
                    self.hole = self.holes.next();
                }
                (self.at, self.left) = (self.at + zeros as u64, self.left - zeros as u64);
                // An empty hole is no end.
                return if zeros == 0 { self.read(into) } else { Ok(zeros) };
            }
            room = room.min((offset - self.at) as usize);
        }
        if self.used == self.buffer.len() {
            let Some(chunk) = self.chunks.next() else { return Ok(0) };
            self.buffer.clear();
            self.content.chunk(*chunk, self.buffer);
            self.used = 0;
        }
        let n = room.min(self.buffer.len() - self.used);
        into[..n].copy_from_slice(&self.buffer[self.used..self.used + n]);
        self.used += n;
        (self.at, self.left) = (self.at + n as u64, self.left - n as u64);
        Ok(n)
    }
}
