//! Counting: batches become keys, keys become windows, windows become matrices.

use crate::calibrate::Common;
use crate::cells::{Cells, Layout, bits_for};
use crate::coder::Coder;
use crate::dimension::{Dimension, Role, Spec};
use crate::feature::{Context, Feature, Field};
use crate::fit::FitOptions;
use crate::header::{Header, Table};
use crate::mask::{self, By, Masks, Numbers};
use crate::merge::{Counted, Merger};
use crate::model::{Matrix, Model};
use crate::rule::{OVER, Rule};
use crate::windows::{MAX_WINDOWS, Timeline};
use loadstone_trace::{Batch, Error, NONE, Result};
use rustc_hash::FxHashMap;

/// Requests of a window that wait to be counted at most; far more than make a group.
const PENDING: usize = 1 << 16;

/// Groups after which they become twice as large, so that long streams are compared in time.
const LARGER_AFTER: u64 = 1024;

/// Part of a full group that the calm before a burst must hold to be a group of its own.
const CALM: u64 = 8;

/// Factor between the mean sizes of a group and of a window that keeps them apart ...
const LARGER_SIZE: u64 = 16;

/// ... where one of them holds this many requests: few huge requests are much of a trace's bytes.
const SIZED: u64 = 8;

/// A dimension while it is being counted.
struct Column {
    spec: Spec,
    feature: Box<dyn Feature>,
    rule: Rule,
    coder: Coder,
    values: Vec<i64>,
    codes: Vec<u32>,
    /// Bits of all magnitudes seen, for the grain.
    or: u64,
    /// Largest number seen.
    largest: i64,
    bits: u8,
}

/// What exists once calibration is over.
pub(crate) struct Counting {
    columns: Vec<Column>,
    /// Dimensions of each table.
    members: Vec<Vec<usize>>,
    layouts: Vec<Layout>,
    /// Keys of the batch, by table.
    keys: Vec<Vec<u64>>,
    pub context: Context,
    /// The open group of windows: counts by key, by table.
    open: Vec<FxHashMap<u64, u64>>,
    in_group: u64,
    groups: u64,
    /// Keys of the open window that are not counted yet, by table.
    pending: Vec<Vec<u64>>,
    /// Bytes of the open group, and of what is pending.
    group_bytes: u64,
    pending_bytes: u64,
    /// Requests that make a group; 0: every window is one.
    enough: u64,
    pub timeline: Timeline,
    merger: Merger,
    masks: Masks,
    places: Deciders,
    by: Vec<By>,
}

/// The columns that lead to an offset.
struct Deciders {
    jump: Option<usize>,
    resume: Option<usize>,
    reuse: Option<usize>,
    region: Option<usize>,
}

impl Counting {
    pub fn new(
        specs: &[Spec],
        options: &FitOptions,
        context: Context,
        group: u64,
        timeline: Timeline,
        buffer: &[Batch],
    ) -> Result<Counting> {
        let at = |field| specs.iter().position(|s| s.role == Role::Sets && s.feature.kind().field == field);
        let places = Deciders {
            jump: at(Field::Jump),
            resume: at(Field::Resume),
            reuse: at(Field::Reuse),
            region: at(Field::Region),
        };
        let masks = Masks::new(options.offset_rule, options.far);
        let mut columns = Vec::new();
        for (d, spec) in specs.iter().enumerate() {
            let mut common = Common::default();
            if spec.rule.exact {
                let mut run = |d: usize| (specs[d].feature.start(&context), Vec::new());
                let (mut feature, mut values) = run(d);
                // Jumps that do not decide are not told apart, so they need no values of their own.
                let others = places.jump.filter(|jump| *jump == d).map(|_| [places.resume, places.reuse]);
                let mut others = others.unwrap_or_default().map(|d| d.map(&mut run));
                let mut by = Vec::new();
                for batch in buffer {
                    feature.values(batch, &mut values);
                    let [resume, reuse] = others.each_mut().map(|other| {
                        let (feature, values) = other.as_mut()?;
                        feature.values(batch, values);
                        Some(&**values)
                    });
                    if places.jump == Some(d) {
                        let numbers = Numbers { jump: Some(&values), resume, reuse };
                        masks.decide(&numbers, &batch.object, &context, &mut by);
                        mask::blank(&by, By::Jump, &mut values, NONE);
                    }
                    common.add(&values);
                }
            }
            let rule = spec.rule.learned(spec.feature.kind().signed, common.values());
            columns.push(Column {
                spec: spec.clone(),
                feature: spec.feature.start(&context),
                coder: Coder::new(&rule),
                rule,
                values: Vec::new(),
                codes: Vec::new(),
                or: 0,
                largest: NONE,
                bits: 1,
            });
        }
        // One joint table of all that is generated, and one for each observed dimension.
        let mut members: Vec<Vec<usize>> = vec![Vec::new()];
        for (d, spec) in specs.iter().enumerate() {
            match spec.role {
                Role::Observed => members.push(vec![d]),
                _ => members[0].push(d),
            }
        }
        let tables = members.len();
        let size = at(Field::Size).map_or((0, Rule::Linear { width: 1, signed: false }), |d| {
            let column: &Column = &columns[d];
            (d, column.rule.clone())
        });
        let mut counting = Counting {
            columns,
            members,
            layouts: Vec::new(),
            keys: vec![Vec::new(); tables],
            context,
            open: vec![FxHashMap::default(); tables],
            in_group: 0,
            groups: 0,
            pending: vec![Vec::new(); tables],
            group_bytes: 0,
            pending_bytes: 0,
            enough: group,
            timeline,
            merger: Merger::new(
                (options.merge, options.distance, options.threshold),
                options.max_matrices,
                size,
                // What is given follows from the others; runs keep it and the alignment for long, which makes
                // both vary far more than chance.
                (0..specs.len())
                    .filter(|&d| {
                        specs[d].role != Role::Given && specs[d].feature.kind().field != Field::Align
                    })
                    .collect(),
            ),
            masks,
            places,
            by: Vec::new(),
        };
        counting.layouts = counting.layouts_now()?;
        Ok(counting)
    }

