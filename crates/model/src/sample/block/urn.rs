//! Drawing cells without replacement.

use crate::sample::gaps::{Aim, LOOKS};

/// Cards dealt at once: few enough to stay in a cache near the core.
const ROUND: u64 = 1 << 16;

/// An urn with as many cards of each cell as the cell has requests; drawn empty, it is whole again.
///
/// Whoever draws a whole urn gets exactly the histogram. A large urn is dealt in rounds: with the cards
/// laid in a line, cell by cell, round `k` of `n` has every `n`-th from the `k`-th on, so each round has of
/// each cell its share.
pub(crate) struct Urn {
    cells: Vec<u32>,
    /// Cards of each cell and those before it.
    ends: Vec<u64>,
    /// What is left of this round, in any order.
    cards: Vec<u32>,
    rounds: u64,
    /// The round that comes next.
    round: u64,
}

impl Urn {
    /// Of cells, each with how many cards it has.
    pub fn new(cells: impl IntoIterator<Item = (u32, u64)>) -> Urn {
        Urn::in_rounds(cells, ROUND)
    }

    fn in_rounds(cells: impl IntoIterator<Item = (u32, u64)>, most: u64) -> Urn {
        let mut urn = Urn { cells: Vec::new(), ends: Vec::new(), cards: Vec::new(), rounds: 1, round: 0 };
        let mut end = 0;
        for (cell, count) in cells {
            end += count;
            urn.cells.push(cell);
            urn.ends.push(end);
        }
        urn.rounds = end.div_ceil(most).max(1);
        urn
    }

    fn deal(&mut self) {
        let mut next = self.round;
        for (&cell, &end) in self.cells.iter().zip(&self.ends) {
            while next < end {
                self.cards.push(cell);
                next += self.rounds;
            }
        }
        self.round = (self.round + 1) % self.rounds;
    }

    /// Takes a card and answers its cell; `random` gives a number below its argument.
    ///
    /// # Panics
    /// When the urn has no cells.
    #[inline]
    pub fn draw(&mut self, random: impl FnOnce(u64) -> u64) -> u32 {
        if self.cards.is_empty() {
            self.deal();
        }
        self.cards.swap_remove(random(self.cards.len() as u64) as usize)
    }

    /// The same where not any card will do: of the first two long ones the better, by what `gap` says of cells.
    ///
    /// # Panics
    /// When the urn has no cells.
    pub fn draw_for(
        &mut self,
        aim: Aim,
        gap: impl Fn(u32) -> i64,
        mut random: impl FnMut(u64) -> u64,
    ) -> u32 {
        if self.cards.is_empty() {
            self.deal();
        }
        let mut pick = || random(self.cards.len() as u64) as usize;
        let at = pick();
        let own = gap(self.cards[at]);
        let other = aim.minds(own).then(|| {
            let mut others = (0..LOOKS).map(|_| pick()).map(|at| (at, gap(self.cards[at])));
            others.find(|(_, gap)| aim.minds(*gap))
        });
        let at = match other.flatten() {
            Some((other, gap)) if aim.prefers(gap, own) => other,
            _ => at,
        };
        self.cards.swap_remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A number below `n`, and the state after it.
    fn random(state: &mut u64, n: u64) -> u64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((u128::from(*state) * u128::from(n)) >> 64) as u64
    }

    proptest! {
        #[test]
        fn a_whole_deck_is_the_histogram_and_each_round_its_share(
            counts in proptest::collection::vec(1u64..20, 1..700), most in 1u64..10_000, seed in any::<u64>(),
        ) {
            let total: u64 = counts.iter().sum();
            let mut urn = Urn::in_rounds((7..).zip(counts.iter().copied()), most);
            let mut state = seed;
            for _ in 0..3 {
                let (mut drawn, mut before, mut done) = (vec![0; counts.len()], vec![0; counts.len()], 0);
                for _ in 0..total {
                    let aim = (state & 1 << 40 != 0).then(|| Aim::of((state >> 50) as i64, 1, 300.0)).flatten();
                    let random = |n| random(&mut state, n);
                    let card = match aim {
                        Some(aim) => urn.draw_for(aim, i64::from, random),
                        None => urn.draw(random),
                    };
                    drawn[card as usize - 7] += 1;
                    if urn.cards.is_empty() {
                        done += 1;
                        for ((drawn, before), count) in drawn.iter().zip(&mut before).zip(&counts) {
                            let here: u64 = drawn - std::mem::replace(before, *drawn);
                            prop_assert!((count / urn.rounds..=count.div_ceil(urn.rounds)).contains(&here));
                        }
                    }
                }
                prop_assert_eq!(done, urn.rounds);
                prop_assert_eq!(&drawn, &counts);
            }
        }
    }

    #[test]
    fn where_time_is_short_the_shorter_of_long_ones_is_drawn_and_short_ones_are_as_often() {
        let mut urn = Urn::new([(10, 40), (1000, 5), (3000, 5)]);
        let mut state = 5u64;
        let mut random = |n| random(&mut state, n);
        let mut drawn = [0; 3];
        for _ in 0..1000 {
            let mut first: Vec<u32> = Vec::new();
            // 25 requests should take 1,000 where 10,200 are usual.
            let aim = Aim::of(1000, 25, 408.0).unwrap();
            (0..25).for_each(|_| first.push(urn.draw_for(aim, i64::from, &mut random)));
            (0..25).for_each(|_| _ = urn.draw(&mut random));
            first.iter().for_each(|gap| drawn[[10, 1000, 3000].iter().position(|g| g == gap).unwrap()] += 1);
        }
        // Half of each were there.
        assert!((19_700..20_300).contains(&drawn[0]), "{drawn:?}");
        assert!(drawn[1] > 3 * drawn[2] / 2, "{drawn:?}");
    }
}
