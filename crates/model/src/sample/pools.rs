//! Draws that wait for their turn, by what must have come before them.

use super::deal::Draw;
use super::decode::{below, unit};
use super::mix::Budget;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;

/// An alignment is rare below one in this many.
const RARE: usize = 32;

/// Draws of one group and class of op: those that go anywhere, or those that go on where an earlier one
/// ended and ask that it ended so in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pool {
    group: usize,
    class: usize,
    /// Code of the alignment they ask for.
    ends: Option<u32>,
}

/// Draws with the same given dimensions and of one class of op, each pool in the order of drawing, which
/// is random: the last one is as good as any.
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
    left: Vec<u32>,
    /// Draws left of each class in all groups.
    all: Vec<u32>,
    /// How many of each class are to be taken, and what share of all that are left that is.
    budget: Budget,
    shares: Vec<f64>,
    /// How many draws went on at each alignment, and in all, before any was taken.
    ends: FxHashMap<u32, usize>,
    on: usize,
}

impl Pools {
    /// None yet; those that come are of so many classes.
    pub fn new(classes: usize) -> Pools {
        let (all, budget, shares) = (vec![0; classes], vec![0; classes], vec![0.0; classes]);
        Pools { all, budget, shares, ..Pools::default() }
    }

    /// Takes a draw of a class with the given part of its key; `ends` if it goes on where an earlier one
    /// ended with this code of the alignment.
    #[inline]
    pub fn add(&mut self, draw: Draw, given: u64, class: usize, ends: Option<u32>) {
        let (groups, classes) = (self.index.len(), self.all.len());
        let group = *self.index.entry(given).or_insert(groups);
        if group == groups {
            self.classes.resize((groups + 1) * classes, Class::default());
            self.left.resize((groups + 1) * classes, 0);
        }
        self.all[class] += 1;
        self.left[group * classes + class] += 1;
        let of = &mut self.classes[group * classes + class];
        match ends {
            None => of.free.push(draw),
            Some(ends) => match of.on.iter_mut().find(|(code, _)| *code == ends) {
                Some((_, draws)) => draws.push(draw),
                None => of.on.push((ends, vec![draw])),
            },
        }
    }

    /// To be called when all draws are there.
    pub fn ready(&mut self) {
        for (ends, draws) in self.classes.iter().flat_map(|class| &class.on) {
            *self.ends.entry(*ends).or_default() += draws.len();
        }
        self.on = self.ends.values().sum();
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

    /// A pool of draws that follow what is given, by how many there are and how many of their class the
    /// budget has; `None` if none is left. What follows goes before what the budget has.
    ///
    /// Whether the next one goes on is settled here, before it is seen which ones can: or those that are
    /// hard to place would be put off to the end.
    #[inline]
    pub fn matching(&self, given: u64, rng: &mut Xoshiro256PlusPlus) -> Option<Pool> {
        let group = *self.index.get(&given)?;
        let left = &self.left[group * self.all.len()..][..self.all.len()];
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
        (left[class] > 0).then(|| self.of(group, class, rng))
    }

    /// A pool of the draws that most are left of, whatever they are to follow; of a class that the
    /// budget has, if there is any.
    pub fn fullest(&self, rng: &mut Xoshiro256PlusPlus) -> Pool {
        let classes = self.all.len().max(1);
        let most = |allowed: &dyn Fn(usize) -> bool| {
            let all = self.left.iter().enumerate().filter(|(at, left)| **left > 0 && allowed(at % classes));
            all.max_by_key(|(_, left)| **left).map(|(at, _)| at)
        };
        let found = most(&|class| self.budget[class] > 0).or_else(|| most(&|_| true));
        found.map_or_else(Pool::default, |at| self.of(at / classes, at % classes, rng))
    }

    /// One of the pools of a class that is not empty.
    #[inline]
    fn of(&self, group: usize, class: usize, rng: &mut Xoshiro256PlusPlus) -> Pool {
        let at = group * self.all.len() + class;
        let of = &self.classes[at];
        let mut target = below(rng, u64::from(self.left[at])) as usize;
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

    #[inline]
    fn pool_mut(&mut self, Pool { group, class, ends }: Pool) -> Option<&mut Vec<Draw>> {
        let of = &mut self.classes[group * self.all.len() + class];
        match ends {
            None => Some(&mut of.free),
            Some(ends) => of.on.iter_mut().find(|(code, _)| *code == ends).map(|(_, draws)| draws),
        }
    }

    /// The draw of a pool whose turn it is.
    ///
    /// # Panics
    /// When the pool is empty, which those that are chosen here are not.
    #[inline]
    pub fn look(&self, pool: Pool) -> Draw {
        *self.pool(pool).last().expect("not empty")
    }

    /// Puts another draw of a pool in the place of the one whose turn it is.
    pub fn exchange(&mut self, pool: Pool, rng: &mut Xoshiro256PlusPlus) {
        if let Some(draws) = self.pool_mut(pool)
            && let Some(last) = draws.len().checked_sub(1)
        {
            let other = below(rng, draws.len() as u64) as usize;
            draws.swap(last, other);
        }
    }

    /// Takes away the draw of a pool whose turn it is.
    #[inline]
    pub fn take(&mut self, pool: Pool) {
        let of = pool.group * self.all.len() + pool.class;
        self.left[of] -= 1;
        self.all[pool.class] -= 1;
        self.budget[pool.class] -= 1;
        self.share(pool.class);
        self.pool_mut(pool).and_then(Vec::pop);
    }
}
