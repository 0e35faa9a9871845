//! Errors of the crates as the exceptions of `loadstone.errors`, with what is known of them as attributes.

use loadstone_content as content;
use loadstone_dataset as dataset;
use loadstone_engine as engine;
use loadstone_model as model;
use loadstone_observe as observe;
use loadstone_plan as plan;
use loadstone_trace::{self as trace, Place};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What a signal's handler raised while a pipe was waited for.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);

/// An exception to be: its class, its text, and its attributes.
struct Raise<'py> {
    class: &'static str,
    text: String,
    facts: Bound<'py, PyDict>,
}

impl<'py> Raise<'py> {
    fn new(py: Python<'py>, class: &'static str, text: impl Into<String>) -> Raise<'py> {
        Raise { class, text: text.into(), facts: PyDict::new(py) }
    }

    fn with(self, name: &str, value: impl IntoPyObject<'py>) -> PyResult<Raise<'py>> {
        self.facts.set_item(name, value)?;
        Ok(self)
    }

    fn path(self, path: &Path) -> PyResult<Raise<'py>> {
        self.with("path", path.as_os_str())
    }

    fn cause(self, cause: Option<&io::Error>) -> PyResult<Raise<'py>> {
        match cause.and_then(io::Error::raw_os_error) {
            Some(code) => self.with("errno", code),
            None => Ok(self),
        }
    }

    fn made(self) -> PyResult<PyErr> {
        let class = self.facts.py().import("loadstone.errors")?.getattr(self.class)?;
        let made = match self.class {
            "OptionError" => class.call1((None::<&str>, None::<&str>, self.text))?,
            _ => class.call((self.text,), Some(&self.facts))?,
        };
        Ok(PyErr::from_value(made))
    }
}

/// Turns any of the crates' errors into an exception; one that came of a signal is what its handler raised.
pub fn to_py(error: impl std::error::Error + 'static) -> PyErr {
    let raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.unwrap_or_else(|| {
        Python::attach(|py| raise(py, &error).and_then(Raise::made).unwrap_or_else(|failed| failed))
    })
}

/// An error of no special class.
pub fn error(text: impl Into<String>) -> PyErr {
    Python::attach(|py| Raise::new(py, "Error", text).made().unwrap_or_else(|failed| failed))
}

