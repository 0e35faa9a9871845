//! The order of draws of files: each takes one that requests before it left as it was drawn.
//!
//! What a request asks of its file, what happened to that and how long it is, an earlier one must have left so. A whole
//! trace has as many that leave it as ask for it, so there is an order in which each finds its file. It is sought by
//! choosing among the draws whose files are there, rather than a file for a draw.

use crate::random::{below, unit};
use crate::sample::file::Match;
use crate::sample::file::cell_index::CellIndex;
use crate::sample::mix::Budget;
use crate::sample::schedule::Part;
use crate::sample::{GAP, Sampler};
use std::ops::Range;

/// Draws of a file group that are tried.
const DRAWS: usize = 3;

/// Cells of a file group that are tried where these do not fit.
const ALL: usize = 16;

/// Groups of files of an age group that are tried at random before all are.
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
pub(crate) struct FileOrder {
    pub matrix: usize,
    parts: std::vec::IntoIter<Part>,
    /// What parts take of each class of op, and how many of these budgets were granted.
    budgets: Vec<Budget>,
    granted: usize,
}

impl FileOrder {
    pub fn new(matrix: usize, parts: Vec<Part>, budgets: Vec<Budget>) -> FileOrder {
        FileOrder { matrix, parts: parts.into_iter(), budgets, granted: 0 }
    }
}

impl Sampler {
    /// Emits the requests of the next part; `false` if there is none.
    pub(crate) fn follow(&mut self, file_order: &mut FileOrder, index: &mut CellIndex) -> bool {
        let Some(part) = file_order.parts.next() else { return false };
        if part.requests == 0 {
            return true;
        }
        // What one group has too much of, the next has less.
        for budget in &file_order.budgets[file_order.granted..=part.budget] {
            index.grant(budget);
        }
        file_order.granted = part.budget + 1;
        for _ in 0..part.requests {
            if index.is_empty() {
                index.refill();
            }
            let given = self.given();
            let Some((file_group, cell)) = self.next_draw(index, given) else { break };
            self.tally.backed_off += u64::from(!given.is_some_and(|given| index.follows(file_group, given)));
            index.take(file_group, cell);
            self.gaps.push(self.last[GAP]);
        }
        self.settle(&part);
        true
    }

    /// Emits a request: the file group and cell of its draw.
    fn next_draw(&mut self, index: &CellIndex, given: Option<u64>) -> Option<(u32, u32)> {
        let of = given.map_or(0..0, |given| index.group(given));
        let (own, all) = (index.lots_of(of.clone()), index.lots_of(index.all()));
        for strands in [false, true] {
            self.strands = strands;
            let draw = self.exact(index, of.clone());
            if draw.is_some() {
                return draw;
            }
            for (follows, fit, granted) in STAGES {
                let file_groups = if follows { own.clone() } else { all.clone() };
                let draw = self.scan(index, file_groups, fit, granted);
                if draw.is_some() {
                    return draw;
                }
            }
        }
        let forced = self.scan(index, all.clone(), Match::Forced, true);
        forced.or_else(|| self.scan(index, all, Match::Forced, false))
    }

    /// The first draw of these file groups that fits, from any of them on.
    fn scan(
        &mut self,
        index: &CellIndex,
        file_groups: Range<u32>,
        fit: Match,
        granted: bool,
    ) -> Option<(u32, u32)> {
        let start = file_groups.start + below(&mut self.rng, file_groups.len() as u64) as u32;
        let fits = |file_group: &u32| {
            let (left, budget) = index.left(*file_group);
            left > 0 && (budget > 0 || !granted)
        };
        (start..file_groups.end)
            .chain(file_groups.start..start)
            .filter(fits)
            .find_map(|file_group| self.try_lot(index, file_group, fit))
    }

    /// A draw of these age groups whose file was used when it should have been.
    fn exact(&mut self, index: &CellIndex, of: Range<u32>) -> Option<(u32, u32)> {
        let mut weights = std::mem::take(&mut self.weights);
        weights.clear();
        weights.extend(of.clone().map(|age_group| index.weight(age_group)));
        let draw = self.exact_by(index, of, &mut weights);
        self.weights = weights;
        draw
    }

    /// The same, by how much of each age group is to be taken.
    fn exact_by(&mut self, index: &CellIndex, of: Range<u32>, weights: &mut [f64]) -> Option<(u32, u32)> {
        let files = self.files.as_ref()?;
        // Whether it stays with its file is up to how often that is still to come.
        let mut stay = None;
        if let Some(last) = files.last_left()
            && let Some(at) = of.clone().position(|age_group| index.age_group(age_group).age == files.stays())
        {
            let staying = index.of_length(of.start + at as u32, files.alike().2, last.2);
            let coming = index.leaving(last) + 1;
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
            let age_group = of.start + at as u32;
            let draw = self
                .pick(index, age_group)
                .or_else(|| self.scan(index, index.file_groups(age_group), Match::Exact, true));
            if draw.is_some() {
                return draw;
            }
        }
        None
    }

    /// A draw of an age group that fits: some are tried.
    fn pick(&mut self, index: &CellIndex, age_group: u32) -> Option<(u32, u32)> {
        (0..PICKS).find_map(|_| {
            let file_group = index.pick(age_group, &mut self.rng)?;
            self.try_lot(index, file_group, Match::Exact)
        })
    }

    /// A draw of a file group, if one fits.
    fn try_lot(&mut self, index: &CellIndex, file_group: u32, fit: Match) -> Option<(u32, u32)> {
        let age = (fit == Match::Exact).then(|| index.age(file_group));
        let needs = matches!(fit, Match::Exact | Match::Aged | Match::Anew);
        if needs && !self.files.as_mut()?.has(index.files(file_group), age) {
            return None;
        }
        for i in 0..DRAWS {
            self.tidy = i + 1 < DRAWS;
            let draw = index.draw(file_group, &mut self.rng)?;
            if self.try_draw(index, file_group, draw, fit) {
                return Some((file_group, draw.0));
            }
        }
        self.tidy = false;
        let all = index.cells(file_group);
        let start = all.start + below(&mut self.rng, all.len() as u64) as u32;
        (start..all.end).chain(all.start..start).take(ALL).find_map(|cell| {
            let key = index.left_of(cell)?;
            self.try_draw(index, file_group, (cell, key), fit).then_some((file_group, cell))
        })
    }

    fn try_draw(&mut self, index: &CellIndex, file_group: u32, (cell, key): (u32, u64), fit: Match) -> bool {
        let Some(files) = &self.files else { return false };
        if !self.strands && index.strands(file_group, cell, |class| files.count(class)) {
            return false;
        }
        self.last[GAP] = self.decode_gap.draw(self.gap.code(key), &mut self.rng).max(0);
        let op = self.decode_op.draw(self.op.code(key), &mut self.rng);
        let size = self.draw_size(op, key);
        self.emit_on_file(key, (op, size), fit)
    }
}
