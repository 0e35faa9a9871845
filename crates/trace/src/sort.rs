//! Sorts a whole trace by time with bounded memory: sorted runs in temporary files, then one merge.

use crate::input::read_full;
use crate::order::{append, sort};
use crate::{Batch, Error, NO_OBJECT, NONE, Result};
use loadstone_files::unnamed;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Requests of a run.
const RUN: usize = 1 << 20;

/// Most runs before they are merged into one.
const MOST_RUNS: usize = 256;

/// Bytes of a request in a temporary file.
const ROW: usize = 65;

/// Requests of a delivered batch.
const BATCH: usize = 1 << 16;

/// Takes requests in any order and gives them back in time order, ties in source order.
#[derive(Debug)]
pub struct Sorter {
    directory: PathBuf,
    limit: usize,
    current: Batch,
    runs: Vec<File>,
    latest: i64,
    /// Requests that came after a later one.
    pub reordered: u64,
    merge: Option<Merge>,
    delivered: usize,
    /// Which columns there are that not every source has.
    has: Has,
}

#[derive(Debug)]
struct Merge {
    runs: Vec<BufReader<File>>,
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    rows: Vec<[u8; ROW]>,
}

impl Sorter {
    /// Keeps its temporary files in `directory`; they have no name and vanish with the process.
    pub fn new(directory: PathBuf) -> Sorter {
        Sorter {
            directory,
            limit: RUN,
            current: Batch::default(),
            runs: Vec::new(),
            latest: i64::MIN,
            reordered: 0,
            merge: None,
            delivered: 0,
            has: Has::default(),
        }
    }

    /// As [`Sorter::new`] with runs of another length.
    #[cfg(test)]
    fn with_limit(directory: PathBuf, limit: usize) -> Sorter {
        Sorter { limit, ..Sorter::new(directory) }
    }

    /// Takes requests.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub fn push(&mut self, batch: &Batch) -> Result<()> {
        for &time in &batch.time {
            self.reordered += u64::from(time < self.latest);
            self.latest = self.latest.max(time);
        }
        self.has.add(batch);
        append(&mut self.current, batch, 0..batch.len());
        if self.current.len() >= self.limit {
            self.spill()?;
        }
        Ok(())
    }

    fn fail<'a>(&'a self, verb: &'a str) -> impl Fn(std::io::Error) -> Error + 'a {
        move |e| {
            Error::io(verb, &self.directory, e)
                .help("sorting needs room for the trace; `temp_dir` names another place")
        }
    }

    fn spill(&mut self) -> Result<()> {
        sort(&mut self.current);
        let file = unnamed(&self.directory).map_err(self.fail("cannot create a temporary file in"))?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        for row in 0..self.current.len() {
            out.write_all(&pack(&self.current, row))
                .map_err(self.fail("cannot write a temporary file in"))?;
        }
        let file =
            out.into_inner().map_err(|e| self.fail("cannot write a temporary file in")(e.into_error()))?;
        self.runs.push(file);
        self.current.clear();
        if self.runs.len() < MOST_RUNS {
            return Ok(());
        }
        // All runs so far become one, so that open files stay few.
        let mut merge = self.open_runs()?;
        let file = unnamed(&self.directory).map_err(self.fail("cannot create a temporary file in"))?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        while let Some(Reverse((_, run))) = merge.heads.pop() {
            out.write_all(&merge.rows[run]).map_err(self.fail("cannot write a temporary file in"))?;
            merge.advance(run).map_err(self.fail("cannot read a temporary file in"))?;
        }
        let file =
            out.into_inner().map_err(|e| self.fail("cannot write a temporary file in")(e.into_error()))?;
        self.runs.push(file);
        Ok(())
    }

    /// Replaces the batch by the next requests in order, once all were pushed; `false` at the end.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub fn pop(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        if self.runs.is_empty() && self.merge.is_none() {
            // Everything fitted into one run.
            if self.delivered == 0 {
                sort(&mut self.current);
            }
            let end = self.current.len().min(self.delivered + BATCH);
            append(batch, &self.current, self.delivered..end);
            self.delivered = end;
            return Ok(!batch.is_empty());
        }
        if self.merge.is_none() {
            self.start()?;
        }
        let Some(mut merge) = self.merge.take() else { return Ok(false) };
        while batch.len() < BATCH {
            let Some(Reverse((_, run))) = merge.heads.pop() else { break };
            unpack(&merge.rows[run], self.has, batch);
            merge.advance(run).map_err(self.fail("cannot read a temporary file in"))?;
        }
        self.merge = Some(merge);
        Ok(!batch.is_empty())
    }

    fn start(&mut self) -> Result<()> {
        if !self.current.is_empty() {
            self.spill()?;
        }
        self.current = Batch::default();
        self.merge = Some(self.open_runs()?);
        Ok(())
    }

    fn open_runs(&mut self) -> Result<Merge> {
        let files = std::mem::take(&mut self.runs);
        let mut merge =
            Merge { heads: BinaryHeap::new(), rows: vec![[0; ROW]; files.len()], runs: Vec::new() };
        for (run, mut file) in files.into_iter().enumerate() {
            file.seek(SeekFrom::Start(0)).map_err(self.fail("cannot read a temporary file in"))?;
            merge.runs.push(BufReader::with_capacity(1 << 16, file));
            merge.advance(run).map_err(self.fail("cannot read a temporary file in"))?;
        }
        Ok(merge)
    }
}

