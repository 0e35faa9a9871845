//! An independent reader: what chunkers and codecs find in files, in directories and on devices.
//!
//! Memory is bounded whatever is read: some 40 MB for the fingerprints of each chunker ([`Distinct`](distinct::Distinct)), a
//! read buffer, and the names of the directories on the way. What cannot be read is counted.

mod codecs;
mod cut;
mod distinct;
mod walk;

pub use codecs::Codecs;
pub use distinct::Duplicates;
pub use walk::Start;

use crate::{Error, Result};
use codecs::Meter;
use cut::{Blocks, Chunks};
use distinct::Distinct;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use walk::{Entry, walk};

/// Bytes read at once.
const READ: usize = 1 << 20;
/// What a sample is made of: stretches of files of this many bytes, so that chunks larger than a block are seen whole.
const STRETCH: u64 = 8 << 20;
/// Largest block or piece that can be asked for, bytes.
const LARGEST: usize = 64 << 20;

/// How something is examined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Bytes of the blocks of the fixed chunker, and of the smaller pieces that codecs get.
    pub unit: usize,
    /// Bytes of the larger pieces that codecs get.
    pub piece: usize,
    /// Bytes that are read, about, in stretches spread evenly over everything; nothing: all.
    pub sample: Option<u64>,
    /// Bytes of those that codecs get, about, in pieces spread evenly; nothing: all.
    pub compress: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options { unit: 4 << 10, piece: 128 << 10, sample: None, compress: Some(64 << 20) }
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Files and devices that were looked at; of hard links only one.
    pub files: u64,
    /// Files and directories that could not be read, in whole or in part.
    pub unreadable: u64,
    /// Why not, of the first.
    pub reason: Option<String>,
    /// What holds no data of its own: links, further names of a file, sockets and the like.
    pub others: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes that were read.
    pub read: u64,
    /// Blocks that are zeros only.
    pub zero_blocks: u64,
    /// By blocks of a fixed size.
    pub fixed: Duplicates,
    /// By chunks cut where the content says (FastCDC: Xia et al., USENIX ATC 2016; the version of 2020), 8 KiB on
    /// average, 2 to 64 KiB.
    pub chunked: Duplicates,
    /// Codecs over the blocks.
    pub by_unit: Codecs,
    /// Codecs over the pieces.
    pub by_piece: Codecs,
}

