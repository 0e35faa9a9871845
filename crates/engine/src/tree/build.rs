//! Making a tree: the directory it lies in, and what is in it at the start.

use crate::buffer::{ALIGN, Buffer, fill_random};
use crate::material::Wishes;
use crate::run::Shared;
use crate::{Error, Result};
use loadstone_trace::tree::{Entry, Tree};
use rustc_hash::FxHashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes per write while files are made.
const PIECE: usize = 1 << 20;

/// Directory of the files that links lead to.
const LINKED: &str = ".linked";

/// The directory that a tree lies in.
#[derive(Debug)]
pub struct Root {
    /// Open for looking names up.
    pub directory: File,
    /// Whether the run made it.
    pub created: bool,
}

/// Opens a tree's directory, or makes it.
///
/// # Errors
/// When it cannot be, or when something is in it that was not given up.
pub fn open_root(path: &Path, allow_destroy: bool) -> Result<Root> {
    let Root { directory, created } = open_home(path)?;
    let mut inside = std::fs::read_dir(path).map_err(|e| Error::target_io(path, "cannot be read", &e))?;
    // A new file system has this one.
    let other = |entry: &io::Result<std::fs::DirEntry>| {
        entry.as_ref().map_or(true, |entry| entry.file_name() != "lost+found")
    };
    if inside.any(|entry| other(&entry)) && !allow_destroy {
        return Err(Error::target(
            path,
            format!(
                "is not empty, and a tree of files would be built in it; name an empty or new directory, or pass \
                 --allow-destroy {} to give up what is in it",
                path.display()
            ),
        ));
    }
    Ok(Root { directory, created })
}

/// Opens the directory that sets of files lie in, or makes it; whatever else is in it stays.
///
/// # Errors
/// When it cannot be.
pub fn open_home(path: &Path) -> Result<Root> {
    let created = match std::fs::create_dir(path) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(Error::target_io(path, "cannot be made", &e)),
    };
    let directory = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC)
        .open(path)
        .map_err(|e| Error::target_io(path, "cannot be opened as a directory", &e))?;
    Ok(Root { directory, created })
}

/// Empties a directory that was given up, without leaving its file system.
fn clear(path: &Path, device: u64) -> Result<()> {
    let failed = |at: &Path, e: &io::Error| Error::target_io(at, "cannot be removed", e);
    for entry in std::fs::read_dir(path).map_err(|e| failed(path, &e))? {
        let at = entry.map_err(|e| failed(path, &e))?.path();
        let meta = std::fs::symlink_metadata(&at).map_err(|e| failed(&at, &e))?;
        if meta.dev() != device {
            return Err(Error::target(
                &at,
                "is another file system mounted inside the tree; unmount it first",
            ));
        }
        if meta.is_dir() {
            clear(&at, device)?;
            if at.file_name().is_some_and(|name| name == "lost+found") {
                continue;
            }
            std::fs::remove_dir(&at).map_err(|e| failed(&at, &e))?;
        } else {
            std::fs::remove_file(&at).map_err(|e| failed(&at, &e))?;
        }
    }
    Ok(())
}

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
    shared: &Shared,
    filling: Filling<'_>,
) -> Result<bool> {
    if given_up {
        let device = root.metadata().map_err(|e| Error::target_io(path, "cannot be looked at", &e))?.dev();
        clear(path, device)?;
    }
    shared.begin("building the tree", Some(tree.bytes().max(1)));
    let mut buffer = Buffer::new(PIECE).ok_or_else(|| Error::no_memory("free some"))?;
    filling.begin(buffer.bytes());
    let mut links = 0;
    for (object, name, entry) in entries(tree) {
        let fill = |file: &File, size: u64, buffer: &mut Buffer| {
            filling.of(object, filling.seed).write(file, size, buffer.bytes(), shared)
        };
        if shared.stop.load(Relaxed) {
            return Ok(false);
        }
        let failed = |e: io::Error| Error::target_io(&path.join(name), "cannot be made", &e);
        let named = CString::new(name.as_bytes()).map_err(|e| failed(e.into()))?;
        let whole = match entry {
            Entry::Directory => made(root.as_raw_fd(), &named).map(|()| true),
            Entry::File(size) => {
                create(root.as_raw_fd(), &named).and_then(|file| fill(&file, *size, &mut buffer))
            }
            // It leads nowhere, so nothing can be reached through it.
            Entry::Link(None) => linked(root.as_raw_fd(), &named, c"nowhere").map(|()| true),
            Entry::Link(Some(size)) => {
                let folder = path.join(LINKED);
                let target = folder.join(links.to_string());
                links += 1;
                std::fs::create_dir_all(&folder)
                    .and_then(|()| File::create_new(&target))
                    .and_then(|file| fill(&file, *size, &mut buffer))
                    .and_then(|whole| {
                        let target = CString::new(target.into_os_string().into_encoded_bytes())?;
                        linked(root.as_raw_fd(), &named, &target).map(|()| whole)
                    })
            }
        };
        if !whole.map_err(failed)? {
            return Ok(false);
        }
    }
    // SAFETY: no pointers; the descriptor is open.
    if unsafe { libc::syncfs(root.as_raw_fd()) } != 0 {
        return Err(Error::target_io(path, "cannot be made stable", &io::Error::last_os_error()));
    }
    Ok(true)
}

fn made(root: RawFd, name: &CString) -> io::Result<()> {
    // SAFETY: the name ends with a zero byte.
    match unsafe { libc::mkdirat(root, name.as_ptr(), 0o755) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What files are filled with before a run.
#[derive(Clone, Copy)]
pub struct Filling<'a> {
    /// What random data is drawn from.
    pub seed: u64,
    /// What the plan asks of what is written.
    pub wishes: &'a Wishes,
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
        Contents { wishes: self.wishes, number: self.first + u64::from(file), stamp }
    }
}

/// What one file is filled with.
pub struct Contents<'a> {
    wishes: &'a Wishes,
    number: u64,
    stamp: u64,
}

impl Contents<'_> {
    /// Fills a new file from the memory that was prepared; `false` when stopped on the way.
    pub fn write(&self, file: &File, size: u64, bytes: &mut [u8], shared: &Shared) -> io::Result<bool> {
        let (mut at, mut scratch) = (0, Vec::new());
        while at < size {
            if shared.stop.load(Relaxed) {
                return Ok(false);
            }
            let piece = (size - at).min(PIECE as u64) as usize;
            let bytes = &mut bytes[..piece];
            if !self.wishes.before(self.number, at, bytes, &mut scratch) {
                stamp(bytes, at, shared.done() ^ self.stamp);
            }
            file.write_all_at(bytes, at)?;
            at += piece as u64;
            shared.advance(piece as u64);
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

fn linked(root: RawFd, name: &CString, target: &CStr) -> io::Result<()> {
    // SAFETY: both names end with a zero byte.
    match unsafe { libc::symlinkat(target.as_ptr(), root, name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn create(root: RawFd, name: &CString) -> io::Result<File> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero byte; the descriptor is new and nobody else's.
    unsafe {
        match libc::openat(root, name.as_ptr(), flags, 0o644) {
            fd if fd >= 0 => Ok(File::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
