//! One exception for everything that a user can put right.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

pyo3::create_exception!(loadstone, Error, PyException, "What went wrong, where, and what to do.");

/// What a signal's handler raised while a pipe was waited for.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// Turns any of the crates' errors into the exception; one that came of a signal is what its handler raised.
pub fn to_py(error: impl std::error::Error) -> PyErr {
    let raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.unwrap_or_else(|| Error::new_err(error.to_string()))
}

/// Lets signals in; `false` where a handler raised something.
fn signals() -> bool {
    let raised = Python::attach(|py| py.check_signals()).err();
    let go_on = raised.is_none();
    *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = raised;
    go_on
}

/// Options as Python gives them, a JSON object: of an error the place in it means nothing to a user.
pub fn options<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        Error::new_err(error.to_string().trim_end_matches(&place).to_string())
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    loadstone_files::while_waiting(signals);
    m.add("Error", m.py().get_type::<Error>())
}

/// Refuses a name that JSON could not tell.
pub fn check_utf8(path: &std::path::Path) -> PyResult<()> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(Error::new_err(format!(
            "{}: no text in UTF-8, as names must be here; give it another name",
            path.display()
        ))),
    }
}
