//! Ends a run in a steady state: a thread that samples the counters and judges a sliding window of them.

use crate::clock::{self, Clock};
use crate::issue::context::SLICE;
use crate::metrics::live::{Board, Totals};
use crate::metrics::progress::Progress;
use crate::{Error, Result};
use loadstone_plan::{Judged, Sampled, Steady};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// Time after the end of a sample at which counters are read, ns: by then all threads have told what came before.
const SETTLE: i64 = 5_000_000;

/// What came of waiting for a steady state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Steadied {
    /// It was reached, and ended the run.
    pub attained: bool,
    /// Time from the start of what is measured to the end of the last sample, ns.
    pub at_ns: i64,
    /// Mean of the last full window; 0 where none filled.
    pub mean: f64,
    /// What was judged of it, as the limit is: nothing where none filled.
    pub found: Option<f64>,
    /// The samples of the last window, in order.
    pub samples: Vec<f64>,
}

/// Samples of a sliding window, and what they say.
struct Window {
    steady: Steady,
    samples: VecDeque<f64>,
    full: usize,
}

impl Window {
    fn new(steady: Steady) -> Window {
        let full = (steady.window_ns / steady.sample_ns.max(1)) as usize;
        Window { steady, samples: VecDeque::new(), full }
    }

    fn mean(&self) -> f64 {
        self.samples.iter().sum::<f64>() / self.samples.len().max(1) as f64
    }

    /// Adds a sample; what is judged of the window, once it is full.
    fn add(&mut self, sample: f64) -> Option<f64> {
        if self.samples.len() == self.full {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        if self.samples.len() < self.full {
            return None;
        }
        let mean = self.mean();
        let found = match self.steady.by {
            Judged::Deviation => self.samples.iter().fold(0.0, |most: f64, y| most.max((y - mean).abs())),
            Judged::Slope => {
                let middle = (self.full - 1) as f64 / 2.0;
                let (mut products, mut squares) = (0.0, 0.0);
                for (i, y) in self.samples.iter().enumerate() {
                    let x = i as f64 - middle;
                    (products, squares) = (products + x * (y - mean), squares + x * x);
                }
                (products / squares).abs()
            }
        };
        Some(match self.steady.relative {
            // What stands still is not steady.
            true if mean == 0.0 => f64::INFINITY,
            true => found / mean,
            false => found,
        })
    }
}

/// The value of a sample between two readings that lie so many seconds apart.
fn sample(of: Sampled, before: Totals, now: Totals, seconds: f64) -> f64 {
    match of {
        Sampled::Requests => (now.requests - before.requests) as f64 / seconds,
        Sampled::Bytes => (now.bytes - before.bytes) as f64 / seconds,
        Sampled::Latency => {
            let count = now.timed - before.timed;
            if count == 0 { 0.0 } else { (now.latency - before.latency) / count as f64 }
        }
    }
}

/// A thread that looks, until the run has ended.
pub struct Watch {
    ended: Arc<AtomicBool>,
    handle: JoinHandle<Steadied>,
}

impl Watch {
    /// Looks at `board` from `start` on, on the clock, and stops the load once it is steady.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(steady: Steady, board: Arc<Board>, progress: Arc<Progress>, start: i64) -> Result<Watch> {
        let ended = Arc::new(AtomicBool::new(false));
        let mine = ended.clone();
        let handle = std::thread::Builder::new()
            .name("loadstone-steady".into())
            .spawn(move || watch(steady, &board, &progress, &mine, start))
            .map_err(|e| Error::thread("that looks for a steady state", e))?;
        Ok(Watch { ended, handle })
    }

    /// Says that the run has ended; what came of it.
    ///
    /// # Errors
    /// When the thread has failed.
    pub fn finish(self) -> Result<Steadied> {
        self.ended.store(true, Relaxed);
        self.handle.join().map_err(|_| Error::Thread("loadstone-steady".into()))
    }
}

fn watch(steady: Steady, board: &Board, progress: &Progress, ended: &AtomicBool, start: i64) -> Steadied {
    let (mut window, mut told) = (Window::new(steady), Steadied::default());
    let (clock, step) = (Clock::new(), steady.sample_ns as i64);
    let begin = start.saturating_add(steady.after_ns as i64);
    let mut before: Option<Totals> = None;
    for number in 0.. {
        let at = begin.saturating_add(step.saturating_mul(number));
        while clock.now() < at + SETTLE {
            if ended.load(Relaxed) || progress.stop.load(Relaxed) {
                return told;
            }
            clock::sleep_until((at + SETTLE).min(clock.now() + SLICE));
        }
        let now = board.totals();
        if let Some(before) = before.replace(now) {
            told.found = window.add(sample(steady.of, before, now, step as f64 * 1e-9));
            (told.at_ns, told.mean) = (at - start, window.mean());
            told.samples = window.samples.iter().copied().collect();
            if told.found.is_some_and(|found| found < steady.limit) {
                told.attained = true;
                progress.stop.store(true, Relaxed);
                return told;
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(by: Judged, relative: bool) -> Window {
        let second = 1_000_000_000;
        let (window_ns, sample_ns) = (4 * second, second);
        Window::new(Steady {
            of: Sampled::Requests,
            by,
            limit: 1.0,
            relative,
            window_ns,
            after_ns: 0,
            sample_ns,
        })
    }

    #[test]
    fn a_full_window_is_judged_by_its_largest_difference() {
        let mut of = window(Judged::Deviation, false);
        let found: Vec<_> = [100.0, 90.0, 110.0, 100.0, 100.0, 98.0].map(|y| of.add(y)).to_vec();
        assert_eq!(found, [None, None, None, Some(10.0), Some(10.0), Some(8.0)]);
        let mut of = window(Judged::Deviation, true);
        let found = [100.0, 90.0, 110.0, 100.0].map(|y| of.add(y));
        assert_eq!(found[3], Some(0.1));
        let mut of = window(Judged::Deviation, true);
        assert_eq!([0.0; 4].map(|y| of.add(y))[3], Some(f64::INFINITY), "nothing at all is no steady state");
    }

    #[test]
    fn a_slope_is_that_of_least_squares_whichever_way_it_goes() {
        let mut of = window(Judged::Slope, false);
        assert_eq!([100.0, 98.0, 96.0, 94.0].map(|y| of.add(y))[3], Some(2.0));
        // The largest and the least lie in the middle.
        let mut of = window(Judged::Slope, true);
        let found = [97.0, 107.0, 87.0, 97.0].map(|y| of.add(y))[3].unwrap();
        assert!((found - 2.0 / 97.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn samples_are_rates_and_mean_latencies_of_what_is_new() {
        let before = Totals { requests: 10, bytes: 100, timed: 10, latency: 50.0 };
        let now = Totals { requests: 30, bytes: 500, timed: 20, latency: 250.0 };
        let of = |of| sample(of, before, now, 2.0);
        assert_eq!([of(Sampled::Requests), of(Sampled::Bytes), of(Sampled::Latency)], [10.0, 200.0, 20.0]);
        assert_eq!(sample(Sampled::Latency, now, now, 2.0), 0.0);
    }
}
