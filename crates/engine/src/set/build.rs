//! Making a set: its directories and files, where nothing of anybody else is.
//!
//! A set lies in a directory of its own, and beside it a small file says that Loadstone made it. Only with that file
//! there, and as long as all names inside are numbers, is an old set removed for a new one without being asked.

use super::{LONGEST, Set};
use crate::buffer::Buffer;
use crate::run::Shared;
use crate::tree::Filling;
use crate::{Error, Result};
use loadstone_plan::FileSet;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes per write while files are made.
const PIECE: usize = 1 << 20;
/// Files a thread takes at once.
const SHARE: usize = 256;
/// What the mark of a set says, and of one whose files have any names.
const NUMBERED: &str = "The directory of this name was made by Loadstone, which may make it anew.\n";
const UNPACKED: &str = "The directory of this name was made by Loadstone, with all in it, which it may remove to make it anew.\n";
/// Threads that make files.
const MAKERS: usize = 16;

/// Where a set lies.
pub struct Place {
    /// Its root.
    pub path: PathBuf,
    /// Says that Loadstone made the set.
    mark: PathBuf,
    /// Its root, open for looking names up, once it was made.
    pub directory: Option<File>,
    given_up: bool,
    reuse: bool,
    uncached: bool,
    zeros: bool,
    any_names: bool,
}

impl Place {
    /// Below a target's directory; nothing is changed yet.
    ///
    /// # Errors
    /// When there is something that the run may not remove.
    pub fn find(target: &Path, set: &FileSet, given_up: bool) -> Result<Place> {
        let path = target.join(&set.path);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mark = path.with_file_name(format!(".{name}.loadstone"));
        let place = Place {
            directory: None,
            given_up,
            reuse: set.reuse,
            uncached: set.uncached,
            zeros: set.zeros,
            any_names: set.any_names,
            mark,
            path,
        };
        match std::fs::symlink_metadata(&place.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(place),
            Err(e) => return Err(Error::target_io(&place.path, "cannot be looked at", &e)),
            Ok(meta) if !meta.is_dir() => {
                return Err(Error::target(
                    &place.path,
                    "is in the way: the files of a set would lie in a directory of that name; move it away",
                ));
            }
            Ok(_) => {}
        }
        let refuse = |at: &Path, what: &str| {
            let what = format!(
                "{what}, and the set {:?} would take its place; name another directory with --on, or pass --allow-destroy \
                 {} to give it up",
                set.id,
                target.display()
            );
            Err(Error::target(at, what))
        };
        if !given_up && !place.mark.exists() {
            return refuse(&place.path, "was there before and was not made by Loadstone");
        }
        if !given_up && let Some(other) = place.foreign()? {
            return refuse(&other, "was not made by Loadstone");
        }
        Ok(place)
    }

    /// Something in it that Loadstone did not make, as far as names tell: of any names it is what the mark of another kind
    /// of set stands beside.
    fn foreign(&self) -> Result<Option<PathBuf>> {
        if self.any_names && std::fs::read_to_string(&self.mark).is_ok_and(|text| text == UNPACKED) {
            return Ok(None);
        }
        foreign(&self.path)
    }

