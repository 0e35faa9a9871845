//! How often a cache of any size would miss: LRU stack distances of blocks.
//!
//! The stack distance of a reference is how many other blocks were referenced since its own block was: an LRU cache of
//! more blocks than that still has it (Mattson et al., IBM Systems Journal 9, 1970). One pass gives all sizes.
//! Long streams are sampled by block, as SHARDS does (Waldspurger et al., FAST 2015, sections 3.1 and 3.2).

use crate::recency::{Recency, Run, mix};
use crate::{Batch, NONE, Op};
use std::ops::Range;

/// Bytes of a block.
pub const BLOCK: i64 = 4096;

/// Blocks of a request that are followed: a larger one, of more than 1 GiB, is a damaged record.
const LONGEST: i64 = 1 << 18;

/// The blocks that a read or write of so many bytes references, ascending; none without an offset or size, and of
/// more than 1 GiB only the first.
#[inline]
pub fn blocks(op: u8, offset: i64, size: i64) -> Range<u64> {
    let moves = op == Op::Read as u8 || op == Op::Write as u8;
    let (first, end) = if !moves || offset == NONE || offset < 0 || size <= 0 {
        (0, 0)
    } else {
        (offset / BLOCK, (offset.saturating_add(size) - 1) / BLOCK + 1)
    };
    first as u64..end.min(first + LONGEST) as u64
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

impl Level {
    /// Takes so many sampled references at a stack distance.
    #[inline]
    fn add(&mut self, distance: u64, references: u64) {
        let distance = distance as usize;
        if self.distances.len() <= distance {
            self.distances.resize(distance + 1, 0);
        }
        self.distances[distance] += references;
    }
}

/// The blocks of a stream in the order in which they were referenced last, and at which distances they were.
#[derive(Debug)]
pub struct Stack {
    blocks: Recency,
    /// Most blocks that are kept; beyond that, half of them are.
    most: usize,
    /// One for each time that happened, and the first.
    levels: Vec<Level>,
    /// Memory for the runs of a request.
    runs: Vec<Run>,
}

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
            blocks: Recency::default(),
            most: most.max(1),
            levels: vec![Level::default()],
            runs: Vec::new(),
        }
    }

    /// Takes the reads and writes of a batch.
    pub fn add(&mut self, batch: &Batch) {
        let places = batch.offset.iter().zip(&batch.size);
        for ((&op, &object), (&offset, &size)) in batch.op.iter().zip(&batch.object).zip(places) {
            let blocks = blocks(op, offset, size);
            if self.most == usize::MAX {
                self.reference_all(object, blocks);
            } else {
                blocks.for_each(|block| self.reference(object, block));
            }
        }
    }

    /// Takes blocks that follow each other, all of which are kept.
    #[inline]
    fn reference_all(&mut self, object: u32, blocks: Range<u64>) {
        let (Some(level), Some(count)) = (self.levels.first_mut(), blocks.end.checked_sub(blocks.start))
        else {
            return;
        };
        level.references += count;
        level.sampled += count;
        self.blocks.touch_all(object, blocks, &mut self.runs);
        for run in &self.runs {
            if let Some(distance) = run.distance {
                level.add(distance, run.blocks);
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
        match self.blocks.touch(object, block) {
            Some(distance) => self.levels[level].add(distance, 1),
            None if self.blocks.len() > self.most => {
                self.levels.push(Level::default());
                self.blocks.retain(|object, block| is_sampled(object, block, level + 1));
            }
            None => {}
        }
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
        Curve { references, footprint: (self.blocks.len() as f64 / rate) as u64, rate, steps }
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

/// Whether a block is among one in 2^`level`.
#[inline]
#[must_use]
pub fn is_sampled(object: u32, block: u64, level: usize) -> bool {
    level == 0 || mix(object, block).leading_zeros() as usize >= level
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack(most: usize, blocks: impl IntoIterator<Item = (u32, u64)>) -> Curve {
        let mut stack = Stack::sampled(most);
        for (object, block) in blocks {
            if most == usize::MAX {
                stack.reference_all(object, block..block + 1);
            } else {
                stack.reference(object, block);
            }
        }
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
        let rounds = 3 * crate::recency::MOMENTS as u64 / 1000;
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
