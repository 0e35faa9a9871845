//! Fitting: a stream of requests becomes a model, in one pass and bounded memory.

mod calibrate;
pub(crate) mod coder;
mod counting;
pub mod distance;
pub(crate) mod early;
pub(crate) mod encode;
pub(crate) mod from_trace;
pub(crate) mod measure;
mod merge;
mod options;
mod pipeline;
pub(crate) mod windows;

use crate::error::{Error, ErrorKind, Result};
use crate::feature::FeatureId;
use crate::feature::files::catalog::Catalog;
use crate::fit::counting::Counting;
use crate::fit::early::{Ahead, Early};
use crate::fit::encode::{Encoder, grain};
pub use crate::fit::options::FitOptions;
use crate::fit::pipeline::Pipeline;
use crate::fit::windows::Timeline;
use crate::model::Model;
use crate::room::admits;
use crate::schema::check::MAX_OBJECTS;
use crate::schema::dimension::{OffsetRule, Role, Spec, check_set};
use crate::schema::header::{Header, Object, Source, VERSION, Windows};
use crate::schema::merging::{Merge, Merging};
use loadstone_trace::{Batch, Info, NONE, Requests, wide, without_quotes};
use rustc_hash::FxHashMap;
use std::sync::Arc;

wide! {
    /// Whether times, of which `last` was the one before, do not go back and offsets and sizes are possible; gathers
    /// the bits of all offsets.
    fn makes_sense(times: &[i64], offsets: &[i64], sizes: &[i64], last: i64, offset_or: &mut u64) -> bool {
        let mut wrong = times.first().is_some_and(|first| *first < last);
        for (before, time) in times.iter().zip(times.get(1..).unwrap_or_default()) {
            wrong |= time < before;
        }
        let (mut or, mut signs) = (0, 0);
        for (&offset, &size) in offsets.iter().zip(sizes) {
            // An end that is beyond all numbers is negative.
            let size = if size == NONE { 0 } else { size };
            let offset = if offset == NONE { 0 } else { offset };
            or |= offset;
            signs |= size | offset | offset.wrapping_add(size);
        }
        *offset_or |= or as u64;
        !wrong & (signs >= 0)
    }
}

/// Fits a model to a whole stream.
///
/// # Errors
/// Those of the requests, and those of [`Fitter`].
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
    catalog: Arc<Catalog>,
    early: Early,
    ahead: Ahead,
    buffer: Vec<Ahead>,
    buffered: usize,
    counting: Option<Pipeline>,
    extents: Vec<i64>,
    offset_or: u64,
    requests: u64,
    last: i64,
}

