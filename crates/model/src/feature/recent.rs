//! Which offsets were used last, and how long ago.

use crate::feature::{Feature, Rows};
use loadstone_trace::{NONE, prefetch};

/// Requests looked back at; older ones are forgotten.
pub(crate) const REACH: usize = 1 << 16;

/// Heads of chains; more of them make chains shorter.
const HEADS: usize = 1 << 16;

/// Requests looked at together.
const ROUND: usize = 128;

/// Requests that chains are asked for before they are needed.
const AHEAD: usize = 8;

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
}

/// A request: the spots it uses and leaves, and the heads of their chains.
#[derive(Clone, Copy, Default)]
struct Step {
    from: i64,
    to: i64,
    owner: u32,
    used: u32,
    left: u32,
}

impl Step {
    #[inline]
    fn new((owner, from, to): (u32, i64, i64)) -> Step {
        let used = head(owner, from);
        let left = if from == to { used } else { head(owner, to) };
        Step { from, to, owner, used, left }
    }
}

/// The last [`REACH`] requests that have an offset, by number, and by owner and the spot they left: where
/// they began, or where they ended.
///
/// A hash chain as compressors keep over their window: a spot that is used again leaves its place in
/// the chain to the newer use, so a chain holds each spot once and ends where it gets too old. Numbers
/// wrap; what looks new then was overwritten long ago and is no spot of the chain.
pub(crate) struct Recent {
    slots: Box<[Slot; REACH]>,
    heads: Box<[u32; HEADS]>,
    /// Number of the next request; they start at `REACH`, so that 0 is too old.
    next: u32,
}

impl Default for Recent {
    fn default() -> Recent {
        let slot = Slot { offset: NONE, owner: AGAIN, older: 0 };
        Recent { slots: boxed(slot), heads: boxed(0), next: REACH as u32 }
    }
}

impl Recent {
    #[inline]
    fn step_at(&mut self, step: &Step) -> i64 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        let ago = self.take(step.used, number, step.owner, step.from);
        let head = &mut self.heads[step.left as usize % HEADS];
        let older = number.wrapping_sub(*head).try_into().unwrap_or(0);
        *head = number;
        self.slots[number as usize % REACH] = Slot { offset: step.to, owner: step.owner, older };
        ago
    }

    /// Takes a stream of requests: owner, the spot used and the spot left of each; those that use none are [`NONE`].
    ///
    /// Chains lie all over a memory larger than the caches near a core: each request's is asked for while those before
    /// it are looked for.
    pub fn steps(&mut self, mut requests: impl Iterator<Item = (u32, i64, i64)>, out: &mut Vec<i64>) {
        out.clear();
        let mut round = [Step::default(); ROUND];
        loop {
            let mut n = 0;
            for (step, request) in round.iter_mut().zip(&mut requests) {
                *step = Step::new(request);
                prefetch(&self.heads[step.used as usize % HEADS]);
                n += 1;
            }
            let steps = &round[..n];
            steps.iter().take(AHEAD).for_each(|soon| self.ask(soon));
            out.extend(steps.iter().enumerate().map(|(i, step)| {
                if let Some(soon) = steps.get(i + AHEAD) {
                    self.ask(soon);
                }
                if step.from == NONE { NONE } else { self.step_at(step) }
            }));
            if n < ROUND {
                return;
            }
        }
    }

    /// Asks for the newest use in a chain.
    #[inline]
    fn ask(&self, step: &Step) {
        prefetch(&self.slots[self.heads[step.used as usize % HEADS] as usize % REACH]);
    }

    /// How long before this request its spot was left, [`NONE`] if not within reach; it is forgotten.
    #[inline]
    fn take(&mut self, at: u32, number: u32, owner: u32, from: i64) -> i64 {
        let head = &mut self.heads[at as usize % HEADS];
        let mut at = *head;
        // Slot of the newer neighbour in the chain, whose link skips the spot's older use.
        let mut newer = None;
        loop {
            let ago = number.wrapping_sub(at);
            if ago >= REACH as u32 {
                return NONE;
            }
            let slot = &mut self.slots[at as usize % REACH];
            let older = slot.older;
            if slot.offset == from && slot.owner == owner {
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
}

/// A feature of a request and of the earlier one that another feature points back to, so many requests ago.
pub(crate) struct Back<F> {
    ago: F,
    agos: Vec<i64>,
    /// Of the last requests that have an offset, by their number.
    kept: Vec<i64>,
    next: usize,
    number: Number,
}

/// From a request and what was kept of the earlier one: its number, and what is kept of it.
type Number = fn(&Rows<'_>, usize, Option<i64>) -> (i64, i64);

impl<F> Back<F> {
    pub fn new(ago: F, number: Number) -> Back<F> {
        Back { ago, agos: Vec::new(), kept: vec![0; REACH], next: 0, number }
    }
}

impl<F: Feature> Feature for Back<F> {
    fn values(&mut self, rows: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        self.ago.values(rows, &mut self.agos);
        out.extend(self.agos.iter().enumerate().map(|(i, &ago)| {
            if rows.offset[i] == NONE {
                return NONE;
            }
            let before = (ago != NONE).then(|| self.kept[(self.next + REACH - ago as usize) % REACH]);
            let (number, kept) = (self.number)(rows, i, before);
            self.kept[self.next] = kept;
            self.next = (self.next + 1) % REACH;
            number
        }));
    }
}

/// An array that is never on the stack.
fn boxed<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    vec![value; N].try_into().unwrap_or_else(|_| unreachable!("as many were asked for"))
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
            steps in proptest::collection::vec((0u32..3, 0i64..40, 0i64..40), 1..1000), cold in any::<bool>(),
        ) {
            let mut recent = Recent::default();
            // When each spot was left; of several times the newest is used first.
            let mut left: HashMap<(u32, i64), Vec<i64>> = HashMap::new();
            // Far into a stream, too: slots are used again.
            let skipped = if cold { 0 } else { 2 * REACH as i64 };
            for i in 0..skipped {
                recent.step_at(&Step::new((9, i * 512, i * 512)));
            }
            let mut together = Vec::new();
            let half = steps.len() / 2;
            recent.steps(steps[..half].iter().copied(), &mut together);
            for (i, (owner, from, to)) in (0i64..).zip(steps) {
                let known = left.get_mut(&(owner, from)).and_then(Vec::pop).map_or(NONE, |at| i - at);
                let found = match together.get(i as usize) {
                    Some(found) => *found,
                    None => recent.step_at(&Step::new((owner, from, to))),
                };
                prop_assert_eq!(found, known);
                left.entry((owner, to)).or_default().push(i);
            }
        }
    }

    #[test]
    fn forgets_what_is_out_of_reach() {
        let mut recent = Recent::default();
        let mut note = |owner, spot| recent.step_at(&Step::new((owner, spot, spot)));
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
