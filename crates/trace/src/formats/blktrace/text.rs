//! The kernel's block events as text: what blkparse prints, and what tracefs, trace-cmd and perf script do.
//!
//! Both give the same events as the binary capture, so requests are joined from them in the same way.
//! blkparse: `maj,min cpu sequence seconds pid action rwbs ...` (its man page, DEFAULT OUTPUT). tracefs:
//! `comm-pid [cpu] flags seconds: event: maj,min rwbs ...`; perf script has blanks around the pid, no
//! flags, and `block:` before the event.

use super::event::{Action, Event, cat};
use super::requests::Requests;
use crate::chunk::Chunk;
use crate::formats::{Format, Known, Opened, Source, head_lines, single};
use crate::input::Input;
use crate::scan::{decimal, quote, uint};
use crate::serial::Serial;
use crate::{Error, Info, Result};

/// The table's entry of blkparse.
pub static BLKPARSE: Format = Format {
    name: "blkparse",
    title: "blkparse text",
    extensions: &["blkparse"],
    known: Known::Content,
    detect: |head, all| looks(blkparse, head, all),
    open: |inputs, _| open(blkparse, inputs),
};

/// The table's entry of the others.
pub static TRACEFS: Format = Format {
    name: "tracefs",
    title: "tracefs, trace-cmd or perf script text of block events",
    extensions: &["tracefs"],
    known: Known::Content,
    detect: |head, all| looks(tracefs, head, all),
    open: |inputs, _| open(tracefs, inputs),
};

/// Lines read before a chunk is handed on.
const STEP: usize = 1 << 16;

/// Lines looked at to tell the format.
const LOOK: usize = 200;

const SECOND: u64 = 1_000_000_000;

/// What a line is.
enum Line<'a> {
    /// An event, and the name of its process where it is told.
    Event(Event, &'a [u8]),
    /// An event that makes no request, and its time.
    Passed(u64),
    /// Nothing that makes a request, and no event of the block layer.
    Other,
    /// So many events are missing here.
    Lost(u64),
    /// Events are over; what follows are totals.
    End,
}

type Parse = for<'a> fn(&'a [u8]) -> Result<Line<'a>>;

/// Whether an event comes before anything that is damaged.
fn looks(parse: Parse, head: &[u8], all: bool) -> bool {
    let mut lines = head_lines(head, all).take(LOOK).map(parse);
    lines.find_map(|line| match line {
        Ok(Line::Event(..)) => Some(true),
        Ok(Line::Passed(_) | Line::Other | Line::Lost(_)) => None,
        Ok(Line::End) | Err(_) => Some(false),
    }) == Some(true)
}

fn open(parse: Parse, inputs: Vec<Input>) -> Opened {
    let lines = Serial::new(single(inputs)?);
    Ok(Box::new(Text { lines, parse, requests: Requests::default(), totals: false }))
}

struct Text {
    lines: Serial,
    parse: Parse,
    requests: Requests,
    totals: bool,
}

impl Source for Text {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let mut ended = false;
        for _ in 0..STEP {
            let Some(line) = self.lines.next()? else {
                ended = true;
                break;
            };
            let parsed = (self.parse)(line).and_then(|line| match line {
                Line::Event(event, comm) => event.check().map(|()| Line::Event(event, comm)),
                line => Ok(line),
            });
            match parsed {
                Ok(Line::Event(event, comm)) => {
                    if !comm.is_empty() {
                        self.requests.name(event.pid, comm);
                    }
                    self.requests.take(&event);
                    continue;
                }
                Ok(Line::Passed(time)) => self.requests.begin(time),
                Ok(Line::Lost(events)) => self.requests.lost += events,
                Ok(Line::End) => self.totals = true,
                Ok(Line::Other) => {}
                Err(_) if self.totals => {}
                Err(error) => {
                    let error = self.lines.place(error);
                    chunk.damaged.push((self.lines.line(), error));
                    continue;
                }
            }
            self.requests.other += 1;
        }
        self.requests.deliver(chunk, ended)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1;
        self.requests.info(info);
    }

    fn zero(&self) -> Option<i64> {
        self.requests.zero()
    }
}

/// Runs of other bytes than blanks.
fn tokens(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(|c| matches!(c, b' ' | b'\t')).filter(|token| !token.is_empty())
}

fn bad(what: &str, text: &[u8]) -> Error {
    Error::new(format!("{what} in {}", quote(text))).help(
        "the line is damaged or cut short; --max-damaged N passes over up to N such lines and counts them",
    )
}

fn number(text: &[u8], what: &str, line: &[u8]) -> Result<u64> {
    uint(text).ok_or_else(|| bad(&format!("{what} {} is not a number", quote(text)), line))
}

fn device(text: &[u8]) -> Option<u32> {
    let comma = text.iter().position(|&c| c == b',')?;
    let (major, minor) = (uint(&text[..comma])?, uint(&text[comma + 1..])?);
    (major < 1 << 12 && minor < 1 << 20).then_some((major << 20 | minor) as u32)
}

