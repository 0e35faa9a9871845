//! Directories as they stand.

use super::cut::{Chunker, Found};
use super::{Report, Scan, Watch};
use crate::tree::{Entry, Kind, Mark, State, Tree, tag};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes after which what was read is entered, so that later files profit from it.
const BATCH: u64 = 1 << 30;
/// Files after which it is entered.
const BATCH_FILES: usize = 1 << 16;
/// Shortest time between two looks at how far threads are.
const TICK: Duration = Duration::from_millis(100);

/// What a directory has.
struct Item {
    name: OsString,
    kind: ItemKind,
}

enum ItemKind {
    Dir,
    File { size: u64, sparse: bool, inode: Option<(u64, u64)> },
    Symlink(Vec<u8>),
    Other,
    Lost(io::Error),
}

/// A snapshot of a directory; nothing where `watch` ends it.
pub fn scan(scan: &mut Scan, root: &Path, report: &mut Report, watch: Watch<'_>) -> Result<Option<Tree>> {
    let mut tree = Tree::new(root.to_string_lossy());
    let sparse = walk(scan, root, &mut tree, report)?;
    if read(scan, root, &mut tree, &sparse, report, watch)? { Ok(Some(tree)) } else { Ok(None) }
}

/// Lists everything, level by level; tells which files may have holes.
fn walk(scan: &mut Scan, root: &Path, tree: &mut Tree, report: &mut Report) -> Result<Vec<u32>> {
    let (mut level, mut linked, mut sparse) =
        (vec![(0, root.to_path_buf())], FxHashMap::default(), Vec::new());
    while !level.is_empty() {
        let mut next = Vec::new();
        for ((dir, path), items) in level.iter().zip(list_all(&level, scan.threads)) {
            let items = match items {
                Ok(items) => items,
                Err(cause) if *dir == 0 => return Err(Error::io("cannot be listed", path, cause)),
                Err(cause) => {
                    report.unreadable(path, cause);
                    continue;
                }
            };
            for Item { name, kind } in items {
                enter(scan, tree, (*dir, path), name, kind, (&mut next, &mut linked, &mut sparse), report)?;
            }
        }
        level = next;
    }
    Ok(sparse)
}

type Found3<'a> = (&'a mut Vec<(u32, PathBuf)>, &'a mut FxHashMap<(u64, u64), u32>, &'a mut Vec<u32>);

fn enter(
    scan: &mut Scan,
    tree: &mut Tree,
    (dir, path): (u32, &Path),
    name: OsString,
    kind: ItemKind,
    (next, linked, sparse): Found3<'_>,
    report: &mut Report,
) -> Result<()> {
    let names = &mut scan.series.names;
    let number = scan.interner.name(names, name.as_bytes())?;
    let mut entry = Entry {
        dir,
        name: number,
        extension: scan.interner.extension(names, name.as_bytes()),
        mark: Mark::new(Kind::File, State::New),
        size: 0,
        private: &[],
    };
    let (first, target);
    let record: [(u16, &[u8]); 1];
    match kind {
        ItemKind::Dir => {
            next.push((tree.add_dir(dir, number), path.join(name)));
            return Ok(());
        }
        ItemKind::Lost(cause) => {
            report.unreadable(&path.join(name), cause);
            entry.mark = Mark::new(Kind::Unreadable, State::New);
        }
        ItemKind::Other => entry.mark = Mark::new(Kind::Other, State::New),
        ItemKind::Symlink(to) => {
            target = to;
            entry.size = target.len() as u64;
            entry.mark = Mark::new(Kind::Symlink, State::New);
            record = [(tag::LINK, &target)];
            entry.private = &record;
        }
        ItemKind::File { size, sparse: has_holes, inode } => {
            entry.size = size;
            if let Some(known) = inode.and_then(|inode| linked.get(&inode)) {
                first = known.to_le_bytes();
                entry.mark = Mark::new(Kind::Hard, State::New);
                record = [(tag::HARD, &first)];
                entry.private = &record;
            } else {
                let file = tree.len() as u32;
                inode.map(|inode| linked.insert(inode, file));
                if has_holes {
                    sparse.push(file);
                }
            }
        }
    }
    tree.add_file(&entry, &[])?;
    Ok(())
}