    /// Makes the set; `false` when stopped on the way.
    ///
    /// # Errors
    /// When something cannot be made.
    pub fn build(&mut self, set: &Set, shared: &Shared, filling: Filling<'_>) -> Result<bool> {
        let failed = |at: &Path, e: &io::Error| Error::target_io(at, "cannot be made", e);
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| failed(parent, &e))?;
        }
        if !self.reuse && self.path.exists() {
            if !self.given_up
                && let Some(other) = self.foreign()?
            {
                return Err(Error::target(&other, "has appeared since the run began; nothing was removed"));
            }
            shared.begin("clearing", None);
            if !clear(&self.path, shared)? {
                return Ok(false);
            }
        }
        std::fs::write(&self.mark, if self.any_names { UNPACKED } else { NUMBERED })
            .map_err(|e| failed(&self.mark, &e))?;
        match std::fs::create_dir(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(&self.path, &e)),
            _ => {}
        }
        let root = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC)
            .open(&self.path)
            .map_err(|e| failed(&self.path, &e))?;
        self.room(set)?;
        shared.begin("making files", Some((set.directories() + set.files.len() + set.leaves.len()) as u64));
        let mut room = [0; LONGEST];
        for directory in 0..set.directories() as u32 {
            let name = set.directory_path(directory, &mut room);
            made(&root, name).map_err(|e| failed(&self.inside(name), &e))?;
            shared.advance(1);
        }
        for leaf in 0..set.leaves.len() as u32 {
            let name = set.leaf_path(leaf, &mut room);
            let done = if set.leaves.is_present(leaf) { made(&root, name) } else { gone(&root, name, true) };
            done.map_err(|e| failed(&self.inside(name), &e))?;
            shared.advance(1);
        }
        let whole = self.files(set, &root, shared, filling)?;
        // SAFETY: no pointers; the descriptor is open.
        if whole && unsafe { libc::syncfs(root.as_raw_fd()) } != 0 {
            return Err(failed(&self.path, &io::Error::last_os_error()));
        }
        self.directory = Some(root);
        Ok(whole)
    }

    /// Refuses a set that is larger than what is free, which includes what an old one to be reused holds.
    fn room(&self, set: &Set) -> Result<()> {
        if self.reuse { Ok(()) } else { fits(&self.path, &self.path, &[set]) }
    }

    fn inside(&self, name: &CStr) -> PathBuf {
        self.path.join(name.to_string_lossy().as_ref())
    }

    /// Makes the files by several threads, as creating takes turns within a directory only.
    fn files(&self, set: &Set, root: &File, shared: &Shared, filling: Filling<'_>) -> Result<bool> {
        let next = AtomicUsize::new(0);
        let makers = std::thread::available_parallelism().map_or(1, |n| n.get() * 2).min(MAKERS);
        let work = || -> Result<bool> {
            let mut room = [0; LONGEST];
            let mut buffer: Option<Buffer> = None;
            loop {
                let begin = next.fetch_add(SHARE, Relaxed);
                let end = (begin + SHARE).min(set.files.len());
                for file in begin as u32..end.max(begin) as u32 {
                    if shared.stop.load(Relaxed) {
                        return Ok(false);
                    }
                    let name = set.file_path(file, &mut room);
                    let made = if set.files.is_present(file) {
                        self.file(root, name, (file, set.size(file)), &mut buffer, shared, filling)
                    } else if self.reuse {
                        gone(root, name, false).map(|()| true)
                    } else {
                        Ok(true)
                    };
                    let made =
                        made.map_err(|e| Error::target_io(&self.inside(name), "cannot be made", &e))?;
                    if !made {
                        return Ok(false);
                    }
                }
                shared.advance(end.saturating_sub(begin) as u64);
                if end >= set.files.len() {
                    return Ok(true);
                }
            }
        };
        std::thread::scope(|scope| {
            let thread = || std::thread::Builder::new().name("loadstone-make".into());
            let start = |_| thread().spawn_scoped(scope, work).ok();
            let makers: Vec<_> = (0..makers).map_while(start).collect();
            // Fewer do it, too; where no thread is to be had, this one does.
            let mut whole = if makers.is_empty() { work()? } else { true };
            for maker in makers {
                whole &= maker.join().map_err(|_| Error::Thread("loadstone-make".into()))??;
            }
            Ok(whole)
        })
    }

    /// Makes one file, or keeps it when it is as it should be; `false` when stopped on the way.
    fn file(
        &self,
        root: &File,
        name: &CStr,
        (number, size): (u32, u64),
        buffer: &mut Option<Buffer>,
        shared: &Shared,
        filling: Filling<'_>,
    ) -> io::Result<bool> {
        if self.reuse {
            match size_of(root, name) {
                Some(found) if found == size => return Ok(true),
                Some(found) if found > size => {
                    let file = open(root, name, libc::O_WRONLY)?;
                    file.set_len(size)?;
                    return Ok(true);
                }
                Some(_) => gone(root, name, false)?,
                None => {}
            }
        }
        if size == 0 {
            // SAFETY: the name ends with a zero byte.
            return match unsafe { libc::mknodat(root.as_raw_fd(), name.as_ptr(), libc::S_IFREG | 0o644, 0) } {
                0 => Ok(true),
                _ => Err(io::Error::last_os_error()),
            };
        }
        let file = open(root, name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?;
        if buffer.is_none() {
            let mut new = Buffer::new(PIECE).ok_or(io::ErrorKind::OutOfMemory)?;
            if !self.zeros {
                filling.begin(new.bytes());
            }
            *buffer = Some(new);
        }
        let bytes = buffer.as_mut().expect("made above").bytes();
        let whole = if self.zeros {
            zeros(&file, size, bytes, shared)?
        } else {
            let stamp = |sum: u64, byte: &u8| sum.wrapping_mul(31).wrapping_add((*byte).into());
            let stamp = name.to_bytes().iter().fold(filling.seed, stamp);
            filling.of(number, stamp).write(&file, size, bytes, shared)?
        };
        if self.uncached {
            // SAFETY: no pointers. Pages that are still dirty stay, so they are written back first.
            unsafe {
                libc::fdatasync(file.as_raw_fd());
                libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
            }
        }
        Ok(whole)
    }
}

