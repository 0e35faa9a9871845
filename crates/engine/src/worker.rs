//! The hot loops: a source, a pacer, a backend and a recorder put together, one loop per way of waiting.

use crate::backend::Perform;
use crate::clock::{Clock, sleep_until};
use crate::depend::Depended;
use crate::order::Ordered;
use crate::recorder::Recorder;
use crate::request::Request;
use crate::source::{Claim, Claimed, Feed};
use crate::spin::Spin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Longest sleep, ns: so soon is a stop noticed, and the live figures stay fresh.
pub const SLICE: i64 = 20_000_000;
/// The same for waiting on the source.
pub const PATIENCE: Duration = Duration::from_millis(20);

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
    fn wait(&mut self, due: i64, mut now: i64, recorder: &mut Recorder) -> Option<i64> {
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
}

/// Hands requests to a loop that performs one at a time.
pub trait Take {
    /// The next request.
    fn take(&mut self) -> Claimed;
    /// Says that a request is about to go out; returns how many are in flight with it.
    fn issue(&mut self) -> u32;
    /// Says that a request has completed, at this time of the run's clock.
    fn done(&mut self, request: &Request, now: i64);
    /// The next request whatever it waits for, where its time does not depend on that; for what the end cut off.
    fn rest(&mut self) -> Claimed;
}

/// A thread that has the source to itself.
pub struct Alone(pub Feed);

impl Take for Alone {
    #[inline(always)]
    fn take(&mut self) -> Claimed {
        self.0.take(PATIENCE)
    }

    #[inline(always)]
    fn issue(&mut self) -> u32 {
        1
    }

    #[inline(always)]
    fn done(&mut self, _: &Request, _: i64) {}

    fn rest(&mut self) -> Claimed {
        self.take()
    }
}

/// A thread of a pool.
pub struct Together {
    /// Its view of the source.
    pub claim: Claim,
    /// Requests in flight in the whole pool.
    pub in_flight: Arc<AtomicU32>,
}

impl Take for Together {
    #[inline(always)]
    fn take(&mut self) -> Claimed {
        self.claim.next(PATIENCE)
    }

    #[inline(always)]
    fn issue(&mut self) -> u32 {
        self.in_flight.fetch_add(1, Relaxed) + 1
    }

    #[inline(always)]
    fn done(&mut self, _: &Request, _: i64) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    fn rest(&mut self) -> Claimed {
        self.take()
    }
}

/// A thread of a pool whose requests wait for the completions of the trace.
pub struct InOrder {
    /// Shared by the pool.
    pub ordered: Arc<Ordered>,
    /// Requests in flight in the whole pool.
    pub in_flight: Arc<AtomicU32>,
    /// Set to end issuing.
    pub stop: Arc<AtomicBool>,
}

impl Take for InOrder {
    fn take(&mut self) -> Claimed {
        self.ordered.take(&self.stop)
    }

    fn issue(&mut self) -> u32 {
        self.in_flight.fetch_add(1, Relaxed) + 1
    }

    fn done(&mut self, request: &Request, _: i64) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.ordered.done(request);
    }

    fn rest(&mut self) -> Claimed {
        self.ordered.rest()
    }
}

/// A thread of a pool, or alone, whose requests wait for what they depend on.
pub struct Dependent {
    /// Shared by the pool.
    pub depended: Arc<Depended>,
    /// Requests in flight in the whole pool.
    pub in_flight: Arc<AtomicU32>,
    /// Set to end issuing.
    pub stop: Arc<AtomicBool>,
    /// Start of the run, ns.
    pub start: i64,
    /// When issuing ends, ns.
    pub deadline: i64,
}

impl Take for Dependent {
    fn take(&mut self) -> Claimed {
        self.depended.take(&self.stop, self.start, self.deadline)
    }

    fn issue(&mut self) -> u32 {
        self.in_flight.fetch_add(1, Relaxed) + 1
    }

    fn done(&mut self, request: &Request, now: i64) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.depended.done(request, now - self.start);
    }

    fn rest(&mut self) -> Claimed {
        Claimed::End
    }
}

/// Requests that were due before the end of the run and did not go out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Unissued {
    /// How many were found.
    pub requests: u64,
    /// There are more: they were counted for a second only.
    pub more: bool,
}

impl Unissued {
    /// Longest time for counting them, ns.
    const LONGEST: i64 = 1_000_000_000;

    /// Counts what `rest` gives; nothing where the run was stopped or its source ended before its deadline.
    pub fn count(context: &mut Context, mut rest: impl FnMut() -> Claimed) -> Unissued {
        let mut found = Unissued::default();
        let begun = context.clock.now();
        if begun < context.deadline {
            return found;
        }
        loop {
            match rest() {
                Claimed::Request(r) if context.start.saturating_add(r.due) < context.deadline => {
                    found.requests += 1
                }
                Claimed::NotYet => {}
                _ => return found,
            }
            let now = context.clock.now();
            if now - begun > Unissued::LONGEST || context.stop.load(Relaxed) {
                found.more = true;
                return found;
            }
        }
    }

    /// Adds what another thread found.
    pub fn add(&mut self, other: Unissued) {
        self.requests += other.requests;
        self.more |= other.more;
    }
}

/// Performs one request after the other until the source ends, time is up, or it is told to stop. Returns how many
/// requests were due by then and did not go out.
pub fn one_by_one<B: Perform, T: Take, const OPEN: bool>(
    context: &mut Context,
    take: &mut T,
    backend: &mut B,
    recorder: &mut Recorder,
) -> Unissued {
    let mut held = None;
    while !context.stop.load(Relaxed) {
        let request = match take.take() {
            Claimed::Request(r) => r,
            Claimed::NotYet => {
                let now = context.clock.now();
                if now >= context.deadline {
                    break;
                }
                recorder.idle(now, &mut context.clock);
                continue;
            }
            Claimed::End => break,
        };
        backend.before(&request);
        let mut issued = context.clock.now();
        if issued >= context.deadline {
            held = Some(request);
            break;
        }
        let mut intended = issued;
        if OPEN {
            intended = context.start.saturating_add(request.due);
            if issued < intended {
                match context.wait(intended, issued, recorder) {
                    Some(now) => issued = now,
                    None => {
                        held = Some(request);
                        break;
                    }
                }
            }
        }
        let in_flight = take.issue();
        let result = backend.perform(&request);
        let now = context.clock.now();
        recorder.in_flight(in_flight);
        recorder.complete(&request, intended, issued, now, result, &mut context.clock);
        take.done(&request, now);
    }
    if !OPEN {
        return Unissued::default();
    }
    Unissued::count(context, || held.take().map_or_else(|| take.rest(), Claimed::Request))
}
