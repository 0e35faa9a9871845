//! What drawing requests of blocks and of files has in common: the time line, the numbers of the last request, the
//! requests that are drawn but not handed out.

use crate::error::Result;
use crate::feature::{Field, Kept, Last};
use crate::model::Model;
use crate::random::Random;
use crate::room::Room;
use crate::sample::codes::Codes;
use crate::sample::column::{Column, Columns};
use crate::sample::gaps;
use crate::sample::mix::{Budget, Mix};
use crate::schema::cells::{Cells, KeyField};
use crate::schema::dimension::Role;
use crate::schema::mean_sizes::Means;
use loadstone_trace::{Batch, NONE};
use rand_xoshiro::rand_core::SeedableRng;
use std::sync::Arc;

/// Requests drawn at once, so that their order can still be changed.
const SLICE: u64 = 1 << 16;

/// Most windows planned at once.
const MOST_PARTS: usize = 1 << 12;

/// Requests handed out at once, about, and most of a part.
pub(crate) const BATCH: usize = 1 << 14;

/// What the sampler had to do besides drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Requests generated.
    pub requests: u64,
    /// Requests that follow something else than they are given, because nothing else was left.
    pub backed_off: u64,
    /// Requests that could not be quite as they were drawn: their offset was wrapped into the object, a
    /// jump did not land where it leads, or the size was changed to fit the object or to end where it should.
    pub displaced: u64,
}

/// A stretch of time and how many requests lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// When it starts, nanoseconds.
    pub start: i64,
    /// When it ends.
    pub end: i64,
    /// Requests in it.
    pub requests: usize,
    /// Which budget they are of.
    pub budget: usize,
}

/// The windows generated next, which have one matrix, and the ops of their groups.
pub(crate) struct Plan {
    pub matrix: usize,
    pub parts: Vec<Part>,
    pub budgets: Vec<Budget>,
}

/// A given dimension: where its code lies in a key, and the number of the request before that it is about.
struct Given {
    place: KeyField,
    number: Kept,
    codes: Codes,
}

/// The stream so far.
pub(crate) struct Stream {
    pub model: Arc<Model>,
    pub room: Room,
    pub rng: Random,
    pub op: Column,
    pub size: Column,
    pub gap: Column,
    pub mix: Mix,
    /// Numbers of the last request.
    pub last: Last,
    /// When it was, nanoseconds.
    pub time: i64,
    /// Gaps of the requests that have no times yet.
    pub gaps: Vec<i64>,
    /// Requests that are not handed out.
    pub slice: Batch,
    pub tally: Tally,
    /// Position of the table that is drawn from.
    table: usize,
    given: Vec<Given>,
    mean_sizes: Means,
    matrices: Vec<u32>,
    /// Where each window begins, and the last one ends, nanoseconds.
    starts: Vec<i64>,
    /// The part of the time line that comes next, and how many of its requests are done.
    next: (usize, u64),
}

impl Stream {
    /// From the start of the model's time.
    ///
    /// # Errors
    /// Where the model sets no op, size or gap, or a dimension is in no table.
    pub fn new(model: &Arc<Model>, seed: u64) -> Result<Stream> {
        let (header, columns) = (&model.header, Columns::of(model));
        let given = columns.all().filter(|(dimension, _)| dimension.role == Role::Given);
        let given = given.filter_map(|(dimension, place)| {
            Some(Given { place, number: dimension.feature.kept()?, codes: Codes::new(&dimension.rule) })
        });
        let sizes = columns.dimension(Field::Size);
        Ok(Stream {
            room: Room::default(),
            rng: Random::seed_from_u64(seed),
            op: columns.need(Field::Op, "op")?,
            size: columns.need(Field::Size, "size")?,
            gap: columns.need(Field::Gap, "gap")?,
            mix: Mix::new(&header.windows),
            last: Last::default(),
            time: 0,
            gaps: Vec::new(),
            slice: Batch::default(),
            tally: Tally::default(),
            table: columns.table(),
            given: given.collect(),
            mean_sizes: sizes
                .map_or_else(Means::default, |sizes| Means::new(&header.mean_sizes, &sizes.rule)),
            matrices: model.matrix_of_window().collect(),
            starts: header.windows.starts(),
            next: (0, 0),
            model: Arc::clone(model),
        })
    }

