//! Drawing cells without replacement.

use crate::cells::Cells;

/// Children of a node: their sums fill two vector registers of any processor.
const WIDE: usize = 8;

/// Cards of a round at most, about: differences of sums keep their sign in 32 bits.
const ROUND: u64 = 1 << 30;

/// One for each child that comes after a child.
const AFTER: [[u32; WIDE]; WIDE] = {
    let mut after = [[0; WIDE]; WIDE];
    let mut i = 0;
    while i < WIDE * WIDE {
        after[i / WIDE][i % WIDE] = (i % WIDE > i / WIDE) as u32;
        i += 1;
    }
    after
};

/// A deck with as many cards of each cell as the cell has requests; drawn empty, it is whole again.
///
/// A tree of sums over the counts: one walk from the root finds the card and takes it away. Whoever
/// draws a whole deck gets exactly the histogram. A large deck is dealt in rounds of even shares.
pub(super) struct Deck {
    cells: Cells,
    /// From the root to the nodes over cells: cards left before each child of a node.
    levels: Vec<Vec<[u32; WIDE]>>,
    left: u32,
    rounds: u64,
    /// The round that comes next.
    round: u64,
}

impl Deck {
    pub fn new(cells: Cells) -> Deck {
        Deck::in_rounds(cells, ROUND)
    }

    fn in_rounds(cells: Cells, most: u64) -> Deck {
        let rounds = cells.total() / most + 1;
        let mut deck = Deck { cells, levels: Vec::new(), left: 0, rounds, round: 0 };
        deck.fill();
        deck
    }

    fn fill(&mut self) {
        self.levels.clear();
        let dealt = |count: u64, rounds: u64| {
            (u128::from(count) * u128::from(rounds) / u128::from(self.rounds)) as u64
        };
        let share = |&count: &u64| (dealt(count, self.round + 1) - dealt(count, self.round)) as u32;
        let mut counts: Vec<u32> = self.cells.counts.iter().map(share).collect();
        self.left = counts.iter().sum();
        self.round = (self.round + 1) % self.rounds;
        while counts.len() > 1 {
            let mut sums = Vec::with_capacity(counts.len().div_ceil(WIDE));
            let mut nodes = Vec::with_capacity(sums.capacity());
            for children in counts.chunks(WIDE) {
                let (mut node, mut sum) = ([0; WIDE], 0);
                for (before, child) in node.iter_mut().enumerate().map(|(i, n)| (n, children.get(i))) {
                    *before = sum;
                    sum += child.unwrap_or(&0);
                }
                nodes.push(node);
                sums.push(sum);
            }
            self.levels.insert(0, nodes);
            counts = sums;
        }
    }

    /// Takes a card and answers the key of its cell; `random` gives a number below its argument.
    ///
    /// # Panics
    /// When the deck has no cells.
    #[inline]
    pub fn draw(&mut self, random: impl FnOnce(u64) -> u64) -> u64 {
        // A round may have no card at all, all rounds together have.
        while self.left == 0 {
            self.fill();
        }
        let mut rest = random(u64::from(self.left)) as u32;
        self.left -= 1;
        let mut at = 0;
        for level in &mut self.levels {
            // Nobody can predict which child it is, so nothing branches. The sign of a difference tells
            // which sums are at most `rest`, the first, 0, always: vector instructions can do that.
            let node = &mut level[at];
            let below: u32 = node.iter().map(|before| before.wrapping_sub(rest + 1) >> 31).sum();
            let child = below as usize - 1;
            rest -= node[child];
            let after = AFTER[child];
            *node = std::array::from_fn(|i| node[i] - after[i]);
            at = at * WIDE + child;
        }
        self.cells.keys[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_whole_deck_is_the_histogram(
            counts in proptest::collection::vec(1u64..20, 1..700), most in 1u64..10_000, seed in any::<u64>(),
        ) {
            let cells = Cells::from_pairs(counts.iter().enumerate().map(|(i, &n)| (i as u64, n)).collect());
            let mut deck = Deck::in_rounds(cells.clone(), most);
            let mut state = seed;
            for _ in 0..3 {
                let mut drawn = vec![0; counts.len()];
                for _ in 0..cells.total() {
                    let key = deck.draw(|n| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        ((u128::from(state) * u128::from(n)) >> 64) as u64
                    });
                    drawn[key as usize] += 1;
                }
                prop_assert_eq!(&drawn, &counts);
            }
        }
    }
}
