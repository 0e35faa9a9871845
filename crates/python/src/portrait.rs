//! What streams are like: traces and what models draw.

use crate::error::options;
use crate::feature;
use crate::model::{PyModel, Ticker, drawn_catalog};
use loadstone_model::portrait::{LAGS, Portrait, SCALES, portrait};
use loadstone_model::{Catalog, Model, Sampler};
use loadstone_trace::OpenOptions;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::Arc;

fn converted<'py>(py: Python<'py>, model: &Model, found: Portrait) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("requests", found.requests)?;
    let dimensions = PyList::empty(py);
    for (dimension, numbers) in model.header.dimensions.iter().zip(found.dimensions) {
        let one = PyDict::new(py);
        one.set_item("name", dimension.feature.to_string())?;
        one.set_item("none", numbers.none)?;
        let column = |of: fn(&(i64, i64, u64)) -> i64| numbers.counts.iter().map(of).collect::<Vec<_>>();
        one.set_item("first", column(|count| count.0).into_pyarray(py))?;
        one.set_item("last", column(|count| count.1).into_pyarray(py))?;
        one.set_item("count", column(|count| count.2 as i64).into_pyarray(py))?;
        dimensions.append(one)?;
    }
    out.set_item("dimensions", dimensions)?;
    let (keys, counts): (Vec<u64>, Vec<u64>) = found.joint.into_iter().unzip();
    out.set_item("joint", (keys.into_pyarray(py), counts.into_pyarray(py)))?;
    out.set_item("lags", LAGS.to_vec())?;
    out.set_item("correlation", found.correlation.to_vec())?;
    out.set_item("scales", SCALES.to_vec())?;
    out.set_item("dispersion", found.dispersion.to_vec())?;
    out.set_item("sequential", found.sequential)?;
    let (distances, weights): (Vec<u64>, Vec<f64>) = found.curve.steps.iter().copied().unzip();
    out.set_item("distances", distances.into_pyarray(py))?;
    out.set_item("weights", weights.into_pyarray(py))?;
    out.set_item("references", found.curve.references)?;
    out.set_item("footprint", found.curve.footprint)?;
    out.set_item("rate", found.curve.rate)?;
    let misses = PyDict::new(py);
    for found in found.misses {
        misses.set_item(found.policy, found.ratios)?;
    }
    out.set_item("misses", misses)?;
    let rates = PyDict::new(py);
    for (name, column) in [
        ("reads", found.rates.reads),
        ("writes", found.rates.writes),
        ("bytes read", found.rates.bytes_read),
        ("bytes written", found.rates.bytes_written),
    ] {
        rates.set_item(name, column.into_pyarray(py))?;
    }
    out.set_item("rates", rates)?;
    Ok(out)
}

/// What a trace is like, by the dimensions of a model; options are a JSON object.
#[pyfunction]
#[pyo3(signature = (model, paths, open_json, progress=None))]
fn portrait_trace<'py>(
    py: Python<'py>,
    model: &PyModel,
    paths: Vec<PathBuf>,
    open_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let open: OpenOptions = options(open_json)?;
    let mut ticker = Ticker::new(progress);
    let total = model.model.requests();
    let found = py.detach(|| {
        let mut catalog = Catalog::default();
        if model.model.header.is_of_files() {
            let mut first = loadstone_trace::open(&paths, &open)?;
            catalog = Catalog::of(&mut first, |reader| reader.info().objects, |_| ticker.tick(0, total))?;
        }
        let mut reader = loadstone_trace::open(&paths, &open)?;
        portrait(&model.model, &mut reader, catalog, &mut |done| ticker.tick(done, total))
    });
    if let Some(raised) = feature::raised() {
        return Err(raised);
    }
    converted(py, &model.model, found.map_err(|error| ticker.error(error))?)
}

/// What is drawn from a model is like.
#[pyfunction]
#[pyo3(signature = (model, seed, progress=None))]
fn portrait_drawn<'py>(
    py: Python<'py>,
    model: &PyModel,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut ticker = Ticker::new(progress);
    let total = model.model.requests();
    let found = py.detach(|| {
        let mut sampler = Sampler::new(Arc::clone(&model.model), seed)?;
        let catalog = drawn_catalog(&model.model, seed, || ticker.tick(0, total))?;
        portrait(&model.model, &mut sampler, catalog, &mut |done| ticker.tick(done, total))
    });
    if let Some(raised) = feature::raised() {
        return Err(raised);
    }
    converted(py, &model.model, found.map_err(|error| ticker.error(error))?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(portrait_trace, m)?)?;
    m.add_function(wrap_pyfunction!(portrait_drawn, m)?)
}
