//! Verification: what a run found, and reading targets that an earlier run wrote.

use crate::error::to_py;
use loadstone_engine::{Verified, verify_later};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Shortest time between two calls of a progress function.
const TICK: Duration = Duration::from_millis(200);

/// What was found, as the bundle has it.
pub fn to_json(verified: &Verified) -> Value {
    let findings = &verified.findings;
    let damages = findings.damages.iter().zip(&verified.told).map(|(damage, text)| {
        let mut damage = serde_json::to_value(damage).unwrap_or_default();
        damage["text"] = json!(text);
        damage
    });
    json!({
        "unit": verified.unit,
        "checked": findings.counts.checked,
        "raced": findings.counts.raced,
        "unknown": findings.counts.unknown,
        "wrong": findings.wrong,
        "damages": damages.collect::<Vec<_>>(),
        "unread": verified.unread,
        "unkept": verified.unkept,
    })
}

/// Reads the targets of a state and compares; JSON. `progress` is told of bytes that are done, of how many.
#[pyfunction]
#[pyo3(signature = (state, paths, crashed, progress=None))]
fn verify_targets(
    py: Python<'_>,
    state: PathBuf,
    paths: Vec<PathBuf>,
    crashed: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (mut last, mut failure) = (Instant::now(), None);
    let told = py.detach(|| {
        verify_later(&state, paths, crashed, |done, of| {
            if last.elapsed() < TICK {
                return ControlFlow::Continue(());
            }
            last = Instant::now();
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map(|progress| progress.call1(py, (done, of))).transpose()
            });
            match told {
                Ok(_) => ControlFlow::Continue(()),
                Err(e) => {
                    failure = Some(e);
                    ControlFlow::Break(())
                }
            }
        })
    });
    let told = told.map_err(to_py)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let mut all = to_json(&told.verified);
    all["running"] = json!(told.running);
    all["missing"] = json!(told.swept.missing);
    if crashed {
        all["unsynced"] = json!(told.swept.unsynced);
    }
    Ok(all.to_string())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(verify_targets, m)?)
}
