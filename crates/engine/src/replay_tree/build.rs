//! Making what is in a tree at the start.

use crate::host::names::relative;
use crate::host::tree_root::LOST;
use crate::metrics::progress::{Phase, Progress};
use crate::payload::PayloadPlan;
use crate::payload::buffer::{ALIGN, Buffer, fill_random};
use crate::{Error, Result};
use loadstone_files::{Dir, clear_but};
use loadstone_trace::tree::{Entry, Tree};
use rustc_hash::FxHashMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes per write while files are made.
const PIECE: usize = 1 << 20;

/// Directory of the files that links lead to.
const LINKED: &str = ".linked";

/// What is there at the start: object, name and what it is. Requests know a file by the first object of its name; what
/// none names comes after all objects.
pub fn entries(tree: &Tree) -> impl Iterator<Item = (u32, &str, &Entry)> {
    let mut objects = FxHashMap::default();
    for (object, path) in (0..).zip(&tree.paths) {
        path.as_deref().map(|path| objects.entry(path).or_insert(object));
    }
    (tree.paths.len() as u32..).zip(&tree.entries).map(move |(nameless, (name, entry))| {
        (objects.get(name.as_str()).copied().unwrap_or(nameless), name.as_str(), entry)
    })
}

/// Makes what was there at the start; `false` when stopped on the way. Only what was `given_up` is removed first: what
/// has appeared since the directory was looked at is in the way, and an error.
///
/// # Errors
/// When something cannot be made.
pub fn build(
    path: &Path,
    root: &File,
    given_up: bool,
    tree: &Tree,
    progress: &Progress,
    filling: Filling<'_>,
) -> Result<bool> {
    let dir = root.try_clone().map_err(|e| Error::target_io(path, "cannot be opened", &e))?;
    let dir = Dir::of(dir.into(), path);
    if given_up && !clear_but(&dir, LOST, &mut || !progress.stop.load(Relaxed)).map_err(Error::files)? {
        return Ok(false);
    }
    let mut made = Vec::new();
    let built = build_all(&dir, tree, progress, filling, &mut made);
    if !matches!(built, Ok(true)) {
        // What is not whole is of no use; what others put there meanwhile stays, and the directories it lies in.
        for (name, directory) in made.iter().rev() {
            let _ = dir.unlink_below(name, *directory);
        }
    }
    built
}

/// Makes all, and notes each name that was made and whether it is a directory.
fn build_all(
    dir: &Dir,
    tree: &Tree,
    progress: &Progress,
    filling: Filling<'_>,
    made: &mut Vec<(Vec<u8>, bool)>,
) -> Result<bool> {
    progress.begin(Phase::BuildingTree, Some(tree.bytes().max(1)));
    let mut buffer = Buffer::new(PIECE).ok_or_else(|| Error::no_memory("free some"))?;
    filling.begin(buffer.bytes());
    let mut links = 0;
    for (object, name, entry) in entries(tree) {
        if progress.stop.load(Relaxed) {
            return Ok(false);
        }
        let mut file = |name: &[u8], size: u64, made: &mut Vec<(Vec<u8>, bool)>| {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
            let file = dir.open_below(name, flags, 0o644)?;
            made.push((name.to_vec(), false));
            filling.of(object, filling.seed).write(&file, size, buffer.bytes(), progress)
        };
        let name = name.as_bytes();
        let whole = match entry {
            Entry::Directory => dir.mkdir_below(name, 0o755).map(|()| {
                made.push((name.to_vec(), true));
                true
            }),
            Entry::File(size) => file(name, *size, made),
            // It leads nowhere, so nothing can be reached through it.
            Entry::Link(None) => linked(dir, name, b"nowhere", made).map(|()| true),
            Entry::Link(Some(size)) => {
                let target = format!("{LINKED}/{links}");
                links += 1;
                let folder = match dir.mkdir_below(LINKED.as_bytes(), 0o755) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists && links > 1 => Ok(()),
                    done => done.map(|()| made.push((LINKED.into(), true))),
                };
                folder.and_then(|()| file(target.as_bytes(), *size, made)).and_then(|whole| {
                    let to = relative(&CString::new(target)?, &CString::new(name)?);
                    linked(dir, name, to.to_bytes(), made).map(|()| whole)
                })
            }
        };
        if !whole.map_err(|e| Error::target_io(&dir.path_of(name), "cannot be made", &e))? {
            return Ok(false);
        }
    }
    rustix::fs::syncfs(dir).map_err(|e| Error::target_io(dir.path(), "cannot be made stable", &e.into()))?;
    Ok(true)
}

fn linked(dir: &Dir, name: &[u8], to: &[u8], made: &mut Vec<(Vec<u8>, bool)>) -> io::Result<()> {
    dir.symlink_below(to, name)?;
    made.push((name.to_vec(), false));
    Ok(())
}

/// What files are filled with before a run.
#[derive(Clone, Copy)]
pub struct Filling<'a> {
    /// What random data is drawn from.
    pub seed: u64,
    /// What the plan asks of what is written.
    pub payload_plan: &'a PayloadPlan,
    /// Number of the content of the first file.
    pub first: u64,
}

impl<'a> Filling<'a> {
    /// Prepares the memory that files are written from.
    pub fn begin(&self, bytes: &mut [u8]) {
        fill_random(bytes, self.seed);
    }

    /// That of one file, from the first; without content its blocks carry the stamp.
    pub fn of(&self, file: u32, stamp: u64) -> Contents<'a> {
        Contents { payload_plan: self.payload_plan, number: self.first + u64::from(file), stamp }
    }
}

/// What one file is filled with.
pub struct Contents<'a> {
    payload_plan: &'a PayloadPlan,
    number: u64,
    stamp: u64,
}

impl Contents<'_> {
    /// Fills a new file from the memory that was prepared; `false` when stopped on the way.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, file: &File, size: u64, bytes: &mut [u8], progress: &Progress) -> io::Result<bool> {
        let (mut at, mut scratch) = (0, Vec::new());
        while at < size {
            if progress.stop.load(Relaxed) {
                return Ok(false);
            }
            let piece = (size - at).min(PIECE as u64) as usize;
            let bytes = &mut bytes[..piece];
            if !self.payload_plan.before(self.number, at, bytes, &mut scratch) {
                stamp(bytes, at, progress.done() ^ self.stamp);
            }
            file.write_all_at(bytes, at)?;
            at += piece as u64;
            progress.advance(piece as u64);
        }
        Ok(true)
    }
}

/// Marks the blocks of what lies at byte `at` of a file, so that no two of all files are alike and nobody who shares
/// blocks gains from them.
fn stamp(bytes: &mut [u8], at: u64, number: u64) {
    for (block, bytes) in bytes.chunks_mut(ALIGN).enumerate() {
        let place = at + (block * ALIGN) as u64;
        let stamp = (u128::from(place) << 64 | u128::from(number)).to_le_bytes();
        let room = bytes.len().min(stamp.len());
        bytes[..room].copy_from_slice(&stamp[..room]);
    }
}
