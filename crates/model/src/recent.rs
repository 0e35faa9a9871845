//! Which offsets were used last, and how long ago.

use loadstone_trace::NONE;

/// Requests looked back at; older ones are forgotten.
pub(crate) const REACH: usize = 1 << 16;

/// Heads of chains; more of them make chains shorter.
const HEADS: usize = 1 << 16;

/// An object's offset.
type Spot = (u32, i64);

/// The last [`REACH`] requests that have an offset, by number, and by object and offset.
///
/// A hash chain as compressors keep over their window: a spot that is used again leaves its place in
/// the chain to the newer use, so a chain holds each spot once and ends where it gets too old.
pub(crate) struct Recent {
    spots: Vec<Spot>,
    /// Number of the next older request of the same chain, by slot.
    older: Vec<u64>,
    /// Whether the spot of this slot was used again since.
    again: Vec<bool>,
    heads: Vec<u64>,
    /// Number of the next request; they start at `REACH`, so that 0 is always too old.
    next: u64,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            spots: vec![(0, NONE); REACH],
            older: vec![0; REACH],
            again: vec![true; REACH],
            heads: vec![0; HEADS],
            next: REACH as u64,
        }
    }
}

impl Recent {
    /// Takes the next request; how many requests ago the same spot was used, [`NONE`] if not within reach.
    #[inline]
    pub fn note(&mut self, object: u32, offset: i64) -> i64 {
        let ago = self.take(object, offset);
        self.put(object, offset);
        ago
    }

    /// How many requests before the next the spot was used, [`NONE`] if not within reach; it is forgotten.
    #[inline]
    pub fn take(&mut self, object: u32, offset: i64) -> i64 {
        let spot = (object, offset);
        let head = &mut self.heads[head(spot)];
        let mut at = *head;
        // Slot of the newer neighbour in the chain, whose link skips the spot's older use.
        let mut newer = None;
        while self.next - at < REACH as u64 {
            let slot = at as usize % REACH;
            if self.spots[slot] == spot {
                self.again[slot] = true;
                match newer {
                    Some(newer) => self.older[newer] = self.older[slot],
                    None => *head = self.older[slot],
                }
                return (self.next - at) as i64;
            }
            newer = Some(slot);
            at = self.older[slot];
        }
        NONE
    }

    /// Takes the next request, whose spot is new or was taken away; which slot it has.
    #[inline]
    pub fn put(&mut self, object: u32, offset: i64) -> usize {
        let (spot, slot) = ((object, offset), self.next as usize % REACH);
        let head = &mut self.heads[head(spot)];
        self.spots[slot] = spot;
        self.older[slot] = *head;
        self.again[slot] = false;
        *head = self.next;
        self.next += 1;
        slot
    }

    /// Slot and offset of what was used `ago` requests ago and not since, if it is the object's.
    #[inline]
    pub fn ago(&self, object: u32, ago: i64) -> Option<(usize, i64)> {
        if !(1..REACH as i64).contains(&ago) {
            return None;
        }
        let slot = (self.next - ago as u64) as usize % REACH;
        let (whose, offset) = self.spots[slot];
        (!self.again[slot] && whose == object).then_some((slot, offset))
    }
}

#[inline]
fn head((object, offset): Spot) -> usize {
    let mixed = (offset as u64 ^ (u64::from(object) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as usize % HEADS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn says_what_a_full_memory_would(steps in proptest::collection::vec((0u32..3, 0i64..40), 1..500), cold in any::<bool>()) {
            let mut recent = Recent::default();
            let mut last: HashMap<Spot, i64> = HashMap::new();
            // Far into a stream, too: slots are used again.
            let skipped = if cold { 0 } else { 2 * REACH as i64 };
            for i in 0..skipped {
                recent.note(9, i * 512);
            }
            for (i, (object, offset)) in (0i64..).zip(steps) {
                let known = last.insert((object, offset * 512), i).map_or(NONE, |at| i - at);
                prop_assert_eq!(recent.note(object, offset * 512), known);
                prop_assert_eq!(recent.ago(object, 1).map(|(_, o)| o), Some(offset * 512));
                for (&(object, offset), at) in &last {
                    prop_assert_eq!(recent.ago(object, i + 1 - at).map(|(_, o)| o), Some(offset));
                }
            }
        }
    }

    #[test]
    fn forgets_what_is_out_of_reach() {
        let mut recent = Recent::default();
        recent.note(0, 512);
        for i in 0..REACH as i64 - 2 {
            recent.note(1, i);
        }
        assert_eq!(recent.note(0, 512), REACH as i64 - 1);
        for i in 0..REACH as i64 {
            recent.note(1, i);
        }
        assert_eq!(recent.note(0, 512), NONE);
    }
}
