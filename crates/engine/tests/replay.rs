//! Replays of small traces on real files, checked request by request through the full log.

mod common;

use common::{UNKNOWN, busy, log, plan, run, trace, trace_by};
use loadstone_engine::Unissued;
use loadstone_plan::Plan;
use proptest::prelude::*;
use serde_json::json;

const BACKENDS: [(&str, u32); 4] = [("null", 1), ("sync", 1), ("sync", 8), ("io_uring", 8)];

/// Leaves out io_uring where it is not permitted, visibly.
fn backends() -> impl Iterator<Item = (&'static str, u32)> {
    let permitted = loadstone_engine::uring_available();
    if let Err(e) = &permitted {
        common::skipped(e);
    }
    BACKENDS.into_iter().filter(move |b| b.0 != "io_uring" || permitted.is_ok())
}

#[test]
fn every_request_is_performed_once_and_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = busy(20_000);
    rows.push((20_000_000, 2, loadstone_trace::NONE, loadstone_trace::NONE, 100));
    rows.push((20_000_000, 3, 8192, 4096, 100));
    trace(&dir.path().join("trace.parquet"), &rows);
    for (backend, depth) in backends() {
        let outcome = run(&plan(dir.path(), backend, depth));
        let s = &outcome.summary;
        assert_eq!((s.requests, s.errors, s.short, s.partial), (20_002, 0, 0, false), "{backend}");
        assert_eq!((s.logged, s.latencies), ((20_002, 0), (20_002, 0)), "{backend}");
        let count = |op| outcome.ops.iter().filter(|r| r.row.op == op).map(|r| r.row.count).sum::<u64>();
        assert_eq!([0, 1, 2, 3].map(count), [13_333, 6667, 1, 1], "{backend}");
        let in_histograms: u64 = outcome.ops.iter().flat_map(|r| &r.row.service).map(|b| b.1).sum();
        assert_eq!(in_histograms, 20_002);
        let log = log(dir.path());
        let mut seen = log.actor.clone();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..20_002), "{backend}");
        for (i, actor) in log.actor.iter().enumerate() {
            let (_, op, offset, size, _) = rows[*actor as usize];
            assert_eq!(log.op[i], op);
            assert!(op == 2 || (log.offset[i], log.size[i]) == (offset, size));
        }
    }
}

#[test]
fn the_pace_changes_times_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let rows = busy(3000);
    trace(&dir.path().join("trace.parquet"), &rows);
    for (backend, depth) in backends() {
        for speed in [0.5, 1.0, 2.0] {
            let mut plan = plan(dir.path(), backend, depth);
            plan["workers"][0]["pace"] = json!({"kind": "open", "speed": speed});
            let outcome = run(&plan);
            let log = log(dir.path());
            assert_eq!(log.len(), rows.len());
            for i in 0..log.len() {
                let (time, op, offset, size, _) = rows[log.actor[i] as usize];
                assert_eq!((log.op[i], log.offset[i], log.size[i]), (op, offset, size));
                assert!(log.time[i] >= (time as f64 / speed) as i64, "{backend}: issued before its time");
            }
            assert_eq!(outcome.late.iter().flat_map(|l| &l.histogram).map(|b| b.1).sum::<u64>(), 3000);
            let responses: u64 = outcome.ops.iter().flat_map(|r| &r.row.response).map(|b| b.1).sum();
            assert_eq!(responses, 3000);
            // The trace's own requests in flight are told on the same timeline.
            assert!(!outcome.flight_trace.is_empty());
        }
    }
}

#[test]
fn what_was_due_and_did_not_go_out_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..300_000).map(|i| (i * 200, 0, i % 100 * 4096, 4096, 100)).collect();
    trace(&dir.path().join("trace.parquet"), &rows);
    for (backend, depth) in backends() {
        for order in ["none", "completion"] {
            let mut plan = plan(dir.path(), backend, depth);
            plan["workers"][0]["pace"] = json!({"kind": "open", "speed": 1.0});
            plan["workers"][0]["order"] = json!(order);
            plan["steps"][1]["duration_ns"] = json!(50_000_000);
            plan.as_object_mut().unwrap().remove("log");
            let summary = run(&plan).summary;
            assert!(!summary.unissued.more, "{order} {backend}");
            let due = summary.requests + summary.unissued.requests;
            assert_eq!(due, 250_000, "{order} {backend}: {} done", summary.requests);
            // Without an end, or at a closed pace, nothing is cut off.
            plan["steps"][1].as_object_mut().unwrap().remove("duration_ns");
            let summary = run(&plan).summary;
            assert_eq!((summary.requests, summary.unissued), (300_000, Unissued::default()));
        }
    }
}

