//! blktrace binary (v7): one file per CPU, merged by time; queue events joined with completions.
//!
//! Records as written by the kernel (`include/uapi/linux/blktrace_api.h`), in either byte order.
//! Requests are the queue events (Q), which are the demand before merging and splitting; latency is
//! the time until the completions (C) that cover the request's sectors. Everything else is counted.

mod event;
mod files;
mod join;
mod record;
mod requests;
pub mod text;

pub(crate) use event::{Action, Category, Event};
pub use files::{expand, others};
pub(crate) use join::Join;

use crate::chunk::Chunk;
use crate::formats::format::{Format, Known, Source};
use crate::input::Input;
use crate::options::OpenOptions;
use crate::{Info, Result};
use record::{Record, Records};
use requests::Requests;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "blktrace",
    title: "blktrace binary",
    extensions: &["blktrace"],
    known: Known::Content,
    header: &[],
    detect,
    open,
};

/// Events read before a chunk is handed on.
const STEP: usize = 1 << 16;

fn detect(head: &[u8], _: bool) -> bool {
    record::is_record(head)
}

fn open(inputs: Vec<Input>, options: &OpenOptions) -> Result<Box<dyn Source>> {
    let mut warnings = files::beside(&inputs);
    if inputs.iter().any(|i| i.head().is_empty()) {
        warnings.push("a per-CPU file is empty; that CPU issued nothing or its events were not saved".into());
    }
    let mut trace = Blktrace {
        files: inputs.into_iter().map(|input| Records::new(input, options.max_damaged)).collect(),
        heads: BinaryHeap::new(),
        current: Vec::new(),
        requests: Requests::default(),
        start: None,
        warnings,
    };
    for file in 0..trace.files.len() {
        trace.current.push(None);
        trace.advance(file, &mut Chunk::default())?;
    }
    Ok(Box::new(trace))
}

struct Blktrace {
    files: Vec<Records>,
    /// Time of the next event of each file that has one.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    current: Vec<Option<Event>>,
    requests: Requests,
    /// Wall clock (ns since 1970) at a trace time, from the timestamp record.
    start: Option<(i64, i64)>,
    warnings: Vec<String>,
}

impl Blktrace {
    /// Reads the next event of a file that matters for merging; notes are taken in at once.
    fn advance(&mut self, file: usize, chunk: &mut Chunk) -> Result<()> {
        loop {
            let Some(record) = self.files[file].next(chunk)? else {
                self.current[file] = None;
                return Ok(());
            };
            if record.event.category.contains(Category::NOTIFY) {
                self.note(&record);
                continue;
            }
            self.heads.push(Reverse((record.event.time, file)));
            self.current[file] = Some(record.event);
            return Ok(());
        }
    }

    fn note(&mut self, record: &Record) {
        self.requests.other += 1;
        match (record.code, record.note) {
            (0, name) => {
                let end = name.iter().position(|&c| c == 0).unwrap_or(name.len());
                self.requests.name(record.event.pid, &name[..end]);
            }
            (1, _) => {
                let [s, ns] = record.pair();
                let wall = i64::from(s) * 1_000_000_000 + i64::from(ns);
                self.start.get_or_insert((wall, record.event.time.cast_signed()));
            }
            _ => {}
        }
    }
}

impl Source for Blktrace {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let mut ended = false;
        for _ in 0..STEP {
            let Some(Reverse((_, file))) = self.heads.pop() else {
                ended = true;
                break;
            };
            if let Some(event) = self.current[file].take() {
                self.requests.take(&event);
            }
            self.advance(file, chunk)?;
        }
        self.requests.lost = self.files.iter().map(Records::lost).sum();
        self.requests.deliver(chunk, ended)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1;
        self.requests.info(info);
        // The reader adds the time of the trace's zero to this.
        info.start_unix_ns = self.start.map(|(wall, at)| wall.wrapping_sub(at));
        info.warnings.extend(self.warnings.iter().cloned());
        let unread: u64 = self.files.iter().map(|file| file.unread).sum();
        if unread > 0 {
            info.warnings.push(format!("{unread} bytes were not read: nothing is found again behind damage"));
        }
    }

    fn zero(&self) -> Option<i64> {
        self.requests.zero()
    }
}
