//! Draws that wait for their turn, by what must have come before them.

use super::deal::Draw;
use super::decode::{below, unit};
use super::mix::Budget;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;

/// An alignment is rare below one in this many.
const RARE: usize = 32;

/// Where a draw waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pool: Pool,
    at: usize,
}

/// Draws of one group and class of op: those that go anywhere, or those that go on where an earlier one
/// ended and ask that it ended so in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pool {
    group: usize,
    class: usize,
    /// Code of the alignment they ask for.
    ends: Option<u32>,
}

/// Draws with the same given dimensions and of one class of op.
#[derive(Default, Clone)]
struct Class {
    free: Vec<Draw>,
    /// Those that go on, by alignment; few are told apart.
    on: Vec<(u32, Vec<Draw>)>,
}

/// Draws without a place yet.
///
/// A histogram that has the request before as dimensions is a graph: cells are edges from what came
/// before to what comes. A walk that uses every edge once has exactly that histogram, transitions
/// included. At random it may end early in a corner and must then step over; that is counted.
#[derive(Default)]
pub(super) struct Pools {
    /// Number of the group by given part of the key.
    index: FxHashMap<u64, usize>,
    /// The classes of each group, one group after the other, and how many draws they have left.
    classes: Vec<Class>,
    left: Vec<usize>,
    /// Draws left of each class in all groups, and what one of them is of these.
    all: Vec<usize>,
    one: Vec<f64>,
    /// How many draws went on at each alignment, and in all, before any was taken.
    ends: FxHashMap<u32, usize>,
    on: usize,
}

impl Pools {
    /// Takes draws; `mask` are the bits of their keys that are given, `class` tells the class of a key,
    /// of which there are `classes`.
    pub fn fill(&mut self, draws: Vec<Draw>, mask: u64, classes: usize, class: impl Fn(u64) -> usize) {
        self.index.clear();
        self.classes.clear();
        self.left.clear();
        self.all.clear();
        self.all.resize(classes, 0);
        self.ends.clear();
        self.on = 0;
        for draw in draws {
            let groups = self.index.len();
            let group = *self.index.entry(draw.key & mask).or_insert(groups);
            if group == groups {
                self.classes.resize((groups + 1) * classes, Class::default());
                self.left.resize((groups + 1) * classes, 0);
            }
            let class = class(draw.key);
            self.all[class] += 1;
            self.left[group * classes + class] += 1;
            let of = &mut self.classes[group * classes + class];
            if let Some(ends) = draw.ends {
                *self.ends.entry(ends).or_default() += 1;
                self.on += 1;
            }
            match draw.ends {
                None => of.free.push(draw),
                Some(ends) => match of.on.iter_mut().find(|(code, _)| *code == ends) {
                    Some((_, draws)) => draws.push(draw),
                    None => of.on.push((ends, vec![draw])),
                },
            }
        }
        self.one.clear();
        self.one.extend(self.all.iter().map(|left| 1.0 / (*left).max(1) as f64));
    }

    /// A pool of draws that follow what is given, by how many there are and how many of their class the
    /// budget has; `None` if none is left. What follows goes before what the budget has.
    ///
    /// Whether the next one goes on is settled here, before it is seen which ones can: or those that are
    /// hard to place would be put off to the end.
    #[inline]
    pub fn matching(&self, given: u64, budget: &Budget, rng: &mut Xoshiro256PlusPlus) -> Option<Pool> {
        let group = *self.index.get(&given)?;
        let left = &self.left[group * self.all.len()..][..self.all.len()];
        let class = match left {
            [_] => 0,
            _ => {
                // As the budget has more or fewer of a class than all that are left, so has the choice.
                let weight =
                    |class: usize| left[class] as f64 * budget[class].max(0) as f64 * self.one[class];
                let mut target = (0..left.len()).map(weight).sum::<f64>() * unit(rng);
                let within = |class: &usize| {
                    target -= weight(*class);
                    target < 0.0
                };
                let ahead = |class: &usize| (left[*class].min(1), budget[*class]);
                (0..left.len()).find(within).or_else(|| (0..left.len()).max_by_key(ahead))?
            }
        };
        (left[class] > 0).then(|| self.of(group, class, rng))
    }

    /// A pool of the draws that most are left of, whatever they are to follow; of a class that the
    /// budget has, if there is any.
    pub fn fullest(&self, budget: &Budget, rng: &mut Xoshiro256PlusPlus) -> Pool {
        let classes = self.all.len().max(1);
        let most = |allowed: &dyn Fn(usize) -> bool| {
            let all = self.left.iter().enumerate().filter(|(at, left)| **left > 0 && allowed(at % classes));
            all.max_by_key(|(_, left)| **left).map(|(at, _)| at)
        };
        let found = most(&|class| budget[class] > 0).or_else(|| most(&|_| true));
        found.map_or_else(Pool::default, |at| self.of(at / classes, at % classes, rng))
    }

    /// One of the pools of a class that is not empty.
    #[inline]
    fn of(&self, group: usize, class: usize, rng: &mut Xoshiro256PlusPlus) -> Pool {
        let at = group * self.all.len() + class;
        let of = &self.classes[at];
        let mut target = below(rng, self.left[at] as u64) as usize;
        if target < of.free.len() {
            return Pool { group, class, ends: None };
        }
        target -= of.free.len();
        let mut on = of.on.iter();
        let found = on.find(|(_, draws)| {
            let here = target < draws.len();
            target = target.wrapping_sub(draws.len());
            here
        });
        Pool { group, class, ends: found.map(|(ends, _)| *ends) }
    }

    /// Whether so few draws go on at this alignment that a stream should not stay there.
    #[inline]
    pub fn is_rare(&self, ends: u32) -> bool {
        self.ends.get(&ends).is_none_or(|n| n * RARE < self.on)
    }

    /// The pool of the same group and class that goes on at this alignment, if any of it is left.
    #[inline]
    pub fn aligned(&self, pool: Pool, ends: u32) -> Option<Pool> {
        let aligned = Pool { ends: Some(ends), ..pool };
        (!self.pool(aligned).is_empty()).then_some(aligned)
    }

    /// The draws of the same group and class that go anywhere, if any of them are left.
    pub fn free(&self, pool: Pool) -> Option<Pool> {
        let free = Pool { ends: None, ..pool };
        (pool != free && !self.pool(free).is_empty()).then_some(free)
    }

    #[inline]
    fn pool(&self, Pool { group, class, ends }: Pool) -> &[Draw] {
        let of = &self.classes[group * self.all.len() + class];
        match ends {
            None => &of.free,
            Some(ends) => of.on.iter().find(|(code, _)| *code == ends).map_or(&[], |(_, draws)| draws),
        }
    }

    /// One of a pool's draws.
    #[inline]
    pub fn look(&self, pool: Pool, rng: &mut Xoshiro256PlusPlus) -> (Place, Draw) {
        let draws = self.pool(pool);
        let at = below(rng, draws.len() as u64) as usize;
        (Place { pool, at }, draws[at])
    }

    /// Takes a draw away; its class.
    #[inline]
    pub fn take(&mut self, Place { pool: Pool { group, class, ends }, at }: Place) -> usize {
        let of = group * self.all.len() + class;
        self.left[of] -= 1;
        self.all[class] -= 1;
        self.one[class] = 1.0 / self.all[class].max(1) as f64;
        match ends {
            None => drop(self.classes[of].free.swap_remove(at)),
            Some(ends) => {
                if let Some((_, draws)) = self.classes[of].on.iter_mut().find(|(code, _)| *code == ends) {
                    draws.swap_remove(at);
                }
            }
        }
        class
    }
}
