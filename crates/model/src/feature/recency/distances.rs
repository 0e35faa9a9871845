//! How many blocks were referenced at which LRU stack distance, as a model keeps it.
//!
//! Requests are drawn by the distance of their last block ([`crate::feature`], `reuse_distance`); what caches miss is a
//! matter of every block. So the model keeps the distances of all of them, too, in buckets that hold about equally
//! many: a cache of any size misses what lies beyond it, and no bucket may matter much.

use serde::{Deserialize, Serialize};

/// A bucket holds no more than one in this many references, unless a single fine bucket does.
const SHARE: u64 = 48;

/// Most buckets of a file.
pub(crate) const MOST: usize = 1 << 12;

/// log2 of the fine buckets of each power of two: within 1.6 %.
const BITS: u32 = 6;

/// Number of the fine bucket of a distance.
#[inline]
pub(crate) fn fine(distance: u64) -> usize {
    let shift = (u64::BITS - distance.leading_zeros()).saturating_sub(BITS + 1);
    ((u64::from(shift) << BITS) + (distance >> shift)) as usize
}

/// Smallest distance of a fine bucket.
fn first_of(fine: usize) -> u64 {
    let shift = (fine >> BITS).saturating_sub(1);
    ((fine - (shift << BITS)) as u64) << shift
}

/// References by stack distance: how many other blocks were referenced since the block was (Mattson et al., IBM Systems
/// Journal 9, 1970). Blocks have 4 KiB; reads and writes reference them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Distances {
    /// References to blocks that were not referenced before.
    pub new: u64,
    /// Smallest distance of each bucket, ascending, the first 0: a bucket reaches up to the next, the last one without
    /// end.
    pub first: Vec<u64>,
    /// References of each bucket.
    pub references: Vec<u64>,
}

impl Distances {
    /// All references.
    pub fn total(&self) -> u64 {
        self.references.iter().fold(self.new, |sum, n| sum.saturating_add(*n))
    }

    /// What of it breaks a law of the format.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        match self {
            _ if self.first.len() != self.references.len() => {
                Some("its stack distances do not have as many references as buckets")
            }
            _ if self.first.len() > MOST => Some("its stack distances have too many buckets"),
            _ if self.first.first().is_some_and(|first| *first != 0)
                || !self.first.is_sorted_by(|a, b| a < b) =>
            {
                Some("its stack distances do not ascend from 0")
            }
            _ => None,
        }
    }

    /// The same with no bucket of fewer references than `least`: a smaller one joins the one before, or else the next.
    pub(crate) fn coarser(&self, least: u64) -> Distances {
        let mut coarse = Distances { new: self.new, ..Distances::default() };
        for (&first, &n) in self.first.iter().zip(&self.references) {
            match coarse.references.last_mut() {
                Some(before) if n < least || *before < least => *before = before.saturating_add(n),
                _ => {
                    coarse.first.push(first);
                    coarse.references.push(n);
                }
            }
        }
        coarse
    }
}

/// Counts of references by fine bucket.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    new: u64,
    fine: Vec<u64>,
}

impl Counts {
    /// Takes so many references at one distance.
    #[inline]
    pub fn add(&mut self, distance: Option<u64>, references: u64) {
        let Some(distance) = distance else {
            self.new += references;
            return;
        };
        let at = fine(distance);
        if at >= self.fine.len() {
            self.fine.resize(at + 1, 0);
        }
        self.fine[at] += references;
    }

    /// Buckets of about as many references each.
    pub fn distances(&self) -> Distances {
        let all = self.fine.iter().sum::<u64>() + self.new;
        let mut found = Distances { new: self.new, ..Distances::default() };
        for (at, &n) in self.fine.iter().enumerate().filter(|(_, n)| **n > 0) {
            match found.references.last_mut() {
                Some(before) if (*before + n).saturating_mul(SHARE) <= all => *before += n,
                None => {
                    found.first.push(0);
                    found.references.push(n);
                }
                _ => {
                    found.first.push(first_of(at));
                    found.references.push(n);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fine_buckets_are_narrow_and_in_order(distance in prop_oneof![0u64..5000, any::<u64>()]) {
            let (at, next) = (fine(distance), fine(distance.saturating_add(1)));
            prop_assert!(next == at || next == at + 1, "{} {}", at, next);
            let first = first_of(at);
            prop_assert!(first <= distance && fine(first) == at);
            prop_assert!(distance - first <= distance >> BITS);
        }

        #[test]
        fn nothing_is_lost_in_buckets_of_about_the_same(
            distances in proptest::collection::vec(proptest::option::of(0u64..100_000), 0..3000), least in 0u64..200,
        ) {
            let mut counts = Counts::default();
            distances.iter().for_each(|distance| counts.add(*distance, 1));
            let found = counts.distances();
            prop_assert_eq!(found.wrong(), None);
            prop_assert_eq!(found.total(), distances.len() as u64);
            prop_assert_eq!(found.new, distances.iter().filter(|d| d.is_none()).count() as u64);
            for (i, (&first, &n)) in found.first.iter().zip(&found.references).enumerate() {
                let end = found.first.get(i + 1).copied().unwrap_or(u64::MAX);
                prop_assert_eq!(n, distances.iter().flatten().filter(|d| (first..end).contains(d)).count() as u64);
            }
            // Two neighbours hold more than a share, or they would be one.
            let pairs = found.references.windows(2).all(|pair| (pair[0] + pair[1]) * SHARE > distances.len() as u64);
            prop_assert!(pairs);
            let coarse = found.coarser(least);
            prop_assert_eq!((coarse.wrong(), coarse.total()), (None, found.total()));
            let small = coarse.references.iter().filter(|n| **n < least).count();
            prop_assert!(small <= 1, "{:?}", coarse);
        }
    }
}
