//! Which blocks a generated stream has used, and how long ago.

use crate::random::{Random, below};
use crate::sample::block::ledger::Ledger;
use crate::sample::block::recall::Recall;
use loadstone_trace::lru::{BLOCK, blocks};
use loadstone_trace::{Recency, Run};
use std::cell::Cell;
use std::ops::RangeInclusive;

/// Blocks looked at for one that lies where it should.
pub(crate) const LOOKS: usize = 6;

/// Blocks looked at from each of these on for one of the object.
const LOOKS_ON: usize = 16;

/// Requests of each object that are remembered.
const LATELY: usize = 64;

/// Blocks that there is room for from the start at most.
const ROOM: u64 = 1 << 20;

/// Blocks whose distance is remembered.
const ASKED: usize = 64;

/// The stack distance of a block, as it was before some request.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// Number of that request; the first one is 1.
    request: u64,
    object: u32,
    block: u64,
    distance: Option<u64>,
}

/// The blocks that were used.
pub(crate) struct Blocks {
    used: Recency,
    ledger: Ledger,
    /// Last blocks of the last requests of each object, and how many requests it had.
    lately: Vec<(Vec<u64>, usize)>,
    /// Memory for the runs of a request.
    runs: Vec<Run>,
    /// Number of the next request, and distances that were looked up for it: most draws for it ask for the same ones.
    request: u64,
    asked: [Cell<Asked>; ASKED],
}

impl Blocks {
    /// None yet; the ledger says which are to be used.
    pub fn new(ledger: Ledger) -> Blocks {
        // A damaged file may say anything.
        let room = ledger.footprint().min(ROOM) as usize;
        Blocks {
            used: Recency::with_capacity(room),
            ledger,
            lately: Vec::new(),
            runs: Vec::new(),
            request: 1,
            asked: std::array::from_fn(|_| Cell::default()),
        }
    }

    /// Bytes of memory that the blocks take.
    pub fn bytes(&self) -> u64 {
        self.used.bytes()
    }

    /// Goes on with requests of another matrix.
    pub fn turn_to(&mut self, matrix: usize) {
        self.ledger.turn_to(matrix);
    }

    /// Takes the next request, and the code of the distance that was drawn for it.
    pub fn note(&mut self, op: u8, object: u32, (offset, size): (i64, i64), code: u32) {
        self.request += 1;
        self.used.touch_all(object, blocks(op, offset, size), &mut self.runs);
        self.runs.iter().for_each(|run| self.ledger.debit(run.distance, run.blocks));
        self.ledger.reach(self.used.len() as u64);
        let count: u64 = self.runs.iter().map(|run| run.blocks).sum();
        if count > 0 {
            let at = object as usize;
            if self.lately.len() <= at {
                self.lately.resize_with(at + 1, Default::default);
            }
            let (blocks, requests) = &mut self.lately[at];
            match blocks.get_mut(*requests % LATELY) {
                Some(block) => *block = last_block(offset, size),
                None => blocks.push(last_block(offset, size)),
            }
            *requests += 1;
        }
        self.ledger.credit(code, count);
    }

    /// When the last block of a request should have been used that was drawn so.
    #[inline]
    pub fn recall(&self, drawn: Recall) -> Recall {
        self.ledger.most_owed(drawn, self.used.len() as u64)
    }

    /// Whether so many bytes from an offset on were used when blocks should have been: the last one, which tells whether
    /// a run goes on over what was used, and the one in the middle, for the others were as a rule used with it.
    #[inline]
    pub fn suit(&self, object: u32, offset: i64, length: i64) -> bool {
        self.two(object, offset, length, |distance| self.ledger.owes(distance))
    }

    /// The same of a request that continues the one before it, which only has to be what others can pay for.
    pub fn keeps(&self, object: u32, offset: i64, length: i64) -> bool {
        self.two(object, offset, length, |distance| self.ledger.keeps(distance))
    }

    #[inline]
    fn two(&self, object: u32, offset: i64, length: i64, will_do: impl Fn(Option<u64>) -> bool) -> bool {
        let (last, middle) = (last_block(offset, length), last_block(offset, length / 2));
        let will_do = |block: u64| will_do(self.distance(object, block));
        will_do(last) && (middle == last || will_do(middle))
    }

    /// The stack distance of a block, `None` if it was never used.
    #[inline]
    fn distance(&self, object: u32, block: u64) -> Option<u64> {
        let slot = &self.asked[block as usize % ASKED];
        let known = slot.get();
        if (known.request, known.object, known.block) == (self.request, object, block) {
            return known.distance;
        }
        let distance = self.used.distance(object, block);
        slot.set(Asked { request: self.request, object, block, distance });
        distance
    }

