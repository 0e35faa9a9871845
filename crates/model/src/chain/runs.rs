//! How long the runs of each matrix are, where the tables of a chain do not say it.
//!
//! A request that continues a run leaves a longer one, so as many requests find a run of `k + 1` behind them as continue
//! one of `k`. The tables say how often each run length occurs, and how many requests of each matrix and op continue the
//! one before, but not both together. Drawn independently, most requests that continue would find no run behind them,
//! and hardly any long run would go on. Each request that does not continue ends a run. So the number of runs of each
//! matrix is known, and the number of requests in them. Of all ways to assign the run lengths to matrices the most
//! likely one is approximated. This costs no cell, and every table keeps its counts.

use super::follow::{is_next, is_resume};
use crate::feature::Field;
use crate::random::{Random, below, shuffle};
use crate::schema::cells::{KeyField, Layout};
use crate::schema::chain::Link;
use crate::schema::dimension::Role;
use crate::schema::header::Header;
use crate::schema::rule::Rule;
use loadstone_trace::Op;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Of the runs of one length one in this many is shared out at once: so few change little of what is left.
const AT_ONCE: usize = 64;

/// Where what runs are made of lies in joint keys.
pub(super) struct Runs<'a> {
    resume: (&'a Rule, usize),
    run: (&'a Rule, usize),
    op: (&'a Rule, usize),
    before: (&'a Rule, usize),
    /// What cards must have alike to exchange their run: what its table is given, and what is given it.
    alike: Vec<usize>,
    by_matrix: bool,
}

impl<'a> Runs<'a> {
    /// Of a link of `resume` that is not given the run before, where others before it set that and both ops.
    pub fn of(header: &'a Header, earlier: &[Link], link: &Link) -> Option<Runs<'a>> {
        let drawn = &header.tables[header.drawn_table()].dimensions;
        let place = |d: usize| drawn.iter().position(|x| *x == d);
        let find = |role: Role, fits: &dyn Fn(usize) -> bool| {
            let will_do = |d: &usize| header.dimensions[*d].role == role && fits(*d);
            let d = earlier.iter().map(|link| link.dimension).find(will_do)?;
            Some((d, (&header.dimensions[d].rule, place(d)?)))
        };
        let is_op = |d: usize| header.dimensions[d].feature.kind().field == Field::Op;
        let is_run = |d: usize| header.dimensions[d].feature.kind().field == Field::Run;
        let dimension = &header.dimensions[link.dimension];
        let (d, run) = find(Role::Given, &is_run)?;
        if !is_resume(dimension) || link.given.contains(&d) {
            return None;
        }
        let told = || earlier.iter().filter(|link| link.dimension == d || link.given.contains(&d));
        let of = |link: &'_ Link| link.given.iter().copied().chain([link.dimension]).collect::<Vec<_>>();
        Some(Runs {
            resume: (&dimension.rule, place(link.dimension)?),
            run,
            op: find(Role::Sets, &is_op)?.1,
            before: find(Role::Given, &is_op)?.1,
            alike: told().flat_map(of).filter(|x| *x != d).filter_map(place).collect(),
            by_matrix: told().any(|link| link.by_matrix),
        })
    }

    /// Exchanges the runs before cards, so that as many of each matrix and op continue one of each length as find a
    /// longer one.
    pub fn join(
        &self,
        joint: &Layout,
        matrices: impl Iterator<Item = Range<usize>>,
        keys: &mut [u64],
        rng: &mut Random,
    ) {
        let (pools, mut places) = self.gather(joint, matrices, keys);
        let cards = places.iter_mut().flat_map(|place| place.on.values_mut().chain(place.ends.values_mut()));
        cards.for_each(|cards| shuffle(cards, rng));
        let length = |&code: &u32| Length { range: self.range(code), code };
        let all: BTreeSet<Length> = pools.iter().flat_map(|pool| pool.keys()).map(length).collect();
        let lengths: Vec<Length> = all.into_iter().collect();
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); lengths.len()];
        let mut ending: Vec<Vec<usize>> = vec![Vec::new(); pools.len()];
        for (at, place) in places.iter().enumerate() {
            place.ends.keys().for_each(|pool| ending[*pool].push(at));
        }
        let number = |code: &u32| lengths.binary_search(&length(code)).expect("one of them");
        let pools: Vec<BTreeMap<usize, usize>> = (0..)
            .zip(pools)
            .map(|(pool, codes)| {
                let left: BTreeMap<_, _> = codes.iter().map(|(code, left)| (number(code), *left)).collect();
                left.keys().for_each(|at| of[*at].push(pool));
                left
            })
            .collect();
        let mut deal = Deal { lengths, pools, places, ending, keys, run: joint.place(self.run.1) };
        // The longest first: fewest places have room for them. Those of none are what is left.
        for (at, pools) in of.into_iter().enumerate().rev().filter(|(_, pools)| !pools.is_empty()) {
            for pool in pools {
                while deal.lengths[at].range.1 > 0 && deal.end_some(at, pool, rng) {}
            }
        }
        deal.rest(rng);
    }

    /// Cards by place and pool, and how many of each pool have each run before them.
    fn gather(
        &self,
        joint: &Layout,
        matrices: impl Iterator<Item = Range<usize>>,
        keys: &[u64],
    ) -> (Vec<BTreeMap<u32, usize>>, Vec<Part>) {
        let mask = self.alike.iter().fold(0, |mask, &at| mask | joint.place(at).bits());
        let first = |(rule, at): (&Rule, usize), key: u64| rule.range(joint.code(key, at)).map(|of| of.first);
        let has_place = |op: &i64| [Op::Read, Op::Write, Op::Discard].iter().any(|of| *op == *of as i64);
        let mut numbers: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        let mut pools: Vec<BTreeMap<u32, usize>> = Vec::new();
        let mut places: BTreeMap<(usize, i64), Part> = BTreeMap::new();
        for (matrix, cards) in matrices.enumerate() {
            for card in cards {
                let key = keys[card];
                let (op, before) = (first(self.op, key), first(self.before, key).filter(has_place));
                let Some(before) = before.filter(|_| first(self.run, key) >= Some(0)) else { continue };
                let (next, by) = (numbers.len(), if self.by_matrix { matrix } else { 0 });
                let pool = *numbers.entry((by, key & mask)).or_insert(next);
                if pool == pools.len() {
                    pools.push(BTreeMap::new());
                }
                *pools[pool].entry(joint.code(key, self.run.1)).or_default() += 1;
                let place = places.entry((matrix, before)).or_default();
                if op == Some(before) && is_next(self.resume.0, joint.code(key, self.resume.1)) {
                    place.on.entry(pool).or_default().push(card);
                    place.left.0 += 1;
                } else {
                    place.ends.entry(pool).or_default().push(card);
                    place.left.1 += 1;
                }
            }
        }
        (pools, places.into_values().collect())
    }

    /// The least and the greatest run of a code.
    fn range(&self, code: u32) -> (u64, u64) {
        let range = self.run.0.range(code);
        range.map_or((0, 0), |range| (range.first.max(0) as u64, range.last.max(0) as u64))
    }
}

/// The least and the greatest run of a code of the run before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Length {
    range: (u64, u64),
    code: u32,
}

impl Length {
    fn width(self) -> usize {
        usize::try_from(self.range.1 - self.range.0).unwrap_or(usize::MAX).saturating_add(1)
    }
}

/// Requests of one matrix after one op, by pool of what they may exchange: those that go on, and those that end a run.
#[derive(Default)]
struct Part {
    on: BTreeMap<usize, Vec<usize>>,
    ends: BTreeMap<usize, Vec<usize>>,
    /// How many of each are left.
    left: (usize, usize),
}

impl Part {
    /// How likely the longest run that is left is one of these, if it can be: where runs are longer on average, more
    /// requests go on, and more of them in long runs.
    fn weight(&self, pool: usize, least: u64) -> f64 {
        let (on, ends) = self.left;
        match self.ends.get(&pool) {
            Some(own) if !own.is_empty() && on as u64 >= least => on as f64 * on as f64 / ends as f64,
            _ => 0.0,
        }
    }

    fn take_end(&mut self, pool: usize) -> Option<usize> {
        let card = self.ends.get_mut(&pool)?.pop()?;
        self.left.1 -= 1;
        Some(card)
    }

    fn take_on(&mut self, pool: usize) -> Option<usize> {
        let card = self.on.get_mut(&pool)?.pop()?;
        self.left.0 -= 1;
        Some(card)
    }

    /// The pool in which most is left that goes on.
    fn largest(&self) -> usize {
        self.on.iter().max_by_key(|(_, cards)| cards.len()).map_or(0, |(pool, _)| *pool)
    }
}

/// Runs being shared out.
struct Deal<'a> {
    /// From the shortest to the longest.
    lengths: Vec<Length>,
    /// How many of each length are left, by their number.
    pools: Vec<BTreeMap<usize, usize>>,
    places: Vec<Part>,
    /// Places in which runs of each pool end.
    ending: Vec<Vec<usize>>,
    keys: &'a mut [u64],
    run: KeyField,
}

