//! Removing what is in a directory, relative to descriptors, without following a link or crossing a mount.
//!
//! However deep a tree is, two descriptors are open: the way up is `..`, and what it leads to must be the directory that
//! the way down came from.

use crate::mounts::mounted;
use crate::{Dir, Entry, Error, Result, Stat, refuse_mounts};
use std::ffi::{CStr, CString};
use std::io;

/// Times a directory is read again because something was left in it.
const AGAIN: u32 = 3;

/// A directory on the way down.
struct Level {
    /// Its name in the one above.
    name: CString,
    stat: Stat,
    /// Directories in it that are to be removed.
    below: Vec<CString>,
    tries: u32,
}

/// Removes all that is in a directory; `false` when `go_on` said to stop. It is asked before each removal.
///
/// # Errors
/// When something is mounted inside, found before the first removal, or something cannot be removed.
pub fn clear(dir: &Dir, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
    clear_but(dir, c"", go_on)
}

/// The same, and leaves the entry of a name.
///
/// # Errors
/// As [`clear`].
pub fn clear_but(dir: &Dir, keep: &CStr, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
    clear_where(dir, keep, &mut |_, _| true, go_on)
}

/// The same where only some entries are to be removed: `may` is told how many directories below `dir` an entry lies, and
/// what it is. Another one ends it.
///
/// # Errors
/// As [`clear`], or with the entry that is not to be removed.
pub fn clear_where(
    dir: &Dir,
    keep: &CStr,
    may: &mut dyn FnMut(usize, &Entry) -> bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    let what =
        "was not made by Loadstone and has just appeared; it stays, and so does what is left beside it";
    let mut see = |_: &Dir, depth, entry: &Entry| if may(depth, entry) { Ok(()) } else { Err(what.into()) };
    Walk { dir, keep, remove: true, see: &mut see, go_on }.all()
}

/// Looks at all that is in a directory and below, and removes nothing: `see` is given each entry and the directory it lies
/// in, and what it says is wrong with one ends it.
///
/// # Errors
/// When something is mounted inside or cannot be read, and with what `see` says.
pub fn look(dir: &Dir, see: &mut dyn FnMut(&Dir, &Entry) -> std::result::Result<(), String>) -> Result<()> {
    let mut see = |at: &Dir, _: usize, entry: &Entry| see(at, entry);
    Walk { dir, keep: c"", remove: false, see: &mut see, go_on: &mut || true }.all().map(|_| ())
}

/// A way through a directory and all below it.
struct Walk<'a> {
    dir: &'a Dir,
    /// Name of the entry of `dir` that stays.
    keep: &'a CStr,
    remove: bool,
    /// Says what is wrong with an entry, told the directory it lies in and how far that is below `dir`.
    see: &'a mut dyn FnMut(&Dir, usize, &Entry) -> std::result::Result<(), String>,
    go_on: &'a mut dyn FnMut() -> bool,
}

