//! Sampling: a model becomes a stream of requests again.
//!
//! The sampler walks the time line; each window gets as many cells of its matrix as it had requests.
//! The cells are drawn without replacement over the life of their matrix, so that the whole stream has exactly the
//! model's histogram, and put in an order in which each follows what it is given. Inside a bucket numbers are uniform on
//! the grain.

mod block;
mod codes;
mod decode;
mod file;
mod gaps;
mod mix;
mod schedule;
mod urn;
mod waits;

use crate::feature::{self, Field, PAGE};
use crate::model::Model;
use crate::sample::block::ledger::Ledger;
use crate::sample::block::order::BlockOrder;
use crate::sample::block::placement::{Fit, Leads, Misfit, Placement, Places};
use crate::sample::block::pools::{Decides, Pools, Shape};
use crate::sample::codes::Codes;
use crate::sample::decode::Decoder;
pub(crate) use crate::sample::file::cell_index::{CellIndex, Sorts};
use crate::sample::file::order::FileOrder;
use crate::sample::file::{Files, Match, Part as Chooses, Parts};
use crate::sample::mix::{Budget, Mix};
use crate::sample::schedule::Part;
use crate::sample::urn::Urn;
use crate::sample::waits::Waits;
use crate::schema::cells;
use crate::schema::dimension::Role;
use crate::schema::mean_sizes::Means;
use loadstone_trace::{Batch, Error, NONE, Object, Op, Requests, Result};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::sync::Arc;

/// Requests drawn at once, so that their order can still be changed.
const SLICE: u64 = 1 << 16;

/// Most windows planned at once.
const MOST_PARTS: usize = 1 << 12;

/// Requests handed out at once, about, and most of a part.
const BATCH: usize = 1 << 14;

/// Codes of these ops.
const OPEN: i64 = Op::Open as i64;
const CLOSE: i64 = Op::Close as i64;

/// Position of the gap in the feature table.
const GAP: usize = 5;

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

/// What a matrix is drawn from.
pub(crate) struct Joint {
    shape: Arc<Shape>,
    /// One for each class of op.
    urns: Vec<Urn>,
    /// Time since the request before, nanoseconds on average.
    mean_gap: f64,
}

/// A given dimension: where its code lies in a key, and the feature of the request before that it is about, by
/// position in the feature table.
struct Given {
    place: cells::KeyField,
    feature: usize,
    codes: Codes,
}

/// A model as a stream of requests; the same seed gives the same stream.
pub struct Sampler {
    model: Arc<Model>,
    rng: Xoshiro256PlusPlus,
    decode_op: Decoder,
    decode_object: Decoder,
    decode_size: Decoder,
    mean_sizes: Means,
    decode_gap: Decoder,
    code_align: Codes,
    code_distance: Codes,
    op: cells::KeyField,
    object: cells::KeyField,
    size: cells::KeyField,
    gap: cells::KeyField,
    jump: cells::KeyField,
    region: cells::KeyField,
    align: cells::KeyField,
    reuse: cells::KeyField,
    resume: cells::KeyField,
    distance: cells::KeyField,
    /// Position of the table that is drawn from, and what it is given.
    table: usize,
    given: Vec<Given>,
    drawers: Vec<Option<Joint>>,
    /// The same of a model of files, and where it is.
    indexes: Vec<Option<Box<CellIndex>>>,
    file_order: Option<FileOrder>,
    /// How much of each age group is to be taken; memory to use again.
    weights: Vec<f64>,
    /// Whether a draw may take away the last file that others wait for, and whether it may not end within a page.
    strands: bool,
    tidy: bool,
    matrices: Vec<u32>,
    places: Places,
    /// Chooses files and places in them, where the model is of files.
    files: Option<Box<Files>>,
    /// Numbers of the last request by feature, and the state of its file before.
    last: [i64; feature::KEPT + 1],
    run: feature::offsets::run::State,
    /// Of a model that draws think times.
    waits: Option<Waits>,
    /// The part of the time line that comes next, and how many of its requests are done.
    next: (usize, u64),
    time: i64,
    mix: Mix,
    /// Where each window begins, and the last one ends, nanoseconds.
    starts: Vec<i64>,
    /// What is being drawn from one joint table.
    walk: Option<Box<BlockOrder>>,
    /// Memory of the last walk.
    spare: Option<Pools>,
    gaps: Vec<i64>,
    slice: Batch,
    tally: Tally,
}

