//! Content of files as they stand.

use super::cut::{Chunker, Found};
use super::listed::Listed;
use super::open::Opener;
use super::ratio::Sampling;
use super::seen::{self, Stamp};
use super::threads::{take, together};
use super::{Report, Scan, Watch};
use crate::tree::{Kind, Mark, State, Tree, tag};
use crate::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Bytes after which what was read is entered, so that later files profit from it.
const BATCH: u64 = 1 << 30;
/// The same while every chunk is measured.
const LEARN: u64 = 2 << 20;
/// Files after which it is entered.
const BATCH_FILES: usize = 1 << 16;

/// What came of reading a file.
struct Outcome {
    file: u32,
    /// Its chunks, in what the thread found.
    chunks: std::ops::Range<usize>,
    /// Bytes read, holes left out.
    bytes: u64,
    size: u64,
    holes: Vec<(u64, u64)>,
    changed: bool,
    /// When it was read, if it was left alone meanwhile.
    stamp: Option<Stamp>,
    failed: Option<io::Error>,
}

/// Reads all regular files; false where `watch` ends it.
pub fn files(
    scan: &mut Scan,
    root: &Path,
    tree: &mut Tree,
    listed: &Listed,
    report: &mut Report,
    watch: Watch<'_>,
) -> Result<bool> {
    let files: Vec<u32> =
        (0..tree.len() as u32).filter(|file| tree.file(*file).mark.kind() == Kind::File).collect();
    let new = || files.iter().filter(|file| listed.known(**file).is_none());
    let size = |file: &u32| tree.files.size[*file as usize];
    let total = new().map(size).sum();
    let average = u64::from(scan.cut.chunking.average());
    scan.sampling = Sampling::of(Some(new().map(|file| size(file).div_ceil(average)).sum()));
    let done = AtomicU64::new(0);
    let mut rest = &files[..];
    let mut entered = 0;
    while !rest.is_empty() {
        let (mut count, mut bytes) = (0, 0);
        let most = if scan.is_learning() { LEARN } else { BATCH };
        while count < rest.len().min(BATCH_FILES) && bytes < most {
            bytes += tree.files.size[rest[count] as usize];
            count += 1;
        }
        let (batch, later) = rest.split_at(count);
        rest = later;
        let job = Batch { scan, root, tree, files: batch, listed, next: AtomicUsize::new(0), done: &done };
        let Some(threads) = job.read(total, watch)? else { return Ok(false) };
        let mut outcomes: Vec<_> = threads
            .iter()
            .flat_map(|(found, outcomes)| outcomes.iter().map(move |one| (found, one)))
            .collect();
        outcomes.sort_unstable_by_key(|(_, outcome)| outcome.file);
        let mut outcomes = outcomes.into_iter();
        for file in batch {
            tree.fill_starts(&mut entered, *file);
            if let Some(known) = listed.known(*file) {
                reuse(scan, tree, *file, known)?;
                report.reused += 1;
            } else if let Some((found, outcome)) = outcomes.next() {
                settle(scan, root, tree, outcome, &found[outcome.chunks.clone()], listed, report)?;
            }
        }
    }
    let all = tree.len() as u32;
    tree.fill_starts(&mut entered, all);
    Ok(true)
}

type Thread = (Vec<Found>, Vec<Outcome>);

/// Files that are read together.
struct Batch<'a> {
    scan: &'a Scan,
    root: &'a Path,
    tree: &'a Tree,
    files: &'a [u32],
    listed: &'a Listed,
    next: AtomicUsize,
    done: &'a AtomicU64,
}