impl Walk<'_> {
    /// Goes through all of it; `false` when it was stopped.
    fn all(mut self) -> Result<bool> {
        let dir = self.dir;
        refuse_mounts(dir)?;
        let failed = |name: &[u8], e| Error::io(&dir.path_of(name), "cannot be removed", e);
        let stat = dir.stat().map_err(|e| failed(b"", e))?;
        let mut at = dir.dir_below_self().map_err(|e| failed(b"", e))?;
        let mut way = vec![Level { name: c"".into(), stat, below: Vec::new(), tries: 0 }];
        if !self.files(&at, &mut way)? {
            return Ok(false);
        }
        loop {
            let level = way.last_mut().expect("the first stays until the end");
            if let Some(name) = level.below.pop() {
                let inner = match at.dir_below(name.to_bytes()) {
                    // Somebody took it away.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(failed(&name_of(&way, &name), e)),
                    Ok(inner) => inner,
                };
                let stat = inner.stat().map_err(|e| failed(&name_of(&way, &name), e))?;
                if stat.mount != way[0].stat.mount || stat.device != way[0].stat.device {
                    return Err(mounted(dir, &name_of(&way, &name)));
                }
                at = inner;
                way.push(Level { name, stat, below: Vec::new(), tries: 0 });
                if !self.files(&at, &mut way)? {
                    return Ok(false);
                }
                continue;
            }
            if way.len() == 1 {
                return Ok(true);
            }
            let level = way.pop().expect("there are two");
            let path = |way: &[Level]| name_of(way, &level.name);
            let above = up(&at).map_err(|e| failed(&path(&way), e))?;
            let wanted = way.last().expect("there is one").stat;
            if !above.stat().is_ok_and(|stat| stat.same(&wanted) && stat.mount == wanted.mount) {
                let what = "was moved while it was being looked at or removed; stopped";
                return Err(Error::new(&dir.path_of(&path(&way)), what));
            }
            at = above;
            if !self.remove {
                continue;
            }
            if !(self.go_on)() {
                return Ok(false);
            }
            match at.unlink_below(level.name.to_bytes(), true) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                // Entries may be passed over when others of their directory are removed meanwhile.
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && level.tries < AGAIN => {
                    at = at.dir_below(level.name.to_bytes()).map_err(|e| failed(&path(&way), e))?;
                    if !at.stat().is_ok_and(|stat| stat.same(&level.stat)) {
                        let what = "was replaced while it was being removed";
                        return Err(Error::new(&dir.path_of(&path(&way)), what));
                    }
                    way.push(Level { tries: level.tries + 1, ..level });
                    if !self.files(&at, &mut way)? {
                        return Ok(false);
                    }
                }
                Err(e) => return Err(failed(&path(&way), e)),
            }
        }
    }

    /// Sees to all of a directory that is no directory, and notes those; `false` when it was stopped.
    fn files(&mut self, at: &Dir, way: &mut [Level]) -> Result<bool> {
        let (mut below, mut stopped, mut wrong) = (Vec::new(), false, None);
        let top = self.dir;
        let read = at.each(|entry| {
            if way.len() == 1 && *entry.name == *self.keep {
                return Ok(true);
            }
            if let Err(what) = (self.see)(at, way.len() - 1, &entry) {
                wrong = Some(Error::new(&top.path_of(&name_of(way, &entry.name)), what));
                return Ok(false);
            }
            let Entry { name, directory, .. } = entry;
            if directory {
                below.push(name);
                return Ok(true);
            }
            if !self.remove {
                return Ok(true);
            }
            if !(self.go_on)() {
                stopped = true;
                return Ok(false);
            }
            match at.unlink_below(name.to_bytes(), false) {
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
                    wrong = Some(mounted(top, &name_of(way, &name)))
                }
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    wrong = Some(Error::io(&top.path_of(&name_of(way, &name)), "cannot be removed", e));
                }
                _ => {}
            }
            Ok(wrong.is_none())
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        let here = |way: &[Level]| {
            way.split_last().map(|(last, above)| name_of(above, &last.name)).unwrap_or_default()
        };
        read.map_err(|e| Error::io(&top.path_of(&here(way)), "cannot be read", e))?;
        way.last_mut().expect("there is one").below = below;
        Ok(!stopped)
    }
}

/// Removes a directory below another with all that is in it; `false` when `go_on` said to stop.
///
/// # Errors
/// As [`clear`].
pub fn remove_tree(parent: &Dir, name: &[u8], go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
    let failed = |e| Error::io(&parent.path_of(name), "cannot be removed", e);
    let dir = parent.dir_below(name).map_err(failed)?;
    let (mine, above) = (dir.stat().map_err(failed)?, parent.stat().map_err(failed)?);
    if mine.mount != above.mount {
        return Err(mounted(parent, name));
    }
    remove_opened(parent, name, &dir, go_on)
}

/// The same for a directory that is open, and whose name may lead elsewhere by now: then what it leads to stays.
pub(crate) fn remove_opened(
    parent: &Dir,
    name: &[u8],
    dir: &Dir,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    let failed = |e| Error::io(&parent.path_of(name), "cannot be removed", e);
    let mine = dir.stat().map_err(failed)?;
    // The mark goes last, so that what a kill leaves is still known as ours.
    if !clear_but(dir, &crate::mark::name(), go_on)? || !clear(dir, go_on)? {
        return Ok(false);
    }
    if !parent.stat_below(name).is_ok_and(|stat| stat.same(&mine)) {
        return Err(Error::new(&parent.path_of(name), "was replaced while it was being removed"));
    }
    parent.unlink_below(name, true).map_err(failed)?;
    Ok(true)
}

/// The name of an entry below the directory that is cleared.
fn name_of(way: &[Level], last: &CStr) -> Vec<u8> {
    let mut path = Vec::new();
    for level in way.iter().skip(1) {
        path.extend_from_slice(level.name.to_bytes());
        path.push(b'/');
    }
    path.extend_from_slice(last.to_bytes());
    path
}

fn up(at: &Dir) -> io::Result<Dir> {
    again(at, c"..")
}

