//! Models: fitted, saved and loaded, looked at, sampled.

use crate::error::{options, to_py};
use crate::feature;
use loadstone_model::chain::{self, Formula};
use loadstone_model::transform::{Scale, superposed};
use loadstone_model::{Catalog, FitOptions, Model, Phase, Sampler, fit_trace, measure};
use loadstone_trace::{Batch, Error, ErrorKind, Info, OpenOptions, Requests, parquet};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shortest time between two calls of a progress function.
const TICK: Duration = Duration::from_millis(200);

/// Calls a Python progress function now and then; its exception is kept for after the work.
pub struct Ticker {
    last: Instant,
    progress: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Ticker {
    pub fn new(progress: Option<Py<PyAny>>) -> Self {
        Ticker { last: Instant::now(), progress, raised: None }
    }

    pub fn tick(&mut self, done: u64, total: u64) -> loadstone_trace::Result<()> {
        if self.last.elapsed() < TICK {
            return Ok(());
        }
        self.last = Instant::now();
        let called = Python::attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map_or(Ok(()), |p| p.call1(py, (done, total)).map(|_| ()))
        });
        called.map_err(|raised| {
            self.raised = Some(raised);
            Error::new(ErrorKind::Io, "stopped")
        })
    }

    pub fn error(self, error: impl std::error::Error + 'static) -> PyErr {
        self.raised.unwrap_or_else(|| to_py(error))
    }
}

/// First window and one past the last, when they begin and end in nanoseconds, matrix, requests.
type ToldPhase = ((u64, u64), (i64, i64), u32, u64);

/// A fitted model.
#[pyclass(name = "Model", frozen)]
pub struct PyModel {
    pub model: Arc<Model>,
}

