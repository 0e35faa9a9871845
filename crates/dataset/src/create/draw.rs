//! Drawing numbers, sizes and orders.

use crate::chunks::Ratio;
use crate::profile::{Sizes, ratios};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Draws up to which a deck is laid out; beyond, the share of each kind of chunk is near enough by chance.
const DECK: u64 = 1 << 22;

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

/// Sizes and ratios of new chunks, drawn as often as they were seen.
pub(super) struct Deck<'a> {
    sizes: &'a Sizes,
    /// Places in `sizes` that are still to be drawn, shuffled.
    left: Vec<u32>,
    /// Sums of counts, where there are too many for a deck.
    sums: Vec<u64>,
    least: u32,
    most: u32,
}

impl<'a> Deck<'a> {
    /// Sizes from `least` to `most`.
    pub fn new(sizes: &'a Sizes, least: u32, most: u32) -> Deck<'a> {
        let mut sum = 0;
        let sums: Vec<u64> = sizes
            .cells
            .iter()
            .map(|(.., count)| {
                sum += u64::from(*count);
                sum
            })
            .collect();
        Deck { sizes, left: Vec::new(), sums, least, most }
    }

    pub fn draw(&mut self, draw: &mut Draw) -> (u32, Ratio) {
        let total = self.sums.last().copied().unwrap_or(0);
        if total == 0 {
            // A profile that has no such chunk: its files have none at this place.
            return (8192.clamp(self.least, self.most), Ratio::UNKNOWN);
        }
        let cell = if total > DECK {
            let at = draw.below(total as usize) as u64;
            self.sums.partition_point(|sum| *sum <= at)
        } else {
            if self.left.is_empty() {
                let cells = (0u32..).zip(&self.sizes.cells);
                self.left =
                    cells.flat_map(|(i, (.., count))| std::iter::repeat_n(i, *count as usize)).collect();
                draw.shuffle(&mut self.left);
            }
            self.left.pop().unwrap_or(0) as usize
        };
        let (size, ratio, _) = self.sizes.cells[cell];
        let ((low, high), (first, last)) = (Sizes::range(size), ratios(ratio));
        let (low, high) = (low.clamp(self.least, self.most), high.clamp(self.least, self.most));
        let size = low + draw.below((high - low) as usize + 1) as u32;
        (size, Ratio(first + draw.below(usize::from(last - first) + 1) as u8))
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
        let sizes = Sizes { cells: vec![(352, 1, 3), (416, 9, 5)] };
        let (mut deck, mut draw) = (Deck::new(&sizes, 1, 8192), Draw::new(3, 0, 0));
        let drawn: Vec<_> = (0..8).map(|_| deck.draw(&mut draw)).collect();
        assert_eq!(
            drawn.iter().filter(|(size, ratio)| (2048..2096).contains(size) && ratio.0 < 5).count(),
            3
        );
        // 8192 is the most.
        assert_eq!(drawn.iter().filter(|(size, ratio)| *size == 8192 && ratio.0 > 32).count(), 5);
    }

    #[test]
    fn scaled_counts_have_the_mean() {
        let mut draw = Draw::new(5, 0, 0);
        let sum: u32 = (0..10_000).map(|_| draw.scaled(3, 0.5)).sum();
        assert!((14_700..15_300).contains(&sum), "{sum}");
        assert_eq!(draw.scaled(7, 1.0), 7);
    }
}
