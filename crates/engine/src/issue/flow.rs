//! Shares of several workers: each looks whether it is ahead of its part of all requests so far.

use crate::clock::{Clock, sleep_until};
use crate::issue::context::SLICE;
use crate::issue::take::Take;
use crate::request::Request;
use crate::source::fetch::Claimed;
use loadstone_plan::{Flow, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long a worker waits that is ahead and says nothing of it, ns.
const MOMENT: i64 = 50_000;

/// What workers of one number share.
#[derive(Debug, Default)]
struct Total {
    /// Requests so far of those that have not ended.
    requests: AtomicU64,
    weight: AtomicU64,
}

/// A worker's share, counted by all of its threads.
#[derive(Debug)]
pub struct Share {
    flow: Flow,
    mine: AtomicU64,
    /// Its threads that have not ended.
    threads: AtomicU64,
    total: Arc<Total>,
}

/// The shares of a plan's workers, by position; `threads` of each.
pub fn of_plan(plan: &Plan, threads: impl Fn(&loadstone_plan::Worker) -> usize) -> Vec<Option<Arc<Share>>> {
    let mut totals: BTreeMap<u32, Arc<Total>> = BTreeMap::new();
    let share = |worker: &loadstone_plan::Worker| {
        let flow = worker.flow?;
        let total = totals.entry(flow.id).or_default().clone();
        total.weight.fetch_add(flow.weight.into(), Relaxed);
        let threads = AtomicU64::new(threads(worker) as u64);
        Some(Arc::new(Share { flow, mine: AtomicU64::new(0), threads, total }))
    };
    plan.workers.iter().map(share).collect()
}

impl Share {
    /// Counts a request; `false` where the worker is ahead of its part, and must wait.
    fn admits(&self) -> bool {
        let (mine, all) = (self.mine.load(Relaxed), self.total.requests.load(Relaxed));
        let (part, whole) = (u64::from(self.flow.weight), self.total.weight.load(Relaxed));
        if u128::from(mine) * u128::from(whole) > u128::from(part) * u128::from(all + 1) {
            return false;
        }
        self.total.requests.fetch_add(1, Relaxed);
        self.mine.fetch_add(1, Relaxed);
        true
    }
}

/// One thread's view of its worker's share.
pub struct Flowing {
    share: Arc<Share>,
    clock: Clock,
    /// Counted for a request that has not gone out.
    granted: bool,
}

impl Flowing {
    /// A view for a thread.
    pub fn new(share: Arc<Share>) -> Flowing {
        Flowing { share, clock: Clock::new(), granted: false }
    }

    /// Whether a request may go out; where it may not, it waits if there is nothing else to wait for.
    pub fn admits(&mut self, alone: bool) -> bool {
        self.granted = self.granted || self.share.admits();
        if !self.granted && alone {
            let wait = if self.share.flow.wait_ns > 0 { self.share.flow.wait_ns as i64 } else { MOMENT };
            sleep_until(self.clock.now() + wait.min(SLICE));
        }
        self.granted
    }

    /// Says that it went out.
    pub fn issue(&mut self) {
        self.granted = false;
    }
}

impl Drop for Flowing {
    /// The others share what is left among themselves once a worker's last thread has ended.
    fn drop(&mut self) {
        let Share { flow, mine, threads, total } = &*self.share;
        if threads.fetch_sub(1, Relaxed) == 1 {
            total.requests.fetch_sub(mine.load(Relaxed), Relaxed);
            total.weight.fetch_sub(flow.weight.into(), Relaxed);
        }
    }
}

/// A source whose requests go out only as fast as the worker's share allows.
pub struct Shared<'a, T>(pub &'a mut T, pub Flowing);

impl<T: Take> Take for Shared<'_, T> {
    fn take(&mut self) -> Claimed {
        if !self.1.admits(true) {
            return Claimed::NotYet;
        }
        let claimed = self.0.take();
        if matches!(claimed, Claimed::Request(_)) {
            self.1.issue();
        }
        claimed
    }

    fn issue(&mut self) -> u32 {
        self.0.issue()
    }

    fn done(&mut self, request: &Request, now: i64) {
        self.0.done(request, now);
    }

    fn rest(&mut self) -> Claimed {
        self.0.rest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_shared_by_weight_until_one_ends() {
        let worker = |weight: u32| {
            serde_json::json!({
                "source": {"kind": "uniform", "reads": 1.0, "size": 4096},
                "backend": "null",
                "depth": 1,
                "flow": {"weight": weight},
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 20}]},
            })
        };
        let plan = serde_json::json!({
            "version": 1,
            "targets": [{"id": "t", "kind": "null", "size": 1 << 20}],
            "workers": [worker(8), worker(1), worker(3)],
            "steps": [{"step": "run"}],
        });
        let shares = of_plan(&Plan::parse(&plan.to_string()).unwrap(), |_| 1);
        let mut flows: Vec<_> = shares.iter().map(|share| Flowing::new(share.clone().unwrap())).collect();
        let mut counts = [0u64; 3];
        let go = |flows: &mut [Flowing], counts: &mut [u64; 3]| {
            for _ in 0..12_000 {
                for (flow, count) in flows.iter_mut().zip(counts.iter_mut()) {
                    if flow.admits(false) {
                        flow.issue();
                        *count += 1;
                    }
                }
            }
        };
        go(&mut flows, &mut counts);
        let parts = counts.map(|count| count as f64 / counts.iter().sum::<u64>() as f64 * 12.0);
        for (part, weight) in parts.iter().zip([8.0, 1.0, 3.0]) {
            assert!((part - weight).abs() < 0.05, "{parts:?}");
        }
        // Without the third the others share as if it had never been.
        flows.pop();
        let before = counts;
        go(&mut flows, &mut counts);
        let more = [counts[0] - before[0], counts[1] - before[1]];
        assert!((more[0] as f64 / more[1] as f64 - 8.0).abs() < 0.2, "{more:?}");
    }
}
