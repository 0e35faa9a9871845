//! FS-SCAN: the trees of real files, with their chunks (Tarasov, section 4.3.3).
//!
//! Directories are listed and files are read by several threads; chunks get their numbers in the order of the files, so
//! the result does not depend on the threads. Fingerprints are BLAKE3 with a key that is drawn for each scan and
//! forgotten unless one is given, so that nobody can look for known content in a published tree.

mod archive;
mod build;
mod cut;
mod git;
mod hashes;
mod listed;
mod live;
mod open;
mod ratio;
mod read;
mod report;
mod seen;
mod snapshots;
mod stays;
mod threads;

use crate::chunks::{Chunks, Known, Packed, Ratio};
use crate::names::{Interner, Names};
use crate::tree::{Chunking, Lz4Sums, Mark, Meta, Resemblance, Series, State, Tree};
use crate::{Error, Result};
use cut::{Cut, Found};
pub use git::Commits;
pub use ratio::Compress;
use ratio::{Ask, Guess, Sampling};
pub use report::Report;
use seen::Seen;
pub use snapshots::{Order, snapshots};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The library that cuts; a test compares its version with the one that is linked.
pub(crate) const CHUNKER: &str = "fastcdc 5.0.0, v2020, level 1";
/// Fewest and most bytes of a file with a key.
const KEY: std::ops::RangeInclusive<u64> = 16..=1 << 20;

/// How files are scanned.
#[derive(Debug, Clone)]
pub struct Options {
    /// How content is cut.
    pub chunking: Chunking,
    /// Bits of a fingerprint: 48 (as the thesis has) to 256, in whole bytes.
    pub bits: u32,
    /// How the compressibility of new chunks is told.
    pub compress: Compress,
    /// A file with the key of fingerprints; without one it is drawn and forgotten.
    pub key: Option<PathBuf>,
    /// Directories that are left away from the beginning of paths in archives.
    pub strip: usize,
    /// How long a file must have been left alone before two snapshots could differ, that it need not be read again if
    /// nothing else tells them apart; without, every file is read.
    pub settled: Option<Duration>,
    /// Threads that read.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            chunking: Chunking::default(),
            bits: 96,
            compress: Compress::Sample,
            key: None,
            strip: 0,
            settled: Some(Duration::from_secs(60)),
            threads: 1,
        }
    }
}

/// Told how much is done (bytes read, files made), of about how much (0 where that is not known); may end the work.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Scans directories, archives (tar, plain or compressed) and FSL hash files, each as one snapshot of a series. Nothing
/// is told where `watch` ends it.
///
/// # Errors
/// For options that cannot be used, and where one of `paths` itself cannot be read. What cannot be read inside is
/// counted and named.
pub fn scan(paths: &[PathBuf], options: &Options, watch: Watch<'_>) -> Result<Option<(Series, Vec<Report>)>> {
    let mut scan = Scan::new(options)?;
    if paths.len() < 2 {
        scan.seen = None;
    }
    let mut reports = Vec::new();
    for path in paths {
        let meta = std::fs::metadata(path).map_err(|e| Error::io("cannot be looked at", path, e))?;
        let mut report = Report { path: path.to_string_lossy().into_owned(), ..Report::default() };
        scan.sampling = Sampling::of(None);
        let tree = if meta.is_dir() {
            scan.no_hashes(path)?;
            live::scan(&mut scan, path, &mut report, watch)?
        } else if !meta.is_file() {
            return Err(Error::file(
                path,
                "is neither a directory nor a file; name an archive or a directory",
            ));
        } else if hashes::is_one(path)? {
            hashes::scan(&mut scan, path, &mut report, watch)?
        } else {
            scan.no_hashes(path)?;
            archive::scan(&mut scan, path, &mut report, watch)?
        };
        let Some(tree) = tree else { return Ok(None) };
        report.count(&tree);
        scan.series.trees.push(tree);
        reports.push(report);
    }
    Ok(Some(scan.finish(reports)))
}

