//! Drawing from one joint table: all cells first, then an order in which each follows what it is given.

use crate::random::below;
use crate::sample::block::placement::{Fit, Misfit};
use crate::sample::block::pools::{Ends, Pools, Shape};
use crate::sample::gaps::Aim;
use crate::sample::mix::Budget;
use crate::sample::schedule::{Draw, Part, Schedule};
use crate::sample::{GAP, Joint, Sampler};
use loadstone_trace::NONE;
use std::sync::Arc;

/// Tries until a stream of another age will do.
const EXACT: usize = 8;
/// Tries until an end at another remainder of a page will do.
const AGED: usize = 12;
/// Tries until draws that go anywhere are looked at instead.
const OTHERS: usize = 14;
/// Tries until a draw goes where it can.
const NEAR: usize = 16;

/// Cards drawn at once.
const HAND: usize = 64;

/// Where draws for the next request are looked for.
#[derive(Clone, Copy)]
enum Choice {
    /// This one of the hand.
    Best(usize),
    /// Any of the hand.
    Hand,
    /// Any of a pool.
    Pool(u32),
}

/// What the next request finds.
struct Now {
    /// The group of draws that follow; `None` if the model never saw what came before.
    group: Option<u32>,
    /// And its key.
    given: Option<u64>,
    /// Time until the part begins, nanoseconds; nothing once it has.
    wait: i64,
    /// Requests left in the part.
    left: usize,
    /// What those of pools should have, so that the part takes its time.
    aim: Option<Aim>,
}

impl Now {
    #[inline]
    fn is_before(&self, draw: &Draw, shape: &Shape) -> bool {
        self.group == Some(shape.group(draw.pool))
    }
}

/// Parts of one matrix whose cells are drawn, and what is left of them.
pub(crate) struct BlockOrder {
    parts: std::vec::IntoIter<Part>,
    /// Draws with long gaps, by part.
    hands: std::vec::IntoIter<Vec<Draw>>,
    pools: Pools,
    /// What parts take of each class of op, and how many of these budgets were granted.
    budgets: Vec<Budget>,
    granted: usize,
}

impl Sampler {
    /// Draws the cells of parts, which have one matrix, without replacement.
    ///
    /// Each part takes the ops of its budget.
    pub(crate) fn deal(&mut self, joint: &mut Joint, parts: Vec<Part>, mut budgets: Vec<Budget>) {
        let shape = Arc::clone(&joint.shape);
        let mut pools = match self.spare.take() {
            Some(pools) => pools.again(shape),
            None => Pools::new(shape),
        };
        let (place, cells) = (self.gap, Arc::clone(&joint.shape));
        let gap_of = |cell| place.code(cells.key(cell));
        let mut deal = Schedule::new(&parts, self.time);
        let mut time = parts.last().map_or(0, |part| part.end - 1 - self.time);
        let mut requests = parts.iter().map(|part| part.requests).sum::<usize>();
        for (class, urn) in joint.urns.iter_mut().enumerate() {
            let mut left = budgets.iter().map(|budget| budget[class]).sum::<i64>().max(0) as usize;
            while left > 0 {
                let mut cells = [0; HAND];
                let cells = if let Some(aim) = Aim::of(time, requests, joint.mean_gap) {
                    cells[0] = urn.draw_for(
                        aim,
                        |cell| self.decode_gap.middle(gap_of(cell)),
                        |n| below(&mut self.rng, n),
                    );
                    &mut cells[..1]
                } else {
                    // Cards lie far apart in memory; nothing may wait for one before the next is asked for.
                    let cells = &mut cells[..left.min(HAND)];
                    cells.fill_with(|| urn.draw(|n| below(&mut self.rng, n)));
                    cells
                };
                left -= cells.len();
                requests = requests.saturating_sub(cells.len());
                for &mut cell in cells {
                    let gap = self.decode_gap.draw(gap_of(cell), &mut self.rng).max(0);
                    time = time.saturating_sub(gap);
                    let draw = Draw { cell, pool: joint.shape.pool(cell), gap };
                    if !deal.takes(draw) {
                        pools.add(draw);
                    }
                }
            }
        }
        pools.ready();
        let hands = deal.hands(&parts, &mut self.rng);
        // What was dealt is out of the budget.
        for (part, hand) in parts.iter().zip(&hands) {
            for draw in hand {
                budgets[part.budget][joint.shape.class(draw.pool)] -= 1;
            }
        }
        let (parts, hands) = (parts.into_iter(), hands.into_iter());
        self.walk = Some(Box::new(BlockOrder { parts, hands, pools, budgets, granted: 0 }));
    }

