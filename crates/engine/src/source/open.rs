//! Sources: traces, models and uniform requests, opened as a plan names them.

use crate::issue::arrival::Arrivals;
use crate::issue::arrival_trace::TraceTimes;
use crate::source::uniform::Uniform;
use crate::{Error, Result};
use loadstone_content::seed::derive;
use loadstone_model::{Model, Sampler};
use loadstone_plan::{Arrival, Artefact, ArtefactKind, Backend, Order, Pace, Plan, Reading, Source};
use loadstone_trace::{Batch, OpenOptions, Reader, Requests, Summary, flag};
use rustix::fs::{Advice, fadvise};
use serde::Serialize;
use std::fs::File;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The source of a worker.
pub struct Opened {
    /// Its requests.
    pub requests: Box<dyn Requests>,
    /// How many there will be, where that is known.
    pub total: Option<u64>,
    /// The model they are drawn from.
    pub model: Option<Arc<Model>>,
    /// What is passed over of the trace they are from; there once that is dropped.
    pub passed: Option<Arc<OnceLock<Passed>>>,
}

/// Damaged records that were passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// How many.
    pub records: u64,
    /// Where the first one was, and what was wrong with it.
    pub first: String,
}

/// The seed of what a worker draws: the first worker has the plan's, so that a model's requests can be drawn elsewhere.
pub fn seed(plan: &Plan, i: usize) -> u64 {
    if i == 0 { plan.seed } else { derive(plan.seed, "worker", i as u64) }
}

/// The uniform source of a worker that keeps to no times.
pub fn plain(plan: &Plan, i: usize) -> Option<Uniform> {
    let worker = &plan.workers[i];
    let at_once = Arrivals::new(0.0, &Arrival::Constant, 0);
    let objects = &worker.map.objects;
    (worker.pace == Pace::Closed)
        .then(|| Uniform::new(&worker.source, seed(plan, i), plan.seed, objects, at_once))
        .flatten()
}

/// Opens the source of a worker.
///
/// # Errors
/// When what it reads cannot be opened, or does not fit the plan.
pub fn open(plan: &Plan, i: usize) -> Result<Opened> {
    let worker = &plan.workers[i];
    let refuse = |what: String| Err(Error::Request { worker: i, row: 0, what });
    match &worker.source {
        Source::Uniform { size, sizes, write_sizes, rate, byte_rate, arrival, .. } => {
            let seed = seed(plan, i);
            let arrivals = match arrival {
                // Those at a rate of bytes have times of their own.
                _ if worker.pace == Pace::Closed || *byte_rate > 0.0 => {
                    Arrivals::new(0.0, &Arrival::Constant, 0)
                }
                Arrival::Trace { artefact } => Arrivals::of_trace(times_of(named(plan, artefact), *rate)?),
                _ if *rate <= 0.0 => {
                    let what = "an open pace needs a rate; give the source a rate or close the pace";
                    return refuse(what.into());
                }
                // Another stream than that of the offsets.
                _ => Arrivals::new(*rate, arrival, derive(seed, "arrivals", 0)),
            };
            let Some(source) = Uniform::new(&worker.source, seed, plan.seed, &worker.map.objects, arrivals)
            else {
                let highs = sizes.iter().chain(write_sizes).map(|row| row.high as u64);
                let most = highs.max().unwrap_or(*size);
                return refuse(format!(
                    "requests of {most} bytes do not fit on any target; use a larger target or a smaller --bs"
                ));
            };
            Ok(Opened { requests: Box::new(source), total: None, model: None, passed: None })
        }
        Source::Program { .. } | Source::Cpu { .. } => refuse("has no requests of its own".into()),
        Source::Trace { artefact } => {
            let within = i64::try_from(worker.within_ns).unwrap_or(i64::MAX);
            let dependencies_ns = (worker.order == Order::Dependency).then_some(within);
            let artefact = named(plan, artefact);
            let options = OpenOptions { dependencies_ns, ..options(&artefact.reading)? };
            let reader = loadstone_trace::open(std::slice::from_ref(&artefact.path), &options)?;
            let summary = reader.summary().cloned();
            if let Some(what) = needs_latencies(worker.order)
                && summary.as_ref().is_some_and(|s| s.latencies == 0 && s.dependent == 0)
            {
                return refuse(what.into());
            }
            let mut source = Unkept::new(reader);
            if options.sort {
                // All of it is sorted before the first one: no part of the run.
                source.begin()?;
            }
            let passed = Some(source.passed.clone());
            let total = summary.map(|s| s.requests);
            Ok(Opened { requests: Box::new(source), total, model: None, passed })
        }
        Source::Model { artefact, .. } => {
            let model = Arc::new(Model::load(&named(plan, artefact).path)?);
            match (model.header.is_of_files(), worker.backend == Backend::Files) {
                (true, false) => {
                    return refuse("draws requests of files, which go to a directory; run it on one".into());
                }
                (false, true) => {
                    return refuse("draws requests of blocks, which go to a file or a device".into());
                }
                _ => {}
            }
            let requests = model.requests();
            if worker.order == Order::Dependency && !model.draws_think() {
                return refuse(
                    "the model draws no think times, which dependencies need; fit it with --think, or use --order none"
                        .into(),
                );
            }
            let sampler = Sampler::new(Arc::clone(&model), seed(plan, i))?;
            let (requests, total) = (Box::new(sampler), Some(requests));
            Ok(Opened { requests, total, model: Some(model), passed: None })
        }
    }
}

