//! Families of distributions that Python evaluates.

use loadstone_model::{Error, ErrorKind, Result, chain};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

/// Says who evaluates families: `evaluate(family, parameters, first, last)` answers how likely each bucket is, from its
/// first to its last number (int64), as float64 in any unit.
#[pyfunction]
fn model_register_distributions(evaluate: Py<PyAny>) {
    let ask = move |family: &str, parameters: &[f64], buckets: &[(i64, i64)]| -> Result<Vec<f64>> {
        let asked = Python::attach(|py| -> PyResult<Vec<f64>> {
            let first = PyArray1::from_iter(py, buckets.iter().map(|bucket| bucket.0));
            let last = PyArray1::from_iter(py, buckets.iter().map(|bucket| bucket.1));
            let found = evaluate.call1(py, (family, parameters.to_vec(), first, last))?;
            let shares: PyReadonlyArray1<'_, f64> = found.extract(py)?;
            Ok(shares.as_array().to_vec())
        });
        asked.map_err(|error| {
            Error::new(ErrorKind::Asked, format!("cannot evaluate the distribution {family}: {error}"))
        })
    };
    chain::register(Box::new(ask));
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(model_register_distributions, m)?)
}