    /// Emits the requests of the next part; `false` if there is none.
    pub(crate) fn walk_on(&mut self) -> bool {
        let Some(mut walk) = self.walk.take() else { return false };
        let Some((part, mut hand)) = walk.parts.next().zip(walk.hands.next()) else {
            self.spare = Some(walk.pools);
            return false;
        };
        if part.requests > 0 {
            // What one group has too much of, the next has less.
            for budget in &walk.budgets[walk.granted..=part.budget] {
                walk.pools.grant(budget);
            }
            walk.granted = part.budget + 1;
            let mut wait = part.start - self.time;
            // What the hand leaves for gaps from pools.
            let mut time =
                hand.iter().fold(part.end - 1 - self.time, |left, draw| left.saturating_sub(draw.gap));
            for left in (1..=part.requests).rev() {
                let given = self.given();
                let group = given.and_then(|given| walk.pools.shape().given(given));
                let aim = Aim::of(time, left - hand.len(), walk.pools.mean_gap());
                let now = Now { group, given, wait, left, aim };
                time = time.saturating_sub(self.emit_next(&mut hand, &mut walk.pools, &now));
                wait = 0;
            }
            self.settle(&part);
        }
        self.walk = Some(walk);
        true
    }

    #[inline]
    pub(crate) fn given(&mut self) -> Option<u64> {
        let mut key = 0;
        for given in &mut self.given {
            key |= given.place.part(given.codes.code(self.last[given.feature]))?;
        }
        Some(key)
    }

    /// Emits one of the draws and takes it away; another is tried where one does not fit what the
    /// requests before it left. Answers its gap if it came from a pool, else 0.
    #[inline]
    fn emit_next(&mut self, hand: &mut Vec<Draw>, pools: &mut Pools, now: &Now) -> i64 {
        let mut choice = self.choose(hand, pools, now);
        let mut near = Fit::Unaligned;
        for tries in 0.. {
            let (at, draw) = match choice {
                Choice::Best(at) => (at, hand[at]),
                Choice::Hand => {
                    let first = below(&mut self.rng, hand.len() as u64) as usize;
                    let mut order = (first..hand.len()).chain(0..first);
                    let at = order.find(|&i| now.is_before(&hand[i], pools.shape())).unwrap_or(first);
                    (at, hand[at])
                }
                Choice::Pool(pool) => {
                    if let Some(aim) = now.aim {
                        pools.prefer(pool, aim, &mut self.rng);
                    }
                    (0, pools.look(pool))
                }
            };
            self.last[GAP] = draw.gap;
            let key = pools.shape().key(draw.cell);
            let fit = match tries {
                _ if tries < EXACT => Fit::Exact,
                _ if tries < AGED => Fit::Aged,
                _ if tries < NEAR => near,
                _ => Fit::Forced,
            };
            if let Err(Misfit { ends }) = self.emit(key, fit) {
                if let Choice::Pool(pool) = choice {
                    pools.exchange(pool, &mut self.rng);
                }
                if tries + 1 == OTHERS
                    && let Choice::Pool(pool) = choice
                {
                    choice = Choice::Pool(
                        pools.free(pool).unwrap_or_else(|| pools.fullest(now.given, &mut self.rng)),
                    );
                } else if let Some((rest, distance)) = ends {
                    let distance = if distance == NONE { 0 } else { self.code_distance.code(distance) };
                    let ends = Ends { align: self.code_align.code(rest), distance };
                    near = if pools.is_rare(ends) { Fit::Resized } else { Fit::Unaligned };
                    if let Choice::Pool(pool) = choice {
                        choice = pools.going_on(pool, ends).map_or(choice, Choice::Pool);
                    }
                }
                continue;
            }
            self.tally.backed_off += u64::from(!now.is_before(&draw, pools.shape()));
            self.gaps.push(draw.gap);
            let Choice::Pool(pool) = choice else {
                hand.swap_remove(at);
                break;
            };
            pools.take(pool);
            return draw.gap;
        }
        0
    }

    /// Where to look for the next request.
    #[inline]
    fn choose(&mut self, hand: &[Draw], pools: &Pools, now: &Now) -> Choice {
        let rng = &mut self.rng;
        if now.wait > 0 && !hand.is_empty() {
            // The gap that leads into the part: the shortest that is long enough, else the longest. A
            // shorter one would be made longer, and there would be more long ones than were drawn.
            let fits = |gap: i64| if gap >= now.wait { (0, gap) } else { (1, -gap) };
            let best =
                (0..hand.len()).min_by_key(|&i| (!now.is_before(&hand[i], pools.shape()), fits(hand[i].gap)));
            return Choice::Best(best.expect("not empty"));
        }
        // Only the hand is left for the rest of this part.
        let only = hand.len() == now.left;
        let early = !hand.is_empty() && below(rng, now.left as u64) < hand.len() as u64;
        if only || (early && hand.iter().any(|draw| now.is_before(draw, pools.shape()))) {
            return Choice::Hand;
        }
        let found = now.group.and_then(|group| pools.matching(group, rng));
        Choice::Pool(found.unwrap_or_else(|| pools.fullest(now.given, rng)))
    }
}
