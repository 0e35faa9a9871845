//! What is written in other tools' formats reads back as the same requests, as far as the format can say.

mod common;

use common::{format, read};
use loadstone_trace::export::{Exporter, Losses, by_name};
use loadstone_trace::{Batch, Info, NONE, Object, Op, OpenOptions};
use std::path::{Path, PathBuf};

/// The capture of the examples, cut down.
fn loop0() -> (Batch, Info) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/loop0.parquet"));
    read(path, &OpenOptions::default()).unwrap()
}

fn write(name: &str, path: &Path, (all, info): &(Batch, Info)) -> Losses {
    let mut exporter = Exporter::create(by_name(name).unwrap(), path, false).unwrap();
    exporter.write(all, || info.clone()).unwrap();
    exporter.finish().unwrap()
}

/// The rows of a batch that pass.
fn only(all: &Batch, keep: impl Fn(usize) -> bool) -> Vec<usize> {
    (0..all.len()).filter(|&i| keep(i)).collect()
}

fn picked<T: Copy>(column: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&i| column[i]).collect()
}

fn round_trip(name: &str, file: &str) -> (Batch, Batch, Losses, Info) {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join(file);
    let traced = loop0();
    let losses = write(name, &path, &traced);
    let (back, info) = read(&path, &format(name)).unwrap();
    assert_eq!(losses.written, back.len() as u64);
    (traced.0, back, losses, info)
}

#[test]
fn blktrace_keeps_everything() {
    let (all, back, losses, info) = round_trip("blktrace", "t.blktrace.0");
    assert_eq!(all, back);
    assert_eq!(losses, Losses { written: all.len() as u64, ..Losses::default() });
    let (_, before) = loop0();
    assert_eq!((info.objects, info.actors), (before.objects, before.actors));
    assert_eq!((info.counts.lost, info.counts.unfinished), (0, 0));
}

/// Readers count from the first event, and the first was the first request: the time before it was lost.
#[test]
fn blktrace_keeps_the_time_before_the_first_request() {
    let dir = tempfile::tempdir().unwrap();
    let all = Batch {
        time: vec![11_413_000, 12_000_000],
        op: vec![Op::Read as u8; 2],
        object: vec![0; 2],
        offset: vec![4096, 8192],
        size: vec![512; 2],
        latency: vec![NONE, 100],
        flags: vec![0; 2],
        actor: vec![0; 2],
        ..Batch::default()
    };
    let path = dir.path().join("t.blktrace.0");
    write("blktrace", &path, &(all.clone(), Info { start_unix_ns: Some(5_000_000_007), ..Info::default() }));
    let (back, info) = read(&path, &format("blktrace")).unwrap();
    assert_eq!(all, back);
    assert_eq!((info.start_unix_ns, info.counts.lost), (Some(5_000_000_007), 0));
}

#[test]
fn spc_and_msr_keep_reads_and_writes() {
    for (name, file) in [("spc", "t.spc"), ("msr", "t.csv")] {
        let (all, back, losses, _) = round_trip(name, file);
        let rows = only(&all, |i| all.op[i] <= Op::Write as u8);
        assert_eq!(losses.ops, (all.len() - rows.len()) as u64, "{name}");
        assert!(losses.ops > 0 && losses.flags > 0);
        let times = picked(&all.time, &rows);
        let shift = if name == "msr" { times[0] } else { 0 };
        assert_eq!(times.iter().map(|t| t - shift).collect::<Vec<_>>(), back.time, "{name}");
        assert_eq!(picked(&all.offset, &rows), back.offset);
        assert_eq!(picked(&all.size, &rows), back.size);
        assert_eq!(picked(&all.op, &rows), back.op);
        if name == "msr" {
            assert_eq!(picked(&all.latency, &rows), back.latency);
            assert_eq!(losses.latencies, 0);
        } else {
            assert_eq!(losses.latencies, rows.len() as u64);
        }
    }
}

