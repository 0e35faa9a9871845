//! Block requests of HP-UX: type `I/O trace: SRT-V7`, the fields of SRT 1.7 in rows.

use super::Convert;
use super::extents::{Extent, Extents};
use super::types::{Field, Kind};
use crate::chunk::{Chunk, Ids};
use crate::formats::srt::tell;
use crate::scan::extent as placed;
use crate::{Error, Info, NONE, Op, Result, flag};

const TYPE: &str = "I/O trace: SRT-V7";

/// The fields that make a request.
pub struct Srt {
    enter: Field,
    done: Field,
    bytes: Field,
    machine: Field,
    device: Field,
    pid: Field,
    offset: Field,
    read: Field,
    synchronous: Field,
    devices: Ids,
    actors: Ids,
}

impl Srt {
    /// For a file that has the type.
    ///
    /// # Errors
    /// When the type lacks a field.
    pub fn of(extents: &Extents) -> Result<Option<Srt>> {
        let Some(kind) = extents.kind(TYPE) else { return Ok(None) };
        Ok(Some(Srt {
            enter: kind.need("enter_driver", Kind::Double)?,
            done: kind.need("return_to_driver", Kind::Double)?,
            bytes: kind.need("bytes", Kind::Int32)?,
            machine: kind.need("machine_id", Kind::Int32)?,
            device: kind.need("device_number", Kind::Int32)?,
            pid: kind.need("pid", Kind::Int32)?,
            offset: kind.need("disk_offset", Kind::Int64)?,
            read: kind.need("is_read", Kind::Bool)?,
            synchronous: kind.need("flag_synchronous", Kind::Bool)?,
            devices: Ids::default(),
            actors: Ids::default(),
        }))
    }
}

/// Seconds from a base as nanoseconds on the clock of microseconds.
fn nanoseconds(seconds: f64, base: f64) -> Option<i64> {
    let micros = (seconds * 1e6).round() + base * 1e6;
    (micros.abs() < 9e15).then_some(micros as i64 * 1000)
}

impl Convert for Srt {
    fn take(&mut self, extent: &Extent, chunk: &mut Chunk) -> Result<()> {
        if extent.kind.name != TYPE {
            chunk.other += extent.rows().count() as u64;
            return Ok(());
        }
        for row in extent.rows() {
            let time = row.double(&self.enter).and_then(|s| nanoseconds(s, self.enter.base));
            let done = row.double(&self.done).and_then(|s| nanoseconds(s, self.done.base));
            let time =
                time.ok_or_else(|| Error::malformed("the time of a row is not a number of seconds"))?;
            let number = |field: &Field| row.int(field).unwrap_or(0).cast_unsigned();
            let offset = u64::try_from(row.long(&self.offset).unwrap_or(0)).unwrap_or(u64::MAX);
            let (offset, size) = placed(offset, u64::from(number(&self.bytes)), 1, 1)?;
            let device = u64::from(number(&self.machine)) << 32 | u64::from(number(&self.device));
            let op = if row.bool(&self.read) { Op::Read } else { Op::Write };
            chunk.push(time, op as u8, self.devices.number(device), offset, size);
            let latency = done.and_then(|done| done.checked_sub(time)).filter(|l| *l >= 0);
            chunk.batch.latency.push(latency.unwrap_or(NONE));
            chunk.batch.flags.push(if row.bool(&self.synchronous) { flag::SYNC } else { 0 });
            chunk.batch.actor.push(self.actors.number(u64::from(number(&self.pid))));
        }
        self.devices.check()?;
        self.actors.check()
    }

    fn info(&self, info: &mut Info) {
        tell(&self.devices, &self.actors, info);
    }
}
