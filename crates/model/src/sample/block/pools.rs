//! Draws that wait for their turn, by what must have come before them.

use crate::random::{below, unit};
use crate::sample::gaps::{Aim, LOOKS};
use crate::sample::mix::Budget;
use crate::sample::schedule::Draw;
use crate::schema::cells::{Cells, KeyField};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An alignment is rare below one in this many.
const RARE: usize = 32;

/// Where draws go on: the codes of the remainder in a page at which an earlier request ended, and of the stack distance
/// of the block they come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ends {
    pub align: u32,
    pub distance: u32,
}

/// Pools looked at to either side of the one whose stack distance would be right.
const NEIGHBOURS: usize = 4;

/// Which draws are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    /// Number of the group, those with the same given dimensions, and class of op: group after group.
    slot: u32,
    /// Draws that go anywhere come first; others go on where an earlier one ended.
    ends: Option<Ends>,
}

/// The cells of a joint table and the pool of each.
pub(crate) struct Shape {
    keys: Vec<u64>,
    pools: Vec<u32>,
    kinds: Vec<Kind>,
    /// First pool of each slot, that of the draws that go anywhere.
    first: Vec<u32>,
    groups: FxHashMap<u64, u32>,
    /// What follows the same op, by group.
    after: Vec<u64>,
    afters: u64,
    classes: usize,
}

/// What of a key decides on its pool.
pub(crate) struct Decides<C: Fn(u64) -> usize> {
    /// Bits of the given dimensions.
    pub given: u64,
    /// Those of the op before, which matters most: nothing goes on from a request of another.
    pub after: u64,
    /// The class of op, one of so many.
    pub class: C,
    pub classes: usize,
    /// Whether it goes on where an earlier one ended, where the code is above 0, and where that is.
    pub resume: KeyField,
    pub align: KeyField,
    pub distance: KeyField,
}

impl Shape {
    pub fn new<C: Fn(u64) -> usize>(cells: &Cells, by: &Decides<C>) -> Shape {
        let mut groups = FxHashMap::default();
        let kinds: Vec<Kind> = (cells.keys.iter())
            .map(|&key| {
                let next = groups.len() as u32;
                let group = *groups.entry(key & by.given).or_insert(next);
                let ends = (by.resume.code(key) != 0)
                    .then(|| Ends { align: by.align.code(key), distance: by.distance.code(key) });
                Kind { slot: group * by.classes as u32 + (by.class)(key) as u32, ends }
            })
            .collect();
        let slots = (groups.len() * by.classes) as u32;
        let mut after = vec![0; groups.len()];
        groups.iter().for_each(|(key, group)| after[*group as usize] = key & by.after);
        let free = (0..slots).map(|slot| Kind { slot, ends: None });
        let all: Vec<Kind> = BTreeSet::from_iter(kinds.iter().copied().chain(free)).into_iter().collect();
        let pool = |kind: &Kind| all.binary_search(kind).expect("one of them") as u32;
        Shape {
            keys: cells.keys.clone(),
            pools: kinds.iter().map(pool).collect(),
            first: (0..slots)
                .map(|slot| pool(&Kind { slot, ends: None }))
                .chain([all.len() as u32])
                .collect(),
            kinds: all,
            groups,
            after,
            afters: by.after,
            classes: by.classes,
        }
    }

    /// The key of a cell.
    #[inline]
    pub fn key(&self, cell: u32) -> u64 {
        self.keys[cell as usize]
    }

    /// The pool of a cell.
    #[inline]
    pub fn pool(&self, cell: u32) -> u32 {
        self.pools[cell as usize]
    }

    /// The group of a pool's draws.
    #[inline]
    pub fn group(&self, pool: u32) -> u32 {
        self.kinds[pool as usize].slot / self.classes as u32
    }

    /// The group of draws with this given part of the key, if there is one.
    #[inline]
    pub fn given(&self, key: u64) -> Option<u32> {
        self.groups.get(&key).copied()
    }

    /// The class of op of a pool's draws.
    #[inline]
    pub fn class(&self, pool: u32) -> usize {
        self.kinds[pool as usize].slot as usize % self.classes
    }
}

/// Draws of one pool that are left, in the order of drawing, which is random: the last one is as good as any.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    left: u32,
}

