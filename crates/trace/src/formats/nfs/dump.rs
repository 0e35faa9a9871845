//! nfsdump text (Ellard and others, Harvard): a line for every call and every reply.
//!
//! `seconds.micros source destination T|U C3|R3|C2|R2 xid number procedure`, of replies then `OK` or an error;
//! then keys and values. Numbers are hexadecimal without a prefix, times are decimal, names are in quotes. Some
//! published files have stretches of NUL bytes and truncated lines.

use super::{Line, Talk, errno};
use crate::chunk::{Chunk, Origin};
use crate::formats::format::{Format, Known, Opened, Source, head_lines, single};
use crate::input::Input;
use crate::options::OpenOptions;
use crate::scan::{decimal, quote};
use crate::serial::Serial;
use crate::{Error, Info, Op, Result};
use std::borrow::Cow;

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "nfsdump",
    title: "nfsdump text (NFSv2 and v3)",
    extensions: &["nfsdump"],
    known: Known::Content,
    header: &[],
    // Some of them may be damaged; no other format has such lines.
    detect: |head, all| head_lines(head, all).take(4).any(|line| parse(line).is_ok()),
    open,
};

/// Lines read before a chunk is handed on.
const STEP: usize = 1 << 16;

fn open(inputs: Vec<Input>, _: &OpenOptions) -> Opened {
    Ok(Box::new(Dump { lines: Serial::new(single(inputs)?), talk: Talk::default() }))
}

struct Dump {
    lines: Serial,
    talk: Talk,
}

/// A line taken apart.
struct Message<'a> {
    time: i64,
    /// Address and port as they stand in the line.
    client: &'a [u8],
    port: u16,
    xid: u32,
    version: u8,
    procedure: &'a [u8],
    /// Of a reply, 0 or a negative errno.
    reply: Option<i64>,
    rest: &'a [u8],
}

fn bad(what: &str, line: &[u8]) -> Error {
    Error::malformed(format!("{what} in {}", quote(line))).help(
        "the line is damaged or cut short; `max_damaged` N passes over up to N such lines and counts them",
    )
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

fn parse(line: &[u8]) -> Result<Message<'_>> {
    let mut rest = line;
    let mut field = |what: &str| {
        rest = rest.trim_ascii_start();
        let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        rest = after;
        if field.is_empty() { Err(bad(&format!("no {what}"), line)) } else { Ok(field) }
    };
    let seconds = field("time")?;
    let time = decimal(seconds, 1_000_000_000).filter(|time| *time >= 0);
    let time =
        time.ok_or_else(|| bad(&format!("time {} is not a number of seconds", quote(seconds)), line))?;
    let (source, destination) = (field("source")?, field("destination")?);
    if !matches!(field("transport")?, b"T" | b"U") {
        return Err(bad("no transport T or U", line));
    }
    let (is_call, version) = match field("kind of message")? {
        [b'C', version @ (b'2' | b'3')] => (true, version - b'0'),
        [b'R', version @ (b'2' | b'3')] => (false, version - b'0'),
        other => return Err(bad(&format!("unknown kind of message {}", quote(other)), line)),
    };
    let xid = hex(field("transaction id")?).and_then(|xid| u32::try_from(xid).ok());
    let xid = xid.ok_or_else(|| bad("no transaction id", line))?;
    field("procedure number")?;
    let procedure = field("procedure")?;
    let reply = match is_call {
        true => None,
        false => Some(match field("status")? {
            b"OK" => 0,
            // A status that is none is some error, too.
            status => errno(hex(status).and_then(|s| u32::try_from(s).ok()).filter(|s| *s != 0).unwrap_or(5)),
        }),
    };
    let client = if is_call { source } else { destination };
    let dot = memchr::memrchr(b'.', client).ok_or_else(|| bad("no port of the client", line))?;
    let port = hex(&client[dot + 1..]).and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or_else(|| bad("no port of the client", line))?;
    if !is_whole(rest) {
        return Err(bad("no con = ... len = ... at the end", line));
    }
    Ok(Message { time, client: &client[..dot], port, xid, version, procedure, reply, rest })
}

