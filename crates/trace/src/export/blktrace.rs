//! blktrace binary, version 7, as one per-CPU file in the byte order of x86, for blkparse, btt and fio.
//!
//! A request becomes its queue event (Q); where its latency is known also the events that blkparse pairs
//! with it: get request (G), issue (D) at the same time, and completion (C). Sizes become whole sectors.
//! Readers count time from the first event, so a trace whose first request comes later begins with one that
//! makes no request: a plug (P).

use super::{Export, Format, Labels, Losses};
use crate::formats::blktrace::{self, Action, Category, Event, Join};
use crate::{Batch, Error, ErrorKind, Info, NONE, Op, Result, flag};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const FORMAT: Format =
    Format { name: "blktrace", extensions: &["blktrace"], make: || Box::new(Blktrace::new()), file };

const MAGIC: u32 = 0x6561_7407;

/// Codes of actions.
const QUEUE: u32 = 1;
const GET: u32 = 4;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const PLUG: u32 = 9;

/// Notes: a process's name, the wall clock.
const NAME: u32 = 0;
const CLOCK: u32 = 1;

/// The per-CPU file of a capture called so. Files of other CPUs would be read with it.
fn file(path: &Path) -> Result<PathBuf> {
    let file = named(path);
    match blktrace::others(&file).first() {
        Some(other) => Err(Error::new(
            ErrorKind::Option,
            format!("{} lies there, and would be read with it", other.display()),
        )
        .path(&file)
        .help("choose another name, or move the files of that capture away")),
        None => Ok(file),
    }
}

fn named(path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    let cpu = name.rsplit_once(".blktrace.").is_some_and(|(_, cpu)| cpu.parse::<u32>().is_ok());
    if cpu {
        return path.into();
    }
    let dotted = if name.ends_with(".blktrace") { ".0" } else { ".blktrace.0" };
    PathBuf::from(format!("{name}{dotted}"))
}

/// What an event says of its request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct About {
    sector: u64,
    bytes: u32,
    kind: Category,
    pid: u32,
    device: u32,
}

struct Blktrace {
    /// Wall clock of time 0, nanoseconds since 1970.
    start: i64,
    devices: Labels,
    /// Of each actor that is known: its number, and a name.
    pids: Labels,
    comms: Vec<String>,
    named: FxHashSet<u32>,
    sequence: u32,
    /// Completions to come, by time and in order of their requests.
    completions: BinaryHeap<Reverse<(i64, u64, About)>>,
    number: u64,
    as_read: AsRead,
}

/// What readers will take for the latencies of what is written, as they pair completions by sectors.
#[derive(Default)]
struct AsRead {
    join: Join,
    /// Latencies of the requests that are not read yet, oldest first.
    written: VecDeque<i64>,
    read: Batch,
}

impl AsRead {
    fn queue(&mut self, time: i64, about: &About, latency: i64) {
        self.written.push_back(latency);
        self.join.queue(&about.event(time, Action::Queue), 0, 0);
    }

    fn complete(&mut self, time: i64, about: &About) {
        self.join.complete(&about.event(time, Action::Complete));
    }

    /// How many latencies of requests that are read by now are others than was written.
    fn changed(&mut self, ended: bool) -> u64 {
        self.join.deliver(&mut self.read, ended);
        let read = std::mem::take(&mut self.read.latency);
        self.read.clear();
        let pairs = self.written.drain(..read.len()).zip(read);
        pairs.filter(|(written, read)| written != read).count() as u64
    }
}

impl About {
    fn event(&self, time: i64, action: Action) -> Event {
        let About { sector, bytes, kind, pid, device } = *self;
        let time = time.cast_unsigned();
        Event { time, sector, bytes, action, category: kind, pid, device, failed: false }
    }
}

