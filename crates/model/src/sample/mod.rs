//! Sampling: a model becomes a stream of requests again.
//!
//! The sampler walks the time line; each window gets as many cells of its matrix as it had requests. A table without given dimensions is drawn without replacement over the life of its
//! matrix, so that the whole stream has exactly the model's histogram; a table with given ones is
//! drawn from the slice that what was generated so far selects. Inside a bucket numbers are uniform
//! on the grain.

mod deal;
mod deck;
mod decode;
mod gaps;
mod place;
mod slice;

use crate::cells::Layout;
use crate::coder::Coder;
use crate::dimension::{Dimension, Role};
use crate::feature::{Field, PAGE};
use crate::model::Model;
use crate::rule::OVER;
use deal::{Draw, Part};
use deck::Deck;
use decode::{Decoder, below};
use loadstone_trace::{Batch, Error, NONE, Requests, Result};
use place::{Codes, Place, Places};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use slice::Slices;
use std::ops::Range;
use std::sync::Arc;

/// Requests drawn at once, so that their order can still be changed.
const SLICE: u64 = 1 << 16;

/// Most windows planned at once.
const MOST_PARTS: usize = 1 << 12;

/// Requests handed out at once.
const BATCH: usize = 1 << 14;

/// How often another draw is tried in place of one that conflicts.
const TRIES: usize = 16;

/// What the sampler had to do besides drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Requests generated.
    pub requests: u64,
    /// Requests drawn from a slice that was given less, because the full one was empty.
    pub backed_off: u64,
    /// Requests that could not go where they were drawn to: their offset was wrapped into the
    /// object, or a far jump landed near.
    pub displaced: u64,
}

/// How a table of a matrix is drawn from.
enum Drawer {
    Deck(Deck),
    Slices(Slices),
}

/// Where a field's code lies: table and position in it.
#[derive(Clone, Copy)]
struct At {
    dimension: usize,
    table: usize,
    position: usize,
}

/// A given dimension: where its number comes from.
struct Given {
    at: At,
    source: GivenSource,
}

enum GivenSource {
    /// The number of a feature of the previous request (by position in the feature table).
    Previous { feature: usize, coder: Box<Coder> },
    /// The code an earlier table drew.
    Drawn(At),
}

/// A model as a stream of requests; the same seed gives the same stream.
pub struct Sampler {
    model: Arc<Model>,
    rng: Xoshiro256PlusPlus,
    decode_op: Decoder,
    decode_object: Decoder,
    decode_size: Decoder,
    decode_gap: Decoder,
    op: At,
    object: At,
    size: At,
    gap: At,
    jump: Option<At>,
    region: Option<At>,
    align: Option<At>,
    /// Tables that are drawn from, in order, with their given dimensions in the order they are dropped.
    tables: Vec<(usize, Vec<Given>)>,
    drawers: Vec<Option<Vec<Drawer>>>,
    matrices: Vec<u32>,
    places: Places,
    /// Numbers of the last request by feature.
    last: [i64; 8],
    /// The part of the time line that comes next, and how many of its requests are done.
    next: (usize, u64),
    time: i64,
    draws: Vec<Draw>,
    gaps: Vec<i64>,
    slice: Batch,
    given_out: usize,
    tally: Tally,
}

