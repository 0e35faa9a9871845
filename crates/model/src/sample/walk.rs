//! Drawing from one joint table: all cells first, then an order in which each follows what it is given.

use super::deal::{self, Dealt, Draw, Part};
use super::deck::Deck;
use super::decode::below;
use super::mix::Budget;
use super::place::{Fit, Misfit};
use super::pools::{self, Pool, Pools};
use super::{GAP, GivenSource, Sampler};
use crate::cells::Layout;
use crate::rule::OVER;
use std::sync::Arc;

/// Tries until a stream of another age will do.
const EXACT: usize = 8;
/// Tries until an end at another remainder of a page will do.
const AGED: usize = 12;
/// Tries until draws that go anywhere are looked at instead.
const OTHERS: usize = 14;
/// Tries until a draw goes where it can.
const NEAR: usize = 16;

/// Where draws for the next request are looked for.
#[derive(Clone, Copy)]
enum Choice {
    /// This one of the hand.
    Best(usize),
    /// Any of the hand.
    Hand,
    /// Any of a pool.
    Pool(Pool),
}

/// Where a draw waits.
enum From {
    Hand(usize),
    Pool(pools::Place),
}

/// What the next request finds.
struct Now {
    /// The given part of the key that draws must have; `None` if the model never saw it.
    given: Option<u64>,
    /// Bits of the given part.
    mask: u64,
    /// Time until the part begins, nanoseconds; nothing once it has.
    wait: i64,
    /// Requests left in the part.
    left: usize,
}

impl Now {
    #[inline]
    fn follows(&self, draw: &Draw) -> bool {
        self.given == Some(draw.key & self.mask)
    }
}

impl Sampler {
    /// Draws the cells of the parts, which have one matrix, without replacement and emits them part by part.
    ///
    /// Each part takes the ops of its budget.
    pub(super) fn draw_walk(&mut self, decks: &mut [Deck], parts: &[Part], mut budgets: Vec<Budget>) {
        let t = self.tables[0].0;
        let model = Arc::clone(&self.model);
        let layout = &model.layouts[t];
        let mut draws = Vec::with_capacity(parts.iter().map(|p| p.requests).sum());
        for (class, deck) in decks.iter_mut().enumerate() {
            for _ in 0..budgets.iter().map(|budget| budget[class]).sum::<i64>() {
                let key = deck.draw(|n| below(&mut self.rng, n));
                let gap = self.decode_gap.draw(layout.code(key, self.gap.position), &mut self.rng).max(0);
                let goes_on = self.resume.is_some_and(|at| layout.code(key, at.position) != 0);
                let align = self.align.map_or(0, |at| layout.code(key, at.position));
                draws.push(Draw { key, gap, ends: goes_on.then_some(align) });
            }
        }
        let Dealt { hands, rest } = deal::deal(draws, parts, self.time, &mut self.rng);
        let bits = |position: usize| ((1u64 << layout.bits(position)) - 1) << layout.shift(position);
        let mask = self.tables[0].1.iter().fold(0, |mask, given| mask | bits(given.at.position));
        let mut pools = std::mem::take(&mut self.pools);
        let class = |key: u64| self.mix.class(layout.code(key, self.op.position));
        pools.fill(rest, mask, self.mix.classes(), class);
        // What was dealt is out of the budget.
        for (part, hand) in parts.iter().zip(&hands) {
            for draw in hand {
                budgets[part.budget][class(draw.key)] -= 1;
            }
        }
        let mut last = 0;
        for (part, mut hand) in parts.iter().zip(hands).filter(|(part, _)| part.requests > 0) {
            // What one group has too much of, the next has less.
            for at in last..part.budget {
                let rest = std::mem::take(&mut budgets[at]);
                budgets[at + 1].iter_mut().zip(rest).for_each(|(left, rest)| *left += rest);
            }
            last = part.budget;
            let mut wait = part.start - self.time;
            for left in (1..=part.requests).rev() {
                let now = Now { given: self.given(layout), mask, wait, left };
                self.emit_next(&mut hand, &mut pools, &mut budgets[part.budget], &now, layout);
                wait = 0;
            }
            self.settle(part);
        }
        self.pools = pools;
    }

