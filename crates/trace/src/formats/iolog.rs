//! fio's iolog, versions 2 and 3 (fio documentation, "Trace file format").
//!
//! The first line names the version; then one line each: in version 3 a time since the start in
//! microseconds, the file, and either `add`, `open`, `close`, or an action with offset and length in bytes.
//! Version 2 has no times; what stands for them are `wait`s, in microseconds, in the place of the offset.

use super::format::{Format, Known, Opened, Source, head_lines, single};
use crate::chunk::{Chunk, Ids, Origin};
use crate::input::Input;
use crate::options::OpenOptions;
use crate::scan::{extent, quote, uint};
use crate::serial::Serial;
use crate::{Error, ErrorKind, Info, NONE, Op, Result};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "iolog",
    title: "fio iolog version 2 or 3",
    extensions: &["iolog"],
    known: Known::Content,
    header: &[],
    detect: |head, all| head_lines(head, all).next().is_some_and(|line| line.starts_with(b"fio version ")),
    open,
};

/// Lines read before a chunk is handed on.
const STEP: usize = 1 << 16;

const V2: &[u8] = b"fio version 2 iolog";
const V3: &[u8] = b"fio version 3 iolog";

fn open(inputs: Vec<Input>, _: &OpenOptions) -> Opened {
    let input = single(inputs)?;
    let devices = is_of_devices(&input);
    let mut lines = Serial::new(input);
    let first = lines.next()?.unwrap_or_default().trim_ascii_end().to_vec();
    let version = first.strip_suffix(OF_BLOCKS).unwrap_or(&first);
    let blocks = devices || version.len() < first.len();
    let timed = match version {
        V2 => false,
        V3 => true,
        _ => {
            let what = format!("{} is not \"fio version 2 iolog\" or \"fio version 3 iolog\"", quote(&first));
            return Err(lines
                .place(Error::new(ErrorKind::Unsupported, what))
                .help("fio of 2007 and later writes these versions"));
        }
    };
    Ok(Box::new(Iolog { lines, timed, blocks, waited: 0, files: Ids::default() }))
}

/// What our own writer puts behind the version if the requests are of block devices, whatever these are called; fio reads
/// on behind the version.
pub const OF_BLOCKS: &[u8] = b" of blocks";

/// Whether the files that a log begins with, as fio adds them all before it uses any, are devices.
fn is_of_devices(input: &Input) -> bool {
    let mut lines = head_lines(input.unread(), input.head_is_all());
    let timed = lines.next().is_some_and(|line| line.starts_with(b"fio version 3"));
    let mut files = lines.filter_map(|line| split(line, timed)).map(|line| line.file).peekable();
    let memory = |file: &[u8]| file.starts_with(b"/dev/shm/") || file.starts_with(b"/dev/mqueue/");
    files.peek().is_some() && files.all(|file| file.starts_with(b"/dev/") && !memory(file))
}

struct Iolog {
    lines: Serial,
    timed: bool,
    /// Whether its files are block devices.
    blocks: bool,
    /// Microseconds waited so far, which are the times of version 2.
    waited: u64,
    files: Ids,
}

/// A line taken apart.
struct Line<'a> {
    time: Option<u64>,
    file: &'a [u8],
    action: &'a [u8],
    /// Offset and length, if it is an action with them.
    extent: Option<(u64, u64)>,
}

/// The last field and what stands before it.
fn last(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_end();
    let at = memchr::memrchr2(b' ', b'\t', text)?;
    Some((text[..at].trim_ascii_end(), &text[at + 1..]))
}

/// From the end, as a file's name may hold blanks.
fn split(line: &[u8], timed: bool) -> Option<Line<'_>> {
    let line = line.trim_ascii();
    let (time, rest) = if timed {
        let blank = memchr::memchr2(b' ', b'\t', line)?;
        (Some(uint(&line[..blank])?), line[blank + 1..].trim_ascii_start())
    } else {
        (None, line)
    };
    let (before, word) = last(rest)?;
    if matches!(word, b"add" | b"open" | b"close") {
        return Some(Line { time, file: before, action: word, extent: None });
    }
    let (before, offset) = last(before)?;
    let (file, action) = last(before)?;
    Some(Line { time, file, action, extent: Some((uint(offset)?, uint(word)?)) })
}

impl Iolog {
    fn take(&mut self, chunk: &mut Chunk) -> Result<Option<()>> {
        let timed = self.timed;
        let Some(text) = self.lines.next()? else { return Ok(None) };
        // Several jobs of fio may append to one log, each with a header of its own.
        let header = text.trim_ascii_end();
        let header = header.strip_suffix(OF_BLOCKS).unwrap_or(header);
        if header.is_empty() || header == if timed { V3 } else { V2 } {
            chunk.other += 1;
            return Ok(Some(()));
        }
        let request = split(text, timed).ok_or_else(|| {
            let form = if timed { "TIME FILE ACTION OFFSET LENGTH" } else { "FILE ACTION OFFSET LENGTH" };
            Error::malformed(format!("{} is not {form}", quote(text)))
                .help("the line is damaged or cut short")
        });
        let request = request.and_then(|line| {
            let op = match line.action {
                b"read" => Op::Read,
                b"write" => Op::Write,
                b"trim" => Op::Discard,
                b"sync" | b"datasync" | b"sync_file_range" if self.blocks => Op::Flush,
                b"sync" => Op::Sync,
                b"datasync" | b"sync_file_range" => Op::Datasync,
                b"add" | b"open" | b"close" => return Ok(None),
                b"wait" if !timed => {
                    let waits = line.extent.map_or(0, |(offset, _)| offset);
                    self.waited = self.waited.saturating_add(waits);
                    return Ok(None);
                }
                _ => {
                    return Err(Error::malformed(format!("unknown action {}", quote(line.action)))
                        .help("fio knows read, write, trim, sync, datasync, sync_file_range, wait"));
                }
            };
            let time = line.time.unwrap_or(self.waited);
            let time = i64::try_from(time).ok().and_then(|t| t.checked_mul(1000));
            let time = time.ok_or_else(|| Error::malformed("the time is beyond 292 years"))?;
            let (offset, size) = match (op, line.extent) {
                (Op::Read | Op::Write | Op::Discard, Some((offset, size))) => extent(offset, size, 1, 1)?,
                _ => (NONE, NONE),
            };
            Ok(Some((time, op, self.files.text(line.file), offset, size)))
        });
        match request {
            Ok(Some((time, op, object, offset, size))) => chunk.push(time, op as u8, object, offset, size),
            Ok(None) => chunk.other += 1,
            Err(error) => chunk.damaged.push((self.lines.line(), self.lines.place(error))),
        }
        Ok(Some(()))
    }
}

impl Source for Iolog {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.origin = Origin::Unknown;
        let mut ended = false;
        for _ in 0..STEP {
            if self.take(chunk)?.is_none() {
                ended = true;
                break;
            }
        }
        self.files.check()?;
        chunk.fill();
        Ok(!ended || !chunk.batch.is_empty() || chunk.other > 0 || !chunk.damaged.is_empty())
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1000;
        info.layer = if self.blocks { "block" } else { "file" }.into();
        info.objects = self.files.objects();
        if !self.timed {
            info.warnings
                .push("version 2 has no times: they are the waits between requests, added up".into());
        }
    }

    fn zero_is_first(&self) -> bool {
        false
    }
}
