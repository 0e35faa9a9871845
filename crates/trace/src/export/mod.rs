//! Writing traces in the formats of other tools. One file per format and the one table they are in.

mod blktrace;
mod iolog;
mod msr;
mod spc;

use crate::{Batch, Error, ErrorKind, Info, NONE, Op, Result};
use loadstone_files::Aside;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What a format could not express; nothing is lost silently.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Requests written.
    pub written: u64,
    /// Requests left out, as the format does not have their op.
    pub ops: u64,
    /// Requests left out, as they have no offset or size.
    pub places: u64,
    /// Requests whose offset was rounded down to a sector of 512 bytes, or whose size up to one.
    pub sectors: u64,
    /// Requests whose time was rounded down to the format's clock.
    pub times: u64,
    /// Requests whose latency the format does not have, or that were written with one of 0 for not known, or of
    /// which readers take another for theirs.
    pub latencies: u64,
    /// Requests with flags that the format does not have.
    pub flags: u64,
    /// Requests whose fingerprint of the content was left out.
    pub contents: u64,
    /// Requests of which was left out what they waited for.
    pub dependencies: u64,
    /// Requests of another actor than the first, which the format does not have.
    pub actors: u64,
    /// Objects that read back under another name.
    pub names: u64,
    /// Nanoseconds before the first request, where the format begins with that.
    pub lead_ns: i64,
}

impl Losses {
    /// Counts a request that is written, and those of its columns that only Parquet has.
    fn wrote(&mut self, batch: &Batch, row: usize) {
        self.written += 1;
        self.contents += u64::from(batch.content.get(row).is_some_and(|content| *content != 0));
        self.dependencies += u64::from(batch.after.get(row).is_some_and(|after| *after != 0));
    }
}

/// A format being written.
trait Export {
    /// Learns what is known of the trace: before the first request, and when there are more objects or actors.
    fn learn(&mut self, _info: &Info) {}

    /// Writes what comes before the requests.
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes requests.
    fn write(&mut self, batch: &Batch, losses: &mut Losses, out: &mut dyn Write) -> io::Result<()>;

    /// Writes what comes after them.
    fn end(&mut self, _losses: &mut Losses, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// A format that can be written.
pub struct Format {
    /// Its name, the same as of its reader.
    pub name: &'static str,
    /// Endings of file names that ask for it.
    pub extensions: &'static [&'static str],
    make: fn() -> Box<dyn Export + Send>,
    /// The file of a name, where it is not the name itself.
    file: fn(&Path) -> Result<PathBuf>,
}

/// Every format that can be written besides Parquet.
pub static FORMATS: &[Format] = &[spc::FORMAT, msr::FORMAT, iolog::FORMAT, blktrace::FORMAT];

/// The format of this name.
///
/// # Errors
/// When there is none.
pub fn by_name(name: &str) -> Result<&'static Format> {
    FORMATS.iter().find(|f| f.name == name).ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|f| f.name).collect();
        Error::new(ErrorKind::Option, format!("no format called {name} can be written"))
            .help(format!("known: parquet, {}", names.join(", ")))
    })
}

/// The format that the ending of a file's name asks for.
pub fn by_extension(path: &Path) -> Option<&'static Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    FORMATS.iter().find(|f| f.extensions.contains(&&*ending))
}

/// Writes a trace aside and renames it when it is whole; dropping it unfinished leaves nothing.
pub struct Exporter {
    export: Box<dyn Export + Send>,
    aside: Aside,
    out: BufWriter<File>,
    losses: Losses,
    begun: bool,
    /// Objects and actors below these are known by name.
    known: (u32, u32),
}

impl Exporter {
    /// Starts a file, which replaces an existing one only when `force` is set.
    ///
    /// # Errors
    /// When the file exists and `force` is not set, other files of a capture called so do, or it cannot be written.
    pub fn create(format: &Format, path: &Path, force: bool) -> Result<Exporter> {
        let (aside, file) = Aside::create(&(format.file)(path)?, force)?;
        Ok(Exporter {
            export: (format.make)(),
            aside,
            out: BufWriter::with_capacity(1 << 18, file),
            losses: Losses::default(),
            begun: false,
            known: (0, 0),
        })
    }

