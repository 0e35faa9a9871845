//! Drawing cells without replacement.

use crate::cells::Cells;

/// A deck with as many cards of each cell as the cell has requests; drawn empty, it is whole again.
///
/// A Fenwick tree over the counts: one walk from the root finds the card and takes it away. Whoever
/// draws a whole deck gets exactly the histogram.
pub(super) struct Deck {
    tree: Vec<u64>,
    left: u64,
    total: u64,
}

impl Deck {
    pub fn new(cells: &Cells) -> Deck {
        let mut deck =
            Deck { tree: vec![0; cells.len().next_power_of_two() + 1], left: 0, total: cells.total() };
        deck.fill(cells);
        deck
    }

    fn fill(&mut self, cells: &Cells) {
        self.tree.fill(0);
        self.tree[1..=cells.len()].copy_from_slice(&cells.counts);
        for i in 1..self.tree.len() {
            let parent = i + (i & i.wrapping_neg());
            if parent < self.tree.len() {
                self.tree[parent] += self.tree[i];
            }
        }
        self.left = self.total;
    }

    /// Takes a card and answers the position of its cell; `random` gives a number below its argument.
    #[inline]
    pub fn draw(&mut self, cells: &Cells, random: impl FnOnce(u64) -> u64) -> usize {
        if self.left == 0 {
            self.fill(cells);
        }
        let mut rest = random(self.left);
        self.left -= 1;
        let mut at = 0;
        let mut step = self.tree.len() - 1;
        while step > 0 {
            // Nobody can predict which way it goes, so nothing branches.
            let node = &mut self.tree[at + step];
            let right = u64::from(*node <= rest);
            rest -= *node * right;
            at += step * right as usize;
            *node -= 1 - right;
            step >>= 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_whole_deck_is_the_histogram(counts in proptest::collection::vec(1u64..20, 1..70), seed in any::<u64>()) {
            let cells = Cells::from_pairs(counts.iter().enumerate().map(|(i, &n)| (i as u64, n)).collect());
            let mut deck = Deck::new(&cells);
            let mut state = seed;
            for _ in 0..3 {
                let mut drawn = vec![0; counts.len()];
                for _ in 0..cells.total() {
                    let at = deck.draw(&cells, |n| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        ((u128::from(state) * u128::from(n)) >> 64) as u64
                    });
                    drawn[at] += 1;
                }
                prop_assert_eq!(&drawn, &counts);
            }
        }
    }
}
