//! Directories and files.

use super::made::{Made, Repeats};
use super::stream::holes;
use super::{Form, Options, Watch, Written, check_room, is_wanted, wanted};
use crate::tree::{Kind, Series, Tree, tag};
use crate::{Error, Result};
use loadstone_fstree::Content;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are written at once.
const WRITE: usize = 1 << 18;
/// Shortest time between two looks at how far threads are.
const TICK: Duration = Duration::from_millis(100);

pub(super) fn write(
    series: &Series,
    tree: &Tree,
    content: &Content<'_>,
    options: &Options,
    to: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let (files, total) = wanted(tree, options);
    prepare(to)?;
    check_room(series, std::slice::from_ref(options), to, Form::Files)?;
    let mut written = Written { files: files.len() as u64, bytes: total, ..Written::default() };
    let dirs = directories(series, tree, options, to)?;
    written.directories = dirs.iter().flatten().count() as u64;
    if write_files(series, tree, content, options, &dirs, &files, total, watch)?.is_break() {
        return Ok(None);
    }
    for file in 0..tree.len() as u32 {
        let mark = tree.file(file).mark;
        if is_wanted(mark, options) {
            match mark.kind() {
                Kind::File => {}
                Kind::Symlink | Kind::Hard => link(series, tree, &dirs, file, &mut written)?,
                Kind::Other | Kind::Unreadable => written.left_out += 1,
            }
        }
    }
    Ok(Some(written))
}

/// Makes the directory, or sees that it is empty.
fn prepare(to: &Path) -> Result<()> {
    if let Some(file) = to.ancestors().find(|above| above.exists()).filter(|there| !there.is_dir()) {
        return Err(Error::file(file, "is a file; name a new or an empty directory"));
    }
    fs::create_dir_all(to).map_err(|e| Error::io("cannot be made", to, e))?;
    let mut entries = fs::read_dir(to).map_err(|e| Error::io("cannot be listed", to, e))?;
    if entries.next().is_some() {
        return Err(Error::file(to, "is not empty; name a new or an empty directory"));
    }
    Ok(())
}

/// Makes directories; of an incremental backup only those that files are in. Tells where each is.
fn directories(series: &Series, tree: &Tree, options: &Options, to: &Path) -> Result<Vec<Option<PathBuf>>> {
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
    used[0] = true;
    let mut paths: Vec<Option<PathBuf>> = vec![None; tree.dirs()];
    paths[0] = Some(to.to_path_buf());
    let mut name = Vec::new();
    for dir in 1..tree.dirs() {
        if let Some(above) = paths[tree.dirs.parent[dir] as usize].as_ref().filter(|_| used[dir]) {
            name.clear();
            series.names.write(crate::Name(tree.dirs.name[dir]), b'd', 0, &mut name);
            let path = above.join(OsStr::from_bytes(&name));
            fs::create_dir(&path).map_err(|e| Error::io("cannot be made", &path, e))?;
            paths[dir] = Some(path);
        }
    }
    Ok(paths)
}

fn path_of(series: &Series, tree: &Tree, dirs: &[Option<PathBuf>], file: u32) -> Option<PathBuf> {
    let (entry, mut name) = (tree.file(file), Vec::new());
    series.names.write(entry.name, b'f', entry.extension, &mut name);
    dirs[entry.dir as usize].as_ref().map(|dir| dir.join(OsStr::from_bytes(&name)))
}

#[allow(clippy::too_many_arguments)]
fn write_files(
    series: &Series,
    tree: &Tree,
    content: &Content<'_>,
    options: &Options,
    dirs: &[Option<PathBuf>],
    files: &[u32],
    total: u64,
    watch: Watch<'_>,
) -> Result<ControlFlow<()>> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let repeats = Repeats::of(series, tree, files);
    let (stop, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
    let one = || -> Result<()> {
        let mut made = Made::new(content, &repeats);
        while !stop.load(Ordering::Relaxed) {
            let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            if let Some(path) = path_of(series, tree, dirs, *file) {
                let written = write_file(tree, &mut made, *file, &path, &done);
                written.map_err(|e| Error::io("cannot be written", &path, e))?;
            }
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

fn write_file(tree: &Tree, made: &mut Made<'_>, file: u32, path: &Path, done: &AtomicU64) -> io::Result<()> {
    let is_program = tree.private_of(file).any(|(tag, _)| tag == tag::EXECUTABLE);
    let mode = if is_program { 0o777 } else { 0o666 };
    let mut into = File::options().write(true).create_new(true).mode(mode).open(path)?;
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
    series: &Series,
    tree: &Tree,
    dirs: &[Option<PathBuf>],
    file: u32,
    written: &mut Written,
) -> Result<()> {
    let Some(path) = path_of(series, tree, dirs, file) else { return Ok(()) };
    let made = if tree.file(file).mark.kind() == Kind::Symlink {
        let target =
            tree.private_of(file).find(|(tag, _)| *tag == tag::LINK).map_or(&b"."[..], |(_, bytes)| bytes);
        std::os::unix::fs::symlink(OsStr::from_bytes(target), &path)
    } else {
        match tree
            .linked(file)
            .and_then(|first| path_of(series, tree, dirs, first))
            .filter(|first| first.exists())
        {
            Some(first) => fs::hard_link(first, &path),
            None => {
                written.broken_links += 1;
                return Ok(());
            }
        }
    };
    made.map_err(|e| Error::io("cannot be made", &path, e))?;
    written.links += 1;
    Ok(())
}
