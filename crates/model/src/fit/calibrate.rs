//! What is learned from the first requests before counting starts: common values, region widths.

use crate::feature::Context;
use loadstone_trace::{Batch, NONE};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Requests looked at.
pub(crate) const REQUESTS: usize = 1_000_000;

/// Share of the requests a value must hold to get a bucket of its own.
const COMMON: f64 = 0.01;

/// Most values with buckets of their own.
const MOST: usize = 32;

/// log2 of the tallies that tell at a glance which values may be common; they fit the second-level cache.
const TALLIES: u32 = 15;

/// Gathers values to find the common ones.
#[derive(Default)]
pub(crate) struct Common {
    values: Vec<i64>,
    total: u64,
}

impl Common {
    pub fn add(&mut self, values: &[i64]) {
        self.total += values.len() as u64;
        self.values.extend(values.iter().filter(|v| **v != NONE));
    }

    /// The common values, ascending.
    pub fn values(self) -> Vec<i64> {
        let least = (self.total as f64 * COMMON).max(2.0);
        // Most values are rare: only those whose tally, shared with others, is large enough are counted.
        let mut tallies = vec![0u64; 1 << TALLIES];
        let tally = |value: i64| (value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TALLIES);
        self.values.iter().for_each(|&value| tallies[tally(value) as usize] += 1);
        let mut counts: FxHashMap<i64, u64> = FxHashMap::default();
        for &value in self.values.iter().filter(|&&value| tallies[tally(value) as usize] as f64 >= least) {
            *counts.entry(value).or_default() += 1;
        }
        let mut common: Vec<(i64, u64)> = counts.into_iter().filter(|(_, n)| *n as f64 >= least).collect();
        common.sort_unstable_by_key(|&(value, n)| (std::cmp::Reverse(n), value));
        common.truncate(MOST);
        let mut values: Vec<i64> = common.into_iter().map(|(value, _)| value).collect();
        values.sort_unstable();
        values
    }
}

/// Extends each object's extent by the requests of a batch.
pub(crate) fn extend(extents: &mut Vec<i64>, batch: &Batch) {
    let Some(&first) = batch.object.first() else { return };
    let most = batch.object.iter().fold(0, |most, &object| most.max(object)) as usize;
    if most >= extents.len() {
        extents.resize(most + 1, NONE);
    }
    // Neighbours often are of one object, whose extent stays at hand.
    let (mut current, mut extent) = (first, extents[first as usize].max(0));
    for ((&object, &offset), &size) in batch.object.iter().zip(&batch.offset).zip(&batch.size) {
        if object != current {
            extents[current as usize] = extent;
            (current, extent) = (object, extents[object as usize].max(0));
        }
        extent = extent.max(if offset == NONE { 0 } else { offset.saturating_add(size.max(0)) });
    }
    extents[current as usize] = extent;
}

/// Smallest width of a region: 4 KiB.
const LEAST_SHIFT: u8 = 12;

/// Lays out about `regions` regions of a power of two over each object.
pub(crate) fn regions(extents: &[i64], regions: u32) -> Context {
    let shift = |extent: i64| -> u8 {
        let width = (extent.max(1) as u64).div_ceil(u64::from(regions.max(1))).next_power_of_two();
        (width.trailing_zeros() as u8).clamp(LEAST_SHIFT, 62)
    };
    let shifts: Vec<u8> = extents.iter().map(|&e| shift(e)).collect();
    let other_shift = shifts.iter().copied().max().unwrap_or(LEAST_SHIFT);
    Context { region_shift: Arc::new(shifts), other_shift, ..Context::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_values_hold_a_hundredth_each() {
        let mut common = Common::default();
        common.add(&(0..1000).map(|i| if i % 10 == 0 { 4096 } else { i }).collect::<Vec<i64>>());
        common.add(&[NONE; 10]);
        assert_eq!(common.values(), [4096]);
    }

    #[test]
    fn regions_are_powers_of_two_that_cover_the_object() {
        let context = regions(&[1 << 30, 5000, NONE], 64);
        assert_eq!(*context.region_shift, [24, 12, 12]);
        assert_eq!(context.shift(7), 24);
    }
}