/// Writes a file of what `bytes` holds, which is zeros; `false` when stopped on the way.
fn zeros(file: &File, size: u64, bytes: &[u8], shared: &Shared) -> io::Result<bool> {
    let mut at = 0;
    while at < size {
        if shared.stop.load(Relaxed) {
            return Ok(false);
        }
        let piece = (size - at).min(PIECE as u64);
        file.write_all_at(&bytes[..piece as usize], at)?;
        at += piece;
    }
    Ok(true)
}

/// Refuses new sets that together are larger than what is free, before any of them is made. One that takes the place of
/// an old one is looked at when that is gone.
///
/// # Errors
/// When they do not fit.
pub fn refuse_larger(places: &[(&Place, &Set)]) -> Result<()> {
    // Of each file system: a directory in it, and the sets.
    let mut systems: Vec<(u64, PathBuf, &Path, Vec<&Set>)> = Vec::new();
    for (place, set) in places.iter().filter(|(place, _)| !place.path.exists()) {
        let there = place.path.ancestors().find_map(|at| Some((std::fs::metadata(at).ok()?.dev(), at)));
        let Some((device, at)) = there else { continue };
        match systems.iter_mut().find(|system| system.0 == device) {
            Some(system) => system.3.push(set),
            None => systems.push((device, at.into(), &place.path, vec![set])),
        }
    }
    systems.iter().try_for_each(|(_, at, path, sets)| fits(at, path, sets))
}

/// Whether sets fit in the file system of a directory `at`; `path` is that of the first.
fn fits(at: &Path, path: &Path, sets: &[&Set]) -> Result<()> {
    let Ok(name) = std::ffi::CString::new(at.as_os_str().as_encoded_bytes()) else { return Ok(()) };
    // SAFETY: the name ends with a zero byte, and the call fills in plain data.
    let free = unsafe {
        let mut free: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(name.as_ptr(), &mut free) != 0 {
            return Ok(());
        }
        free
    };
    let (mut bytes, mut inodes) = (0u64, 0u64);
    for set in sets {
        let (size, files) = set.content();
        bytes = bytes.saturating_add(size);
        inodes += files + (set.directories() + set.leaves.len()) as u64;
    }
    let who = match sets {
        [set] => format!("the set {:?} needs", set.id),
        _ => format!("the {} sets {:?} and so on need", sets.len(), sets[0].id),
    };
    let room = free.f_bavail.saturating_mul(free.f_frsize);
    // A file system that counts no inodes says 0 of 0.
    let most = if free.f_files == 0 { u64::MAX } else { free.f_favail };
    if bytes > room {
        let what = format!("{who} {bytes} bytes, and {room} are free there");
        return Err(Error::target(path, format!("{what}; make fewer or smaller files")));
    }
    if inodes > most {
        let what = format!("{who} {inodes} inodes, and {most} are free there");
        return Err(Error::target(path, format!("{what}; make fewer files")));
    }
    Ok(())
}

