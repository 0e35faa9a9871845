//! How a loop gets its requests: alone, in a pool, in completion order, or after what they depend on.

use crate::issue::completion_order::Ordered;
use crate::issue::context::PATIENCE;
use crate::issue::dependencies::Depended;
use crate::request::Request;
use crate::source::fetch::{Claim, Claimed, Feed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

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
