//! Datasets: file trees with their chunks over generations.

use crate::error::{Error, options, to_py};
use loadstone_dataset::{self as dataset, Chunking, Counts, ScanOptions, Series};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest time between two calls of a progress function.
const TICK: Duration = Duration::from_millis(200);

/// Tells a Python function how far the work is, and keeps what it raises.
struct Teller {
    progress: Option<Py<PyAny>>,
    last: Instant,
    raised: Option<PyErr>,
}

impl Teller {
    fn new(progress: Option<Py<PyAny>>) -> Teller {
        Teller { progress, last: Instant::now(), raised: None }
    }

    fn tell(&mut self, done: u64, of: u64) -> ControlFlow<()> {
        if self.last.elapsed() < TICK {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map(|progress| progress.call1(py, (done, of))).transpose()
        });
        match told {
            Ok(_) => ControlFlow::Continue(()),
            Err(e) => {
                self.raised = Some(e);
                ControlFlow::Break(())
            }
        }
    }

    /// What the work came to, or what ended it.
    fn settle<T>(self, done: dataset::Result<Option<T>>) -> PyResult<T> {
        match (done.map_err(to_py)?, self.raised) {
            (Some(done), None) => Ok(done),
            (_, Some(raised)) => Err(raised),
            (None, None) => Err(Error::new_err("ended early though nothing asked for it")),
        }
    }
}

fn counts(counts: &Counts) -> Value {
    let mut told = json!(counts);
    told["dedup_ratio"] = json!(counts.dedup_ratio());
    told["compress_ratio"] = json!(counts.compress_ratio());
    told
}

/// What is in a series, as `dataset describe` tells it.
fn told(series: &Series) -> Value {
    let snapshots: Vec<_> = dataset::measure(series)
        .iter()
        .map(|one| {
            json!({"label": one.label, "directories": one.directories, "alone": counts(&one.alone),
                "together": counts(&one.together)})
        })
        .collect();
    json!({"meta": series.meta, "chunks": series.chunks.len(), "bits": 8 * series.chunks.width(),
        "snapshots": snapshots})
}

/// Options as Python gives them.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    chunking: Chunking,
    bits: u32,
    compress: bool,
    strip: usize,
    threads: usize,
}

/// Scans directories and archives to one series in a file; answers what was found, as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, out, force, progress=None))]
fn dataset_scan(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    out: PathBuf,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let Given { chunking, bits, compress, strip, threads } = options(options_json)?;
    let options = ScanOptions { chunking, bits, compress, strip, threads };
    let mut teller = Teller::new(progress);
    let scanned = py.detach(|| {
        dataset::may_write(&out, force)?;
        let scanned = dataset::scan(&paths, &options, &mut |done, of| teller.tell(done, of))?;
        if let Some((series, _)) = &scanned {
            series.save(&out, force)?;
        }
        Ok(scanned)
    });
    let (series, reports) = teller.settle(scanned)?;
    let mut told = py.detach(|| told(&series));
    told["scanned"] = json!(reports);
    Ok(told.to_string())
}

/// What is in a series, as JSON.
#[pyfunction]
fn dataset_describe(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(told(&Series::load(Path::new(&path))?).to_string())).map_err(|e: dataset::Error| to_py(e))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(dataset_scan, m)?)?;
    m.add_function(wrap_pyfunction!(dataset_describe, m)?)
}
