//! Uniform loads on real files: errors, stopping, what is left behind.

mod common;

use common::{plan, run};
use loadstone_engine::{SHORT, start};
use loadstone_plan::Plan;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

fn uniform(dir: &Path, backend: &str, depth: u32, reads: f64, size: u64, requests: u64) -> Value {
    let mut plan = plan(dir, backend, depth);
    plan["workers"][0]["source"] = json!({"kind": "uniform", "reads": reads, "size": size});
    plan["workers"][0]["requests"] = json!(requests);
    plan.as_object_mut().unwrap().remove("log");
    plan
}

fn permitted(backend: &str) -> bool {
    let refused = loadstone_engine::uring_available().err().filter(|_| backend == "io_uring");
    if let Some(e) = &refused {
        common::skipped(e);
    }
    refused.is_none()
}

#[test]
fn misaligned_direct_requests_are_counted_as_einval() {
    // Not every file system refuses: tmpfs has no direct I/O to misalign.
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    for (backend, depth) in [("sync", 1), ("sync", 4), ("io_uring", 4)] {
        if !permitted(backend) {
            continue;
        }
        let mut plan = uniform(dir.path(), backend, depth, 0.5, 1000, 5000);
        plan["targets"][0]["direct"] = json!(true);
        let outcome = match start(Plan::parse(&plan.to_string()).unwrap()) {
            Ok(run) => run.join().unwrap(),
            Err(e) => {
                common::skipped(e);
                return;
            }
        };
        let failed: u64 =
            outcome.ops.iter().filter(|r| r.row.errno == libc::EINVAL).map(|r| r.row.count).sum();
        let aligned: u64 = outcome.ops.iter().filter(|r| r.row.errno == 0).map(|r| r.row.count).sum();
        assert_eq!((outcome.summary.requests, outcome.summary.errors), (5000, failed));
        assert_eq!(failed + aligned, 5000);
        // A length of 1000 bytes is never whole sectors.
        assert_eq!(aligned, 0, "{backend}");
        assert!(outcome.ops.iter().all(|r| r.row.bytes == 0 && !r.row.service.is_empty()));
        assert!(outcome.summary.failure.is_none() && !outcome.summary.partial);
    }
}

#[test]
fn reads_beyond_the_end_are_short_transfers() {
    let dir = tempfile::tempdir().unwrap();
    for backend in ["sync", "io_uring"] {
        if !permitted(backend) {
            continue;
        }
        let mut plan = uniform(dir.path(), backend, 4, 1.0, 4096, 0);
        plan["steps"][1]["duration_ns"] = json!(60_000_000_000u64);
        let run = start(Plan::parse(&plan.to_string()).unwrap()).unwrap();
        let begun = Instant::now();
        while run.live().all.counts.requests < 1000 && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Half of the file goes away under the run, in the middle of a block.
        let file = std::fs::OpenOptions::new().write(true).open(dir.path().join("target")).unwrap();
        file.set_len((8 << 20) + 100).unwrap();
        let seen = run.live().all.counts.requests;
        while run.live().all.counts.requests < seen + 100_000 && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        run.stop();
        let outcome = run.join().unwrap();
        let short: u64 = outcome.ops.iter().filter(|r| r.row.errno == SHORT).map(|r| r.row.count).sum();
        assert!(short > 0 && short == outcome.summary.short && outcome.summary.errors == 0, "{backend}");
        assert!(outcome.summary.partial);
    }
}

