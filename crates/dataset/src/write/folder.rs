//! Directories and files. Everything is made by its name in an open directory, and no link is followed, so nothing that a
//! series says leads out of the directory that it is written to.

use super::made::{Made, Repeats};
use super::stream::holes;
use super::unfinished::{UNFINISHED, Unfinished};
use super::{Form, Options, Watch, Written, check_room, is_wanted, wanted};
use crate::tree::{Kind, Series, Tree, tag};
use crate::{Error, Name, Result};
use loadstone_files::Dir;
use loadstone_fstree::Content;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are written at once.
const WRITE: usize = 1 << 18;
/// Shortest time between two looks at how far threads are.
const TICK: Duration = Duration::from_millis(100);
/// Bytes of a path that are asked of the kernel at once: it takes 4,095, and a name has up to 255.
const STEP: usize = 3800;

/// Directories between two looks at whether the work is to end.
const LOOK: u64 = 64;

pub(super) fn write(
    series: &Series,
    tree: &Tree,
    content: &Content<'_>,
    options: &Options,
    to: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let (files, total) = wanted(tree, options);
    let root = made(to)?;
    refuse_others(&root)?;
    let mark = Unfinished::begin(&root, false)?;
    // Others may have been as fast.
    let room = || check_room(series, std::slice::from_ref(options), to, Form::Files);
    if let Err(refused) = refuse_others(&root).and_then(|()| room()) {
        mark.withdraw()?;
        return Err(refused);
    }
    let target = Target { series, tree, root: &root };
    let mut written = Written { files: files.len() as u64, bytes: total, ..Written::default() };
    match directories(&target, options, &mut |done| watch(0, total.max(done)))? {
        Some(made) => written.directories = made,
        None => return Ok(None),
    }
    if write_files(&target, content, options, &files, total, watch)?.is_break() {
        return Ok(None);
    }
    let mut at = [Places::new(&target), Places::new(&target)];
    // Symbolic links come last: whoever else looks in meanwhile is not led out by a half-written tree.
    for kind in [Kind::Hard, Kind::Symlink] {
        for file in (0..tree.len() as u32).filter(|file| tree.file(*file).mark.kind() == kind) {
            if is_wanted(tree.file(file).mark, options) {
                link(&target, options, &mut at, file, &mut written)?;
            }
        }
    }
    let others =
        (0..tree.len() as u32).map(|file| tree.file(file).mark).filter(|mark| is_wanted(*mark, options));
    let others = others.filter(|mark| matches!(mark.kind(), Kind::Other | Kind::Unreadable));
    written.left_out = others.count() as u64;
    mark.finish()?;
    Ok(Some(written))
}

/// A directory that a user named, which is made if it is not there.
pub(super) fn made(to: &Path) -> Result<Dir> {
    if let Some(file) = to.ancestors().find(|above| above.exists()).filter(|there| !there.is_dir()) {
        return Err(Error::file(file, "is a file; name a new or an empty directory"));
    }
    loadstone_files::create_dirs(to).map_err(|e| Error::io("cannot be made", to, e))?;
    Dir::open(to).map_err(|e| Error::file(to, e.what))
}

/// Refuses a directory that has something else than our mark.
pub(super) fn refuse_others(root: &Dir) -> Result<()> {
    let mut is_empty = true;
    let listed = root.each(|entry| {
        is_empty = entry.name.as_bytes() == UNFINISHED.as_bytes();
        Ok(is_empty)
    });
    listed.map_err(|e| Error::io("cannot be listed", root.path(), e))?;
    if is_empty {
        return Ok(());
    }
    Err(Error::file(root.path(), "is not empty; name a new or an empty directory"))
}

/// What is written where.
struct Target<'a> {
    series: &'a Series,
    tree: &'a Tree,
    root: &'a Dir,
}

