//! Reads bytes as a format and checks what every consumer relies on; for fuzzing and its seeds.

use crate::columns::{At, Column, Columns};
use crate::describe::Describe;
use crate::input::Input;
use crate::tree::{self, Entry, Tree};
use crate::{Batch, NONE, Op, OpenOptions, Requests, Result, from_inputs, open};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

mod right;

/// The column map of the delimited target: time in us, op, object, offset, size, latency, actor.
pub fn columns() -> Columns {
    let column = |at: usize, unit: &str| Some(Column { at: At::Position(at), unit: unit.into() });
    Columns {
        time: column(0, "us"),
        op: column(1, ""),
        object: column(2, ""),
        offset: column(3, "sector"),
        size: column(4, "byte"),
        latency: column(5, "ms"),
        actor: column(6, ""),
        comment: "#".into(),
        values: [("read", vec!["R", "0"]), ("write", vec!["W", "1"]), ("ignore", vec![""])]
            .map(|(op, values)| (op.into(), values.into_iter().map(String::from).collect()))
            .into(),
        ..Columns::default()
    }
}

/// Reads a trace of a target (a format's name, or `compressed`) to its end; its number of requests.
///
/// # Errors
/// When the reader finds the bytes wrong.
///
/// # Panics
/// When what it delivers breaks a promise.
pub fn exercise(target: &str, bytes: &[u8]) -> Result<u64> {
    if target == "right" {
        let Some((kind, bytes)) = right::made(bytes) else { return Ok(0) };
        return exercise(kind, &bytes);
    }
    if target == "tables" {
        // The first byte chooses the table, so that one target fuzzes them all.
        let Some((&pick, rest)) = bytes.split_first() else { return Ok(0) };
        let name = crate::formats::table(usize::from(pick.wrapping_sub(b'0')));
        return exercise(name, rest);
    }
    let format = (target != "compressed").then(|| target.to_string());
    // The length chooses how lenient the reader is, so that both ways are explored.
    let lenient = bytes.len() % 2 == 1;
    let options = OpenOptions {
        format,
        threads: 1,
        columns: (target == "delimited").then(columns),
        max_damaged: if lenient { 1000 } else { 0 },
        salvage: lenient && bytes.len() % 8 == 3,
        spread_ties: lenient && bytes.len() % 16 == 5,
        dependencies_ns: (bytes.len() % 8 == 3).then_some(1_000_000),
        sort: lenient && bytes.len() % 4 == 1,
        ..OpenOptions::default()
    };
    let mut reader = if target == "parquet" {
        let (_file, path) = tempfile(bytes);
        open(std::slice::from_ref(&path), &options)?
    } else {
        from_inputs(vec![Input::from_bytes(Path::new("input"), bytes.to_vec())?], &options)?
    };
    let (mut batch, mut requests, mut last) = (Batch::default(), 0, i64::MIN);
    let mut describe = Describe::default();
    let mut kept = Kept::default();
    while reader.next(&mut batch)? {
        check(&batch, &mut last);
        kept.0.push_back(batch.clone());
        requests += batch.len() as u64;
        describe.add(&batch);
    }
    let info = reader.info();
    assert_eq!(info.counts.requests, requests);
    if matches!(info.layer.as_str(), "file" | "nfs") {
        let names: Vec<String> = info.objects.iter().map(|object| object.name.clone()).collect();
        check_tree(&tree::of(&mut kept, &names)?);
    }
    let found = describe.finish(info);
    assert_eq!(found.requests, requests);
    Ok(requests)
}

/// Requests to be read again.
#[derive(Default)]
struct Kept(VecDeque<Batch>);

impl Requests for Kept {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        let next = self.0.pop_front();
        *batch = next.unwrap_or_default();
        Ok(!batch.is_empty())
    }
}

/// Nothing of a tree leads out of it or lies in what is no directory.
fn check_tree(tree: &Tree) {
    for path in tree.entries.keys() {
        assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{path:?}");
        if let Some((parent, _)) = path.rsplit_once('/') {
            assert_eq!(tree.entries.get(parent), Some(&Entry::Directory), "{path:?}");
        }
    }
}

fn check(batch: &Batch, last: &mut i64) {
    assert!(!batch.is_empty());
    let n = batch.len();
    assert!(
        [batch.op.len(), batch.object.len(), batch.offset.len(), batch.size.len()]
            .iter()
            .all(|&len| len == n)
    );
    assert!([batch.latency.len(), batch.flags.len(), batch.actor.len()].iter().all(|&len| len == n));
    assert!(batch.content.is_empty() || batch.content.len() == n);
    assert!(batch.result.is_empty() || batch.result.len() == n);
    assert!(batch.other.is_empty() || batch.other.len() == n);
    assert!(batch.after.is_empty() || batch.after.len() == n);
    assert_eq!(batch.think.len(), batch.after.len());
    for row in 0..n {
        assert!(batch.time[row] >= *last, "time goes back");
        *last = batch.time[row];
        assert!(Op::from_code(batch.op[row]).is_some());
        let (offset, size, latency) = (batch.offset[row], batch.size[row], batch.latency[row]);
        assert!(offset == NONE || offset >= 0);
        assert!(size == NONE || size >= 0);
        assert!(latency == NONE || latency >= 0);
        assert!(offset.max(0) + size.max(0) <= 1 << 60);
    }
}

/// A file of some bytes, and a path to it that is good while the file is open.
fn tempfile(bytes: &[u8]) -> (File, PathBuf) {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let mut file = loadstone_files::unnamed(&directory).expect("room for a temporary file");
    file.write_all(bytes).expect("room for a small temporary file");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    (file, path)
}
