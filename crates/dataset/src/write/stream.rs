//! Content of a file as a stream.

use crate::tree::{Tree, tag};
use loadstone_fstree::Content;
use std::io;

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

    /// The same without holes: `size` bytes of data.
    pub fn packed(
        content: &'a Content<'a>,
        tree: &'a Tree,
        file: u32,
        size: u64,
        buffer: &'a mut Vec<u8>,
    ) -> Stream<'a> {
        let whole = Stream::new(content, tree, file, buffer);
        Stream { holes: Vec::new().into_iter(), hole: None, left: size, ..whole }
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