impl Target<'_> {
    fn name_of(&self, file: u32) -> Vec<u8> {
        let (entry, mut name) = (self.tree.file(file), Vec::new());
        self.series.names.write(entry.name, b'f', entry.extension, &mut name);
        name
    }

    /// An error that names a file.
    fn failed(&self, what: &'static str, file: u32, cause: io::Error) -> Error {
        Error::io(what, &self.root.path().join(self.tree.path(&self.series.names, file)), cause)
    }
}

/// Opens directories of a tree; the last one stays open, as the next file is often in it, too.
struct Places<'a> {
    of: &'a Target<'a>,
    last: Option<(u32, Dir)>,
}

impl<'a> Places<'a> {
    fn new(of: &'a Target<'a>) -> Places<'a> {
        Places { of, last: None }
    }

    fn at(&mut self, dir: u32) -> io::Result<&Dir> {
        if dir == 0 {
            return Ok(self.of.root);
        }
        let open = match self.last.take() {
            Some((last, open)) if last == dir => open,
            _ => self.open(dir)?,
        };
        Ok(&self.last.insert((dir, open)).1)
    }

    /// From the root on, in as few steps as the kernel takes.
    fn open(&self, dir: u32) -> io::Result<Dir> {
        let path = self.of.tree.dir_path(&self.of.series.names, dir);
        let (mut rest, mut at) = (path.as_os_str().as_bytes(), None::<Dir>);
        while !rest.is_empty() {
            let near = &rest[..rest.len().min(STEP)];
            let end = match rest.len() > STEP {
                true => near.iter().rposition(|byte| *byte == b'/').unwrap_or(near.len()),
                false => rest.len(),
            };
            at = Some(at.as_ref().unwrap_or(self.of.root).dir_below(&rest[..end])?);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        at.map_or_else(|| self.of.root.try_clone(), Ok)
    }
}

