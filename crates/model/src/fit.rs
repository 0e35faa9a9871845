//! Fitting: a stream of requests becomes a model, in one pass and bounded memory.

use crate::calibrate::{self, Common};
use crate::cells::{Cells, Layout, bits_for};
use crate::coder::Coder;
use crate::dimension::{Dimension, OffsetRule, Role, Spec, check_set};
use crate::distance::Distance;
use crate::feature::{Context, Feature, Field};
use crate::header::{Header, Merging, Object, Source, Table, VERSION, Windows};
use crate::merge::{Counted, Merge, Merger};
use crate::model::{MAX_OBJECTS, Matrix, Model};
use crate::rule::{OVER, Rule};
use loadstone_trace::{Batch, Error, Info, NONE, Requests, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Most windows a model may have; more is a sign of a wrong window or a damaged time.
const MAX_WINDOWS: i64 = 1 << 24;

/// How a model is fitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitOptions {
    /// Length of a window in nanoseconds; the smaller of 20 s and a thirtieth of the span if not given.
    pub window_ns: Option<i64>,
    /// Time of the last request, where known beforehand; needed to choose the window only for
    /// streams of more than a million requests.
    pub span_ns: Option<i64>,
    /// Which matrices a window may join.
    pub merge: Merge,
    /// How windows are compared.
    pub distance: Distance,
    /// Largest distance beyond chance that still merges.
    pub threshold: f64,
    /// Largest number of matrices.
    pub max_matrices: usize,
    /// Dimensions other than the defaults, or in their place.
    pub dimensions: Vec<Spec>,
    /// Which dimension decides where a request goes.
    pub offset_rule: OffsetRule,
    /// Longest jump that counts as near, bytes; one region if not given.
    pub far: Option<i64>,
    /// About how many regions an object is divided into.
    pub regions: u32,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            window_ns: None,
            span_ns: None,
            merge: Merge::default(),
            distance: Distance::default(),
            threshold: 0.1,
            max_matrices: 64,
            dimensions: Vec::new(),
            offset_rule: OffsetRule::default(),
            far: None,
            regions: 64,
        }
    }
}

impl FitOptions {
    fn specs(&self) -> Vec<Spec> {
        let mut specs = Spec::defaults(&self.dimensions);
        let spare = match self.offset_rule {
            OffsetRule::Near => None,
            OffsetRule::Jump => Some(Field::Region),
            OffsetRule::Region => Some(Field::Jump),
        };
        for spec in &mut specs {
            let asked = self.dimensions.iter().any(|s| s.feature == spec.feature);
            if !asked && Some(spec.feature.kind().field) == spare {
                spec.role = Role::Observed;
            }
        }
        specs
    }
}

/// Fits a model to a whole stream.
pub fn fit(requests: &mut dyn Requests, options: &FitOptions) -> Result<Model> {
    let mut fitter = Fitter::new(options)?;
    let mut batch = Batch::default();
    while requests.next(&mut batch)? {
        fitter.push(&batch)?;
    }
    fitter.finish()
}

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
    bits: u8,
}

/// The parts that exist once calibration is over.
struct Counting {
    columns: Vec<Column>,
    /// Dimensions of each table.
    members: Vec<Vec<usize>>,
    layouts: Vec<Layout>,
    /// Keys of the batch, by table.
    keys: Vec<Vec<u64>>,
    context: Context,
    window_ns: i64,
    /// The open window: counts by key, by table.
    open: Vec<FxHashMap<u64, u64>>,
    index: i64,
    in_window: u64,
    counts: Vec<u64>,
    matrices: Vec<(u64, u32)>,
    merger: Merger,
    near: Option<(usize, usize)>,
}

/// Fits a model batch by batch.
pub struct Fitter {
    options: FitOptions,
    specs: Vec<Spec>,
    buffer: Vec<Batch>,
    buffered: usize,
    counting: Option<Counting>,
    extents: Vec<i64>,
    offset_or: u64,
    requests: u64,
    last: i64,
}

