//! blktrace binary (v7): one file per CPU, merged by time; queue events joined with completions.
//!
//! Records as written by the kernel (`include/uapi/linux/blktrace_api.h`), in either byte order.
//! Requests are the queue events (Q), which are the demand before merging and splitting; latency is
//! the time until the completions (C) that cover the request's sectors. Everything else is counted.

mod files;
mod join;
mod record;

pub use files::expand;

use super::{Format, Source};
use crate::chunk::{Chunk, Ids, Origin};
use crate::input::Input;
use crate::reader::OpenOptions;
use crate::{Info, Object, Result};
use join::Join;
use record::{Action, Event, Records, cat};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The table's entry.
pub static FORMAT: Format =
    Format { name: "blktrace", title: "blktrace binary", extensions: &["blktrace"], detect, open };

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
        join: Join::default(),
        objects: Ids::default(),
        actors: Ids::default(),
        comms: FxHashMap::default(),
        genesis: None,
        start: None,
        other: 0,
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
    join: Join,
    objects: Ids,
    actors: Ids,
    comms: FxHashMap<u32, String>,
    genesis: Option<u64>,
    /// Wall clock (ns since 1970) at a trace time, from the timestamp record.
    start: Option<(i64, i64)>,
    other: u64,
    warnings: Vec<String>,
}

impl Blktrace {
    /// Reads the next event of a file that matters for merging; notes are taken in at once.
    fn advance(&mut self, file: usize, chunk: &mut Chunk) -> Result<()> {
        loop {
            let event = self.files[file].next(chunk)?;
            let Some(event) = event else {
                self.current[file] = None;
                return Ok(());
            };
            if event.category & cat::NOTIFY != 0 {
                self.note(&event);
                continue;
            }
            self.heads.push(Reverse((event.time, file)));
            self.current[file] = Some(event);
            return Ok(());
        }
    }

    fn note(&mut self, event: &Event) {
        self.other += 1;
        match (event.code, event.note) {
            (0, name) => {
                let end = name.iter().position(|&c| c == 0).unwrap_or(name.len());
                self.comms
                    .entry(event.pid)
                    .or_insert_with(|| String::from_utf8_lossy(&name[..end]).into_owned());
            }
            (1, note) => {
                let [s, ns] = event.pair(&note);
                let wall = i64::from(s) * 1_000_000_000 + i64::from(ns);
                self.start.get_or_insert((wall, event.time.cast_signed()));
            }
            _ => {}
        }
    }

    fn take(&mut self, event: &Event) {
        self.genesis.get_or_insert(event.time);
        match event.action {
            _ if event.category & cat::PC != 0 => self.other += 1,
            Action::Queue => {
                let object = self.objects.number(u64::from(event.device));
                let actor = self.actors.number(u64::from(event.pid));
                self.join.queue(event, object, actor);
            }
            Action::Complete => self.join.complete(event),
            Action::Issue => {
                self.other += 1;
                self.join.issue(event);
            }
            Action::Other => self.other += 1,
        }
    }
}

impl Source for Blktrace {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let mut ended = false;
        self.other = 0;
        for _ in 0..STEP {
            let Some(Reverse((_, file))) = self.heads.pop() else {
                ended = true;
                break;
            };
            if let Some(event) = self.current[file].take() {
                self.take(&event);
            }
            self.advance(file, chunk)?;
        }
        self.objects.check()?;
        self.actors.check()?;
        chunk.other += self.other;
        self.join.deliver(&mut chunk.batch, ended);
        chunk.origin = Origin::Unknown;
        Ok(!ended || !chunk.batch.is_empty() || chunk.other > 0)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1;
        info.objects = self.objects.objects();
        for (object, key) in info.objects.iter_mut().zip(self.objects.keys()) {
            if let crate::chunk::Key::Number(device) = key {
                object.name = format!("{},{}", device >> 20, device & 0xf_ffff);
            }
        }
        info.actors = self.actors.objects();
        for Object { name, .. } in &mut info.actors {
            if let Some(comm) = name.parse().ok().and_then(|pid: u32| self.comms.get(&pid)) {
                *name = format!("{name} {comm}");
            }
        }
        // The reader adds the time of the trace's zero to this.
        info.start_unix_ns = self.start.map(|(wall, at)| wall.wrapping_sub(at));
        info.counts.lost += self.files.iter().map(Records::lost).sum::<u64>();
        info.counts.unfinished += self.join.unfinished;
        info.counts.failed += self.join.failed;
        info.warnings.extend(self.warnings.iter().cloned());
        if self.join.orphans > 0 {
            let n = self.join.orphans;
            info.warnings.push(format!("{n} completions belong to requests queued before the capture began"));
        }
        if info.counts.lost > 0 {
            let n = info.counts.lost;
            info.warnings.push(format!("the capture lost {n} events (gaps in the sequence numbers)"));
        }
    }

    fn zero(&self) -> Option<i64> {
        self.genesis.map(u64::cast_signed)
    }
}
