//! What the sampler remembers of the requests it has placed: places that were used, ends nothing went on from.
//!
//! The features say of every request what came before it; drawing asks the other way round, and of few
//! requests. So nothing is looked up when a request is noted, only when one is asked for.

use crate::feature::recent::REACH;
use loadstone_trace::NONE;

/// Heads of chains.
const HEADS: usize = 1 << 16;

/// Links followed in a chain; a place behind so many others counts as not known.
const LINKS: usize = 16;

/// A place no request is of.
const NOBODY: u32 = u32::MAX;

/// A request, as small as can be: every one touches a slot or two of all of them.
#[derive(Clone, Copy)]
struct Slot {
    /// Where it began, or where it ended.
    spot: i64,
    /// An object, or an object's op.
    owner: u32,
    /// How many requests before it the next older one in the same chain was; 0: there is none.
    older: u16,
    /// Whatever is to be known of the request.
    mark: u16,
}

/// The last [`REACH`] requests that have an offset, by number.
struct Ring {
    slots: Box<[Slot; REACH]>,
    /// Number of the next request; they start at `REACH`, so that 0 is too old.
    next: u32,
}

impl Ring {
    fn new() -> Ring {
        let nothing = Slot { spot: NONE, owner: NOBODY, older: 0, mark: 0 };
        let slots = vec![nothing; REACH].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!());
        Ring { slots, next: REACH as u32 }
    }

    #[inline]
    fn at(&self, number: u32) -> &Slot {
        &self.slots[number as usize % REACH]
    }

    #[inline]
    fn push(&mut self, slot: Slot) {
        self.slots[self.next as usize % REACH] = slot;
        self.next = self.next.wrapping_add(1);
    }

    /// Number of the request so many requests ago, if it is within reach.
    #[inline]
    fn ago(&self, ago: i64) -> Option<u32> {
        (1..REACH as i64).contains(&ago).then(|| self.next.wrapping_sub(ago as u32))
    }
}

/// Where the last requests began, by object.
///
/// Requests whose place falls on the same head are chained, newest first.
pub(crate) struct Used {
    ring: Ring,
    heads: Box<[u32; HEADS]>,
}

impl Used {
    pub fn new() -> Used {
        let heads = vec![0; HEADS].into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!());
        Used { ring: Ring::new(), heads }
    }

    /// Takes the next request.
    #[inline]
    pub fn note(&mut self, owner: u32, spot: i64, mark: u16) {
        let number = self.ring.next;
        let before = std::mem::replace(&mut self.heads[head(owner, spot)], number);
        let older = u16::try_from(number.wrapping_sub(before)).unwrap_or(0);
        self.ring.push(Slot { spot, owner, older, mark });
    }

    /// Place and mark of the request so many requests ago, if it is of this owner.
    #[inline]
    pub fn ago(&self, owner: u32, ago: i64) -> Option<(i64, u16)> {
        let slot = self.ring.at(self.ring.ago(ago)?);
        (slot.owner == owner).then_some((slot.spot, slot.mark))
    }

    /// How many requests ago a place was last used, if that is known.
    #[inline]
    pub fn last(&self, owner: u32, spot: i64) -> Option<i64> {
        let mut ago = self.ring.next.wrapping_sub(self.heads[head(owner, spot)]);
        for _ in 0..LINKS {
            if ago >= REACH as u32 {
                return None;
            }
            let slot = self.ring.at(self.ring.next.wrapping_sub(ago));
            if slot.spot == spot && slot.owner == owner {
                return Some(i64::from(ago));
            }
            if slot.older == 0 {
                return None;
            }
            ago += u32::from(slot.older);
        }
        None
    }
}

/// Where the last requests ended, by op of an object, and whether one went on from there.
pub(crate) struct Open {
    ring: Ring,
}

impl Open {
    pub fn new() -> Open {
        Open { ring: Ring::new() }
    }

    /// Takes the next request.
    #[inline]
    pub fn note(&mut self, owner: u32, end: i64, mark: u16) {
        self.ring.push(Slot { spot: end, owner, older: 0, mark });
    }

    /// End and mark of the request so many requests ago, if it is of this owner and none went on from it.
    #[inline]
    pub fn ago(&self, owner: u32, ago: i64) -> Option<(i64, u16)> {
        let slot = self.ring.at(self.ring.ago(ago)?);
        (slot.owner == owner).then_some((slot.spot, slot.mark))
    }

    /// The next request goes on from the one so many requests ago.
    #[inline]
    pub fn go_on(&mut self, ago: i64) {
        if let Some(number) = self.ring.ago(ago) {
            self.ring.slots[number as usize % REACH].owner = NOBODY;
        }
    }
}

#[inline]
fn head(owner: u32, spot: i64) -> usize {
    let mixed = (spot as u64 ^ (u64::from(owner) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as usize % HEADS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn a_place_is_known_by_its_last_use(
            steps in proptest::collection::vec((0u32..3, 0i64..40), 1..400), far in any::<bool>(),
        ) {
            let mut used = Used::new();
            // Far into a stream, too: slots are used again.
            let skipped = if far { 2 * REACH as i64 } else { 0 };
            (0..skipped).for_each(|i| used.note(9, i * 512, 0));
            let mut last: HashMap<(u32, i64), i64> = HashMap::new();
            for (i, (owner, spot)) in (0i64..).zip(&steps) {
                used.note(*owner, *spot, i as u16);
                last.insert((*owner, *spot), i);
                for ((owner, spot), at) in &last {
                    prop_assert_eq!(used.last(*owner, *spot), Some(i + 1 - at));
                }
                for ago in 1..=i + 1 {
                    let (owner, spot) = steps[(i + 1 - ago) as usize];
                    prop_assert_eq!(used.ago(owner, ago), Some((spot, (i + 1 - ago) as u16)));
                    prop_assert_eq!(used.ago(owner + 1, ago), None);
                }
            }
            prop_assert_eq!(used.last(0, 41), None);
        }
    }

    #[test]
    fn what_is_out_of_reach_is_forgotten() {
        let (mut used, mut open) = (Used::new(), Open::new());
        used.note(0, 512, 0);
        open.note(0, 512, 0);
        for i in 0..REACH as i64 - 2 {
            used.note(1, i, 0);
            open.note(1, i, 0);
        }
        let oldest = REACH as i64 - 1;
        assert_eq!((used.last(0, 512), open.ago(0, oldest)), (Some(oldest), Some((512, 0))));
        used.note(0, 7, 0);
        open.note(0, 7, 0);
        assert_eq!((used.last(0, 512), open.ago(0, oldest), open.ago(0, oldest + 1)), (None, None, None));
        assert_eq!((used.ago(0, 0), used.ago(0, -1)), (None, None));
    }

    #[test]
    fn nothing_goes_on_twice_from_one_end() {
        let mut open = Open::new();
        open.note(0, 512, 1);
        open.note(0, 1024, 2);
        assert_eq!((open.ago(0, 2), open.ago(1, 2)), (Some((512, 1)), None));
        open.go_on(2);
        assert_eq!((open.ago(0, 2), open.ago(0, 1)), (None, Some((1024, 2))));
    }
}