/// Scans commits of a git repository, bare or not, each as one snapshot of a series; nothing is checked out. Nothing is
/// told where `watch` ends it.
///
/// # Errors
/// For options and revisions that cannot be used, without the program git, and where git refuses the repository.
/// Objects that it has not got are counted and named.
pub fn scan_git(
    repo: &Path,
    commits: &Commits,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Option<(Series, Vec<Report>)>> {
    let mut scan = Scan::new(options)?;
    let mut reports = Vec::new();
    let whole = git::scan(&mut scan, repo, commits, &mut reports, watch)?;
    Ok(whole.then(|| scan.finish(reports)))
}

/// The series of one hash file that is in memory.
pub(crate) fn hash_file(bytes: &[u8]) -> Result<Series> {
    let mut scan = Scan::new(&Options::default())?;
    let (path, mut report) = (Path::new("memory"), Report::default());
    let tree = hashes::import(&mut scan, path, bytes, &mut report, &mut || ControlFlow::Continue(()))?;
    scan.series.trees.extend(tree);
    Ok(scan.finish(Vec::new()).0)
}

/// The series of one archive that is in memory.
pub(crate) fn archive_file(bytes: &[u8]) -> Result<Series> {
    let mut scan = Scan::new(&Options::default())?;
    let (path, mut report) = (Path::new("memory"), Report::default());
    let tree = archive::import(&mut scan, path, bytes, &mut report, &mut || ControlFlow::Continue(()))?;
    scan.series.trees.extend(tree.map(|(tree, _)| tree));
    Ok(scan.finish(Vec::new()).0)
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
    guess: Guess,
    /// Chunks whose ratio was measured.
    measured: u64,
    /// What lz4 and Zstandard make of chunks.
    lz4: Lz4Sums,
    /// What was made of larger pieces.
    pieces: [cut::Pieces; 2],
    /// Parts of all chunks, where each is measured.
    parts: Vec<stays::Parts>,
    sampling: Sampling,
    /// Whether snapshots are hash files, whose fingerprints are not ours.
    hashes: bool,
    seen: Option<Seen>,
    strip: usize,
    threads: usize,
}

impl Scan {
    fn new(options: &Options) -> Result<Scan> {
        options.chunking.check()?;
        if !(48..=8 * cut::MOST_PRINT as u32).contains(&options.bits) || !options.bits.is_multiple_of(8) {
            let text = format!("fingerprints of {} bits: use 48 to 256, in whole bytes", options.bits);
            return Err(Error::Option(text));
        }
        let width = options.bits as usize / 8;
        let meta = Meta { codec: options.compress.codec(), ..Meta::new(options.chunking, CHUNKER) };
        let names = Names::new();
        let interner = Interner::new(&names);
        let key = key(options.key.as_deref())?;
        let cut = Cut { chunking: options.chunking, key, width, compress: options.compress };
        let series = Series { meta, chunks: Chunks::new(width), names, trees: Vec::new() };
        let (seen, threads) = (options.settled.map(Seen::new), options.threads.max(1));
        let (known, guess, sampling) = (Known::default(), Guess::new(), Sampling::of(None));
        let (hashes, strip) = (false, options.strip);
        let (measured, pieces, parts) = (0, Default::default(), Vec::new());
        Ok(Scan {
            series,
            known,
            interner,
            cut,
            guess,
            measured,
            lz4: Lz4Sums::default(),
            pieces,
            parts,
            sampling,
            hashes,
            seen,
            strip,
            threads,
        })
    }

    /// Refuses content beside hash files: their fingerprints are made otherwise, so nothing would be found alike.
    fn no_hashes(&self, path: &Path) -> Result<()> {
        if !self.hashes {
            return Ok(());
        }
        Err(Error::file(path, "is no FSL hash file, those before are; scan hash files by themselves"))
    }

    /// Numbers of the chunks of a file, behind those of `refs`.
    fn enter(&mut self, found: &[Found], refs: &mut Vec<u32>) -> Result<()> {
        self.guess.begin();
        for Found { packed, entropy, lz4, pieces, parts, print } in found {
            let print = &print[..self.cut.width];
            if let Some(chunk) = self.known.find(&self.series.chunks, print) {
                refs.push(chunk);
                continue;
            }
            self.pieces.iter_mut().zip(pieces).for_each(|(all, one)| all.add(*one));
            let mut packed = *packed;
            if packed.ratio() != Ratio::UNKNOWN {
                self.lz4.add(packed.size(), packed.ratio(), *lz4);
                self.guess.learn(packed.size(), *entropy, packed.ratio());
                self.measured += 1;
            } else if self.cut.compress == Compress::Sample {
                packed = Packed::new(packed.size(), self.guess.tell(packed.size(), *entropy));
            }
            if self.cut.compress == Compress::Whole {
                self.parts.push(parts.clone());
            }
            refs.push(self.known.add(&mut self.series.chunks, packed, print)?);
        }
        u32::try_from(refs.len())
            .map(drop)
            .map_err(|_| Error::Option("a snapshot with 2^32 chunks: use larger ones".into()))
    }

    /// Whether all new chunks are measured so that later ones need not be.
    fn is_learning(&self) -> bool {
        self.cut.compress == Compress::Sample && self.sampling.is_learning(self.measured)
    }

    /// What is to be found out of a chunk, as far as is known of those that were entered and of those `before` it in its
    /// file.
    fn ask(&self, print: &[u8; cut::MOST_PRINT], before: u64) -> Ask {
        match self.known.find(&self.series.chunks, &print[..self.cut.width]) {
            Some(_) => Ask::Nothing,
            None => self.sampling.ask(self.cut.compress, self.measured + before, print),
        }
    }

    fn finish(mut self, reports: Vec<Report>) -> (Series, Vec<Report>) {
        for i in 1..self.series.trees.len() {
            let (before, after) = self.series.trees.split_at_mut(i);
            mark_states(&self.series.names, &before[i - 1], &mut after[0]);
        }
        let [near, far] = self.pieces;
        if near.apart > 0 {
            self.series.meta.resemblance =
                Some(Resemblance { near: near.saved(), far: far.saved().max(near.saved()) });
        }
        self.series.meta.lz4 = self.lz4.told();
        if self.parts.len() == self.series.chunks.len() && self.series.trees.len() > 1 {
            self.series.meta.stays = stays::stays(&self.series, &self.parts);
        }
        (self.series, reports)
    }
}

/// The key of fingerprints: drawn, or made of what a file has.
fn key(file: Option<&Path>) -> Result<[u8; 32]> {
    let Some(path) = file else {
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|e| Error::Option(format!("the kernel has no random bytes: {e}")))?;
        return Ok(key);
    };
    let mut bytes = Vec::new();
    loadstone_files::open_for_reading(path)
        .and_then(|file| file.take(KEY.end() + 1).read_to_end(&mut bytes))
        .map_err(|e| Error::io("cannot be read as a key", path, e))?;
    if !KEY.contains(&(bytes.len() as u64)) {
        let what = format!(
            "has {} bytes, a key has {} to {}; make one by head -c 32 /dev/urandom",
            bytes.len(),
            KEY.start(),
            KEY.end()
        );
        return Err(Error::file(path, what));
    }
    Ok(blake3::derive_key("Loadstone, fingerprints of chunks, version 1", &bytes))
}

#[cfg(test)]
mod tests;
