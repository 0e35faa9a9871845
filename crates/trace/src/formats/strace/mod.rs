//! System calls as strace prints them (`strace -f -ttt -T`, man strace): requests of files.
//!
//! Descriptors are followed to their files, calls that were interrupted in the text are joined, and
//! positions are kept, so reads and writes have the offsets they had. A request is a call on a file or a name; its
//! size is what was transferred. Objects are paths, actors are processes. Calls on pipes, sockets and terminals,
//! and those that touch no file, count as other; so does what goes through io_uring, which the text does not show.

mod call;
mod errno;
mod files;
mod line;

use crate::chunk::{Chunk, Ids, Origin};
use crate::formats::format::{Format, Known, Opened, Source, head_lines, single};
use crate::input::Input;
use crate::options::OpenOptions;
use crate::serial::Serial;
use crate::{Error, Info, NONE, Op, Result};
use files::Files;
use line::{Head, Line, Since, What};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "strace",
    title: "strace -f -ttt -T",
    extensions: &["strace"],
    known: Known::Content,
    header: &[],
    detect,
    open,
};

/// Lines read before a chunk is handed on.
const STEP: usize = 1 << 16;

/// Most requests held back for calls that began before them.
const MOST_HELD: usize = 1 << 19;

/// Most lines kept for the call that made their process.
const MOST_WAITING: usize = 1 << 12;

/// Nanoseconds of a day, at whose end the clock of `-tt` starts again.
const DAY: i64 = 86_400_000_000_000;

fn detect(head: &[u8], all: bool) -> bool {
    let mut lines = head_lines(head, all).take(16).peekable();
    let is_call = |text: &[u8]| match line::line(text) {
        Ok(Some(Line { what: What::Whole, text, .. })) => line::call(text).is_ok(),
        Ok(Some(Line { what: What::Started, text, .. })) => line::name(text).is_some(),
        Ok(_) => true,
        Err(_) => false,
    };
    let begins = |text: &&[u8]| match line::line(text) {
        Ok(Some(line)) => matches!(line.what, What::Whole | What::Started),
        _ => false,
    };
    lines.peek().is_some_and(begins) && lines.all(is_call)
}