#[pymethods]
impl PyModel {
    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let model = py.detach(|| Model::load(&path)).map_err(to_py)?;
        Ok(PyModel { model: Arc::new(model) })
    }

    /// Writes a model file.
    fn save(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        py.detach(|| self.model.save(&path, force)).map_err(to_py)
    }

    /// The model without names, dates and exact values seen fewer than `least` times.
    fn published(&self, py: Python<'_>, least: u64) -> PyResult<Self> {
        let model = py.detach(|| self.model.published(least)).map_err(to_py)?;
        Ok(PyModel { model: Arc::new(model) })
    }

    /// The model with the properties changed that the JSON names.
    fn scaled(&self, py: Python<'_>, scale_json: &str) -> PyResult<Self> {
        let scale: Scale = options(scale_json)?;
        let model = py.detach(|| self.model.scaled(&scale)).map_err(to_py)?;
        Ok(PyModel { model: Arc::new(model) })
    }

    /// The model stored as a chain of tables in which every cell saves so many bits.
    fn factored(&self, py: Python<'_>, cell_bits: f64) -> PyResult<Self> {
        let model = py.detach(|| self.model.factored(cell_bits)).map_err(to_py)?;
        Ok(PyModel { model: Arc::new(model) })
    }

    /// The model with formulas in place of cells: JSON, a list of (number of the link, formula).
    fn approximated(&self, py: Python<'_>, formulas_json: &str) -> PyResult<Self> {
        let formulas: Vec<(usize, Formula)> = options(formulas_json)?;
        let model = py.detach(|| self.model.approximated(formulas)).map_err(to_py)?;
        Ok(PyModel { model: Arc::new(model) })
    }

    /// All buckets of a dimension between two codes, in order of their numbers.
    fn ranges<'py>(
        &self,
        py: Python<'py>,
        dimension: &str,
        first: u32,
        last: u32,
    ) -> PyResult<Bound<'py, PyDict>> {
        let d = self.model.dimension(dimension).map_err(to_py)?;
        let rule = &self.model.header.dimensions[d].rule;
        let buckets = chain::buckets(rule, (first, last)).map_err(to_py)?;
        let column = |of: &dyn Fn(&chain::Bucket) -> i64| buckets.iter().map(of).collect::<Vec<i64>>();
        let named = |name: &str, values| (name.to_string(), values);
        let parts = [
            named("code", column(&|bucket| i64::from(bucket.code))),
            named("first", column(&|bucket| bucket.first)),
            named("last", column(&|bucket| bucket.last)),
        ];
        columns(py, parts.into())
    }

    /// Cells that the file has.
    fn stored_cells(&self) -> u64 {
        self.model.stored_cells()
    }

    /// Cells of each link of the chain.
    fn link_cells(&self) -> Vec<usize> {
        let cells = |link: &loadstone_model::chain::LinkCells| link.cells.iter().map(|c| c.len()).sum();
        self.model.links.iter().map(cells).collect()
    }

    /// The header as JSON.
    fn header(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.model.header)).map_err(to_py)
    }

    /// Length of the shortest windows in nanoseconds.
    fn window_ns(&self) -> i64 {
        self.model.header.windows.length_ns
    }

    /// Requests and matrix of every window.
    fn windows<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, numpy::PyArray1<i64>>, Bound<'py, numpy::PyArray1<i64>>) {
        let windows = &self.model.header.windows;
        let counts: Vec<i64> = windows.counts.iter().map(|&n| n as i64).collect();
        let matrices: Vec<i64> = self.model.matrix_of_window().map(i64::from).collect();
        (counts.into_pyarray(py), matrices.into_pyarray(py))
    }

    /// Where each window begins, and the last one ends; nanoseconds.
    fn window_starts<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<i64>> {
        self.model.header.windows.starts().into_pyarray(py)
    }

    /// What reading the trace reported.
    fn warnings(&self) -> Vec<String> {
        self.model.header.source.warnings.clone()
    }

    /// Non-empty cells and requests of each matrix.
    fn matrices(&self) -> Vec<(usize, u64)> {
        let cells = |m: &loadstone_model::Matrix| m.tables.iter().map(loadstone_model::Cells::len).sum();
        self.model.matrices.iter().map(|m| (cells(m), m.requests())).collect()
    }

    /// The phases, in order of time.
    fn phases(&self) -> Vec<ToldPhase> {
        let starts = self.model.header.windows.starts();
        let told = |p: Phase| {
            let (first, end) = (p.windows.start, p.windows.end);
            ((first, end), (starts[first as usize], starts[end as usize]), p.matrix, p.requests)
        };
        self.model.phases().into_iter().map(told).collect()
    }

    /// Codes, counts, and first and last number of each code of a dimension.
    fn marginal<'py>(
        &self,
        py: Python<'py>,
        dimension: &str,
        matrix: Option<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let model = &self.model;
        let d = model.dimension(dimension).map_err(to_py)?;
        let marginal = py.detach(|| model.marginal(d, matrix)).map_err(to_py)?;
        let rule = &model.header.dimensions[d].rule;
        let none = loadstone_trace::NONE;
        let ranges: Vec<(i64, i64)> = (marginal.keys.iter())
            .map(|&code| rule.range(code as u32).map_or((none, none), |r| (r.first, r.last)))
            .collect();
        let columns = PyDict::new(py);
        columns.set_item("code", marginal.keys.into_pyarray(py))?;
        columns.set_item("first", ranges.iter().map(|r| r.0).collect::<Vec<_>>().into_pyarray(py))?;
        columns.set_item("last", ranges.iter().map(|r| r.1).collect::<Vec<_>>().into_pyarray(py))?;
        columns.set_item("count", marginal.counts.into_pyarray(py))?;
        Ok(columns)
    }

    /// Codes and counts of the first `most` generated requests, by dimension, measured anew.
    fn measured<'py>(&self, py: Python<'py>, seed: u64, most: u64) -> PyResult<Bound<'py, PyDict>> {
        let model = Arc::clone(&self.model);
        let counts = py
            .detach(|| {
                let catalog = drawn_catalog(&model, seed, || Ok(()))?;
                measure(&model, &mut Sampler::new(Arc::clone(&model), seed)?, catalog, most)
            })
            .map_err(to_py)?;
        let out = PyDict::new(py);
        for (dimension, counts) in model.header.dimensions.iter().zip(counts) {
            let (codes, counts): (Vec<u64>, Vec<u64>) =
                counts.into_iter().map(|(code, n)| (u64::from(code), n)).unzip();
            out.set_item(dimension.feature.to_string(), (codes.into_pyarray(py), counts.into_pyarray(py)))?;
        }
        Ok(out)
    }

    /// All cells as numpy columns; -1 where a table does not have the dimension.
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, py.detach(|| self.model.columns()))
    }

    /// The cells that the file has, alike: links of a chain for tables, -1 for the matrix of shared ones.
    fn stored<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns(py, py.detach(|| self.model.stored_columns()))
    }

    /// A stream of generated requests.
    fn sampler(&self, seed: u64) -> PyResult<PySampler> {
        let sampler = Sampler::new(Arc::clone(&self.model), seed).map_err(to_py)?;
        Ok(PySampler { sampler: Mutex::new(sampler) })
    }

    /// Writes a whole generated stream as a trace; answers what the sampler tallied.
    #[pyo3(signature = (path, seed, force, progress=None))]
    fn write_sample(
        &self,
        py: Python<'_>,
        path: PathBuf,
        seed: u64,
        force: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(u64, u64, u64)> {
        let mut ticker = Ticker::new(progress);
        let model = Arc::clone(&self.model);
        let done = py.detach(|| -> loadstone_trace::Result<_> {
            let total = model.requests();
            let layer = model.header.layer().into();
            let mut info = Info { format: "model".into(), layer, ..Info::default() };
            let mut sampler = Sampler::new(Arc::clone(&model), seed)?;
            let mut writer = parquet::Writer::create(&path, force)?;
            let mut batch = Batch::default();
            while sampler.next(&mut batch)? {
                writer.write(&batch)?;
                info.counts.requests += batch.len() as u64;
                ticker.tick(info.counts.requests, total)?;
            }
            info.objects = sampler.names();
            writer.finish(info)?;
            Ok(sampler.tally())
        });
        match done {
            Ok(tally) => Ok((tally.requests, tally.backed_off, tally.displaced)),
            Err(error) => Err(ticker.error(error)),
        }
    }
}