/// Draws without a place yet.
///
/// A histogram that has the request before as dimensions is a graph: cells are edges from what came
/// before to what comes. A walk that uses every edge once has exactly that histogram, transitions
/// included. At random it may end early in a corner and must then step over; that is counted.
pub(crate) struct Pools {
    shape: Arc<Shape>,
    /// Draws in the order of drawing, then pool after pool.
    drawn: Vec<Draw>,
    draws: Vec<Draw>,
    spans: Vec<Span>,
    /// Draws left of each slot, and of each class in all groups.
    left: Vec<u32>,
    all: Vec<u32>,
    /// How many of each class are to be taken, and what share of all that are left that is.
    budget: Budget,
    shares: Vec<f64>,
    /// How many draws went on at each alignment, and in all, before any was taken.
    ends: FxHashMap<u32, usize>,
    on: usize,
    /// How many draws are left, and their gaps together, nanoseconds.
    gaps: (usize, f64),
}

impl Pools {
    /// Of draws of these cells.
    pub fn new(shape: Arc<Shape>) -> Pools {
        let (pools, slots, classes) = (shape.kinds.len(), shape.first.len() - 1, shape.classes);
        Pools {
            shape,
            drawn: Vec::new(),
            draws: Vec::new(),
            spans: vec![Span::default(); pools],
            left: vec![0; slots],
            all: vec![0; classes],
            budget: vec![0; classes],
            shares: vec![0.0; classes],
            ends: FxHashMap::default(),
            on: 0,
            gaps: (0, 0.0),
        }
    }

    /// The same memory for other draws.
    pub fn again(mut self, shape: Arc<Shape>) -> Pools {
        self.drawn.clear();
        Pools { drawn: self.drawn, draws: self.draws, ..Pools::new(shape) }
    }

    /// The cells that are drawn from.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Takes a draw.
    #[inline]
    pub fn add(&mut self, draw: Draw) {
        self.spans[draw.pool as usize].left += 1;
        self.gaps = (self.gaps.0 + 1, self.gaps.1 + draw.gap as f64);
        self.drawn.push(draw);
    }

    /// To be called when all draws are there.
    pub fn ready(&mut self) {
        let mut start = 0;
        for (span, kind) in self.spans.iter_mut().zip(&self.shape.kinds) {
            self.left[kind.slot as usize] += span.left;
            self.all[kind.slot as usize % self.shape.classes] += span.left;
            if let Some(ends) = kind.ends {
                *self.ends.entry(ends.align).or_default() += span.left as usize;
                self.on += span.left as usize;
            }
            let next = start + span.left;
            *span = Span { start, left: 0 };
            start = next;
        }
        self.draws.resize(self.drawn.len(), Draw::default());
        for draw in &self.drawn {
            let span = &mut self.spans[draw.pool as usize];
            self.draws[(span.start + span.left) as usize] = *draw;
            span.left += 1;
        }
    }

    /// Adds to what is to be taken of each class.
    pub fn grant(&mut self, budget: &Budget) {
        for (class, more) in budget.iter().enumerate() {
            self.budget[class] += more;
            self.share(class);
        }
    }

    #[inline]
    fn share(&mut self, class: usize) {
        self.shares[class] = self.budget[class].max(0) as f64 / f64::from(self.all[class].max(1));
    }

    /// A pool of draws of this group, by how many there are and how many of their class the budget has;
    /// `None` if none is left. What follows goes before what the budget has.
    ///
    /// Whether the next one goes on is settled here, before it is seen which ones can: or those that are
    /// hard to place would be put off to the end.
    #[inline]
    pub fn matching(&self, group: u32, rng: &mut Xoshiro256PlusPlus) -> Option<u32> {
        let slot = group as usize * self.all.len();
        let left = &self.left[slot..][..self.all.len()];
        let class = match left {
            [_] => 0,
            _ => {
                // As the budget has more or fewer of a class than all that are left, so has the choice.
                let weights = || left.iter().zip(&self.shares).map(|(left, share)| f64::from(*left) * share);
                let mut target = weights().sum::<f64>() * unit(rng);
                let within = |weight: f64| {
                    target -= weight;
                    target < 0.0
                };
                let ahead = |class: &usize| (left[*class].min(1), self.budget[*class]);
                weights().position(within).or_else(|| (0..left.len()).max_by_key(ahead))?
            }
        };
        (left[class] > 0).then(|| self.of(slot + class, rng))
    }

    /// A pool of the draws that most are left of, whatever they are to follow, or of those that follow this op; of a
    /// class that the budget has, if there is any.
    pub fn fullest(&self, after: Option<u64>, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let classes = self.all.len();
        let most = |allowed: &dyn Fn(usize) -> bool| {
            let all = self.left.iter().enumerate().filter(|(at, left)| **left > 0 && allowed(*at));
            all.max_by_key(|(_, left)| **left).map(|(at, _)| at)
        };
        let follows =
            |at: usize| after.is_none_or(|key| self.shape.after[at / classes] == key & self.shape.afters);
        let found = most(&|at| self.budget[at % classes] > 0 && follows(at))
            .or_else(|| most(&|at| self.budget[at % classes] > 0))
            .or_else(|| most(&|_| true));
        found.map_or(0, |slot| self.of(slot, rng))
    }

