//! The order of draws of files: each takes one that requests before it left as it was drawn.
//!
//! What a request asks of its file, what happened to that and how long it is, an earlier one must have left so. A whole
//! trace has as many that leave it as ask for it, so there is an order in which each finds its file. It is sought by
//! choosing among the draws whose files are there, rather than a file for a draw.

use crate::error::Result;
use crate::feature::{Field, Kept};
use crate::model::Model;
use crate::random::{below, unit};
use crate::sample::block::ledger::Ledger;
use crate::sample::column::Columns;
use crate::sample::file::cell_index::{CellIndex, Sorts};
use crate::sample::file::{Files, Match, Parts};
use crate::sample::mix::Budget;
use crate::sample::stream::{BATCH, Part, Stream};
use loadstone_trace::{Batch, Object, Op};
use std::ops::Range;
use std::sync::Arc;

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
struct FileOrder {
    matrix: usize,
    parts: std::vec::IntoIter<Part>,
    /// What parts take of each class of op, and how many of these budgets were granted.
    budgets: Vec<Budget>,
    granted: usize,
}

/// Requests of files.
pub struct FileSampler {
    pub(in crate::sample) stream: Stream,
    files: Files,
    /// The draws that are left of each matrix, once there are any.
    indexes: Vec<Option<Box<CellIndex>>>,
    order: Option<FileOrder>,
    /// How much of each age group is to be taken; memory to use again.
    weights: Vec<f64>,
}

impl FileSampler {
    pub(in crate::sample) fn new(model: &Arc<Model>, seed: u64) -> Result<FileSampler> {
        let (stream, columns) = (Stream::new(model, seed)?, Columns::of(model));
        let opens = [Op::Open, Op::Close].iter().any(|op| stream.op.numbers.has(*op as i64));
        let parts = Parts {
            file: columns.column(Field::File)?,
            state: columns.column(Field::State)?,
            near: columns.column(Field::Near)?,
            length: columns.column(Field::Length)?,
            other: columns.column(Field::Other)?,
            result: columns.column(Field::Result)?,
            seek: columns.column(Field::Jump)?,
            reuse: columns.find(Field::Reuse)?,
        };
        Ok(FileSampler {
            files: Files::new(parts, opens, model.header.distances.as_ref().map(Ledger::plain)),
            indexes: (0..model.matrices.len()).map(|_| None).collect(),
            order: None,
            weights: Vec::new(),
            stream,
        })
    }

    /// Generates what comes next, a batch or a little more; `false` at the end of the model.
    pub(in crate::sample) fn refill(&mut self, batch: &mut Batch) -> bool {
        self.stream.slice.clear();
        while self.stream.slice.len() < BATCH && (self.follow_on() || self.begin()) {}
        self.stream.hand_out(batch)
    }

    /// Bytes of memory that the files and their blocks take, about.
    pub fn bytes(&self) -> u64 {
        self.files.bytes()
    }

    /// Names of the files so far.
    pub(in crate::sample) fn names(&self) -> Vec<Object> {
        self.files.names()
    }

    /// Goes to the next parts of the time line; `false` at its end.
    fn begin(&mut self) -> bool {
        let Some(plan) = self.stream.plan() else { return false };
        let (matrix, parts, budgets) = (plan.matrix, plan.parts.into_iter(), plan.budgets);
        self.order = Some(FileOrder { matrix, parts, budgets, granted: 0 });
        true
    }

    /// Emits the requests of the next part; `false` if there is none.
    fn follow_on(&mut self) -> bool {
        let Some(mut order) = self.order.take() else { return false };
        let matrix = order.matrix;
        let mut index = self.indexes[matrix].take().unwrap_or_else(|| Box::new(self.index(matrix)));
        let goes_on = self.follow(&mut order, &mut index);
        self.indexes[matrix] = Some(index);
        self.order = goes_on.then_some(order);
        goes_on
    }