impl Sampler {
    /// A stream from the start of the model's time.
    pub fn new(model: Arc<Model>, seed: u64) -> Result<Sampler> {
        let header = &model.header;
        let find = |field: Field| {
            let sets = |d: &Dimension| d.role == Role::Sets && d.feature.kind().field == field;
            let dimension = header.dimensions.iter().position(sets)?;
            header.tables.iter().enumerate().find_map(|(table, t)| {
                let position = t.dimensions.iter().position(|d| *d == dimension)?;
                (!t.given.contains(&dimension)).then_some(At { dimension, table, position })
            })
        };
        let need = |field: Field, name: &str| {
            find(field).ok_or_else(|| Error::new(format!("the model sets no {name}")))
        };
        let (op, object) = (need(Field::Op, "op")?, need(Field::Object, "object")?);
        let (size, gap) = (need(Field::Size, "size")?, need(Field::Gap, "gap")?);
        let (jump, region, align) = (find(Field::Jump), find(Field::Region), find(Field::Align));
        let mut tables = Vec::new();
        for (t, table) in header.tables.iter().enumerate() {
            if table.dimensions.iter().any(|&d| header.dimensions[d].role == Role::Observed) {
                continue;
            }
            let mut order = table.given.clone();
            order.sort_by_key(|d| header.back_off.iter().position(|x| x == d).unwrap_or(usize::MAX));
            let given = order.into_iter().map(|d| {
                let position = table.dimensions.iter().position(|x| *x == d).expect("checked");
                let dimension = &header.dimensions[d];
                let source = if dimension.role == Role::Given {
                    GivenSource::Previous {
                        feature: dimension.feature.index(),
                        coder: Box::new(Coder::new(&dimension.rule)),
                    }
                } else {
                    GivenSource::Drawn(find(dimension.feature.kind().field).expect("checked"))
                };
                Given { at: At { dimension: d, table: t, position }, source }
            });
            tables.push((t, given.collect()));
        }
        let decoder = |at: Option<At>| -> Result<Decoder> {
            let Some(At { dimension: d, .. }) = at else { return Ok(Decoder::default()) };
            let dimension = &header.dimensions[d];
            let codes = model.marginal(d, None)?.keys;
            // A region's number says nothing of the offset's grain.
            let grain = if dimension.feature.kind().field == Field::Region { 1 } else { dimension.grain };
            let codes = codes.into_iter().map(|c| c as u32);
            Ok(Decoder::new(&dimension.rule, grain, dimension.largest, codes))
        };
        let place =
            place::Decoders { jump: decoder(jump)?, region: decoder(region)?, align: decoder(align)? };
        let by_op = jump.is_some_and(|at| header.dimensions[at.dimension].feature.kind().name == "op_jump");
        let jump_grain = jump.map_or(1, |at| header.dimensions[at.dimension].grain);
        Ok(Sampler {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            decode_op: decoder(Some(op))?,
            decode_object: decoder(Some(object))?,
            decode_size: decoder(Some(size))?,
            decode_gap: decoder(Some(gap))?,
            op,
            object,
            size,
            gap,
            jump,
            region,
            align,
            tables,
            drawers: (0..model.matrices.len()).map(|_| None).collect(),
            matrices: model.matrix_of_window().collect(),
            places: Places::new(header, place, jump_grain, by_op),
            last: [NONE; 8],
            next: (0, 0),
            time: 0,
            draws: Vec::new(),
            gaps: Vec::new(),
            slice: Batch::default(),
            given_out: 0,
            tally: Tally::default(),
            model,
        })
    }

    /// What had to be done besides drawing, so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Whether cells are drawn without replacement and independently of each other.
    fn independent(&self) -> bool {
        self.tables.len() == 1 && self.tables[0].1.is_empty()
    }

    /// The windows generated next: of one matrix, about [`SLICE`] requests together at most.
    fn plan(&mut self) -> Option<(u32, Vec<Part>)> {
        let line = &self.model.header.windows;
        let (first, mut done) = self.next;
        let mut at = (first..line.counts.len()).find(|&i| line.counts[i] > 0)?;
        let matrix = self.matrices[at];
        let (mut parts, mut total) = (Vec::new(), 0);
        while at < line.counts.len() && total < SLICE && parts.len() < MOST_PARTS {
            let all = line.counts[at];
            if all > 0 && self.matrices[at] != matrix {
                break;
            }
            // A crowded window is cut; its requests are even in time then.
            let n = (all - done).min(SLICE);
            let moment = |done: u64| {
                let part = i128::from(line.length_ns) * i128::from(done) / i128::from(all.max(1));
                at as i64 * line.length_ns + part as i64
            };
            let end = if all == 0 { moment(0) + line.length_ns } else { moment(done + n) };
            parts.push(Part { start: moment(done), end, requests: n as usize });
            total += n;
            done += n;
            if done < all {
                break;
            }
            (at, done) = (at + 1, 0);
        }
        self.next = (at, done);
        Some((matrix, parts))
    }

