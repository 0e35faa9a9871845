//! Verification: what a run found, and reading targets that an earlier run wrote.

use crate::progress::Teller;
use loadstone_engine::{Verified, verify_later};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;

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
        "unreadable": verified.unreadable,
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
    let mut teller = Teller::new(progress);
    let told = py.detach(|| verify_later(&state, paths, crashed, |done, of| teller.tell(done, of)));
    let told = teller.settle(told)?;
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
