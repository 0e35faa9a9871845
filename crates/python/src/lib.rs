//! The binding: one file per concept that only converts; the GIL is released around all work.

#![warn(clippy::missing_errors_doc)]

use pyo3::prelude::*;

mod content;
mod dataset;
mod engine;
mod error;
mod feature;
mod files;
mod formula;
mod model;
mod mutator;
mod observe;
mod portrait;
mod progress;
mod trace;
mod verify;

#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register();
    content::register(m)?;
    dataset::register(m)?;
    engine::register(m)?;
    feature::register(m)?;
    files::register(m)?;
    formula::register(m)?;
    model::register(m)?;
    observe::register(m)?;
    portrait::register(m)?;
    trace::register(m)?;
    verify::register(m)?;
    Ok(())
}