#[test]
fn response_counts_the_wait_behind_a_slow_request() {
    let dir = tempfile::tempdir().unwrap();
    // A write of 8 MiB that is synced, then small reads that are due while it goes on.
    let mut rows = vec![(0, 1, 0, 8 << 20, 0)];
    rows.extend((1..50).map(|i| (i * 100, 0, i * 4096, 4096, 0)));
    trace(&dir.path().join("trace.parquet"), &rows);
    let mut plan = plan(dir.path(), "sync", 1);
    plan["workers"][0]["pace"] = json!({"kind": "open", "speed": 1.0});
    plan["targets"][0]["sync"] = json!("dsync");
    let outcome = run(&plan);
    let log = log(dir.path());
    let slow_end = log.time[0] + log.latency[0];
    assert_eq!(log.actor[0], 0);
    let waited = slow_end - rows[49].0;
    let responses: Vec<_> =
        outcome.ops.iter().filter(|r| r.row.op == 0).flat_map(|r| &r.row.response).collect();
    let services: Vec<_> =
        outcome.ops.iter().filter(|r| r.row.op == 0).flat_map(|r| &r.row.service).collect();
    assert!(log.time[1..].iter().all(|t| *t >= slow_end));
    // Every response holds at least what was left of the slow write; service times do not add it.
    let least = loadstone_engine::histogram::bounds(usize::from(responses[0].0)).1;
    assert!(least as i64 > waited, "{least} {waited}");
    assert_eq!(services.iter().map(|b| b.1).sum::<u64>(), 49);
    let sum: i64 = log.latency[1..].iter().sum();
    assert!(log.latency[1..].iter().all(|l| *l <= sum) && outcome.late[0].max >= waited);
}

#[test]
fn orders_need_latencies() {
    let dir = tempfile::tempdir().unwrap();
    trace(&dir.path().join("trace.parquet"), &[(0, 0, 0, 4096, UNKNOWN)]);
    for (order, says) in [("completion", "completion order needs"), ("dependency", "dependencies need")] {
        let mut plan = plan(dir.path(), "null", 1);
        plan["workers"][0]["order"] = json!(order);
        let plan = Plan::parse(&plan.to_string()).unwrap();
        let error = loadstone_engine::start(plan).err().unwrap().to_string();
        assert!(error.contains(says) && error.contains("--order none"), "{error}");
    }
}

#[test]
fn a_run_ends_at_its_time_whatever_its_requests_wait_for() {
    let dir = tempfile::tempdir().unwrap();
    // The second is taken by a thread that sees the end before it is due; the third waits for the second.
    let hour = 3_600_000_000_000;
    let rows: Vec<_> = (0..3).map(|i| (i * hour, 0, i * 4096, 4096, 1_000_000)).collect();
    trace_by(&dir.path().join("trace.parquet"), &rows, |_| 7);
    for order in ["completion", "dependency"] {
        for (backend, depth) in backends() {
            let mut plan = plan(dir.path(), backend, depth);
            plan["workers"][0]["order"] = json!(order);
            plan["workers"][0]["within_ns"] = json!(2 * hour);
            plan["workers"][0]["pace"] = json!({"kind": "open", "speed": 1.0});
            plan["steps"][1]["duration_ns"] = json!(100_000_000);
            plan.as_object_mut().unwrap().remove("log");
            let run = loadstone_engine::start(Plan::parse(&plan.to_string()).unwrap()).unwrap();
            assert!(run.wait(std::time::Duration::from_secs(60)), "{order} {backend}: still running");
            let outcome = run.join().unwrap();
            assert_eq!((outcome.summary.requests, outcome.summary.partial), (1, false), "{order} {backend}");
        }
    }
}

#[test]
fn a_chain_takes_its_think_times_and_not_its_latencies() {
    let dir = tempfile::tempdir().unwrap();
    // 200 requests that took 10 ms each, 1 ms of thought between: 2.2 s in the trace.
    let rows: Vec<_> = (0..200).map(|i| (i * 11_000_000, 0, i * 4096, 4096, 10_000_000)).collect();
    trace_by(&dir.path().join("trace.parquet"), &rows, |_| 7);
    for (backend, depth) in backends() {
        let mut spans = Vec::new();
        for think in [1.0, 4.0, 0.0] {
            let mut plan = plan(dir.path(), backend, depth);
            plan["workers"][0]["order"] = json!("dependency");
            plan["workers"][0]["think"] = json!(think);
            let outcome = run(&plan);
            let log = log(dir.path());
            assert_eq!((outcome.summary.requests, outcome.summary.errors), (200, 0));
            let least = if think > 0.0 { (1e6 / think) as i64 } else { 0 };
            for i in 1..log.len() {
                assert!(
                    log.time[i] - (log.time[i - 1] + log.latency[i - 1]) >= least,
                    "{backend} {think} {i}"
                );
                assert_eq!(log.offset[i], i as i64 * 4096, "{backend}: in the order of the trace");
            }
            spans.push(log.time[199]);
        }
        assert!(spans[0] > spans[1] && spans[1] > spans[2], "{backend}: {spans:?}");
    }
}

