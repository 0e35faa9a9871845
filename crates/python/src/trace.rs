//! Traces: opened, read as columns, converted.

use crate::error::{check_utf8, options, to_py};
use loadstone_trace::describe::Describe;
use loadstone_trace::export::{self, Exporter, Losses};
use loadstone_trace::select::{Selected, Selection};
use loadstone_trace::table::{self, Values};
use loadstone_trace::{Batch, Info, Op, OpenOptions, Reader, Requests, Summary, flag, parquet};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::{File, Metadata};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shortest time between two calls of a progress function.
const TICK: Duration = Duration::from_millis(200);

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(to_py)
}

/// Calls `progress(done, total)`, first at once and then from time to time, and lets Ctrl-C in.
struct Ticker<'a> {
    last: Option<Instant>,
    progress: Option<&'a Py<PyAny>>,
}

impl<'a> Ticker<'a> {
    fn new(progress: Option<&'a Py<PyAny>>) -> Self {
        Ticker { last: None, progress }
    }

    /// Hands all batches of a reader to `each`.
    fn through(
        &mut self,
        reader: &mut Reader,
        mut each: impl FnMut(&Batch, &Reader) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut batch = Batch::default();
        while reader.next(&mut batch).map_err(to_py)? {
            each(&batch, reader)?;
            self.tick(reader)?;
        }
        Ok(())
    }

