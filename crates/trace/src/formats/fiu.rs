//! FIU (homes, mail, online, webmail): `ns pid process block blocks W|R major minor md5`, blank separated.
//!
//! Blocks are of 512 bytes; the hash is of 4 KiB of content. The name of a process may hold blanks, so
//! fields count from the end.

use super::format::{Format, Known, Opened, Source, begins_with, single};
use crate::chunk::{Chunk, Ids, Key};
use crate::input::Input;
use crate::lines::{LineFormat, Lines};
use crate::options::OpenOptions;
use crate::scan::{extent, quote, uint};
use crate::{Error, Info, Op, Result};
use std::borrow::Cow;

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "fiu",
    title: "FIU text with content hashes",
    extensions: &["fiu"],
    known: Known::Content,
    header: &[
        "ts|time|timestamp",
        "pid",
        "process",
        "lba|block",
        "size|blocks",
        "op|type|rw",
        "major",
        "minor",
        "md5|hash",
    ],
    detect: |head, all| begins_with(head, all, |line| parse(line).is_ok()),
    open,
};

fn open(inputs: Vec<Input>, options: &OpenOptions) -> Opened {
    Ok(Box::new(Fiu { lines: Lines::start(single(inputs)?, Parser, options.threads, options.max_damaged) }))
}

struct Fiu {
    lines: Lines,
}

impl Source for Fiu {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.lines.next(chunk)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1;
        info.objects = self.lines.ids.objects();
        for (object, key) in info.objects.iter_mut().zip(self.lines.ids.keys()) {
            if let Key::Number(device) = key {
                object.name = format!("{},{}", device >> 32, device & 0xffff_ffff);
            }
        }
        info.actors = self.lines.actors.objects();
    }

    fn span(&self) -> Option<i64> {
        self.lines.span()
    }
}

struct Row<'a> {
    time: i64,
    /// Process id and name, with a blank between them.
    process: Cow<'a, [u8]>,
    block: u64,
    blocks: u64,
    op: Op,
    device: u64,
    content: u64,
}

/// The first 64 bits of a hash of 32 hexadecimal digits.
fn hash(text: &[u8]) -> Option<u64> {
    if text.len() != 32 || !text.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(&text[..16]).ok()?, 16).ok()
}

fn parse(line: &[u8]) -> Result<Row<'_>> {
    let fields: Vec<&[u8]> = line.split(|c| matches!(c, b' ' | b'\t')).filter(|f| !f.is_empty()).collect();
    let [time, pid, .., block, blocks, op, major, minor, md5] = fields[..] else {
        let what = format!("{} has {} of the 9 fields", quote(line), fields.len());
        return Err(Error::malformed(what).help("they are: ns pid process block blocks W|R major minor md5"));
    };
    let number = |text: &[u8], name: &str| {
        uint(text).ok_or_else(|| {
            Error::malformed(format!("{name} {} is not a number", quote(text))).help("the line is damaged")
        })
    };
    let op = match op {
        b"R" => Op::Read,
        b"W" => Op::Write,
        _ => return Err(Error::malformed(format!("unknown op code {}", quote(op))).help("FIU knows R and W")),
    };
    let time = number(time, "time")?;
    let time =
        i64::try_from(time).map_err(|_| Error::malformed(format!("time {time} ns is beyond 292 years")))?;
    number(pid, "process id")?;
    let start = pid.as_ptr().addr() - line.as_ptr().addr();
    let end = block.as_ptr().addr() - line.as_ptr().addr();
    let name = line[start + pid.len()..end].trim_ascii();
    let process = match &line[start..start + pid.len() + 1 + name.len()] {
        process if process.ends_with(name) && (name.is_empty() || process[pid.len()] == b' ') => {
            Cow::Borrowed(process.trim_ascii_end())
        }
        _ => Cow::Owned([pid, b" ", name].concat()),
    };
    let (major, minor) = (number(major, "major")?, number(minor, "minor")?);
    let content = hash(md5).ok_or_else(|| {
        Error::malformed(format!("{} is not an MD5 of 32 hexadecimal digits", quote(md5)))
            .help("the line is damaged or cut short")
    })?;
    Ok(Row {
        time,
        process,
        block: number(block, "block")?,
        blocks: number(blocks, "blocks")?,
        op,
        device: major << 32 | minor & 0xffff_ffff,
        content,
    })
}

struct Parser;

impl LineFormat for Parser {
    fn line(&self, line: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> Result<()> {
        if line.trim_ascii().is_empty() {
            chunk.other += 1;
            return Ok(());
        }
        let row = parse(line)?;
        let (offset, size) = extent(row.block, row.blocks, 512, 512)?;
        chunk.push(row.time, row.op as u8, ids.number(row.device), offset, size);
        let actor = chunk.actors.text(&row.process);
        chunk.batch.actor.push(actor);
        chunk.batch.content.push(row.content);
        Ok(())
    }
}