#[test]
fn stopping_keeps_what_was_measured_and_marks_it() {
    let dir = tempfile::tempdir().unwrap();
    for (backend, depth) in [("null", 1), ("sync", 3), ("io_uring", 16)] {
        if !permitted(backend) {
            continue;
        }
        for rate in [0.0, 2000.0] {
            let mut plan = uniform(dir.path(), backend, depth, 1.0, 4096, 0);
            if rate > 0.0 {
                plan["workers"][0]["source"]["rate"] = json!(rate);
                plan["workers"][0]["pace"] = json!({"kind": "open", "speed": 1.0});
            }
            let run = start(Plan::parse(&plan.to_string()).unwrap()).unwrap();
            let progress = run.progress();
            let begun = Instant::now();
            while progress.load(std::sync::atomic::Ordering::Relaxed) < 100
                && begun.elapsed() < Duration::from_secs(30)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            run.stop();
            let outcome = run.join().unwrap();
            assert!(outcome.summary.partial && outcome.summary.requests >= 100, "{backend}");
            assert_eq!(progress.load(std::sync::atomic::Ordering::Relaxed), outcome.summary.requests);
            let rows: u64 = outcome.ops.iter().map(|r| r.row.count).sum();
            assert_eq!(rows, outcome.summary.requests);
            assert!(run.join().is_err(), "the outcome can be taken once");
        }
    }
}

#[test]
fn a_stop_while_filling_removes_the_half_filled_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = uniform(dir.path(), "sync", 1, 1.0, 4096, 10);
    plan["targets"][0]["size"] = json!(2u64 << 30);
    plan["workers"][0]["map"]["objects"][0]["size"] = json!(2u64 << 30);
    let run = match start(Plan::parse(&plan.to_string()).unwrap()) {
        Ok(run) => run,
        Err(e) => return common::skipped(e),
    };
    run.stop();
    let outcome = run.join().unwrap();
    assert!(outcome.summary.partial && outcome.summary.requests == 0);
    assert!(!dir.path().join("target").exists());
}

#[test]
fn filled_targets_hold_data_that_is_nowhere_the_same() {
    let dir = tempfile::tempdir().unwrap();
    run(&uniform(dir.path(), "sync", 1, 1.0, 4096, 10));
    let bytes = std::fs::read(dir.path().join("target")).unwrap();
    let blocks: std::collections::HashSet<_> = bytes.chunks(4096).collect();
    assert_eq!((bytes.len(), blocks.len()), (16 << 20, (16 << 20) / 4096));
}

#[test]
fn reads_only_workers_cannot_write() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("target"), vec![5; 16 << 20]).unwrap();
    common::trace(&dir.path().join("trace.parquet"), &common::busy(300));
    let mut plan = plan(dir.path(), "sync", 1);
    plan["targets"][0]["prepare"] = json!("none");
    plan["targets"][0]["allow_destroy"] = json!(false);
    plan["workers"][0]["reads_only"] = json!(true);
    let outcome = run(&plan);
    let refused: u64 = outcome.ops.iter().filter(|r| r.row.errno == libc::EBADF).map(|r| r.row.count).sum();
    assert_eq!(refused, 100);
    assert!(std::fs::read(dir.path().join("target")).unwrap().iter().all(|b| *b == 5));
}

#[test]
fn a_dropped_run_ends() {
    let dir = tempfile::tempdir().unwrap();
    let plan = uniform(dir.path(), "null", 1, 1.0, 4096, 0);
    drop(start(Plan::parse(&plan.to_string()).unwrap()).unwrap());
}

#[test]
fn workers_that_cannot_be_pinned_are_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = uniform(dir.path(), "sync", 1, 1.0, 4096, 10);
    plan["workers"][0]["cpus"] = json!([900]);
    let refused = start(Plan::parse(&plan.to_string()).unwrap()).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("pinning to CPUs [900]"), "{refused}");
    assert!(!dir.path().join("target").exists());
}

#[test]
fn several_workers_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = uniform(dir.path(), "null", 1, 1.0, 4096, 1000);
    let mut second = plan["workers"][0].clone();
    second["group"] = json!("vm2");
    second["requests"] = json!(500);
    second["source"]["reads"] = json!(0.0);
    plan["workers"].as_array_mut().unwrap().push(second);
    let outcome = run(&plan);
    let count =
        |w| outcome.ops.iter().filter(|r| r.worker == w).map(|r| (r.row.op, r.row.count)).collect::<Vec<_>>();
    assert_eq!((count(0), count(1)), (vec![(0, 1000)], vec![(1, 500)]));
    assert_eq!(outcome.groups, ["", "vm2"]);
}
