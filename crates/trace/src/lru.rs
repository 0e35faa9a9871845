//! How often a cache of any size would miss: LRU stack distances of blocks.
//!
//! The stack distance of a reference is how many other blocks were referenced since its own block was: an LRU cache of
//! more blocks than that still has it (Mattson et al., IBM Systems Journal 9, 1970). One pass gives all sizes.
//! Long streams are sampled by block, as SHARDS does (Waldspurger et al., FAST 2015, sections 3.1 and 3.2).

use crate::{Batch, NONE, Op};

/// Bytes of a block.
pub const BLOCK: i64 = 4096;

/// Bits of a group of the tree: a cache line of them is counted by itself.
const GROUP: usize = 512;

/// Blocks of a request that are followed: a larger one, of more than 1 GiB, is a damaged record.
const LONGEST: i64 = 1 << 18;

/// Neighbouring blocks whose entries lie side by side: a large request waits for memory once for so many.
const SIDE: u64 = 8;

/// A block that was referenced.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its number in the object.
    block: u64,
    object: u32,
    /// When it was referenced last; [`Entry::FREE`] where the entry is of no block.
    time: u32,
}

impl Entry {
    const FREE: u32 = u32::MAX;
}

/// Which moments are no block's last reference any more, and how many these are up to any moment.
#[derive(Debug, Default)]
struct Gone {
    bits: Vec<u64>,
    /// Fenwick tree over groups of bits.
    tree: Vec<u32>,
    all: u32,
}

impl Gone {
    fn new(moments: usize) -> Gone {
        let groups = moments.div_ceil(GROUP);
        Gone { bits: vec![0; groups * GROUP / 64], tree: vec![0; groups + 1], all: 0 }
    }

    fn has(&self, time: u32) -> bool {
        self.bits[time as usize / 64] >> (time % 64) & 1 == 1
    }

    /// Adds a moment; answers how many there are up to it, itself left out.
    #[inline]
    fn add(&mut self, time: u32) -> u32 {
        let (group, word) = (time as usize / GROUP, time as usize / 64);
        let mut before = (self.bits[word] & ((1 << (time % 64)) - 1)).count_ones();
        before += self.bits[group * GROUP / 64..word].iter().map(|bits| bits.count_ones()).sum::<u32>();
        let mut at = group;
        while at > 0 {
            before += self.tree[at];
            at &= at - 1;
        }
        self.bits[word] |= 1 << (time % 64);
        self.all += 1;
        let mut at = group + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
        before
    }
}

/// References while blocks were sampled at one rate.
#[derive(Debug, Default)]
struct Level {
    /// All references, and those to sampled blocks.
    references: u64,
    sampled: u64,
    /// Sampled references by stack distance among sampled blocks; the first ones to a block have none.
    distances: Vec<u64>,
}

/// The blocks of a stream in the order in which they were referenced last.
#[derive(Debug)]
pub struct Stack {
    entries: Vec<Entry>,
    live: usize,
    /// Entry by moment.
    owners: Vec<u32>,
    gone: Gone,
    /// The next moment.
    now: u32,
    /// Most blocks that are kept; beyond that, half of them are.
    most: usize,
    /// One for each time that happened, and the first.
    levels: Vec<Level>,
}

/// Least number of moments between two renumberings.
const MOMENTS: usize = 1 << 16;

impl Stack {
    /// Of all blocks.
    #[must_use]
    pub fn exact() -> Stack {
        Stack::sampled(usize::MAX)
    }

    /// Of at most so many blocks: when there are more, every second one is left out, chosen by its number, and
    /// each of the others stands for one more.
    #[must_use]
    pub fn sampled(most: usize) -> Stack {
        Stack {
            entries: vec![Entry { block: 0, object: 0, time: Entry::FREE }; 1 << 10],
            live: 0,
            owners: vec![0; MOMENTS],
            gone: Gone::new(MOMENTS),
            now: 0,
            most: most.max(1),
            levels: vec![Level::default()],
        }
    }

    /// Takes the reads and writes of a batch; those without an offset or size reference nothing, and of one of more
    /// than 1 GiB only the first is followed.
    pub fn add(&mut self, batch: &Batch) {
        let places = batch.offset.iter().zip(&batch.size);
        for ((&op, &object), (&offset, &size)) in batch.op.iter().zip(&batch.object).zip(places) {
            let moves = op == Op::Read as u8 || op == Op::Write as u8;
            if !moves || offset == NONE || offset < 0 || size <= 0 {
                continue;
            }
            let (first, last) = (offset / BLOCK, (offset.saturating_add(size) - 1) / BLOCK);
            for block in first..=last.min(first + LONGEST - 1) {
                self.reference(object, block as u64);
            }
        }
    }

