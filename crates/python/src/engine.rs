//! The engine: checks plans, starts them, hands their outcome over as numpy columns.

use crate::error::to_py;
use crate::observe::Progress;
use loadstone_engine::histogram::{Sparse, quantile};
use loadstone_engine::{Depths, LiveKind, Outcome, WorkerLevel};
use loadstone_plan::{ArtefactKind, Plan, Reading, Variable};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::time::Duration;

/// Checks a plan and returns it as JSON with every default spelled out.
#[pyfunction]
fn check_plan(plan_json: &str) -> PyResult<String> {
    Plan::parse(plan_json).map(|p| p.to_json()).map_err(to_py)
}

/// The shape of a plan as JSON Schema.
#[pyfunction]
fn plan_schema() -> String {
    Plan::schema()
}

/// What planning needs to know of a `trace` or `model`, as JSON; `ops` asks for `reads_only`, which
/// can take a pass over the whole trace. `reading_json` says how a trace is read, as its artefact in a plan does.
#[pyfunction]
fn look(py: Python<'_>, kind: &str, path: PathBuf, reading_json: &str, ops: bool) -> PyResult<String> {
    let reading: Reading = crate::error::options(reading_json)?;
    let kind = if kind == "model" { ArtefactKind::Model } else { ArtefactKind::Trace };
    let look = py.detach(|| loadstone_engine::open::look(kind, &path, &reading, ops)).map_err(to_py)?;
    serde_json::to_string(&look).map_err(to_py)
}

/// `count` values of a variable of a plan, given as JSON, as a thread draws them `elapsed_ns` after the start of a run.
#[pyfunction]
fn draw_values<'py>(
    py: Python<'py>,
    variable_json: &str,
    count: usize,
    seed: u64,
    elapsed_ns: i64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let variable: Variable = crate::error::options(variable_json)?;
    let values = py.detach(|| loadstone_engine::draw_values(&variable, count, seed, elapsed_ns));
    Ok(values.map_err(to_py)?.into_pyarray(py))
}

/// Why io_uring cannot be used here, or `None`.
#[pyfunction]
fn uring_refused() -> Option<String> {
    loadstone_engine::uring_available().err().map(|e| e.to_string())
}

/// Checks whether a plan would start, with nothing made; `made`: files that plans before it make.
#[pyfunction]
fn rehearse(py: Python<'_>, plan_json: &str, made: Vec<std::path::PathBuf>) -> PyResult<()> {
    let plan = Plan::parse(plan_json).map_err(to_py)?;
    py.detach(|| loadstone_engine::rehearse(&plan, &made)).map_err(to_py)
}

/// Starts a plan; see `Run`.
#[pyfunction]
fn start(py: Python<'_>, plan_json: &str) -> PyResult<Run> {
    let plan = Plan::parse(plan_json).map_err(to_py)?;
    py.detach(|| loadstone_engine::start(plan)).map(Run).map_err(to_py)
}

/// A run that goes on in threads of its own.
#[pyclass(frozen)]
struct Run(loadstone_engine::Run);