    /// Generates the next slice; `false` at the end of the model.
    fn refill(&mut self) -> bool {
        let Some((matrix, parts)) = self.plan() else { return false };
        let matrix = matrix as usize;
        let mut drawers = self.drawers[matrix].take().unwrap_or_else(|| self.start(matrix));
        self.slice.clear();
        self.gaps.clear();
        let n = parts.iter().map(|p| p.requests).sum();
        if self.independent() {
            self.draw_independent(matrix, &mut drawers, n, &parts);
        } else {
            self.draw_given(matrix, &mut drawers, n);
        }
        self.drawers[matrix] = Some(drawers);
        let mut from = 0;
        for part in parts.iter().filter(|p| p.requests > 0) {
            let gaps = &mut self.gaps[from..from + part.requests];
            from += part.requests;
            gaps::fit(gaps, (part.start - self.time).max(0), part.end - 1 - self.time);
            for &gap in &*gaps {
                self.time += gap;
                self.slice.time.push(self.time);
            }
        }
        self.slice.latency.resize(n, NONE);
        self.slice.flags.resize(n, 0);
        self.slice.actor.resize(n, 0);
        self.tally.requests += n as u64;
        true
    }

    fn start(&self, matrix: usize) -> Vec<Drawer> {
        self.tables
            .iter()
            .map(|(t, given)| {
                let cells = &self.model.matrices[matrix].tables[*t];
                if given.is_empty() {
                    Drawer::Deck(Deck::new(cells))
                } else {
                    let positions: Vec<usize> = given.iter().map(|g| g.at.position).collect();
                    Drawer::Slices(Slices::new(cells, &self.model.layouts[*t], &positions))
                }
            })
            .collect()
    }

    /// Draws all cells first; the order of independent draws is free, so one that conflicts with the
    /// position the request before it left is exchanged for a later one.
    fn draw_independent(&mut self, matrix: usize, drawers: &mut [Drawer], n: usize, parts: &[Part]) {
        let t = self.tables[0].0;
        let model = Arc::clone(&self.model);
        let cells = &model.matrices[matrix].tables[t];
        let layout = &model.layouts[t];
        let Drawer::Deck(deck) = &mut drawers[0] else { unreachable!("nothing is given") };
        let mut draws = std::mem::take(&mut self.draws);
        draws.clear();
        for _ in 0..n {
            let key = cells.keys[deck.draw(cells, |n| below(&mut self.rng, n))];
            let gap = self.decode_gap.draw(layout.code(key, self.gap.position), &mut self.rng);
            draws.push((key, gap.max(0)));
        }
        let short = deal::deal(&mut draws, parts, self.time, &mut self.rng);
        let (mut first, mut now) = (0, self.time);
        for part in parts.iter().filter(|p| p.requests > 0) {
            let last = first + part.requests;
            // The gap that crosses into the part: the shortest that is long enough, else the longest.
            let fits = |gap: i64| if gap >= part.start - now { (0, gap) } else { (1, -gap) };
            if let Some(best) = (first..last).min_by_key(|&i| fits(draws[i].1)) {
                draws.swap(first, best);
            }
            for i in first..last {
                self.emit_or_exchange(&mut draws, i, first..last, short, layout);
            }
            (first, now) = (last, part.end);
        }
        self.draws = draws;
    }

    /// Emits draw `i`; one that conflicts with the position the request before it left changes places
    /// with a later one of its part or, as gaps shorter than `short` belong anywhere, of another.
    #[inline]
    fn emit_or_exchange(
        &mut self,
        draws: &mut [Draw],
        i: usize,
        part: Range<usize>,
        short: i64,
        layout: &Layout,
    ) {
        let mut tries = 0;
        loop {
            let key = draws[i].0;
            if self.emit(|at: At| layout.code(key, at.position), tries >= TRIES) {
                break;
            }
            tries += 1;
            let left = draws.len() - i - 1;
            if left == 0 {
                tries = TRIES;
                continue;
            }
            let later = i + 1 + below(&mut self.rng, left as u64) as usize;
            let (gap, other) = (draws[i].1, draws[later].1);
            // About equal gaps are as good as each other anywhere; the first of a part was chosen to fit.
            let alike = gap / 2 <= other && other / 2 <= gap;
            let free = i != part.start && (later < part.end || gap.max(other) <= short);
            if alike || free {
                draws.swap(i, later);
            }
        }
        self.gaps.push(draws[i].1);
    }