/// `major,minor` of a device; what is called otherwise gets a number of its own of block devices like partitions.
fn device(name: &str, id: u32, tried: u64) -> String {
    let known = name.split_once(',').and_then(|(major, minor)| {
        let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
        (major < 1 << 12 && minor < 1 << 20).then_some((major, minor))
    });
    let spare = u64::from(id).saturating_add(tried);
    let own = (259 + (spare >> 20), spare & 0xf_ffff);
    let (major, minor) = match known {
        Some((major, minor)) if tried == 0 => (major.into(), minor.into()),
        _ => own,
    };
    format!("{major},{minor}")
}

/// The number of a device in records.
fn number(device: &str) -> u32 {
    let (major, minor) = device.split_once(',').unwrap_or_default();
    let part = |text: &str| text.parse::<u32>().unwrap_or_default();
    part(major) << 20 | part(minor)
}

/// The number of a process, which readers call `pid name`.
fn pid(name: &str, id: u32, tried: u64) -> String {
    let told: Option<u32> = name.split_once(' ').map_or(name, |(pid, _)| pid).parse().ok();
    told.unwrap_or(id).wrapping_add(tried as u32).to_string()
}

impl Blktrace {
    fn new() -> Blktrace {
        Blktrace {
            start: 0,
            devices: Labels::new(device),
            pids: Labels::new(pid),
            comms: Vec::new(),
            named: FxHashSet::default(),
            sequence: 0,
            completions: BinaryHeap::new(),
            number: 0,
            as_read: AsRead::default(),
        }
    }

    fn record(
        &mut self,
        time: i64,
        (code, category): (u32, Category),
        about: &About,
        more: &[u8],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let notes = category.contains(Category::NOTIFY);
        // The kernel numbers events of each CPU from 1 and leaves the number of notes unset.
        self.sequence += u32::from(!notes);
        let mut record = [0; 48];
        let mut word = |at: usize, v: u32| record[at..at + 4].copy_from_slice(&v.to_le_bytes());
        word(0, MAGIC);
        word(4, if notes { 0 } else { self.sequence });
        word(24, about.bytes);
        word(28, code | u32::from(category.bits()) << 16);
        word(32, about.pid);
        word(36, about.device);
        record[8..16].copy_from_slice(&time.to_le_bytes());
        record[16..24].copy_from_slice(&about.sector.to_le_bytes());
        record[46..48].copy_from_slice(&(more.len() as u16).to_le_bytes());
        out.write_all(&record)?;
        out.write_all(more)
    }

    /// Writes the completions up to a time.
    fn complete(&mut self, until: i64, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        while self.completions.peek().is_some_and(|Reverse((time, ..))| *time <= until) {
            let Some(Reverse((time, _, about))) = self.completions.pop() else { break };
            self.as_read.complete(time, &about);
            self.record(time, (COMPLETE, Category::COMPLETE | about.kind), &about, &[], out)?;
        }
        losses.latencies += self.as_read.changed(false);
        Ok(())
    }

    /// Tells a process's name before its first request.
    fn name(&mut self, actor: u32, time: i64, device: u32, out: &mut dyn Write) -> io::Result<u32> {
        let pid = self.pids.get(actor).parse().unwrap_or(actor);
        let name = self.comms.get(actor as usize).map_or("", String::as_str);
        if self.named.insert(actor) && !name.is_empty() {
            let mut comm = [0; 16];
            let n = name.len().min(15);
            comm[..n].copy_from_slice(&name.as_bytes()[..n]);
            let about = About { sector: 0, bytes: 0, kind: Category::empty(), pid, device };
            self.record(time, (NAME, Category::NOTIFY), &about, &comm, out)?;
        }
        Ok(pid)
    }
}

fn kind(op: Op, flags: u32) -> Category {
    let mut kind = match op {
        Op::Read => Category::READ,
        Op::Discard => Category::WRITE | Category::DISCARD,
        Op::Flush => Category::WRITE | Category::FLUSH,
        _ => Category::WRITE,
    };
    for (bit, value) in [
        (flag::SYNC, Category::SYNC),
        (flag::FUA, Category::FUA),
        (flag::META, Category::META),
        (flag::READAHEAD, Category::AHEAD),
        (flag::PREFLUSH, Category::FLUSH),
    ] {
        kind.set(value, kind.contains(value) || flags & bit != 0);
    }
    kind
}