/// Lists directories by several threads, in their order.
fn list_all(level: &[(u32, PathBuf)], threads: usize) -> Vec<io::Result<Vec<Item>>> {
    let (next, lists) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(level.len()) {
            scope.spawn(|| {
                let mut own = Vec::new();
                while let Some((i, (_, path))) = take(&next, level) {
                    own.push((i, list(path)));
                }
                lists.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(own);
            });
        }
    });
    let mut lists = lists.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    lists.sort_unstable_by_key(|(i, _)| *i);
    lists.into_iter().map(|(_, list)| list).collect()
}

/// The next of some things for a thread.
fn take<'a, T>(next: &AtomicUsize, of: &'a [T]) -> Option<(usize, &'a T)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    of.get(i).map(|one| (i, one))
}

fn list(path: &Path) -> io::Result<Vec<Item>> {
    let mut items = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let kind = kind_of(&path.join(&name)).unwrap_or_else(ItemKind::Lost);
        items.push(Item { name, kind });
    }
    items.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(items)
}

fn kind_of(path: &Path) -> io::Result<ItemKind> {
    let meta = fs::symlink_metadata(path)?;
    let kind = meta.file_type();
    Ok(if kind.is_dir() {
        ItemKind::Dir
    } else if kind.is_file() {
        let inode = (meta.nlink() > 1).then(|| (meta.dev(), meta.ino()));
        ItemKind::File { size: meta.size(), sparse: meta.blocks() * 512 < meta.size(), inode }
    } else if kind.is_symlink() {
        ItemKind::Symlink(fs::read_link(path)?.into_os_string().into_vec())
    } else {
        debug_assert!(kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device());
        ItemKind::Other
    })
}

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
    failed: Option<io::Error>,
}

/// Reads all regular files; false where `watch` ends it.
fn read(
    scan: &mut Scan,
    root: &Path,
    tree: &mut Tree,
    sparse: &[u32],
    report: &mut Report,
    watch: Watch<'_>,
) -> Result<bool> {
    let files: Vec<u32> =
        (0..tree.len() as u32).filter(|file| tree.file(*file).mark.kind() == Kind::File).collect();
    let total = files.iter().map(|file| tree.files.size[*file as usize]).sum();
    let done = AtomicU64::new(0);
    let mut rest = &files[..];
    let mut entered = 0;
    while !rest.is_empty() {
        let (mut count, mut bytes) = (0, 0);
        while count < rest.len().min(BATCH_FILES) && bytes < BATCH {
            bytes += tree.files.size[rest[count] as usize];
            count += 1;
        }
        let (batch, later) = rest.split_at(count);
        rest = later;
        let Some(threads) = read_batch(scan, root, tree, batch, sparse, &done, total, watch)? else {
            return Ok(false);
        };
        let mut outcomes: Vec<_> = threads
            .iter()
            .flat_map(|(found, outcomes)| outcomes.iter().map(move |one| (found, one)))
            .collect();
        outcomes.sort_unstable_by_key(|(_, outcome)| outcome.file);
        for (found, outcome) in outcomes {
            fill_starts(tree, &mut entered, outcome.file);
            settle(scan, root, tree, outcome, &found[outcome.chunks.clone()], report)?;
        }
    }
    let all = tree.len() as u32;
    fill_starts(tree, &mut entered, all);
    Ok(true)
}

/// Files before `file` have all their chunks.
fn fill_starts(tree: &mut Tree, entered: &mut u32, file: u32) {
    let end = tree.refs.len() as u32;
    for i in *entered..file {
        tree.files.start[i as usize + 1] = end;
    }
    *entered = file;
}

type Thread = (Vec<Found>, Vec<Outcome>);

