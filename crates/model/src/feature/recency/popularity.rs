//! How many places are more popular.

use crate::feature::{Field, Kind, each};
use loadstone_trace::NONE;
use loadstone_trace::lru::blocks;
use rustc_hash::FxHashMap;

/// Uses that are told apart; what was used more often shares a rank.
const MOST: usize = 1 << 16;

/// Rank of the request's first 4 KiB block among all that were read or written so far, by how many requests began in
/// them: 0 for the most popular. A new block ranks behind all. None for requests that move no data. A straight line of
/// requests over rank, both as logarithms, is Zipf's law. Remembers every such block, 24 bytes each. Source: "offset
/// popularity", MDH thesis section 5.4.3, as a rank.
pub(crate) const POPULARITY: Kind = Kind::new("popularity", Field::Derived, "rank", "log2:1", |_| {
    let mut uses = Uses { by_block: FxHashMap::default(), tree: vec![0; MOST + 1] };
    each(move |rows, i| {
        let block = blocks(rows.op[i], rows.offset[i], rows.size[i]).next();
        block.map_or(NONE, |block| uses.rank(rows.object[i], block) as i64)
    })
});

/// How often each block was used.
struct Uses {
    by_block: FxHashMap<(u32, u64), u32>,
    /// Fenwick tree of blocks by uses, so that those with more are counted in a few steps.
    tree: Vec<u64>,
}

impl Uses {
    fn add(&mut self, uses: u32, blocks: u64) {
        let mut at = uses as usize;
        while at <= MOST {
            self.tree[at] = self.tree[at].wrapping_add(blocks);
            at += at & at.wrapping_neg();
        }
    }

    /// Blocks with at most so many uses.
    fn up_to(&self, uses: u32) -> u64 {
        let (mut at, mut sum) = (uses as usize, 0u64);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    /// Takes a use of a block and answers how many others were used more often before it.
    fn rank(&mut self, object: u32, block: u64) -> u64 {
        let uses = self.by_block.entry((object, block)).or_default();
        let before = *uses;
        *uses = before.saturating_add(1).min(MOST as u32);
        let after = *uses;
        let rank = self.by_block.len() as u64 - u64::from(before == 0) - self.up_to(before);
        if before > 0 {
            self.add(before, u64::MAX);
        }
        self.add(after, 1);
        rank
    }
}