    fn index(&mut self, matrix: usize) -> CellIndex {
        let stream = &self.stream;
        let (op, mix) = (&stream.op, &stream.mix);
        let (file, state, length) = self.files.alike();
        let by = Sorts {
            given: stream.given_bits(None),
            class: |key: u64| mix.class(op.code(key)),
            classes: mix.classes(),
            file,
            state,
            length,
        };
        let files = &mut self.files;
        CellIndex::new(stream.cells(matrix), &by, |key| files.asked(key))
    }

    fn follow(&mut self, order: &mut FileOrder, index: &mut CellIndex) -> bool {
        let Some(part) = order.parts.next() else { return false };
        if part.requests == 0 {
            return true;
        }
        // What one group has too much of, the next has less.
        for budget in &order.budgets[order.granted..=part.budget] {
            index.grant(budget);
        }
        order.granted = part.budget + 1;
        for _ in 0..part.requests {
            if index.is_empty() {
                index.refill();
            }
            let given = self.stream.given();
            let Some((file_group, cell)) = self.next_draw(index, given) else { break };
            let follows = given.is_some_and(|given| index.follows(file_group, given));
            self.stream.tally.backed_off += u64::from(!follows);
            index.take(file_group, cell);
            self.stream.gaps.push(self.stream.last[Kept::Gap]);
        }
        self.stream.settle(&part);
        true
    }

    /// Emits a request: the file group and cell of its draw.
    fn next_draw(&mut self, index: &CellIndex, given: Option<u64>) -> Option<(u32, u32)> {
        let of = given.map_or(0..0, |given| index.group(given));
        let (own, all) = (index.lots_of(of.clone()), index.lots_of(index.all()));
        let draw = self.exact(index, of);
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
        let start = file_groups.start + below(&mut self.stream.rng, file_groups.len() as u64) as u32;
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
        for _ in 0..of.len() {
            let mut target = weights.iter().sum::<f64>() * unit(&mut self.stream.rng);
            let at = weights.iter().position(|weight| {
                target -= weight;
                target < 0.0
            })?;
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
            let file_group = index.pick(age_group, &mut self.stream.rng)?;
            self.try_lot(index, file_group, Match::Exact)
        })
    }

    /// A draw of a file group, if one fits.
    fn try_lot(&mut self, index: &CellIndex, file_group: u32, fit: Match) -> Option<(u32, u32)> {
        let age = (fit == Match::Exact).then(|| index.age(file_group));
        let needs = matches!(fit, Match::Exact | Match::Aged | Match::Anew);
        if needs && !self.files.has(index.files(file_group), age) {
            return None;
        }
        for _ in 0..DRAWS {
            let draw = index.draw(file_group, &mut self.stream.rng)?;
            if self.try_draw(draw.1, fit) {
                return Some((file_group, draw.0));
            }
        }
        let all = index.cells(file_group);
        let start = all.start + below(&mut self.stream.rng, all.len() as u64) as u32;
        (start..all.end).chain(all.start..start).take(ALL).find_map(|cell| {
            let key = index.left_of(cell)?;
            self.try_draw(key, fit).then_some((file_group, cell))
        })
    }

    fn try_draw(&mut self, key: u64, fit: Match) -> bool {
        let stream = &mut self.stream;
        stream.last[Kept::Gap] = stream.gap.draw(key, &mut stream.rng).max(0);
        let op = stream.op.draw(key, &mut stream.rng);
        let drawn = stream.draw_size(op, key);
        let code = op.clamp(0, 255) as u8;
        let Some(found) = self.files.choose(key, code, drawn, fit, &mut stream.rng) else {
            return false;
        };
        stream.tally.displaced += u64::from(found.astray || found.size != drawn);
        stream.note_size(op, key, found.size);
        // Of these only some are ever asked for.
        (stream.last[Kept::Op], stream.last[Kept::Size]) = (op, found.size);
        stream.last[Kept::State] = found.state;
        stream.slice.op.push(code);
        stream.slice.object.push(found.object);
        stream.slice.offset.push(found.offset);
        stream.slice.size.push(found.size);
        stream.slice.result.push(found.result);
        stream.slice.other.push(found.other);
        true
    }
}