/// Two objects became one where the format made their names alike.
#[test]
fn no_two_objects_or_actors_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let named = |names: &[&str]| -> Vec<Object> {
        (0..).zip(names).map(|(id, name)| Object { id, name: (*name).into() }).collect()
    };
    // The last one has no name and would be called by its number.
    let objects = named(&["/d/my file", "/d/my_file", "app", "app.0", "259,6", "6.0", ""]);
    let actors = named(&["7 a", "7", "", "2", "x", "4 y"]);
    let rows = objects.len();
    let all = Batch {
        time: (0..rows as i64).map(|i| i * 1000 + 5000).collect(),
        op: vec![Op::Read as u8; rows],
        object: (0..rows as u32).collect(),
        offset: vec![4096; rows],
        size: vec![512; rows],
        latency: vec![100; rows],
        flags: vec![0; rows],
        actor: (0..rows as u32).map(|i| i % actors.len() as u32).collect(),
        ..Batch::default()
    };
    let traced = (all, Info { objects, actors, layer: "block".into(), ..Info::default() });
    for (name, file, changed, actors, lead) in [
        ("blktrace", "t.blktrace.0", 6, 0, 0),
        ("iolog", "t.iolog", 2, 5, 0),
        ("msr", "t.msr", 6, 5, 5000),
        ("spc", "t.spc", 6, 5, 0),
    ] {
        let path = dir.path().join(file);
        let losses = write(name, &path, &traced);
        let (back, info) = read(&path, &format(name)).unwrap();
        let mut ids = back.object.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((back.len(), ids.len()), (rows, rows), "{name}");
        assert_eq!((losses.names, losses.actors, losses.lead_ns), (changed, actors, lead), "{name}");
        if name == "blktrace" {
            assert_eq!(back.actor, traced.0.actor);
        }
        let names: std::collections::HashSet<&str> = info.objects.iter().map(|o| &*o.name).collect();
        assert_eq!(names.len(), rows, "{name}: {names:?}");
    }
}

#[test]
fn iolog_of_blocks_is_read_as_blocks() {
    let (all, back, losses, info) = round_trip("iolog", "t.iolog");
    assert_eq!((losses.ops, back.len()), (0, all.len()));
    assert_eq!((&all.time, &all.offset, &all.size), (&back.time, &back.offset, &back.size));
    assert!(all.op.contains(&(Op::Flush as u8)));
    assert_eq!((&all.op, info.layer.as_str()), (&back.op, "block"));
    // Added, opened and closed.
    assert_eq!((info.counts.other, info.objects[0].name.as_str()), (3, "7,0"));
}

#[test]
fn what_cannot_be_said_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let all = Batch {
        time: vec![0, 1, 1500, 1600],
        op: [Op::Write, Op::Stat, Op::Read, Op::Write].map(|op| op as u8).to_vec(),
        object: vec![0, 0, 1, 1],
        offset: vec![100, NONE, 4096, NONE],
        size: vec![512, NONE, 700, NONE],
        latency: vec![NONE; 4],
        flags: vec![0; 4],
        actor: vec![0; 4],
        content: vec![7, 7, 0, 7],
        after: vec![0, 1, 1, 1],
        think: vec![NONE, 5, 5, 5],
        ..Batch::default()
    };
    let traced = (all, Info::default());
    let spc = write("spc", &dir.path().join("t.spc"), &traced);
    assert_eq!((spc.written, spc.ops, spc.places, spc.sectors), (2, 1, 1, 1));
    let msr = write("msr", &dir.path().join("t.msr"), &traced);
    assert_eq!((msr.written, msr.times, msr.latencies), (2, 0, 2));
    let iolog = write("iolog", &dir.path().join("t.iolog"), &traced);
    assert_eq!((iolog.written, iolog.times), (2, 1));
    let blktrace = write("blktrace", &dir.path().join("t.blktrace"), &traced);
    assert_eq!((blktrace.written, blktrace.sectors), (2, 2));
    for losses in [&spc, &msr, &iolog, &blktrace] {
        assert_eq!((losses.contents, losses.dependencies), (1, 1), "of what was written");
    }
    assert!(dir.path().join("t.blktrace.0").exists());
    let again = Exporter::create(by_name("spc").unwrap(), &dir.path().join("t.spc"), false);
    assert!(again.err().unwrap().to_string().contains("`force`"));
    assert!(by_name("qcow").err().unwrap().to_string().contains("iolog"));
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 4, "nothing is left aside");
}
