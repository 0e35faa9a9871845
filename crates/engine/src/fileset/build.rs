//! Making a set: its directories and files, where nothing of anybody else is.
//!
//! A set lies in a directory of its own, with a mark inside that says that Loadstone made it, and what it looks like. Only
//! with that mark, and as long as all inside is what it tells of, is an old set removed for a new one without being asked.

use super::bits::Bits;
use super::outline::{KIND, Outline, foreign};
use super::{LONGEST, Set};
use crate::host::target::Open;
use crate::metrics::progress::{Phase, Progress};
use crate::payload::buffer::Buffer;
use crate::replay_tree::Filling;
use crate::{Error, Result};
use loadstone_files::{Dir, Entry, Links, Mark, Parents, clear, clear_but, clear_where, is_mark, open_at};
use loadstone_plan::FileSet;
use rustix::fs::{self, AtFlags, FileType, Mode, StatVfs};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes per write while files are made.
const PIECE: usize = 1 << 20;
/// Files a thread takes at once.
const SHARE: usize = 256;
/// Threads that make files.
const MAKERS: usize = 16;

/// Directories that a thread which makes files keeps open: files come directory by directory.
const PARENTS: usize = 16;

/// Where a set lies.
pub struct SetPath {
    /// Its root.
    pub path: PathBuf,
    /// The target's directory, and the name of the root below it.
    target: Dir,
    name: Vec<u8>,
    /// Its root, open for looking names up, once it was made.
    pub directory: Option<File>,
    /// Says that Loadstone made it.
    mark: Option<Mark>,
    /// Directories that this run made on the way to the root, which is the last, and the files it made in that.
    made: Option<(Vec<Vec<u8>>, Bits)>,
    /// All in its directory may go. What gives up the target does not give up a mount in it.
    given_up: bool,
    reuse: bool,
    uncached: bool,
    zeros: bool,
    any_names: bool,
}