/// Seconds with a fraction.
fn time(text: &[u8]) -> Option<u64> {
    u64::try_from(decimal(text, SECOND)?).ok().filter(|_| text.contains(&b'.'))
}

/// Category bits of the letters that say what kind of request it is: an `F` for a flush before, the op, an
/// `F` for forced unit access, then `A` ahead, `S` sync, `M` metadata and others (`blk_fill_rwbs`).
fn category(rwbs: &[u8]) -> Option<u16> {
    let (mut category, mut rest) = match rwbs {
        [b'F', rest @ ..] if rest.first().is_some_and(|c| b"RWDFNZ".contains(c)) => (cat::FLUSH, rest),
        _ => (0, rwbs),
    };
    let (&op, after) = rest.split_first()?;
    rest = after;
    category |= match op {
        b'R' => 0,
        b'W' => cat::WRITE,
        b'D' => cat::WRITE | cat::DISCARD,
        b'F' => cat::WRITE | cat::FLUSH,
        b'N' | b'Z' => cat::PC,
        _ => return None,
    };
    for (position, letter) in rest.iter().enumerate() {
        category |= match letter {
            b'F' if position == 0 => cat::FUA,
            b'A' => cat::AHEAD,
            b'S' => cat::SYNC,
            b'M' => cat::META,
            _ if letter.is_ascii_uppercase() => 0,
            _ => return None,
        };
    }
    Some(category)
}

/// `sector + sectors`, and whether there is one; a completion of nothing may have a sector alone.
fn place(args: &[u8]) -> Option<(u64, u64)> {
    let mut before: &[u8] = b"";
    let mut all = tokens(args);
    while let Some(token) = all.next() {
        if token == b"+" {
            return Some((uint(before)?, uint(all.next()?)?));
        }
        before = token;
    }
    None
}

/// What stands in the last brackets of a line.
fn bracketed(line: &[u8]) -> &[u8] {
    let inner = line.trim_ascii_end().strip_suffix(b"]");
    inner.and_then(|inner| Some(&inner[memchr::memrchr(b'[', inner)? + 1..])).unwrap_or(b"")
}

/// Name of a process; blkparse prints `(null)` where it does not know it.
fn comm(line: &[u8]) -> &[u8] {
    match bracketed(line) {
        b"(null)" => b"",
        name => name,
    }
}

fn bytes(sectors: u64, line: &[u8]) -> Result<u32> {
    let bytes = sectors.checked_mul(512).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| bad("more than 4 GiB in one request", line))
}

/// A line of blkparse's default output.
fn blkparse(line: &[u8]) -> Result<Line<'_>> {
    if line.trim_ascii().is_empty() {
        return Ok(Line::Other);
    }
    if let Some(skips) = line.strip_prefix(b"Skips:") {
        return Ok(match tokens(skips).next().and_then(uint) {
            Some(lost) if lost > 0 => Line::Lost(lost),
            _ => Line::End,
        });
    }
    if [&b"CPU"[..], b"Total (", b"Throughput (", b"Events ("].iter().any(|start| line.starts_with(start)) {
        return Ok(Line::End);
    }
    let mut fields = tokens(line);
    let mut field = |what: &str| fields.next().ok_or_else(|| bad(&format!("no {what}"), line));
    let device = field("device")?;
    let device = device_or(device, line)?;
    number(field("CPU")?, "CPU", line)?;
    number(field("sequence number")?, "sequence number", line)?;
    let seconds = field("time")?;
    let time = time(seconds)
        .ok_or_else(|| bad(&format!("time {} is not a number of seconds", quote(seconds)), line))?;
    let pid = number(field("process id")?, "process id", line)? as u32;
    let code = field("action")?;
    let action = match code {
        b"Q" => Action::Queue,
        b"D" => Action::Issue,
        b"C" => Action::Complete,
        code if code.iter().all(u8::is_ascii_alphabetic) => Action::Other,
        code => return Err(bad(&format!("unknown action {}", quote(code)), line)),
    };
    if action == Action::Other {
        // A message is a note of the capture: no event, as in the binary one.
        return Ok(if code == b"m" { Line::Other } else { Line::Passed(time) });
    }
    let rwbs = field("kind of request")?;
    let Some(category) = category(rwbs) else {
        return Err(bad(&format!("unknown kind of request {}", quote(rwbs)), line));
    };
    let first = fields.next();
    let from = rwbs.as_ptr().addr() - line.as_ptr().addr() + rwbs.len();
    let args = &line[from..];
    // A passthrough command has bytes and the command in brackets in place of a sector.
    if fields.next().is_some_and(|second| second.starts_with(b"(")) {
        return Ok(Line::Passed(time));
    }
    let (sector, sectors) = match place(args) {
        Some(place) => place,
        None if args.windows(3).any(|w| w == b" + ") => return Err(bad("no sector", line)),
        None => (first.and_then(uint).unwrap_or(0), 0),
    };
    let failed = action == Action::Complete && !matches!(bracketed(line), b"0" | b"");
    let name = if action == Action::Complete { b"" } else { comm(line) };
    let bytes = bytes(sectors, line)?;
    Ok(Line::Event(Event { time, sector, bytes, action, category, pid, device, failed }, name))
}