/// What a drawn stream says of its files, by drawing it once before; nothing where it has none.
pub fn drawn_catalog(
    model: &Arc<Model>,
    seed: u64,
    mut progress: impl FnMut() -> loadstone_trace::Result<()>,
) -> loadstone_trace::Result<Catalog> {
    if !model.header.is_of_files() {
        return Ok(Catalog::default());
    }
    Ok(Catalog::of(&mut Sampler::new(Arc::clone(model), seed)?, Sampler::names, |_| progress())?)
}

/// Named columns as a dict of numpy arrays.
fn columns(py: Python<'_>, columns: Vec<(String, Vec<i64>)>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for (name, column) in columns {
        out.set_item(name, column.into_pyarray(py))?;
    }
    Ok(out)
}

/// Generated requests, batch by batch.
#[pyclass(name = "Sampler", frozen)]
struct PySampler {
    sampler: Mutex<Sampler>,
}

#[pymethods]
impl PySampler {
    /// The next requests as a dict of numpy columns, or `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut batch = Batch::default();
        let more = py
            .detach(|| self.sampler.lock().unwrap_or_else(PoisonError::into_inner).next(&mut batch))
            .map_err(to_py)?;
        if !more {
            return Ok(None);
        }
        let columns = PyDict::new(py);
        columns.set_item("time", batch.time.into_pyarray(py))?;
        columns.set_item("op", batch.op.into_pyarray(py))?;
        columns.set_item("object", batch.object.into_pyarray(py))?;
        columns.set_item("offset", batch.offset.into_pyarray(py))?;
        columns.set_item("size", batch.size.into_pyarray(py))?;
        if !batch.result.is_empty() {
            columns.set_item("result", batch.result.into_pyarray(py))?;
            columns.set_item("other", batch.other.into_pyarray(py))?;
        }
        Ok(Some(columns))
    }

    /// Requests, those drawn from a backed-off slice, those displaced.
    fn tally(&self) -> (u64, u64, u64) {
        let tally = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).tally();
        (tally.requests, tally.backed_off, tally.displaced)
    }
}

/// Fits a model to a trace; options are JSON objects.
#[pyfunction]
#[pyo3(signature = (paths, open_json, fit_json, progress=None))]
fn model_fit(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    open_json: &str,
    fit_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyModel> {
    let open: OpenOptions = options(open_json)?;
    let fit: FitOptions = options(fit_json)?;
    let mut ticker = Ticker::new(progress);
    let fitted = py.detach(|| fit_trace(&paths, &open, &fit, &mut |done, total| ticker.tick(done, total)));
    if let Some(raised) = feature::raised() {
        return Err(raised);
    }
    match fitted {
        Ok(model) => Ok(PyModel { model: Arc::new(model) }),
        Err(error) => Err(ticker.error(error)),
    }
}

/// A model of several loads at once, from so many nanoseconds on each.
#[pyfunction]
#[pyo3(signature = (models, shifts_ns, seed, progress=None))]
fn model_merge(
    py: Python<'_>,
    models: Vec<PyRef<'_, PyModel>>,
    shifts_ns: Vec<i64>,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyModel> {
    let models: Vec<Arc<Model>> = models.iter().map(|model| Arc::clone(&model.model)).collect();
    let total = models.iter().map(|model| model.requests()).sum();
    let mut ticker = Ticker::new(progress);
    match py.detach(|| superposed(&models, &shifts_ns, seed, &mut |done| ticker.tick(done, total))) {
        Ok(model) => Ok(PyModel { model: Arc::new(model) }),
        Err(error) => Err(ticker.error(error)),
    }
}

/// The features: name, unit, bucket rule when none is asked for, and whether a drawn request has it.
#[pyfunction]
fn model_features() -> Vec<(&'static str, &'static str, &'static str, bool)> {
    loadstone_model::features().map(|kind| (kind.name, kind.unit, kind.rule, kind.is_drawn())).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyModel>()?;
    m.add_class::<PySampler>()?;
    m.add_function(wrap_pyfunction!(model_features, m)?)?;
    m.add_function(wrap_pyfunction!(model_merge, m)?)?;
    m.add_function(wrap_pyfunction!(model_fit, m)?)
}
