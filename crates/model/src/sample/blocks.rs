//! Which blocks a generated stream has used, and how long ago.

use super::decode::below;
use loadstone_trace::Recency;
use loadstone_trace::lru::{BLOCK, blocks};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Blocks looked at for one that lies where it should.
const LOOKS: usize = 16;

/// Powers of two that are looked ahead.
const FAR: u32 = 8;

/// When a request's last block is to have been used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recall {
    /// Whenever.
    Any,
    /// Never.
    New,
    /// So many other blocks ago.
    Used(u64, u64),
}

/// How often requests that went on came to blocks used a little later than drawn, less those used a little earlier, by
/// powers of two of the distance.
pub(super) struct Leeway([i64; 64]);

impl Default for Leeway {
    fn default() -> Self {
        Leeway([0; 64])
    }
}

impl Leeway {
    /// Requests that one side may be ahead of the other: more, and what is drawn shifts as a whole.
    const MOST: i64 = 4;

    fn of(low: u64) -> usize {
        low.max(1).ilog2() as usize
    }

    /// What a bucket says of a request that goes on: about that, for how long ago follows from where its run began.
    pub fn around(&self, (low, high): (u64, u64)) -> Recall {
        let ahead = self.0[Leeway::of(low)];
        let less = if ahead < Leeway::MOST { low / 16 } else { 0 };
        let more = if ahead > -Leeway::MOST { high / 16 } else { 0 };
        Recall::Used(low - less, high.saturating_add(more))
    }

    /// Takes where such a request went.
    pub fn note(&mut self, (low, high): (u64, u64), distance: u64) {
        self.0[Leeway::of(low)] += i64::from(distance < low) - i64::from(distance > high);
    }
}

/// The blocks that were used.
#[derive(Default)]
pub(super) struct Blocks {
    used: Recency,
}

impl Blocks {
    /// Takes the next request.
    pub fn note(&mut self, op: u8, object: u32, offset: i64, size: i64) {
        blocks(op, offset, size).for_each(|block| {
            self.used.touch(object, block);
        });
    }

    /// Whether the last block of so many bytes from an offset on was used when it should have been.
    #[inline]
    pub fn suit(&self, object: u32, offset: i64, length: i64, recall: Recall) -> bool {
        let block = last_block(offset, length);
        match recall {
            Recall::Any => true,
            Recall::New => !self.used.has(object, block),
            Recall::Used(low, high) => {
                self.used.distance(object, block).is_some_and(|distance| (low..=high).contains(&distance))
            }
        }
    }

    /// Whether its other blocks were used likewise. As a rule all blocks of a request were used together before, so the
    /// one in the middle was used about then; and a short request goes to blocks that were used without the next ones.
    #[inline]
    pub fn suit_whole(&self, object: u32, offset: i64, length: i64, recall: Recall) -> bool {
        let about = match recall {
            Recall::Used(low, high) => Recall::Used(low - low / 8, high.saturating_add(high / 8)),
            other => other,
        };
        if length > 2 * BLOCK || !matches!(recall, Recall::Used(..)) {
            return self.suit(object, offset, length / 2, about);
        }
        let distance = |block: Option<u64>| self.used.distance(object, block?);
        let together = |a, b| distance(a).zip(distance(b)).is_some_and(|(a, b)| a == b + 1);
        let (first, last) = (offset as u64 / BLOCK as u64, last_block(offset, length));
        !together(Some(last), last.checked_add(1)) && !together(first.checked_sub(1), Some(first))
    }

    /// The stack distance of the last block of so many bytes from an offset on.
    pub fn distance(&self, object: u32, offset: i64, length: i64) -> Option<u64> {
        self.used.distance(object, last_block(offset, length))
    }