#[pymethods]
impl Run {
    /// What it is doing now: phase, elapsed_ns, fraction (or None), requests, bytes, errors, ops_per_s, bytes_per_s,
    /// latency_bucket, latency_count; and `kinds`, a list of the same six with op and name (or None) of each kind of
    /// request. Rates and latencies are of about the last second.
    fn live<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let live = py.detach(|| self.0.live());
        let d = PyDict::new(py);
        d.set_item("phase", live.phase)?;
        d.set_item("elapsed_ns", live.elapsed_ns)?;
        d.set_item("fraction", live.fraction)?;
        live_kind(&d, &live.all)?;
        let kinds = live.kinds.iter().map(|kind| {
            let d = PyDict::new(py);
            d.set_item("op", kind.op)?;
            d.set_item("name", &kind.name)?;
            live_kind(&d, kind).map(|()| d)
        });
        d.set_item("kinds", kinds.collect::<PyResult<Vec<_>>>()?)?;
        Ok(d)
    }

    /// Ends issuing; what is in flight is waited for and the outcome is marked partial.
    fn stop(&self) {
        self.0.stop();
    }

    /// The count of completed requests, for the observer.
    fn progress_handle(&self) -> Progress {
        Progress(self.0.progress())
    }

    /// Waits until the run is over, at most `seconds`; whether it is. Ctrl-C interrupts it.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let mut left = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        loop {
            let slice = left.min(Duration::from_millis(100));
            if py.detach(|| self.0.wait(slice)) {
                return Ok(true);
            }
            py.check_signals()?;
            left -= slice;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// Waits for the end (Ctrl-C interrupts the wait, not the run) and takes the outcome, once.
    fn join<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        while !self.wait(py, 3600.0)? {}
        let outcome = py.detach(|| self.0.join()).map_err(to_py)?;
        to_dict(py, &outcome)
    }
}

fn live_kind(d: &Bound<'_, PyDict>, kind: &LiveKind) -> PyResult<()> {
    let (py, counts) = (d.py(), &kind.counts);
    d.set_item("requests", counts.requests)?;
    d.set_item("bytes", counts.bytes)?;
    d.set_item("errors", counts.errors)?;
    d.set_item("ops_per_s", kind.ops_per_s)?;
    d.set_item("bytes_per_s", kind.bytes_per_s)?;
    let (bucket, count): (Vec<_>, Vec<_>) = counts.latency.iter().copied().unzip();
    d.set_item("latency_bucket", bucket.into_pyarray(py))?;
    d.set_item("latency_count", count.into_pyarray(py))
}

fn to_dict<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("ops", ops(py, outcome)?)?;
    d.set_item("flight", flight(py, outcome)?)?;
    d.set_item("lateness", lateness(py, outcome)?)?;
    d.set_item("values", values(py, outcome)?)?;
    d.set_item("spans", spans(py, outcome)?)?;
    let s = &outcome.summary;
    let summary = PyDict::new(py);
    summary.set_item("started", s.started_unix_ns)?;
    summary.set_item("monotonic_start_ns", s.start_monotonic_ns)?;
    summary.set_item("elapsed_ns", s.elapsed_ns)?;
    summary.set_item("interval_ns", s.interval_ns)?;
    summary.set_item("requests", s.requests)?;
    summary.set_item("bytes", s.bytes)?;
    summary.set_item("errors", s.errors)?;
    summary.set_item("short", s.short)?;
    if let Some(back) = &s.written_back {
        let d = PyDict::new(py);
        d.set_item("elapsed_ns", back.elapsed_ns)?;
        d.set_item("errors", &back.errors)?;
        summary.set_item("written_back", d)?;
    }
    summary.set_item("cpu_user_ns", s.cpu_ns.0)?;
    summary.set_item("cpu_system_ns", s.cpu_ns.1)?;
    summary.set_item("partial", s.partial)?;
    summary.set_item("failure", &s.failure)?;
    summary.set_item("logged", s.logged.0)?;
    summary.set_item("dropped", s.logged.1)?;
    summary.set_item("unlogged", &s.unlogged)?;
    summary.set_item("with_latency", s.latencies.0)?;
    summary.set_item("without_latency", s.latencies.1)?;
    summary.set_item("damaged", s.damaged)?;
    summary.set_item("left_out", s.left_out)?;
    summary.set_item("ramp_requests", s.ramp)?;
    summary.set_item("drawn_first", s.drawn_first)?;
    summary.set_item("counter_clock", s.counter_clock)?;
    summary.set_item("content_blocks", s.content_blocks)?;
    summary.set_item("verified", s.verified.as_ref().map(|v| crate::verify::to_json(v).to_string()))?;
    summary.set_item("notes", &s.notes)?;
    if let Some(steady) = &s.steady {
        let d = PyDict::new(py);
        d.set_item("attained", steady.attained)?;
        d.set_item("at_ns", steady.at_ns)?;
        d.set_item("mean", steady.mean)?;
        d.set_item("found", steady.found)?;
        d.set_item("samples", &steady.samples)?;
        summary.set_item("steady", d)?;
    }
    let depth = |(worker, depths): &(u16, Depths)| -> PyResult<_> {
        let d = PyDict::new(py);
        let (requests, fast, window_ns) = depths.window;
        d.set_item("worker", worker)?;
        d.set_item("depth", depths.depth)?;
        d.set_item("found", depths.found)?;
        d.set_item("kept", depths.kept)?;
        d.set_item("requests", requests)?;
        d.set_item("fast", fast)?;
        d.set_item("window_ns", window_ns)?;
        Ok(d)
    };
    summary.set_item("depths", s.depths.iter().map(depth).collect::<PyResult<Vec<_>>>()?)?;
    d.set_item("summary", summary)?;
    Ok(d)
}

