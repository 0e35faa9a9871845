//! One exception for everything that a user can put right.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(loadstone, Error, PyException, "What went wrong, where, and what to do.");

/// Turns any of the crates' errors into the exception.
pub fn to_py(error: impl std::error::Error) -> PyErr {
    Error::new_err(error.to_string())
}

/// Options as Python gives them, a JSON object: of an error the place in it means nothing to a user.
pub fn options<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        Error::new_err(error.to_string().trim_end_matches(&place).to_string())
    })
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
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
