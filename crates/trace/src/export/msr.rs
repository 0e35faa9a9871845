//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, in 100 ns since 1601.

use super::{Export, Format, Labels, Losses, apart, data, ticks};
use crate::{Batch, Info, NONE, Op};
use std::io::{self, Write};

pub const FORMAT: Format = Format {
    name: "msr",
    extensions: &["msr"],
    make: || Box::new(Msr { disks: Labels::new(label), start: 0, begun: false }),
    file: |path| Ok(path.into()),
};

/// 100 ns between 1601 and 1970.
const UNIX: i64 = 116_444_736_000_000_000;

struct Msr {
    disks: Labels,
    /// Wall clock of time 0, nanoseconds since 1970.
    start: i64,
    begun: bool,
}

/// Host and disk of an object, as the reader names them: `host.disk`.
fn label(name: &str, id: u32, tried: u64) -> String {
    let parts = name.rsplit_once('.').and_then(|(host, disk)| Some((host, disk.parse::<u64>().ok()?)));
    let (host, disk) = match parts {
        Some(parts) => parts,
        None if name.is_empty() => (&*id.to_string(), 0),
        None => (name, 0),
    };
    format!("{}.{disk}", apart(&host.replace([',', '\n', '\r'], "_"), tried))
}

impl Export for Msr {
    fn learn(&mut self, info: &Info) {
        self.disks.learn(&info.objects);
        self.start = info.start_unix_ns.unwrap_or(0);
    }

    fn write(&mut self, batch: &Batch, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.len() {
            let Some((op, offset, size)) = data(batch, row, losses) else { continue };
            losses.wrote(batch, row);
            losses.actors += u64::from(batch.actor[row] != 0);
            if !std::mem::replace(&mut self.begun, true) {
                losses.lead_ns = batch.time[row];
            }
            losses.flags += u64::from(batch.flags[row] != 0);
            losses.latencies += u64::from(batch.latency[row] == NONE);
            let time = ticks(self.start.saturating_add(batch.time[row]), 100, losses) + UNIX;
            let kind = if op == Op::Read { "Read" } else { "Write" };
            let (host, disk) = self.disks.get(batch.object[row]).rsplit_once('.').unwrap_or_default();
            let response = if batch.latency[row] == NONE { 0 } else { batch.latency[row] / 100 };
            writeln!(out, "{time},{host},{disk},{kind},{offset},{size},{response}")?;
        }
        Ok(())
    }

    fn end(&mut self, losses: &mut Losses, _out: &mut dyn Write) -> io::Result<()> {
        losses.names = self.disks.changed;
        Ok(())
    }
}