impl Merge {
    fn advance(&mut self, run: usize) -> std::io::Result<()> {
        let row = &mut self.rows[run];
        let n = read_full(&mut self.runs[run], row)?;
        match n {
            0 => Ok(()),
            ROW => {
                self.heads.push(Reverse((time_of(row), run)));
                Ok(())
            }
            _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn pack(batch: &Batch, row: usize) -> [u8; ROW] {
    let mut out = [0; ROW];
    let long = |out: &mut [u8; ROW], at: usize, v: i64| out[at..at + 8].copy_from_slice(&v.to_le_bytes());
    let word = |out: &mut [u8; ROW], at: usize, v: u32| out[at..at + 4].copy_from_slice(&v.to_le_bytes());
    long(&mut out, 0, batch.time[row]);
    long(&mut out, 8, batch.offset[row]);
    long(&mut out, 16, batch.size[row]);
    long(&mut out, 24, batch.latency[row]);
    word(&mut out, 32, batch.object[row]);
    word(&mut out, 36, batch.flags[row]);
    word(&mut out, 40, batch.actor[row]);
    out[44] = batch.op[row];
    let content = batch.content.get(row).copied().unwrap_or(0);
    out[45..53].copy_from_slice(&content.to_le_bytes());
    long(&mut out, 53, batch.result.get(row).copied().unwrap_or(NONE));
    word(&mut out, 61, batch.other.get(row).copied().unwrap_or(NO_OBJECT));
    out
}

/// Columns that not every source has.
#[derive(Debug, Clone, Copy, Default)]
struct Has {
    content: bool,
    result: bool,
    other: bool,
}

impl Has {
    fn add(&mut self, batch: &Batch) {
        self.content |= !batch.content.is_empty();
        self.result |= !batch.result.is_empty();
        self.other |= !batch.other.is_empty();
    }
}

fn long_at(row: &[u8; ROW], at: usize) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&row[at..at + 8]);
    i64::from_le_bytes(bytes)
}

fn word_at(row: &[u8; ROW], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&row[at..at + 4]);
    u32::from_le_bytes(bytes)
}

fn time_of(row: &[u8; ROW]) -> i64 {
    long_at(row, 0)
}

fn unpack(row: &[u8; ROW], has: Has, batch: &mut Batch) {
    batch.time.push(long_at(row, 0));
    batch.offset.push(long_at(row, 8));
    batch.size.push(long_at(row, 16));
    batch.latency.push(long_at(row, 24));
    batch.object.push(word_at(row, 32));
    batch.flags.push(word_at(row, 36));
    batch.actor.push(word_at(row, 40));
    batch.op.push(row[44]);
    if has.content {
        batch.content.push(long_at(row, 45).cast_unsigned());
    }
    if has.result {
        batch.result.push(long_at(row, 53));
    }
    if has.other {
        batch.other.push(word_at(row, 61));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_can_be_guessed_are_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..1000 {
            let name = format!(".loadstone-sort-{}-{number}", std::process::id());
            std::os::unix::fs::symlink("elsewhere", folder.path().join(name)).unwrap();
        }
        let mut sorter = Sorter::with_limit(folder.path().into(), 1);
        for time in [3, 1, 2] {
            let mut batch = Batch::default();
            unpack(&[0; ROW], Has::default(), &mut batch);
            batch.time[0] = time;
            sorter.push(&batch).unwrap();
        }
        let mut batch = Batch::default();
        assert!(sorter.pop(&mut batch).unwrap());
        assert_eq!(batch.time, [1, 2, 3]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1000);
    }

    proptest! {
        #[test]
        fn a_sort_in_runs_is_the_stable_sort(times in prop::collection::vec(0i64..50, 0..800), limit in 1usize..60, cut in 1usize..40) {
            let mut sorter = Sorter::with_limit(std::env::temp_dir(), limit);
            let rows: Vec<(i64, u32)> = times.iter().copied().zip(0..).collect();
            for part in rows.chunks(cut) {
                let mut batch = Batch::default();
                for &(time, number) in part {
                    unpack(&[0; ROW], Has::default(), &mut batch);
                    let last = batch.len() - 1;
                    batch.time[last] = time;
                    batch.actor[last] = number;
                }
                sorter.push(&batch)?;
            }
            let (mut batch, mut found) = (Batch::default(), Vec::new());
            while sorter.pop(&mut batch)? {
                found.extend(batch.time.iter().copied().zip(batch.actor.iter().copied()));
            }
            let mut expected = rows;
            expected.sort_by_key(|&(time, _)| time);
            prop_assert_eq!(found, expected);
        }
    }
}
