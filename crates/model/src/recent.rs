//! Which offsets were used last, and how long ago.

use loadstone_trace::NONE;

/// Requests looked back at; older ones are forgotten.
pub(crate) const REACH: usize = 1 << 16;

/// Heads of chains; more of them make chains shorter.
const HEADS: usize = 1 << 16;

/// Requests that are chained later, where they are.
const LATE: usize = 2;

/// Marks the owner of a slot whose spot was used again since; ids of owners are far below it.
const AGAIN: u32 = 1 << 31;

/// A use of a spot, as small as can be: every request touches a slot or two of all of them.
#[derive(Debug, Clone, Copy)]
struct Slot {
    offset: i64,
    /// An object, or an object's op.
    owner: u32,
    /// How many requests before it the next older use in the same chain was; 0: there is none.
    older: u16,
    /// Whatever is to be known of the request.
    mark: u16,
}

/// The last [`REACH`] requests that have an offset, by number, and by owner and the spot they left: where
/// they began, or where they ended.
///
/// A hash chain as compressors keep over their window: a spot that is used again leaves its place in
/// the chain to the newer use, so a chain holds each spot once and ends where it gets too old. Numbers
/// wrap; what looks new then was overwritten long ago and is no spot of the chain.
pub(crate) struct Recent {
    slots: Vec<Slot>,
    heads: Vec<u32>,
    /// Number of the next request; they start at `REACH`, so that 0 is too old.
    next: u32,
    /// The last requests, where they are chained later.
    late: Option<[Step; LATE]>,
    /// Ages below this are known: of requests that are chained later the slots are written already.
    known: u32,
}

/// What is chained of a request.
#[derive(Debug, Clone, Copy)]
struct Step {
    number: u32,
    owner: u32,
    /// The spot that is used, and the head of its chain.
    from: i64,
    head: u32,
    /// Head of the chain of the spot that is left.
    to_head: u32,
}

impl Default for Recent {
    fn default() -> Recent {
        let slot = Slot { offset: NONE, owner: AGAIN, older: 0, mark: 0 };
        Recent {
            slots: vec![slot; REACH],
            heads: vec![0; HEADS],
            next: REACH as u32,
            late: None,
            known: REACH as u32,
        }
    }
}

impl Recent {
    /// One that is not asked when a spot was used, only what was used when.
    ///
    /// Chains lie all over a memory larger than the caches near a core, and waiting for them took a third
    /// of the time of drawing. This one asks for a chain two requests before it needs it.
    pub fn late() -> Recent {
        let none = Step { number: 0, owner: AGAIN, from: NONE, head: 0, to_head: 0 };
        Recent { late: Some([none; LATE]), known: (REACH - LATE) as u32, ..Recent::default() }
    }

    /// Takes the next request, which uses the spot `from` and leaves the spot `to`: how many requests ago
    /// `from` was left, [`NONE`] if not within reach, or if that is found out later.
    #[inline]
    pub fn step(&mut self, owner: u32, from: i64, to: i64, mark: u16) -> i64 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        let step = Step { number, owner, from, head: head(owner, from), to_head: head(owner, to) };
        let slot = Slot { offset: to, owner, older: 0, mark };
        match &mut self.late {
            None => {
                let ago = self.take(step);
                self.slots[number as usize % REACH] = slot;
                self.put(step);
                ago
            }
            Some(late) => {
                let [oldest, older] = std::mem::replace(late, [late[1], step]);
                self.slots[number as usize % REACH] = slot;
                prefetch(&self.heads[step.head as usize % HEADS]);
                prefetch(&self.heads[step.to_head as usize % HEADS]);
                prefetch(&self.slots[self.heads[older.head as usize % HEADS] as usize % REACH]);
                if oldest.owner != AGAIN {
                    self.take(oldest);
                    self.put(oldest);
                }
                NONE
            }
        }
    }

    /// How long before this request its spot was left, [`NONE`] if not within reach; it is forgotten.
    #[inline]
    fn take(&mut self, step: Step) -> i64 {
        let head = &mut self.heads[step.head as usize % HEADS];
        let mut at = *head;
        // Slot of the newer neighbour in the chain, whose link skips the spot's older use.
        let mut newer = None;
        loop {
            let ago = step.number.wrapping_sub(at);
            if ago >= self.known {
                return NONE;
            }
            let slot = &mut self.slots[at as usize % REACH];
            let older = slot.older;
            if slot.offset == step.from && slot.owner == step.owner {
                slot.owner |= AGAIN;
                match newer {
                    Some(newer) => {
                        let newer: &mut Slot = &mut self.slots[newer as usize % REACH];
                        // Where they are too far apart, the older is out of reach.
                        let link = if older == 0 { None } else { newer.older.checked_add(older) };
                        newer.older = link.unwrap_or(0);
                    }
                    None => *head = before(at, older),
                }
                return i64::from(ago);
            }
            newer = Some(at);
            at = before(at, older);
        }
    }

    /// Chains this request's slot.
    #[inline]
    fn put(&mut self, step: Step) {
        let head = &mut self.heads[step.to_head as usize % HEADS];
        let older = step.number.wrapping_sub(*head).try_into().unwrap_or(0);
        self.slots[step.number as usize % REACH].older = older;
        *head = step.number;
    }

    /// Whether a spot was left within reach and not used since; one that is chained later may not know of the
    /// last two requests.
    #[inline]
    pub fn knows(&self, owner: u32, spot: i64) -> bool {
        let mut at = self.heads[head(owner, spot) as usize % HEADS];
        while self.next.wrapping_sub(at) < self.known {
            let slot = &self.slots[at as usize % REACH];
            if slot.offset == spot && slot.owner == owner {
                return true;
            }
            at = before(at, slot.older);
        }
        false
    }

    /// Spot and mark of what was left `ago` requests ago and not used since, if it is the owner's.
    #[inline]
    pub fn ago(&self, owner: u32, ago: i64) -> Option<(i64, u16)> {
        if !(1..i64::from(self.known)).contains(&ago) {
            return None;
        }
        let slot = &self.slots[self.next.wrapping_sub(ago as u32) as usize % REACH];
        if slot.owner != owner {
            return None;
        }
        // The last requests may have used it without having marked it so.
        let used = |step: &Step| {
            let since = self.next.wrapping_sub(step.number);
            i64::from(since) < ago && step.owner == owner && step.from == slot.offset
        };
        let again = self.late.as_ref().is_some_and(|late| late.iter().any(used));
        (!again).then_some((slot.offset, slot.mark))
    }
}

