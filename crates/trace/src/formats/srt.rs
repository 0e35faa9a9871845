//! HP SRT, version 1.7: a head of text up to a form feed, then big-endian records of 88 bytes.
//!
//! | byte | field |
//! |---|---|
//! | 0 | u32 length, u16 version (7), u16 type (1: a request) |
//! | 8 | u32 seconds since 1970, u32 microseconds: into the driver |
//! | 16 | u32 us until it left the driver, u32 us until it returned |
//! | 24 | u32 bytes, u32 machine, u32 device |
//! | 44 | u32 flags: 0 read, 4 raw, 24 synchronous |
//! | 56 | u32 process, u32 logical volume |
//! | 64 | i64 offset on the disk, bytes |
//!
//! Found from one real file and its converted twin; other minor versions differ.

use super::format::{Format, Known, Opened, Source, single};
use crate::chunk::{Chunk, Ids, Key, Origin};
use crate::input::{Input, read_full};
use crate::options::OpenOptions;
use crate::scan::{extent, quote};
use crate::{Error, ErrorKind, Info, NONE, Op, Place, Result, flag};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "srt",
    title: "HP SRT 1.7",
    extensions: &["srt"],
    known: Known::Content,
    header: &[],
    detect: |head, _| head.starts_with(b"$$TR_IOREC"),
    open,
};

/// Records of a chunk.
const RECORDS: usize = 1 << 14;

/// Bytes of a record.
const RECORD: usize = 88;

/// Bits of the flags.
const READ: u32 = 1 << 0;
const SYNCHRONOUS: u32 = 1 << 24;

fn word(record: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

fn open(inputs: Vec<Input>, _: &OpenOptions) -> Opened {
    let mut input = single(inputs)?;
    let head = input.head();
    let help = "this reader knows version 1.7; convert other versions with DataSeries' srt2ds";
    if !head.starts_with(b"$$TR_IOREC-1.7") {
        let line = head.split(|c| matches!(c, b'\n' | b'\r')).next().unwrap_or_default();
        let what = format!("{} is not the head of an SRT file of version 1.7", quote(line));
        return Err(Error::malformed(what).path(&input.path).at(Place::Byte(0)).help(help));
    }
    let Some(end) = memchr::memchr(0x0c, head) else {
        return Err(Error::malformed("the head does not end in a form feed within 64 KiB")
            .path(&input.path)
            .help("the file is damaged or cut short"));
    };
    let mut skip = vec![0; end + 1];
    read_full(&mut input, &mut skip).map_err(|e| input.error(e))?;
    Ok(Box::new(Srt {
        input,
        at: skip.len() as u64,
        buffer: Vec::new(),
        devices: Ids::default(),
        actors: Ids::default(),
    }))
}

struct Srt {
    input: Input,
    at: u64,
    buffer: Vec<u8>,
    devices: Ids,
    actors: Ids,
}

impl Srt {
    /// Takes a record; whether it is a request.
    fn record(&mut self, r: &[u8], chunk: &mut Chunk) -> Result<bool> {
        if r.len() < RECORD {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("truncated record: {} of {RECORD} bytes", r.len()),
            )
            .help("the copy or capture was cut short"));
        }
        let (length, version, kind) = (word(r, 0), word(r, 4) >> 16, word(r, 4) & 0xffff);
        if length as usize != RECORD || version != 7 {
            return Err(Error::malformed(format!(
                "no record of 88 bytes and version 7 begins here, but of {length} and {version}"
            ))
            .help("the file is damaged here or of another version"));
        }
        if kind != 1 {
            return Ok(false);
        }
        let (seconds, micros) = (word(r, 8), word(r, 12));
        if micros >= 1_000_000 {
            return Err(Error::malformed(format!("{micros} microseconds are more than a second"))
                .help("the file is damaged here"));
        }
        let time = (i64::from(seconds) * 1_000_000 + i64::from(micros)) * 1000;
        let flags = word(r, 44);
        let op = if flags & READ != 0 { Op::Read } else { Op::Write };
        let place = (u64::from(word(r, 64)) << 32) | u64::from(word(r, 68));
        let (offset, size) = extent(place, u64::from(word(r, 24)), 1, 1)?;
        let device = (u64::from(word(r, 28)) << 32) | u64::from(word(r, 32));
        chunk.push(time, op as u8, self.devices.number(device), offset, size);
        // Traces of 1998 may hold times that wrapped below zero.
        let took = word(r, 20);
        chunk.batch.latency.push(if took > i32::MAX as u32 { NONE } else { i64::from(took) * 1000 });
        chunk.batch.flags.push(if flags & SYNCHRONOUS != 0 { flag::SYNC } else { 0 });
        chunk.batch.actor.push(self.actors.number(u64::from(word(r, 56))));
        Ok(true)
    }
}

/// Says what is known of a trace: its clock, objects by machine and device in hexadecimal digits, and actors.
pub fn tell(devices: &Ids, actors: &Ids, info: &mut Info) {
    info.clock_ns = 1000;
    info.start_unix_ns = Some(0);
    info.objects = devices.objects();
    info.actors = actors.objects();
    for (object, key) in info.objects.iter_mut().zip(devices.keys()) {
        if let Key::Number(device) = key {
            object.name = format!("{:x}.{:x}", device >> 32, device & 0xffff_ffff);
        }
    }
}

impl Source for Srt {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(RECORDS * RECORD, 0);
        let n = read_full(&mut self.input, &mut buffer).map_err(|e| self.input.error(e))?;
        chunk.origin = Origin::Byte(self.at, RECORD as u64);
        let mut skipped = 0;
        for (number, record) in buffer[..n].chunks(RECORD).enumerate() {
            let at = self.at + (number * RECORD) as u64;
            let row = chunk.batch.len();
            match self.record(record, chunk) {
                Ok(true) => continue,
                Ok(false) => chunk.other += 1,
                Err(error) => chunk.damaged.push((at, error.path(&self.input.path).at(Place::Byte(at)))),
            }
            skipped += 1;
            chunk.skips.push((row, skipped));
        }
        self.devices.check()?;
        self.actors.check()?;
        chunk.fill();
        self.at += n as u64;
        self.buffer = buffer;
        Ok(n > 0)
    }

    fn info(&self, info: &mut Info) {
        tell(&self.devices, &self.actors, info);
    }
}
