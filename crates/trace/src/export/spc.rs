//! SPC: `unit,block,size,op,seconds`; blocks are of 512 bytes, sizes in bytes.

use super::{Export, Format, Labels, Losses, data};
use crate::{Batch, Info, NONE, Op};
use std::io::{self, Write};

pub const FORMAT: Format = Format {
    name: "spc",
    extensions: &["spc"],
    make: || Box::new(Spc { units: Labels::new(|_, id, _| id.to_string()) }),
    file: |path| Ok(path.into()),
};

struct Spc {
    units: Labels,
}

impl Export for Spc {
    fn learn(&mut self, info: &Info) {
        self.units.learn(&info.objects);
    }

    fn write(&mut self, batch: &Batch, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.len() {
            let Some((op, offset, size)) = data(batch, row, losses) else { continue };
            losses.wrote(batch, row);
            losses.actors += u64::from(batch.actor[row] != 0);
            losses.sectors += u64::from(offset % 512 != 0);
            losses.latencies += u64::from(batch.latency[row] != NONE);
            losses.flags += u64::from(batch.flags[row] != 0);
            let letter = if op == Op::Read { 'R' } else { 'W' };
            let (seconds, ns) = (batch.time[row] / 1_000_000_000, batch.time[row] % 1_000_000_000);
            write!(out, "{},{},{size},{letter},{seconds}.", batch.object[row], offset / 512)?;
            // Microseconds, as the published traces have them, where that says all.
            if ns % 1000 == 0 { writeln!(out, "{:06}", ns / 1000)? } else { writeln!(out, "{ns:09}")? }
        }
        Ok(())
    }

    fn end(&mut self, losses: &mut Losses, _out: &mut dyn Write) -> io::Result<()> {
        losses.names = self.units.changed;
        Ok(())
    }
}
