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

/// A file's content as a stream, its holes as zeros.
pub(super) struct Stream<'a, 'b> {
    made: &'a mut Made<'b>,
    chunks: std::slice::Iter<'a, u32>,
    holes: std::vec::IntoIter<(u64, u64)>,
    hole: Option<(u64, u64)>,
    at: u64,
    left: u64,
    /// Bytes used of the chunk that was made last.
    used: usize,
}

impl<'a, 'b> Stream<'a, 'b> {
    pub fn new(made: &'a mut Made<'b>, tree: &'a Tree, file: u32) -> Stream<'a, 'b> {
        made.clear();
        let mut holes = holes(tree, file).into_iter();
        let hole = holes.next();
        let left = tree.file(file).size;
        Stream { made, chunks: tree.chunks_of(file).iter(), holes, hole, at: 0, left, used: 0 }
    }

    /// The same without holes: `size` bytes of data.
    pub fn packed(made: &'a mut Made<'b>, tree: &'a Tree, file: u32, size: u64) -> Stream<'a, 'b> {
        let whole = Stream::new(made, tree, file);
        Stream { holes: Vec::new().into_iter(), hole: None, left: size, ..whole }
    }
}

impl io::Read for Stream<'_, '_> {
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
        (self.at, self.left) = (self.at + n as u64, self.left - n as u64);
        Ok(n)
    }
}