/// Whether a line ends as all do: `con = LENGTH len = LENGTH`, of what was captured and of the packet. Both
/// are `XXX` where they were taken out.
fn is_whole(rest: &[u8]) -> bool {
    let length = |word: &[u8]| word == b"XXX" || !word.is_empty() && word.iter().all(u8::is_ascii_hexdigit);
    let mut words = rest.trim_ascii_end().rsplit(|&c| c == b' ').filter(|word| !word.is_empty());
    let mut next = || words.next().unwrap_or_default();
    // A packet that was cut short says so without a blank behind.
    length(next())
        && next() == b"="
        && next() == b"len"
        && length(next())
        && next() == b"="
        && next().ends_with(b"con")
}

/// Whether a call that must say what it reads or writes does, or was captured in part.
fn is_placed(op: Op, line: &Line, rest: &[u8]) -> bool {
    !matches!(op, Op::Read | Op::Write)
        || line.offset.is_some() && line.count.or(line.total).is_some()
        || memchr::memmem::find(rest, b"SHORT PACKET").is_some()
}

/// The value of a key in pairs of them; the first of several.
fn value<'a>(rest: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut words = Words(rest);
    while let Some(word) = words.next() {
        if word == key {
            return words.next();
        }
        // What stands behind a key is its value, whatever it looks like.
        words.next()?;
    }
    None
}

/// Words between blanks; names are in quotes and may hold blanks.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.trim_ascii_start();
        let (word, after) = match rest {
            [] => return None,
            [b'"', inner @ ..] => {
                let end = memchr::memchr(b'"', inner).unwrap_or(inner.len());
                (&inner[..end], inner.get(end + 1..).unwrap_or_default())
            }
            rest => rest.split_at(memchr::memchr(b' ', rest).unwrap_or(rest.len())),
        };
        self.0 = after;
        Some(word)
    }
}

/// The bytes of a handle, written in hexadecimal; the text itself where it is not.
fn bytes_of(text: &[u8]) -> Cow<'_, [u8]> {
    let digits =
        |pair: &[u8]| if pair.len() == 2 { hex(pair).and_then(|n| u8::try_from(n).ok()) } else { None };
    text.chunks(2).map(digits).collect::<Option<Vec<u8>>>().map_or(Cow::Borrowed(text), Cow::Owned)
}

impl Dump {
    fn take(&mut self, message: &Message, op: Op) -> Result<()> {
        let actor = self.talk.clients.text(message.client);
        let key = (actor, message.port, message.xid);
        let either = |names: [&[u8]; 2]| names.iter().find_map(|name| value(message.rest, name));
        let one = |name: &[u8]| value(message.rest, name);
        let line = Line {
            handle: either([b"fh", b"file"]).map(bytes_of),
            offset: either([b"off", b"offset"]).and_then(hex),
            count: one(b"count").and_then(hex),
            total: one(b"tcount").and_then(hex),
            length: one(b"size").and_then(hex),
            name: either([b"name", b"fn"]),
            target: one(b"fh2").map(bytes_of),
            second: either([b"name2", b"fn2"]),
            leads: one(b"sdata"),
            stable: one(b"stable").and_then(|word| word.first().copied()),
        };
        if message.reply.is_none() && !is_placed(op, &line, message.rest) {
            return Err(bad("no offset and count", message.rest.trim_ascii()));
        }
        self.talk.line(message.time, key, message.version, message.reply, op, &line)
    }
}

impl Source for Dump {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.origin = Origin::Unknown;
        let mut ended = false;
        for _ in 0..STEP {
            let Some(line) = self.lines.next()? else {
                ended = true;
                break;
            };
            if line.trim_ascii().is_empty() {
                chunk.other += 1;
                continue;
            }
            let line = line.to_vec();
            self.talk.calls.line = self.lines.line();
            let taken = parse(&line).and_then(|message| match super::op(message.procedure) {
                Some(op) => self.take(&message, op).map(|()| u64::from(message.reply.is_some())),
                None => Ok(1),
            });
            match taken {
                Ok(other) => chunk.other += other,
                Err(error) => chunk.damaged.push((self.lines.line(), self.lines.place(error))),
            }
        }
        self.talk.check()?;
        self.talk.calls.deliver(chunk, ended);
        chunk.fill();
        Ok(!ended || !chunk.batch.is_empty() || chunk.other > 0 || !chunk.damaged.is_empty())
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1000;
        self.talk.info(info);
    }
}
