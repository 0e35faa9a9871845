//! The order of draws of files: each takes one that requests before it left as it was drawn.
//!
//! What a request asks of its file, what happened to that and how long it is, an earlier one must have left so. A whole
//! trace has as many that leave it as ask for it, so there is an order in which each finds its file. It is sought by
//! choosing among the draws whose files are there, rather than a file for a draw.

use super::deal::Part;
use super::decode::{below, unit};
use super::files::Match;
use super::mix::Budget;
use super::stock::Stock;
use super::{GAP, Sampler};
use std::ops::Range;

/// Draws of a lot that are tried.
const DRAWS: usize = 3;

/// Cells of a lot that are tried where these do not fit.
const ALL: usize = 16;

/// Lots of an aisle that are tried at random before all are.
const PICKS: usize = 4;

/// Where a draw is looked for if none that follows the request before has a file that was used when it should have
/// been: whether it must follow, how well it must fit, and whether the budget must have its op.
const STAGES: [(bool, Match, bool); 9] = [
    (true, Match::Aged, true),
    (true, Match::Length, true),
    (false, Match::Exact, true),
    (false, Match::Aged, true),
    (false, Match::Exact, false),
    (false, Match::Aged, false),
    (false, Match::Anew, false),
    (false, Match::Length, true),
    (false, Match::Length, false),
];

/// Parts of one matrix.
pub(super) struct Trail {
    pub matrix: usize,
    parts: std::vec::IntoIter<Part>,
    /// What parts take of each class of op, and how many of these budgets were granted.
    budgets: Vec<Budget>,
    granted: usize,
}

impl Trail {
    pub fn new(matrix: usize, parts: Vec<Part>, budgets: Vec<Budget>) -> Trail {
        Trail { matrix, parts: parts.into_iter(), budgets, granted: 0 }
    }
}

impl Sampler {
    /// Emits the requests of the next part; `false` if there is none.
    pub(super) fn follow(&mut self, trail: &mut Trail, stock: &mut Stock) -> bool {
        let Some(part) = trail.parts.next() else { return false };
        if part.requests == 0 {
            return true;
        }
        // What one group has too much of, the next has less.
        for budget in &trail.budgets[trail.granted..=part.budget] {
            stock.grant(budget);
        }
        trail.granted = part.budget + 1;
        for _ in 0..part.requests {
            if stock.is_empty() {
                stock.refill();
            }
            let given = self.given();
            let Some((lot, cell)) = self.next_draw(stock, given) else { break };
            self.tally.backed_off += u64::from(!given.is_some_and(|given| stock.follows(lot, given)));
            stock.take(lot, cell);
            self.gaps.push(self.last[GAP]);
        }
        self.settle(&part);
        true
    }

    /// Emits a request: the lot and cell of its draw.
    fn next_draw(&mut self, stock: &Stock, given: Option<u64>) -> Option<(u32, u32)> {
        let of = given.map_or(0..0, |given| stock.group(given));
        let (own, all) = (stock.lots_of(of.clone()), stock.lots_of(stock.all()));
        for strands in [false, true] {
            self.strands = strands;
            let draw = self.exact(stock, of.clone());
            if draw.is_some() {
                return draw;
            }
            for (follows, fit, granted) in STAGES {
                let lots = if follows { own.clone() } else { all.clone() };
                let draw = self.scan(stock, lots, fit, granted);
                if draw.is_some() {
                    return draw;
                }
            }
        }
        let forced = self.scan(stock, all.clone(), Match::Forced, true);
        forced.or_else(|| self.scan(stock, all, Match::Forced, false))
    }

    /// The first draw of these lots that fits, from any of them on.
    fn scan(&mut self, stock: &Stock, lots: Range<u32>, fit: Match, granted: bool) -> Option<(u32, u32)> {
        let start = lots.start + below(&mut self.rng, lots.len() as u64) as u32;
        let fits = |lot: &u32| {
            let (left, budget) = stock.left(*lot);
            left > 0 && (budget > 0 || !granted)
        };
        (start..lots.end).chain(lots.start..start).filter(fits).find_map(|lot| self.try_lot(stock, lot, fit))
    }

