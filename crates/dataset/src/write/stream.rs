//! Content of a file as a stream.

use super::made::Made;
use crate::tree::{Tree, tag};
use std::io;

/// Holes of a file: offset and length, ascending.
pub(super) fn holes(tree: &Tree, file: u32) -> Vec<(u64, u64)> {
    let record =
        tree.private_of(file).find(|(tag, _)| *tag == tag::HOLES).map_or(&[][..], |(_, bytes)| bytes);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    record.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..]))).collect()
}

/// The data of a file as a stream, without its holes.
pub(super) struct Stream<'a, 'b> {
    made: &'a mut Made<'b>,
    chunks: std::slice::Iter<'a, u32>,
    left: u64,
    /// Bytes used of the chunk that was made last.
    used: usize,
}

impl<'a, 'b> Stream<'a, 'b> {
    /// So many bytes of it.
    pub fn new(made: &'a mut Made<'b>, tree: &'a Tree, file: u32, bytes: u64) -> Stream<'a, 'b> {
        made.clear();
        Stream { made, chunks: tree.chunks_of(file).iter(), left: bytes, used: 0 }
    }
}

impl io::Read for Stream<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = (into.len() as u64).min(self.left) as usize;
        if room == 0 {
            return Ok(0);
        }
        if self.used == self.made.waiting() {
            let Some(chunk) = self.chunks.next() else { return Ok(0) };
            self.made.clear();
            self.made.push(*chunk);
            self.used = 0;
        }
        let piece = self.made.pieces().next().and_then(|piece| piece.get(self.used..)).unwrap_or_default();
        let n = room.min(piece.len());
        into[..n].copy_from_slice(&piece[..n]);
        self.used += n;
        self.left -= n as u64;
        Ok(n)
    }
}
