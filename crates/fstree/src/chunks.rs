//! The chunks of a series: dense numbers, with the size, compressibility and fingerprint of each.

use crate::index::Index;
use crate::{Error, Result};

/// Largest chunk, bytes.
pub const MOST_CHUNK: u32 = (1 << 24) - 1;
/// Steps of a compression ratio for each doubling: neighbours are 2.2 % apart.
const STEPS: f64 = 32.0;

/// How far a chunk compresses, in 32nds of a doubling from 1 on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct Ratio(pub u8);

impl Ratio {
    /// Of a chunk whose ratio was not measured.
    pub const UNKNOWN: Ratio = Ratio(0);

    /// The nearest one; below 1 a store keeps the data as it is.
    pub fn nearest(ratio: f64) -> Ratio {
        Ratio((1.0 + (ratio.max(1.0).log2() * STEPS).round()).min(255.0) as u8)
    }

    /// How many times smaller codecs make it; 1 where that is unknown.
    pub fn value(self) -> f64 {
        (f64::from(self.0.max(1) - 1) / STEPS).exp2()
    }
}

/// Chunks by their numbers.
#[derive(Default, Clone, PartialEq)]
pub struct Chunks {
    /// Size in the low 24 bits, ratio in the high 8.
    pub packed: Vec<u32>,
    /// `width` bytes each; none where chunks were made up.
    pub prints: Vec<u8>,
    /// Bytes of a fingerprint.
    pub width: usize,
}

impl Chunks {
    /// Chunks with fingerprints of `width` bytes; 0: without.
    pub fn new(width: usize) -> Chunks {
        Chunks { packed: Vec::new(), prints: Vec::new(), width }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Bytes of a chunk.
    pub fn size(&self, chunk: u32) -> u32 {
        self.packed[chunk as usize] & MOST_CHUNK
    }

    /// Gives a chunk that was made up another size.
    pub fn resize(&mut self, chunk: u32, size: u32) {
        debug_assert!(size <= MOST_CHUNK && self.width == 0);
        self.packed[chunk as usize] = Packed::new(size, self.ratio(chunk)).0;
    }

    /// How far it compresses.
    pub fn ratio(&self, chunk: u32) -> Ratio {
        Ratio((self.packed[chunk as usize] >> 24) as u8)
    }

    /// Its fingerprint; empty where chunks have none.
    pub fn print(&self, chunk: u32) -> &[u8] {
        &self.prints[chunk as usize * self.width..][..self.width]
    }

    /// Bytes of a fingerprint.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A new chunk without a fingerprint.
    ///
    /// # Errors
    /// When there are 2^32 - 1 of them.
    pub fn push(&mut self, size: u32, ratio: Ratio) -> Result<u32> {
        debug_assert!(size <= MOST_CHUNK && self.width == 0);
        self.add(Packed::new(size, ratio), &[])
    }

    /// A new chunk with its fingerprint.
    ///
    /// # Errors
    /// [`Error::Option`] where there are 2^32 - 1 of them.
    pub fn add(&mut self, packed: Packed, print: &[u8]) -> Result<u32> {
        let number = u32::try_from(self.packed.len()).ok().filter(|n| *n < u32::MAX);
        let number = number.ok_or_else(|| {
            Error::Option("2^32 distinct chunks: use larger chunks or fewer snapshots".into())
        })?;
        self.packed.push(packed.0);
        self.prints.extend_from_slice(print);
        Ok(number)
    }
}

/// Size and ratio of a chunk in 4 bytes.
#[derive(Clone, Copy)]
pub struct Packed(pub u32);

impl Packed {
    /// Of so many bytes, fewer than 2^24.
    pub fn new(size: u32, ratio: Ratio) -> Packed {
        Packed(size | u32::from(ratio.0) << 24)
    }

    /// Bytes.
    pub fn size(self) -> u32 {
        self.0 & MOST_CHUNK
    }

    /// How far it compresses.
    pub fn ratio(self) -> Ratio {
        Ratio((self.0 >> 24) as u8)
    }
}

/// Chunks found by their fingerprints.
#[derive(Default)]
pub struct Known {
    index: Index,
}

impl Known {
    /// The number of a chunk.
    pub fn find(&self, chunks: &Chunks, print: &[u8]) -> Option<u32> {
        self.index.find(first(print), |chunk| chunks.print(chunk) == print)
    }

    /// The number of a chunk, which is added where it is new.
    ///
    /// # Errors
    /// When there are 2^32 - 1 of them.
    pub fn enter(&mut self, chunks: &mut Chunks, packed: Packed, print: &[u8]) -> Result<u32> {
        match self.find(chunks, print) {
            Some(chunk) => Ok(chunk),
            None => self.add(chunks, packed, print),
        }
    }

    /// The number of a chunk that is not there yet.
    ///
    /// # Errors
    /// Those of [`Chunks::add`].
    pub fn add(&mut self, chunks: &mut Chunks, packed: Packed, print: &[u8]) -> Result<u32> {
        let chunk = chunks.add(packed, print)?;
        self.index.add(first(print), chunk, |chunk| first(chunks.print(chunk)));
        Ok(chunk)
    }
}

/// Fingerprints are random, so their beginnings are hashes.
fn first(print: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = print.len().min(8);
    bytes[..length].copy_from_slice(&print[..length]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_within_a_step() {
        for ratio in [1.0, 1.01, 1.5, 2.0, 3.7, 10.0, 200.0] {
            let told = Ratio::nearest(ratio).value();
            assert!((told / ratio - 1.0).abs() < 0.011, "{ratio} {told}");
        }
        assert_eq!(Ratio::nearest(0.9), Ratio::nearest(1.0));
        assert_eq!(Ratio::nearest(1e9).0, 255);
        assert!(Ratio::nearest(1.0) > Ratio::UNKNOWN);
    }

    #[test]
    fn a_fingerprint_has_one_number() {
        let (mut chunks, mut known) = (Chunks::new(12), Known::default());
        let print = |i: u32| {
            let mut print = [0; 12];
            print.copy_from_slice(&blake3::hash(&i.to_le_bytes()).as_bytes()[..12]);
            print
        };
        for round in 0..2 {
            for i in 0..10_000 {
                let packed = Packed::new(i, Ratio(7));
                assert_eq!(known.enter(&mut chunks, packed, &print(i)).unwrap(), i, "round {round}");
            }
        }
        assert_eq!(chunks.len(), 10_000);
        assert_eq!((chunks.size(77), chunks.ratio(77), chunks.print(77)), (77, Ratio(7), &print(77)[..]));
        assert_eq!(known.find(&chunks, &print(10_001)), None);
    }
}
