//! Content of files: what chunkers and codecs find in it.

use crate::error::{options, to_py};
use crate::progress::Teller;
use loadstone_content::{Codecs, Duplicates, Found, Identities, Options, Start, examine};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Options as Python gives them.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    unit: usize,
    piece: usize,
    sample: Option<u64>,
    compress: Option<u64>,
}

/// What is in files, directories and devices, each with the bytes that are looked at, or none for all of them; options
/// are a JSON object, and `progress` is told of bytes read, of how many.
#[pyfunction]
#[pyo3(signature = (paths, options_json, progress=None))]
fn examine_content<'py>(
    py: Python<'py>,
    paths: Vec<(PathBuf, Option<u64>)>,
    options_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let Given { unit, piece, sample, compress } = options(options_json)?;
    let options = Options { unit, piece, sample, compress };
    let starts: Vec<_> = paths.into_iter().map(|(path, most)| Start { path, most }).collect();
    let mut teller = Teller::new(progress);
    let found = py.detach(|| examine(&starts, &options, &mut |done, of| teller.tell(done, of)));
    to_dict(py, &teller.settle_whole(found)?)
}

/// Blocks for each unique one that `read` of `blocks` blocks are expected to have, where all have `dedupe`.
#[pyfunction]
fn expected_dedupe(dedupe: f64, blocks: u64, read: u64) -> PyResult<f64> {
    Ok(Identities::new(0, blocks, dedupe).map_err(to_py)?.expected(read))
}

fn to_dict<'py>(py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("files", found.files)?;
    d.set_item("unreadable", found.unreadable)?;
    d.set_item("reason", &found.reason)?;
    d.set_item("others", found.others)?;
    d.set_item("bytes", found.bytes)?;
    d.set_item("read", found.read)?;
    d.set_item("zero_blocks", found.zero_blocks)?;
    d.set_item("fixed", duplicates(py, &found.fixed)?)?;
    d.set_item("fastcdc", duplicates(py, &found.chunked)?)?;
    d.set_item("by_unit", codecs(py, &found.by_unit)?)?;
    d.set_item("by_piece", codecs(py, &found.by_piece)?)?;
    Ok(d)
}

fn duplicates<'py>(py: Python<'py>, found: &Duplicates) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("ratio", found.ratio())?;
    d.set_item("chunks", found.chunks)?;
    d.set_item("bytes", found.bytes)?;
    d.set_item("unique_chunks", found.unique_chunks)?;
    d.set_item("unique_bytes", found.unique_bytes)?;
    d.set_item("deviation", found.deviation)?;
    Ok(d)
}

fn codecs<'py>(py: Python<'py>, found: &Codecs) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("pieces", found.pieces)?;
    d.set_item("bytes", found.bytes)?;
    for (codec, ratio) in found.ratios().into_iter().flatten() {
        d.set_item(codec, ratio)?;
    }
    Ok(d)
}

/// The seed of number `number` of what is called `purpose`, which follows from `seed`.
#[pyfunction]
fn derive_seed(seed: u64, purpose: &str, number: u64) -> u64 {
    loadstone_content::seed::derive(seed, purpose, number)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(derive_seed, m)?)?;
    m.add_function(wrap_pyfunction!(examine_content, m)?)?;
    m.add_function(wrap_pyfunction!(expected_dedupe, m)?)
}
