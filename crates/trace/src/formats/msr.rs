//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, of itself without a header.
//!
//! Time and response in 100 ns, time since 1601 (Windows FILETIME), offset and size in bytes,
//! `Read` or `Write`. Objects are `host.disk`. Doubles lose the timestamps' low digits.

use super::format::{Format, Known, Source, begins_with, single};
use crate::chunk::{Chunk, Ids, Key};
use crate::input::Input;
use crate::lines::{LineFormat, Lines};
use crate::options::OpenOptions;
use crate::scan::{Fields, extent, quote, uint};
use crate::{Error, Info, NONE, Op, Result};
use std::borrow::Cow;

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "msr",
    title: "MSR Cambridge CSV",
    extensions: &["msr"],
    known: Known::Content,
    header: &["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"],
    detect: |head, all| begins_with(head, all, |line| parse(line).is_ok()),
    open,
};

/// 100 ns between 1601 and 1970.
const UNIX: i64 = 116_444_736_000_000_000;

fn open(inputs: Vec<Input>, options: &OpenOptions) -> Result<Box<dyn Source>> {
    Ok(Box::new(Msr { lines: Lines::start(single(inputs)?, Parser, options.threads, options.max_damaged) }))
}

struct Msr {
    lines: Lines,
}

impl Source for Msr {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.lines.next(chunk)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 100;
        // Times are since 1970 already; the reader adds the first one.
        info.start_unix_ns = Some(0);
        info.objects = self.lines.ids.objects();
        for (object, key) in info.objects.iter_mut().zip(self.lines.ids.keys()) {
            if let Key::Text(text) = key {
                object.name = String::from_utf8_lossy(text).replace(',', ".");
            }
        }
    }

    fn span(&self) -> Option<i64> {
        self.lines.span()
    }
}

struct Row<'a> {
    time: i64,
    /// Host and disk with a comma between them.
    object: Cow<'a, [u8]>,
    op: Op,
    offset: u64,
    size: u64,
    response: u64,
}

fn parse(line: &[u8]) -> Result<Row<'_>> {
    let mut fields = Fields::new(line, b',');
    let mut missing = 0;
    let mut field = || {
        fields.next().unwrap_or_else(|| {
            missing += 1;
            b""
        })
    };
    let (time, host, disk, kind) = (field(), field(), field(), field());
    let (offset, size, response) = (field(), field(), field());
    if missing > 0 {
        let what = format!(
            "{} has {} of the 7 fields Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            quote(line),
            7 - missing
        );
        return Err(Error::malformed(what).help("the line is cut short or the file is not MSR Cambridge"));
    }
    let number = |text: &[u8], name: &str| {
        uint(text).ok_or_else(|| {
            Error::malformed(format!("{name} {} is not a number", quote(text)))
                .help("it must be a whole number, not negative")
        })
    };
    let ticks = number(time, "Timestamp")?;
    let time =
        i64::try_from(ticks).ok().and_then(|t| t.checked_sub(UNIX)?.checked_mul(100)).ok_or_else(|| {
            Error::malformed(format!("Timestamp {ticks} is no Windows file time"))
                .help("it counts 100 ns since 1601")
        })?;
    let op = match kind {
        b"Read" => Op::Read,
        b"Write" => Op::Write,
        _ => {
            return Err(Error::malformed(format!("unknown op code {}", quote(kind)))
                .help("MSR Cambridge knows Read and Write"));
        }
    };
    uint(disk).ok_or_else(|| Error::malformed(format!("DiskNumber {} is not a number", quote(disk))))?;
    // As they stand side by side in the line, unless there are blanks between them.
    let from = host.as_ptr().addr() - line.as_ptr().addr();
    let object = match line.get(from..from + host.len() + 1 + disk.len()) {
        Some(object) if object.ends_with(disk) && object[host.len()] == b',' => Cow::Borrowed(object),
        _ => Cow::Owned([host, b",", disk].concat()),
    };
    let (offset, size) = (number(offset, "Offset")?, number(size, "Size")?);
    Ok(Row { time, object, op, offset, size, response: number(response, "ResponseTime")? })
}

struct Parser;

impl LineFormat for Parser {
    fn line(&self, line: &[u8], ids: &mut Ids, chunk: &mut Chunk) -> Result<()> {
        if line.trim_ascii().is_empty() {
            chunk.other += 1;
            return Ok(());
        }
        let row = parse(line)?;
        let (offset, size) = extent(row.offset, row.size, 1, 1)?;
        chunk.push(row.time, row.op as u8, ids.text(&row.object), offset, size);
        chunk
            .batch
            .latency
            .push(row.response.checked_mul(100).and_then(|l| i64::try_from(l).ok()).unwrap_or(NONE));
        Ok(())
    }
}
