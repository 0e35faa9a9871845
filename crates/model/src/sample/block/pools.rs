//! Draws that wait for their turn, by what must have come before them.

use crate::random::{Random, below, unit};
use crate::sample::block::schedule::Draw;
use crate::sample::gaps::{Aim, LOOKS};
use crate::sample::mix::Budget;
use crate::schema::cells::Cells;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An alignment is rare below one in this many.
const RARE: usize = 32;

/// The cells of a joint table and the pool of each.
///
/// A pool has the draws of one group, those with the same given dimensions, and of one class of op.
pub(crate) struct Shape {
    keys: Vec<u64>,
    pools: Vec<u32>,
    /// Code of the remainder in a page at which each cell goes on, if it goes on from an earlier request.
    goes_on_at: Vec<Option<u32>>,
    groups: FxHashMap<u64, u32>,
    /// What follows the same op, by group.
    after: Vec<u64>,
    afters: u64,
    classes: usize,
}

/// What of a key decides on its pool.
pub(crate) struct Decides<C: Fn(u64) -> usize, E: Fn(u64) -> Option<u32>> {
    /// Bits of the given dimensions.
    pub given: u64,
    /// Those of the op before, which matters most: nothing goes on from a request of another.
    pub after: u64,
    /// The class of op, one of so many.
    pub class: C,
    pub classes: usize,
    /// Code of the remainder in a page at which it goes on, if it does.
    pub goes_on_at: E,
}

impl Shape {
    pub fn new<C, E>(cells: &Cells, by: &Decides<C, E>) -> Shape
    where
        C: Fn(u64) -> usize,
        E: Fn(u64) -> Option<u32>,
    {
        let mut groups = FxHashMap::default();
        let pool = |key: u64| {
            let next = groups.len() as u32;
            let group = *groups.entry(key & by.given).or_insert(next);
            group * by.classes as u32 + (by.class)(key) as u32
        };
        let pools = cells.keys.iter().copied().map(pool).collect();
        let mut after = vec![0; groups.len()];
        groups.iter().for_each(|(key, group)| after[*group as usize] = key & by.after);
        Shape {
            keys: cells.keys.clone(),
            pools,
            goes_on_at: cells.keys.iter().copied().map(&by.goes_on_at).collect(),
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
        pool / self.classes as u32
    }

    /// The group of draws with this given part of the key, if there is one.
    #[inline]
    pub fn given(&self, key: u64) -> Option<u32> {
        self.groups.get(&key).copied()
    }

    /// The class of op of a pool's draws.
    #[inline]
    pub fn class(&self, pool: u32) -> usize {
        pool as usize % self.classes
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
    /// Draws left of each class in all groups.
    all: Vec<u32>,
    /// How many of each class are to be taken, and what share of all that are left that is.
    budget: Budget,
    shares: Vec<f64>,
    /// How many draws go on at each alignment, by its code, and in all, before any is taken.
    goes_on_at: FxHashMap<u32, usize>,
    goes_on: usize,
    /// How many draws are left, and their gaps together, nanoseconds.
    gaps: (usize, f64),
}

impl Pools {
    /// Of draws of these cells.
    pub fn new(shape: Arc<Shape>) -> Pools {
        let (pools, classes) = (shape.after.len() * shape.classes, shape.classes);
        Pools {
            shape,
            drawn: Vec::new(),
            draws: Vec::new(),
            spans: vec![Span::default(); pools],
            all: vec![0; classes],
            budget: vec![0; classes],
            shares: vec![0.0; classes],
            goes_on_at: FxHashMap::default(),
            goes_on: 0,
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
        if let Some(code) = self.shape.goes_on_at[draw.cell as usize] {
            *self.goes_on_at.entry(code).or_default() += 1;
            self.goes_on += 1;
        }
        self.drawn.push(draw);
    }

    /// To be called when all draws are there.
    pub fn ready(&mut self) {
        let mut start = 0;
        for (pool, span) in self.spans.iter_mut().enumerate() {
            self.all[pool % self.shape.classes] += span.left;
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
    #[inline]
    pub fn matching(&self, group: u32, rng: &mut Random) -> Option<u32> {
        let first = group as usize * self.all.len();
        let spans = &self.spans[first..][..self.all.len()];
        let class = match spans {
            [_] => 0,
            _ => {
                // As the budget has more or fewer of a class than all that are left, so has the choice.
                let weights =
                    || spans.iter().zip(&self.shares).map(|(span, share)| f64::from(span.left) * share);
                let mut target = weights().sum::<f64>() * unit(rng);
                let within = |weight: f64| {
                    target -= weight;
                    target < 0.0
                };
                let ahead = |class: &usize| (spans[*class].left.min(1), self.budget[*class]);
                weights().position(within).or_else(|| (0..spans.len()).max_by_key(ahead))?
            }
        };
        (spans[class].left > 0).then_some((first + class) as u32)
    }

    /// A pool of the draws that most are left of, whatever they are to follow, or of those that follow this op; of a
    /// class that the budget has, if there is any.
    pub fn fullest(&self, after: Option<u64>) -> u32 {
        let classes = self.all.len();
        let most = |allowed: &dyn Fn(usize) -> bool| {
            let all = self.spans.iter().enumerate().filter(|(at, span)| span.left > 0 && allowed(*at));
            all.max_by_key(|(_, span)| span.left).map(|(at, _)| at)
        };
        let follows =
            |at: usize| after.is_none_or(|key| self.shape.after[at / classes] == key & self.shape.afters);
        let found = most(&|at| self.budget[at % classes] > 0 && follows(at))
            .or_else(|| most(&|at| self.budget[at % classes] > 0))
            .or_else(|| most(&|_| true));
        found.unwrap_or(0) as u32
    }

    /// Whether so few draws go on at the alignment of this code that a stream should not stay there.
    #[inline]
    pub fn is_rare(&self, align: u32) -> bool {
        self.goes_on_at.get(&align).is_none_or(|n| n * RARE < self.goes_on)
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
    pub fn exchange(&mut self, pool: u32, rng: &mut Random) {
        let span = self.spans[pool as usize];
        let other = span.start as usize + below(rng, u64::from(span.left)) as usize;
        let turn = self.turn(pool);
        self.draws.swap(turn, other);
    }

    /// Where it is the turn of a long gap, makes it that of another long one if it is better.
    #[inline]
    pub fn prefer(&mut self, pool: u32, aim: Aim, rng: &mut Random) {
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
        let class = self.shape.class(pool);
        self.gaps = (self.gaps.0 - 1, self.gaps.1 - self.look(pool).gap as f64);
        self.spans[pool as usize].left -= 1;
        self.all[class] -= 1;
        self.budget[class] -= 1;
        self.share(class);
    }
}