fn ops<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let rows = &outcome.ops;
    let d = PyDict::new(py);
    d.set_item("worker", rows.iter().map(|r| r.worker).collect::<Vec<_>>().into_pyarray(py))?;
    if outcome.by_thread {
        d.set_item("thread", rows.iter().map(|r| r.thread).collect::<Vec<_>>().into_pyarray(py))?;
    }
    d.set_item("group", &outcome.groups)?;
    d.set_item("worked", &outcome.worked)?;
    d.set_item("name", rows.iter().map(|r| r.row.name).collect::<Vec<_>>().into_pyarray(py))?;
    d.set_item("names", &outcome.names)?;
    d.set_item("op", rows.iter().map(|r| r.row.op).collect::<Vec<_>>().into_pyarray(py))?;
    d.set_item("errno", rows.iter().map(|r| r.row.errno).collect::<Vec<_>>().into_pyarray(py))?;
    d.set_item("interval", rows.iter().map(|r| r.row.interval).collect::<Vec<_>>().into_pyarray(py))?;
    d.set_item("count", rows.iter().map(|r| r.row.count).collect::<Vec<_>>().into_pyarray(py))?;
    d.set_item("bytes", rows.iter().map(|r| r.row.bytes).collect::<Vec<_>>().into_pyarray(py))?;
    sparse(&d, "response", rows.iter().map(|r| &r.row.response))?;
    sparse(&d, "service", rows.iter().map(|r| &r.row.service))?;
    Ok(d)
}

/// Values that programs drew to be told, by name.
fn values<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    for (name, tally) in &outcome.values {
        let one = PyDict::new(py);
        one.set_item("count", tally.count)?;
        one.set_item("mean", tally.mean)?;
        one.set_item("deviation", tally.deviation())?;
        one.set_item("least", tally.least)?;
        one.set_item("most", tally.most)?;
        one.set_item("first", tally.first())?;
        d.set_item(name, one)?;
    }
    Ok(d)
}

/// Times of groups of programs, by worker and name.
fn spans<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let one = |(worker, name, span): &(usize, String, loadstone_engine::Span)| {
        let d = PyDict::new(py);
        d.set_item("worker", worker)?;
        d.set_item("name", name)?;
        d.set_item("count", span.count)?;
        d.set_item("bytes", span.bytes)?;
        d.set_item("requests", span.requests)?;
        d.set_item("total_ns", span.total_ns)?;
        d.set_item("cpu_ns", span.cpu_ns)?;
        d.set_item("least_ns", span.least_ns)?;
        d.set_item("most_ns", span.most_ns)?;
        d.set_item("from_ns", span.from_ns)?;
        d.set_item("to_ns", span.to_ns)?;
        Ok(d)
    };
    outcome.spans.iter().map(one).collect()
}