    pub fn tables(&self) -> Vec<Table> {
        let given = |d: &usize| self.columns[*d].spec.role == Role::Given;
        (self.members.iter())
            .map(|m| Table { dimensions: m.clone(), given: m.iter().copied().filter(given).collect() })
            .collect()
    }

    fn layouts_now(&self) -> Result<Vec<Layout>> {
        (self.members.iter())
            .map(|m| {
                let bits: Vec<u8> = m.iter().map(|&d| self.columns[d].bits).collect();
                Layout::new(&bits).ok_or_else(|| {
                    let each: Vec<String> = m
                        .iter()
                        .map(|&d| format!("{} {}", self.columns[d].spec.feature, self.columns[d].bits))
                        .collect();
                    Error::new(format!(
                        "the dimensions need more than 64 bits together ({})",
                        each.join(", ")
                    ))
                    .help("use coarser buckets or fewer dimensions")
                })
            })
            .collect()
    }

    /// Codes of a batch, and wider keys where a code has outgrown its bits.
    fn encode(&mut self, batch: &Batch) -> Result<()> {
        for column in &mut self.columns {
            column.feature.values(batch, &mut column.values);
            column.coder.column(&column.values, &mut column.codes, &mut column.or);
            column.largest = column.values.iter().copied().fold(column.largest, i64::max);
        }
        self.mask(batch);
        let mut grown = false;
        for column in &mut self.columns {
            let largest = column.codes.iter().copied().max().unwrap_or(0);
            if largest == OVER {
                let i = column.codes.iter().position(|&c| c == OVER).unwrap_or(0);
                return Err(Error::new(format!(
                    "{} {} {} has no bucket",
                    column.spec.feature,
                    column.values[i],
                    column.spec.feature.kind().unit
                ))
                .help("use wider buckets, or log2 instead of linear"));
            }
            if bits_for(largest) > column.bits {
                column.bits = bits_for(largest);
                grown = true;
            }
        }
        if grown {
            self.widen()?;
        }
        for ((members, layout), keys) in self.members.iter().zip(&self.layouts).zip(&mut self.keys) {
            keys.clear();
            keys.resize(batch.len(), 0);
            for (at, &d) in members.iter().enumerate() {
                let shift = layout.shift(at);
                for (key, &code) in keys.iter_mut().zip(&self.columns[d].codes) {
                    *key |= u64::from(code) << shift;
                }
            }
        }
        Ok(())
    }

    /// Blanks codes that do not decide where a request goes.
    fn mask(&mut self, batch: &Batch) {
        let values = |d: usize| &*self.columns[d].values;
        let numbers = Numbers {
            jump: self.places.jump.map(values),
            resume: self.places.resume.map(values),
            reuse: self.places.reuse.map(values),
        };
        self.masks.decide(&numbers, &batch.object, &self.context, &mut self.by);
        for (mine, d) in [
            (By::Resume, self.places.resume),
            (By::Jump, self.places.jump),
            (By::Reuse, self.places.reuse),
            (By::Region, self.places.region),
        ] {
            if let Some(d) = d {
                mask::blank(&self.by, mine, &mut self.columns[d].codes, 0);
            }
        }
    }

    fn widen(&mut self) -> Result<()> {
        let wider = self.layouts_now()?;
        for (t, new) in wider.iter().enumerate() {
            let old = &self.layouts[t];
            for key in &mut self.pending[t] {
                *key = old.rekey(new, *key);
            }
            self.open[t] = self.open[t].drain().map(|(key, n)| (old.rekey(new, key), n)).collect();
            for matrix in &mut self.merger.matrices {
                matrix.tables[t].rekey(old, new);
            }
        }
        self.layouts = wider;
        Ok(())
    }