fn open(inputs: Vec<Input>, _: &OpenOptions) -> Opened {
    Ok(Box::new(Strace {
        lines: Serial::new(single(inputs)?),
        state: State::default(),
        begun: FxHashMap::default(),
        waiting: BTreeMap::default(),
        first: None,
        held: BinaryHeap::new(),
        number: 0,
        last: 0,
        days: 0,
        since: None,
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
    /// Calls whose process ended in them.
    unfinished: u64,
    /// Calls that move data and are not read: of the kernel's asynchronous I/O, and splices.
    unread: u64,
    /// Calls into io_uring.
    rings: u64,
    /// Numbers that descriptors had that stand for no file, in any process.
    no_files: FxHashSet<i64>,
    /// Files that were opened without a name, and of which no name is shown.
    unnamed: u64,
    /// Reads and writes of what was opened before the trace began.
    unknown: u64,
    /// Requests that reach farther than a request can.
    far: u64,
    /// A request that the same call made before the one it is.
    before: Option<Request>,
}

/// A finished request: time, number, actor and latency.
type Done = (i64, u64, u32, i64, Request);

/// A line of a process whose maker's call has not returned.
struct Waiting {
    pid: u32,
    time: i64,
    what: What,
    text: Vec<u8>,
}

struct Strace {
    lines: Serial,
    state: State,
    /// Calls whose end is still to come, by process: when they began, and their text so far.
    begun: FxHashMap<u32, (i64, Vec<u8>)>,
    /// Lines of processes whose maker is not known yet, by their number.
    waiting: BTreeMap<u64, Waiting>,
    /// The first process's number, where strace did not print it before there was a second.
    first: Option<u32>,
    held: BinaryHeap<Reverse<Done>>,
    number: u64,
    last: i64,
    days: i64,
    /// What times count from, as the first line shows.
    since: Option<Since>,
}

impl Strace {
    /// The time of a line; that of `-tt` goes on over midnight, and all of `-r` add up.
    fn time(&mut self, head: Head) -> i64 {
        let since = *self.since.get_or_insert(head.since);
        let mut time = match since {
            Since::Line => self.last.saturating_add(head.time),
            _ => head.time.saturating_add(self.days * DAY),
        };
        if since == Since::Midnight && time < self.last - DAY / 2 {
            self.days += 1;
            time += DAY;
        }
        self.last = self.last.max(time);
        time
    }

    /// The process of a line, which strace does not number while there is but one.
    fn pid(&self, pid: u32) -> u32 {
        match self.first {
            Some(first) if pid == first => 0,
            Some(_) if pid == 0 => self.state.files.only().unwrap_or(0),
            _ => pid,
        }
    }

    /// Whether a call that makes processes has not returned.
    fn is_forking(&self) -> bool {
        let forks = |text: &[u8]| line::name(text).is_some_and(|(name, _)| call::FORKS.contains(&name));
        self.begun.values().any(|(_, text)| forks(text))
    }

    /// Takes a line.
    fn take(&mut self, text: &[u8], chunk: &mut Chunk) -> Result<()> {
        let Some(Line { head, what, text }) = line::line(text)? else {
            chunk.other += 1;
            return Ok(());
        };
        let last = self.last;
        let time = self.time(head);
        if time < last {
            // A clock that was put back: what is held stays before it, so that it is told.
            self.hand_on(i64::MAX, chunk);
        }
        if what == What::Noted {
            chunk.other += 1;
            return Ok(());
        }
        let is_firsts = what == What::Resumed && self.begun.contains_key(&0);
        if is_firsts && self.first.is_none() && !self.begun.contains_key(&head.pid) {
            self.first = Some(head.pid);
        }
        let pid = self.pid(head.pid);
        // A child may speak before its maker's call returns and says whose descriptors and directory it has.
        if !self.state.files.knows(pid) && self.is_forking() {
            let text = text.to_vec();
            self.waiting.insert(self.lines.line(), Waiting { pid, time, what, text });
            if self.waiting.len() > MOST_WAITING {
                self.release(true, chunk);
            }
            return Ok(());
        }
        chunk.other += u64::from(!self.happen(pid, time, what, text)?);
        self.release(false, chunk);
        Ok(())
    }

    /// Takes the lines that waited and need not any more, or `all`.
    fn release(&mut self, all: bool, chunk: &mut Chunk) {
        while !self.waiting.is_empty() {
            let all = all || !self.is_forking();
            let next = self.waiting.iter().find(|(_, line)| all || self.state.files.knows(line.pid));
            let Some((number, _)) = next else { break };
            let number = *number;
            let Some(Waiting { pid, time, what, text }) = self.waiting.remove(&number) else { break };
            match self.happen(pid, time, what, &text) {
                Ok(request) => chunk.other += u64::from(!request),
                Err(error) => chunk.damaged.push((number, self.lines.place_at(number, error))),
            }
        }
    }

    /// What a process did; whether it is a request.
    fn happen(&mut self, pid: u32, time: i64, what: What, text: &[u8]) -> Result<bool> {
        self.state.files.meet(pid);
        match what {
            What::Whole => self.call(pid, time, text),
            What::Started => {
                self.begun.insert(pid, (time, text.to_vec()));
                Ok(false)
            }
            What::Resumed => {
                let Some((time, mut whole)) = self.begun.remove(&pid) else { return Ok(false) };
                whole.extend_from_slice(text);
                self.call(pid, time, &whole)
            }
            What::Noted => Ok(false),
            What::Ended => {
                self.state.unfinished += u64::from(self.begun.remove(&pid).is_some());
                self.state.files.end(pid);
                Ok(false)
            }
        }
    }

    fn call(&mut self, pid: u32, time: i64, text: &[u8]) -> Result<bool> {
        let call = line::call(text)?;
        let Some(request) = self.state.request(pid, &call)? else { return Ok(false) };
        // What a call returns besides bytes is of no use to others.
        let moved = matches!(request.op, Op::Read | Op::Write | Op::CopyRange | Op::Readdir | Op::Readlink);
        let result = match call.result {
            Some(result) if result < 0 => call.errno.map_or(NONE, |errno| -errno),
            Some(result) if moved => result,
            Some(_) => 0,
            None => NONE,
        };
        let request = Request { result, ..request };
        let actor = self.state.processes.number(u64::from(pid));
        if let Some(before) = self.state.before.take() {
            self.number += 1;
            let before = Request { result, ..before };
            self.held.push(Reverse((time, self.number, actor, NONE, before)));
        }
        self.number += 1;
        self.held.push(Reverse((time, self.number, actor, call.took.unwrap_or(NONE), request)));
        Ok(true)
    }

    /// Hands on the requests that no call still under way began before.
    fn deliver(&mut self, chunk: &mut Chunk, ended: bool) {
        // Calls that wait for other processes or for time last long and make no requests.
        let waits = |text: &[u8]| line::name(text).is_none_or(|(name, _)| !call::may_be_request(name));
        let begun = self.begun.values().filter(|(_, text)| !waits(text)).map(|(time, _)| *time);
        let first = begun.chain(self.waiting.values().map(|line| line.time)).min();
        self.hand_on(if ended { i64::MAX } else { first.unwrap_or(i64::MAX) }, chunk);
    }

    /// Hands on the requests up to a time, in order.
    fn hand_on(&mut self, until: i64, chunk: &mut Chunk) {
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
                self.release(true, chunk);
                break;
            };
            let text = text.to_vec();
            if let Err(error) = self.take(&text, chunk) {
                chunk.damaged.push((self.lines.line(), self.lines.place(error)));
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
        info.counts.unfinished += self.begun.len() as u64 + self.state.unfinished;
        if self.since == Some(Since::Epoch) {
            info.start_unix_ns = Some(0);
        }
        if self.state.rings > 0 {
            let n = self.state.rings;
            info.warnings
                .push(format!("{n} calls of io_uring_enter: what they submitted is not in the text"));
        }
        if self.state.unread > 0 {
            let n = self.state.unread;
            info.warnings.push(format!(
                "{n} calls of io_submit or splice: what they read and write is left out; replays and models lack it"
            ));
        }
        if self.state.unknown > 0 {
            let n = self.state.unknown;
            info.warnings.push(format!(
                "{n} reads and writes of descriptors whose open is not in the trace are left out; start the program under strace, or name files with -y"
            ));
        }
        if self.state.far > 0 {
            let n = self.state.far;
            info.warnings.push(format!("{n} reads and writes beyond 2^60 bytes are left out"));
        }
    }
}

/// A call that lacks what it needs.
fn short(call: &line::Call) -> Error {
    let name = String::from_utf8_lossy(call.name).into_owned();
    Error::malformed(format!("{name} has {} arguments, fewer than it takes", call.args.len()))
        .help("the line is damaged or cut short")
}