    #[inline]
    fn reference(&mut self, object: u32, block: u64) {
        let level = self.levels.len() - 1;
        self.levels[level].references += 1;
        if !is_sampled(object, block, level) {
            return;
        }
        self.levels[level].sampled += 1;
        if self.now as usize == self.owners.len() {
            self.renumber();
        }
        let at = self.find(object, block);
        let before = self.entries[at].time;
        self.entries[at] = Entry { block, object, time: self.now };
        self.owners[self.now as usize] = at as u32;
        self.now += 1;
        if before == Entry::FREE {
            self.live += 1;
            self.grow();
            return;
        }
        // Moments since then that are still some block's last, this one left out.
        let earlier = self.gone.add(before);
        let since = self.gone.all - 1 - earlier;
        let distance = (self.now - 2 - before - since) as usize;
        let distances = &mut self.levels[level].distances;
        if distances.len() <= distance {
            distances.resize(distance + 1, 0);
        }
        distances[distance] += 1;
    }

    /// The entry of a block, or where it goes.
    #[inline]
    fn find(&self, object: u32, block: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = home(object, block) & mask;
        loop {
            let entry = &self.entries[at];
            if entry.time == Entry::FREE || (entry.block == block && entry.object == object) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        if self.live > self.most {
            self.levels.push(Level::default());
            let level = self.levels.len() - 1;
            self.rebuild(self.entries.len(), |entry| is_sampled(entry.object, entry.block, level));
        } else if self.live * 2 > self.entries.len() {
            self.rebuild(self.entries.len() * 2, |_| true);
        }
    }

    /// Puts the entries that stay into a table of another size.
    fn rebuild(&mut self, size: usize, stays: impl Fn(&Entry) -> bool) {
        let free = Entry { block: 0, object: 0, time: Entry::FREE };
        let old = std::mem::replace(&mut self.entries, vec![free; size]);
        self.live = 0;
        for entry in old.into_iter().filter(|entry| entry.time != Entry::FREE) {
            if stays(&entry) {
                let at = self.find(entry.object, entry.block);
                self.entries[at] = entry;
                self.owners[entry.time as usize] = at as u32;
                self.live += 1;
            } else {
                self.gone.add(entry.time);
            }
        }
    }

    /// Gives the moments that are some block's last reference the lowest numbers.
    fn renumber(&mut self) {
        let mut next = 0;
        for time in 0..self.now {
            if !self.gone.has(time) {
                let owner = self.owners[time as usize];
                self.entries[owner as usize].time = next;
                self.owners[next as usize] = owner;
                next += 1;
            }
        }
        self.now = next;
        let moments = (2 * self.live).max(MOMENTS);
        self.owners.resize(moments, 0);
        self.gone = Gone::new(moments);
    }

    /// How often caches of any size miss.
    #[must_use]
    pub fn curve(&self) -> Curve {
        let mut steps: Vec<(u64, f64)> = Vec::new();
        let (mut references, mut adjust) = (0, 0.0);
        for (level, of) in self.levels.iter().enumerate() {
            let weight = (1u64 << level) as f64;
            references += of.references;
            // Which blocks are sampled is chance; how many references there are is known. The difference is put where
            // every cache hits or none does: at distance 0 (SHARDS-adj).
            adjust += of.references as f64 - of.sampled as f64 * weight;
            let found = of.distances.iter().zip(0u64..).filter(|(n, _)| **n > 0);
            steps.extend(found.map(|(&n, distance)| (distance << level, n as f64 * weight)));
        }
        steps.push((0, adjust));
        steps.sort_unstable_by_key(|step| step.0);
        steps.dedup_by(|next, step| {
            let same = next.0 == step.0;
            step.1 += if same { next.1 } else { 0.0 };
            same
        });
        let rate = 0.5f64.powi(self.levels.len() as i32 - 1);
        Curve { references, footprint: (self.live as f64 / rate) as u64, rate, steps }
    }
}

/// The misses of LRU caches by their size.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Blocks referenced, each time counted.
    pub references: u64,
    /// Different blocks.
    pub footprint: u64,
    /// Share of the blocks that was looked at in the end; 1: the curve is exact.
    pub rate: f64,
    /// References by stack distance, ascending.
    pub steps: Vec<(u64, f64)>,
}

impl Curve {
    /// Share of the references that miss in a cache of so many blocks, 0 to 1; 1 where nothing was referenced.
    #[must_use]
    pub fn miss_ratio(&self, blocks: u64) -> f64 {
        let hits: f64 = self.steps.iter().take_while(|step| step.0 < blocks).map(|step| step.1).sum();
        if self.references == 0 { 1.0 } else { (1.0 - hits / self.references as f64).clamp(0.0, 1.0) }
    }
}