    fn tick(&mut self, reader: &Reader) -> PyResult<()> {
        if self.last.is_some_and(|last| last.elapsed() < TICK) {
            return Ok(());
        }
        self.last = Some(Instant::now());
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
        let options: OpenOptions = options(options_json)?;
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
        if !batch.content.is_empty() {
            columns.set_item("content", batch.content.into_pyarray(py))?;
        }
        if !batch.result.is_empty() {
            columns.set_item("result", batch.result.into_pyarray(py))?;
        }
        if !batch.other.is_empty() {
            columns.set_item("other", batch.other.into_pyarray(py))?;
        }
        if !batch.after.is_empty() {
            columns.set_item("after", batch.after.into_pyarray(py))?;
            columns.set_item("think", batch.think.into_pyarray(py))?;
        }
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

/// Reads any Parquet table: a column is a numpy array, a list of texts, or a pair of the offsets of lists and their values.
#[pyfunction]
fn read_table(py: Python<'_>, file: RawFd) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the caller keeps it open meanwhile.
    let file = unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned()?;
    let found = py.detach(|| table::read(File::from(file))).map_err(to_py)?;
    let columns = PyDict::new(py);
    for table::Column { name, values, offsets } in found {
        let values = match values {
            Values::Int(all) => all.into_pyarray(py).into_any(),
            Values::Unsigned(all) => all.into_pyarray(py).into_any(),
            Values::Float(all) => all.into_pyarray(py).into_any(),
            Values::Text(all) => all.into_pyobject(py)?.into_any(),
        };
        match offsets {
            Some(offsets) => columns.set_item(name, (offsets.into_pyarray(py), values))?,
            None => columns.set_item(name, values)?,
        }
    }
    Ok(columns)
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
    let options: OpenOptions = options(options_json)?;
    let info = py.detach(|| -> PyResult<Info> {
        let mut ticker = Ticker::new(progress.as_ref());
        let mut reader = loadstone_trace::open(&paths, &options).map_err(to_py)?;
        let mut writer = parquet::Writer::with_level(&out, force, level).map_err(to_py)?;
        ticker.through(&mut reader, |batch, _| writer.write(batch).map_err(to_py))?;
        let info = reader.info();
        writer.finish(info.clone()).map_err(to_py)?;
        Ok(info)
    })?;
    json(&info)
}

/// Describes a trace in one pass; returns the description as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, progress=None))]
fn trace_describe(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options: OpenOptions = options(options_json)?;
    let description = py.detach(|| -> PyResult<_> {
        let mut ticker = Ticker::new(progress.as_ref());
        let mut reader = loadstone_trace::open(&paths, &options).map_err(to_py)?;
        let mut describe = Describe::default();
        ticker.through(&mut reader, |batch, _| {
            describe.add(batch);
            Ok(())
        })?;
        Ok(describe.finish(reader.info()))
    })?;
    json(&description)
}

/// Totals and extents of a trace, from its metadata or by one pass, as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, progress=None))]
fn trace_summary(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options: OpenOptions = options(options_json)?;
    let summary = py.detach(|| -> PyResult<_> {
        let mut ticker = Ticker::new(progress.as_ref());
        let mut reader = loadstone_trace::open(&paths, &options).map_err(to_py)?;
        if let Some(summary) = reader.summary() {
            return Ok(summary.clone());
        }
        let mut summary = Summary::default();
        ticker.through(&mut reader, |batch, _| {
            summary.add(batch);
            Ok(())
        })?;
        Ok(summary.finish())
    })?;
    json(&summary)
}

/// Writes a trace in the format of another tool; its info, the file and what was lost, as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, out, format, force, progress=None))]
fn trace_export(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    out: PathBuf,
    format: &str,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options: OpenOptions = options(options_json)?;
    check_utf8(&out)?;
    let found = py.detach(|| -> PyResult<(Info, PathBuf, Losses)> {
        let mut ticker = Ticker::new(progress.as_ref());
        let format = export::by_name(format).map_err(to_py)?;
        let mut reader = loadstone_trace::open(&paths, &options).map_err(to_py)?;
        let mut exporter = Exporter::create(format, &out, force).map_err(to_py)?;
        let path = exporter.path().to_path_buf();
        let inputs = loadstone_trace::files_of(&paths).map_err(to_py)?;
        if inputs.iter().any(|input| is_same(input, &path)) {
            let error = loadstone_trace::Error::new(loadstone_trace::ErrorKind::Option, "is what is read")
                .path(&path);
            return Err(to_py(error.help("give another name")));
        }
        ticker
            .through(&mut reader, |batch, reader| exporter.write(batch, || reader.info()).map_err(to_py))?;
        Ok((reader.info(), path, exporter.finish().map_err(to_py)?))
    })?;
    json(&found)
}

/// Whether two names lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path| std::fs::metadata(path).ok().map(|meta: Metadata| (meta.dev(), meta.ino()));
    id(one).is_some_and(|id_of_one| Some(id_of_one) == id(other))
}

/// The files of a trace: of a blktrace capture those that its base stands for; none where there are none.
#[pyfunction]
fn trace_files(path: PathBuf) -> Vec<PathBuf> {
    loadstone_trace::files_of(&[path]).unwrap_or_default()
}

/// Formats that can be written besides Parquet: their names and the endings that ask for them.
#[pyfunction]
fn trace_exports() -> Vec<(&'static str, Vec<&'static str>)> {
    export::FORMATS.iter().map(|f| (f.name, f.extensions.to_vec())).collect()
}

/// Writes the selected requests to Parquet; returns the kept spans and counts as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, selection_json, out, force, level, progress=None))]
#[allow(clippy::too_many_arguments)]
fn trace_select(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    selection_json: &str,
    out: PathBuf,
    force: bool,
    level: i32,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let selection: Selection = options(selection_json)?;
    let options: OpenOptions = options(options_json)?;
    let found = py.detach(|| -> PyResult<_> {
        let mut ticker = Ticker::new(progress.as_ref());
        let mut rates = selection.rates().map_err(to_py)?;
        let mut batch = Batch::default();
        // Fails early where the file cannot be written.
        let mut writer = parquet::Writer::with_level(&out, force, level).map_err(to_py)?;
        if selection.needs_rates() {
            let mut reader = loadstone_trace::open(&paths, &options).map_err(to_py)?;
            while reader.next(&mut batch).map_err(to_py)? {
                rates.add(&batch, &reader).map_err(to_py)?;
                ticker.tick(&reader)?;
            }
        }
        let reader = loadstone_trace::open(&paths, &options).map_err(to_py)?;
        let mut selected = Selected::new(reader, selection.clone(), rates.spans());
        while selected.next(&mut batch).map_err(to_py)? {
            writer.write(&batch).map_err(to_py)?;
            ticker.tick(selected.reader())?;
        }
        selected.check().map_err(to_py)?;
        let (kept, dropped) = selected.counts();
        let info = selected.info();
        writer.finish(info.clone()).map_err(to_py)?;
        let spans = if selection.needs_rates() { selected.spans() } else { &[] };
        Ok(serde_json::json!({ "requests": kept, "dropped": dropped, "spans_ns": spans, "info": info }))
    })?;
    json(&found)
}

/// The names of the formats and what they are.
#[pyfunction]
fn trace_formats() -> Vec<(&'static str, &'static str)> {
    loadstone_trace::formats::titles().collect()
}

/// The frozen op codes and their names.
#[pyfunction]
fn trace_ops() -> Vec<(u8, &'static str)> {
    Op::ALL.iter().map(|&op| (op as u8, op.name())).collect()
}

/// The frozen flag bits and their names.
#[pyfunction]
fn trace_flags() -> Vec<(u32, &'static str)> {
    flag::NAMES.iter().enumerate().map(|(bit, &name)| (1 << bit, name)).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TraceReader>()?;
    m.add_function(wrap_pyfunction!(read_table, m)?)?;
    m.add_function(wrap_pyfunction!(trace_convert, m)?)?;
    m.add_function(wrap_pyfunction!(trace_export, m)?)?;
    m.add_function(wrap_pyfunction!(trace_exports, m)?)?;
    m.add_function(wrap_pyfunction!(trace_files, m)?)?;
    m.add_function(wrap_pyfunction!(trace_describe, m)?)?;
    m.add_function(wrap_pyfunction!(trace_summary, m)?)?;
    m.add_function(wrap_pyfunction!(trace_select, m)?)?;
    m.add_function(wrap_pyfunction!(trace_formats, m)?)?;
    m.add_function(wrap_pyfunction!(trace_ops, m)?)?;
    m.add_function(wrap_pyfunction!(trace_flags, m)?)
}