/// Asks for memory that is needed soon.
#[inline]
fn prefetch<T>(at: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on caches, and the address is of a value.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The next older use in a chain, so many requests before; out of reach if there is none.
#[inline]
fn before(at: u32, older: u16) -> u32 {
    at.wrapping_sub(if older == 0 { REACH as u32 } else { u32::from(older) })
}

#[inline]
fn head(owner: u32, offset: i64) -> u32 {
    let mixed = (offset as u64 ^ (u64::from(owner) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 48) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn says_what_a_full_memory_would(
            steps in proptest::collection::vec((0u32..3, 0i64..40, 0i64..40), 1..500), cold in any::<bool>(),
        ) {
            let (mut recent, mut late) = (Recent::default(), Recent::late());
            // When each spot was left; of several times the newest is used first.
            let mut left: HashMap<(u32, i64), Vec<i64>> = HashMap::new();
            // Far into a stream, too: slots are used again.
            let skipped = if cold { 0 } else { 2 * REACH as i64 };
            for i in 0..skipped {
                recent.step(9, i * 512, i * 512, 0);
                late.step(9, i * 512, i * 512, 0);
            }
            let mut before = (9, 0);
            for (i, (owner, from, to)) in (0i64..).zip(steps) {
                let known = left.get_mut(&(owner, from)).and_then(Vec::pop).map_or(NONE, |at| i - at);
                prop_assert_eq!(recent.step(owner, from, to, i as u16), known);
                late.step(owner, from, to, i as u16);
                left.entry((owner, to)).or_default().push(i);
                let at: HashMap<i64, (u32, i64)> =
                    left.iter().flat_map(|(spot, times)| times.iter().map(|t| (*t, *spot))).collect();
                for ago in 1..=(i + 1) {
                    for o in 0..3 {
                        let then = i + 1 - ago;
                        let expected = at.get(&then).filter(|spot| spot.0 == o).map(|s| (s.1, then as u16));
                        prop_assert_eq!(recent.ago(o, ago), expected);
                        // Of a spot that was left twice the late one may not tell which of them was used.
                        let used = [Some(&before), Some(&(owner, from))].contains(&at.get(&then));
                        prop_assert!(late.ago(o, ago) == expected || (used && late.ago(o, ago).is_none()));
                    }
                }
                for ((o, spot), times) in &left {
                    prop_assert_eq!(recent.knows(*o, *spot), !times.is_empty());
                    let is_late = [i - 1, i].iter().any(|at| times.contains(at));
                    let used = [before, (owner, from)].contains(&(*o, *spot));
                    prop_assert!(late.knows(*o, *spot) != times.is_empty() || is_late || used);
                }
                before = (owner, from);
            }
        }
    }

    #[test]
    fn forgets_what_is_out_of_reach() {
        let mut recent = Recent::default();
        let mut note = |owner, spot| recent.step(owner, spot, spot, 0);
        note(0, 512);
        for i in 0..REACH as i64 - 2 {
            note(1, i);
        }
        assert_eq!(note(0, 512), REACH as i64 - 1);
        for i in 0..REACH as i64 {
            note(1, i);
        }
        assert_eq!(note(0, 512), NONE);
    }
}