fn device_or(text: &[u8], line: &[u8]) -> Result<u32> {
    device(text).ok_or_else(|| bad(&format!("device {} is not major,minor", quote(text)), line))
}

/// A line of tracefs, trace-cmd or perf script.
fn tracefs(line: &[u8]) -> Result<Line<'_>> {
    let Some((head, event)) = split_event(line) else {
        return Ok(lost(line).map_or(Line::Other, Line::Lost));
    };
    let Some(colon) = memchr::memchr(b':', event) else { return Ok(Line::Other) };
    let (name, args) = (&event[..colon], &event[colon + 1..]);
    let seconds = tokens(head).next_back().unwrap_or(b"");
    let action = match name {
        b"block_bio_queue" => Action::Queue,
        b"block_rq_issue" => Action::Issue,
        b"block_rq_complete" | b"block_bio_complete" => Action::Complete,
        _ => return Ok(time(seconds).map_or(Line::Other, Line::Passed)),
    };
    let time = time(seconds)
        .ok_or_else(|| bad(&format!("time {} is not a number of seconds", quote(seconds)), line))?;
    let (comm, pid) = task(head).ok_or_else(|| bad("no process id", line))?;
    let mut fields = tokens(args);
    let device = device_or(fields.next().unwrap_or(b""), line)?;
    let rwbs = fields.next().unwrap_or(b"");
    let Some(category) = category(rwbs) else {
        return Err(bad(&format!("unknown kind of request {}", quote(rwbs)), line));
    };
    let Some((sector, sectors)) = place(args) else { return Err(bad("no sector", line)) };
    let failed = action == Action::Complete && !matches!(bracketed(line), b"0" | b"");
    let name = if action == Action::Complete { b"" } else { comm };
    let bytes = bytes(sectors, line)?;
    Ok(Line::Event(Event { time, sector, bytes, action, category, pid, device, failed }, name))
}

/// What stands before a block event, up to its time, and the event from its name on.
fn split_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    for marker in [&b": block:block_"[..], b": block_"] {
        if let Some(at) = memchr::memmem::find(line, marker) {
            return Some((&line[..at], &line[at + marker.len() - b"block_".len()..]));
        }
    }
    None
}

/// Name and id of the task that stands before the CPU in brackets.
fn task(head: &[u8]) -> Option<(&[u8], u32)> {
    let before = head[..memchr::memrchr(b'[', head)?].trim_ascii();
    // The thread group, where tracefs was asked for it.
    let before = match before.strip_suffix(b")") {
        Some(inner) => before[..memchr::memrchr(b'(', inner)?].trim_ascii(),
        None => before,
    };
    let last = tokens(before).next_back()?;
    let id = &last[..memchr::memchr(b'/', last).unwrap_or(last.len())];
    let (comm, id) = match uint(id) {
        Some(id) => (&before[..before.len() - last.len()], id),
        None => {
            let hyphen = memchr::memrchr(b'-', before)?;
            (&before[..hyphen], uint(&before[hyphen + 1..])?)
        }
    };
    Some((comm.trim_ascii(), u32::try_from(id).ok()?))
}

/// Events that a line says are missing: `CPU:1 [LOST 12 EVENTS]`, or perf's `LOST 12 events!`.
fn lost(line: &[u8]) -> Option<u64> {
    let at = memchr::memmem::find(line, b"LOST ")?;
    let mut words = tokens(&line[at + b"LOST ".len()..]);
    let lost = uint(words.next()?)?;
    words.next()?.to_ascii_uppercase().starts_with(b"EVENTS").then_some(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_say_the_kind_of_request() {
        let is = |rwbs: &[u8], expected: u16| assert_eq!(category(rwbs), Some(expected), "{}", quote(rwbs));
        is(b"R", 0);
        is(b"RA", cat::AHEAD);
        is(b"WSM", cat::WRITE | cat::SYNC | cat::META);
        is(b"FWFSM", cat::FLUSH | cat::WRITE | cat::FUA | cat::SYNC | cat::META);
        is(b"FF", cat::FLUSH | cat::WRITE);
        is(b"DS", cat::WRITE | cat::DISCARD | cat::SYNC);
        is(b"N", cat::PC);
        assert_eq!(category(b""), None);
        assert_eq!(category(b"x"), None);
    }

    #[test]
    fn tasks_may_have_blanks_and_hyphens_in_their_names() {
        let is = |head: &str, comm: &str, pid: u32| {
            assert_eq!(task(head.as_bytes()), Some((comm.as_bytes(), pid)), "{head}");
        };
        is("    kworker/u8:3-4656    [001] .....  1870.105845", "kworker/u8:3", 4656);
        is("   my-odd name-12 (   77) [000] ..s..  1.5", "my-odd name", 12);
        is("dd  4656 [001]  1870.105845", "dd", 4656);
        is("a b 12/13 [001]  1870.105845", "a b", 12);
        assert_eq!(task(b"no cpu here"), None);
    }
}
