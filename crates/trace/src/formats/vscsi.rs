//! CloudPhysics vscsi, versions 1 and 2: little-endian records without a file header.
//!
//! | version | record |
//! |---|---|
//! | 1 | u32 number, u32 bytes, u32 nSG, u16 cmd, u16 ver, u64 block (512), u64 time (us) |
//! | 2 | u16 cmd, u16 ver, u32 number, u32 bytes, u32 nSG, u64 block, u64 time (us), u64 response (us) |
//!
//! `ver >> 8` is the version; `cmd` is the SCSI operation code.

use super::format::{Format, Known, Source, single};
use crate::chunk::{Chunk, Origin};
use crate::input::{Input, read_full};
use crate::options::OpenOptions;
use crate::scan::extent;
use crate::{Error, ErrorKind, Info, NONE, Object, Op, Place, Result};
use std::io::{Read, Seek, SeekFrom};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "vscsi",
    title: "CloudPhysics vscsi",
    extensions: &["vscsi"],
    known: Known::Content,
    header: &[],
    detect,
    open,
};

/// Records of a chunk.
const RECORDS: usize = 1 << 15;

/// Bytes of a record of versions 1 and 2.
const SIZES: [usize; 2] = [32, 40];

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(short(bytes, at)) | u32::from(short(bytes, at + 2)) << 16
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Where the version stands in a record of a version.
const fn version_at(version: usize) -> usize {
    if version == 1 { 14 } else { 2 }
}

/// The version of a file by its first two records: 2 is tried first, as its records tell more.
fn version(head: &[u8]) -> Option<usize> {
    [2, 1].into_iter().find(|&version| {
        let size = SIZES[version - 1];
        let records = head.len() / size;
        // A single record is taken at its word when it is all there is.
        (1..=2).contains(&records.min(2))
            && head.chunks_exact(size).take(2).all(|r| {
                let cmd = short(r, version_at(version) - 2);
                usize::from(short(r, version_at(version)) >> 8) == version && meaning(cmd).is_some()
            })
    })
}

fn detect(head: &[u8], _: bool) -> bool {
    version(head).is_some()
}

/// What a SCSI operation code (SPC-4, SBC-3) asks for: `None` unknown, `Some(None)` no data access.
fn meaning(cmd: u16) -> Option<Option<Op>> {
    Some(match cmd {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        0x0a | 0x2a | 0x2e | 0x8a | 0x8e | 0x89 | 0xaa | 0xae => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        0x00
        | 0x03
        | 0x12
        | 0x15..=0x17
        | 0x1a
        | 0x1b
        | 0x1d
        | 0x1e
        | 0x25
        | 0x2f
        | 0x34
        | 0x41
        | 0x42
        | 0x4c
        | 0x4d
        | 0x55
        | 0x56
        | 0x57
        | 0x5a
        | 0x5e
        | 0x5f
        | 0x8f
        | 0x93
        | 0x9e
        | 0xa0
        | 0xa3
        | 0xaf => None,
        _ => return None,
    })
}

fn open(inputs: Vec<Input>, _: &OpenOptions) -> Result<Box<dyn Source>> {
    let input = single(inputs)?;
    let Some(version) = version(input.head()) else {
        let n = input.head().len();
        let error = if n < SIZES[0] {
            Error::new(ErrorKind::Truncated, format!("truncated record: {n} of {} bytes", SIZES[0]))
        } else {
            Error::malformed("no vscsi record begins here")
        };
        return Err(error
            .path(&input.path)
            .at(Place::Byte(0))
            .help("the file is damaged or of another format"));
    };
    let size = SIZES[version - 1];
    let time = |record: &[u8]| i64::try_from(long(record, 24)).ok();
    let first = input.head().get(..size).and_then(time);
    let last = last_record(&input, size).as_deref().and_then(time);
    Ok(Box::new(Vscsi { input, version, at: 0, buffer: Vec::new(), first, last }))
}

/// The last whole record of an uncompressed file.
fn last_record(input: &Input, size: usize) -> Option<Vec<u8>> {
    let records = input.total / size as u64;
    if !input.compression.is_empty() || records == 0 {
        return None;
    }
    let mut file = std::fs::File::open(&input.path).ok()?;
    file.seek(SeekFrom::Start((records - 1) * size as u64)).ok()?;
    let mut record = vec![0; size];
    file.read_exact(&mut record).ok()?;
    Some(record)
}

struct Vscsi {
    input: Input,
    version: usize,
    at: u64,
    buffer: Vec<u8>,
    /// Times of the first and the last record, microseconds, where the file's end can be looked at.
    first: Option<i64>,
    last: Option<i64>,
}

impl Vscsi {
    fn record(&self, r: &[u8], chunk: &mut Chunk) -> Result<bool> {
        let (cmd, ver) = (short(r, version_at(self.version) - 2), short(r, version_at(self.version)));
        if usize::from(ver >> 8) != self.version {
            return Err(Error::malformed(format!(
                "record of version {} in a file of version {}",
                ver >> 8,
                self.version
            ))
            .help("the file is damaged here"));
        }
        let size = word(r, if self.version == 1 { 4 } else { 8 });
        let (block, time) = (long(r, 16), long(r, 24));
        let Some(meaning) = meaning(cmd) else {
            return Err(Error::malformed(format!("unknown op code {cmd:#04x}"))
                .help("it is no SCSI command this reader knows; the file may be damaged"));
        };
        let Some(op) = meaning else { return Ok(false) };
        let time = i64::try_from(time).ok().and_then(|t| t.checked_mul(1000));
        let time = time.ok_or_else(|| {
            Error::malformed("the time is beyond 292 years").help("the file is damaged here")
        })?;
        let (offset, size) =
            if op == Op::Flush { (NONE, NONE) } else { extent(block, u64::from(size), 512, 1)? };
        chunk.push(time, op as u8, 0, offset, size);
        if self.version == 2 {
            let response = i64::try_from(long(r, 32)).ok().and_then(|t| t.checked_mul(1000));
            chunk.batch.latency.push(response.unwrap_or(NONE));
        }
        Ok(true)
    }
}

impl Source for Vscsi {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let step = SIZES[self.version - 1];
        self.buffer.resize(RECORDS * step, 0);
        let n = read_full(&mut self.input, &mut self.buffer).map_err(|e| self.input.error(e))?;
        chunk.origin = Origin::Byte(self.at, step as u64);
        let mut skipped = 0;
        for (number, record) in self.buffer[..n].chunks(step).enumerate() {
            let at = self.at + (number * step) as u64;
            let row = chunk.batch.len();
            let result = if record.len() < step {
                Err(Error::new(
                    ErrorKind::Truncated,
                    format!("truncated record: {} of {step} bytes", record.len()),
                )
                .help("the copy or capture was cut short"))
            } else {
                self.record(record, chunk)
            };
            match result {
                Ok(true) => continue,
                Ok(false) => chunk.other += 1,
                Err(error) => chunk.damaged.push((at, error.path(&self.input.path).at(Place::Byte(at)))),
            }
            skipped += 1;
            chunk.skips.push((row, skipped));
        }
        chunk.fill();
        self.at += n as u64;
        Ok(n > 0)
    }

    fn span(&self) -> Option<i64> {
        self.last?.checked_sub(self.first?).filter(|&span| span >= 0)?.checked_mul(1000)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1000;
        info.objects = vec![Object { id: 0, name: "disk".into() }];
    }
}
