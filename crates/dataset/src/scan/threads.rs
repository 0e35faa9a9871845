//! Threads that work while somebody is told how far they are.

use super::Watch;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Shortest time between two looks at how far threads are.
const TICK: Duration = Duration::from_millis(100);

/// Does each job in a thread of its own; results are in the order of the jobs. `watch` is told what `told` says, first
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
    std::thread::scope(|scope| {
        let (watcher, ended, work) = (std::thread::current(), &ended, &work);
        let start = |job| {
            let watcher = watcher.clone();
            scope.spawn(move || {
                let result = work(job);
                ended.fetch_add(1, Ordering::Release);
                watcher.unpark();
                result
            })
        };
        let threads: Vec<_> = jobs.into_iter().map(start).collect();
        while ended.load(Ordering::Acquire) < count && flow.is_continue() {
            std::thread::park_timeout(TICK);
            flow = tell();
        }
        stop.store(flow.is_break(), Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, T>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (threads.into_iter().map(join).collect(), flow)
    })
}

/// The next of some things for a thread.
pub(super) fn take<'a, T>(next: &AtomicUsize, of: &'a [T]) -> Option<(usize, &'a T)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    of.get(i).map(|one| (i, one))
}