fn open(root: &File, name: &CStr, flags: libc::c_int) -> io::Result<File> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero byte; the descriptor is new and nobody else's.
    unsafe {
        match libc::openat(root.as_raw_fd(), name.as_ptr(), flags, 0o644) {
            fd if fd >= 0 => Ok(File::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Bytes of a regular file; nothing where there is none.
fn size_of(root: &File, name: &CStr) -> Option<u64> {
    // SAFETY: the name ends with a zero byte, and the call fills in plain data.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let found = libc::fstatat(root.as_raw_fd(), name.as_ptr(), &mut stat, libc::AT_SYMLINK_NOFOLLOW) == 0;
        (found && stat.st_mode & libc::S_IFMT == libc::S_IFREG).then_some(stat.st_size as u64)
    }
}

fn made(root: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with a zero byte.
    if unsafe { libc::mkdirat(root.as_raw_fd(), name.as_ptr(), 0o755) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        e if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        e => Err(e),
    }
}

fn gone(root: &File, name: &CStr, directory: bool) -> io::Result<()> {
    let flags = if directory { libc::AT_REMOVEDIR } else { 0 };
    let root: RawFd = root.as_raw_fd();
    // SAFETY: the name ends with a zero byte.
    if unsafe { libc::unlinkat(root, name.as_ptr(), flags) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        e if e.kind() == io::ErrorKind::NotFound => Ok(()),
        e => Err(e),
    }
}

/// Something in a set's directory whose name is not one of Loadstone's.
fn foreign(path: &Path) -> Result<Option<PathBuf>> {
    let failed = |at: &Path, e: &io::Error| Error::target_io(at, "cannot be read", e);
    for entry in std::fs::read_dir(path).map_err(|e| failed(path, &e))? {
        let entry = entry.map_err(|e| failed(path, &e))?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.len() < 8 || !name.iter().all(u8::is_ascii_digit) {
            return Ok(Some(entry.path()));
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Some(other) = foreign(&entry.path())?
        {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// Empties a directory without leaving its file system; `false` when stopped on the way.
fn clear(path: &Path, shared: &Shared) -> Result<bool> {
    let failed = |at: &Path, e: &io::Error| Error::target_io(at, "cannot be removed", e);
    let device = std::fs::symlink_metadata(path).map_err(|e| failed(path, &e))?.dev();
    for entry in std::fs::read_dir(path).map_err(|e| failed(path, &e))? {
        if shared.stop.load(Relaxed) {
            return Ok(false);
        }
        let entry = entry.map_err(|e| failed(path, &e))?;
        let at = entry.path();
        if !entry.file_type().map_err(|e| failed(&at, &e))?.is_dir() {
            std::fs::remove_file(&at).map_err(|e| failed(&at, &e))?;
            continue;
        }
        if std::fs::symlink_metadata(&at).map_err(|e| failed(&at, &e))?.dev() != device {
            return Err(Error::target(
                &at,
                "is another file system mounted inside the set; unmount it first",
            ));
        }
        if !clear(&at, shared)? {
            return Ok(false);
        }
        std::fs::remove_dir(&at).map_err(|e| failed(&at, &e))?;
    }
    Ok(true)
}