impl Sampler {
    /// A stream from the start of the model's time.
    pub fn new(model: Arc<Model>, seed: u64) -> Result<Sampler> {
        let header = &model.header;
        let table = header.drawn_table();
        let (layout, drawn) = (&model.layouts[table], &header.tables[table].dimensions);
        // The dimension that sets a field, and where its code lies.
        let find = |field: Field| {
            let sets = |d: &&usize| {
                let dimension = &header.dimensions[**d];
                dimension.role == Role::Sets && dimension.feature.kind().field == field
            };
            let dimension = *drawn.iter().find(sets)?;
            Some((dimension, layout.place(drawn.iter().position(|d| *d == dimension)?)))
        };
        let need = |field: Field, name: &str| {
            find(field).ok_or_else(|| Error::new(format!("the model sets no {name}")))
        };
        let (op, object) = (need(Field::Op, "op")?, find(Field::Object));
        let (size, gap) = (need(Field::Size, "size")?, need(Field::Gap, "gap")?);
        let (jump, region, align) = (find(Field::Jump), find(Field::Region), find(Field::Align));
        let (reuse, resume, distance) = (find(Field::Reuse), find(Field::Resume), find(Field::Distance));
        let given = drawn.iter().enumerate().filter_map(|(at, &d)| {
            let dimension = &header.dimensions[d];
            let (place, feature) = (layout.place(at), dimension.feature.kept()?);
            (dimension.role == Role::Given).then(|| Given {
                place,
                feature,
                codes: Codes::new(&dimension.rule),
            })
        });
        let given = given.collect();
        let decoder = |found: Option<(usize, cells::KeyField)>| -> Result<Decoder> {
            let Some((d, _)) = found else { return Ok(Decoder::default()) };
            let dimension = &header.dimensions[d];
            let codes = model.marginal(d, None)?.keys;
            // A region's number says nothing of the offset's grain.
            let grain = if dimension.feature.kind().field == Field::Region { 1 } else { dimension.grain };
            let codes = codes.into_iter().map(|c| c as u32);
            Ok(Decoder::new(&dimension.rule, grain, dimension.largest, codes))
        };
        let place = block::placement::Decoders {
            jump: decoder(jump)?,
            region: decoder(region)?,
            align: decoder(align)?,
            reuse: decoder(reuse)?,
            resume: decoder(resume)?,
            distance: decoder(distance)?,
        };
        let part = |found: (usize, cells::KeyField)| Ok::<_, Error>((decoder(Some(found))?, found.1));
        let ledger = distance.map(|distance| {
            let cells = model.matrices.iter().map(|matrix| &matrix.tables[table]);
            Ok::<_, Error>(Ledger::of(
                header.distances.as_ref(),
                cells,
                &part(distance)?,
                &part(op)?,
                &part(size)?,
                align.map(part).transpose()?.as_ref(),
            ))
        });
        let waits = Field::WAITS.map(|field| Some((decoder(find(field)), find(field)?.1)));
        let waits = match waits {
            [Some(actor), Some(after), Some(think)] => {
                Some(Waits::new((actor.0?, actor.1), (after.0?, after.1), (think.0?, think.1)))
            }
            _ => None,
        };
        let files = if header.is_of_files() {
            let part = |field: Field| -> Result<Chooses> {
                let found = find(field);
                let place = found.map_or(cells::KeyField::default(), |(_, at)| at);
                Ok(Chooses { place, decode: decoder(found)? })
            };
            let stays = find(Field::File).map_or(0, |(d, _)| header.dimensions[d].rule.code(0));
            let ops = model.marginal(op.0, None)?.keys;
            let rule = &header.dimensions[op.0].rule;
            let opens = ops
                .iter()
                .any(|&code| rule.range(code as u32).is_some_and(|op| matches!(op.first, OPEN | CLOSE)));
            Some(Box::new(Files::new(
                Parts {
                    file: part(Field::File)?,
                    state: part(Field::State)?,
                    near: part(Field::Near)?,
                    length: part(Field::Length)?,
                    other: part(Field::Other)?,
                    result: part(Field::Result)?,
                    seek: part(Field::Jump)?,
                    reuse: find(Field::Reuse).map(|_| part(Field::Reuse)).transpose()?,
                    op: op.1,
                },
                stays,
                opens,
            )))
        } else {
            None
        };
        let by_op = jump.is_some_and(|(d, _)| header.dimensions[d].feature.kind().name == "op_jump");
        let jump_grain = jump.map_or(1, |(d, _)| header.dimensions[d].grain);
        let ages = header
            .dimensions
            .iter()
            .any(|d| d.role == Role::Given && matches!(d.feature.kind().field, Field::Reuse | Field::Resume));
        let at =
            |found: Option<(usize, cells::KeyField)>| found.map_or(cells::KeyField::default(), |(_, at)| at);
        Ok(Sampler {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            decode_op: decoder(Some(op))?,
            decode_object: decoder(object)?,
            decode_size: decoder(Some(size))?,
            mean_sizes: Means::new(&header.mean_sizes, &header.dimensions[size.0].rule),
            decode_gap: decoder(Some(gap))?,
            code_align: Codes::new(&header.dimensions[align.unwrap_or(op).0].rule),
            code_distance: Codes::new(&header.dimensions[distance.unwrap_or(op).0].rule),
            op: op.1,
            object: at(object),
            size: size.1,
            gap: gap.1,
            jump: at(jump),
            region: at(region),
            align: at(align),
            reuse: at(reuse),
            resume: at(resume),
            distance: at(distance),
            table,
            given,
            drawers: (0..model.matrices.len()).map(|_| None).collect(),
            indexes: (0..model.matrices.len()).map(|_| None).collect(),
            file_order: None,
            weights: Vec::new(),
            strands: false,
            tidy: true,
            matrices: model.matrix_of_window().collect(),
            places: Places::new(
                header,
                place,
                jump_grain,
                by_op,
                (reuse.is_some(), resume.is_some()),
                ledger.transpose()?,
                ages,
            ),
            files,
            last: [NONE; feature::KEPT + 1],
            run: feature::offsets::run::State::default(),
            waits,
            next: (0, 0),
            time: 0,
            mix: Mix::new(&header.windows),
            starts: header.windows.starts(),
            walk: None,
            spare: None,
            gaps: Vec::new(),
            slice: Batch::default(),
            tally: Tally::default(),
            model,
        })
    }