#[allow(clippy::too_many_arguments)]
fn read_batch(
    scan: &Scan,
    root: &Path,
    tree: &Tree,
    batch: &[u32],
    sparse: &[u32],
    done: &AtomicU64,
    total: u64,
    watch: Watch<'_>,
) -> Result<Option<Vec<Thread>>> {
    let (next, stop, ended) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
    let one = || -> io::Result<Thread> {
        let mut chunker = Chunker::new(scan.cut)?;
        let (mut found, mut outcomes) = (Vec::new(), Vec::new());
        while let Some((_, file)) = take(&next, batch).filter(|_| !stop.load(Ordering::Relaxed)) {
            let path = root.join(tree.path(&scan.series.names, *file));
            let has_holes = sparse.binary_search(file).is_ok();
            outcomes.push(read_file(scan, &mut chunker, (*file, &path, has_holes), &mut found, done, &stop));
        }
        Ok((found, outcomes))
    };
    let (threads, flow) = std::thread::scope(|scope| {
        let count = scan.threads.min(batch.len());
        let (watcher, ended, one) = (std::thread::current(), &ended, &one);
        let handles: Vec<_> = (0..count)
            .map(|_| {
                let watcher = watcher.clone();
                scope.spawn(move || {
                    let result = one();
                    ended.fetch_add(1, Ordering::Release);
                    watcher.unpark();
                    result
                })
            })
            .collect();
        let mut flow = std::ops::ControlFlow::Continue(());
        while ended.load(Ordering::Acquire) < count && flow.is_continue() {
            std::thread::park_timeout(TICK);
            flow = watch(done.load(Ordering::Relaxed), total);
        }
        stop.store(flow.is_break(), Ordering::Relaxed);
        (handles.into_iter().map(|handle| handle.join()).collect::<Vec<_>>(), flow)
    });
    if flow.is_break() {
        return Ok(None);
    }
    let threads = threads.into_iter().map(|thread| match thread {
        Ok(thread) => thread.map_err(|e| Error::io("cannot be scanned", root, e)),
        Err(panic) => std::panic::resume_unwind(panic),
    });
    threads.collect::<Result<Vec<_>>>().map(Some)
}

fn read_file(
    scan: &Scan,
    chunker: &mut Chunker,
    (file, path, has_holes): (u32, &Path, bool),
    found: &mut Vec<Found>,
    done: &AtomicU64,
    stop: &AtomicBool,
) -> Outcome {
    let first = found.len();
    let mut outcome = Outcome {
        file,
        chunks: first..first,
        bytes: 0,
        size: 0,
        holes: Vec::new(),
        changed: false,
        failed: None,
    };
    let read = (|| {
        let mut source =
            File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        let before = source.metadata()?;
        outcome.size = before.size();
        let data = if has_holes { data_of(&source, before.size())? } else { vec![(0, u64::MAX)] };
        let mut at = 0;
        for (from, to) in data {
            if from > at {
                outcome.holes.push((at, from - at));
                source.seek(SeekFrom::Start(from))?;
            }
            let known = |print: &[u8]| scan.knows(print);
            let mut tell = |n| {
                done.fetch_add(n, Ordering::Relaxed);
            };
            let read = chunker.stream(&mut source, to - from, &known, &mut tell, found)?;
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
        at = seek(from, libc::SEEK_HOLE)?;
        data.push((from, at.min(size)));
    }
    seek(0, libc::SEEK_SET)?;
    Ok(data)
}

/// Enters what came of a file.
fn settle(
    scan: &mut Scan,
    root: &Path,
    tree: &mut Tree,
    outcome: &Outcome,
    found: &[Found],
    report: &mut Report,
) -> Result<()> {
    let file = outcome.file as usize;
    let path = |tree: &Tree, scan: &Scan| root.join(tree.path(&scan.series.names, outcome.file));
    if let Some(cause) = &outcome.failed {
        tree.files.mark[file] = Mark::new(Kind::Unreadable, State::New).0;
        match cause.kind() {
            io::ErrorKind::NotFound => {
                report.vanished += 1;
                report.trouble(&path(tree, scan), "vanished before it was read");
            }
            _ => report.unreadable(&path(tree, scan), cause),
        }
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
        tree.set_private(outcome.file, &[(tag::HOLES, &bytes)])?;
    }
    Ok(())
}