    /// One of the pools of a slot, none of those that are empty.
    #[inline]
    fn of(&self, slot: usize, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let mut target = below(rng, u64::from(self.left[slot])) as u32;
        let mut pool = self.shape.first[slot];
        loop {
            let left = self.spans[pool as usize].left;
            if target < left {
                return pool;
            }
            target -= left;
            pool += 1;
        }
    }

    /// Whether so few draws go on at this alignment that a stream should not stay there.
    #[inline]
    pub fn is_rare(&self, ends: Ends) -> bool {
        self.ends.get(&ends.align).is_none_or(|n| n * RARE < self.on)
    }

    /// The pool of the same slot that goes on there, if any of it is left; else that whose stack distance is next to
    /// it: of blocks that were used, or of those that were not.
    #[inline]
    pub fn going_on(&self, pool: u32, ends: Ends) -> Option<u32> {
        let slot = self.shape.kinds[pool as usize].slot as usize;
        let (first, end) = (self.shape.first[slot] as usize, self.shape.first[slot + 1] as usize);
        let kinds = &self.shape.kinds[first..end];
        let at = kinds.partition_point(|kind| kind.ends < Some(ends));
        let fits = |at: &usize| {
            let is = |of: Ends| of.align == ends.align && (of.distance == 0) == (ends.distance == 0);
            kinds[*at].ends.is_some_and(is) && self.spans[first + *at].left > 0
        };
        let above = (at..kinds.len()).take(NEIGHBOURS).find(fits);
        let below = (0..at).rev().take(NEIGHBOURS).find(fits);
        let far = |at: &usize| kinds[*at].ends.map_or(u32::MAX, |of| of.distance.abs_diff(ends.distance));
        above.into_iter().chain(below).min_by_key(far).map(|at| (first + at) as u32)
    }

    /// The draws of the same slot that go anywhere, if any of them are left and it is another pool.
    pub fn free(&self, pool: u32) -> Option<u32> {
        let free = self.shape.first[self.shape.kinds[pool as usize].slot as usize];
        (free != pool && self.spans[free as usize].left > 0).then_some(free)
    }

    /// Where the draw of a pool lies whose turn it is.
    #[inline]
    fn turn(&self, pool: u32) -> usize {
        let span = self.spans[pool as usize];
        (span.start + span.left) as usize - 1
    }

    /// The draw of a pool whose turn it is.
    ///
    /// # Panics
    /// When the pool is empty, which those that are chosen here are not.
    #[inline]
    pub fn look(&self, pool: u32) -> Draw {
        self.draws[self.turn(pool)]
    }

    /// Puts another draw of a pool in the place of the one whose turn it is.
    pub fn exchange(&mut self, pool: u32, rng: &mut Xoshiro256PlusPlus) {
        let span = self.spans[pool as usize];
        let other = span.start as usize + below(rng, u64::from(span.left)) as usize;
        let turn = self.turn(pool);
        self.draws.swap(turn, other);
    }

    /// Where it is the turn of a long gap, makes it that of another long one if it is better.
    #[inline]
    pub fn prefer(&mut self, pool: u32, aim: Aim, rng: &mut Xoshiro256PlusPlus) {
        let (span, turn) = (self.spans[pool as usize], self.turn(pool));
        let own = self.draws[turn].gap;
        if !aim.minds(own) {
            return;
        }
        let mut others = (0..LOOKS).map(|_| (span.start as u64 + below(rng, u64::from(span.left))) as usize);
        if let Some(other) = others.find(|at| aim.minds(self.draws[*at].gap))
            && aim.prefers(self.draws[other].gap, own)
        {
            self.draws.swap(turn, other);
        }
    }

    /// Gaps of the draws that are left, nanoseconds on average.
    #[inline]
    pub fn mean_gap(&self) -> f64 {
        self.gaps.1 / self.gaps.0.max(1) as f64
    }

    /// Takes away the draw of a pool whose turn it is.
    #[inline]
    pub fn take(&mut self, pool: u32) {
        let slot = self.shape.kinds[pool as usize].slot as usize;
        let class = self.shape.class(pool);
        self.gaps = (self.gaps.0 - 1, self.gaps.1 - self.look(pool).gap as f64);
        let left = self.spans[pool as usize].left - 1;
        self.spans[pool as usize].left = left;
        self.left[slot] -= 1;
        self.all[class] -= 1;
        self.budget[class] -= 1;
        self.share(class);
    }
}