impl Fitter {
    /// Starts with no requests.
    pub fn new(options: &FitOptions) -> Result<Fitter> {
        let specs = options.specs();
        let set: Vec<_> = specs.iter().map(|s| (s.feature, s.role)).collect();
        check_set(&set, options.offset_rule)?;
        if options.window_ns.is_some_and(|w| w < 1) {
            return Err(Error::new("the window must be longer than nothing"));
        }
        if !(0.0..=1.0).contains(&options.threshold) {
            return Err(Error::new(format!("threshold {} is not between 0 and 1", options.threshold)));
        }
        if options.regions == 0 || options.far.is_some_and(|far| far < 0) {
            return Err(Error::new("there must be at least one region, and far cannot be negative"));
        }
        Ok(Fitter {
            options: options.clone(),
            specs,
            buffer: Vec::new(),
            buffered: 0,
            counting: None,
            extents: Vec::new(),
            offset_or: 0,
            requests: 0,
            last: 0,
        })
    }

    /// Whether the window depends on a span that is not known.
    pub fn needs_span(&self) -> bool {
        self.options.window_ns.is_none() && self.options.span_ns.is_none()
    }

    /// Whether nothing more can be taken before [`Fitter::set_span`].
    pub fn waits_for_span(&self) -> bool {
        self.counting.is_none() && self.buffered >= calibrate::REQUESTS && self.needs_span()
    }

    /// Tells the time of the stream's last request, nanoseconds.
    pub fn set_span(&mut self, span_ns: i64) {
        self.options.span_ns = Some(span_ns);
    }

    /// Requests taken so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Takes the next requests of the stream.
    ///
    /// # Errors
    /// When time goes back, a number is impossible, a number has no bucket, the keys of a table
    /// outgrow 64 bits, or the window is not known when it must be ([`Fitter::waits_for_span`]).
    pub fn push(&mut self, batch: &Batch) -> Result<()> {
        if self.counting.is_none() && self.buffered >= calibrate::REQUESTS {
            self.calibrate(false)?;
        }
        self.check(batch)?;
        calibrate::extend(&mut self.extents, batch);
        self.requests += batch.len() as u64;
        match &mut self.counting {
            Some(counting) => counting.count(batch, self.options.far),
            None => {
                self.buffer.push(batch.clone());
                self.buffered += batch.len();
                Ok(())
            }
        }
    }

    /// Refuses what features cannot make sense of.
    fn check(&mut self, batch: &Batch) -> Result<()> {
        let wrong =
            |i: usize, what: String| Err(Error::new(format!("request {}: {what}", self.requests + i as u64)));
        let mut last = self.last;
        for (i, &time) in batch.time.iter().enumerate() {
            if time < last {
                return wrong(i, format!("its time {time} ns is before the one before it, {last} ns"));
            }
            last = time;
        }
        self.last = last;
        let mut or = 0;
        for (i, (&offset, &size)) in batch.offset.iter().zip(&batch.size).enumerate() {
            if offset != NONE {
                if offset < 0 || offset.checked_add(size.max(0)).is_none() {
                    return wrong(i, format!("offset {offset} with size {size} is impossible"));
                }
                or |= offset as u64;
            }
            if size < 0 && size != NONE {
                return wrong(i, format!("size {size} is negative"));
            }
        }
        self.offset_or |= or;
        match batch.object.iter().max() {
            Some(&object) if object >= MAX_OBJECTS => {
                Err(Error::new(format!("object {object}: too many objects"))
                    .help(format!("a model takes at most {MAX_OBJECTS}; their ids must be dense")))
            }
            _ => Ok(()),
        }
    }

