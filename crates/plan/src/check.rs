//! What must hold before anything is touched.

use crate::{
    Arrival, ArtefactKind, Backend, Offsets, Order, Pace, Plan, Row, Source, Step, TargetKind, VERSION,
};
use std::collections::HashSet;

/// Most requests one worker may have in flight.
pub const MAX_DEPTH: u32 = 4096;

/// Why a plan was refused; every text says where in the plan and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not JSON, or not the shape of a plan.
    #[error("the plan cannot be read: {0}")]
    Shape(#[from] serde_json::Error),
    /// Well formed, but it cannot be run.
    #[error("plan, {place}: {what}")]
    Invalid {
        /// Path inside the plan, such as `workers[0].map`.
        place: String,
        /// What is wrong and what to do.
        what: String,
    },
}

/// Longest run and longest interval, ns: 100 days. Parts of a nanosecond of it fit into 64 bits.
pub const MOST_TIME: u64 = 100 * 24 * 3600 * 1_000_000_000;

/// Most intervals that a run is told in: each takes memory.
pub const MOST_INTERVALS: u64 = 10_000_000;

/// Largest target, bytes: positions in files are numbers of 63 bits.
const MOST_BYTES: u64 = i64::MAX as u64;

/// Most bytes one request may transfer: each one in flight has memory of its own.
pub const MAX_TRANSFER: u64 = 1 << 28;

/// Most blocks of a plan that come once: 1 GiB of memory at a bit each.
pub const MAX_ONCE: u64 = 1 << 33;

/// Sizes of requests are whole numbers that a request can have.
fn check_sizes(sizes: &[Row], place: &str) -> Result<(), Error> {
    let possible = |size: f64| size >= 1.0 && size <= MAX_TRANSFER as f64 && size.fract() == 0.0;
    for (i, row) in sizes.iter().enumerate() {
        if !possible(row.low) || !possible(row.high) || row.low > row.high {
            let what = format!(
                "goes from {} to {}; sizes are whole numbers from 1 to {MAX_TRANSFER}, low not above high",
                row.low, row.high
            );
            return invalid(format!("{place}[{i}]"), what);
        }
    }
    let sum: f64 = sizes.iter().map(|row| row.share).sum();
    if !sizes.is_empty()
        && (sizes.iter().any(|row| row.share.is_nan() || row.share < 0.0) || !(sum > 0.0 && sum.is_finite()))
    {
        return invalid(place, "needs shares of 0 or more that are not all 0");
    }
    Ok(())
}

/// Refuses texts that no path or name can be: the system ends them at a byte of zero.
fn refuse_zeros(value: &serde_json::Value, place: &str) -> Result<(), Error> {
    match value {
        serde_json::Value::String(text) if text.contains('\0') => {
            let place = if place.is_empty() { "the whole" } else { place };
            invalid(place, "has a byte of zero, which no name has; take it out")
        }
        serde_json::Value::Array(all) => {
            all.iter().enumerate().try_for_each(|(i, one)| refuse_zeros(one, &format!("{place}[{i}]")))
        }
        serde_json::Value::Object(all) => all.iter().try_for_each(|(key, one)| {
            let dot = if place.is_empty() { "" } else { "." };
            refuse_zeros(one, &format!("{place}{dot}{key}"))
        }),
        _ => Ok(()),
    }
}

pub(crate) fn invalid<T>(place: impl Into<String>, what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Invalid { place: place.into(), what: what.into() })
}

impl Plan {
    /// Reads a plan from JSON and checks it.
    ///
    /// # Errors
    /// [`Error::Shape`] for what is no JSON of a plan, and otherwise those of [`Plan::check`].
    pub fn parse(json: &str) -> Result<Plan, Error> {
        if json.contains("\\u0000") {
            refuse_zeros(&serde_json::from_str(json)?, "")?;
        }
        let plan: Plan = serde_json::from_str(json)?;
        plan.check()?;
        Ok(plan)
    }

