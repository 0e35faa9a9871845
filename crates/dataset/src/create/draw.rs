//! Drawing numbers, sizes and orders.

use crate::chunks::Ratio;
use crate::profile::{Sizes, ratios};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Steps of a ratio for each doubling.
const RATIO_STEPS: f64 = 32.0;
/// Chunks up to which cells are drawn without replacement; beyond, the share of each kind of chunk is near enough by chance.
const MOST_COUNTED: u64 = 1 << 22;

/// Random numbers that follow from a seed, a generation and a user.
pub(super) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub fn new(seed: u64, generation: u64, user: u64) -> Draw {
        let mut whole = blake3::Hasher::new_derive_key("loadstone 2026 generations of a dataset");
        whole.update(&seed.to_le_bytes()).update(&generation.to_le_bytes());
        // The first user's numbers are those of a series that has only one.
        if user > 0 {
            whole.update(&user.to_le_bytes());
        }
        Draw(Xoshiro256PlusPlus::from_seed(*whole.finalize().as_bytes()))
    }

    /// From 0 to before `end`; 0 where there is nothing.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.0.next_u64()) * end as u128) >> 64) as usize
    }

    /// From 0 to before 1.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal, of mean 0 and deviation 1 (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Whether something of this chance happens.
    pub fn happens(&mut self, chance: f64) -> bool {
        self.uniform() < chance
    }

    /// A whole number whose mean is `count` times `factor`.
    pub fn scaled(&mut self, count: u32, factor: f64) -> u32 {
        self.rounded(f64::from(count) * factor).min(u64::from(u32::MAX)) as u32
    }

    /// One of the two whole numbers next to a number, which is their mean.
    pub fn rounded(&mut self, wanted: f64) -> u64 {
        wanted as u64 + u64::from(self.happens(wanted.fract()))
    }

    /// A ratio so many times as large, on average; what is unknown stays so.
    pub fn times(&mut self, ratio: Ratio, times: f64) -> Ratio {
        if ratio == Ratio::UNKNOWN {
            return ratio;
        }
        let steps = f64::from(ratio.0) + RATIO_STEPS * times.log2();
        Ratio(self.rounded(steps.clamp(1.0, 255.0)) as u8)
    }

    /// A seed for somebody else.
    pub fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            let other = self.below(i + 1);
            all.swap(i, other);
        }
    }

    /// Splits a whole into parts, none of which is empty if there are enough.
    pub fn split(&mut self, whole: usize, parts: &mut [usize]) {
        let count = parts.len();
        if count == 0 {
            return;
        }
        let each = usize::from(whole >= count);
        parts.fill(each);
        for _ in 0..count - 1 {
            let rest = whole - parts.iter().sum::<usize>();
            let part = self.below(count);
            parts[part] += self.below(rest + 1);
        }
        let rest = whole - parts.iter().sum::<usize>();
        parts[self.below(count)] += rest;
    }
}

/// Chunks that are alike: number of their size and of their ratio, how often they are there, and how many.
pub(super) type Cell = (u16, u8, u32, u32);

/// Sizes and ratios of new chunks, drawn as often as they were seen.
pub(super) struct CellDraw {
    cells: Vec<Cell>,
    /// Places in `cells` that are still to be drawn, shuffled.
    left: Vec<u32>,
    /// Sums of counts, where there are too many to shuffle.
    sums: Vec<u64>,
}

impl CellDraw {
    pub fn new(cells: impl Iterator<Item = Cell>) -> CellDraw {
        let cells: Vec<Cell> = cells.collect();
        let mut sum = 0;
        let sums = cells.iter().map(|(.., count)| {
            sum += u64::from(*count);
            sum
        });
        CellDraw { sums: sums.collect(), cells, left: Vec::new() }
    }

    /// Chunks that were seen.
    fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// A size from `least` to `most`, a ratio, and how often it is there; nothing where there are none.
    pub fn draw(&mut self, (least, most): (u32, u32), draw: &mut Draw) -> Option<(u32, Ratio, u32)> {
        let total = Some(self.total()).filter(|total| *total > 0)?;
        let cell = if total > MOST_COUNTED {
            let at = draw.below(total as usize) as u64;
            self.sums.partition_point(|sum| *sum <= at)
        } else {
            if self.left.is_empty() {
                let cells = (0u32..).zip(&self.cells);
                self.left =
                    cells.flat_map(|(i, (.., count))| std::iter::repeat_n(i, *count as usize)).collect();
                draw.shuffle(&mut self.left);
            }
            self.left.pop().unwrap_or(0) as usize
        };
        let (size, ratio, times, _) = self.cells[cell];
        let ((low, high), (first, last)) = (Sizes::range(size), ratios(ratio));
        let (low, high) = (low.clamp(least, most), high.clamp(least, most));
        let size = low + draw.below((high - low) as usize + 1) as u32;
        Some((size, Ratio(first + draw.below(usize::from(last - first) + 1) as u8), times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole() {
        let mut draw = Draw::new(1, 2, 0);
        for whole in 0..40 {
            for count in 1..4 {
                let mut parts = vec![0; count];
                draw.split(whole, &mut parts);
                assert_eq!(parts.iter().sum::<usize>(), whole);
                assert!(whole < count || parts.iter().all(|part| *part > 0), "{whole} {parts:?}");
            }
        }
    }

    #[test]
    fn a_deck_has_what_was_seen() {
        let cells = [(352, 1, 1, 3), (416, 9, 4, 5)];
        let (mut cell, mut draw) = (CellDraw::new(cells.into_iter()), Draw::new(3, 0, 0));
        let drawn: Vec<_> = (0..8).map(|_| cell.draw((1, 8192), &mut draw).unwrap()).collect();
        let of = |wanted: &dyn Fn(u32, u8, u32) -> bool| {
            drawn.iter().filter(|(size, ratio, times)| wanted(*size, ratio.0, *times)).count()
        };
        assert_eq!(of(&|size, ratio, times| (2048..2096).contains(&size) && ratio < 5 && times == 1), 3);
        // 8192 is the most.
        assert_eq!(of(&|size, ratio, times| size == 8192 && ratio > 32 && times == 4), 5);
        assert_eq!(CellDraw::new([].into_iter()).draw((1, 2), &mut draw), None);
    }

    #[test]
    fn scaled_counts_have_the_mean() {
        let mut draw = Draw::new(5, 0, 0);
        let sum: u32 = (0..10_000).map(|_| draw.scaled(3, 0.5)).sum();
        assert!((14_700..15_300).contains(&sum), "{sum}");
        assert_eq!(draw.scaled(7, 1.0), 7);
    }
}