    /// What had to be done besides drawing, so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The windows generated next, of one matrix and about [`SLICE`] requests together at most, and the
    /// ops of their groups.
    fn plan(&mut self) -> Option<(u32, Vec<Part>, Vec<Budget>)> {
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
        Some((matrix, parts, budgets))
    }

    /// Generates what comes next, a batch or a little more; `false` at the end of the model.
    fn refill(&mut self) -> bool {
        self.slice.clear();
        while self.slice.len() < BATCH && (self.walk_on() || self.follow_on() || self.begin()) {}
        let n = self.slice.len();
        if let Some(waits) = &mut self.waits {
            waits.settle(&mut self.slice);
        }
        self.slice.latency.resize(n, NONE);
        self.slice.flags.resize(n, 0);
        self.slice.actor.resize(n, 0);
        self.tally.requests += n as u64;
        n > 0
    }

    /// Goes to the next parts of the time line; `false` at its end.
    fn begin(&mut self) -> bool {
        let Some((matrix, parts, budgets)) = self.plan() else { return false };
        let matrix = matrix as usize;
        if self.files.is_some() {
            self.file_order = Some(FileOrder::new(matrix, parts, budgets));
            return true;
        }
        self.places.turn_to(matrix);
        let mut joint = self.drawers[matrix].take().unwrap_or_else(|| self.start(matrix));
        self.deal(&mut joint, parts, budgets);
        self.drawers[matrix] = Some(joint);
        true
    }

    /// Emits the requests of files of the next part; `false` if there is none.
    fn follow_on(&mut self) -> bool {
        let Some(mut file_order) = self.file_order.take() else { return false };
        let mut index = match self.indexes[file_order.matrix].take() {
            Some(index) => index,
            None => Box::new(self.index(file_order.matrix)),
        };
        let goes_on = self.follow(&mut file_order, &mut index);
        self.indexes[file_order.matrix] = Some(index);
        self.file_order = goes_on.then_some(file_order);
        goes_on
    }

    fn index(&mut self, matrix: usize) -> CellIndex {
        let cells = &self.model.matrices[matrix].tables[self.table];
        let given = self.given.iter().fold(0, |mask, given| mask | given.place.bits());
        let class = |key: u64| self.mix.class(self.op.code(key));
        let (files, op) = (self.files.as_mut().expect("of files"), self.op);
        let (file, state, length) = files.alike();
        let by = Sorts { given, class, classes: self.mix.classes(), op, file, state, length };
        let decode = &self.decode_op;
        CellIndex::new(cells, &by, |key| files.moves(key, decode.range(op.code(key)).0))
    }

    /// Gives the requests of a part, whose gaps were drawn, their times.
    fn settle(&mut self, part: &Part) {
        gaps::fit(&mut self.gaps, (part.start - self.time).max(0), part.end - 1 - self.time);
        for gap in self.gaps.drain(..) {
            self.time += gap;
            self.slice.time.push(self.time);
        }
    }