    /// Ends calibration: learns values and regions from the buffer, then counts it.
    fn calibrate(&mut self, ended: bool) -> Result<()> {
        let span = if ended { Some(self.last) } else { self.options.span_ns };
        let window_ns = match (self.options.window_ns, span) {
            (Some(window), _) => window,
            (None, Some(span)) => (span / 30).clamp(1, 20_000_000_000),
            (None, None) => {
                return Err(Error::new("the length of the trace is not known, so no window can be chosen")
                    .help("give the window"));
            }
        };
        let context = calibrate::regions(&self.extents, self.options.regions);
        let buffer = std::mem::take(&mut self.buffer);
        let mut counting = Counting::new(&self.specs, &self.options, context, window_ns, &buffer)?;
        for batch in &buffer {
            counting.count(batch, self.options.far)?;
        }
        self.counting = Some(counting);
        Ok(())
    }

    /// Ends the stream; the model has no names and no source yet ([`Model::set_source`]).
    pub fn finish(mut self) -> Result<Model> {
        if self.requests == 0 {
            return Err(Error::new("there is no request to fit a model to"));
        }
        if self.counting.is_none() {
            self.calibrate(true)?;
        }
        let mut counting = self.counting.take().expect("calibrated");
        counting.close_window();
        let objects = (self.extents.iter().enumerate())
            .filter(|(_, extent)| **extent != NONE)
            .map(|(id, &extent)| Object {
                id: id as u32,
                name: String::new(),
                extent,
                region_shift: counting.context.shift(id as u32),
            })
            .collect();
        let header = Header {
            version: VERSION,
            dimensions: Vec::new(),
            tables: counting.tables(),
            offset_rule: self.options.offset_rule,
            far: self.options.far,
            offset_grain: grain(self.offset_or),
            back_off: (0..self.specs.len()).filter(|&d| self.specs[d].role == Role::Given).collect(),
            windows: Windows {
                length_ns: counting.window_ns,
                counts: std::mem::take(&mut counting.counts),
                matrices: std::mem::take(&mut counting.matrices),
            },
            objects,
            merging: Merging {
                mode: self.options.merge,
                distance: self.options.distance,
                threshold: self.options.threshold,
                max_matrices: self.options.max_matrices as u64,
            },
            source: Source {
                tool: concat!("loadstone ", env!("CARGO_PKG_VERSION")).into(),
                requests: self.requests,
                span_ns: self.last,
                ..Source::default()
            },
        };
        counting.into_model(header)
    }
}

/// Largest power of two that divides all the numbers whose bits were gathered.
fn grain(or: u64) -> i64 {
    if or == 0 { 1 } else { 1 << or.trailing_zeros().min(62) }
}

impl Model {
    /// Adds what the reader knows: names of the objects, format, losses.
    pub fn set_source(&mut self, info: &Info) {
        let names: FxHashMap<u32, &str> = info.objects.iter().map(|o| (o.id, o.name.as_str())).collect();
        for object in &mut self.header.objects {
            if let Some(name) = names.get(&object.id) {
                object.name = (*name).into();
            }
        }
        let source = &mut self.header.source;
        source.format.clone_from(&info.format);
        source.start_unix_ns = info.start_unix_ns;
        source.counts = info.counts.clone();
        source.warnings.clone_from(&info.warnings);
    }
}

