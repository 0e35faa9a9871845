//! Features that are Python functions over numpy arrays.

use crate::error::to_py;
use loadstone_model::feature::{Feature, Rows};
use loadstone_trace::NONE;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception since the last look; a feature has no other way to tell of it.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// What a feature raised, if one did.
pub fn raised() -> Option<PyErr> {
    RAISED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A stream through a Python function.
struct Function {
    /// Makes the function for one stream.
    start: Arc<Py<PyAny>>,
    compute: Option<Py<PyAny>>,
}

impl Function {
    fn ask(&mut self, py: Python<'_>, rows: &Rows<'_>, out: &mut Vec<i64>) -> PyResult<()> {
        let compute = match &self.compute {
            Some(compute) => compute,
            None => self.compute.insert(self.start.call0(py)?),
        };
        let columns = (
            PyArray1::from_slice(py, rows.time),
            PyArray1::from_slice(py, rows.op),
            PyArray1::from_slice(py, rows.object),
            PyArray1::from_slice(py, rows.offset),
            PyArray1::from_slice(py, rows.size),
            PyArray1::from_slice(py, rows.latency),
            PyArray1::from_slice(py, rows.flags),
            PyArray1::from_slice(py, rows.actor),
        );
        let numbers: PyReadonlyArray1<'_, i64> = compute.call1(py, columns)?.extract(py)?;
        out.extend(numbers.as_array().iter());
        Ok(())
    }
}

impl Feature for Function {
    fn values(&mut self, rows: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
        if raised.is_none() {
            drop(raised);
            let asked = Python::attach(|py| self.ask(py, rows, out));
            raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
            *raised = asked.err().or_else(|| raised.take());
        }
        drop(raised);
        out.resize(rows.len(), NONE);
    }
}

/// Makes a Python feature known; `start()` answers the function of one stream, from its columns to int64 numbers.
#[pyfunction]
fn model_register_feature(
    name: &str,
    unit: &str,
    signed: bool,
    rule: &str,
    start: Py<PyAny>,
) -> PyResult<()> {
    let start = Arc::new(start);
    let begin =
        move || -> Box<dyn Feature> { Box::new(Function { start: Arc::clone(&start), compute: None }) };
    loadstone_model::register_feature(name, unit, signed, rule, Box::new(begin)).map_err(to_py)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(model_register_feature, m)?)
}
