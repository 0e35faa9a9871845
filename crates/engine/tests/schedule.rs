//! When workers begin, pause and end, and what of a run is measured.

#[allow(dead_code)]
mod common;

use common::{plan, run};
use loadstone_engine::{Outcome, start};
use loadstone_plan::Plan;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// A plan of workers of these groups that read at 1000 requests a second.
fn paced(groups: &[&str], requests: u64) -> Value {
    let dir = std::path::Path::new("/");
    let mut plan = plan(dir, "null", 1);
    plan.as_object_mut().unwrap().remove("log");
    plan["interval_ns"] = json!(10 * MS);
    let worker = plan["workers"][0].clone();
    let worker = |group: &&str| {
        let mut worker = worker.clone();
        worker["group"] = json!(group);
        worker["requests"] = json!(requests);
        worker["source"] = json!({"kind": "uniform", "reads": 1.0, "size": 4096, "rate": 1000.0});
        worker["pace"] = json!({"kind": "open", "speed": 1.0});
        worker
    };
    plan["workers"] = groups.iter().map(worker).collect();
    plan
}

/// Requests of a worker, and the first and last interval they completed in.
fn of(outcome: &Outcome, worker: u16) -> (u64, u32, u32) {
    let rows: Vec<_> = outcome.ops.iter().filter(|row| row.worker == worker).map(|row| &row.row).collect();
    let intervals = rows.iter().map(|row| row.interval);
    (
        rows.iter().map(|row| row.count).sum(),
        intervals.clone().min().unwrap_or(0),
        intervals.max().unwrap_or(0),
    )
}

#[test]
fn a_worker_begins_after_others_and_after_its_delay() {
    let mut plan = paced(&["first", "first", "second", "third"], 100);
    plan["workers"][2]["schedule"] = json!({"after": ["first"]});
    plan["workers"][3]["schedule"] = json!({"after": ["second"], "delay_ns": 50 * MS});
    let outcome = run(&plan);
    assert!(!outcome.summary.partial && outcome.summary.requests == 400);
    let ends = of(&outcome, 0).2.max(of(&outcome, 1).2);
    let (second, third) = (of(&outcome, 2), of(&outcome, 3));
    assert!(second.1 >= ends, "{second:?} begins after {ends}");
    assert!(third.1 >= second.2 + 5, "{third:?} begins 50 ms after {second:?}");
}

#[test]
fn a_worker_ends_at_its_time_and_ends_others() {
    let mut plan = paced(&["short", "long"], 0);
    plan["steps"][1]["duration_ns"] = json!(60_000 * MS);
    plan["workers"][0]["schedule"] = json!({"duration_ns": 100 * MS, "ends_run": true});
    let outcome = run(&plan);
    // It is the end that the plan asks for.
    assert!(!outcome.summary.partial && outcome.summary.failure.is_none());
    // What a busy host had no time for before the end counts as not issued.
    assert!((1..=100).contains(&of(&outcome, 0).0));
    assert!(outcome.summary.elapsed_ns < 30_000 * MS as i64);
}

#[test]
fn what_takes_cpu_time_issues_nothing_and_ends_with_the_others() {
    for sorts in [false, true] {
        let mut plan = paced(&["io"], 100);
        let source =
            json!({"kind": "cpu", "load": 0.5, "chunk_ns": 2 * MS, "sorts": sorts, "with_others": true});
        let cpu = json!({"group": "cpu", "source": source, "backend": "null", "depth": 1});
        plan["workers"].as_array_mut().unwrap().push(cpu);
        let outcome = run(&plan);
        assert!(!outcome.summary.partial && outcome.summary.failure.is_none());
        assert_eq!((of(&outcome, 0).0, of(&outcome, 1).0), (100, 0));
    }
}

#[test]
fn a_stop_reaches_workers_that_have_not_begun() {
    let mut plan = paced(&["endless", "never"], 0);
    plan["workers"][1]["schedule"] = json!({"after": ["endless"]});
    let run = start(Plan::parse(&plan.to_string()).unwrap()).unwrap();
    while run.live().all.counts.requests == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run.stop();
    let outcome = run.join().unwrap();
    assert!(outcome.summary.partial);
    assert_eq!(of(&outcome, 1).0, 0);
}

#[test]
fn what_completes_in_the_ramp_is_counted_apart() {
    let mut plan = paced(&["one"], 0);
    plan["steps"][1]["ramp_ns"] = json!(200 * MS);
    plan["steps"][1]["duration_ns"] = json!(100 * MS);
    let outcome = run(&plan);
    let summary = &outcome.summary;
    // A busy host completes some requests later than they are due, and has no time for the last ones.
    assert_eq!(summary.ramp + summary.requests + summary.unissued.requests, 300);
    assert!((1..=201).contains(&summary.ramp), "{}", summary.ramp);
    assert!(outcome.ops.iter().all(|row| row.row.interval <= 10));
}

#[test]
fn a_worker_pauses_when_all_its_requests_have_completed() {
    for depth in [1, 4] {
        let backend = if depth > 1 { "io_uring" } else { "sync" };
        if let Some(e) = loadstone_engine::uring_available().err().filter(|_| depth > 1) {
            common::skipped(e);
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut plan = plan(dir.path(), backend, depth);
        plan["workers"][0]["source"] = json!({"kind": "uniform", "reads": 1.0, "size": 4096});
        plan["workers"][0]["requests"] = json!(20);
        plan["workers"][0]["pause"] = json!({"requests": 4, "ns": 20 * MS});
        run(&plan);
        let issued = common::log(dir.path());
        // A busy host may be late at any request, so only the pauses are sure to be there.
        assert_eq!(issued.time.len(), 20);
        let last =
            |group: usize| (group..group + 4).map(|i| issued.time[i] + issued.latency[i]).max().unwrap();
        for group in (0..16).step_by(4) {
            assert!(issued.time[group + 4] - last(group) >= 20 * MS as i64, "all had completed");
        }
    }
}

#[test]
fn discards_may_be_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(dir.path(), "sync", 1);
    plan.as_object_mut().unwrap().remove("log");
    plan["workers"][0]["source"] = json!({"kind": "uniform", "reads": 0.5, "size": 65536, "discards": true});
    plan["workers"][0]["requests"] = json!(400);
    let outcome = run(&plan);
    let counts: Vec<(u8, u64)> = outcome.ops.iter().map(|row| (row.row.op, row.row.count)).collect();
    assert!(counts.iter().all(|(op, _)| [0, 3].contains(op)), "{counts:?}");
    assert_eq!((outcome.summary.requests, outcome.summary.errors), (400, 0));
    let held = std::os::unix::fs::MetadataExt::blocks(&dir.path().join("target").metadata().unwrap());
    assert!(held * 512 < 16 << 20, "holes were punched");
}
