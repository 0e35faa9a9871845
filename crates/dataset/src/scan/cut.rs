//! Cutting content into chunks, with the fingerprint and the compressibility of each.

use super::ratio::{Ask, Compress, Meter};
use super::stays::Parts;
use crate::chunks::{Packed, Ratio};
use crate::tree::{Chunking, Resemblance};
use fastcdc::v2020::FastCDC;
use std::io::{self, Read};
use std::ops::Range;

/// Bytes that are read at once.
const READ: usize = 1 << 20;
/// Of so many pieces one is compressed as a whole, too.
const ONE_IN: u8 = 4;
/// Longest fingerprint, bytes.
pub(super) const MOST_PRINT: usize = 32;

/// A chunk as it was read.
#[derive(Clone)]
pub(super) struct Found {
    pub packed: Packed,
    /// Of its bytes, bits each; of a known chunk 0.
    pub entropy: f32,
    /// Bytes that lz4 makes of it; 0 where it was not measured.
    pub lz4: u32,
    /// Of pieces that begin with it ([`Resemblance::PIECES`]), if they were looked at.
    pub pieces: [Pieces; 2],
    /// What is compared of it, if it was measured as all are.
    pub parts: Parts,
    pub print: [u8; MOST_PRINT],
}

/// What a codec makes of pieces of files behind their first chunks, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Chunk by chunk.
    pub apart: u64,
    /// Piece by piece.
    pub together: u64,
}

impl Pieces {
    pub fn add(&mut self, other: Pieces) {
        *self = Pieces { apart: self.apart + other.apart, together: self.together + other.together };
    }

    /// How much less the latter is, as a share of the former.
    pub fn saved(self) -> f64 {
        if self.apart == 0 { 0.0 } else { (1.0 - self.together as f64 / self.apart as f64).max(0.0) }
    }
}

/// Says what is to be found out of a chunk.
pub(super) type Asking<'a> = &'a dyn Fn(&[u8; MOST_PRINT], u64) -> Ask;

/// What cutting needs beside the content.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub chunking: Chunking,
    pub key: [u8; 32],
    /// Bytes of a fingerprint.
    pub width: usize,
    /// How compressibility is told.
    pub compress: Compress,
}

/// Cuts one stream after another.
pub(super) struct Chunker {
    cut: Cut,
    buffer: Vec<u8>,
    meter: Option<Meter>,
}

impl Chunker {
    pub fn new(cut: Cut) -> io::Result<Chunker> {
        let most = cut.chunking.most();
        let meter = match cut.compress {
            Compress::None => None,
            Compress::Sample => Some(Meter::new(most as usize)?),
            Compress::Whole => Some(Meter::new(READ.max(most as usize))?),
        };
        Ok(Chunker { cut, buffer: vec![0; READ + most as usize], meter })
    }

    /// Cuts up to `length` bytes to chunks, and tells how many there were; `ask` says what to find out of each, told its
    /// fingerprint and how many chunks are before it.
    pub fn stream(
        &mut self,
        from: &mut dyn Read,
        length: u64,
        ask: Asking<'_>,
        read: &mut dyn FnMut(u64),
        chunks: &mut Vec<Found>,
    ) -> io::Result<u64> {
        let (mut filled, mut total, mut ended) = (0, 0, false);
        let first = chunks.len();
        while !ended {
            let room = ((self.buffer.len() - filled) as u64).min(length - total) as usize;
            match from.read(&mut self.buffer[filled..filled + room]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
                Ok(0) => ended = true,
                Ok(n) => {
                    (filled, total) = (filled + n, total + n as u64);
                    read(n as u64);
                    // Small reads, as pipes have them, are gathered.
                    if total < length && filled < self.buffer.len() {
                        continue;
                    }
                    ended = total == length;
                }
            }
            let (mut begin, entered) = (0, chunks.len());
            while let Some(chunk) = self.next(begin, filled, ended) {
                begin = chunk.end;
                let found = self.tell(chunk, &|print| ask(print, (chunks.len() - first) as u64))?;
                chunks.push(found);
            }
            if self.cut.compress == Compress::Whole {
                self.look_at_pieces(&mut chunks[entered..])?;
            }
            self.buffer.copy_within(begin..filled, 0);
            filled -= begin;
        }
        Ok(total)
    }

    /// The chunk that begins at a byte; nothing where what is read does not reach its end.
    fn next(&self, begin: usize, filled: usize, last: bool) -> Option<Range<usize>> {
        let rest = filled - begin;
        let (most, length) = match self.cut.chunking {
            Chunking::Fixed { size } => (size as usize, rest.min(size as usize)),
            Chunking::Fastcdc { min, average, max } => {
                if rest == 0 || (!last && rest < max as usize) {
                    return None;
                }
                let bytes = &self.buffer[begin..filled.min(begin + max as usize)];
                let cutter = FastCDC::new(bytes, min as usize, average as usize, max as usize);
                (max as usize, cutter.cut(0, bytes.len()).1)
            }
        };
        (rest > 0 && (last || rest >= most)).then(|| begin..begin + length)
    }

