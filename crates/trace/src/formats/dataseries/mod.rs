//! DataSeries, version 1: typed extents of rows, packed and checksummed (HP Labs).
//!
//! The file describes its types itself, in XML. Units stand there too and nowhere else, so they are read and
//! never assumed. This reader turns the types of block traces into requests; it names the types of a file
//! that it cannot turn into any.

mod codec;
mod ellard;
mod extents;
#[doc(hidden)]
pub use extents::mend;
mod hash;
mod nfs;
mod srt;
#[cfg(test)]
mod tests;
mod types;

use crate::chunk::{Chunk, Origin};
use crate::formats::format::{Format, Known, Opened, Source, single};
use crate::input::Input;
use crate::options::OpenOptions;
use crate::{Error, Info, Result};
use extents::{Extent, Extents};

/// The table's entry.
pub static FORMAT: Format = Format {
    name: "dataseries",
    title: "DataSeries (HP SRT and NFS types)",
    extensions: &["ds"],
    known: Known::Content,
    header: &[],
    detect: |head, _| head.starts_with(b"DSv1"),
    open,
};

/// Bytes of a file without requests in which damage is looked for.
const LOOK: u64 = 1 << 28;

/// What makes requests of the extents of some types.
trait Convert: Send {
    /// Takes an extent.
    fn take(&mut self, extent: &Extent, chunk: &mut Chunk) -> Result<()>;

    /// Hands on what it held back.
    fn end(&mut self, _chunk: &mut Chunk) {}

    /// Adds what it knows.
    fn info(&self, info: &mut Info);
}

fn open(inputs: Vec<Input>, options: &OpenOptions) -> Opened {
    let mut extents = Extents::new(single(inputs)?, options.salvage)?;
    let convert: Box<dyn Convert> = if let Some(srt) = srt::Srt::of(&extents)? {
        Box::new(srt)
    } else if let Some(nfs) = nfs::Nfs::of(&extents)? {
        Box::new(nfs)
    } else if let Some(ellard) = ellard::Ellard::of(&extents)? {
        Box::new(ellard)
    } else {
        let names = extents.names().join(", ");
        let what = format!("holds {names}, of which no requests can be made");
        // Damage is told all the same, where it shows soon.
        while extents.at() < LOOK {
            match extents.next() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(damage) => return Err(damage.help(format!("besides, the file {what}"))),
            }
        }
        // Where it is passed over, it is no error of its own.
        if let Some((_, damage)) = extents.damaged.into_iter().next() {
            return Err(damage.help(format!("besides, the file {what}")));
        }
        return Err(Error::malformed(what).help(
            "types that are understood: I/O trace: SRT-V7; Trace::NFS::common, attr-ops and read-write; \
             Trace::NFS::Ellard",
        ));
    };
    Ok(Box::new(DataSeries { extents, convert, ended: false }))
}

struct DataSeries {
    extents: Extents,
    convert: Box<dyn Convert>,
    ended: bool,
}

impl Source for DataSeries {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.origin = Origin::Unknown;
        let extent = self.extents.next()?;
        chunk.damaged.append(&mut self.extents.damaged);
        match extent {
            Some(extent) => self.convert.take(&extent, chunk)?,
            None if self.ended => return Ok(!chunk.damaged.is_empty()),
            None => {
                self.ended = true;
                self.convert.end(chunk);
            }
        }
        chunk.fill();
        Ok(true)
    }

    fn info(&self, info: &mut Info) {
        self.convert.info(info);
        if !self.extents.chained_fits && info.counts.damaged == 0 {
            info.warnings.push("the checksum over all extents does not fit, though each one's does".into());
        }
    }
}