/// Examines files, devices, and directories with all that is in them.
///
/// `watch` is told now and then how many bytes were read of about how many, and may end it: then nothing is found.
///
/// # Errors
/// For options that cannot be used, and where one of `paths` itself cannot be looked at or read.
pub fn examine(
    paths: &[Start],
    options: &Options,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<Found>> {
    check(options)?;
    let mut found = Found::default();
    let mut total = 0;
    let _ = walk(paths, &mut |entry| {
        if let Entry::File(file) = entry {
            total += file.size;
        }
        ControlFlow::Continue(())
    })?;
    let mut reader = Reader::new(options, total)?;
    let mut only = None;
    let flow = walk(paths, &mut |entry| {
        match entry {
            Entry::Other => found.others += 1,
            Entry::Unreadable(path, cause) => found.unreadable_at(path, &cause),
            Entry::File(file) => {
                found.files += 1;
                found.bytes += file.size;
                match reader.read(file.path, file.size, watch) {
                    Ok(flow) => return flow,
                    Err(cause) => {
                        found.unreadable_at(file.path, &cause);
                        if paths.iter().any(|start| start.path == file.path) {
                            only = Some(Error::io("cannot be read", file.path, cause));
                        }
                    }
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    if let Some(error) = only {
        return Err(error);
    }
    if flow.is_break() {
        return Ok(None);
    }
    reader.tell(&mut found);
    Ok(Some(found))
}

fn check(options: &Options) -> Result<()> {
    for (name, size, least) in [("unit", options.unit, 512), ("piece", options.piece, options.unit)] {
        if !(least..=LARGEST).contains(&size) {
            return Err(Error::Option(format!("{name} of {size} bytes: use {least} to {LARGEST}")));
        }
    }
    Ok(())
}

impl Found {
    fn unreadable_at(&mut self, path: &Path, cause: &io::Error) {
        self.unreadable += 1;
        self.reason.get_or_insert_with(|| format!("{}: {cause}", path.display()));
    }
}

/// Takes evenly spread parts of what comes, so that about `wanted` of `total` bytes are taken.
struct Spread {
    wanted: u64,
    total: u64,
    owed: i128,
}

impl Spread {
    fn new(wanted: Option<u64>, total: u64) -> Spread {
        Spread { wanted: wanted.unwrap_or(total).min(total), total: total.max(1), owed: 0 }
    }

    /// Whether the next `size` bytes are taken.
    fn takes(&mut self, size: u64) -> bool {
        if self.wanted == self.total {
            return true;
        }
        self.owed += i128::from(size) * i128::from(self.wanted);
        let price = i128::from(size) * i128::from(self.total);
        let takes = 2 * self.owed >= price;
        if takes {
            self.owed -= price;
        }
        takes
    }
}

/// Reads files and hands their bytes to chunkers and codecs.
struct Reader {
    buffer: Vec<u8>,
    stretches: Spread,
    pieces: Spread,
    planned: u64,
    read: u64,
    zero_blocks: u64,
    blocks: Blocks,
    chunks: Chunks,
    larger: Blocks,
    fixed: Distinct,
    chunked: Distinct,
    by_unit: Meter,
    by_piece: Meter,
}

impl Reader {
    fn new(options: &Options, total: u64) -> Result<Reader> {
        let planned = options.sample.unwrap_or(total).min(total);
        Ok(Reader {
            buffer: vec![0; READ],
            stretches: Spread::new(options.sample, total),
            pieces: Spread::new(options.compress, planned),
            planned,
            read: 0,
            zero_blocks: 0,
            blocks: Blocks::new(options.unit),
            chunks: Chunks::new(),
            larger: Blocks::new(options.piece),
            fixed: Distinct::new(),
            chunked: Distinct::new(),
            by_unit: Meter::new(options.unit)?,
            by_piece: Meter::new(options.piece)?,
        })
    }

    /// Reads what a sample takes of a file.
    fn read(
        &mut self,
        path: &Path,
        size: u64,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let mut file: Option<File> = None;
        let mut at = 0;
        while at < size {
            let mut end = at;
            while end < size && self.stretches.takes(STRETCH.min(size - end)) {
                end += STRETCH.min(size - end);
            }
            if end > at {
                let file = match &mut file {
                    Some(file) => file,
                    none => none.insert(File::open(path)?),
                };
                file.seek(SeekFrom::Start(at))?;
                let before = self.read;
                if self.stretch(file.take(end - at), watch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                let reached = at + self.read - before;
                if reached < end {
                    let what =
                        format!("ended at byte {reached} of {size}; it became shorter while it was read");
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
            }
            // The stretch that was not taken.
            at = end + STRETCH;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads bytes that belong together to their end.
    fn stretch(
        &mut self,
        mut source: impl Read,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut flow = ControlFlow::Continue(());
        let result = loop {
            match source.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
                Ok(0) => break Ok(()),
                Ok(n) => {
                    self.read += n as u64;
                    self.feed(&buffer[..n], false);
                    flow = watch(self.read, self.planned);
                    if flow.is_break() {
                        break Ok(());
                    }
                }
            }
        };
        self.feed(&[], true);
        self.buffer = buffer;
        result.map(|()| flow)
    }

    fn feed(&mut self, bytes: &[u8], last: bool) {
        self.blocks.feed(bytes, last, &mut |block| {
            self.zero_blocks += u64::from(is_zero(block));
            self.fixed.add(block);
        });
        self.chunks.feed(bytes, last, &mut |chunk| self.chunked.add(chunk));
        let unit = self.by_unit.piece();
        self.larger.feed(bytes, last, &mut |piece| {
            if self.pieces.takes(piece.len() as u64) {
                self.by_piece.add(piece);
                piece.chunks(unit).for_each(|block| self.by_unit.add(block));
            }
        });
    }

    fn tell(self, found: &mut Found) {
        found.read = self.read;
        found.zero_blocks = self.zero_blocks;
        found.fixed = self.fixed.tell();
        found.chunked = self.chunked.tell();
        found.by_unit = self.by_unit.tell();
        found.by_piece = self.by_piece.tell();
    }
}

fn is_zero(block: &[u8]) -> bool {
    block[0] == 0 && block[1..] == block[..block.len() - 1]
}

#[cfg(test)]
mod tests;
