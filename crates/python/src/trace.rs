//! Traces: opened, read as columns, converted.

use crate::error::to_py;
use loadstone_trace::{Batch, Info, OpenOptions, Reader, Requests, parquet};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shortest time between two calls of a progress function.
const TICK: Duration = Duration::from_millis(200);

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(to_py)
}

/// Options as Python gives them: a JSON object whose keys are the fields of `OpenOptions`.
fn options(text: &str) -> PyResult<OpenOptions> {
    serde_json::from_str(text).map_err(to_py)
}

/// Calls `progress(done, total)` from time to time and lets Ctrl-C in.
struct Ticker<'a> {
    last: Instant,
    progress: Option<&'a Py<PyAny>>,
}

impl<'a> Ticker<'a> {
    fn new(progress: Option<&'a Py<PyAny>>) -> Self {
        Ticker { last: Instant::now(), progress }
    }

    fn tick(&mut self, reader: &Reader) -> PyResult<()> {
        if self.last.elapsed() < TICK {
            return Ok(());
        }
        self.last = Instant::now();
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = self.progress {
                progress.call1(py, reader.progress())?;
            }
            Ok(())
        })
    }
}

/// A trace being read in batches.
#[pyclass(frozen)]
struct TraceReader {
    reader: Mutex<Reader>,
}

impl TraceReader {
    fn lock(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl TraceReader {
    /// Opens a trace; `options` is a JSON object.
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>, options_json: &str) -> PyResult<Self> {
        let options = options(options_json)?;
        let reader = py.detach(|| loadstone_trace::open(&paths, &options)).map_err(to_py)?;
        Ok(TraceReader { reader: Mutex::new(reader) })
    }

    /// The next requests as a dict of numpy columns, or `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut batch = Batch::default();
        let more = py.detach(|| self.lock().next(&mut batch)).map_err(to_py)?;
        if !more {
            return Ok(None);
        }
        let columns = PyDict::new(py);
        columns.set_item("time", batch.time.into_pyarray(py))?;
        columns.set_item("op", batch.op.into_pyarray(py))?;
        columns.set_item("object", batch.object.into_pyarray(py))?;
        columns.set_item("offset", batch.offset.into_pyarray(py))?;
        columns.set_item("size", batch.size.into_pyarray(py))?;
        columns.set_item("latency", batch.latency.into_pyarray(py))?;
        columns.set_item("flags", batch.flags.into_pyarray(py))?;
        columns.set_item("actor", batch.actor.into_pyarray(py))?;
        Ok(Some(columns))
    }

    /// What is known of the trace, as JSON; final after the end.
    fn info(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.lock().info()))
    }

    /// Bytes read and bytes altogether.
    fn progress(&self, py: Python<'_>) -> (u64, u64) {
        py.detach(|| self.lock().progress())
    }
}

/// Converts a trace to Parquet; returns its info as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, out, force, level, progress=None))]
fn trace_convert(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    out: PathBuf,
    force: bool,
    level: i32,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = options(options_json)?;
    let info = py.detach(|| -> PyResult<Info> {
        let mut ticker = Ticker::new(progress.as_ref());
        let mut reader = loadstone_trace::open(&paths, &options).map_err(to_py)?;
        let mut writer = parquet::Writer::with_level(&out, force, level).map_err(to_py)?;
        let mut batch = Batch::default();
        while reader.next(&mut batch).map_err(to_py)? {
            writer.write(&batch).map_err(to_py)?;
            ticker.tick(&reader)?;
        }
        let info = reader.info();
        writer.finish(info.clone()).map_err(to_py)?;
        Ok(info)
    })?;
    json(&info)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TraceReader>()?;
    m.add_function(wrap_pyfunction!(trace_convert, m)?)
}
