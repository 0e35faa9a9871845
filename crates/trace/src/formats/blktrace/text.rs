//! The kernel's block events as text: what blkparse prints, and what tracefs, trace-cmd and perf script do.
//!
//! Both give the same events as the binary capture, so requests are joined from them in the same way.
//! blkparse: `maj,min cpu sequence seconds pid action rwbs ...` (its man page, DEFAULT OUTPUT). tracefs:
//! `comm-pid [cpu] flags seconds: event: maj,min rwbs ...`; perf script has blanks around the pid, no
//! flags, and `block:` before the event.

#[cfg(test)]
mod tests;

use super::event::{Action, Category, Event};
use super::requests::Requests;
use crate::chunk::Chunk;
use crate::formats::format::{Format, Known, Opened, Source, head_lines, single};
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
    header: &[],
    detect: |head, all| looks(blkparse, head, all),
    open: |inputs, _| open(blkparse, inputs),
};

/// The table's entry of the others.
pub static TRACEFS: Format = Format {
    name: "tracefs",
    title: "tracefs, trace-cmd or perf script text of block events",
    extensions: &["tracefs"],
    known: Known::Content,
    header: &[],
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

/// Whether there is an event among the first lines, some of which may be damaged.
fn looks(parse: Parse, head: &[u8], all: bool) -> bool {
    let mut lines = head_lines(head, all).take(LOOK).map(parse);
    lines.find_map(|line| match line {
        Ok(Line::Event(..)) => Some(true),
        Ok(Line::Passed(_) | Line::Other | Line::Lost(_)) | Err(_) => None,
        Ok(Line::End) => Some(false),
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
    Error::malformed(format!("{what} in {}", quote(text))).help(
        "the line is damaged or cut short; `max_damaged` N passes over up to N such lines and counts them",
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
fn category(rwbs: &[u8]) -> Option<Category> {
    let (mut category, mut rest) = match rwbs {
        [b'F', rest @ ..] if rest.first().is_some_and(|c| b"RWDFNZ".contains(c)) => (Category::FLUSH, rest),
        _ => (Category::empty(), rwbs),
    };
    let (&op, after) = rest.split_first()?;
    rest = after;
    category |= match op {
        b'R' => Category::empty(),
        b'W' => Category::WRITE,
        b'D' => Category::WRITE | Category::DISCARD,
        b'F' => Category::WRITE | Category::FLUSH,
        b'N' | b'Z' => Category::PC,
        _ => return None,
    };
    for (position, letter) in rest.iter().enumerate() {
        category |= match letter {
            b'F' if position == 0 => Category::FUA,
            b'A' => Category::AHEAD,
            b'S' => Category::SYNC,
            b'M' => Category::META,
            _ if letter.is_ascii_uppercase() => Category::empty(),
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
    if CHATTER.iter().any(|start| line.starts_with(start)) {
        return Ok(Line::Other);
    }
    if let Some(skips) = line.strip_prefix(b"Skips:") {
        return Ok(match tokens(skips).next().and_then(uint) {
            Some(lost) if lost > 0 => Line::Lost(lost),
            _ => Line::End,
        });
    }
    if [&b"CPU"[..], b"Total (", b"Throughput (", b"Events ("].iter().any(|start| line.starts_with(start))
        || is_of_process(line)
    {
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
        code if OTHERS.contains(&code) => Action::Other,
        code => return Err(bad(&format!("unknown action {}", quote(code)), line)),
    };
    if !is_whole(code, line) {
        return Err(bad(&format!("no end of action {}", quote(code)), line));
    }
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
    // A passthrough command has bytes and the command in brackets in place of a sector. Of newer kernels it
    // has bytes alone, and is not queued.
    let second = fields.next().unwrap_or(b"");
    let number = first.and_then(uint);
    if second.starts_with(b"(") || action == Action::Issue && number.is_some() && second.starts_with(b"[") {
        return Ok(Line::Passed(time));
    }
    // Flushes have no sectors, and the completion of none has a sector alone, but of a passthrough command
    // nothing. Under -t the time since the queue event stands before the bracket.
    let bare = first.is_some_and(|first| matches!(first.first(), Some(b'[' | b'(')));
    let (sector, sectors) = match (place(args), number) {
        (Some(place), _) => place,
        (None, Some(sector)) if action == Action::Complete && second.starts_with(b"[") => (sector, 0),
        (None, None) if bare && action == Action::Complete => return Ok(Line::Passed(time)),
        (None, None)
            if bare && (action == Action::Issue || category.intersects(Category::FLUSH | Category::PC)) =>
        {
            (0, 0)
        }
        _ => return Err(bad("no sector and number of sectors", line)),
    };
    let failed = action == Action::Complete && !matches!(bracketed(line), b"0" | b"");
    let name = if action == Action::Complete { b"" } else { comm(line) };
    let bytes = bytes(sectors, line)?;
    Ok(Line::Event(Event { time, sector, bytes, action, category, pid, device, failed }, name))
}

/// What blkparse says of itself before events.
const CHATTER: [&[u8]; 4] = [b"Input file ", b"Trace started at ", b"blkparse", b"== "];

/// Whether a line is the head of a process's totals (`-s`), such as `fio (312, ...)`, or one of their figures.
fn is_of_process(line: &[u8]) -> bool {
    let figure = line.trim_ascii_start().starts_with(b"Reads Queued:");
    let inner =
        line.trim_ascii_end().strip_suffix(b")").map(|line| line.strip_suffix(b", ...").unwrap_or(line));
    let pid = inner.and_then(|line| Some(&line[memchr::memrchr(b'(', line)? + 1..]));
    figure || pid.and_then(uint).is_some() && device(tokens(line).next().unwrap_or(b"")).is_none()
}

/// Codes of blkparse's other actions (its man page, ACTION IDENTIFIERS), messages, and those of zones.
const OTHERS: [&[u8]; 18] = [
    b"A", b"B", b"F", b"G", b"I", b"M", b"P", b"R", b"S", b"T", b"U", b"UT", b"X", b"m", b"ZA", b"ZM", b"ZP",
    b"ZU",
];

/// Whether a line ends as those of its action do: mostly with a name or an error in brackets.
fn is_whole(code: &[u8], line: &[u8]) -> bool {
    match code {
        b"m" => true,
        b"A" => memchr::memmem::find(line, b" <- (").is_some(),
        b"U" | b"UT" | b"T" => memchr::memchr(b']', line).is_some(),
        _ => line.trim_ascii_end().ends_with(b"]"),
    }
}

fn device_or(text: &[u8], line: &[u8]) -> Result<u32> {
    device(text).ok_or_else(|| bad(&format!("device {} is not major,minor", quote(text)), line))
}

/// A line of tracefs, trace-cmd or perf script.
fn tracefs(line: &[u8]) -> Result<Line<'_>> {
    let Some((head, event)) = split_event(line) else {
        return match lost(line) {
            Some(events) => Ok(Line::Lost(events)),
            None if is_aside(line) || is_event(line) => Ok(Line::Other),
            None => Err(bad("no event", line)),
        };
    };
    let seconds = tokens(head).next_back().unwrap_or(b"");
    let colon = memchr::memchr(b':', event).unwrap_or(event.len());
    let (name, args) = (&event[..colon], event.get(colon + 1..).unwrap_or_default());
    let action = match name {
        b"block_bio_queue" => Action::Queue,
        b"block_rq_issue" => Action::Issue,
        b"block_rq_complete" | b"block_bio_complete" => Action::Complete,
        _ => {
            return match time(seconds) {
                Some(time) if colon < event.len() && is_known(name) => Ok(Line::Passed(time)),
                Some(_) => Err(bad(&format!("unknown event {}", quote(name)), line)),
                // What another event says.
                None if is_event(line) => Ok(Line::Other),
                None => Err(bad("no event", line)),
            };
        }
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
    if !line.trim_ascii_end().ends_with(b"]") {
        return Err(bad("no end of the event", line));
    }
    let failed = action == Action::Complete && !matches!(bracketed(line), b"0" | b"");
    let name = if action == Action::Complete { b"" } else { comm };
    let bytes = bytes(sectors, line)?;
    Ok(Line::Event(Event { time, sector, bytes, action, category, pid, device, failed }, name))
}

/// Whether the kernel has a block event called so (`include/trace/events/block.h`, of old versions too).
fn is_known(name: &[u8]) -> bool {
    const REQUESTS: [&[u8]; 10] = [
        b"abort",
        b"complete",
        b"error",
        b"insert",
        b"issue",
        b"merge",
        b"remap",
        b"requeue",
        b"start",
        b"done",
    ];
    const BIOS: [&[u8]; 7] =
        [b"backmerge", b"bounce", b"complete", b"frontmerge", b"queue", b"remap", b"split"];
    const OTHERS: [&[u8]; 13] = [
        b"dirty_buffer",
        b"getrq",
        b"io_done",
        b"io_start",
        b"plug",
        b"remap",
        b"sleeprq",
        b"split",
        b"touch_buffer",
        b"unplug",
        b"unplug_io",
        b"unplug_timer",
        b"unplug_explicit",
    ];
    let Some(name) = name.strip_prefix(b"block_") else { return false };
    match (name.strip_prefix(b"rq_"), name.strip_prefix(b"bio_")) {
        (Some(name), _) => REQUESTS.contains(&name),
        (_, Some(name)) => BIOS.contains(&name),
        _ => OTHERS.contains(&name) || name.starts_with(b"zone"),
    }
}

/// Whether a line has the shape of an event of some system: a CPU in brackets, a time, and what happened;
/// also of the function and blk tracers, which have `function <-parent` and a device there.
fn is_event(line: &[u8]) -> bool {
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'[', &line[at..]) {
        at += open + 1;
        let Some(close) = memchr::memchr(b']', &line[at..]) else { return false };
        if uint(&line[at..at + close]).is_none() {
            continue;
        }
        let rest = &line[at + close + 1..];
        let is_time = |token: &[u8]| {
            token.strip_suffix(b":").is_some_and(|time| uint(time).or_else(|| self::time(time)).is_some())
        };
        // Flags may stand before the time.
        let Some(seconds) = tokens(rest).take(3).find(|token| is_time(token)) else { continue };
        let after = &rest[seconds.as_ptr().addr() - rest.as_ptr().addr() + seconds.len()..];
        let blk = tokens(after).next().is_some_and(|first| device(first).is_some());
        return blk || memchr::memchr(b':', after).is_some() || memchr::memmem::find(after, b"<-").is_some();
    }
    false
}

/// Whether a line is blank, a comment, or what stands at the head of the file or below an event.
fn is_aside(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let starts = |starts: &[&[u8]]| starts.iter().any(|start| text.starts_with(start));
    // A caller: its address and where it is.
    let first = tokens(text).next().unwrap_or(b"");
    let caller = || text.len() < line.len() && first.len() >= 6 && first.iter().all(u8::is_ascii_hexdigit);
    text.is_empty()
        || starts(&[b"#", b"=>", b"<stack trace>", b"<user stack trace>", b"cpus=", b"version = "])
        || text.starts_with(b"CPU ") && text.ends_with(b" is empty")
        || caller()
}

/// What stands before a block event, up to its time, and the event from its name on; perf script pads names to a
/// common width.
fn split_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memchr_iter(b':', line).find_map(|colon| {
        let rest = &line[colon + 1..];
        let name = rest.trim_ascii_start();
        let event = name.strip_prefix(b"block:").unwrap_or(name);
        (name.len() < rest.len() && event.starts_with(b"block_")).then(|| (&line[..colon], event))
    })
}

/// Name and id of the task that stands before the CPU in brackets.
fn task(head: &[u8]) -> Option<(&[u8], u32)> {
    let open = memchr::memrchr(b'[', head)?;
    uint(&head[open + 1..][..memchr::memchr(b']', &head[open + 1..])?])?;
    let before = head[..open].trim_ascii();
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

/// Events that a line says are missing: `CPU:1 [LOST 12 EVENTS]`, perf's `LOST 12 events!`, or trace-cmd's
/// `CPU:1 [12 EVENTS DROPPED]`, without a number where it does not know it.
fn lost(line: &[u8]) -> Option<u64> {
    if line.starts_with(b"CPU:") && line.trim_ascii_end().ends_with(b"EVENTS DROPPED]") {
        let number = &line[memchr::memchr(b'[', line)? + 1..];
        return Some(tokens(number).next().and_then(uint).unwrap_or(1));
    }
    let at = memchr::memmem::find(line, b"LOST ")?;
    let mut words = tokens(&line[at + b"LOST ".len()..]);
    let lost = uint(words.next()?)?;
    words.next()?.to_ascii_uppercase().starts_with(b"EVENTS").then_some(lost)
}
