//! Drawing cells without replacement.

/// Cards dealt at once: few enough to stay in a cache near the core.
const ROUND: u64 = 1 << 16;

/// A deck with as many cards of each cell as the cell has requests; drawn empty, it is whole again.
///
/// Whoever draws a whole deck gets exactly the histogram. A large deck is dealt in rounds: with the cards
/// laid in a line, cell by cell, round `k` of `n` has every `n`-th from the `k`-th on, so each round has of
/// each cell its share.
pub(super) struct Deck {
    cells: Vec<u32>,
    /// Cards of each cell and those before it.
    ends: Vec<u64>,
    /// What is left of this round, in any order.
    cards: Vec<u32>,
    rounds: u64,
    /// The round that comes next.
    round: u64,
}

impl Deck {
    /// Of cells, each with how many cards it has.
    pub fn new(cells: impl IntoIterator<Item = (u32, u64)>) -> Deck {
        Deck::in_rounds(cells, ROUND)
    }

    fn in_rounds(cells: impl IntoIterator<Item = (u32, u64)>, most: u64) -> Deck {
        let mut deck = Deck { cells: Vec::new(), ends: Vec::new(), cards: Vec::new(), rounds: 1, round: 0 };
        let mut end = 0;
        for (cell, count) in cells {
            end += count;
            deck.cells.push(cell);
            deck.ends.push(end);
        }
        deck.rounds = end.div_ceil(most).max(1);
        deck
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
    /// When the deck has no cells.
    #[inline]
    pub fn draw(&mut self, random: impl FnOnce(u64) -> u64) -> u32 {
        if self.cards.is_empty() {
            self.deal();
        }
        self.cards.swap_remove(random(self.cards.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_whole_deck_is_the_histogram_and_each_round_its_share(
            counts in proptest::collection::vec(1u64..20, 1..700), most in 1u64..10_000, seed in any::<u64>(),
        ) {
            let total: u64 = counts.iter().sum();
            let mut deck = Deck::in_rounds((7..).zip(counts.iter().copied()), most);
            let mut state = seed;
            for _ in 0..3 {
                let (mut drawn, mut before, mut done) = (vec![0; counts.len()], vec![0; counts.len()], 0);
                for _ in 0..total {
                    let card = deck.draw(|n| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        ((u128::from(state) * u128::from(n)) >> 64) as u64
                    });
                    drawn[card as usize - 7] += 1;
                    if deck.cards.is_empty() {
                        done += 1;
                        for ((drawn, before), count) in drawn.iter().zip(&mut before).zip(&counts) {
                            let here: u64 = drawn - std::mem::replace(before, *drawn);
                            prop_assert!((count / deck.rounds..=count.div_ceil(deck.rounds)).contains(&here));
                        }
                    }
                }
                prop_assert_eq!(done, deck.rounds);
                prop_assert_eq!(&drawn, &counts);
            }
        }
    }
}
