//! What a run measured, merged over the threads of each worker.

use crate::host::write_back::WrittenBack;
use crate::issue::depth_search::Depths;
use crate::metrics::histogram::{self, Sparse};
use crate::metrics::in_flight::Level;
use crate::metrics::recorder::Unissued;
use crate::metrics::recorder::{Late, Line, Recorded, Row};
use crate::run::steady::Steadied;
use crate::verification::Verified;
use crate::workload_vm::{OTHER, Span, Tally};
use loadstone_plan::MOST_INTERVALS;
use std::collections::BTreeMap;

/// A recorder row and the worker it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpRow {
    /// Position of the worker in the plan.
    pub worker: u16,
    /// Number of the worker's thread, where threads are told apart; else 0.
    pub thread: u16,
    /// The counts.
    pub row: Row,
}

/// Requests in flight of one worker during one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkerLevel {
    /// Position of the worker in the plan.
    pub worker: u16,
    /// The figures.
    pub level: Level,
}

/// Everything a run measured.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Per worker, thread (where asked for), op, name, errno and interval, in that order.
    pub ops: Vec<OpRow>,
    /// Threads have rows of their own.
    pub by_thread: bool,
    /// Group of each worker.
    pub groups: Vec<String>,
    /// When each worker began and its last request completed, ns from the start.
    pub worked: Vec<(i64, i64)>,
    /// Names of the steps of programs.
    pub names: Vec<String>,
    /// Values that programs drew to be told, by name.
    pub values: Vec<(String, Tally)>,
    /// Times of groups of programs: worker, name, times.
    pub spans: Vec<(usize, String, Span)>,
    /// Requests in flight during the run.
    pub flight: Vec<WorkerLevel>,
    /// Requests in flight of the source traces, on the run's timeline (or their own where the pace is closed).
    pub flight_trace: Vec<WorkerLevel>,
    /// Lateness per interval, all workers together; empty where every pace is closed.
    pub late: Vec<Late>,
    /// Lateness over time.
    pub line: Line,
    /// The figures of the whole run.
    pub summary: Summary,
}