    pub fn count(&mut self, batch: &Batch) -> Result<()> {
        self.encode(batch)?;
        let mut from = 0;
        while from < batch.len() {
            let index = batch.time[from] / self.timeline.length_ns;
            if index != self.timeline.index {
                self.next_window(index)?;
            }
            let end = (index + 1).saturating_mul(self.timeline.length_ns);
            let more = batch.time[from..].iter().take_while(|&&t| t < end).count();
            for (pending, keys) in self.pending.iter_mut().zip(&self.keys) {
                pending.extend_from_slice(&keys[from..from + more]);
            }
            let bytes = batch.size[from..from + more].iter().map(|&size| size.max(0) as u64);
            self.pending_bytes = bytes.fold(self.pending_bytes, u64::saturating_add);
            self.timeline.in_window += more as u64;
            if self.pending[0].len() >= PENDING {
                self.settle();
            }
            from += more;
        }
        Ok(())
    }

    fn next_window(&mut self, index: i64) -> Result<()> {
        if index >= MAX_WINDOWS {
            let time = index.saturating_mul(self.timeline.length_ns);
            return Err(Error::new(format!("time {time} ns lies in window {index}"))
                .help(format!("a model has at most {MAX_WINDOWS} windows; use longer ones")));
        }
        self.settle();
        self.timeline.end_window();
        if self.in_group >= self.enough.max(1) {
            self.close_group();
        }
        self.timeline.skip_to(index);
        Ok(())
    }

    /// Counts the requests of the open window in the group; a window that is a group by itself starts
    /// one, lest a burst and the calm before it be taken together.
    fn settle(&mut self) {
        let waiting = self.pending[0].len() as u64;
        // Only whole windows can be kept apart.
        let first = self.timeline.in_window == waiting;
        let burst = waiting >= self.enough && self.in_group > self.enough / CALM;
        if first && (burst || self.sizes_differ(waiting)) {
            self.close_group();
        }
        self.in_group += waiting;
        self.group_bytes = self.group_bytes.saturating_add(std::mem::take(&mut self.pending_bytes));
        for (open, pending) in self.open.iter_mut().zip(&mut self.pending) {
            for key in pending.drain(..) {
                *open.entry(key).or_default() += 1;
            }
        }
    }

    /// Whether the open group and the window that waits are of quite different sizes.
    fn sizes_differ(&self, waiting: u64) -> bool {
        if waiting.max(self.in_group) < SIZED || waiting == 0 || self.in_group == 0 || self.enough == 0 {
            return false;
        }
        let (group, window) = (self.group_bytes / self.in_group, self.pending_bytes / waiting);
        group.min(window).saturating_mul(LARGER_SIZE) < group.max(window) && group.min(window) > 0
    }

    /// Ends the stream.
    pub fn close(&mut self) {
        self.settle();
        self.timeline.end_window();
        self.close_group();
    }

    fn close_group(&mut self) {
        if self.in_group == 0 {
            return;
        }
        self.in_group = 0;
        self.group_bytes = 0;
        self.groups += 1;
        if self.groups.is_multiple_of(LARGER_AFTER) {
            self.enough *= 2;
        }
        let tables: Vec<Cells> =
            self.open.iter_mut().map(|open| Cells::from_pairs(open.drain().collect())).collect();
        let group = Counted::new(tables, &self.layouts, &self.members, self.columns.len());
        let matrix = self.merger.add(group) as u32;
        self.timeline.cover(matrix);
    }

    pub fn into_model(self, mut header: Header) -> Result<Model> {
        let mut largest = vec![0u32; self.columns.len()];
        for matrix in &self.merger.matrices {
            for (most, marginal) in largest.iter_mut().zip(&matrix.marginals) {
                *most = (*most).max(marginal.keys.last().copied().unwrap_or(0) as u32);
            }
        }
        for column in self.columns {
            let rule = match column.coder.categories() {
                Some(values) => Rule::Category { values },
                None => column.rule,
            };
            header.dimensions.push(Dimension {
                feature: column.spec.feature,
                role: column.spec.role,
                rule,
                grain: grain(column.or),
                largest: (column.largest != NONE).then_some(column.largest),
            });
        }
        let layouts = Model::tight_layouts(&header, &largest)?;
        let matrices = (self.merger.matrices.into_iter())
            .map(|mut matrix| {
                for (t, cells) in matrix.tables.iter_mut().enumerate() {
                    cells.rekey(&self.layouts[t], &layouts[t]);
                }
                Matrix { tables: matrix.tables }
            })
            .collect();
        let model = Model { header, layouts, matrices };
        model.header.check()?;
        model.check()?;
        Ok(model)
    }
}
/// Largest power of two that divides all the numbers whose bits were gathered.
pub(crate) fn grain(or: u64) -> i64 {
    if or == 0 { 1 } else { 1 << or.trailing_zeros().min(62) }
}