    fn start(&self, matrix: usize) -> Joint {
        let cells = &self.model.matrices[matrix].tables[self.table];
        let given = self.given.iter().fold(0, |mask, given| mask | given.place.bits());
        let class = |key: u64| self.mix.class(self.op.code(key));
        let (resume, align, distance) = (self.resume, self.align, self.distance);
        let classes = self.mix.classes();
        let of_op = |given: &&Given| given.feature == 0;
        let after = self.given.iter().filter(of_op).fold(0, |mask, given| mask | given.place.bits());
        let by = Decides { given, after, class, classes, resume, align, distance };
        let all = (0..).zip(cells.counts.iter().copied());
        let of = |class: usize| {
            all.clone().filter(move |(cell, _)| (by.class)(cells.keys[*cell as usize]) == class)
        };
        let urns = (0..classes).map(|class| Urn::new(of(class))).collect();
        let gap = |(cell, n): (u32, u64)| {
            let gap = self.decode_gap.middle(self.gap.code(cells.keys[cell as usize]));
            gap as f64 * n as f64
        };
        let requests = cells.counts.iter().sum::<u64>().max(1);
        let mean_gap = all.clone().map(gap).sum::<f64>() / requests as f64;
        Joint { shape: Arc::new(Shape::new(cells, &by)), urns, mean_gap }
    }

    /// A size of this key's bucket; over many, they have the mean that the trace's had.
    #[inline]
    fn draw_size(&mut self, op: i64, key: u64) -> i64 {
        let code = self.size.code(key);
        match self.mean_sizes.of(op, code) {
            Some(mean) => self.decode_size.draw_about(code, mean, &mut self.rng),
            None => self.decode_size.draw(code, &mut self.rng),
        }
    }

    /// Appends the request of this key to the slice, if it fits as it should.
    #[inline]
    fn emit(&mut self, key: u64, fit: Fit) -> std::result::Result<(), Misfit> {
        let object = self.decode_object.draw(self.object.code(key), &mut self.rng).max(0) as u32;
        let op = self.decode_op.draw(self.op.code(key), &mut self.rng);
        let drawn = self.draw_size(op, key);
        let leads = Leads {
            resume: self.resume.code(key),
            jump: self.jump.code(key),
            region: self.region.code(key),
            align: self.align.code(key),
            reuse: self.reuse.code(key),
            distance: self.distance.code(key),
        };
        let who = (object, op.clamp(0, 255) as u8);
        let first = if fit == Fit::Forced { Fit::Unaligned } else { fit };
        let mut place = self.places.place(who, drawn, leads, first, &mut self.rng);
        let displaced = place.is_err() && fit == Fit::Forced;
        if displaced {
            place = self.places.place(who, drawn, leads, fit, &mut self.rng);
        }
        let Placement { offset, size, jump, op_jump, reuse, resume, astray } = place?;
        self.tally.displaced += u64::from(displaced || astray || size != drawn);
        self.mean_sizes.note(op, self.size.code(key), size);
        let (region, align) = match offset {
            NONE => (NONE, NONE),
            _ => (offset >> self.places.shift(object), offset % PAGE),
        };
        // In the order of the feature table, without those that only a trace has; the gap was noted when it was
        // drawn.
        let gap = self.last[GAP];
        let run = self.run.note(who.1, object, offset, size);
        self.last =
            [op, i64::from(object), size, jump, region, gap, align, op_jump, reuse, resume, run, NONE];
        self.slice.op.push(who.1);
        self.slice.object.push(object);
        self.slice.offset.push(offset);
        self.slice.size.push(size);
        if let Some(waits) = &mut self.waits {
            waits.note(key, &mut self.rng, &mut self.slice);
        }
        Ok(())
    }

    /// The same of a request of files; `false` if there is none that it fits.
    fn emit_on_file(&mut self, key: u64, (op, drawn): (i64, i64), fit: Match) -> bool {
        let Some(files) = &mut self.files else { return false };
        let code = op.clamp(0, 255) as u8;
        let Some(found) = files.choose(key, code, drawn, (fit, self.tidy), &mut self.rng) else {
            return false;
        };
        self.tally.displaced += u64::from(found.astray || found.size != drawn);
        self.mean_sizes.note(op, self.size.code(key), found.size);
        // Of these only some are ever asked for; the gap was noted when it was drawn.
        (self.last[0], self.last[2], self.last[feature::KEPT]) = (op, found.size, found.state);
        self.slice.op.push(code);
        self.slice.object.push(found.object);
        self.slice.offset.push(found.offset);
        self.slice.size.push(found.size);
        self.slice.result.push(found.result);
        self.slice.other.push(found.other);
        true
    }

    /// Names of the objects generated so far: those of the model, or of files that are made up.
    pub fn names(&self) -> Vec<Object> {
        match &self.files {
            Some(files) => files.names(),
            None => {
                let objects = self.model.header.objects.iter();
                objects.map(|o| Object { id: o.id, name: o.name.clone() }).collect()
            }
        }
    }
}

impl Requests for Sampler {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        if !self.refill() {
            return Ok(false);
        }
        std::mem::swap(batch, &mut self.slice);
        Ok(true)
    }
}