    /// Draws one request after the other, each from the slices the ones before it select.
    fn draw_given(&mut self, matrix: usize, drawers: &mut [Drawer], n: usize) {
        let model = Arc::clone(&self.model);
        let mut tables = std::mem::take(&mut self.tables);
        let mut keys = vec![0u64; model.header.tables.len()];
        for _ in 0..n {
            let mut backed_off = false;
            for ((t, given), drawer) in tables.iter_mut().zip(drawers.iter_mut()) {
                let (cells, layout) = (&model.matrices[matrix].tables[*t], &model.layouts[*t]);
                let rng = &mut self.rng;
                let cell = match drawer {
                    Drawer::Deck(deck) => deck.draw(cells, |n| below(rng, n)),
                    Drawer::Slices(slices) => {
                        let (mut key, mut unknown) = (0, 0);
                        for g in given {
                            let code = match &mut g.source {
                                GivenSource::Previous { feature, coder } => coder.code(self.last[*feature]),
                                GivenSource::Drawn(from) => {
                                    model.layouts[from.table].code(keys[from.table], from.position)
                                }
                            };
                            let bits = (1u64 << layout.bits(g.at.position)) - 1;
                            if code == OVER || u64::from(code) > bits {
                                unknown |= bits << layout.shift(g.at.position);
                            } else {
                                key |= u64::from(code) << layout.shift(g.at.position);
                            }
                        }
                        let (cell, dropped) = slices.draw(key, unknown, |n| below(rng, n));
                        backed_off |= dropped > 0;
                        cell
                    }
                };
                keys[*t] = cells.keys[cell];
            }
            self.tally.backed_off += u64::from(backed_off);
            let code = |at: At| model.layouts[at.table].code(keys[at.table], at.position);
            let gap = self.decode_gap.draw(code(self.gap), &mut self.rng).max(0);
            self.last[5] = gap;
            if !self.emit(code, false) {
                self.emit(code, true);
            }
            self.gaps.push(gap);
        }
        self.tables = tables;
    }

    /// Appends the request with these codes to the slice; `false` if it conflicts and is not forced.
    #[inline]
    fn emit(&mut self, code: impl Fn(At) -> u32, force: bool) -> bool {
        let object = self.decode_object.draw(code(self.object), &mut self.rng).max(0) as u32;
        let size = self.decode_size.draw(code(self.size), &mut self.rng);
        let codes = Codes {
            jump: self.jump.map_or(0, &code),
            region: self.region.map_or(0, &code),
            align: self.align.map_or(0, &code),
        };
        let op = self.decode_op.draw(code(self.op), &mut self.rng);
        let who = (object, op.clamp(0, 255) as u8);
        let mut place = self.places.place(who, size, codes, &mut self.rng, false);
        if place.is_none() && force {
            place = self.places.place(who, size, codes, &mut self.rng, true);
            self.tally.displaced += 1;
        }
        let Some(Place { offset, size, jump, op_jump }) = place else { return false };
        let (region, align) = match offset {
            NONE => (NONE, NONE),
            _ => (offset >> self.places.shift(object), offset % PAGE),
        };
        // In the order of the feature table; the gap was noted when it was drawn.
        let gap = self.last[5];
        self.last = [op, i64::from(object), size, jump, region, gap, align, op_jump];
        self.slice.op.push(who.1);
        self.slice.object.push(object);
        self.slice.offset.push(offset);
        self.slice.size.push(size);
        true
    }
}

impl Requests for Sampler {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        if self.given_out == self.slice.len() {
            if !self.refill() {
                return Ok(false);
            }
            self.given_out = 0;
        }
        let rows = self.given_out..(self.given_out + BATCH).min(self.slice.len());
        batch.time.extend_from_slice(&self.slice.time[rows.clone()]);
        batch.op.extend_from_slice(&self.slice.op[rows.clone()]);
        batch.object.extend_from_slice(&self.slice.object[rows.clone()]);
        batch.offset.extend_from_slice(&self.slice.offset[rows.clone()]);
        batch.size.extend_from_slice(&self.slice.size[rows.clone()]);
        batch.latency.extend_from_slice(&self.slice.latency[rows.clone()]);
        batch.flags.extend_from_slice(&self.slice.flags[rows.clone()]);
        batch.actor.extend_from_slice(&self.slice.actor[rows.clone()]);
        self.given_out = rows.end;
        Ok(true)
    }
}
