//! When the workers of a run begin and end.

use crate::clock::{self, Clock};
use crate::metrics::progress::Progress;
use loadstone_plan::{Plan, Schedule, Source, Worker};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// How often a worker that waits for others looks whether they have ended, ns.
const LOOK: i64 = 1_000_000;

/// A worker of the run.
struct Member {
    schedule: Schedule,
    /// Positions of the workers that it begins after.
    after: Vec<usize>,
    /// It issues requests.
    issues: bool,
    /// Its threads that have not ended.
    left: AtomicU32,
    /// When the last of its threads that have ended did so, ns on the clock.
    ended: AtomicI64,
}

/// The workers of a run, as far as it matters when each begins and ends.
pub struct Schedules(Vec<Member>);

/// When a worker works, ns on the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When it begins.
    pub begin: i64,
    /// When it ends at the latest.
    pub deadline: i64,
}

impl Schedules {
    /// Of a plan's workers, which have so many threads.
    pub fn new(plan: &Plan, threads: impl Fn(&Worker) -> usize) -> Schedules {
        let of_group = |name: &String| {
            let members = plan.workers.iter().enumerate().filter(move |(_, worker)| worker.group == *name);
            members.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let members = plan.workers.iter().map(|worker| Member {
            after: worker.schedule.after.iter().flat_map(of_group).collect(),
            schedule: worker.schedule.clone(),
            issues: !matches!(worker.source, Source::Cpu { .. }),
            left: AtomicU32::new(threads(worker) as u32),
            ended: AtomicI64::new(i64::MIN),
        });
        Schedules(members.collect())
    }

    /// Waits until a worker begins; nothing where the run ends first.
    pub fn begin(&self, worker: usize, run: Span, progress: &Progress, clock: &mut Clock) -> Option<Span> {
        let Member { schedule, after, .. } = &self.0[worker];
        let delay = schedule.delay_ns as i64;
        let mut begin = if after.is_empty() { Some(run.begin.saturating_add(delay)) } else { None };
        loop {
            let now = clock.now();
            // A usual worker begins whatever happens, so that it counts what it could not do.
            let waits = !after.is_empty() || delay > 0;
            if waits && (progress.stop.load(Ordering::Relaxed) || now >= run.deadline) {
                return None;
            }
            begin = begin.or_else(|| self.last_end(after).map(|end| end.saturating_add(delay)));
            match begin {
                Some(begin) if now >= begin || begin - now <= LOOK => {
                    clock::sleep_until(begin);
                    let longest = match schedule.duration_ns {
                        0 => i64::MAX,
                        ns => begin.saturating_add(ns as i64),
                    };
                    return Some(Span { begin, deadline: run.deadline.min(longest) });
                }
                _ => clock::sleep_until(now + LOOK),
            }
        }
    }

    /// When the last of some workers ended; nothing while one goes on.
    fn last_end(&self, workers: &[usize]) -> Option<i64> {
        let ended = workers.iter().map(|at| &self.0[*at]);
        ended
            .map(|member| {
                (member.left.load(Ordering::Acquire) == 0).then(|| member.ended.load(Ordering::Relaxed))
            })
            .try_fold(i64::MIN, |last, end| end.map(|end| last.max(end)))
    }

    /// Whether all workers that issue requests have ended.
    pub fn requests_have_ended(&self) -> bool {
        self.0.iter().filter(|member| member.issues).all(|member| member.left.load(Ordering::Acquire) == 0)
    }

    /// Says that a thread of a worker has ended at a time; whether that ends the run.
    pub fn end(&self, worker: usize, now: i64) -> bool {
        let member = &self.0[worker];
        member.ended.fetch_max(now, Ordering::Relaxed);
        member.left.fetch_sub(1, Ordering::AcqRel) == 1 && member.schedule.ends_run
    }
}