/// Makes directories; of an incremental backup only those that files are in. Tells how many; nothing where that was ended.
fn directories(
    target: &Target<'_>,
    options: &Options,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<u64>> {
    let tree = target.tree;
    let mut used = vec![!options.only_changed; tree.dirs()];
    for file in 0..tree.len() as u32 {
        let entry = tree.file(file);
        used[entry.dir as usize] |= is_wanted(entry.mark, options);
    }
    for dir in (1..tree.dirs()).rev() {
        if used[dir] {
            used[tree.dirs.parent[dir] as usize] = true;
        }
    }
    let (mut places, mut name) = (Places::new(target), Vec::new());
    used[0] = true;
    for (made, dir) in (0..).zip((1..tree.dirs()).filter(|dir| used[*dir])) {
        if made % LOOK == LOOK - 1 && watch(made).is_break() {
            return Ok(None);
        }
        name.clear();
        target.series.names.write(Name(tree.dirs.name[dir]), b'd', 0, &mut name);
        places.at(tree.dirs.parent[dir]).and_then(|above| above.mkdir_below(&name, 0o777)).map_err(|e| {
            let path = target.root.path().join(tree.dir_path(&target.series.names, dir as u32));
            Error::io("cannot be made", &path, e)
        })?;
    }
    Ok(Some(used.iter().filter(|used| **used).count() as u64))
}

fn write_files(
    target: &Target<'_>,
    content: &Content<'_>,
    options: &Options,
    files: &[u32],
    total: u64,
    watch: Watch<'_>,
) -> Result<ControlFlow<()>> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let repeats = Repeats::of(target.series, target.tree, files);
    let (stop, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
    let one = || -> Result<()> {
        let (mut made, mut places) = (Made::new(content, &repeats), Places::new(target));
        while !stop.load(Ordering::Relaxed) {
            let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            write_file(target, &mut made, &mut places, *file, &done)
                .map_err(|e| target.failed("cannot be written", *file, e))?;
        }
        Ok(())
    };
    let count = options.threads.clamp(1, files.len().max(1));
    std::thread::scope(|scope| {
        let watcher = std::thread::current();
        let start = |_| {
            let (watcher, one, ended, stop) = (watcher.clone(), &one, &ended, &stop);
            let work = move || {
                let result = one();
                stop.fetch_or(result.is_err(), Ordering::Relaxed);
                ended.fetch_add(1, Ordering::Release);
                watcher.unpark();
                result
            };
            std::thread::Builder::new().name("loadstone-write".into()).spawn_scoped(scope, work).ok()
        };
        let handles: Vec<_> = (0..count).map_while(start).collect();
        if handles.is_empty() {
            // No thread is to be had, so this one writes, and nobody is told meanwhile.
            one()?;
        }
        let mut flow = ControlFlow::Continue(());
        let at_work = || handles.iter().any(|thread| !thread.is_finished());
        while ended.load(Ordering::Acquire) < handles.len() && at_work() && flow.is_continue() {
            std::thread::park_timeout(TICK);
            flow = watch(done.load(Ordering::Relaxed), total);
        }
        stop.fetch_or(flow.is_break(), Ordering::Relaxed);
        for handle in handles {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(flow)
    })
}

fn write_file(
    target: &Target<'_>,
    made: &mut Made<'_>,
    places: &mut Places<'_>,
    file: u32,
    done: &AtomicU64,
) -> io::Result<()> {
    let tree = target.tree;
    let is_program = tree.private_of(file).any(|(tag, _)| tag == tag::EXECUTABLE);
    let mode = if is_program { 0o777 } else { 0o666 };
    let mut into: File = places.at(tree.file(file).dir)?.create_below(&target.name_of(file), mode)?;
    let (size, holes) = (tree.file(file).size, holes(tree, file));
    made.clear();
    if holes.is_empty() {
        for chunk in tree.chunks_of(file) {
            made.push(*chunk);
            if made.waiting() >= WRITE {
                done.fetch_add(made.write(&mut into)?, Ordering::Relaxed);
            }
        }
        done.fetch_add(made.write(&mut into)?, Ordering::Relaxed);
        return Ok(());
    }
    // Chunks are those of the data between holes, one after the other.
    let (mut at, mut holes) = (0, holes.into_iter().peekable());
    for chunk in tree.chunks_of(file) {
        made.clear();
        made.push(*chunk);
        for mut rest in made.pieces() {
            while !rest.is_empty() {
                while let Some((offset, length)) = holes.next_if(|(offset, _)| *offset <= at) {
                    at = at.max(offset.saturating_add(length));
                }
                let end = holes.peek().map_or(u64::MAX, |(offset, _)| *offset);
                let (piece, later) = rest.split_at((rest.len() as u64).min(end - at) as usize);
                into.write_all_at(piece, at)?;
                at += piece.len() as u64;
                rest = later;
            }
        }
    }
    done.fetch_add(size, Ordering::Relaxed);
    into.set_len(size)
}

fn link(
    target: &Target<'_>,
    options: &Options,
    [place, source]: &mut [Places<'_>; 2],
    file: u32,
    written: &mut Written,
) -> Result<()> {
    let (tree, name) = (target.tree, target.name_of(file));
    let failed = |e| target.failed("cannot be made", file, e);
    let into = place.at(tree.file(file).dir).map_err(failed)?;
    if tree.file(file).mark.kind() == Kind::Symlink {
        into.symlink_below(super::target(tree, file), &name).map_err(failed)?;
    } else {
        let Some(first) = super::first(tree, options, file) else {
            written.broken_links += 1;
            return Ok(());
        };
        let from = source.at(tree.file(first).dir).map_err(failed)?;
        further_name(from, target.name_of(first), into, name).map_err(failed)?;
    }
    written.links += 1;
    Ok(())
}

/// Gives a file a further name in another directory.
fn further_name(from: &Dir, old: Vec<u8>, into: &Dir, new: Vec<u8>) -> io::Result<()> {
    loadstone_files::check_name(&old).and_then(|()| loadstone_files::check_name(&new))?;
    let (old, new) = (CString::new(old)?, CString::new(new)?);
    // SAFETY: both directories are open and both names end with a zero byte; no link is followed.
    let done = unsafe { libc::linkat(from.as_raw_fd(), old.as_ptr(), into.as_raw_fd(), new.as_ptr(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
