//! What the engine's tests share: small traces, plans around them, and logs read back.

use loadstone_engine::{Outcome, start};
use loadstone_plan::Plan;
use loadstone_trace::{Batch, Info, NONE, OpenOptions, Requests, parquet};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;

/// Says that a part of a test cannot run here, past the harness, which keeps what passing tests print.
pub fn skipped(reason: impl std::fmt::Display) {
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped: {}: {reason}", thread.name().unwrap_or("a test"));
}

/// A request of a trace: time, op, offset, size, latency.
pub type Row = (i64, u8, i64, i64, i64);

/// Writes a trace; every request's actor is its row number.
pub fn trace(path: &Path, rows: &[Row]) {
    trace_by(path, rows, |i| i as u32);
}

/// Writes a trace whose requests have these actors.
pub fn trace_by(path: &Path, rows: &[Row], actor: impl Fn(usize) -> u32) {
    let mut batch = Batch::default();
    for (i, (time, op, offset, size, latency)) in rows.iter().enumerate() {
        batch.time.push(*time);
        batch.op.push(*op);
        batch.object.push(0);
        batch.offset.push(*offset);
        batch.size.push(*size);
        batch.latency.push(*latency);
        batch.flags.push(0);
        batch.actor.push(actor(i));
    }
    let mut writer = parquet::Writer::create(path, true).unwrap();
    writer.write(&batch).unwrap();
    writer.finish(Info::default()).unwrap();
}

/// A plan that replays `trace` on `target` (or on null), to be changed by the test.
pub fn plan(dir: &Path, backend: &str, depth: u32) -> Value {
    let null = backend == "null";
    json!({
        "version": 1,
        "targets": [{"id": "t", "kind": if null { "null" } else { "file" }, "size": 16 << 20,
                     "path": if null { "".into() } else { dir.join("target") }, "prepare": "fill", "allow_destroy": true}],
        "artefacts": [{"id": "a", "kind": "trace", "path": dir.join("trace.parquet")}],
        "workers": [{"source": {"kind": "trace", "artefact": "a"}, "backend": backend, "depth": depth,
                     "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 16 << 20}]}}],
        "steps": [{"step": "prepare"}, {"step": "run"}],
        "log": dir.join("log.parquet"),
    })
}

/// Runs a plan to its end.
pub fn run(plan: &Value) -> Outcome {
    start(Plan::parse(&plan.to_string()).unwrap()).unwrap().join().unwrap()
}

/// The log of a run; rows are in order of issue.
#[allow(dead_code)]
pub fn log(dir: &Path) -> Batch {
    let path = dir.join("log.parquet");
    let mut reader = loadstone_trace::open(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let (mut all, mut batch) = (Batch::default(), Batch::default());
    while reader.next(&mut batch).unwrap() {
        all.time.append(&mut batch.time);
        all.op.append(&mut batch.op);
        all.object.append(&mut batch.object);
        all.offset.append(&mut batch.offset);
        all.size.append(&mut batch.size);
        all.latency.append(&mut batch.latency);
        all.flags.append(&mut batch.flags);
        all.actor.append(&mut batch.actor);
    }
    std::fs::remove_file(path).unwrap();
    all
}

/// A trace of `n` small requests one microsecond apart with uneven latencies.
pub fn busy(n: i64) -> Vec<Row> {
    let at = |i: i64| (i * 7919 % 4096) * 4096;
    (0..n).map(|i| (i * 1000, (i % 3 == 0) as u8, at(i), 4096, 500 + i * 37 % 9000)).collect()
}

/// Latency not known.
#[allow(dead_code)]
pub const UNKNOWN: i64 = NONE;