    fn tell(&mut self, range: Range<usize>, ask: &dyn Fn(&[u8; MOST_PRINT]) -> Ask) -> io::Result<Found> {
        let chunk = &self.buffer[range];
        let print = *blake3::keyed_hash(&self.cut.key, chunk).as_bytes();
        let ask = self.meter.as_ref().map_or(Ask::Nothing, |_| ask(&print));
        let (ratio, lz4, entropy) = match &mut self.meter {
            Some(meter) => meter.tell(chunk, ask)?,
            None => (Ratio::UNKNOWN, 0, 0.0),
        };
        let is_looked_at = self.cut.compress == Compress::Whole && ask != Ask::Nothing;
        let parts =
            if is_looked_at { Parts::of(chunk, self.cut.chunking.average()) } else { Parts::default() };
        let packed = Packed::new(chunk.len() as u32, ratio);
        Ok(Found { packed, entropy, lz4, pieces: Default::default(), parts, print })
    }

    /// Compresses some pieces of the chunks that the buffer begins with: one in [`ONE_IN`] of those that begin with a new one.
    fn look_at_pieces(&mut self, chunks: &mut [Found]) -> io::Result<()> {
        let Some(meter) = &mut self.meter else { return Ok(()) };
        for (scale, most) in Resemblance::PIECES.into_iter().enumerate() {
            let (mut first, mut at) = (0, 0);
            while first < chunks.len() {
                let (mut next, mut end) = (first, at);
                let size = |chunk: &Found| chunk.packed.size() as usize;
                while let Some(chunk) =
                    chunks.get(next).filter(|chunk| end + size(chunk) <= at + most.min(READ))
                {
                    (next, end) = (next + 1, end + size(chunk));
                }
                let head = &chunks[first];
                let is_drawn =
                    head.packed.ratio() != Ratio::UNKNOWN && draws(&self.buffer[at..at + size(head)]);
                if is_drawn && next > first + 1 {
                    // The first chunk has nothing before it, however large the piece.
                    let mut from = at + size(head);
                    let alone = meter.size(&self.buffer[at..from], scale > 0)?;
                    let together = meter.size(&self.buffer[at..end], scale > 0)?.saturating_sub(alone);
                    let mut pieces = Pieces { apart: 0, together };
                    for chunk in &chunks[first + 1..next] {
                        pieces.apart += meter.size(&self.buffer[from..from + size(chunk)], scale > 0)?;
                        from += size(chunk);
                    }
                    chunks[first].pieces[scale] = pieces;
                }
                // A chunk may be larger than the piece.
                let step = next.max(first + 1);
                at += chunks[first..step].iter().map(size).sum::<usize>();
                first = step;
            }
        }
        Ok(())
    }
}

/// Whether a piece is looked at that begins with this chunk: told by its end whatever the key is, so that two scans of the same
/// say the same (the hash is Fowler, Noll and Vo's, RFC 9923).
fn draws(chunk: &[u8]) -> bool {
    let end = &chunk[chunk.len().saturating_sub(64)..];
    let hash =
        end.iter().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    ((hash >> 24) as u8).is_multiple_of(ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads no more at once than it is told, as a pipe does.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = into.len().min(self.1).min(self.0.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn chunks_are_those_of_the_whole(length in 0usize..3_000_000, drop in 500usize..2_000_000, fixed: bool) {
            let mut bytes = vec![0; length];
            blake3::Hasher::new().finalize_xof().fill(&mut bytes);
            let chunking = if fixed { Chunking::Fixed { size: 4096 } } else { Chunking::default() };
            let cut = Cut { chunking, key: [7; 32], width: 12, compress: Compress::None };
            let mut found = Vec::new();
            let total = Chunker::new(cut).unwrap()
                .stream(&mut Drops(&bytes, drop), u64::MAX, &|_, _| Ask::Nothing, &mut |_| {}, &mut found).unwrap();
            prop_assert_eq!(total, length as u64);
            let whole: Vec<&[u8]> = match chunking {
                Chunking::Fixed { size } => bytes.chunks(size as usize).collect(),
                Chunking::Fastcdc { min, average, max } => {
                    FastCDC::new(&bytes, min as usize, average as usize, max as usize)
                        .map(|c| &bytes[c.offset..c.offset + c.length]).collect()
                }
            };
            prop_assert_eq!(found.len(), whole.len());
            for (found, chunk) in found.iter().zip(whole) {
                let print = blake3::keyed_hash(&[7; 32], chunk);
                prop_assert_eq!(&found.print, print.as_bytes());
            }
        }
    }
}
