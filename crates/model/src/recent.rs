//! Which offsets were used last, and how long ago.

use loadstone_trace::NONE;

/// Requests looked back at; older ones are forgotten.
pub(crate) const REACH: usize = 1 << 16;

/// Heads of chains; more of them make chains shorter.
const HEADS: usize = 1 << 16;

/// Marks the owner of a slot whose spot was used again since; ids of owners are far below it.
const AGAIN: u32 = 1 << 31;

/// A use of a spot, as small as can be: every request touches a slot or two of all of them.
#[derive(Debug, Clone, Copy)]
struct Slot {
    offset: i64,
    /// An object, or an object's op.
    owner: u32,
    /// Number of the next older use in the same chain.
    older: u32,
}

/// The last [`REACH`] requests that have an offset, by number, and by owner and offset.
///
/// A hash chain as compressors keep over their window: a spot that is used again leaves its place in
/// the chain to the newer use, so a chain holds each spot once and ends where it gets too old. Numbers
/// wrap; what looks new then was overwritten long ago and is no spot of the chain.
pub(crate) struct Recent {
    slots: Vec<Slot>,
    heads: Vec<u32>,
    /// Number of the next request; they start at `REACH`, so that 0 is too old.
    next: u32,
}

impl Default for Recent {
    fn default() -> Recent {
        let slot = Slot { offset: NONE, owner: AGAIN, older: 0 };
        Recent { slots: vec![slot; REACH], heads: vec![0; HEADS], next: REACH as u32 }
    }
}

impl Recent {
    /// Takes the next request; how many requests ago the same spot was used, [`NONE`] if not within reach.
    #[inline]
    pub fn note(&mut self, owner: u32, offset: i64) -> i64 {
        let ago = self.take(owner, offset);
        self.put(owner, offset);
        ago
    }

    /// How many requests before the next the spot was used, [`NONE`] if not within reach; it is forgotten.
    #[inline]
    pub fn take(&mut self, owner: u32, offset: i64) -> i64 {
        let head = &mut self.heads[head(owner, offset)];
        let mut at = *head;
        // Slot of the newer neighbour in the chain, whose link skips the spot's older use.
        let mut newer = None;
        loop {
            let ago = self.next.wrapping_sub(at);
            if ago >= REACH as u32 {
                return NONE;
            }
            let slot = &mut self.slots[at as usize % REACH];
            let older = slot.older;
            if slot.offset == offset && slot.owner == owner {
                slot.owner |= AGAIN;
                match newer {
                    Some(newer) => self.slots[newer as usize % REACH].older = older,
                    None => *head = older,
                }
                return i64::from(ago);
            }
            newer = Some(at);
            at = older;
        }
    }

    /// Takes the next request, whose spot is new or was taken away; which slot it has.
    #[inline]
    pub fn put(&mut self, owner: u32, offset: i64) -> usize {
        let slot = self.next as usize % REACH;
        let head = &mut self.heads[head(owner, offset)];
        self.slots[slot] = Slot { offset, owner, older: *head };
        *head = self.next;
        self.next = self.next.wrapping_add(1);
        slot
    }

    /// Slot and offset of what was used `ago` requests ago and not since, if it is the owner's.
    #[inline]
    pub fn ago(&self, owner: u32, ago: i64) -> Option<(usize, i64)> {
        if !(1..REACH as i64).contains(&ago) {
            return None;
        }
        let at = self.next.wrapping_sub(ago as u32) as usize % REACH;
        let slot = &self.slots[at];
        (slot.owner == owner).then_some((at, slot.offset))
    }
}

#[inline]
fn head(owner: u32, offset: i64) -> usize {
    let mixed = (offset as u64 ^ (u64::from(owner) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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
            let mut last: HashMap<(u32, i64), i64> = HashMap::new();
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