    /// The cells of a matrix.
    pub fn cells(&self, matrix: usize) -> &Cells {
        &self.model.matrices[matrix].tables[self.table]
    }

    /// Bits of the given dimensions in a key; of those about one number, if one is named.
    pub fn given_bits(&self, of: Option<Kept>) -> u64 {
        let given = self.given.iter().filter(|given| of.is_none_or(|number| given.number == number));
        given.fold(0, |mask, given| mask | given.place.bits())
    }

    /// What the next request is given, as a part of its key; `None` if the model never saw that.
    #[inline]
    pub fn given(&mut self) -> Option<u64> {
        let mut key = 0;
        for given in &mut self.given {
            key |= given.place.part(given.codes.code(self.last[given.number]))?;
        }
        Some(key)
    }

    /// The windows generated next, about [`SLICE`] requests together at most.
    pub fn plan(&mut self) -> Option<Plan> {
        let line = &self.model.header.windows;
        let (first, mut done) = self.next;
        let mut at = (first..line.counts.len()).find(|&i| line.counts[i] > 0)?;
        let matrix = self.matrices[at];
        let (mut parts, mut budgets, mut total) = (Vec::new(), Vec::new(), 0);
        while at < line.counts.len() && total < SLICE && parts.len() < MOST_PARTS {
            let all = line.counts[at];
            if all > 0 && self.matrices[at] != matrix {
                break;
            }
            // A crowded window is cut; its requests are even in time then.
            let n = (all - done).min(BATCH as u64);
            let (start, end) = (self.starts[at], self.starts[at + 1]);
            let moment = |done: u64| {
                let part = i128::from(end - start) * i128::from(done) / i128::from(all.max(1));
                start + part as i64
            };
            let end = if all == 0 { end } else { moment(done + n) };
            if n > 0 {
                self.mix.take(line, at, n, &mut budgets);
            }
            let budget = budgets.len().saturating_sub(1);
            parts.push(Part { start: moment(done), end, requests: n as usize, budget });
            total += n;
            done += n;
            if done == all {
                (at, done) = (at + 1, 0);
            }
        }
        self.next = (at, done);
        Some(Plan { matrix: matrix as usize, parts, budgets })
    }

    /// Gives the requests of a part, whose gaps were drawn, their times.
    pub fn settle(&mut self, part: &Part) {
        gaps::fit(&mut self.gaps, (part.start - self.time).max(0), part.end - 1 - self.time);
        for gap in self.gaps.drain(..) {
            self.time += gap;
            self.slice.time.push(self.time);
        }
    }

    /// A size of a key's bucket; over many, they have the mean that the trace's had.
    #[inline]
    pub fn draw_size(&mut self, op: i64, key: u64) -> i64 {
        let code = self.size.code(key);
        match self.mean_sizes.of(op, code) {
            Some(mean) => self.size.numbers.draw_about(code, mean, &mut self.rng),
            None => self.size.numbers.draw(code, &mut self.rng),
        }
    }

    /// Takes the size that a request of this key got.
    #[inline]
    pub fn note_size(&mut self, op: i64, key: u64, size: i64) {
        self.mean_sizes.note(op, self.size.code(key), size);
    }

    /// Hands out what is drawn; `false` if nothing is.
    pub fn hand_out(&mut self, batch: &mut Batch) -> bool {
        let n = self.slice.len();
        self.slice.latency.resize(n, NONE);
        self.slice.flags.resize(n, 0);
        self.slice.actor.resize(n, 0);
        self.tally.requests += n as u64;
        batch.clear();
        std::mem::swap(batch, &mut self.slice);
        n > 0
    }
}
