//! Telling a Python function how far work is that goes on without the GIL.

use crate::error::to_py;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Shortest time between two calls.
const TICK: Duration = Duration::from_millis(200);

/// Tells it, sees to signals, and keeps what either raises.
pub struct Teller {
    progress: Option<Py<PyAny>>,
    /// None until the first call: a function hears of work that is short, too.
    last: Option<Instant>,
    raised: Option<PyErr>,
}

impl Teller {
    /// Without a function only signals are seen to.
    pub fn new(progress: Option<Py<PyAny>>) -> Teller {
        Teller { progress, last: None, raised: None }
    }

    /// So much of so much is done; whether to go on.
    pub fn tell(&mut self, done: u64, of: u64) -> ControlFlow<()> {
        if self.last.is_some_and(|last| last.elapsed() < TICK) {
            return ControlFlow::Continue(());
        }
        self.last = Some(Instant::now());
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map(|progress| progress.call1(py, (done, of))).transpose()
        });
        match told {
            Ok(_) => ControlFlow::Continue(()),
            Err(e) => {
                self.raised = Some(e);
                ControlFlow::Break(())
            }
        }
    }

    /// What the work came to, or what was raised and ended it.
    ///
    /// # Errors
    /// With either's error.
    pub fn settle<T>(self, done: Result<T, impl std::error::Error + 'static>) -> PyResult<T> {
        let done = done.map_err(to_py)?;
        self.raised.map_or(Ok(done), Err)
    }

    /// The same of work that comes to nothing where it is ended.
    ///
    /// # Errors
    /// With either's error.
    pub fn settle_whole<T>(self, done: Result<Option<T>, impl std::error::Error + 'static>) -> PyResult<T> {
        let ended = || crate::error::error("ended early though nothing asked for it");
        self.settle(done)?.ok_or_else(ended)
    }
}
