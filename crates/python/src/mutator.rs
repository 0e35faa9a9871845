//! Mutators of datasets that are Python functions over numpy arrays.

use loadstone_dataset::{self as dataset, Changes, Columns, Error, Mutator, Series, Tree};
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A function that gets a dict of columns and a seed, and answers one with the columns of [`Changes`].
pub struct Function {
    function: Py<PyAny>,
    /// What it raised.
    pub raised: Option<PyErr>,
}

impl Function {
    pub fn new(function: Py<PyAny>) -> Function {
        Function { function, raised: None }
    }

    fn ask(&self, py: Python<'_>, tree: &Tree, series: &Series, seed: u64) -> PyResult<Changes> {
        let Columns {
            kind,
            state,
            dir,
            extension,
            size,
            start,
            chunks,
            parent,
            depth,
            chunk_size,
            chunk_ratio,
        } = Columns::of(tree, series);
        let columns = PyDict::new(py);
        columns.set_item("kind", PyArray1::from_vec(py, kind))?;
        columns.set_item("state", PyArray1::from_vec(py, state))?;
        columns.set_item("dir", PyArray1::from_vec(py, dir))?;
        columns.set_item("extension", PyArray1::from_vec(py, extension))?;
        columns.set_item("size", PyArray1::from_vec(py, size))?;
        columns.set_item("start", PyArray1::from_vec(py, start))?;
        columns.set_item("chunks", PyArray1::from_vec(py, chunks))?;
        columns.set_item("parent", PyArray1::from_vec(py, parent))?;
        columns.set_item("depth", PyArray1::from_vec(py, depth))?;
        columns.set_item("chunk_size", PyArray1::from_vec(py, chunk_size))?;
        columns.set_item("chunk_ratio", PyArray1::from_vec(py, chunk_ratio))?;
        let names = series.names.extensions().map(|name| String::from_utf8_lossy(name).into_owned());
        columns.set_item("extensions", names.collect::<Vec<_>>())?;
        let answer = self.function.call1(py, (columns, seed))?;
        let answer = answer.bind(py).cast::<PyDict>()?;
        Ok(Changes {
            deleted: column(answer, "deleted")?,
            modified: column(answer, "modified")?,
            modified_start: column(answer, "modified_start")?,
            modified_chunks: column(answer, "modified_chunks")?,
            new_dir: column(answer, "new_dir")?,
            new_extension: column(answer, "new_extension")?,
            new_start: column(answer, "new_start")?,
            new_chunks: column(answer, "new_chunks")?,
            sizes: column(answer, "sizes")?,
            ratios: column(answer, "ratios")?,
        })
    }
}

impl Mutator for Function {
    fn changes(&mut self, tree: &Tree, series: &Series, seed: u64) -> dataset::Result<Changes> {
        Python::attach(|py| self.ask(py, tree, series, seed)).map_err(|raised| {
            let what = Error::Option(raised.to_string());
            self.raised = Some(raised);
            what
        })
    }
}

fn column<T: Element + Copy>(answer: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let array: PyReadonlyArray1<'_, T> = answer.as_any().get_item(name)?.extract()?;
    Ok(array.as_array().to_vec())
}