impl SetPath {
    /// Below a target's directory; nothing is changed yet.
    ///
    /// # Errors
    /// When there is something that the run may not remove.
    pub fn find(target: &Open, set: &FileSet, given_up: bool) -> Result<SetPath> {
        let at = target.file.as_ref().ok_or_else(|| Error::target(&target.path, "has no directory"))?;
        let at = at.try_clone().map_err(|e| Error::target_io(&target.path, "cannot be opened", &e))?;
        let parts = set.path.components().filter_map(|part| match part {
            Component::Normal(part) => Some(part.as_encoded_bytes()),
            _ => None,
        });
        let place = SetPath {
            path: target.path.join(&set.path),
            target: Dir::of(at.into(), &target.path),
            name: parts.collect::<Vec<_>>().join(&b'/'),
            directory: None,
            mark: None,
            made: None,
            given_up,
            reuse: set.reuse,
            uncached: set.uncached,
            zeros: set.zeros,
            any_names: set.any_names,
        };
        match place.target.stat_below(&place.name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(place),
            Err(e) if matches!(e.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => {
                let what = "lies behind a link or a file; name the directory itself";
                return Err(Error::target(&place.path, what));
            }
            Err(e) => return Err(Error::target_io(&place.path, "cannot be looked at", &e)),
            Ok(found) if !found.is(libc::S_IFDIR) => {
                return Err(Error::target(
                    &place.path,
                    "is in the way: the files of a set would lie in a directory of that name; move it away",
                ));
            }
            Ok(_) => {}
        }
        let dir = place.open()?;
        let is_mount = place.is_on_another_mount(&dir)?;
        let place = SetPath { given_up: given_up && !is_mount, ..place };
        if !place.given_up
            && let Some((at, what)) = place.taken(&dir)?
        {
            let (id, on) = (&set.id, target.path.display());
            let what = if given_up {
                format!(
                    "{what}; it is on a mount of its own, which `allow_destroy` {on} does not give up: unmount that, \
                     or name another directory with `on`"
                )
            } else {
                format!(
                    "{what}, and the set {id:?} would take its place; name another directory with `on`, move that away, or \
                     pass `allow_destroy` {on} to give it up"
                )
            };
            return Err(Error::target(&at, what));
        }
        Ok(place)
    }

    fn is_on_another_mount(&self, dir: &Dir) -> Result<bool> {
        let stats = self.target.stat().and_then(|there| Ok((there, dir.stat()?)));
        let (there, here) = stats.map_err(|e| Error::target_io(&self.path, "cannot be looked at", &e))?;
        // Kernels before 5.8 do not tell mounts, and then file systems must do.
        // A subvolume of btrfs has a device of its own on the same mount.
        Ok(there.device != here.device || (here.mount != 0 && there.mount != here.mount))
    }

    fn open(&self) -> Result<Dir> {
        let dir = self.target.dir_below(&self.name);
        let dir = dir.map_err(|e| Error::target_io(&self.path, "cannot be opened as a directory", &e))?;
        Ok(Dir::of(OwnedFd::from(dir), &self.path))
    }

    /// What in its directory is not Loadstone's, and why.
    fn taken(&self, dir: &Dir) -> Result<Option<(PathBuf, String)>> {
        match Mark::read(dir) {
            Err(e) => Ok(Some((e.path, e.what))),
            Ok(Some(mark)) if mark.ended.is_none() => {
                let what = "has files of a run that was killed, which nothing tells from files of others";
                Ok(if is_empty(dir)? { None } else { Some((self.path.clone(), what.into())) })
            }
            Ok(Some(mark)) => {
                let other = foreign(dir, &mark).map_err(Error::files)?;
                Ok(other.map(|other| {
                    (other, "was not made by Loadstone, or was changed after its last run".into())
                }))
            }
            Ok(None) if is_empty(dir)? => Ok(None),
            Ok(None) => {
                Ok(Some((self.path.clone(), "was there before and was not made by Loadstone".into())))
            }
        }
    }

    /// Makes the set; `false` when stopped on the way.
    ///
    /// # Errors
    /// When something cannot be made.
    pub fn build(&mut self, set: &Set, progress: &Progress, filling: Filling<'_>) -> Result<bool> {
        let failed = |at: &Path, e: &io::Error| Error::target_io(at, "cannot be made", e);
        let (_, new) = self.target.make_below(&self.name, 0o755).map_err(|e| failed(&self.path, &e))?;
        let dir = self.open()?;
        if new.last().is_some_and(|last| *last == self.name) {
            self.made = Some((new, Bits::new(set.files.len())));
        } else {
            self.given_up &= !self.is_on_another_mount(&dir)?;
            if !self.given_up
                && let Some((other, what)) = self.taken(&dir)?
            {
                let what = format!("{what}; it has appeared since the run began, and nothing was removed");
                return Err(Error::target(&other, what));
            }
            progress.begin(Phase::Clearing, None);
            if !self.reuse && !self.clear(&dir, progress)? {
                return Ok(false);
            }
        }
        self.mark = Some(self.marked(&dir, set)?);
        let root = File::from(OwnedFd::from(dir));
        self.room(set)?;
        progress
            .begin(Phase::MakingFiles, Some((set.directories() + set.files.len() + set.leaves.len()) as u64));
        let mut room = [0; LONGEST];
        let mut maker = Maker::new(&root);
        for directory in 0..set.directories() as u32 {
            let name = set.directory_path(directory, &mut room);
            maker.made(name, set.parent(directory)).map_err(|e| failed(&self.inside(name), &e))?;
            progress.advance(1);
        }
        for leaf in 0..set.leaves.len() as u32 {
            let name = set.leaf_path(leaf, &mut room);
            let home = set.leaf_home(leaf);
            let done = match set.leaves.is_present(leaf) {
                true => maker.made(name, home),
                false => maker.gone(name, home, true),
            };
            done.map_err(|e| failed(&self.inside(name), &e))?;
            progress.advance(1);
        }
        let whole = self.files(set, &root, progress, filling)?;
        if whole {
            fs::syncfs(&root).map_err(|e| failed(&self.path, &e.into()))?;
        }
        self.directory = Some(root);
        Ok(whole)
    }

    /// Empties its directory but for its mark, so that what a kill leaves is known as Loadstone's as before. Only what is
    /// given up goes whatever it is called: others may put something there all the time.
    fn clear(&self, dir: &Dir, progress: &Progress) -> Result<bool> {
        let mut go_on = || !progress.stop.load(Relaxed);
        let mark = CString::new(loadstone_files::MARK).unwrap_or_default();
        let cleared = match (Mark::read(dir), self.given_up) {
            (Ok(Some(_)), true) => clear_but(dir, &mark, &mut go_on),
            (_, true) => clear(dir, &mut go_on),
            (found, false) => {
                let known = found.map_err(Error::files)?.map(|found| Outline::in_mark(dir, &found));
                let known = known.transpose().map_err(Error::files)?;
                let mut may = |depth, entry: &Entry| {
                    let (name, directory) = (entry.name.to_bytes(), entry.directory);
                    depth == 0 && is_mark(name)
                        || known.as_ref().is_some_and(|outline| outline.has(depth, name, directory))
                };
                clear_where(dir, &mark, &mut may, &mut go_on)
            }
        };
        cleared.map_err(Error::files)
    }

    /// Marks its directory for the set that is made now, and for what is kept of an old one.
    fn marked(&self, dir: &Dir, set: &Set) -> Result<Mark> {
        let outline = Outline::of(set, self.any_names);
        let about = |outline: &Outline| serde_json::to_value(outline).unwrap_or_default();
        let marked = match Mark::read(dir) {
            Ok(Some(old)) if old.kind == KIND => {
                let before = Outline::in_mark(dir, &old).ok().filter(|_| self.reuse);
                old.renew(dir, about(&before.map_or(outline.clone(), |before| outline.and(&before))))
            }
            Ok(None) => Mark::put(dir, KIND, about(&outline)),
            // It was given up with all in it.
            Ok(Some(_)) | Err(_) => dir
                .unlink_below(loadstone_files::MARK.as_bytes(), false)
                .map_err(|e| loadstone_files::Error::io(&self.path, "has a mark that cannot be removed", e))
                .and_then(|()| Mark::put(dir, KIND, about(&outline))),
        };
        marked.map_err(Error::files)
    }

    /// Descriptors it holds.
    pub fn held(&self) -> impl Iterator<Item = RawFd> {
        let root = self.directory.as_ref().map(AsRawFd::as_raw_fd);
        [self.target.as_raw_fd()].into_iter().chain(root)
    }

    /// Says in the mark that nothing is made or changed any more.
    pub fn end(&self) {
        let (Some(mark), Some(root)) = (&self.mark, &self.directory) else { return };
        if let Ok(root) = root.try_clone() {
            // Without this the next run looks at names only.
            let _ = mark.end(&Dir::of(root.into(), &self.path));
        }
    }

    /// Removes what this run made of a set that never became whole, and its directory if nothing else is in it. A
    /// directory that was there before stays as it is, marked as one whose run has ended.
    pub fn undo(&self, set: &Set) {
        let Some(mark) = &self.mark else { return };
        let Ok(dir) = self.open() else { return };
        let ours = Mark::read(&dir).is_ok_and(|found| found.is_some_and(|found| found.id == mark.id));
        if ours && !self.unmade(&dir, mark, set) {
            let _ = mark.end(&dir);
        }
    }

    /// Removes what this run made; whether that was all, and its directory with it.
    fn unmade(&self, dir: &Dir, mark: &Mark, set: &Set) -> bool {
        let Some((new, files)) = &self.made else { return false };
        let mut room = [0; LONGEST];
        let mut next = files.next(0);
        while let Some(file) = next {
            let _ = dir.unlink_below(set.file_path(file as u32, &mut room).to_bytes(), false);
            next = files.next(file + 1);
        }
        for leaf in 0..set.leaves.len() as u32 {
            let _ = dir.unlink_below(set.leaf_path(leaf, &mut room).to_bytes(), true);
        }
        for directory in (0..set.directories() as u32).rev() {
            let _ = dir.unlink_below(set.directory_path(directory, &mut room).to_bytes(), true);
        }
        let gone = is_empty(dir).unwrap_or(false) && mark.remove(dir).is_ok();
        if gone {
            // Each goes only if it is empty.
            for name in new.iter().rev() {
                let _ = self.target.unlink_below(name, true);
            }
        }
        gone
    }

    /// Refuses a set that is larger than what is free, which includes what an old one to be reused holds.
    fn room(&self, set: &Set) -> Result<()> {
        if self.reuse { Ok(()) } else { fits(&self.path, &self.path, &[set]) }
    }

    /// Notes that this run made a file.
    fn note(&self, file: u32) {
        if let Some((_, files)) = &self.made {
            files.insert(file as usize);
        }
    }

    fn inside(&self, name: &CStr) -> PathBuf {
        self.path.join(name.to_string_lossy().as_ref())
    }

    /// Makes the files by several threads, as creating takes turns within a directory only.
    fn files(&self, set: &Set, root: &File, progress: &Progress, filling: Filling<'_>) -> Result<bool> {
        let next = AtomicUsize::new(0);
        let makers = std::thread::available_parallelism().map_or(1, |n| n.get() * 2).min(MAKERS);
        let work = || -> Result<bool> {
            let mut room = [0; LONGEST];
            let mut buffer: Option<Buffer> = None;
            let mut maker = Maker::new(root);
            loop {
                let begin = next.fetch_add(SHARE, Relaxed);
                let end = (begin + SHARE).min(set.files.len());
                for file in begin as u32..end.max(begin) as u32 {
                    if progress.stop.load(Relaxed) {
                        return Ok(false);
                    }
                    let name = set.file_path(file, &mut room);
                    let made = if set.files.is_present(file) {
                        self.file(
                            &mut maker,
                            (name, set.home(file)),
                            (file, set.size(file)),
                            &mut buffer,
                            progress,
                            filling,
                        )
                    } else if self.reuse {
                        maker.gone(name, set.home(file), false).map(|()| true)
                    } else {
                        Ok(true)
                    };
                    let made =
                        made.map_err(|e| Error::target_io(&self.inside(name), "cannot be made", &e))?;
                    if !made {
                        return Ok(false);
                    }
                }
                progress.advance(end.saturating_sub(begin) as u64);
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
        maker: &mut Maker<'_>,
        (name, home): (&CStr, u32),
        (number, size): (u32, u64),
        buffer: &mut Option<Buffer>,
        progress: &Progress,
        filling: Filling<'_>,
    ) -> io::Result<bool> {
        if self.reuse {
            match maker.size_of(name, home) {
                Some((found, 1)) if found == size => return Ok(true),
                Some((found, 1)) if found > size => {
                    let file = maker.open(name, libc::O_WRONLY)?;
                    file.set_len(size)?;
                    return Ok(true);
                }
                // A further name of it is somebody else's, as of a backup by hard links.
                Some(_) => maker.gone(name, home, false)?,
                None => {}
            }
        }
        if size == 0 {
            maker.empty(name, home)?;
            self.note(number);
            return Ok(true);
        }
        let file = maker.open(name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?;
        self.note(number);
        if buffer.is_none() {
            let mut new = Buffer::new(PIECE).ok_or(io::ErrorKind::OutOfMemory)?;
            if !self.zeros {
                filling.begin(new.bytes());
            }
            *buffer = Some(new);
        }
        let bytes = buffer.as_mut().expect("made above").bytes();
        let whole = if self.zeros {
            zeros(&file, size, bytes, progress)?
        } else {
            let stamp = |sum: u64, byte: &u8| sum.wrapping_mul(31).wrapping_add((*byte).into());
            let stamp = name.to_bytes().iter().fold(filling.seed, stamp);
            filling.of(number, stamp).write(&file, size, bytes, progress)?
        };
        if self.uncached {
            // Pages that are still dirty stay, so they are written back first.
            let _ = fs::fdatasync(&file);
            let _ = fs::fadvise(&file, 0, None, fs::Advice::DontNeed);
        }
        Ok(whole)
    }
}

/// Writes a file of what `bytes` holds, which is zeros; `false` when stopped on the way.
fn zeros(file: &File, size: u64, bytes: &[u8], progress: &Progress) -> io::Result<bool> {
    let mut at = 0;
    while at < size {
        if progress.stop.load(Relaxed) {
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
pub fn refuse_larger(places: &[(&SetPath, &Set)]) -> Result<()> {
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

/// What a file system has and what of it is free (statvfs(3)).
pub fn file_system(at: &Path) -> Option<StatVfs> {
    fs::statvfs(at).ok()
}

/// Whether sets fit in the file system of a directory `at`; `path` is that of the first.
fn fits(at: &Path, path: &Path, sets: &[&Set]) -> Result<()> {
    let Some(free) = file_system(at) else { return Ok(()) };
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

/// The root of a set, and the directories in it that one thread keeps open.
struct Maker<'a> {
    root: &'a File,
    parents: Parents,
}

impl<'a> Maker<'a> {
    fn new(root: &'a File) -> Maker<'a> {
        Maker { root, parents: Parents::new(PARENTS) }
    }

    fn open(&self, name: &CStr, flags: libc::c_int) -> io::Result<File> {
        open_at(self.root, name, flags, 0o644, Links::Refused).map(File::from)
    }

    /// A call in the directory `home` that a name lies in, on the last component.
    fn call<T>(
        &mut self,
        name: &CStr,
        home: u32,
        once: impl FnOnce(BorrowedFd<'_>, &CStr) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let (dir, last) = self.parents.place(self.root.as_fd(), name, home.into(), Links::Refused)?;
        Ok(once(dir.as_fd(), last)?)
    }

    /// Bytes of a regular file, and how many names it has; nothing where there is none.
    fn size_of(&mut self, name: &CStr, home: u32) -> Option<(u64, u64)> {
        let look = |dir: BorrowedFd<'_>, name: &CStr| fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = self.call(name, home, look).ok()?;
        FileType::from_raw_mode(found.st_mode).is_file().then_some((found.st_size as u64, found.st_nlink))
    }

    fn empty(&mut self, name: &CStr, home: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o644);
        self.call(name, home, |dir, name| fs::mknodat(dir, name, FileType::RegularFile, mode, 0))
    }

    fn made(&mut self, name: &CStr, home: u32) -> io::Result<()> {
        match self.call(name, home, |dir, name| fs::mkdirat(dir, name, Mode::from_raw_mode(0o755))) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }
    }

    fn gone(&mut self, name: &CStr, home: u32, directory: bool) -> io::Result<()> {
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match self.call(name, home, |dir, name| fs::unlinkat(dir, name, flags)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// Whether there is nothing in a directory but a mark.
fn is_empty(dir: &Dir) -> Result<bool> {
    let mut empty = true;
    let read = dir.each(|entry| {
        empty = is_mark(entry.name.to_bytes());
        Ok(empty)
    });
    read.map_err(|e| Error::target_io(dir.path(), "cannot be read", &e))?;
    Ok(empty)
}