    /// Offsets of requests of so many bytes whose last block was used when it should have been, each found at random.
    pub fn places<'a>(
        &'a self,
        object: u32,
        length: i64,
        recall: Recall,
        rng: &'a mut Random,
    ) -> impl Iterator<Item = i64> + 'a {
        let moments = match recall {
            Recall::Used(low, high) => {
                self.used.moments(low, high.min((self.used.len() as u64).saturating_sub(1)))
            }
            _ => None,
        };
        let looks = if moments.is_some() { LOOKS } else { 0 };
        let (oldest, newest) = moments.map_or((0, 0), RangeInclusive::into_inner);
        (0..looks).filter_map(move |_| {
            let from = oldest + below(rng, u64::from(newest - oldest) + 1) as u32;
            let (_, block) = self.used.first_of(object, from, newest, LOOKS_ON)?;
            // The request ends with the block.
            Some((block as i64 + 1) * BLOCK - length.max(1))
        })
    }

    /// Offsets of requests of so many bytes whose last block was that of one of the object's last requests.
    pub fn lately<'a>(
        &'a self,
        object: u32,
        length: i64,
        rng: &mut Random,
    ) -> impl Iterator<Item = i64> + 'a {
        // Of a single object all of the stack was looked at already.
        let of = self.lately.get(object as usize).filter(|_| self.lately.len() > 1);
        let blocks = of.map_or(&[][..], |(blocks, _)| blocks);
        let start = if blocks.is_empty() { 0 } else { below(rng, blocks.len() as u64) as usize };
        let order = blocks[start..].iter().chain(&blocks[..start]);
        order.map(move |block| (*block as i64 + 1) * BLOCK - length.max(1))
    }
}

#[inline]
fn last_block(offset: i64, length: i64) -> u64 {
    (offset.saturating_add(length.max(1)) - 1) as u64 / BLOCK as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::recency::distances::Distances;
    use loadstone_trace::Op;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    const PAGES: i64 = BLOCK;

    fn used(new: u64, references: u64) -> Blocks {
        let distances = Distances { new, first: vec![0], references: vec![references] };
        let mut blocks = Blocks::new(Ledger::new(&distances, &[]));
        // Blocks 0 to 9 of object 0, then one of object 1; a discard uses nothing.
        blocks.note(Op::Write as u8, 0, (0, 10 * PAGES), 0);
        blocks.note(Op::Read as u8, 1, (5 * PAGES, 1), 0);
        blocks.note(Op::Discard as u8, 0, (20 * PAGES, PAGES), 0);
        blocks
    }

    #[test]
    fn places_are_found_by_their_distance() {
        let (blocks, mut rng) = (used(1, 1), Xoshiro256PlusPlus::seed_from_u64(1));
        let found: Vec<i64> = blocks.places(0, 2 * PAGES, Recall::Used(1, 3), &mut rng).collect();
        assert_eq!(found.len(), LOOKS);
        assert!(
            found.iter().all(|offset| [6, 7, 8].contains(&(offset / PAGES)) && offset % PAGES == 0),
            "{found:?}"
        );
        // The front of the stack is of another object, and nothing is as far down as that.
        assert_eq!(blocks.places(0, 1, Recall::Used(0, 0), &mut rng).count(), 0);
        assert_eq!(blocks.places(0, 1, Recall::Used(50, 90), &mut rng).count(), 0);
    }

    #[test]
    fn requests_go_where_more_is_to_be_used() {
        // No block should be new: a few may, and then no more.
        let mut blocks = used(0, 100);
        assert!(blocks.suit(0, 20 * PAGES, PAGES) && blocks.suit(0, 0, PAGES));
        assert_eq!(blocks.recall(Recall::Any), Recall::Any);
        assert_eq!(blocks.recall(Recall::New), Recall::Used(0, u64::MAX));
        blocks.note(Op::Write as u8, 0, (40 * PAGES, 40 * PAGES), 0);
        assert!(!blocks.suit(0, 20 * PAGES, PAGES) && blocks.suit(0, 0, PAGES));
        // Its last block was used, the one in the middle was not; and the other way round.
        assert!(!blocks.suit(0, 20 * PAGES, 21 * PAGES) && !blocks.suit(0, 0, 20 * PAGES));
        // All should be.
        let mut blocks = used(100, 0);
        (0..4).for_each(|_| blocks.note(Op::Read as u8, 0, (0, 10 * PAGES), 0));
        assert!(blocks.suit(0, 20 * PAGES, PAGES) && !blocks.suit(0, 0, PAGES));
        assert_eq!(blocks.recall(Recall::Used(3, 4)), Recall::New);
    }
}
