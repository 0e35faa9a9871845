//! libCacheSim's oracleGeneral: packed records of 24 bytes, little-endian, without a head.
//!
//! u32 seconds, u64 object id, u32 size, i64 number of the record that uses the id next (-1: none). The
//! format has no ops and says nothing of what an id is. In traces of block devices ids are block numbers;
//! they are taken as blocks of 512 bytes and every record as a read, and a warning says so.

use super::format::{Format, Known, Opened, Source, single};
use crate::chunk::{Chunk, Origin};
use crate::input::{Input, read_full};
use crate::options::OpenOptions;
use crate::scan::extent;
use crate::{Error, ErrorKind, Info, Object, Op, Place, Result};

/// The table's entry; nothing in the content tells it from other numbers.
pub static FORMAT: Format = Format {
    name: "oracle-general",
    title: "libCacheSim oracleGeneral",
    extensions: &[],
    known: Known::Name,
    header: &[],
    detect,
    open,
};

/// Records of a chunk.
const RECORDS: usize = 1 << 15;

/// Bytes of a record.
const RECORD: usize = 24;

struct Record {
    seconds: u32,
    id: u64,
    size: u32,
    next: i64,
}

fn record(r: &[u8]) -> Option<Record> {
    let (seconds, r) = r.split_first_chunk()?;
    let (id, r) = r.split_first_chunk()?;
    let (size, r) = r.split_first_chunk()?;
    Some(Record {
        seconds: u32::from_le_bytes(*seconds),
        id: u64::from_le_bytes(*id),
        size: u32::from_le_bytes(*size),
        next: i64::from_le_bytes(*r.first_chunk()?),
    })
}

/// Times that do not go back, sizes and next uses that can be.
fn detect(head: &[u8], all: bool) -> bool {
    if all && !head.len().is_multiple_of(RECORD) {
        return false;
    }
    let mut last = 0;
    let mut records = head.chunks_exact(RECORD).take(64).filter_map(record).zip(0i64..).peekable();
    records.peek().is_some()
        && records.all(|(r, number)| {
            let fits = r.seconds >= last && (1..=1 << 30).contains(&r.size);
            last = r.seconds;
            fits && (r.next == -1 || r.next > number && r.next < 1 << 40)
        })
}

fn open(inputs: Vec<Input>, _: &OpenOptions) -> Opened {
    Ok(Box::new(Oracle { input: single(inputs)?, at: 0, buffer: Vec::new() }))
}

struct Oracle {
    input: Input,
    at: u64,
    buffer: Vec<u8>,
}

fn take(bytes: &[u8], chunk: &mut Chunk) -> Result<()> {
    let Some(r) = record(bytes) else {
        return Err(Error::new(
            ErrorKind::Truncated,
            format!("truncated record: {} of {RECORD} bytes", bytes.len()),
        )
        .help("the copy was cut short, or the file is of another format"));
    };
    let (offset, size) = extent(r.id, u64::from(r.size), 512, 1)?;
    chunk.push(i64::from(r.seconds) * 1_000_000_000, Op::Read as u8, 0, offset, size);
    Ok(())
}

impl Source for Oracle {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.buffer.resize(RECORDS * RECORD, 0);
        let n = read_full(&mut self.input, &mut self.buffer).map_err(|e| self.input.error(e))?;
        chunk.origin = Origin::Byte(self.at, RECORD as u64);
        for (number, bytes) in self.buffer[..n].chunks(RECORD).enumerate() {
            let at = self.at + (number * RECORD) as u64;
            if let Err(error) = take(bytes, chunk) {
                chunk.damaged.push((at, error.path(&self.input.path).at(Place::Byte(at))));
                chunk.skips.push((chunk.batch.len(), chunk.damaged.len() as u64));
            }
        }
        chunk.fill();
        self.at += n as u64;
        Ok(n > 0)
    }

    fn info(&self, info: &mut Info) {
        info.clock_ns = 1_000_000_000;
        info.objects = vec![Object { id: 0, name: "ids".into() }];
        info.warnings.push(
            "oracleGeneral has no ops and no unit: every record is taken as a read, its id as a block of 512 bytes"
                .into(),
        );
    }
}