/// The artefact of this id.
pub fn named<'a>(plan: &'a Plan, id: &str) -> &'a Artefact {
    plan.artefacts.iter().find(|a| a.id == id).expect("checked by the plan")
}

/// How a plan has a trace read, as its reader takes it.
///
/// # Errors
/// When an option of the reading cannot be.
pub fn options(reading: &Reading) -> Result<OpenOptions> {
    let told = serde_json::to_value(reading).and_then(serde_json::from_value);
    told.map_err(|e| Error::Reading(e.to_string()))
}

/// The times of a trace, of which only these are used.
fn times_of(artefact: &Artefact, rate: f64) -> Result<TraceTimes> {
    let (path, options) = (&artefact.path, options(&artefact.reading)?);
    let paths = [path.clone()];
    let reader = loadstone_trace::open(&paths, &options).map_err(Error::Arrivals)?;
    let summary = match reader.summary() {
        Some(summary) => summary.clone(),
        None => {
            let (mut source, mut summary, mut batch) =
                (Unkept::new(reader), Summary::default(), Batch::default());
            while source.next(&mut batch).map_err(Error::Arrivals)? {
                summary.add(&batch);
            }
            summary
        }
    };
    let reopen =
        move || Ok(Box::new(Unkept::new(loadstone_trace::open(&paths, &options)?)) as Box<dyn Requests>);
    Ok(TraceTimes::new(path, &summary, rate, Box::new(reopen))?)
}

/// A trace being read, of which nothing stays in the page cache: what is measured there is the load's, and a model that
/// is run in its place reads next to nothing.
struct Unkept {
    reader: Reader,
    files: Vec<File>,
    /// What was read before it was asked for.
    first: Option<Batch>,
    passed: Arc<OnceLock<Passed>>,
}

impl Unkept {
    fn new(reader: Reader) -> Unkept {
        let files = reader.files().iter().filter_map(|path| File::open(path).ok()).collect();
        Unkept { reader, files, first: None, passed: Arc::default() }
    }

    /// Reads the first requests.
    fn begin(&mut self) -> loadstone_trace::Result<()> {
        let mut batch = Batch::default();
        self.first = self.next(&mut batch)?.then_some(batch);
        Ok(())
    }
}

impl Drop for Unkept {
    fn drop(&mut self) {
        let info = self.reader.info();
        let first = info.warnings.iter().find_map(|text| text.strip_prefix("passed over: "));
        let _ =
            self.passed.set(Passed { records: info.counts.damaged, first: first.unwrap_or_default().into() });
    }
}

impl Requests for Unkept {
    fn next(&mut self, batch: &mut Batch) -> loadstone_trace::Result<bool> {
        if let Some(first) = self.first.take() {
            *batch = first;
            return Ok(true);
        }
        let more = self.reader.next(batch)?;
        // What the kernel reads ahead of one file is left to it until all was read.
        let read = if more && self.files.len() == 1 { self.reader.progress().0 } else { 0 };
        for file in &self.files {
            // Bytes from the start, or all; where it is refused, pages stay.
            let _ = fadvise(file, 0, NonZeroU64::new(read), Advice::DontNeed);
        }
        Ok(more)
    }
}

/// Why a trace without latencies cannot be replayed in an order; nothing where it can.
pub fn needs_latencies(order: Order) -> Option<&'static str> {
    match order {
        Order::None => None,
        Order::Completion => {
            Some("the trace has no latencies, which completion order needs; use --order none")
        }
        Order::Dependency => Some("the trace has no latencies, which dependencies need; use --order none"),
    }
}