/// The figures of the whole run.
#[derive(Debug, Default, Clone)]
pub struct Summary {
    /// Start, ns since 1970.
    pub started_unix_ns: i64,
    /// Start on `CLOCK_MONOTONIC`, ns.
    pub start_monotonic_ns: i64,
    /// From the start to the last completion, ns.
    pub elapsed_ns: i64,
    /// Length of an interval, ns.
    pub interval_ns: i64,
    /// Requests completed, failed ones included.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Requests that completed before the measured time and count nowhere else.
    pub ramp: u64,
    /// Requests of models that were drawn before the run.
    pub drawn_first: u64,
    /// Requests that failed with an errno.
    pub errors: u64,
    /// Requests that moved fewer bytes than asked for.
    pub short: u64,
    /// Requests that were due before the end of the run and did not go out; open paces only, but for those whose requests
    /// wait for what they depend on.
    pub unissued: Unissued,
    /// What came of waiting for a steady state, where the plan asks for one.
    pub steady: Option<Steadied>,
    /// What came of the search of a depth, by worker.
    pub depths: Vec<(u16, Depths)>,
    /// What came of making stable what was written, where anything was.
    pub written_back: Option<WrittenBack>,
    /// CPU time of the process during the run, ns: user, system.
    pub cpu_ns: (i64, i64),
    /// Stopped before its end, or ended by `failure`.
    pub partial: bool,
    /// What ended the run early, besides being stopped.
    pub failure: Option<String>,
    /// Blocks that content was made for, where the plan asks for some.
    pub content_blocks: Option<u64>,
    /// What came of the verification, where the plan asks for one.
    pub verified: Option<Verified>,
    /// Rows of the full log written and dropped.
    pub logged: (u64, u64),
    /// Why there is no full log that should have been written.
    pub unlogged: Option<String>,
    /// Rows of sources in completion order or with known latencies, and those without a latency.
    pub latencies: (u64, u64),
    /// Damaged records of traces that were passed over.
    pub damaged: u64,
    /// Entries of archives that were no files or directories, or lead elsewhere.
    pub left_out: u64,
    /// The CPU's counter was read instead of calling `clock_gettime`.
    pub counter_clock: bool,
    /// What a person should know, such as which caches were dropped.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Adds what the threads of worker number `worker` recorded; `apart`: each knows only of its own requests in flight.
    pub fn add(&mut self, worker: usize, threads: Vec<Recorded>, apart: bool) {
        let worker = worker as u16;
        let interval = self.summary.interval_ns.max(1);
        let mut rows: BTreeMap<(u16, u8, u16, i32, u32), Row> = BTreeMap::new();
        let mut late: BTreeMap<u32, Late> =
            std::mem::take(&mut self.late).into_iter().map(|l| (l.interval, l)).collect();
        let mut levels: Vec<(i64, u32)> = Vec::new();
        let begun = threads.iter().map(|thread| thread.begun).min().unwrap_or(0).max(0);
        self.worked.push((begun, threads.iter().map(|thread| thread.last).max().unwrap_or(0)));
        for (number, thread) in threads.into_iter().enumerate() {
            let number = if self.by_thread { number as u16 } else { 0 };
            self.summary.elapsed_ns = self.summary.elapsed_ns.max(thread.last);
            self.summary.logged.1 += thread.log_dropped;
            self.summary.unissued.add(thread.unissued);
            self.summary.ramp += thread.ramp;
            self.summary.depths.extend(thread.depths.map(|depths| (worker, depths)));
            self.line.merge(&thread.line);
            for row in thread.rows {
                let key = (number, row.op, row.name, row.errno, row.interval);
                match rows.get_mut(&key) {
                    Some(sum) => {
                        sum.count += row.count;
                        sum.bytes += row.bytes;
                        histogram::merge(&mut sum.response, &row.response);
                        histogram::merge(&mut sum.service, &row.service);
                    }
                    None => {
                        rows.insert(key, row);
                    }
                }
            }
            for l in thread.late {
                let sum = late
                    .entry(l.interval)
                    .or_insert_with(|| Late { interval: l.interval, ..Late::default() });
                histogram::merge(&mut sum.histogram, &l.histogram);
                sum.sum += l.sum;
                sum.max = sum.max.max(l.max);
            }
            levels.resize(levels.len().max(thread.busy.len()).max(thread.most.len()), (0, 0));
            for (sum, busy) in levels.iter_mut().zip(&thread.busy) {
                sum.0 += busy;
            }
            for (sum, most) in levels.iter_mut().zip(&thread.most) {
                sum.1 = if apart { sum.1 + most } else { sum.1.max(*most) };
            }
        }
        for row in rows.values().filter(|row| row.op != OTHER) {
            self.summary.requests += row.count;
            self.summary.bytes += row.bytes;
            match row.errno {
                0 => {}
                crate::request::SHORT => self.summary.short += row.count,
                _ => self.summary.errors += row.count,
            }
        }
        self.late = late.into_values().collect();
        let elapsed = self.summary.elapsed_ns;
        self.flight.extend(levels.into_iter().enumerate().filter(|(_, l)| l.1 > 0 || l.0 > 0).map(
            |(i, l)| {
                // The last interval is only as long as the run, and the last of all that there may be as long as what is left.
                let left = elapsed.saturating_sub((i as i64).saturating_mul(interval)).max(1);
                let length = if i as u64 + 1 < MOST_INTERVALS { left.min(interval) } else { left };
                let level = Level { interval: i as u32, mean: l.0 as f64 / length as f64, max: l.1 };
                WorkerLevel { worker, level }
            },
        ));
        self.ops.extend(rows.into_iter().map(|(key, row)| OpRow { worker, thread: key.0, row }));
    }

    /// Lateness of the whole run.
    pub fn lateness(&self) -> Sparse {
        let mut sum = Sparse::new();
        self.late.iter().for_each(|l| histogram::merge(&mut sum, &l.histogram));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(count: u64) -> Recorded {
        let row = Row {
            op: 0,
            name: 0,
            errno: 0,
            interval: 0,
            count,
            bytes: 10 * count,
            response: Sparse::new(),
            service: vec![(count as u16, count)],
        };
        Recorded { rows: vec![row], ..Recorded::default() }
    }

    #[test]
    fn threads_are_merged_unless_they_are_asked_for() {
        for by_thread in [false, true] {
            let mut outcome = Outcome { by_thread, ..Outcome::default() };
            outcome.add(0, vec![thread(1), thread(2)], false);
            outcome.add(1, vec![thread(4)], false);
            let seen: Vec<_> = outcome.ops.iter().map(|r| (r.worker, r.thread, r.row.count)).collect();
            let apart: &[_] =
                if by_thread { &[(0, 0, 1), (0, 1, 2), (1, 0, 4)] } else { &[(0, 0, 3), (1, 0, 4)] };
            assert_eq!(seen, apart);
            assert_eq!((outcome.summary.requests, outcome.summary.bytes), (7, 70));
        }
    }
}
