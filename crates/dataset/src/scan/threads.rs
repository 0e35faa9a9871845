//! Threads that work while somebody is told how far they are.

use super::Watch;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Shortest time between two looks at how far threads are.
const TICK: Duration = Duration::from_millis(100);

/// Does each job in a thread of its own, or as many at once as threads can be had; results are in the order of the jobs. `watch` is told what `told` says, first
/// before anything is done, and may end it all: then `stop` is set, which `work` has to heed.
pub(super) fn together<J: Send, T: Send>(
    jobs: Vec<J>,
    stop: &AtomicBool,
    told: &dyn Fn() -> (u64, u64),
    watch: Watch<'_>,
    work: impl Fn(J) -> T + Sync,
) -> (Vec<T>, ControlFlow<()>) {
    let (count, ended) = (jobs.len(), AtomicUsize::new(0));
    let mut tell = || {
        let (done, of) = told();
        watch(done, of)
    };
    let mut flow = tell();
    if flow.is_break() {
        return (Vec::new(), flow);
    }
    let (jobs, results) = (Mutex::new(jobs.into_iter().enumerate()), Mutex::new(Vec::with_capacity(count)));
    let watcher = std::thread::current();
    let some = || {
        loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, job)) = next else { break };
            let result = work(job);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
            ended.fetch_add(1, Ordering::Release);
            watcher.unpark();
        }
    };
    std::thread::scope(|scope| {
        let start = |_| Builder::new().name("loadstone-scan".into()).spawn_scoped(scope, some).ok();
        let threads: Vec<_> = (0..count).map_while(start).collect();
        if threads.is_empty() {
            // Nobody is told meanwhile.
            some();
        }
        let at_work = || threads.iter().any(|thread| !thread.is_finished());
        while ended.load(Ordering::Acquire) < count && at_work() && flow.is_continue() {
            std::thread::park_timeout(TICK);
            flow = tell();
        }
        stop.store(flow.is_break(), Ordering::Relaxed);
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    (results.into_iter().map(|(_, result)| result).collect(), flow)
}

/// The next of some things for a thread.
pub(super) fn take<'a, T>(next: &AtomicUsize, of: &'a [T]) -> Option<(usize, &'a T)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    of.get(i).map(|one| (i, one))
}
