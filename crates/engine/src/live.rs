//! What can be seen while a run is going: counters each thread publishes, read by anyone.

use crate::histogram::{BUCKETS, quantile};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One thread's published counters; each is exact, together they may be a moment apart.
pub struct Cell {
    done: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    latency: Box<[AtomicU64]>,
}

impl Cell {
    /// All zero.
    pub fn new() -> Cell {
        let zero = || AtomicU64::new(0);
        Cell { done: zero(), bytes: zero(), errors: zero(), latency: (0..BUCKETS).map(|_| zero()).collect() }
    }

    /// Adds to a latency bucket; only the owning thread does.
    pub fn count(&self, bucket: usize, n: u32) {
        self.latency[bucket].store(self.latency[bucket].load(Relaxed) + u64::from(n), Relaxed);
    }

    /// Sets the totals since the start.
    pub fn publish(&self, done: u64, bytes: u64, errors: u64) {
        self.done.store(done, Relaxed);
        self.bytes.store(bytes, Relaxed);
        self.errors.store(errors, Relaxed);
    }

    /// Requests, bytes and failed requests since the start.
    pub fn totals(&self) -> (u64, u64, u64) {
        (self.done.load(Relaxed), self.bytes.load(Relaxed), self.errors.load(Relaxed))
    }
}

/// What a run is doing at the moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Live {
    /// `starting`, `filling`, `dropping caches`, `running`, `ending` or `done`.
    pub phase: &'static str,
    /// Nanoseconds since the current phase began.
    pub elapsed_ns: i64,
    /// Share of the phase that is done, where that is known.
    pub fraction: Option<f64>,
    /// Requests since the start.
    pub requests: u64,
    /// Bytes since the start.
    pub bytes: u64,
    /// Failed and short requests since the start.
    pub errors: u64,
    /// Requests per second over about the last second.
    pub ops_per_s: f64,
    /// Bytes per second over about the last second.
    pub bytes_per_s: f64,
    /// Median latency of about the last second, ns: response where the pace is open, else service.
    pub p50_ns: u64,
    /// 99th percentile, likewise.
    pub p99_ns: u64,
}

/// Remembers the last second of the published counters to tell rates and percentiles.
#[derive(Default)]
pub struct History(VecDeque<Snapshot>);

struct Snapshot {
    at: i64,
    requests: u64,
    bytes: u64,
    latency: Vec<u64>,
}

impl History {
    /// Fills in the figures of `live` from the cells, as of `now` (ns).
    pub fn observe(&mut self, now: i64, cells: &[Arc<Cell>], live: &mut Live) {
        let mut latest = Snapshot { at: now, requests: 0, bytes: 0, latency: vec![0; BUCKETS] };
        for cell in cells {
            let (done, bytes, errors) = cell.totals();
            latest.requests += done;
            latest.bytes += bytes;
            live.errors += errors;
            for (sum, n) in latest.latency.iter_mut().zip(&cell.latency) {
                *sum += n.load(Relaxed);
            }
        }
        live.requests = latest.requests;
        live.bytes = latest.bytes;
        // The newest snapshot that is at least a second old is the base; older ones are of no more use.
        while self.0.get(1).is_some_and(|s| now - s.at >= 1_000_000_000) {
            self.0.pop_front();
        }
        if let Some(base) = self.0.front() {
            let seconds = (now - base.at).max(1) as f64 * 1e-9;
            live.ops_per_s = (latest.requests - base.requests) as f64 / seconds;
            live.bytes_per_s = (latest.bytes - base.bytes) as f64 / seconds;
            let recent = latest.latency.iter().zip(&base.latency).map(|(a, b)| a - b).enumerate();
            live.p50_ns = quantile(recent.clone(), 0.5);
            live.p99_ns = quantile(recent, 0.99);
        }
        if self.0.back().is_none_or(|s| now - s.at >= 50_000_000) {
            self.0.push_back(latest);
        }
    }
}