impl Batch<'_> {
    fn read(&self, total: u64, watch: Watch<'_>) -> Result<Option<Vec<Thread>>> {
        let stop = AtomicBool::new(false);
        let jobs = vec![(); self.scan.threads.min(self.files.len())];
        let told = || (self.done.load(Ordering::Relaxed), total);
        let (threads, flow) = together(jobs, &stop, &told, watch, |()| self.work(&stop));
        if flow.is_break() {
            return Ok(None);
        }
        let failed = |e| Error::io("cannot be scanned", self.root, e);
        threads.into_iter().map(|thread| thread.map_err(failed)).collect::<Result<Vec<_>>>().map(Some)
    }

    fn work(&self, stop: &AtomicBool) -> io::Result<Thread> {
        let mut chunker = Chunker::new(self.scan.cut)?;
        let mut opener = Opener::new(self.root, &self.scan.series.names, self.tree);
        let (mut found, mut outcomes) = (Vec::new(), Vec::new());
        while let Some((_, file)) = take(&self.next, self.files).filter(|_| !stop.load(Ordering::Relaxed)) {
            if self.listed.known(*file).is_none() {
                outcomes.push(self.read_file(&mut opener, &mut chunker, *file, &mut found, stop));
            }
        }
        Ok((found, outcomes))
    }

    fn read_file(
        &self,
        opener: &mut Opener<'_>,
        chunker: &mut Chunker,
        file: u32,
        found: &mut Vec<Found>,
        stop: &AtomicBool,
    ) -> Outcome {
        let has_holes = self.listed.sparse.binary_search(&file).is_ok();
        let first = found.len();
        let mut outcome = Outcome {
            file,
            chunks: first..first,
            bytes: 0,
            size: 0,
            holes: Vec::new(),
            changed: false,
            stamp: None,
            failed: None,
        };
        let read = (|| {
            let mut source = opener.open(file)?;
            let before = source.metadata()?;
            if !before.is_file() {
                return Err(io::Error::other("is no file any more"));
            }
            outcome.size = before.size();
            // What is as long as it says needs no look behind its end; a file that grew meanwhile is told by its size.
            // Some of /proc have no size, and a content.
            let end = if before.size() > 0 { before.size() } else { u64::MAX };
            let data = if has_holes { data_of(&source, before.size())? } else { vec![(0, end)] };
            let mut at = 0;
            for (from, to) in data {
                if from > at {
                    outcome.holes.push((at, from - at));
                    source.seek(SeekFrom::Start(from))?;
                }
                let ask = |print: &_, before| self.scan.ask(print, before);
                let mut tell = |n| {
                    self.done.fetch_add(n, Ordering::Relaxed);
                };
                let read = chunker.stream(&mut source, to - from, &ask, &mut tell, found)?;
                outcome.bytes += read;
                at = if has_holes { to } else { read };
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
            if has_holes && at < before.size() {
                outcome.holes.push((at, before.size() - at));
            }
            let after = source.metadata()?;
            let seen = |meta: &fs::Metadata| (meta.size(), meta.mtime(), meta.mtime_nsec());
            outcome.changed = seen(&before) != seen(&after);
            outcome.stamp = Some(Stamp::of(&before)).filter(|stamp| *stamp == Stamp::of(&after));
            if !has_holes {
                outcome.size = outcome.bytes;
            }
            Ok(())
        })();
        outcome.failed = read.err();
        match outcome.failed {
            // Half a file would be taken for a whole one.
            Some(_) => found.truncate(first),
            None => outcome.chunks.end = found.len(),
        }
        outcome
    }
}

/// Where a file has data, from and to.
fn data_of(file: &File, size: u64) -> io::Result<Vec<(u64, u64)>> {
    use std::os::fd::AsRawFd;
    let seek = |at: u64, whence| {
        // SAFETY: the descriptor is open for as long as `file` is borrowed; lseek touches no memory.
        let found = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, whence) };
        if found < 0 { Err(io::Error::last_os_error()) } else { Ok(found as u64) }
    };
    let (mut data, mut at) = (Vec::new(), 0);
    while at < size {
        let from = match seek(at, libc::SEEK_DATA) {
            Err(e) if e.raw_os_error() == Some(libc::ENXIO) => break,
            from => from?,
        };
        // It may have grown meanwhile.
        if from >= size {
            break;
        }
        at = seek(from, libc::SEEK_HOLE)?;
        data.push((from, at.min(size)));
    }
    seek(0, libc::SEEK_SET)?;
    Ok(data)
}

/// Gives a file the content that it had in an earlier snapshot.
fn reuse(scan: &Scan, tree: &mut Tree, file: u32, known: (u32, u32)) -> Result<()> {
    let (chunks, size, holes) = seen::copy(&scan.series.trees, known);
    tree.refs.extend(chunks);
    tree.files.size[file as usize] = size;
    holes.map_or(Ok(()), |holes| add_record(tree, file, (tag::HOLES, &holes)))
}

/// Adds a private record to those that a file has.
fn add_record(tree: &mut Tree, file: u32, record: (u16, &[u8])) -> Result<()> {
    let owned: Vec<_> = tree.private_of(file).map(|(tag, bytes)| (tag, bytes.to_vec())).collect();
    let mut records: Vec<_> = owned.iter().map(|(tag, bytes)| (*tag, &bytes[..])).collect();
    records.push(record);
    tree.set_private(file, &records)
}

/// Enters what came of a file.
fn settle(
    scan: &mut Scan,
    root: &Path,
    tree: &mut Tree,
    outcome: &Outcome,
    found: &[Found],
    listed: &Listed,
    report: &mut Report,
) -> Result<()> {
    let file = outcome.file as usize;
    let path = |tree: &Tree, scan: &Scan| root.join(tree.path(&scan.series.names, outcome.file));
    if let Some(cause) = &outcome.failed {
        tree.files.mark[file] = Mark::new(Kind::Unreadable, State::New).0;
        report.lost(&path(tree, scan), cause);
        return Ok(());
    }
    if outcome.changed {
        report.changed += 1;
        report.trouble(&path(tree, scan), "changed while it was read");
    }
    scan.enter(found, &mut tree.refs)?;
    tree.files.size[file] = outcome.size;
    report.bytes += outcome.bytes;
    if !outcome.holes.is_empty() {
        report.sparse += 1;
        report.hole_bytes += outcome.holes.iter().map(|(_, length)| length).sum::<u64>();
        let mut bytes = Vec::new();
        for number in outcome.holes.iter().flat_map(|(at, length)| [at, length]) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        add_record(tree, outcome.file, (tag::HOLES, &bytes))?;
    }
    let inode = listed.inode(outcome.file);
    if let (Some(seen), Some(inode), Some(stamp)) = (&mut scan.seen, inode, outcome.stamp) {
        seen.add(inode, stamp, outcome.file);
    }
    Ok(())
}
