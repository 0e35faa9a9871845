//! Drawing cells without replacement.

use crate::cells::Cells;

/// Children of a node: their sums fill a cache line.
const WIDE: usize = 8;

/// One for each child that comes after a child.
const AFTER: [[u64; WIDE]; WIDE] = {
    let mut after = [[0; WIDE]; WIDE];
    let mut i = 0;
    while i < WIDE * WIDE {
        after[i / WIDE][i % WIDE] = (i % WIDE > i / WIDE) as u64;
        i += 1;
    }
    after
};

/// A deck with as many cards of each cell as the cell has requests; drawn empty, it is whole again.
///
/// A tree of sums over the counts: one walk from the root finds the card and takes it away. Whoever
/// draws a whole deck gets exactly the histogram.
pub(super) struct Deck {
    cells: Cells,
    /// From the root to the nodes over cells: cards left before each child of a node.
    levels: Vec<Vec<[u64; WIDE]>>,
    left: u64,
}

impl Deck {
    pub fn new(cells: Cells) -> Deck {
        let mut deck = Deck { cells, levels: Vec::new(), left: 0 };
        deck.fill();
        deck
    }

    fn fill(&mut self) {
        self.levels.clear();
        self.left = self.cells.total();
        let mut counts = self.cells.counts.clone();
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
        if self.left == 0 {
            self.fill();
        }
        let mut rest = random(self.left);
        self.left -= 1;
        let mut at = 0;
        for level in &mut self.levels {
            // Nobody can predict which child it is, so nothing branches. The sign of a difference tells
            // which sums are at most `rest`, the first, 0, always: vector instructions can do that.
            let node = &mut level[at];
            let below: u64 = node.iter().map(|before| before.wrapping_sub(rest + 1) >> 63).sum();
            let child = below as usize - 1;
            rest -= node[child];
            for (before, after) in node.iter_mut().zip(&AFTER[child]) {
                *before -= after;
            }
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
        fn a_whole_deck_is_the_histogram(counts in proptest::collection::vec(1u64..20, 1..700), seed in any::<u64>()) {
            let cells = Cells::from_pairs(counts.iter().enumerate().map(|(i, &n)| (i as u64, n)).collect());
            let mut deck = Deck::new(cells.clone());
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