impl Deal<'_> {
    /// Gives some of the runs of one length that are left in a pool to one place; whether there were any.
    fn end_some(&mut self, at: usize, pool: usize, rng: &mut Random) -> bool {
        let Some(&left) = self.pools[pool].get(&at) else { return false };
        let shortest = self.lengths[at].range.0;
        let weight = |at: &usize| self.places[*at].weight(pool, shortest);
        let weights: Vec<f64> = self.ending[pool].iter().map(weight).collect();
        let Some(chosen) = choose(&weights, rng).map(|at| self.ending[pool][at]) else { return false };
        let (least, most) = self.stay(at, pool, left);
        for _ in 0..left.div_ceil(AT_ONCE).div_ceil(least.midpoint(most)) {
            if !self.pools[pool].contains_key(&at) || self.places[chosen].weight(pool, shortest) <= 0.0 {
                break;
            }
            let Some(end) = self.places[chosen].take_end(pool) else { break };
            self.set(end, pool, at);
            let within = least - 1 + below(rng, (most - least) as u64 + 1) as usize;
            let on = self.places[chosen].largest();
            let shorter: Vec<(usize, usize)> =
                self.pools[on].range(..=at).map(|(length, left)| (*length, *left)).collect();
            for (length, left) in shorter {
                let n = if length == at { within } else { self.lengths[length].width() };
                for _ in 0..n.min(left) {
                    let Some(card) = self.places[chosen].take_on(on) else { break };
                    self.set(card, on, length);
                }
            }
        }
        true
    }

    /// How many requests of a bucket the runs that end there have, at least and at most: as many on average as are left
    /// for each of the runs that reach it, which are those of the bucket before it.
    fn stay(&self, at: usize, pool: usize, left: usize) -> (usize, usize) {
        let width = self.lengths[at].width();
        let reach = at.checked_sub(1).map_or(0, |shorter| {
            let before = self.pools[pool].get(&shorter).copied().unwrap_or(0);
            before.div_ceil(self.lengths[shorter].width())
        });
        let mean = (left / reach.max(1)).clamp(1, width);
        if mean <= width / 2 { (1, 2 * mean - 1) } else { (2 * mean - width, width) }
    }

    /// Gives what is left to what is left.
    fn rest(mut self, rng: &mut Random) {
        let mut left: Vec<Vec<usize>> = (self.pools.iter())
            .map(|pool| pool.iter().flat_map(|(&at, &n)| std::iter::repeat_n(at, n)).collect())
            .collect();
        left.iter_mut().for_each(|lengths| shuffle(lengths, rng));
        for place in std::mem::take(&mut self.places) {
            for (pool, cards) in place.on.into_iter().chain(place.ends) {
                for (card, at) in cards.into_iter().zip(std::iter::from_fn(|| left[pool].pop())) {
                    self.set(card, pool, at);
                }
            }
        }
    }

    /// Gives a card a run of its pool.
    fn set(&mut self, card: usize, pool: usize, at: usize) {
        self.keys[card] = self.keys[card] & !self.run.bits() | self.run.key(self.lengths[at].code);
        if let Entry::Occupied(mut left) = self.pools[pool].entry(at) {
            *left.get_mut() -= 1;
            if *left.get() == 0 {
                left.remove();
            }
        }
    }
}

/// A number by weight; `None` where all are nothing.
fn choose(weights: &[f64], rng: &mut Random) -> Option<usize> {
    let mut target = weights.iter().sum::<f64>() * (below(rng, 1 << 32) as f64 / (1u64 << 32) as f64);
    let within = |weight: &f64| {
        target -= weight;
        target < 0.0
    };
    weights.iter().position(within).or_else(|| weights.iter().rposition(|weight| *weight > 0.0))
}