fn sparse<'a>(d: &Bound<'_, PyDict>, name: &str, rows: impl Iterator<Item = &'a Sparse>) -> PyResult<()> {
    let (mut offsets, mut buckets, mut counts) = (vec![0i64], Vec::new(), Vec::new());
    for row in rows {
        buckets.extend(row.iter().map(|b| b.0));
        counts.extend(row.iter().map(|b| b.1));
        offsets.push(buckets.len() as i64);
    }
    let py = d.py();
    d.set_item(format!("{name}_offsets"), offsets.into_pyarray(py))?;
    d.set_item(format!("{name}_bucket"), buckets.into_pyarray(py))?;
    d.set_item(format!("{name}_count"), counts.into_pyarray(py))
}

/// Requests in flight per interval, all workers together: `max` is the sum of their maxima.
fn flight<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let dense = |levels: &[WorkerLevel]| {
        let len = levels.iter().map(|l| l.level.interval as usize + 1).max().unwrap_or(0);
        let (mut mean, mut max) = (vec![0.0; len], vec![0u64; len]);
        for l in levels {
            mean[l.level.interval as usize] += l.level.mean;
            max[l.level.interval as usize] += u64::from(l.level.max);
        }
        (mean, max)
    };
    let (mean, max) = dense(&outcome.flight);
    d.set_item("mean", mean.into_pyarray(py))?;
    d.set_item("max", max.into_pyarray(py))?;
    if !outcome.flight_trace.is_empty() {
        let (mean, max) = dense(&outcome.flight_trace);
        d.set_item("source_mean", mean.into_pyarray(py))?;
        d.set_item("source_max", max.into_pyarray(py))?;
    }
    Ok(d)
}

fn lateness<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    let at = |h: &Sparse, q| quantile(h.iter().map(|(b, n)| (usize::from(*b), *n)), q);
    let total = |h: &Sparse| h.iter().map(|b| b.1).sum::<u64>();
    let unissued = outcome.summary.unissued;
    if unissued.requests > 0 {
        d.set_item("unissued", unissued.requests)?;
        d.set_item("more_unissued", unissued.more)?;
    }
    let len = outcome.late.last().map_or(0, |l| l.interval as usize + 1);
    if len == 0 {
        return Ok(d);
    }
    let mut count = vec![0u64; len];
    let mut columns = [const { Vec::new() }; 4];
    columns.iter_mut().for_each(|c| c.resize(len, f64::NAN));
    for l in &outcome.late {
        let i = l.interval as usize;
        count[i] = total(&l.histogram);
        columns[0][i] = l.sum as f64 / count[i] as f64;
        columns[1][i] = at(&l.histogram, 0.5) as f64;
        columns[2][i] = at(&l.histogram, 0.99) as f64;
        columns[3][i] = l.max as f64;
    }
    let whole = outcome.lateness();
    let sum: i128 = outcome.late.iter().map(|l| l.sum).sum();
    d.set_item("count", count.into_pyarray(py))?;
    for (name, column) in ["mean", "p50", "p99", "max"].into_iter().zip(columns) {
        d.set_item(name, column.into_pyarray(py))?;
    }
    d.set_item("mean_ns", sum as f64 / total(&whole) as f64)?;
    d.set_item("p50_ns", at(&whole, 0.5))?;
    d.set_item("p99_ns", at(&whole, 0.99))?;
    d.set_item("max_ns", outcome.late.iter().map(|l| l.max).max())?;
    d.set_item("slope_ns_per_s", outcome.line.slope())?;
    Ok(d)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Run>()?;
    m.add_function(wrap_pyfunction!(check_plan, m)?)?;
    m.add_function(wrap_pyfunction!(plan_schema, m)?)?;
    m.add_function(wrap_pyfunction!(look, m)?)?;
    m.add_function(wrap_pyfunction!(draw_values, m)?)?;
    m.add_function(wrap_pyfunction!(uring_refused, m)?)?;
    m.add_function(wrap_pyfunction!(rehearse, m)?)?;
    m.add_function(wrap_pyfunction!(start, m)?)
}