#[test]
fn a_request_that_cannot_be_placed_ends_the_run_and_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = busy(5000);
    rows.push((5_000_000, 16, 0, 4096, 100));
    trace(&dir.path().join("trace.parquet"), &rows);
    for (backend, depth) in backends() {
        let outcome = run(&plan(dir.path(), backend, depth));
        let failure = outcome.summary.failure.clone().unwrap();
        assert!(failure.contains("request 5000: op open"), "{failure}");
        assert_eq!((outcome.summary.requests, outcome.summary.partial), (5000, true), "{backend}");
        log(dir.path());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    /// Everything that had completed before a submission in the trace has completed before it again.
    #[test]
    fn completion_order_holds(
        steps in prop::collection::vec((0i64..3000, 1i64..20_000, any::<bool>(), 1i64..32), 2..300),
        open: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut time = 0;
        let rows: Vec<_> = steps.iter().enumerate().map(|(i, (gap, latency, write, blocks))| {
            time += gap;
            // Some completions are not known, and hold nobody back.
            let latency = if i % 10 == 9 { UNKNOWN } else { *latency };
            (time, u8::from(*write), (i as i64 * 97 % 2000) * 4096, blocks * 4096, latency)
        }).collect();
        trace(&dir.path().join("trace.parquet"), &rows);
        for (backend, depth) in backends() {
            let mut plan = plan(dir.path(), backend, depth);
            plan["workers"][0]["order"] = json!("completion");
            if open {
                plan["workers"][0]["pace"] = json!({"kind": "open", "speed": 3.0});
            }
            let outcome = run(&plan);
            prop_assert_eq!(outcome.summary.requests, rows.len() as u64);
            let log = log(dir.path());
            let mut replayed = vec![(0, 0); rows.len()];
            for i in 0..log.len() {
                replayed[log.actor[i] as usize] = (log.time[i], log.time[i] + log.latency[i]);
            }
            for (i, row) in rows.iter().enumerate() {
                for (j, before) in rows[..i].iter().enumerate() {
                    if before.4 != UNKNOWN && before.0 + before.4 <= row.0 {
                        prop_assert!(replayed[j].1 <= replayed[i].0, "{} {} {} {}", backend, depth, j, i);
                    }
                }
            }
        }
    }

    /// No request goes out before what it depends on has come back and its actor has thought.
    #[test]
    fn dependencies_hold(
        steps in prop::collection::vec((0i64..3000, 1i64..20_000, 0u32..4), 2..300),
        open: bool, think in 0u32..3, within in 0i64..30_000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut time = 0;
        let rows: Vec<_> = steps.iter().enumerate().map(|(i, (gap, latency, _))| {
            time += gap;
            let latency = if i % 10 == 9 { UNKNOWN } else { *latency };
            (time, 0, i as i64 * 4096, 4096, latency)
        }).collect();
        trace_by(&dir.path().join("trace.parquet"), &rows, |i| steps[i].2);
        for (backend, depth) in backends() {
            let mut plan = plan(dir.path(), backend, depth);
            plan["workers"][0]["order"] = json!("dependency");
            plan["workers"][0]["think"] = json!(think);
            plan["workers"][0]["within_ns"] = json!(within);
            if open {
                plan["workers"][0]["pace"] = json!({"kind": "open", "speed": 3.0});
            }
            let outcome = run(&plan);
            prop_assert_eq!(outcome.summary.requests, rows.len() as u64);
            let log = log(dir.path());
            let mut replayed = vec![(0, 0); rows.len()];
            for i in 0..log.len() {
                replayed[(log.offset[i] / 4096) as usize] = (log.time[i], log.time[i] + log.latency[i]);
            }
            for (i, row) in rows.iter().enumerate() {
                let cause = (0..i)
                    .filter(|&j| steps[j].2 == steps[i].2 && rows[j].4 != UNKNOWN && rows[j].0 + rows[j].4 <= row.0)
                    .max_by_key(|&j| rows[j].0 + rows[j].4)
                    .map(|j| (rows[j].0 + rows[j].4, j))
                    .filter(|(end, _)| row.0 - end <= within);
                // Of several that ended at one time, either may be the cause.
                let Some((end, _)) = cause else {
                    prop_assert!(!open || replayed[i].0 >= row.0 / 3, "{} {}: {}", backend, depth, i);
                    continue;
                };
                let thought = if think > 0 { (row.0 - end) / i64::from(think) } else { 0 };
                let ends = |j: &usize| steps[*j].2 == steps[i].2 && rows[*j].4 != UNKNOWN && rows[*j].0 + rows[*j].4 == end;
                let released = (0..i).filter(ends).map(|j| replayed[j].1).min().unwrap_or(0);
                prop_assert!(replayed[i].0 >= released + thought - 1, "{} {}: {}", backend, depth, i);
            }
        }
    }
}