    /// Offsets of requests of so many bytes whose last block was used when it should have been, each found at random.
    pub fn places<'a>(
        &'a self,
        object: u32,
        length: i64,
        recall: Recall,
        rng: &'a mut Xoshiro256PlusPlus,
    ) -> impl Iterator<Item = i64> + 'a {
        let (low, high) = match recall {
            Recall::Used(low, high) => (low, high.min((self.used.len() as u64).saturating_sub(1))),
            _ => (1, 0),
        };
        let looks = if low <= high { LOOKS } else { 0 };
        (0..looks).filter_map(move |_| {
            let (of, block) = self.used.at(low + below(rng, high - low + 1))?;
            // The request ends with the block.
            (of == object).then(|| (block as i64 + 1) * BLOCK - length.max(1))
        })
    }

    /// How far a run could go on over blocks that were used, or were not, in powers of two of this length.
    pub fn room(&self, object: u32, offset: i64, length: i64, used: bool) -> u32 {
        let step = length.max(BLOCK);
        let ends =
            |k: &u32| self.used.has(object, last_block(offset.saturating_add(step << k), step)) != used;
        (0..FAR).find(ends).unwrap_or(FAR)
    }
}

#[inline]
fn last_block(offset: i64, length: i64) -> u64 {
    (offset.saturating_add(length.max(1)) - 1) as u64 / BLOCK as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_trace::Op;
    use rand_xoshiro::rand_core::SeedableRng;

    const PAGES: i64 = BLOCK;

    fn used() -> Blocks {
        let mut blocks = Blocks::default();
        // Blocks 0 to 9 of object 0, then one of object 1; a discard uses nothing.
        blocks.note(Op::Write as u8, 0, 0, 10 * PAGES);
        blocks.note(Op::Read as u8, 1, 5 * PAGES, 1);
        blocks.note(Op::Discard as u8, 0, 20 * PAGES, PAGES);
        blocks
    }

    #[test]
    fn the_last_block_tells_when_a_place_was_used() {
        let blocks = used();
        let distance = |offset, length| blocks.distance(0, offset, length);
        assert_eq!(
            (distance(0, 1), distance(0, 10 * PAGES), distance(0, 11 * PAGES)),
            (Some(10), Some(1), None)
        );
        assert_eq!(distance(20 * PAGES, PAGES), None);
        assert!(blocks.suit(0, 20 * PAGES, 1, Recall::New) && !blocks.suit(1, 5 * PAGES, 1, Recall::New));
        assert!(blocks.suit(0, 0, 1, Recall::Used(8, 15)) && !blocks.suit(0, 0, 1, Recall::Used(4, 9)));
        assert!(blocks.suit(0, 99 * PAGES, 1, Recall::Any));
    }

    #[test]
    fn places_are_found_by_their_distance() {
        let (blocks, mut rng) = (used(), Xoshiro256PlusPlus::seed_from_u64(1));
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
    fn requests_go_where_those_of_their_length_went() {
        let mut blocks = used();
        blocks.note(Op::Read as u8, 0, 3 * PAGES, PAGES);
        let recall = Recall::Used(8, 10);
        let whole = |page: i64, pages: i64| blocks.suit_whole(0, page * PAGES, pages * PAGES, recall);
        // Block 3 was used again alone, block 1 was used with 0 and 2; 3 is in the middle of the first eight.
        assert!(blocks.suit_whole(0, 3 * PAGES, PAGES, Recall::Used(0, 0)));
        assert!(!whole(1, 1) && !whole(0, 8) && whole(0, 5));
        assert!(blocks.suit_whole(0, 11 * PAGES, PAGES, Recall::New));
    }

    #[test]
    fn what_goes_on_misses_to_both_sides_alike() {
        let (mut leeway, range) = (Leeway::default(), (1600, 1800));
        assert_eq!(leeway.around(range), Recall::Used(1500, 1912));
        (0..Leeway::MOST).for_each(|_| leeway.note(range, 1550));
        assert_eq!(leeway.around(range), Recall::Used(1600, 1912));
        // Others are told by themselves, and what is right changes nothing.
        leeway.note(range, 1700);
        assert_eq!(leeway.around((16, 16)), Recall::Used(15, 17));
        (0..2 * Leeway::MOST).for_each(|_| leeway.note(range, 1900));
        assert_eq!(leeway.around(range), Recall::Used(1500, 1800));
    }

    #[test]
    fn room_is_what_lies_ahead() {
        let blocks = used();
        assert_eq!(blocks.room(0, 0, PAGES, true), 4);
        assert_eq!(blocks.room(0, 10 * PAGES, PAGES, false), FAR);
    }
}
