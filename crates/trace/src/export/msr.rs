//! MSR Cambridge CSV: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, in 100 ns since 1601.

use super::{Export, Format, Losses, Names, data, ticks};
use crate::{Batch, Info, NONE, Op};
use std::io::{self, Write};

pub const FORMAT: Format = Format {
    name: "msr",
    extensions: &["msr"],
    make: || Box::new(Msr::default()),
    file: |path| Ok(path.into()),
};

/// 100 ns between 1601 and 1970.
const UNIX: i64 = 116_444_736_000_000_000;

#[derive(Default)]
struct Msr {
    names: Names,
    /// Wall clock of time 0, nanoseconds since 1970.
    start: i64,
}

/// Host and disk of an object: the reader names them `host.disk`.
fn host(name: &str) -> (String, u64) {
    let parts = name.rsplit_once('.').and_then(|(host, disk)| Some((host, disk.parse().ok()?)));
    let (host, disk) = parts.unwrap_or((name, 0));
    (host.replace([',', '\n', '\r'], "_"), disk)
}

impl Export for Msr {
    fn learn(&mut self, info: &Info) {
        self.names = Names::of(&info.objects);
        self.start = info.start_unix_ns.unwrap_or(0);
    }

    fn write(&mut self, batch: &Batch, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.len() {
            let Some((op, offset, size)) = data(batch, row, losses) else { continue };
            losses.wrote(batch, row);
            losses.flags += u64::from(batch.flags[row] != 0);
            losses.latencies += u64::from(batch.latency[row] == NONE);
            let time = ticks(self.start.saturating_add(batch.time[row]), 100, losses) + UNIX;
            let kind = if op == Op::Read { "Read" } else { "Write" };
            let (host, disk) = host(&self.names.get(batch.object[row]));
            let response = if batch.latency[row] == NONE { 0 } else { batch.latency[row] / 100 };
            writeln!(out, "{time},{host},{disk},{kind},{offset},{size},{response}")?;
        }
        Ok(())
    }
}