    /// The file being written.
    pub fn path(&self) -> &Path {
        self.aside.path()
    }

    /// Writes requests, in order of time; `info` is asked what is known of the trace when it matters.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, batch: &Batch, info: impl FnOnce() -> Info) -> Result<()> {
        let past = |ids: &[u32]| ids.iter().max().map_or(0, |id| id.saturating_add(1));
        let (objects, actors) = (past(&batch.object), past(&batch.actor));
        if objects > self.known.0 || actors > self.known.1 {
            let info = info();
            let known = |list: &[crate::Object], past: u32| past.max(list.len() as u32);
            self.known = (known(&info.objects, objects), known(&info.actors, actors));
            self.export.learn(&info);
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.export.begin(&mut self.out).map_err(|e| self.aside.failed(e))?;
        }
        let written = self.export.write(batch, &mut self.losses, &mut self.out);
        Ok(written.map_err(|e| self.aside.failed(e))?)
    }

    /// Ends the file and gives it its name; what the format could not express.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<Losses> {
        self.export.end(&mut self.losses, &mut self.out).map_err(|e| self.aside.failed(e))?;
        let file = self.out.into_inner().map_err(|e| self.aside.failed(e.into_error()))?;
        self.aside.keep(&file)?;
        Ok(self.losses)
    }
}

/// What objects or actors are called in a format, by dense id: no two alike, whatever the format makes of their names.
struct Labels {
    /// What a name becomes, the n-th way to call it; of the same text and number always the same.
    how: fn(&str, u32, u64) -> String,
    of: Vec<String>,
    taken: FxHashSet<String>,
    /// How many ways to call something were tried beyond the first ones: none is tried twice.
    tried: u64,
    /// Those that are called otherwise than before.
    changed: u64,
}

impl Labels {
    fn new(how: fn(&str, u32, u64) -> String) -> Labels {
        Labels { how, of: Vec::new(), taken: FxHashSet::default(), tried: 0, changed: 0 }
    }

    /// Calls those that are not called anything yet.
    fn learn(&mut self, objects: &[crate::Object]) {
        objects.iter().skip(self.of.len()).for_each(|object| self.add(&object.name));
    }

    fn add(&mut self, name: &str) {
        let id = self.of.len() as u32;
        let mut label = (self.how)(name, id, 0);
        while self.taken.contains(&label) {
            self.tried += 1;
            label = (self.how)(name, id, self.tried);
        }
        let before = if name.is_empty() { id.to_string() } else { name.into() };
        self.changed += u64::from(label != before);
        self.taken.insert(label.clone());
        self.of.push(label);
    }

    /// What has no name is called by its number.
    fn get(&mut self, id: u32) -> &str {
        while self.of.len() <= id as usize {
            self.add("");
        }
        &self.of[id as usize]
    }
}

/// A name that others may have, too, with the number of a try behind it.
fn apart(name: &str, tried: u64) -> String {
    if tried == 0 { name.into() } else { format!("{name}~{}", tried + 1) }
}

/// A request's op and place if it is a read or write that has one; else it is counted as left out.
fn data(batch: &Batch, row: usize, losses: &mut Losses) -> Option<(Op, u64, u64)> {
    let op = match Op::from_code(batch.op[row]) {
        Some(op @ (Op::Read | Op::Write)) => op,
        _ => {
            losses.ops += 1;
            return None;
        }
    };
    let (offset, size) = (batch.offset[row], batch.size[row]);
    if offset == NONE || size == NONE {
        losses.places += 1;
        return None;
    }
    Some((op, offset as u64, size as u64))
}

/// A time on a coarser clock, counted where that changes it.
fn ticks(ns: i64, clock: i64, losses: &mut Losses) -> i64 {
    losses.times += u64::from(ns % clock != 0);
    ns / clock
}