fn raise<'py>(py: Python<'py>, error: &(dyn std::error::Error + 'static)) -> PyResult<Raise<'py>> {
    let plain = |class| Raise::new(py, class, error.to_string());
    if let Some(error) = error.downcast_ref::<trace::Error>() {
        return of_trace(py, error);
    }
    if let Some(error) = error.downcast_ref::<model::Error>() {
        return match error.kind() {
            model::ErrorKind::Trace => of_trace(py, error.told()),
            model::ErrorKind::Asked | model::ErrorKind::TooWide => Ok(plain("OptionError")),
            model::ErrorKind::Requests => of_model(plain("ModelError"), error, "requests"),
            model::ErrorKind::Damaged => of_model(plain("ModelError"), error, "damaged"),
            model::ErrorKind::Version => of_model(plain("ModelError"), error, "version"),
            _ => of_model(plain("ModelError"), error, "defect"),
        };
    }
    if let Some(error) = error.downcast_ref::<plan::Error>() {
        return of_plan(py, error);
    }
    if let Some(error) = error.downcast_ref::<engine::Error>() {
        return match error {
            engine::Error::Plan(error) => of_plan(py, error),
            engine::Error::Trace(error) | engine::Error::Arrivals(error) => {
                Ok(Raise { text: plain("").text, ..of_trace(py, error)? })
            }
            engine::Error::Model(error) => raise(py, error),
            engine::Error::System { cause, .. } => plain("RunError").cause(Some(cause)),
            engine::Error::Target { target, .. } => plain("RunError").with("path", target),
            _ => Ok(plain("RunError")),
        };
    }
    if let Some(error) = error.downcast_ref::<dataset::Error>() {
        return match error {
            dataset::Error::Io { path, cause, .. } => plain("DatasetError").path(path)?.cause(Some(cause)),
            dataset::Error::File { path, .. } => plain("DatasetError").path(path),
            dataset::Error::Path(error) => {
                plain("DatasetError").path(&error.path)?.cause(error.cause.as_ref())
            }
            dataset::Error::Content(error) => raise(py, error),
            dataset::Error::Option(_) => Ok(plain("OptionError")),
            _ => Ok(plain("DatasetError")),
        };
    }
    if let Some(error) = error.downcast_ref::<content::Error>() {
        return match error {
            content::Error::Io { path, cause, .. } => plain("Error").path(path)?.cause(Some(cause)),
            content::Error::Option(_) => Ok(plain("OptionError")),
            _ => Ok(plain("Error")),
        };
    }
    if let Some(error) = error.downcast_ref::<observe::Error>() {
        return match error {
            observe::Error::Io { path, cause, .. } => plain("Error").path(path)?.cause(Some(cause)),
            observe::Error::NoDevice { path, .. } => plain("Error").path(path),
            observe::Error::Option(_) => Ok(plain("OptionError")),
            _ => Ok(plain("Error")),
        };
    }
    if let Some(error) = error.downcast_ref::<loadstone_files::Error>() {
        return plain("Error").path(&error.path)?.cause(error.cause.as_ref());
    }
    Ok(plain("Error"))
}

fn of_trace<'py>(py: Python<'py>, error: &trace::Error) -> PyResult<Raise<'py>> {
    use trace::ErrorKind;
    let kind = match error.kind() {
        ErrorKind::Option => return Ok(Raise::new(py, "OptionError", error.to_string())),
        ErrorKind::Io => "io",
        ErrorKind::Unrecognised => "unrecognised",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Malformed => "malformed",
        ErrorKind::Truncated => "truncated",
        ErrorKind::OutOfOrder => "out_of_order",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::Empty => "empty",
        _ => "defect",
    };
    let raise = Raise::new(py, "TraceError", error.to_string()).with("kind", kind)?.cause(error.cause())?;
    let raise = match error.file() {
        Some(path) => raise.path(path)?,
        None => raise,
    };
    match error.place() {
        Place::Whole => Ok(raise),
        Place::Line(line) => raise.with("line", line),
        Place::Byte(byte) => raise.with("byte", byte),
    }
}

fn of_model<'py>(raise: Raise<'py>, error: &model::Error, kind: &str) -> PyResult<Raise<'py>> {
    let raise = raise.with("kind", kind)?;
    match error.told().file() {
        Some(path) => raise.path(path),
        None => Ok(raise),
    }
}

fn of_plan<'py>(py: Python<'py>, error: &plan::Error) -> PyResult<Raise<'py>> {
    let raise = Raise::new(py, "PlanError", error.to_string());
    match error {
        plan::Error::Invalid { place, what } => raise.with("place", place)?.with("what", what),
        plan::Error::Shape(error) => raise
            .with("line", error.line())?
            .with("column", error.column())?
            .with("what", without_place(error)),
        _ => Ok(raise),
    }
}

/// What is wrong with JSON, without where: in what was made for the occasion the place means nothing to a user.
fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    error.to_string().trim_end_matches(&place).to_string()
}

/// Lets signals in; `false` where a handler raised something.
fn signals() -> bool {
    let raised = Python::attach(|py| py.check_signals()).err();
    let go_on = raised.is_none();
    *RAISED.lock().unwrap_or_else(PoisonError::into_inner) = raised;
    go_on
}

/// Options as Python gives them, a JSON object.
pub fn options<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|failed| error(without_place(&failed)))
}

pub fn register() {
    loadstone_files::while_waiting(signals);
}

/// Refuses a name that JSON could not tell.
pub fn check_utf8(path: &Path) -> PyResult<()> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(error(format!(
            "{}: no text in UTF-8, as names must be here; give it another name",
            path.display()
        ))),
    }
}