impl Counting {
    fn new(
        specs: &[Spec],
        options: &FitOptions,
        context: Context,
        window_ns: i64,
        buffer: &[Batch],
    ) -> Result<Counting> {
        let near = (options.offset_rule == OffsetRule::Near).then(|| {
            let at = |field| {
                let sets = |s: &Spec| s.role == Role::Sets && s.feature.kind().field == field;
                specs.iter().position(sets).expect("checked")
            };
            (at(Field::Jump), at(Field::Region))
        });
        let mut columns = Vec::new();
        for (d, spec) in specs.iter().enumerate() {
            let mut common = Common::default();
            if spec.rule.exact {
                let (mut feature, mut values) = (spec.feature.start(&context), Vec::new());
                for batch in buffer {
                    feature.values(batch, &mut values);
                    if near.is_some_and(|(jump, _)| jump == d) {
                        // Far jumps are not told apart by the jump, so they need no values of their own.
                        for (value, &object) in values.iter_mut().zip(&batch.object) {
                            if !is_near(*value, object, &context, options.far) {
                                *value = NONE;
                            }
                        }
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
        let mut counting = Counting {
            columns,
            members,
            layouts: Vec::new(),
            keys: vec![Vec::new(); tables],
            context,
            window_ns,
            open: vec![FxHashMap::default(); tables],
            index: 0,
            in_window: 0,
            counts: Vec::new(),
            matrices: Vec::new(),
            merger: Merger::new(options.merge, options.distance, options.threshold, options.max_matrices),
            near,
        };
        counting.layouts = counting.layouts_now()?;
        Ok(counting)
    }

    fn tables(&self) -> Vec<Table> {
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
    fn encode(&mut self, batch: &Batch, far: Option<i64>) -> Result<()> {
        for column in &mut self.columns {
            column.feature.values(batch, &mut column.values);
            column.coder.column(&column.values, &mut column.codes, &mut column.or);
        }
        if let Some((jump, region)) = self.near {
            // The jump decides where the request is near, the region where it is not.
            let mut regions = std::mem::take(&mut self.columns[region].codes);
            let jumps = &mut self.columns[jump];
            for (i, (&value, &object)) in jumps.values.iter().zip(&batch.object).enumerate() {
                if is_near(value, object, &self.context, far) {
                    regions[i] = 0;
                } else {
                    jumps.codes[i] = 0;
                }
            }
            self.columns[region].codes = regions;
        }
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

    fn widen(&mut self) -> Result<()> {
        let wider = self.layouts_now()?;
        for (t, new) in wider.iter().enumerate() {
            let old = &self.layouts[t];
            self.open[t] = self.open[t].drain().map(|(key, n)| (old.rekey(new, key), n)).collect();
            for matrix in &mut self.merger.matrices {
                matrix.tables[t].rekey(old, new);
            }
        }
        self.layouts = wider;
        Ok(())
    }

    fn count(&mut self, batch: &Batch, far: Option<i64>) -> Result<()> {
        self.encode(batch, far)?;
        let mut from = 0;
        while from < batch.len() {
            let index = batch.time[from] / self.window_ns;
            if index != self.index {
                if index >= MAX_WINDOWS {
                    return Err(Error::new(format!("time {} ns lies in window {index}", batch.time[from]))
                        .help(format!("a model has at most {MAX_WINDOWS} windows; use a longer one")));
                }
                self.close_window();
                self.index = index;
            }
            let end = (index + 1).saturating_mul(self.window_ns);
            let to = from + batch.time[from..].partition_point(|&t| t < end);
            for (open, keys) in self.open.iter_mut().zip(&self.keys) {
                for &key in &keys[from..to] {
                    *open.entry(key).or_default() += 1;
                }
            }
            self.in_window += (to - from) as u64;
            from = to;
        }
        Ok(())
    }

    fn close_window(&mut self) {
        if self.in_window == 0 {
            return;
        }
        let tables: Vec<Cells> =
            self.open.iter_mut().map(|open| Cells::from_pairs(open.drain().collect())).collect();
        let window = Counted::new(tables, &self.layouts, &self.members, self.columns.len());
        let matrix = self.merger.add(window) as u32;
        // Empty windows carry on the phase before them; the first window is never empty for long.
        let empty = self.index as u64 - self.counts.len() as u64;
        self.counts.resize(self.index as usize, 0);
        self.counts.push(self.in_window);
        self.in_window = 0;
        match self.matrices.last_mut() {
            Some((run, _)) if empty > 0 => *run += empty,
            None if empty > 0 => self.matrices.push((empty, matrix)),
            _ => {}
        }
        match self.matrices.last_mut() {
            Some((run, last)) if *last == matrix => *run += 1,
            _ => self.matrices.push((1, matrix)),
        }
    }

    fn into_model(self, mut header: Header) -> Result<Model> {
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

/// Whether a jump is short enough to decide the offset; one region at most, unless told otherwise.
#[inline]
fn is_near(jump: i64, object: u32, context: &Context, far: Option<i64>) -> bool {
    jump != NONE && jump.unsigned_abs() <= far.map_or_else(|| 1 << context.shift(object), |f| f as u64)
}
