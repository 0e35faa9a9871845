//! FS-SCAN: the trees of real files, with their chunks (Tarasov, section 4.3.3).
//!
//! Directories are listed and files are read by several threads; chunks get their numbers in the order of the files, so
//! the result does not depend on the threads. Fingerprints are BLAKE3 with a key that is drawn for each scan and
//! forgotten, so that nobody can look for known content in a published tree.

mod archive;
mod cut;
mod live;

use crate::chunks::{Chunks, Known, Ratio};
use crate::names::{Interner, Names};
use crate::tree::{Chunking, Kind, Mark, Meta, Series, State, Tree};
use crate::{Error, Result};
use cut::{Cut, Found};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Files that could not be read and are told by name.
const NAMED: usize = 1000;
/// The library that cuts; a test compares its version with the one that is linked.
pub(crate) const CHUNKER: &str = "fastcdc 5.0.0, v2020, level 1";
/// What compressibility is measured by.
const CODEC: &str = "zstd level 1, chunk by chunk";

/// How files are scanned.
#[derive(Debug, Clone)]
pub struct Options {
    /// How content is cut.
    pub chunking: Chunking,
    /// Bits of a fingerprint: 48 (as the thesis has) to 256, in whole bytes.
    pub bits: u32,
    /// Whether the compressibility of every new chunk is measured.
    pub compress: bool,
    /// Directories that are left away from the beginning of paths in archives.
    pub strip: usize,
    /// Threads that read.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { chunking: Chunking::default(), bits: 96, compress: true, strip: 0, threads: 1 }
    }
}

/// What a scan of one snapshot met.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// What was scanned.
    pub path: String,
    /// Directories, the root among them.
    pub directories: u64,
    /// Regular files, unreadable ones among them.
    pub files: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Devices, pipes and sockets.
    pub others: u64,
    /// Files with holes.
    pub sparse: u64,
    /// Bytes of holes.
    pub hole_bytes: u64,
    /// Bytes of files that were read.
    pub bytes: u64,
    /// Their chunks.
    pub chunks: u64,
    /// Files and directories that could not be read.
    pub unreadable: u64,
    /// Files that vanished between listing and reading.
    pub vanished: u64,
    /// Files that changed while they were read.
    pub changed: u64,
    /// Path and reason of the first thousand of those three kinds.
    pub troubles: Vec<(String, String)>,
}

impl Report {
    /// Whether everything was read as it stood.
    pub fn is_whole(&self) -> bool {
        self.unreadable + self.vanished + self.changed == 0
    }

    fn trouble(&mut self, path: &Path, reason: impl ToString) {
        if self.troubles.len() < NAMED {
            self.troubles.push((path.to_string_lossy().into_owned(), reason.to_string()));
        }
    }

    fn unreadable(&mut self, path: &Path, reason: impl ToString) {
        self.unreadable += 1;
        self.trouble(path, reason);
    }

    fn count(&mut self, tree: &Tree) {
        self.directories = tree.dirs() as u64;
        for mark in &tree.files.mark {
            *match Mark(*mark).kind() {
                Kind::File | Kind::Unreadable => &mut self.files,
                Kind::Symlink => &mut self.symlinks,
                Kind::Hard => &mut self.hard_links,
                Kind::Other => &mut self.others,
            } += 1;
        }
        self.chunks = tree.refs.len() as u64;
    }
}

/// Told of bytes read, of about how many; may end the scan.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Scans directories and archives (tar, plain or compressed), each as one snapshot of a series. Nothing is told where
/// `watch` ends it.
///
/// # Errors
/// For options that cannot be used, and where one of `paths` itself cannot be read. What cannot be read inside is
/// counted and named.
pub fn scan(paths: &[PathBuf], options: &Options, watch: Watch<'_>) -> Result<Option<(Series, Vec<Report>)>> {
    options.chunking.check()?;
    if !(48..=8 * cut::MOST_PRINT as u32).contains(&options.bits) || !options.bits.is_multiple_of(8) {
        let text = format!("fingerprints of {} bits: use 48 to 256, in whole bytes", options.bits);
        return Err(Error::Option(text));
    }
    let mut scan = Scan::new(options)?;
    let mut reports = Vec::new();
    for path in paths {
        let meta = std::fs::metadata(path).map_err(|e| Error::io("cannot be looked at", path, e))?;
        let mut report = Report { path: path.to_string_lossy().into_owned(), ..Report::default() };
        let tree = if meta.is_dir() {
            live::scan(&mut scan, path, &mut report, watch)?
        } else if meta.is_file() {
            archive::scan(&mut scan, path, &mut report, watch)?
        } else {
            return Err(Error::file(path, "is neither a directory nor a tar file; name one"));
        };
        let Some(tree) = tree else { return Ok(None) };
        report.count(&tree);
        scan.series.trees.push(tree);
        reports.push(report);
    }
    for i in 1..scan.series.trees.len() {
        let (before, after) = scan.series.trees.split_at_mut(i);
        mark_states(&scan.series.names, &before[i - 1], &mut after[0]);
    }
    Ok(Some((scan.series, reports)))
}

/// Says of every file what happened to it since the snapshot before; files are told by their full paths.
fn mark_states(names: &Names, before: &Tree, after: &mut Tree) {
    let old: rustc_hash::FxHashMap<u64, u32> = before.path_hashes(names).into_iter().zip(0..).collect();
    for (file, hash) in (0..).zip(after.path_hashes(names)) {
        let state = match old.get(&hash) {
            None => State::New,
            Some(was) if before.chunks_of(*was) == after.chunks_of(file) => State::Unmodified,
            Some(_) => State::Modified,
        };
        let mark = &mut after.files.mark[file as usize];
        *mark = Mark::new(Mark(*mark).kind(), state).0;
    }
}

/// A series that grows.
struct Scan {
    series: Series,
    known: Known,
    interner: Interner,
    cut: Cut,
    strip: usize,
    threads: usize,
}

impl Scan {
    fn new(options: &Options) -> Result<Scan> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|e| Error::Option(format!("the kernel has no random bytes: {e}")))?;
        let width = options.bits as usize / 8;
        let meta = Meta {
            chunking: options.chunking,
            chunker: CHUNKER.into(),
            codec: options.compress.then(|| CODEC.into()),
            seed: None,
        };
        let names = Names::new();
        let interner = Interner::new(&names);
        let cut = Cut { chunking: options.chunking, key, width, compress: options.compress };
        let series = Series { meta, chunks: Chunks::new(width), names, trees: Vec::new() };
        let threads = options.threads.max(1);
        Ok(Scan { series, known: Known::new(), interner, cut, strip: options.strip, threads })
    }

    /// Numbers of chunks that were read, behind those of `refs`.
    fn enter(&mut self, found: &[Found], refs: &mut Vec<u32>) -> Result<()> {
        for Found { packed, print } in found {
            refs.push(self.known.enter(&mut self.series.chunks, *packed, &print[..self.cut.width])?);
        }
        u32::try_from(refs.len())
            .map(drop)
            .map_err(|_| Error::Option("a snapshot with 2^32 chunks: use larger ones".into()))
    }

    fn knows(&self, print: &[u8]) -> bool {
        // Of a chunk that was found unmeasured there is nothing more to know.
        self.known
            .find(&self.series.chunks, print)
            .is_some_and(|chunk| self.series.chunks.ratio(chunk) != Ratio::UNKNOWN)
    }
}

#[cfg(test)]
mod tests;
