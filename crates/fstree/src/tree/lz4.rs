//! What lz4 makes of chunks beside what Zstandard does.
//!
//! A ratio of one codec leaves open how much of it is the match finder's part and how much that of entropy coding. lz4 has no
//! entropy coder. So both sizes tell the two apart.

use crate::chunks::Ratio;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Classes of sizes, one for each doubling.
const SIZES: usize = 24;
/// Ratios of one class: a quarter of a doubling.
const STEPS: u8 = 8;
/// Classes of ratios.
const RATIOS: usize = 256 / STEPS as usize;
/// Parts in which shares are told.
const WHOLE: f64 = 1000.0;

/// Bytes that lz4 makes of chunks for each 1,000 that Zstandard does, by their size and ratio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lz4(Vec<Class>);

/// Logarithm of the size in bytes to base 2, quarters of a doubling of the ratio, and bytes for each 1,000.
type Class = (u8, u8, u16);

impl Lz4 {
    /// Whether classes are such as chunks can have.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.0.iter().all(|(size, ratio, share)| {
            usize::from(*size) < SIZES && usize::from(*ratio) < RATIOS && (1..=10_000).contains(share)
        })
    }

    /// The same of any chunk: a class that has no chunks is as the nearest one is.
    pub(crate) fn shares(&self) -> Shares {
        let nearest = |size: usize, ratio: usize| {
            let far = |class: &&Class| {
                let by = |one: u8, other: usize| usize::from(one).abs_diff(other);
                // Ratios tell more than sizes.
                (by(class.1, ratio) * 2 + by(class.0, size), class.0)
            };
            self.0.iter().min_by_key(far).map_or(1.0, |class| f64::from(class.2) / WHOLE)
        };
        let of_size = |size| (0..RATIOS).map(|ratio| nearest(size, ratio)).collect();
        Shares((0..SIZES).map(of_size).collect())
    }
}

/// [`Lz4`] for every class.
pub(crate) struct Shares(Vec<Vec<f64>>);

impl Shares {
    /// The ratio of lz4 of a chunk of so many bytes and a ratio of Zstandard.
    pub fn ratio(&self, size: u32, zstd: Ratio) -> f64 {
        let (size, ratio) = class(size, zstd);
        zstd.value() / self.0[usize::from(size)][usize::from(ratio)]
    }
}

/// What both make of chunks, bytes, by class.
#[derive(Debug, Clone, Default)]
pub struct Lz4Sums(BTreeMap<(u8, u8), [f64; 2]>);

impl Lz4Sums {
    /// Adds a chunk of so many bytes, its ratio by Zstandard, and what lz4 makes of it.
    pub fn add(&mut self, size: u32, zstd: Ratio, lz4: u32) {
        let sums = self.0.entry(class(size, zstd)).or_default();
        sums[0] += f64::from(size) / zstd.value();
        sums[1] += f64::from(lz4);
    }

    /// The shares; nothing where no chunk was added.
    #[must_use]
    pub fn told(&self) -> Option<Lz4> {
        let share = |sums: &[f64; 2]| (sums[1] / sums[0] * WHOLE).round().clamp(1.0, 10.0 * WHOLE) as u16;
        let classes = self.0.iter().map(|((size, ratio), sums)| (*size, *ratio, share(sums)));
        (!self.0.is_empty()).then(|| Lz4(classes.collect()))
    }
}

fn class(size: u32, zstd: Ratio) -> (u8, u8) {
    (size.max(1).ilog2().min(SIZES as u32 - 1) as u8, zstd.0.saturating_sub(1) / STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_class_or_the_nearest_one() {
        let mut sums = Lz4Sums::default();
        assert_eq!(sums.told(), None);
        // Two of one class, of another ratio each, and one of padding.
        sums.add(8192, Ratio(33), 6000);
        sums.add(9000, Ratio(34), 6600);
        sums.add(8192, Ratio(255), 64);
        let told = sums.told().unwrap();
        assert!(told.is_sound());
        let text = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::from_str::<Lz4>(&text).unwrap(), told);
        let shares = told.shares();
        let bytes = |size: u32, ratio| f64::from(size) / shares.ratio(size, ratio);
        assert!((bytes(8192, Ratio(33)) / 6000.0 - 1.0).abs() < 0.02, "{text}");
        assert!((bytes(16_000, Ratio(33)) / 8000.0 - 1.5).abs() < 0.03, "{text}");
        assert!((bytes(8192, Ratio(255)) / 64.0 - 1.0).abs() < 0.02, "{text}");
        assert_eq!(Lz4::default().shares().ratio(4096, Ratio(33)), 2.0);
    }

    #[test]
    fn classes_that_no_chunk_has_are_not_sound() {
        for odd in [(24, 0, 1), (0, 32, 1), (0, 0, 0), (0, 0, 10_001)] {
            assert!(!Lz4(vec![odd]).is_sound(), "{odd:?}");
        }
    }
}
