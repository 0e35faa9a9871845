//! How many distinct 4 KiB blocks are touched: exact while it fits, then a known sample of regions.

use crate::recency::mix;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Bytes of a block.
pub const BLOCK: u64 = 4096;

/// Blocks of a region as a power of two: 256 MiB.
const REGION: u32 = 16;

/// Bytes the sets may take before regions are sampled.
const MOST_BYTES: usize = 96 << 20;

/// Longer requests than this are damage or discards of a whole device; they are left out.
const LONGEST: u64 = 64 << 30;

/// The touched blocks of a region.
#[derive(Debug)]
enum Blocks {
    /// Sorted, while they are few.
    Few(Vec<u16>),
    /// One bit each.
    Many(Box<[u64; 1024]>),
    /// Every block.
    All,
}

/// A set of touched blocks.
#[derive(Debug)]
pub struct Footprint {
    regions: FxHashMap<(u32, u64), Blocks>,
    bytes: usize,
    most: usize,
    /// Regions whose hash has this many low bits zero are counted.
    sampling: u32,
    skipped: u64,
}

/// The footprint as it is shown.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Shown {
    /// Distinct blocks of 4 KiB read or written.
    pub blocks: u64,
    /// The same in bytes.
    pub bytes: u64,
    /// Whether every block was counted.
    pub exact: bool,
    /// Otherwise: one region of 256 MiB in so many was.
    pub sampled_one_in: u64,
    /// Requests of more than 64 GiB, left out.
    pub skipped: u64,
}

impl Default for Footprint {
    fn default() -> Self {
        Footprint { regions: FxHashMap::default(), bytes: 0, most: MOST_BYTES, sampling: 0, skipped: 0 }
    }
}

impl Blocks {
    fn bytes(&self) -> usize {
        48 + match self {
            Blocks::Few(list) => list.capacity() * 2,
            Blocks::Many(_) => 8192,
            Blocks::All => 0,
        }
    }

    fn count(&self) -> u64 {
        match self {
            Blocks::Few(list) => list.len() as u64,
            Blocks::Many(bits) => bits.iter().map(|w| u64::from(w.count_ones())).sum(),
            Blocks::All => 1 << REGION,
        }
    }

    /// Adds the blocks from `first` to `last`, both included.
    fn add(&mut self, first: u16, last: u16) {
        if first == 0 && last == u16::MAX {
            *self = Blocks::All;
        }
        if let Blocks::Few(list) = self {
            let wide = usize::from(last - first) + 1;
            if list.len() + wide <= 4096 {
                for block in first..=last {
                    if let Err(at) = list.binary_search(&block) {
                        list.insert(at, block);
                    }
                }
                return;
            }
            let mut bits = Box::new([0u64; 1024]);
            for &block in list.iter() {
                bits[usize::from(block >> 6)] |= 1 << (block & 63);
            }
            *self = Blocks::Many(bits);
        }
        if let Blocks::Many(bits) = self {
            for (word, bits) in
                bits.iter_mut().enumerate().take(usize::from(last >> 6) + 1).skip(usize::from(first >> 6))
            {
                let low = if word == usize::from(first >> 6) { first & 63 } else { 0 };
                let high = if word == usize::from(last >> 6) { last & 63 } else { 63 };
                *bits |= (u64::MAX << low) & (u64::MAX >> (63 - high));
            }
        }
    }
}

impl Footprint {
    /// Adds the bytes of a request.
    pub fn add(&mut self, object: u32, offset: u64, size: u64) {
        if size == 0 {
            return;
        }
        if size > LONGEST {
            self.skipped += 1;
            return;
        }
        let (first, last) = (offset / BLOCK, (offset + size - 1) / BLOCK);
        for region in first >> REGION..=last >> REGION {
            if mix(object, region).trailing_zeros() < self.sampling {
                continue;
            }
            let start = region << REGION;
            let from = first.max(start) - start;
            let to = last.min(start + u64::from(u16::MAX)) - start;
            let blocks = self.regions.entry((object, region)).or_insert(Blocks::Few(Vec::new()));
            let before = blocks.bytes();
            blocks.add(from as u16, to as u16);
            self.bytes = self.bytes + blocks.bytes() - before;
        }
        while self.bytes + self.regions.len() * 48 > self.most && self.sampling < 40 {
            self.sampling += 1;
            let sampling = self.sampling;
            self.regions.retain(|&(object, region), _| mix(object, region).trailing_zeros() >= sampling);
            self.bytes = self.regions.values().map(Blocks::bytes).sum();
        }
    }

    /// As it is shown.
    pub fn show(&self) -> Shown {
        let counted: u64 = self.regions.values().map(Blocks::count).sum();
        let one_in = 1u64 << self.sampling;
        let blocks = counted.saturating_mul(one_in);
        let bytes = blocks.saturating_mul(BLOCK);
        Shown { blocks, bytes, exact: self.sampling == 0, sampled_one_in: one_in, skipped: self.skipped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn counts_as_a_set_does(requests in prop::collection::vec((0u32..3, 0u64..1 << 30, 0u64..40 << 20), 0..40)) {
            let (mut footprint, mut set) = (Footprint::default(), BTreeSet::new());
            for (object, offset, size) in requests {
                footprint.add(object, offset, size);
                if size > 0 {
                    set.extend((offset / BLOCK..=(offset + size - 1) / BLOCK).map(|b| (object, b)));
                }
            }
            let shown = footprint.show();
            prop_assert!(shown.exact);
            prop_assert_eq!(shown.blocks, set.len() as u64);
        }
    }

    #[test]
    fn a_sample_of_regions_comes_close_in_bounded_memory() {
        let mut footprint = Footprint { most: 1 << 20, ..Footprint::default() };
        for i in 0..200_000u64 {
            footprint.add(0, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16, 4096);
        }
        let shown = footprint.show();
        assert!(!shown.exact && footprint.bytes < 1 << 20);
        // Nearly all 200,000 blocks differ and hardly any crosses into a second one more than once.
        let truth = 400_000.0;
        assert!((shown.blocks as f64 - truth).abs() < 0.1 * truth, "{}", shown.blocks);
    }
}