impl Export for Blktrace {
    fn learn(&mut self, info: &Info) {
        self.start = info.start_unix_ns.unwrap_or(0);
        self.devices.learn(&info.objects);
        self.pids.learn(&info.actors);
        let comm = |name: &str| match name.split_once(' ') {
            Some((pid, comm)) if pid.parse::<u32>().is_ok() => comm.into(),
            None if name.parse::<u32>().is_ok() => String::new(),
            _ => name.to_string(),
        };
        self.comms = info.actors.iter().map(|actor| comm(&actor.name)).collect();
    }

    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let start = self.start;
        let mut clock = [0; 8];
        clock[..4].copy_from_slice(&((start / 1_000_000_000) as u32).to_le_bytes());
        clock[4..].copy_from_slice(&((start % 1_000_000_000) as u32).to_le_bytes());
        let about = About { sector: 0, bytes: 0, kind: Category::empty(), pid: 0, device: 0 };
        self.record(0, (CLOCK, Category::NOTIFY), &about, &clock, out)
    }

    fn write(&mut self, batch: &Batch, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        const OF_BLOCKS: u32 = flag::SYNC | flag::FUA | flag::META | flag::READAHEAD | flag::PREFLUSH;
        for row in 0..batch.len() {
            let op = match Op::from_code(batch.op[row]) {
                Some(op @ (Op::Read | Op::Write | Op::Discard | Op::Flush)) => op,
                _ => {
                    losses.ops += 1;
                    continue;
                }
            };
            let (offset, size) = (batch.offset[row], batch.size[row]);
            let placed = offset != NONE && size != NONE;
            let bytes = u32::try_from(size.max(0)).ok().filter(|b| *b <= u32::MAX - 511);
            if op != Op::Flush && (!placed || bytes.is_none()) {
                losses.places += 1;
                continue;
            }
            losses.wrote(batch, row);
            losses.flags += u64::from(batch.flags[row] & !OF_BLOCKS != 0);
            let (offset, bytes) = if placed { (offset as u64, bytes.unwrap_or(0)) } else { (0, 0) };
            losses.sectors += u64::from(offset % 512 != 0 || bytes % 512 != 0);
            let time = batch.time[row];
            self.complete(time, losses, out)?;
            let object = batch.object[row];
            let device = number(self.devices.get(object));
            let late = self.sequence == 0 && time > 0;
            let pid = self.name(batch.actor[row], if late { 0 } else { time }, device, out)?;
            if late {
                let about = About { sector: 0, bytes: 0, kind: Category::empty(), pid, device };
                self.record(0, (PLUG, Category::QUEUE), &about, &[], out)?;
            }
            let kind = kind(op, batch.flags[row]);
            let about = About { sector: offset / 512, bytes: bytes.next_multiple_of(512), kind, pid, device };
            self.record(time, (QUEUE, Category::QUEUE | kind), &about, &[], out)?;
            self.as_read.queue(time, &about, batch.latency[row]);
            if batch.latency[row] != NONE {
                self.record(time, (GET, Category::QUEUE | kind), &about, &[], out)?;
                // The driver's own flushes are other requests; this one ends without the bit.
                if op != Op::Flush {
                    self.record(time, (ISSUE, Category::ISSUE | kind), &about, &[], out)?;
                }
                let about =
                    if op == Op::Flush { About { kind: kind - Category::FLUSH, ..about } } else { about };
                self.number += 1;
                let end = time.saturating_add(batch.latency[row]);
                self.completions.push(Reverse((end, self.number, about)));
            }
        }
        Ok(())
    }

    fn end(&mut self, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        self.complete(i64::MAX, losses, out)?;
        losses.latencies += self.as_read.changed(true);
        losses.names = self.devices.changed;
        Ok(())
    }
}
