//! fio's iolog, version 3 (fio 3.31 and later): microseconds, file, action, offset and length in bytes.

use super::{Export, Format, Labels, Losses, apart, ticks};
use crate::formats::iolog::OF_BLOCKS;
use crate::{Batch, Info, NONE, Op};
use std::io::{self, Write};

pub const FORMAT: Format = Format {
    name: "iolog",
    extensions: &["iolog"],
    make: || Box::new(Iolog { files: Labels::new(label), blocks: false, open: Vec::new(), last: 0 }),
    file: |path| Ok(path.into()),
};

struct Iolog {
    files: Labels,
    blocks: bool,
    /// Files that were added and opened, by object.
    open: Vec<bool>,
    /// Microseconds of the last request.
    last: i64,
}

/// The name of an object's file; fio takes no blanks in it.
fn label(name: &str, id: u32, tried: u64) -> String {
    let name = if name.is_empty() { id.to_string() } else { name.into() };
    apart(&name.replace(char::is_whitespace, "_"), tried)
}

impl Export for Iolog {
    fn learn(&mut self, info: &Info) {
        self.files.learn(&info.objects);
        self.blocks = !matches!(info.layer.as_str(), "file" | "nfs");
    }

    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        // fio reads on behind the version.
        out.write_all(b"fio version 3 iolog")?;
        out.write_all(if self.blocks { OF_BLOCKS } else { b"" })?;
        out.write_all(b"\n")
    }

    fn write(&mut self, batch: &Batch, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..batch.len() {
            let action = match Op::from_code(batch.op[row]) {
                Some(Op::Read) => "read",
                Some(Op::Write) => "write",
                Some(Op::Discard) => "trim",
                Some(Op::Flush | Op::Sync) => "sync",
                Some(Op::Datasync) => "datasync",
                _ => {
                    losses.ops += 1;
                    continue;
                }
            };
            let (offset, size) = (batch.offset[row], batch.size[row]);
            let placed = offset != NONE && size != NONE;
            if !placed && matches!(action, "read" | "write" | "trim") {
                losses.places += 1;
                continue;
            }
            losses.wrote(batch, row);
            losses.actors += u64::from(batch.actor[row] != 0);
            losses.latencies += u64::from(batch.latency[row] != NONE);
            losses.flags += u64::from(batch.flags[row] != 0);
            let object = batch.object[row];
            let (time, name) = (ticks(batch.time[row], 1000, losses), self.files.get(object));
            if self.open.len() <= object as usize {
                self.open.resize(object as usize + 1, false);
            }
            if !std::mem::replace(&mut self.open[object as usize], true) {
                writeln!(out, "{time} {name} add\n{time} {name} open")?;
            }
            self.last = time;
            let (offset, size) = if placed { (offset, size) } else { (0, 0) };
            writeln!(out, "{time} {name} {action} {offset} {size}")?;
        }
        Ok(())
    }

    fn end(&mut self, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()> {
        losses.names = self.files.changed;
        for object in 0..self.open.len() {
            if self.open[object] {
                writeln!(out, "{} {} close", self.last, self.files.get(object as u32))?;
            }
        }
        Ok(())
    }
}