    #[inline]
    fn given(&mut self, layout: &Layout) -> Option<u64> {
        let mut key = 0;
        for given in &mut self.tables[0].1 {
            let GivenSource::Previous { feature, coder } = &mut given.source else { return None };
            let code = coder.code(self.last[*feature]);
            if code == OVER || u64::from(code) >> layout.bits(given.at.position) != 0 {
                return None;
            }
            key |= u64::from(code) << layout.shift(given.at.position);
        }
        Some(key)
    }

    /// Emits one of the draws and takes it away; another is tried where one does not fit what the
    /// requests before it left.
    #[inline]
    fn emit_next(
        &mut self,
        hand: &mut Vec<Draw>,
        pools: &mut Pools,
        budget: &mut Budget,
        now: &Now,
        layout: &Layout,
    ) {
        let mut choice = self.choose(hand, pools, budget, now);
        let mut near = Fit::Unaligned;
        for tries in 0.. {
            let (from, draw) = match choice {
                Choice::Best(at) => (From::Hand(at), hand[at]),
                Choice::Hand => {
                    let first = below(&mut self.rng, hand.len() as u64) as usize;
                    let mut order = (first..hand.len()).chain(0..first);
                    let at = order.find(|&i| now.follows(&hand[i])).unwrap_or(first);
                    (From::Hand(at), hand[at])
                }
                Choice::Pool(pool) => {
                    let (place, draw) = pools.look(pool, &mut self.rng);
                    (From::Pool(place), draw)
                }
            };
            self.last[GAP] = draw.gap;
            let fit = match tries {
                _ if tries < EXACT => Fit::Exact,
                _ if tries < AGED => Fit::Aged,
                _ if tries < NEAR => near,
                _ => Fit::Forced,
            };
            if let Err(Misfit { rest }) = self.emit(|at| layout.code(draw.key, at.position), fit) {
                if tries + 1 == OTHERS
                    && let Choice::Pool(pool) = choice
                {
                    choice = Choice::Pool(
                        pools.free(pool).unwrap_or_else(|| pools.fullest(budget, &mut self.rng)),
                    );
                } else if let Some(rest) = rest {
                    let ends = self.code_align.code(rest);
                    near = if pools.is_rare(ends) { Fit::Resized } else { Fit::Unaligned };
                    if let Choice::Pool(pool) = choice {
                        choice = pools.aligned(pool, ends).map_or(choice, Choice::Pool);
                    }
                }
                continue;
            }
            match from {
                From::Hand(at) => drop(hand.swap_remove(at)),
                From::Pool(place) => {
                    budget[pools.take(place)] -= 1;
                }
            }
            self.tally.backed_off += u64::from(!now.follows(&draw));
            self.gaps.push(draw.gap);
            return;
        }
    }

    /// Where to look for the next request.
    #[inline]
    fn choose(&mut self, hand: &[Draw], pools: &Pools, budget: &Budget, now: &Now) -> Choice {
        let rng = &mut self.rng;
        if now.wait > 0 && !hand.is_empty() {
            // The gap that leads into the part: the shortest that is long enough, else the longest. A
            // shorter one would be made longer, and there would be more long ones than were drawn.
            let fits = |gap: i64| if gap >= now.wait { (0, gap) } else { (1, -gap) };
            let best = (0..hand.len()).min_by_key(|&i| (!now.follows(&hand[i]), fits(hand[i].gap)));
            return Choice::Best(best.expect("not empty"));
        }
        // Only the hand is left for the rest of this part.
        let only = hand.len() == now.left;
        let early = !hand.is_empty() && below(rng, now.left as u64) < hand.len() as u64;
        if only || (early && hand.iter().any(|draw| now.follows(draw))) {
            return Choice::Hand;
        }
        let found = now.given.and_then(|given| pools.matching(given, budget, rng));
        Choice::Pool(found.unwrap_or_else(|| pools.fullest(budget, rng)))
    }
}
