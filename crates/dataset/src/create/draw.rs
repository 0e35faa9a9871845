//! Drawing numbers, sizes and orders.

use crate::chunks::Ratio;
use crate::profile::{Sizes, ratios};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

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

/// Chunks that are alike: number of their size and of their ratio, how often they are there, and how many.
pub(super) type Cell = (u16, u8, u32, u32);

/// Sizes and ratios of new chunks, drawn as often as they were seen.
pub(super) struct Deck {
    cells: Vec<Cell>,
    /// Places in `cells` that are still to be drawn, shuffled.
    left: Vec<u32>,
    /// Sums of counts, where there are too many for a deck.
    sums: Vec<u64>,
}

impl Deck {
    pub fn new(cells: impl Iterator<Item = Cell>) -> Deck {
        let cells: Vec<Cell> = cells.collect();
        let mut sum = 0;
        let sums = cells.iter().map(|(.., count)| {
            sum += u64::from(*count);
            sum
        });
        Deck { sums: sums.collect(), cells, left: Vec::new() }
    }

    /// Chunks that were seen.
    fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// A size from `least` to `most`, a ratio, and how often it is there; nothing where there are none.
    pub fn draw(&mut self, (least, most): (u32, u32), draw: &mut Draw) -> Option<(u32, Ratio, u32)> {
        let total = Some(self.total()).filter(|total| *total > 0)?;
        let cell = if total > DECK {
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

/// Decks of chunks that are there as often each, so that those which follow each other can be.
pub(super) struct Packs {
    decks: Vec<Deck>,
    /// How often chunks of each are there, ascending.
    times: Vec<u32>,
    /// Chunks of each that are still to be drawn, and of all.
    left: Vec<u64>,
    all: u64,
    /// The one that chunks come from.
    at: usize,
}

impl Packs {
    pub fn new(cells: impl Iterator<Item = Cell>) -> Packs {
        let mut packs: BTreeMap<u32, Vec<Cell>> = BTreeMap::new();
        cells.for_each(|cell| packs.entry(cell.2).or_default().push(cell));
        let times = packs.keys().copied().collect();
        let decks: Vec<_> = packs.into_values().map(|cells| Deck::new(cells.into_iter())).collect();
        Packs { left: vec![0; decks.len()], all: 0, decks, times, at: 0 }
    }

    /// As of [`Deck::draw`]; `other`: whichever comes next, and not one that is there as often as the last. `files`: how many can
    /// have it. What is there in as many comes first, as later some file would have to have it twice, and what is there more often
    /// last.
    pub fn draw(
        &mut self,
        limits: (u32, u32),
        (other, files): (bool, u32),
        draw: &mut Draw,
    ) -> Option<(u32, Ratio, u32)> {
        if self.all == 0 {
            self.left = self.decks.iter().map(Deck::total).collect();
            self.all = self.left.iter().sum();
        }
        let few = self.times.partition_point(|times| *times <= files);
        let exact = few.checked_sub(1).filter(|at| self.times[*at] == files && self.left[*at] > 0);
        if let Some(exact) = exact {
            self.at = exact;
        } else if other || self.at >= few || self.left.get(self.at)? == &0 {
            let (few, often) = self.left.split_at(few);
            let sum: u64 = few.iter().sum();
            self.at = if sum > 0 {
                let mut at = draw.below(sum as usize) as u64;
                few.iter().position(|left| {
                    let here = at < *left;
                    at = at.saturating_sub(*left);
                    here
                })?
            } else {
                few.len() + often.iter().position(|left| *left > 0)?
            };
        }
        *self.left.get_mut(self.at)? -= 1;
        self.all -= 1;
        self.decks[self.at].draw(limits, draw)
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
        let (mut deck, mut draw) = (Deck::new(cells.into_iter()), Draw::new(3, 0, 0));
        let drawn: Vec<_> = (0..8).map(|_| deck.draw((1, 8192), &mut draw).unwrap()).collect();
        let of = |wanted: &dyn Fn(u32, u8, u32) -> bool| {
            drawn.iter().filter(|(size, ratio, times)| wanted(*size, ratio.0, *times)).count()
        };
        assert_eq!(of(&|size, ratio, times| (2048..2096).contains(&size) && ratio < 5 && times == 1), 3);
        // 8192 is the most.
        assert_eq!(of(&|size, ratio, times| size == 8192 && ratio > 32 && times == 4), 5);
        assert_eq!(Deck::new([].into_iter()).draw((1, 2), &mut draw), None);
    }

    #[test]
    fn packs_are_drawn_from_one_after_the_other_and_whole() {
        let cells = [(352, 1, 3, 40), (416, 9, 4, 50), (352, 5, 4, 10), (380, 2, 9, 1)];
        let (mut packs, mut draw) = (Packs::new(cells.into_iter()), Draw::new(4, 0, 0));
        for _ in 0..2 {
            let times: Vec<_> =
                (0..101).map(|i| packs.draw((1, 8192), (i % 20 == 0, 1000), &mut draw).unwrap().2).collect();
            let of = |wanted: u32| times.iter().filter(|times| **times == wanted).count();
            assert_eq!((of(3), of(4), of(9)), (40, 60, 1));
            // Another one where it is asked for, and where one is used up.
            assert!(times.windows(2).filter(|pair| pair[0] != pair[1]).count() <= 5 + 3, "{times:?}");
        }
        assert_eq!(Packs::new([].into_iter()).draw((1, 2), (true, 5), &mut draw), None);
        // With four files left what is there four times comes first, and with two what is there more often last.
        let times = [4, 4].map(|_| packs.draw((1, 8192), (true, 4), &mut draw).unwrap().2);
        assert_eq!(times, [4, 4]);
        let mut times = (0..99).map(|_| packs.draw((1, 8192), (true, 8), &mut draw).unwrap().2);
        assert!(times.by_ref().take(98).all(|times| times < 9) && times.next() == Some(9));
    }

    #[test]
    fn scaled_counts_have_the_mean() {
        let mut draw = Draw::new(5, 0, 0);
        let sum: u32 = (0..10_000).map(|_| draw.scaled(3, 0.5)).sum();
        assert!((14_700..15_300).contains(&sum), "{sum}");
        assert_eq!(draw.scaled(7, 1.0), 7);
    }
}
