//! Cutting a stream into blocks of a fixed size, and into chunks where the content says.

use fastcdc::v2020::FastCDC;

/// Sizes of chunks, bytes: least, on average, most.
const CHUNK: (usize, usize, usize) = (2 << 10, 8 << 10, 64 << 10);

/// Cuts blocks of one size; the last of a stream may be smaller.
pub struct Blocks {
    size: usize,
    /// What came and is not a block yet.
    rest: Vec<u8>,
}

impl Blocks {
    /// Of `size` bytes.
    pub fn new(size: usize) -> Blocks {
        Blocks { size, rest: Vec::new() }
    }

    /// Takes the next bytes of a stream; with `last` there are no more, and the next ones begin another.
    pub fn feed(&mut self, mut bytes: &[u8], last: bool, each: &mut dyn FnMut(&[u8])) {
        if !self.rest.is_empty() {
            let (head, tail) = bytes.split_at((self.size - self.rest.len()).min(bytes.len()));
            self.rest.extend_from_slice(head);
            bytes = tail;
            if self.rest.len() == self.size {
                each(&self.rest);
                self.rest.clear();
            }
        }
        let mut blocks = bytes.chunks_exact(self.size);
        blocks.by_ref().for_each(&mut *each);
        self.rest.extend_from_slice(blocks.remainder());
        if last && !self.rest.is_empty() {
            each(&self.rest);
            self.rest.clear();
        }
    }
}

/// Cuts chunks by FastCDC.
pub struct Chunks {
    rest: Vec<u8>,
}

impl Chunks {
    /// Of 8 KiB on average.
    pub fn new() -> Chunks {
        Chunks { rest: Vec::new() }
    }

    /// Takes the next bytes of a stream; with `last` there are no more, and the next ones begin another.
    pub fn feed(&mut self, bytes: &[u8], last: bool, each: &mut dyn FnMut(&[u8])) {
        self.rest.extend_from_slice(bytes);
        let (least, average, most) = CHUNK;
        let mut cut = 0;
        for chunk in FastCDC::new(&self.rest, least, average, most) {
            // Where fewer bytes are left than a chunk may have, more of them could move its end.
            if !last && self.rest.len() - chunk.offset < most {
                break;
            }
            cut = chunk.offset + chunk.length;
            each(&self.rest[chunk.offset..cut]);
        }
        self.rest.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn random(size: usize) -> Vec<u8> {
        use rand_xoshiro::rand_core::{Rng, SeedableRng};
        let mut bytes = vec![0; size];
        rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(6).fill_bytes(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn pieces_of_a_stream_do_not_change_its_cuts(cuts in prop::collection::vec(1usize..200_000, 0..6)) {
            let bytes = random(400_000);
            let (mut blocks, mut chunks) = (Blocks::new(3000), Chunks::new());
            let (mut by_block, mut by_chunk) = (Vec::new(), Vec::new());
            let mut rest = &bytes[..];
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                blocks.feed(head, false, &mut |b| by_block.push(b.to_vec()));
                chunks.feed(head, false, &mut |c| by_chunk.push(c.to_vec()));
                rest = tail;
            }
            blocks.feed(rest, true, &mut |b| by_block.push(b.to_vec()));
            chunks.feed(rest, true, &mut |c| by_chunk.push(c.to_vec()));
            let whole: Vec<_> = bytes.chunks(3000).map(<[u8]>::to_vec).collect();
            prop_assert!(by_block == whole);
            let (least, average, most) = CHUNK;
            let whole: Vec<_> =
                FastCDC::new(&bytes, least, average, most).map(|c| bytes[c.offset..][..c.length].to_vec()).collect();
            prop_assert!(by_chunk == whole);
        }
    }
}
