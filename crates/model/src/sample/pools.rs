//! Draws that wait for their turn, by what must have come before them.

use super::deal::Draw;
use super::decode::below;
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

/// Draws of one group: those that go anywhere, or those that go on where an earlier one ended and ask
/// that it ended so in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pool {
    group: usize,
    /// Code of the alignment they ask for.
    ends: Option<u32>,
}

/// Draws with the same given dimensions.
#[derive(Default)]
struct Group {
    free: Vec<Draw>,
    /// Those that go on, by alignment; few are told apart.
    on: Vec<(u32, Vec<Draw>)>,
    /// Draws in all of them.
    left: usize,
}

/// Draws without a place yet.
///
/// A histogram that has the request before as dimensions is a graph: cells are edges from what came
/// before to what comes. A walk that uses every edge once has exactly that histogram, transitions
/// included. At random it may end early in a corner and must then step over; that is counted.
#[derive(Default)]
pub(super) struct Pools {
    /// Position in `groups` by given part of the key.
    index: FxHashMap<u64, usize>,
    groups: Vec<Group>,
    /// How many draws went on at each alignment, and in all, before any was taken.
    ends: FxHashMap<u32, usize>,
    on: usize,
}

impl Pools {
    /// Takes draws; `mask` are the bits of their keys that are given.
    pub fn fill(&mut self, draws: Vec<Draw>, mask: u64) {
        self.index.clear();
        self.groups.clear();
        self.ends.clear();
        self.on = 0;
        for draw in draws {
            let at = *self.index.entry(draw.key & mask).or_insert_with(|| {
                self.groups.push(Group::default());
                self.groups.len() - 1
            });
            let group = &mut self.groups[at];
            group.left += 1;
            if let Some(ends) = draw.ends {
                *self.ends.entry(ends).or_default() += 1;
                self.on += 1;
            }
            match draw.ends {
                None => group.free.push(draw),
                Some(ends) => match group.on.iter_mut().find(|(code, _)| *code == ends) {
                    Some((_, draws)) => draws.push(draw),
                    None => group.on.push((ends, vec![draw])),
                },
            }
        }
    }

    /// A pool of draws that follow what is given, by how many there are; `None` if none is left.
    ///
    /// Whether the next one goes on is settled here, before it is seen which ones can: or those that are
    /// hard to place would be put off to the end.
    #[inline]
    pub fn matching(&self, given: u64, rng: &mut Xoshiro256PlusPlus) -> Option<Pool> {
        self.of(*self.index.get(&given)?, rng)
    }

    /// A pool of the draws that most are left of, whatever they are to follow.
    pub fn fullest(&self, rng: &mut Xoshiro256PlusPlus) -> Pool {
        let left = |at: &usize| self.groups[*at].left;
        (0..self.groups.len()).max_by_key(left).and_then(|at| self.of(at, rng)).unwrap_or_default()
    }

    #[inline]
    fn of(&self, at: usize, rng: &mut Xoshiro256PlusPlus) -> Option<Pool> {
        let group = &self.groups[at];
        let all = group.left as u64;
        let mut target = if all == 0 { return None } else { below(rng, all) as usize };
        if target < group.free.len() {
            return Some(Pool { group: at, ends: None });
        }
        target -= group.free.len();
        let mut on = group.on.iter();
        let found = on.find(|(_, draws)| {
            let here = target < draws.len();
            target = target.wrapping_sub(draws.len());
            here
        });
        found.map(|(ends, _)| Pool { group: at, ends: Some(*ends) })
    }

    /// Whether so few draws go on at this alignment that a stream should not stay there.
    #[inline]
    pub fn is_rare(&self, ends: u32) -> bool {
        self.ends.get(&ends).is_none_or(|n| n * RARE < self.on)
    }

    /// The pool of the same group that goes on at this alignment, if any of it is left.
    #[inline]
    pub fn aligned(&self, pool: Pool, ends: u32) -> Option<Pool> {
        let aligned = Pool { ends: Some(ends), ..pool };
        (!self.pool(aligned).is_empty()).then_some(aligned)
    }

    /// The draws of the same group that go anywhere, if any of them are left.
    pub fn free(&self, pool: Pool) -> Option<Pool> {
        let free = Pool { ends: None, ..pool };
        (pool != free && !self.pool(free).is_empty()).then_some(free)
    }

    fn pool(&self, Pool { group, ends }: Pool) -> &[Draw] {
        let group = &self.groups[group];
        match ends {
            None => &group.free,
            Some(ends) => group.on.iter().find(|(code, _)| *code == ends).map_or(&[], |(_, draws)| draws),
        }
    }

    /// One of a pool's draws.
    #[inline]
    pub fn look(&self, pool: Pool, rng: &mut Xoshiro256PlusPlus) -> (Place, Draw) {
        let draws = self.pool(pool);
        let at = below(rng, draws.len() as u64) as usize;
        (Place { pool, at }, draws[at])
    }

    /// Takes a draw away.
    #[inline]
    pub fn take(&mut self, Place { pool: Pool { group, ends }, at }: Place) {
        let group = &mut self.groups[group];
        group.left -= 1;
        match ends {
            None => drop(group.free.swap_remove(at)),
            Some(ends) => {
                if let Some((_, draws)) = group.on.iter_mut().find(|(code, _)| *code == ends) {
                    draws.swap_remove(at);
                }
            }
        }
    }
}
