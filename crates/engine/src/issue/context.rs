//! What every issuing loop needs: its clock, its deadline, and how it waits.

use crate::clock::{Clock, sleep_until};
use crate::issue::spin::Spin;
use crate::metrics::recorder::{Recorder, Unissued};
use crate::source::fetch::Claimed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Longest sleep, ns: so soon is a stop noticed, and the live figures stay fresh.
pub const SLICE: i64 = 20_000_000;
/// The same for waiting on the source.
pub const PATIENCE: Duration = Duration::from_millis(20);

/// Longest time for counting requests that did not go out, ns.
const LONGEST_COUNT: i64 = 1_000_000_000;

/// What every loop needs to know.
pub struct Context {
    /// The thread's clock.
    pub clock: Clock,
    /// Start of the run on it.
    pub start: i64,
    /// When issuing ends.
    pub deadline: i64,
    /// Set to end issuing.
    pub stop: Arc<AtomicBool>,
    /// For how long it spins before a request is due.
    pub spin: Spin,
}

impl Context {
    /// Sleeps until it is time to spin for what is due, or for a slice; the time when it woke up.
    pub fn sleep(&mut self, due: i64, now: i64) -> i64 {
        let until = (due - self.spin.ns).min(now + SLICE).min(self.deadline);
        sleep_until(until);
        let now = self.clock.now();
        self.spin.learn(now - until);
        now
    }

    /// Waits until `due`; `None` when the run is stopped or ends first.
    #[inline(always)]
    pub fn wait(&mut self, due: i64, mut now: i64, recorder: &mut Recorder) -> Option<i64> {
        while now < due {
            if due - now > self.spin.ns {
                recorder.idle(now, &mut self.clock);
                now = self.sleep(due, now);
            } else {
                std::hint::spin_loop();
                now = self.clock.now();
            }
            if self.stop.load(Relaxed) || now >= self.deadline {
                return None;
            }
        }
        Some(now)
    }

    /// Counts what `rest` gives; nothing where the run was stopped or its source ended before its deadline.
    pub fn count_unissued(&mut self, mut rest: impl FnMut() -> Claimed) -> Unissued {
        let mut found = Unissued::default();
        let begun = self.clock.now();
        if begun < self.deadline {
            return found;
        }
        loop {
            match rest() {
                Claimed::Request(r) if self.start.saturating_add(r.due) < self.deadline => {
                    found.requests += 1
                }
                Claimed::NotYet => {}
                _ => return found,
            }
            let now = self.clock.now();
            if now - begun > LONGEST_COUNT || self.stop.load(Relaxed) {
                found.more = true;
                return found;
            }
        }
    }
}
