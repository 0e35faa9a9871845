//! Drawing cells with replacement from the slice of what is given.

use crate::cells::{Cells, Layout};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The cells of a table, grouped by the codes of some given dimensions.
struct Level {
    /// Bits of the key that are given.
    mask: u64,
    /// Cells in order of their slice.
    order: Vec<u32>,
    /// Requests up to and including each of `order`, over all slices.
    sums: Vec<u64>,
    slices: FxHashMap<u64, Range<u32>>,
}

/// A table drawn from by slices; a slice that is empty backs off to one that is given less.
pub(super) struct Slices {
    levels: Vec<Level>,
}

impl Slices {
    /// `given` are positions in the table, in the order in which they are dropped.
    pub fn new(cells: &Cells, layout: &Layout, given: &[usize]) -> Slices {
        let levels = (0..=given.len())
            .map(|dropped| {
                let mask = given[dropped..].iter().fold(0, |mask, &at| mask | layout.place(at).bits());
                let mut order: Vec<u32> = (0..cells.len() as u32).collect();
                order.sort_by_key(|&i| cells.keys[i as usize] & mask);
                let mut level = Level { mask, order, sums: Vec::new(), slices: FxHashMap::default() };
                let mut sum = 0;
                for (at, &cell) in level.order.iter().enumerate() {
                    sum += cells.counts[cell as usize];
                    level.sums.push(sum);
                    let slice = level.slices.entry(cells.keys[cell as usize] & mask);
                    slice.or_insert(at as u32..at as u32).end = at as u32 + 1;
                }
                level
            })
            .collect();
        Slices { levels }
    }

    /// Draws a cell: its position, and how many dimensions had to be dropped.
    ///
    /// `key` holds the given codes; `None` for those (by bit mask `unknown`) that have no code.
    pub fn draw(&self, key: u64, unknown: u64, random: impl FnOnce(u64) -> u64) -> (usize, usize) {
        for (dropped, level) in self.levels.iter().enumerate() {
            if level.mask & unknown != 0 {
                continue;
            }
            let Some(slice) = level.slices.get(&(key & level.mask)) else { continue };
            let (from, to) = (slice.start as usize, slice.end as usize);
            let before = if from == 0 { 0 } else { level.sums[from - 1] };
            let target = before + random(level.sums[to - 1] - before);
            let at = from + level.sums[from..to].partition_point(|&s| s <= target);
            return (level.order[at] as usize, dropped);
        }
        unreachable!("the last level is given nothing, and no table that is drawn from is empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::decode::below;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn a_slice_is_drawn_in_proportion_and_empty_ones_back_off_in_order() {
        // Two given dimensions (codes 1..3 and 1..2) and one that is set (codes 0..8).
        let layout = Layout::new(&[2, 2, 4]).unwrap();
        let mut pairs = Vec::new();
        for (a, b) in [(1, 1), (1, 2), (2, 1)] {
            for c in 0..8 {
                pairs.push((layout.pack([a, b, c]), u64::from(a * 10 + b * 3 + c * c + 1)));
            }
        }
        let cells = Cells::from_pairs(pairs);
        let slices = Slices::new(&cells, &layout, &[1, 0]);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let inside = |key: u64, a: Option<u32>, b: Option<u32>| {
            a.is_none_or(|a| layout.code(key, 0) == a) && b.is_none_or(|b| layout.code(key, 1) == b)
        };
        // (given a, given b, what is left of it after backing off, dimensions dropped)
        for (a, b, left_a, left_b, expect) in
            [(1, 2, Some(1), Some(2), 0), (2, 2, Some(2), None, 1), (3, 1, None, None, 2)]
        {
            let key = layout.pack([a, b, 0]);
            let n = 20_000u32;
            let mut drawn = vec![0u32; cells.len()];
            for _ in 0..n {
                let (at, dropped) = slices.draw(key, 0, |n| below(&mut rng, n));
                assert_eq!(dropped, expect);
                drawn[at] += 1;
            }
            let total: u64 = (0..cells.len())
                .filter(|&i| inside(cells.keys[i], left_a, left_b))
                .map(|i| cells.counts[i])
                .sum();
            let (mut chi2, mut bins) = (0.0, 0);
            for (i, &count) in drawn.iter().enumerate() {
                if inside(cells.keys[i], left_a, left_b) {
                    let expected = f64::from(n) * cells.counts[i] as f64 / total as f64;
                    chi2 += (f64::from(count) - expected).powi(2) / expected;
                    bins += 1;
                } else {
                    assert_eq!(count, 0);
                }
            }
            // Mean bins - 1, standard deviation sqrt(2 (bins - 1)); five of them are never reached by chance.
            let freedom = f64::from(bins - 1);
            assert!(
                chi2 < freedom + 5.0 * (2.0 * freedom).sqrt(),
                "chi-square {chi2} with {freedom} degrees"
            );
        }
        // A code the model never saw is dropped too.
        let (_, dropped) =
            slices.draw(layout.pack([1, 0, 0]), layout.place(1).bits(), |n| below(&mut rng, n));
        assert_eq!(dropped, 1);
    }
}
