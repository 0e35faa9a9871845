//! System calls as strace prints them (`strace -f -ttt -T`, man strace): requests of files.
//!
//! Descriptors are followed to their files, calls that were interrupted in the text are joined, and
//! positions are kept, so reads and writes have the offsets they had. A request is a call on a file or a name; its
//! size is what was transferred. Objects are paths, actors are processes. Calls on pipes, sockets and terminals,
//! and those that touch no file, count as other; so does what goes through io_uring, which the text does not show.

mod call;
mod files;
mod line;

use super::{Format, Known, Opened, Source, head_lines, single};
use crate::chunk::{Chunk, Ids, Origin};
use crate::input::Input;
use crate::reader::OpenOptions;
use crate::serial::Serial;
use crate::{Error, Info, NONE, Op, Result};
use files::Files;
use line::{Head, Line};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "strace",
    title: "strace -f -ttt -T",
    extensions: &["strace"],
    known: Known::Content,
    detect,
    open,
};

/// Lines read before a chunk is handed on.
const STEP: usize = 1 << 16;

/// Most requests held back for calls that began before them.
const MOST_HELD: usize = 1 << 19;

/// Nanoseconds of a day, at whose end the clock of `-tt` starts again.
const DAY: i64 = 86_400_000_000_000;

fn detect(head: &[u8], all: bool) -> bool {
    let mut lines = head_lines(head, all).take(16).peekable();
    let is_call = |text: &[u8]| match line::line(text) {
        Ok(Line::Whole(_, rest)) => line::call(rest).is_ok(),
        Ok(Line::Started(_, rest)) => line::name(rest).is_some(),
        Ok(_) => true,
        Err(_) => false,
    };
    let first =
        lines.peek().is_some_and(|text| matches!(line::line(text), Ok(Line::Whole(..) | Line::Started(..))));
    first && lines.all(is_call)
}

fn open(inputs: Vec<Input>, _: &OpenOptions) -> Opened {
    Ok(Box::new(Strace {
        lines: Serial::new(single(inputs)?),
        state: State::default(),
        begun: FxHashMap::default(),
        held: BinaryHeap::new(),
        number: 0,
        last: 0,
        days: 0,
        of_day: false,
    }))
}

/// A request of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    op: Op,
    object: u32,
    offset: i64,
    size: i64,
    flags: u32,
    result: i64,
    other: u32,
}

/// What is known besides lines.
#[derive(Default)]
struct State {
    files: Files,
    paths: Ids,
    processes: Ids,
    failed: u64,
    /// Calls into io_uring.
    rings: u64,
}

/// A finished request: time, number, actor and latency.
type Done = (i64, u64, u32, i64, Request);

struct Strace {
    lines: Serial,
    state: State,
    /// Calls whose end is still to come, by process: when they began, and their text so far.
    begun: FxHashMap<u32, (i64, Vec<u8>)>,
    held: BinaryHeap<Reverse<Done>>,
    number: u64,
    last: i64,
    days: i64,
    of_day: bool,
}

impl Strace {
    /// The time of a line; that of `-tt` goes on over midnight.
    fn time(&mut self, head: Head) -> i64 {
        self.of_day |= head.of_day;
        let mut time = head.time + self.days * DAY;
        if head.of_day && time < self.last - DAY / 2 {
            self.days += 1;
            time += DAY;
        }
        self.last = self.last.max(time);
        time
    }

    /// Takes a line; whether it made a request.
    fn take(&mut self, text: &[u8]) -> Result<bool> {
        match line::line(text)? {
            Line::Other => Ok(false),
            Line::Started(head, start) => {
                let time = self.time(head);
                self.begun.insert(head.pid, (time, start.to_vec()));
                Ok(false)
            }
            Line::Resumed(head, end) => {
                self.time(head);
                let Some((time, mut whole)) = self.begun.remove(&head.pid) else { return Ok(false) };
                whole.extend_from_slice(end);
                self.call(head.pid, time, &whole)
            }
            Line::Whole(head, call) => {
                let time = self.time(head);
                self.call(head.pid, time, call)
            }
        }
    }

    fn call(&mut self, pid: u32, time: i64, text: &[u8]) -> Result<bool> {
        let call = line::call(text)?;
        let Some(request) = self.state.request(pid, &call)? else { return Ok(false) };
        // What a call returns besides bytes is of no use to others.
        let moved = matches!(request.op, Op::Read | Op::Write | Op::CopyRange | Op::Readdir | Op::Readlink);
        let result = match call.result {
            Some(result) if result < 0 => call.errno.map_or(-1, |errno| -errno),
            Some(result) if moved => result,
            Some(_) => 0,
            None => NONE,
        };
        let request = Request { result, ..request };
        let actor = self.state.processes.number(u64::from(pid));
        self.number += 1;
        self.held.push(Reverse((time, self.number, actor, call.took.unwrap_or(NONE), request)));
        Ok(true)
    }

    /// Hands on the requests that no call still under way began before.
    fn deliver(&mut self, chunk: &mut Chunk, ended: bool) {
        // Calls that wait for other processes or for time last long and make no requests.
        let waits = |text: &[u8]| line::name(text).is_none_or(|(name, _)| !call::may_be_request(name));
        let first = self.begun.values().filter(|(_, text)| !waits(text)).map(|(time, _)| *time).min();
        let until = if ended { i64::MAX } else { first.unwrap_or(i64::MAX) };
        while let Some(Reverse((time, ..))) = self.held.peek() {
            if *time > until && self.held.len() <= MOST_HELD {
                break;
            }
            let Some(Reverse((time, _, actor, latency, request))) = self.held.pop() else { break };
            chunk.push(time, request.op as u8, request.object, request.offset, request.size);
            chunk.batch.latency.push(latency);
            chunk.batch.flags.push(request.flags);
            chunk.batch.actor.push(actor);
            chunk.batch.result.push(request.result);
            chunk.batch.other.push(request.other);
        }
    }
}

impl Source for Strace {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.origin = Origin::Unknown;
        let mut ended = false;
        for _ in 0..STEP {
            let Some(text) = self.lines.next()? else {
                ended = true;
                break;
            };
            let text = text.to_vec();
            match self.take(&text) {
                Ok(true) => {}
                Ok(false) => chunk.other += 1,
                Err(error) => chunk.damaged.push((self.lines.line(), self.lines.place(error))),
            }
        }
        self.state.paths.check()?;
        self.state.processes.check()?;
        self.deliver(chunk, ended);
        chunk.fill();
        Ok(!ended || !chunk.batch.is_empty() || chunk.other > 0 || !chunk.damaged.is_empty())
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1000;
        info.layer = "file".into();
        info.objects = self.state.paths.objects();
        info.actors = self.state.processes.objects();
        info.counts.failed += self.state.failed;
        info.counts.unfinished += self.begun.len() as u64;
        if !self.of_day {
            info.start_unix_ns = Some(0);
        }
        if self.state.rings > 0 {
            let n = self.state.rings;
            info.warnings
                .push(format!("{n} calls of io_uring_enter: what they submitted is not in the text"));
        }
    }
}

/// A call that lacks what it needs.
fn short(call: &line::Call) -> Error {
    let name = String::from_utf8_lossy(call.name).into_owned();
    Error::new(format!("{name} has {} arguments, fewer than it takes", call.args.len()))
        .help("the line is damaged or cut short")
}