/// What planning needs to know of a trace or model.
#[derive(Debug, Serialize)]
pub struct Look {
    /// Requests it holds.
    pub requests: u64,
    /// Time of the last one, ns.
    pub span_ns: i64,
    /// Requests whose latency is known.
    pub latencies: u64,
    /// Requests that are known to wait for others; of a model 1 where it draws think times.
    pub dependent: u64,
    /// Layer of capture: `block`, `file` or `nfs`; of a model, of its requests.
    pub layer: String,
    /// Its objects and how far they reach.
    pub objects: Vec<LookObject>,
    /// Whether it only reads; `None` where it was not asked for.
    pub reads_only: Option<bool>,
    /// Whether any write asks to be stable at once (FUA, sync); `None` where it was not asked for.
    pub stable_writes: Option<bool>,
}

/// One object of a [`Look`].
#[derive(Debug, Serialize)]
pub struct LookObject {
    /// Dense id.
    pub object: u32,
    /// Name in the source, or empty.
    pub name: String,
    /// One past the last byte touched.
    pub end: u64,
    /// Requests to it, 0 where not known.
    pub requests: u64,
}

/// Looks at an artefact: its header where that says enough, else (or for `ops`) all its requests.
///
/// # Errors
/// When the artefact cannot be read as what it is said to be, or `reading` cannot be.
pub fn look(kind: ArtefactKind, path: &Path, reading: &Reading, ops: bool) -> Result<Look> {
    match kind {
        ArtefactKind::Trace => look_at_trace(path, reading, ops),
        ArtefactKind::Model => look_at_model(path),
        ArtefactKind::Dataset => Err(Error::Content(format!("{}: has no requests", path.display()))),
    }
}

fn look_at_model(path: &Path) -> Result<Look> {
    let model = Model::load(path)?;
    let op = model.dimension("op")?;
    let rule = &model.header.dimensions[op].rule;
    let codes = model.marginal(op, None)?.keys;
    // A code the rule cannot tell might be anything.
    let reads = |code: &u64| {
        let range = u32::try_from(*code).ok().and_then(|code| rule.range(code));
        range.is_some_and(|r| r.first == 0 && r.last == i64::from(crate::request::op::READ))
    };
    let objects = model.header.objects.iter().map(|o| LookObject {
        object: o.id,
        name: o.name.clone(),
        end: o.extent.max(0) as u64,
        requests: 0,
    });
    Ok(Look {
        requests: model.requests(),
        span_ns: model.span_ns(),
        latencies: 0,
        dependent: u64::from(model.draws_think()),
        layer: model.header.layer().into(),
        objects: objects.collect(),
        reads_only: Some(codes.iter().all(reads)),
        // Flags are not modelled.
        stable_writes: Some(false),
    })
}

fn look_at_trace(path: &Path, reading: &Reading, ops: bool) -> Result<Look> {
    let paths: [PathBuf; 1] = [path.into()];
    let mut reader = loadstone_trace::open(&paths, &options(reading)?)?;
    let (mut reads_only, mut stable_writes) = (None, None);
    let summary = match reader.summary() {
        Some(summary) if !ops => summary.clone(),
        _ => {
            let (mut summary, mut batch) = (Summary::default(), Batch::default());
            let (mut all_reads, mut stable) = (true, false);
            while reader.next(&mut batch)? {
                summary.add(&batch);
                all_reads &= batch.op.iter().all(|op| *op == crate::request::op::READ);
                let asks = flag::FUA | flag::SYNC | flag::STABLE;
                stable |= batch
                    .op
                    .iter()
                    .zip(&batch.flags)
                    .any(|(op, f)| *op == crate::request::op::WRITE && f & asks != 0);
            }
            (reads_only, stable_writes) = (Some(all_reads), Some(stable));
            summary.finish()
        }
    };
    let info = reader.info();
    let name = |id| info.objects.iter().find(|o| o.id == id).map_or_else(String::new, |o| o.name.clone());
    let objects = summary.objects.iter().map(|e| LookObject {
        object: e.object,
        name: name(e.object),
        end: e.end.max(0) as u64,
        requests: e.requests,
    });
    Ok(Look {
        requests: summary.requests,
        span_ns: summary.span_ns,
        latencies: summary.latencies,
        dependent: summary.dependent,
        layer: info.layer.clone(),
        objects: objects.collect(),
        reads_only,
        stable_writes,
    })
}