    /// A draw of these aisles whose file was used when it should have been.
    fn exact(&mut self, stock: &Stock, of: Range<u32>) -> Option<(u32, u32)> {
        let mut weights = std::mem::take(&mut self.weights);
        weights.clear();
        weights.extend(of.clone().map(|aisle| stock.weight(aisle)));
        let draw = self.exact_by(stock, of, &mut weights);
        self.weights = weights;
        draw
    }

    /// The same, by how much of each aisle is to be taken.
    fn exact_by(&mut self, stock: &Stock, of: Range<u32>, weights: &mut [f64]) -> Option<(u32, u32)> {
        let files = self.files.as_ref()?;
        // Whether it stays with its file is up to how often that is still to come.
        let mut stay = None;
        if let Some(last) = files.last_left()
            && let Some(at) = of.clone().position(|aisle| stock.aisle(aisle).age == files.stays())
        {
            let staying = stock.of_length(of.start + at as u32, files.alike().2, last.2);
            let coming = stock.leaving(last) + 1;
            if unit(&mut self.rng) < staying as f64 / coming as f64 {
                stay = Some(at);
            } else {
                weights[at] = 0.0;
            }
        }
        for _ in 0..of.len() {
            let at = match stay.take() {
                Some(at) => at,
                None => {
                    let mut target = weights.iter().sum::<f64>() * unit(&mut self.rng);
                    weights.iter().position(|weight| {
                        target -= weight;
                        target < 0.0
                    })?
                }
            };
            weights[at] = 0.0;
            let aisle = of.start + at as u32;
            let draw =
                self.pick(stock, aisle).or_else(|| self.scan(stock, stock.lots(aisle), Match::Exact, true));
            if draw.is_some() {
                return draw;
            }
        }
        None
    }

    /// A draw of an aisle that fits: some are tried.
    fn pick(&mut self, stock: &Stock, aisle: u32) -> Option<(u32, u32)> {
        (0..PICKS).find_map(|_| {
            let lot = stock.pick(aisle, &mut self.rng)?;
            self.try_lot(stock, lot, Match::Exact)
        })
    }

    /// A draw of a lot, if one fits.
    fn try_lot(&mut self, stock: &Stock, lot: u32, fit: Match) -> Option<(u32, u32)> {
        let age = (fit == Match::Exact).then(|| stock.age(lot));
        let needs = matches!(fit, Match::Exact | Match::Aged | Match::Anew);
        if needs && !self.files.as_mut()?.has(stock.files(lot), age) {
            return None;
        }
        for i in 0..DRAWS {
            self.tidy = i + 1 < DRAWS;
            let draw = stock.draw(lot, &mut self.rng)?;
            if self.try_draw(stock, lot, draw, fit) {
                return Some((lot, draw.0));
            }
        }
        self.tidy = false;
        let all = stock.cells(lot);
        let start = all.start + below(&mut self.rng, all.len() as u64) as u32;
        (start..all.end).chain(all.start..start).take(ALL).find_map(|cell| {
            let key = stock.left_of(cell)?;
            self.try_draw(stock, lot, (cell, key), fit).then_some((lot, cell))
        })
    }

    fn try_draw(&mut self, stock: &Stock, lot: u32, (cell, key): (u32, u64), fit: Match) -> bool {
        let Some(files) = &self.files else { return false };
        if !self.strands && stock.strands(lot, cell, |class| files.count(class)) {
            return false;
        }
        self.last[GAP] = self.decode_gap.draw(self.gap.code(key), &mut self.rng).max(0);
        let op = self.decode_op.draw(self.op.code(key), &mut self.rng);
        let size = self.decode_size.draw(self.size.code(key), &mut self.rng);
        self.emit_on_file(key, (op, size), fit)
    }
}