fn mix(object: u32, number: u64) -> u64 {
    // The finaliser of MurmurHash3 (A. Appleby), which lets every bit change every other.
    let mut x = number ^ u64::from(object).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Whether a block is among one in 2^`level`.
#[inline]
fn is_sampled(object: u32, block: u64, level: usize) -> bool {
    level == 0 || mix(object, block).leading_zeros() as usize >= level
}

#[inline]
fn home(object: u32, block: u64) -> usize {
    let group = mix(object, block / SIDE);
    (group / SIDE * SIDE + block % SIDE) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack(most: usize, blocks: impl IntoIterator<Item = (u32, u64)>) -> Curve {
        let mut stack = Stack::sampled(most);
        blocks.into_iter().for_each(|(object, block)| stack.reference(object, block));
        stack.curve()
    }

    proptest! {
        #[test]
        fn distances_are_those_of_a_list(
            blocks in proptest::collection::vec((0u32..2, prop_oneof![0u64..20, 0u64..3000]), 1..600), rounds in 1usize..200,
        ) {
            let (mut list, mut distances) = (Vec::new(), std::collections::BTreeMap::new());
            for block in blocks.iter().chain(&blocks) {
                if let Some(at) = list.iter().rev().position(|other| other == block) {
                    *distances.entry(at as u64).or_insert(0.0) += 1.0;
                    list.remove(list.len() - 1 - at);
                }
                list.push(*block);
            }
            let twice = stack(usize::MAX, blocks.iter().chain(&blocks).copied());
            let found: Vec<_> = twice.steps.iter().copied().filter(|step| step.1 > 0.0).collect();
            prop_assert_eq!(found, distances.into_iter().collect::<Vec<_>>());
            // Many rounds come past the renumbering.
            let curve = stack(usize::MAX, (0..rounds).flat_map(|_| blocks.iter().copied()));
            prop_assert_eq!(curve.footprint, list.len() as u64);
            prop_assert_eq!(curve.references, (blocks.len() * rounds) as u64);
            // A cache of the footprint misses each block once.
            let least = list.len() as f64 / curve.references as f64;
            prop_assert!((curve.miss_ratio(curve.footprint) - least).abs() < 1e-12);
            prop_assert_eq!(curve.miss_ratio(0), 1.0);
        }
    }

    #[test]
    fn moments_are_renumbered_without_a_trace() {
        // A loop over 1000 blocks, far longer than there are moments.
        let rounds = 3 * MOMENTS as u64 / 1000;
        let curve = stack(usize::MAX, (0..rounds * 1000).map(|i| (0, i % 1000)));
        let hits = ((rounds - 1) * 1000) as f64;
        assert_eq!(curve.steps, [(0, 0.0), (999, hits)]);
        assert_eq!((curve.miss_ratio(999), curve.rate), (1.0, 1.0));
    }

    #[test]
    fn a_sample_of_blocks_tells_nearly_the_same() {
        // Popularity falls with the block's number; a scan of all runs through it.
        let mut state = 1u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((u128::from(state) * u128::from(n)) >> 64) as u64
        };
        let blocks: Vec<(u32, u64)> = (0..2_000_000u64)
            .map(|i| {
                let bits = random(19);
                if i % 4 == 0 { (1, i / 4 % 200_000) } else { (0, random(1 << bits)) }
            })
            .collect();
        let (all, some) = (stack(usize::MAX, blocks.iter().copied()), stack(1 << 14, blocks.iter().copied()));
        assert!(some.rate < 0.1 && all.rate == 1.0);
        assert!((some.footprint as f64 / all.footprint as f64 - 1.0).abs() < 0.05);
        let sizes = (1..=60).map(|i| all.footprint * i / 60);
        let off = sizes.map(|size| (all.miss_ratio(size) - some.miss_ratio(size)).abs());
        assert!(off.sum::<f64>() / 60.0 < 0.01);
    }

    #[test]
    fn requests_reference_the_blocks_they_touch() {
        let mut stack = Stack::exact();
        let mut batch = Batch::default();
        let rows = [
            (0u8, 0i64, 4096i64),
            (0, 4095, 2),
            (1, 8192, 8192),
            (2, 0, 4096),
            (0, NONE, 4096),
            (1, 0, NONE),
        ];
        for (op, offset, size) in rows {
            batch.op.push(op);
            batch.object.push(0);
            batch.offset.push(offset);
            batch.size.push(size);
        }
        stack.add(&batch);
        let curve = stack.curve();
        assert_eq!((curve.references, curve.footprint), (5, 4));
        assert_eq!(curve.steps, [(0, 1.0)]);
    }
}