impl Fitter {
    /// Starts with no requests.
    ///
    /// # Errors
    /// [`ErrorKind::Asked`] where the options contradict each other.
    pub fn new(options: &FitOptions) -> Result<Fitter> {
        let mut options = options.clone();
        if options.files {
            options.offset_rule = OffsetRule::Jump;
        }
        let specs = options.specs();
        let set: Vec<_> = specs.iter().map(|s| (s.feature, s.role)).collect();
        check_set(&set, options.offset_rule)?;
        if options.window_ns.is_some_and(|w| w < 1) {
            return Err(Error::new(ErrorKind::Asked, "the window must be longer than nothing"));
        }
        let unusual = |f: &FeatureId| options.dimensions.iter().any(|s| s.feature == *f);
        if let Some(feature) = options.without.iter().find(|f| unusual(f)) {
            return Err(Error::new(ErrorKind::Asked, format!("{feature} is both asked for and left out")));
        }
        if !(0.0..=1.0).contains(&options.threshold) {
            return Err(Error::new(
                ErrorKind::Asked,
                format!("threshold {} is not between 0 and 1", options.threshold),
            ));
        }
        if !options.boundaries_ns.is_sorted() || options.boundaries_ns.first().is_some_and(|first| *first < 0)
        {
            return Err(Error::new(
                ErrorKind::Asked,
                "boundaries must be times from the start on, in their order",
            ));
        }
        if options.regions == 0 || options.far.is_some_and(|far| far < 0) {
            return Err(Error::new(
                ErrorKind::Asked,
                "there must be at least one region, and far cannot be negative",
            ));
        }
        Ok(Fitter {
            options,
            catalog: Arc::default(),
            early: Early::new(&specs),
            ahead: Ahead::default(),
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

    /// Tells what the stream says of its files, before anything of it is taken.
    pub fn set_catalog(&mut self, catalog: impl Into<Arc<Catalog>>) {
        self.catalog = catalog.into();
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
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.0.clone_from(batch);
        self.early.numbers(batch, &mut ahead.1);
        let taken = self.push_ahead(&mut ahead);
        self.ahead = ahead;
        taken
    }

    /// Gives away what computes ahead, for [`Fitter::push_ahead`].
    pub(crate) fn take_early(&mut self) -> Early {
        std::mem::take(&mut self.early)
    }

    /// Takes the next requests of the stream with what is known of them; what is left there is only memory to use
    /// again.
    pub(crate) fn push_ahead(&mut self, ahead: &mut Ahead) -> Result<()> {
        if self.counting.is_none() && self.buffered >= calibrate::REQUESTS {
            self.calibrate(false)?;
        }
        self.check(&ahead.0)?;
        calibrate::extend(&mut self.extents, &ahead.0);
        self.requests += ahead.0.len() as u64;
        match &mut self.counting {
            Some(counting) => counting.count(ahead),
            None => {
                self.buffered += ahead.0.len();
                self.buffer.push(std::mem::take(ahead));
                Ok(())
            }
        }
    }

    /// Refuses what features cannot make sense of.
    fn check(&mut self, batch: &Batch) -> Result<()> {
        if !makes_sense(&batch.time, &batch.offset, &batch.size, self.last, &mut self.offset_or) {
            return Err(self.impossible(batch));
        }
        self.last = batch.time.last().copied().unwrap_or(self.last);
        admits(batch)?;
        match batch.object.iter().max() {
            Some(&object) if object >= MAX_OBJECTS => {
                Err(Error::new(ErrorKind::Requests, format!("object {object}: too many objects"))
                    .help(format!("a model takes at most {MAX_OBJECTS}; their ids must be dense")))
            }
            _ => Ok(()),
        }
    }

    /// What makes no sense in a batch.
    #[cold]
    fn impossible(&self, batch: &Batch) -> Error {
        let mut last = self.last;
        for (i, ((&time, &offset), &size)) in
            batch.time.iter().zip(&batch.offset).zip(&batch.size).enumerate()
        {
            let what = if time < last {
                format!("its time {time} ns is before the one before it, {last} ns")
            } else if offset != NONE && (offset < 0 || offset.checked_add(size.max(0)).is_none()) {
                format!("offset {offset} with size {size} is impossible")
            } else if size < 0 && size != NONE {
                format!("size {size} is negative")
            } else {
                last = time;
                continue;
            };
            return Error::new(ErrorKind::Requests, format!("request {}: {what}", self.requests + i as u64));
        }
        Error::new(ErrorKind::Defect, "a request is impossible; this is a defect of the program")
    }

    /// Ends calibration: learns values and regions from the buffer, then counts it.
    fn calibrate(&mut self, ended: bool) -> Result<()> {
        let span = if ended { Some(self.last) } else { self.options.span_ns };
        let window_ns = match (self.options.window_ns, span) {
            (Some(window), _) => window,
            (None, Some(span)) => windows::length(span, self.buffered, self.last, self.options.in_window),
            (None, None) => {
                return Err(Error::new(
                    ErrorKind::Asked,
                    "the length of the trace is not known, so no window can be chosen",
                )
                .help("give the window"));
            }
        };
        let line = Timeline::new(window_ns);
        let mut context = calibrate::regions(&self.extents, self.options.regions);
        context.catalog = Arc::clone(&self.catalog);
        let buffer = std::mem::take(&mut self.buffer);
        let encoder = Encoder::new(&self.specs, &self.options, context, &buffer)?;
        let counting = Counting::new(&self.specs, &self.options, &encoder, self.options.group(), line);
        let mut pipeline = Pipeline::new(encoder, counting)?;
        for mut ahead in buffer {
            pipeline.count(&mut ahead)?;
        }
        self.counting = Some(pipeline);
        Ok(())
    }

    /// Ends the stream; the model has no names and no source yet ([`Model::set_source`]).
    ///
    /// # Errors
    /// [`ErrorKind::Requests`] where there were none, or they cannot be counted.
    pub fn finish(mut self) -> Result<Model> {
        if self.requests == 0 {
            return Err(Error::new(ErrorKind::Requests, "there is no request to fit a model to"));
        }
        if self.counting.is_none() {
            self.calibrate(true)?;
        }
        let (encoder, mut counting) = self.counting.take().expect("calibrated").end()?;
        counting.close();
        // Files are drawn, not kept.
        let kept = if self.options.files { &[][..] } else { &self.extents };
        let objects = (kept.iter().enumerate())
            .filter(|(_, extent)| **extent != NONE)
            .map(|(id, &extent)| Object {
                id: id as u32,
                name: String::new(),
                extent,
                region_shift: encoder.shift(id as u32),
            })
            .collect();
        let bounded = !self.options.boundaries_ns.is_empty();
        let header = Header {
            version: VERSION,
            dimensions: Vec::new(),
            tables: encoder.tables(),
            chain: None,
            offset_rule: self.options.offset_rule,
            far: self.options.far,
            offset_grain: grain(self.offset_or),
            back_off: (0..self.specs.len()).filter(|&d| self.specs[d].role == Role::Given).collect(),
            windows: Windows::default(),
            objects,
            distances: encoder.distances(),
            mean_sizes: encoder.mean_sizes(),
            merging: Merging {
                group: self.options.group(),
                mode: if bounded { Merge::Adjacent } else { self.options.merge },
                distance: self.options.distance,
                threshold: if bounded { 1.0 } else { self.options.threshold },
                max_matrices: self.options.max_matrices as u64,
            },
            source: Source {
                tool: concat!("loadstone ", env!("CARGO_PKG_VERSION")).into(),
                requests: self.requests,
                span_ns: self.last,
                ..Source::default()
            },
        };
        let model = counting.into_model(encoder.into_dimensions(), header)?;
        match self.options.cell_bits {
            Some(bits) => model.factored(bits),
            None => Ok(model),
        }
    }
}

/// Whether requests of this layer are of files.
pub(crate) fn is_of_files(layer: &str) -> bool {
    matches!(layer, "file" | "nfs")
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
        if is_of_files(&info.layer) {
            source.layer.clone_from(&info.layer);
        }
        source.start_unix_ns = info.start_unix_ns;
        source.counts = info.counts.clone();
        // The trace stays private, and a model is passed on.
        source.warnings = info.warnings.iter().map(|warning| without_quotes(warning)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_makes_no_sense_is_named(
            rows in proptest::collection::vec(
                (0i64..9, prop_oneof![5 => 0i64..99, 1 => any::<i64>()], prop_oneof![5 => 0i64..9, 1 => any::<i64>()]),
                1..40,
            ),
            ordered in proptest::bool::weighted(0.8),
        ) {
            let mut times: Vec<i64> = rows.iter().map(|row| row.0).collect();
            if ordered {
                times.sort_unstable();
            }
            let wrong = |i: usize| {
                let (_, offset, size) = rows[i];
                (i > 0 && times[i] < times[i - 1])
                    || (offset != NONE && (offset < 0 || offset.checked_add(size.max(0)).is_none()))
                    || (size < 0 && size != NONE)
            };
            let first = (0..rows.len()).find(|&i| wrong(i));
            let mut fitter = Fitter::new(&FitOptions::default()).unwrap();
            let mut batch = Batch::default();
            let (mut taken, mut error) = (0, None);
            for (n, rows) in rows.chunks(7).enumerate() {
                batch.clear();
                for (i, &(_, offset, size)) in rows.iter().enumerate() {
                    batch.time.push(times[n * 7 + i]);
                    batch.offset.push(offset);
                    batch.size.push(size);
                }
                batch.latency.resize(rows.len(), NONE);
                batch.op.resize(rows.len(), 0);
                for column in [&mut batch.object, &mut batch.flags, &mut batch.actor] {
                    column.resize(rows.len(), 0);
                }
                error = fitter.push(&batch).err();
                if error.is_some() {
                    break;
                }
                taken += rows.len();
            }
            prop_assert_eq!(first.is_some(), error.is_some());
            if let (Some(first), Some(error)) = (first, error) {
                let told = error.to_string();
                prop_assert!(told.starts_with(&format!("request {first}: ")), "{} after {}: {}", first, taken, told);
            }
        }
    }
}
