//! Observation: starts and stops the sampling thread and hands its columns over as numpy arrays.

use crate::error::to_py;
use loadstone_observe::{COLUMNS, Device, Observation, Options, Probe, Samples, clock, device};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count of issued requests that the engine raises and an observation samples.
#[pyclass(frozen, name = "Progress")]
pub struct Progress(pub Arc<AtomicU64>);

#[pymethods]
impl Progress {
    /// A counter at zero.
    #[new]
    fn new() -> Self {
        Progress(Arc::default())
    }

    /// Adds to the count.
    fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The count now.
    #[getter]
    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A running observation.
#[pyclass(frozen, name = "Observation")]
pub struct PyObservation(std::sync::Mutex<Option<Observation>>);

impl PyObservation {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Observation>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[pymethods]
impl PyObservation {
    /// Samples `progress` too, from now on; only the first call counts.
    fn attach(&self, progress: &Progress) {
        if let Some(observation) = self.lock().as_ref() {
            observation.attach(progress.0.clone());
        }
    }

    /// Takes a last sample and returns everything seen; `None` if it was stopped before.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(observation) = self.lock().take() else { return Ok(None) };
        let samples = py.detach(|| observation.stop());
        to_dict(py, samples).map(Some)
    }
}

fn to_dict(py: Python<'_>, samples: Samples) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let columns = PyDict::new(py);
    columns.set_item("time", PyArray1::from_vec(py, samples.time))?;
    for (name, column) in COLUMNS.iter().zip(samples.columns) {
        columns.set_item(name, PyArray1::from_vec(py, column))?;
    }
    out.set_item("columns", columns)?;
    let readings: Vec<_> = samples.readings.into_iter().map(|r| (r.time, r.name, r.value)).collect();
    out.set_item("readings", readings)?;
    let events: Vec<_> = samples.events.into_iter().map(|e| (e.time, e.kind, e.text)).collect();
    out.set_item("events", events)?;
    out.set_item("missed", samples.missed)?;
    out.set_item("ticks_per_s", clock::ticks_per_s())?;
    Ok(out)
}

fn device_dict<'py>(py: Python<'py>, device: &Device) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("name", &device.name)?;
    out.set_item("major", device.major)?;
    out.set_item("minor", device.minor)?;
    out.set_item("below", &device.below)?;
    out.set_item("iostats", device.iostats)?;
    out.set_item("sysfs", &device.sysfs)?;
    out.set_item("warnings", device.warnings())?;
    Ok(out)
}

/// The block device whose counters tell of a path: `name`, `major`, `minor`, `below`, `iostats`,
/// `sysfs`, `warnings`. Raises `Error` where there is none.
#[pyfunction]
fn resolve_device(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let device = py.detach(|| device::resolve(&path)).map_err(to_py)?;
    device_dict(py, &device)
}

/// Starts sampling: `path` is a target whose device is sampled (or None), `probes` are
/// (name, command, interval_ns).
#[pyfunction]
#[pyo3(signature = (path, interval_ns, probes))]
fn observe(
    py: Python<'_>,
    path: Option<PathBuf>,
    interval_ns: u64,
    probes: Vec<(String, String, u64)>,
) -> PyResult<PyObservation> {
    let probes =
        probes.into_iter().map(|(name, command, interval_ns)| Probe { name, command, interval_ns }).collect();
    let started = py.detach(|| {
        let device = path.as_deref().map(device::resolve).transpose()?;
        Observation::start(Options { interval_ns, device, probes })
    });
    Ok(PyObservation(std::sync::Mutex::new(Some(started.map_err(to_py)?))))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Progress>()?;
    m.add_class::<PyObservation>()?;
    m.add_function(wrap_pyfunction!(resolve_device, m)?)?;
    m.add_function(wrap_pyfunction!(observe, m)?)
}
