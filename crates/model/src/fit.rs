//! Fitting: a stream of requests becomes a model, in one pass and bounded memory.

use crate::calibrate;
use crate::counting::{Counting, grain};
use crate::dimension::{OffsetRule, Role, Spec, check_set};
use crate::distance::Distance;
use crate::early::{Early, Known};
use crate::encode::Encoder;
use crate::feature::Field;
use crate::header::{Header, Merging, Object, Source, VERSION, Windows};
use crate::merge::Merge;
use crate::model::{MAX_OBJECTS, Model};
use crate::pipeline::Pipeline;
use crate::rule::Rule;
use crate::windows::{self, Timeline};
use loadstone_trace::{Batch, Error, Info, NONE, Requests, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Requests that make a group of windows when nothing else is asked for.
const GROUP: u64 = 256;

/// How a model is fitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitOptions {
    /// Length of a window in nanoseconds; if not given, the smaller of 20 s and a thirtieth of the
    /// span, halved as long as windows hold many requests.
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
    /// Requests that neighbouring windows must hold together to be compared: fewer tell too little
    /// of how they are distributed. 0 compares each window by itself, as is done where windows are
    /// not merged.
    pub group: Option<u64>,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            window_ns: None,
            span_ns: None,
            merge: Merge::default(),
            distance: Distance::default(),
            threshold: 0.05,
            max_matrices: 256,
            dimensions: Vec::new(),
            offset_rule: OffsetRule::default(),
            far: None,
            regions: 64,
            group: None,
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
            if !asked && spec.feature.kind().field == Field::Region {
                // Linear over all regions; only an object that outgrows them gets wider buckets.
                let sub = self.regions.next_power_of_two().clamp(1, 4096);
                spec.rule.base = Rule::Log2 { sub, signed: false };
            }
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

/// Fits a model batch by batch.
pub struct Fitter {
    options: FitOptions,
    specs: Vec<Spec>,
    early: Early,
    known: Known,
    buffer: Vec<(Batch, Known)>,
    buffered: usize,
    counting: Option<Pipeline>,
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
            early: Early::new(&specs),
            known: Known::new(),
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
        let mut known = std::mem::take(&mut self.known);
        self.early.numbers(batch, &mut known);
        let taken = self.push_known(batch, &known);
        self.known = known;
        taken
    }

    /// Gives away what computes ahead, for [`Fitter::push_known`].
    pub(crate) fn take_early(&mut self) -> Early {
        std::mem::take(&mut self.early)
    }

    /// Takes the next requests of the stream with what is known of them.
    pub(crate) fn push_known(&mut self, batch: &Batch, known: &Known) -> Result<()> {
        if self.counting.is_none() && self.buffered >= calibrate::REQUESTS {
            self.calibrate(false)?;
        }
        self.check(batch)?;
        calibrate::extend(&mut self.extents, batch);
        self.requests += batch.len() as u64;
        match &mut self.counting {
            Some(counting) => counting.count(batch, known),
            None => {
                self.buffer.push((batch.clone(), known.clone()));
                self.buffered += batch.len();
                Ok(())
            }
        }
    }

    fn group(&self) -> u64 {
        let alone = self.options.merge == Merge::None;
        self.options.group.unwrap_or(if alone { 0 } else { GROUP })
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
            (None, Some(span)) => windows::length(span, self.buffered, self.last),
            (None, None) => {
                return Err(Error::new("the length of the trace is not known, so no window can be chosen")
                    .help("give the window"));
            }
        };
        let line = Timeline::new(window_ns);
        let context = calibrate::regions(&self.extents, self.options.regions);
        let buffer = std::mem::take(&mut self.buffer);
        let encoder = Encoder::new(&self.specs, &self.options, context, &buffer)?;
        let counting = Counting::new(&self.specs, &self.options, &encoder, self.group(), line);
        let mut pipeline = Pipeline::new(encoder, counting)?;
        for (batch, known) in &buffer {
            pipeline.count(batch, known)?;
        }
        self.counting = Some(pipeline);
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
        let (encoder, mut counting) = self.counting.take().expect("calibrated").end()?;
        counting.close();
        let objects = (self.extents.iter().enumerate())
            .filter(|(_, extent)| **extent != NONE)
            .map(|(id, &extent)| Object {
                id: id as u32,
                name: String::new(),
                extent,
                region_shift: encoder.shift(id as u32),
            })
            .collect();
        let header = Header {
            version: VERSION,
            dimensions: Vec::new(),
            tables: encoder.tables(),
            offset_rule: self.options.offset_rule,
            far: self.options.far,
            offset_grain: grain(self.offset_or),
            back_off: (0..self.specs.len()).filter(|&d| self.specs[d].role == Role::Given).collect(),
            windows: Windows::default(),
            objects,
            merging: Merging {
                group: self.group(),
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
        counting.into_model(encoder.into_dimensions(), header)
    }
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