    /// The plan as JSON with every default spelled out.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a plan holds nothing that JSON cannot")
    }

    /// The shape of a plan as JSON Schema (draft 2020-12), for editors and other programs; what it cannot
    /// say, such as that ids must be known, only [`Plan::parse`] checks.
    pub fn schema() -> String {
        serde_json::to_string_pretty(&schemars::schema_for!(Plan)).expect("a schema is JSON")
    }

    /// Checks everything that can be known without touching a target.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first part of the plan that cannot be run.
    pub fn check(&self) -> Result<(), Error> {
        if self.version != VERSION {
            return invalid(
                "version",
                format!("is {}, this build runs {VERSION}; lower the workload again", self.version),
            );
        }
        if self.interval_ns < 1_000_000 {
            return invalid("interval_ns", "is under a millisecond; use at least 1000000");
        }
        if self.interval_ns > MOST_TIME {
            let what = format!("is {}; an interval has at most {MOST_TIME} (100 days)", self.interval_ns);
            return invalid("interval_ns", what);
        }
        let mut names = HashSet::new();
        for (i, target) in self.targets.iter().enumerate() {
            let place = format!("targets[{i}]");
            if !names.insert(&target.id) {
                return invalid(place, format!("id {:?} is used twice", target.id));
            }
            if target.kind != TargetKind::Null && target.path.as_os_str().is_empty() {
                return invalid(place, "has no path");
            }
            if target.size > MOST_BYTES {
                return invalid(
                    place,
                    format!("has size {}; a file has at most {MOST_BYTES} bytes", target.size),
                );
            }
            if target.size == 0 && target.kind != TargetKind::Tree {
                return invalid(place, "has size 0; give the bytes that may be used");
            }
        }
        for (i, artefact) in self.artefacts.iter().enumerate() {
            if artefact.kind != ArtefactKind::Trace && !artefact.reading.is_usual() {
                let what = "says how a trace is read, and this is none; leave it out";
                return invalid(format!("artefacts[{i}].reading"), what);
            }
        }
        if self.workers.is_empty() {
            return invalid("workers", "is empty; nothing would run");
        }
        if self.workers.len() > usize::from(u16::MAX) {
            return invalid(
                "workers",
                format!("has {} workers; at most {} can run", self.workers.len(), u16::MAX),
            );
        }
        self.check_sets()?;
        self.check_content()?;
        self.check_verify()?;
        for i in 0..self.workers.len() {
            self.check_worker(i)?;
        }
        self.check_maps()?;
        self.check_schedules()?;
        self.check_steering()?;
        self.check_around()?;
        self.check_duration()?;
        match self.steps.iter().filter(|s| matches!(s, Step::Run { .. })).count() {
            0 => return invalid("steps", "has no run step; nothing would run"),
            1 => {}
            n => {
                return invalid(
                    "steps",
                    format!("has {n} run steps; a plan has one, run several plans instead"),
                );
            }
        }
        Ok(())
    }

    /// Checks how long the run takes, and in how many intervals.
    fn check_duration(&self) -> Result<(), Error> {
        for (i, step) in self.steps.iter().enumerate() {
            let Step::Run { duration_ns, .. } = step else { continue };
            let place = || format!("steps[{i}].duration_ns");
            if *duration_ns > MOST_TIME {
                return invalid(
                    place(),
                    format!("is {duration_ns}; a run takes at most {MOST_TIME} (100 days)"),
                );
            }
            let intervals = duration_ns / self.interval_ns;
            if intervals > MOST_INTERVALS {
                let what = format!(
                    "has {intervals} intervals of {} ns; at most {MOST_INTERVALS} are told: use a longer `interval`",
                    self.interval_ns
                );
                return invalid(place(), what);
            }
        }
        Ok(())
    }

    /// Blocks that come once take a bit of memory each.
    fn check_maps(&self) -> Result<(), Error> {
        let mut blocks = 0u64;
        for (i, worker) in self.workers.iter().enumerate() {
            if let Source::Uniform { once: true, size, .. } = &worker.source {
                let mine = worker.map.objects.iter().map(|extent| extent.size / size);
                blocks = mine.fold(blocks, u64::saturating_add);
            }
            if blocks > MAX_ONCE {
                let what = format!(
                    "has, with the workers before it, more than {MAX_ONCE} blocks that come once; use fewer or larger \
                     ones, or leave once out"
                );
                return invalid(format!("workers[{i}].source.once"), what);
            }
        }
        Ok(())
    }

    /// Checks a worker whose requests go to names.
    fn check_names(&self, i: usize) -> Result<(), Error> {
        let worker = &self.workers[i];
        let place = |part: &str| format!("workers[{i}].{part}");
        if matches!(worker.source, Source::Uniform { .. }) {
            return invalid(
                place("source"),
                "the files backend needs a trace or model of file-level requests",
            );
        }
        if !worker.map.objects.is_empty() {
            return invalid(
                place("map.objects"),
                "must be empty: the files backend finds objects by their names",
            );
        }
        if self.workers.iter().filter(|w| w.backend == Backend::Files).count() > 1 {
            return invalid(place("backend"), "is files for several workers; one tree is built for one");
        }
        if self.log.is_some() {
            return invalid("log", "requests on names cannot be logged yet; leave it out");
        }
        match self.targets.iter().filter(|t| t.kind == TargetKind::Tree).count() {
            1 => Ok(()),
            n => invalid("targets", format!("has {n} trees; the files backend needs one")),
        }
    }

    fn check_worker(&self, i: usize) -> Result<(), Error> {
        let worker = &self.workers[i];
        let place = |part: &str| format!("workers[{i}].{part}");
        if worker.depth == 0 {
            return invalid(place("depth"), "is 0; at least one request must be in flight");
        }
        if worker.depth > MAX_DEPTH {
            return invalid(
                place("depth"),
                format!("is {}; at most {MAX_DEPTH} requests can be in flight", worker.depth),
            );
        }
        if let Pace::Open { speed } = worker.pace
            && !(speed > 0.0 && speed.is_finite())
        {
            return invalid(place("pace.speed"), format!("is {speed}; use a number above 0"));
        }
        let wanted = match &worker.source {
            Source::Trace { artefact } => Some((artefact, ArtefactKind::Trace)),
            Source::Model { artefact, .. } => Some((artefact, ArtefactKind::Model)),
            Source::Uniform {
                reads,
                size,
                sizes,
                write_sizes,
                sequential,
                follow,
                skew,
                arrival,
                once,
                skip,
                apart,
                rate,
                byte_rate,
                ..
            } => {
                if !(0.0..=1.0).contains(reads) {
                    return invalid(place("source.reads"), format!("is {reads}; use a share from 0 to 1"));
                }
                if !(1..=MAX_TRANSFER).contains(size) {
                    let what = format!("is {size}; one request has 1 to {MAX_TRANSFER} bytes (256m)");
                    return invalid(place("source.size"), what);
                }
                if !(*rate >= 0.0 && rate.is_finite()) {
                    return invalid(place("source.rate"), format!("is {rate}; use 0 or more"));
                }
                check_sizes(sizes, &place("source.sizes"))?;
                check_sizes(write_sizes, &place("source.write_sizes"))?;
                if !write_sizes.is_empty() && (sizes.is_empty() || *once) {
                    let what = "is of writes, and needs sizes of reads beside it and no once";
                    return invalid(place("source.write_sizes"), what);
                }
                if !(0.0..=1.0).contains(follow) {
                    return invalid(place("source.follow"), format!("is {follow}; use a share from 0 to 1"));
                }
                if let Some(fault) = skew.fault() {
                    return invalid(place("source.skew"), fault);
                }
                if *sequential && (*follow > 0.0 || !skew.is_uniform()) {
                    let what =
                        "is true, and follow and skew are of random requests; leave out one or the other";
                    return invalid(place("source.sequential"), what);
                }
                if *once && (*sequential || !skew.is_uniform()) {
                    let what = "is true, which is of random blocks that are all alike; leave out sequential and skew";
                    return invalid(place("source.once"), what);
                }
                if *skip != 0 && (!*sequential || *apart) {
                    let what = "is of requests that ascend from one place; leave it out";
                    return invalid(place("source.skip"), what);
                }
                if skip.unsigned_abs() > MOST_BYTES {
                    return invalid(place("source.skip"), format!("is {skip}; use {MOST_BYTES} at most"));
                }
                if !(*byte_rate >= 0.0 && byte_rate.is_finite()) {
                    return invalid(
                        place("source.byte_rate"),
                        format!("is {byte_rate}; use bytes per second"),
                    );
                }
                if *byte_rate > 0.0
                    && (*rate != 0.0 || *arrival != Arrival::Constant || worker.pace == Pace::Closed)
                {
                    let what = "is a rate of its own; leave out rate and arrival, and make the pace open";
                    return invalid(place("source.byte_rate"), what);
                }
                if let Some(fault) = arrival.fault() {
                    return invalid(place("source.arrival"), fault);
                }
                if let Arrival::Trace { artefact } = arrival
                    && !self.artefacts.iter().any(|a| a.id == *artefact && a.kind == ArtefactKind::Trace)
                {
                    return invalid(place("source.arrival"), format!("no trace has id {artefact:?}"));
                }
                None
            }
            Source::Program { .. } => return self.check_program(i),
            Source::Cpu { .. } => None,
        };
        if worker.backend == Backend::Posix {
            return invalid(place("backend"), "is posix, which performs programs only");
        }
        if let Some((id, kind)) = wanted
            && !self.artefacts.iter().any(|a| a.id == *id && a.kind == kind)
        {
            return invalid(place("source"), format!("no artefact of that kind has id {id:?}"));
        }
        let needs = match (worker.order, &worker.source) {
            (Order::None, _) | (_, Source::Trace { .. }) | (Order::Dependency, Source::Model { .. }) => None,
            (Order::Completion, _) => Some("completion order needs a trace with latencies as its source"),
            (Order::Dependency, _) => Some("dependencies need a trace or a model as their source"),
        };
        if let Some(needs) = needs {
            return invalid(place("order"), needs);
        }
        if !(worker.think >= 0.0 && worker.think.is_finite()) {
            return invalid(
                place("think"),
                format!("is {}; use a number above 0, or 0 for no think time", worker.think),
            );
        }
        if worker.backend == Backend::Files {
            return self.check_names(i);
        }
        if worker.map.objects.is_empty() && !matches!(worker.source, Source::Cpu { .. }) {
            return invalid(place("map.objects"), "is empty: no object has a place on a target");
        }
        let sum = worker.map.objects.iter().map(|extent| extent.size).fold(0, u64::saturating_add);
        if sum > MOST_BYTES && matches!(worker.source, Source::Uniform { .. }) {
            return invalid(
                place("map.objects"),
                format!("have {sum} bytes in all; use {MOST_BYTES} at most"),
            );
        }
        for (j, extent) in worker.map.objects.iter().enumerate() {
            let place = place(&format!("map.objects[{j}]"));
            let Some(target) = self.targets.iter().find(|t| t.id == extent.target) else {
                return invalid(place, format!("no target has id {:?}", extent.target));
            };
            if target.kind == TargetKind::Tree {
                return invalid(place, "a tree has no extents; it needs the files backend");
            }
            if target.kind == TargetKind::Null && worker.backend != Backend::Null {
                return invalid(place, "a null target needs the null backend");
            }
            if target.direct && worker.backend == Backend::Mmap {
                return invalid(
                    place,
                    "is mapped, which uses the page cache; leave out direct, or use another backend",
                );
            }
            let end = extent.base.checked_add(extent.size);
            if worker.map.offsets == Offsets::Error && end.is_none_or(|end| end > target.size) {
                return invalid(
                    place,
                    format!(
                        "object {} needs bytes up to {} but target {:?} has {}; use a larger target, or `offsets` wrap or scale",
                        extent.object,
                        extent.base.saturating_add(extent.size),
                        target.id,
                        target.size
                    ),
                );
            }
        }
        Ok(())
    }
}
