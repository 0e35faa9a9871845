//! How many places are more popular.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;
use loadstone_trace::lru::blocks;
use rustc_hash::FxHashMap;

/// Uses that are told apart; what was used more often shares a rank.
const MOST: usize = 1 << 16;

/// Rank of the request's first 4 KiB block among all that were read or written so far, by how many requests began in
/// them: 0 for the most popular. A new block ranks behind all. None for requests that move no data. A straight line of
/// requests over rank, both as logarithms, is Zipf's law. Remembers every such block, 24 bytes each. Source: "offset
/// popularity", MDH thesis section 5.4.3, as a rank.
struct Popularity {
    uses: FxHashMap<(u32, u64), u32>,
    /// Fenwick tree of blocks by uses, so that those with more are counted in a few steps.
    tree: Vec<u64>,
}

pub(crate) const KIND: Kind = Kind {
    name: "popularity",
    field: Field::Derived,
    unit: "rank",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| Box::new(Popularity { uses: FxHashMap::default(), tree: vec![0; MOST + 1] }),
};

impl Popularity {
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
}

impl Feature for Popularity {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        for i in 0..batch.len() {
            let Some(block) = blocks(batch.op[i], batch.offset[i], batch.size[i]).next() else {
                out.push(NONE);
                continue;
            };
            let entry = self.uses.entry((batch.object[i], block)).or_default();
            let before = *entry;
            *entry = before.saturating_add(1).min(MOST as u32);
            let after = *entry;
            let rank = self.uses.len() as u64 - u64::from(before == 0) - self.up_to(before);
            if before > 0 {
                self.add(before, u64::MAX);
            }
            self.add(after, 1);
            out.push(rank as i64);
        }
    }
}