fn again(at: &Dir, name: &CStr) -> io::Result<Dir> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    Ok(Dir::of(crate::lookup::plain(at, name, flags, 0)?, at.path()))
}

impl Dir {
    fn dir_below_self(&self) -> io::Result<Dir> {
        again(self, c".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::Command;

    /// A bind mount that is taken away again.
    struct Bound(std::path::PathBuf);

    impl Bound {
        fn new(what: &Path, at: &Path) -> Option<Bound> {
            let done = Command::new("mount").arg("--bind").args([what, at]).output().ok();
            let bound = done.is_some_and(|done| done.status.success()).then(|| Bound(at.into()));
            if bound.is_none() {
                // Past the harness, which keeps what passing tests print.
                let _ = writeln!(std::io::stderr(), "skipped: bind mounts inside a tree: they need root");
            }
            bound
        }
    }

    impl Drop for Bound {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
        }
    }

    fn all(path: &Path) -> Result<bool> {
        clear(&Dir::open(path).unwrap(), &mut || true)
    }

    #[test]
    fn all_goes_and_what_links_lead_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, other) = (folder.path().join("d"), folder.path().join("other"));
        fs::create_dir_all(dir.join("a/b/c")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "k").unwrap();
        symlink(&other, dir.join("a/link")).unwrap();
        for i in 0..3000 {
            fs::write(dir.join(format!("a/b/{i}")), "").unwrap();
        }
        assert!(all(&dir).unwrap());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        assert!(other.join("kept").exists());
        fs::write(dir.join("x"), "").unwrap();
        let parent = Dir::open(folder.path()).unwrap();
        assert!(remove_tree(&parent, b"d", &mut || true).unwrap());
        assert!(!dir.exists());
        assert!(remove_tree(&parent, b"../d", &mut || true).is_err());
    }

    #[test]
    fn depth_takes_neither_stack_nor_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let mut at = Dir::open(folder.path()).unwrap();
        for _ in 0..2_000 {
            at.mkdir_below(b"d", 0o700).unwrap();
            at = Dir::of(at.open_below(b"d", libc::O_DIRECTORY, 0).unwrap().into(), Path::new("d"));
        }
        assert!(all(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_to_be_removed_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("d");
        fs::create_dir_all(dir.join("1/2")).unwrap();
        fs::write(dir.join("1/3"), "").unwrap();
        symlink("elsewhere", dir.join("1/2/4")).unwrap();
        let opened = Dir::open(&dir).unwrap();
        let mut may = |depth: usize, entry: &Entry| entry.directory || depth == 1;
        let told = clear_where(&opened, c"", &mut may, &mut || true).unwrap_err().to_string();
        assert!(told.contains("1/2/4") && told.contains("not made by Loadstone"), "{told}");
        assert!(dir.join("1/2/4").is_symlink() && !dir.join("1/3").exists());
        fs::remove_file(dir.join("1/2/4")).unwrap();
        assert!(clear_where(&opened, c"", &mut may, &mut || true).unwrap());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }

    #[test]
    fn stopping_stops() {
        let folder = tempfile::tempdir().unwrap();
        (0..10).for_each(|i| fs::write(folder.path().join(i.to_string()), "").unwrap());
        let mut left = 4;
        let stop = &mut || {
            left -= 1;
            left >= 0
        };
        assert!(!clear(&Dir::open(folder.path()).unwrap(), stop).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
    }

    #[test]
    fn a_bind_mount_inside_is_named_before_anything_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, other) = (folder.path().join("d"), folder.path().join("other"));
        fs::create_dir_all(dir.join("a/mounted here")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "k").unwrap();
        fs::write(dir.join("a/mine"), "m").unwrap();
        fs::write(dir.join("file"), "f").unwrap();
        for (what, at) in [(&other.join("kept"), "file"), (&other, "a/mounted here")] {
            let Some(_bound) = Bound::new(what, &dir.join(at)) else { return };
            let told = all(&dir).unwrap_err().to_string();
            assert!(told.contains(at) && told.contains("mounted"), "{told}");
            assert!(other.join("kept").exists() && dir.join("a/mine").exists() && dir.join("file").exists());
        }
        // Nor is it entered by its own name.
        let Some(_bound) = Bound::new(&other, &dir.join("a/mounted here")) else { return };
        assert!(remove_tree(&Dir::open(&dir.join("a")).unwrap(), b"mounted here", &mut || true).is_err());
        assert!(other.join("kept").exists());
    }
}
