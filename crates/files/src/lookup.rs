//! Looking names up below an open directory, so that none leads out of it.
//!
//! Names are looked up by openat2(2) with `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_MAGICLINKS`, and with `RESOLVE_BENEATH`
//! where they could lead up. Where the kernel has no such call, or a sandbox forbids it, they are looked up one component
//! at a time without following links.

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2, readlinkat_raw};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What opening a directory as a place for names takes.
pub(crate) const PLACE: libc::c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
/// Longest path that the kernel takes, with its end.
const LONGEST: usize = libc::PATH_MAX as usize;
/// Links followed for one name, as many as Linux does (path_resolution(7)).
const MOST_LINKS: u32 = 40;

/// Set once the kernel said that it has no openat2.
static MISSING: AtomicBool = AtomicBool::new(false);

/// What becomes of symbolic links in a name, its last component included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// None is followed.
    Refused,
    /// They are followed as long as they lead to something below the same directory.
    Below,
}

/// Opens a name below a directory. Nothing is allocated where the kernel has openat2(2).
///
/// # Errors
/// When the name leads out, passes a link that is not to be followed (ELOOP), or the system refuses.
pub fn open_at(
    at: impl AsFd,
    name: &CStr,
    flags: libc::c_int,
    mode: libc::mode_t,
    links: Links,
) -> io::Result<OwnedFd> {
    let at = at.as_fd();
    let flags = flags | libc::O_CLOEXEC;
    if !MISSING.load(Relaxed) {
        match beneath(at, name, flags, mode, links) {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => MISSING.store(true, Relaxed),
            // A sandbox says this of calls it does not know; so may the file, which is then asked again.
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => {}
            opened => return opened,
        }
    }
    stepwise(at, name, flags, mode, links)
}

/// openat(2): follows links, so the name is to be one that cannot be one.
pub(crate) fn plain(
    at: impl AsFd,
    name: &CStr,
    flags: libc::c_int,
    mode: libc::mode_t,
) -> io::Result<OwnedFd> {
    Ok(openat(at, name, of_libc(flags), Mode::from_raw_mode(mode))?)
}

/// Flags of open(2) as the C library has them.
fn of_libc(flags: libc::c_int) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned())
}

fn beneath(
    at: BorrowedFd<'_>,
    name: &CStr,
    flags: libc::c_int,
    mode: libc::mode_t,
    links: Links,
) -> io::Result<OwnedFd> {
    // The call refuses a mode where nothing can be made.
    let makes = flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
    let mode = Mode::from_raw_mode(if makes { mode } else { 0 });
    let mut resolve = ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refused {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    // What follows no link and has no `..` leads down only. To see that once more the kernel takes a lock that all CPUs
    // share: a twelfth of the time of an open, and more with every CPU.
    if links == Links::Below || leads_up(name) {
        resolve |= ResolveFlags::BENEATH;
    }
    for _ in 0..16 {
        match openat2(at, name, of_libc(flags), mode, resolve) {
            // Somebody renamed meanwhile, and the kernel could not tell whether the name led out.
            Err(Errno::AGAIN) => {}
            opened => return Ok(opened?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// Whether a name could lead out without a link: it is absolute, or has two dots in a row.
fn leads_up(name: &CStr) -> bool {
    let name = name.to_bytes();
    let dots = || name.windows(2).any(|two| two == b"..");
    name.first() == Some(&b'/') || name.contains(&b'.') && dots()
}

/// The same without openat2: each component is opened in the one before and is no link, and the way up is the way that
/// led down.
fn stepwise(
    at: BorrowedFd<'_>,
    name: &CStr,
    flags: libc::c_int,
    mode: libc::mode_t,
    links: Links,
) -> io::Result<OwnedFd> {
    let failed = |errno| Err(io::Error::from_raw_os_error(errno));
    let (mut way, mut left, mut followed): (Vec<OwnedFd>, Vec<Vec<u8>>, u32) = (Vec::new(), Vec::new(), 0);
    push(&mut left, name.to_bytes())?;
    while let Some(part) = left.pop() {
        let (is_last, is_up) = (left.is_empty(), part == b"..");
        if is_up && way.pop().is_none() {
            return failed(libc::EXDEV);
        }
        if !is_last && (is_up || part == b".") {
            continue;
        }
        let from = way.last().map_or(at, AsFd::as_fd);
        let part = if is_up { c".".to_owned() } else { CString::new(part)? };
        let how = if is_last { flags } else { PLACE };
        let opened = plain(from, &part, how | libc::O_NOFOLLOW, mode);
        let may_be_link = match &opened {
            Ok(_) => is_last && links == Links::Below && flags & libc::O_PATH != 0,
            Err(e) => matches!(e.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)),
        };
        let to = if may_be_link { link_at(from, &part) } else { None };
        match (opened, to) {
            (_, Some(_)) if links == Links::Refused || followed == MOST_LINKS => return failed(libc::ELOOP),
            (_, Some(to)) if to.starts_with(b"/") => return failed(libc::EXDEV),
            (_, Some(to)) => {
                followed += 1;
                push(&mut left, &to)?;
            }
            (Ok(opened), None) if is_last => return Ok(opened),
            (opened, None) => way.push(opened?),
        }
    }
    failed(libc::ENOENT)
}

/// Puts the components of a path above what is left of another, the first on top.
fn push(left: &mut Vec<Vec<u8>>, path: &[u8]) -> io::Result<()> {
    if path.is_empty() || path[0] == b'/' {
        return Err(io::Error::from_raw_os_error(if path.is_empty() { libc::ENOENT } else { libc::EXDEV }));
    }
    left.extend(path.split(|byte| *byte == b'/').rev().filter(|part| !part.is_empty()).map(<[u8]>::to_vec));
    Ok(())
}

/// What a symbolic link says; nothing where there is none.
fn link_at(at: BorrowedFd<'_>, name: &CStr) -> Option<Vec<u8>> {
    let mut to = vec![0; LONGEST];
    let length = readlinkat_raw(at, name, &mut to[..]).ok()?;
    to.truncate(length);
    Some(to)
}

/// A directory that a name lies in: the one it is looked up below, or one on the way, open.
#[derive(Debug, Clone)]
pub enum Place<'a> {
    /// The name has one component.
    Root(BorrowedFd<'a>),
    /// It has more.
    Below(Arc<OwnedFd>),
}

impl AsFd for Place<'_> {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Place::Root(fd) => *fd,
            Place::Below(fd) => fd.as_fd(),
        }
    }
}

/// The directory that a name below `root` lies in, opened, and the name's last component.
///
/// # Errors
/// As [`open_at`].
#[inline]
pub fn parent<'r, 'a>(
    root: BorrowedFd<'r>,
    name: &'a CStr,
    links: Links,
) -> io::Result<(Place<'r>, &'a CStr)> {
    let (Some(above), last) = split(name) else { return Ok((Place::Root(root), name)) };
    Ok((Place::Below(Arc::new(open_place(root, above, links)?)), last))
}

/// A name's last component, and what leads to that.
#[inline]
pub fn split(name: &CStr) -> (Option<&[u8]>, &CStr) {
    let bytes = name.to_bytes_with_nul();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        None => (None, name),
        Some(cut) => (Some(&bytes[..cut]), CStr::from_bytes_with_nul(&bytes[cut + 1..]).unwrap_or_default()),
    }
}

fn open_place(root: BorrowedFd<'_>, above: &[u8], links: Links) -> io::Result<OwnedFd> {
    let mut room = [0; LONGEST];
    let Some(path) = room.get_mut(..=above.len()) else {
        return Err(Errno::NAMETOOLONG.into());
    };
    path[..above.len()].copy_from_slice(above);
    open_at(root, CStr::from_bytes_with_nul(path).unwrap_or_default(), PLACE, 0, links)
}

/// A directory that is kept open.
#[derive(Debug)]
struct Kept {
    key: u64,
    fd: Arc<OwnedFd>,
}

/// Directories that the names of one thread lie in, kept open: a call on a name then looks up its last component, and
/// nothing that is put in the place of a directory on the way leads it elsewhere.
#[derive(Debug)]
pub struct Parents {
    /// By key; one takes the place of another.
    kept: Box<[Option<Kept>]>,
}

impl Parents {
    /// Keeps up to `most` open, at least one.
    pub fn new(most: usize) -> Parents {
        Parents { kept: (0..most.max(1)).map(|_| None).collect() }
    }

    /// The directory that a name below `root` lies in, and the name's last component. `key` is the directory's number:
    /// directories that are kept are not moved meanwhile.
    ///
    /// # Errors
    /// As [`open_at`].
    #[inline]
    pub fn place<'r, 'a>(
        &mut self,
        root: BorrowedFd<'r>,
        name: &'a CStr,
        key: u64,
        links: Links,
    ) -> io::Result<(Place<'r>, &'a CStr)> {
        let (Some(above), last) = split(name) else { return Ok((Place::Root(root), name)) };
        let slot = (key % self.kept.len() as u64) as usize;
        if let Some(kept) = self.kept[slot].as_ref().filter(|kept| kept.key == key) {
            return Ok((Place::Below(Arc::clone(&kept.fd)), last));
        }
        let fd = Arc::new(open_place(root, above, links)?);
        self.kept[slot] = Some(Kept { key, fd: Arc::clone(&fd) });
        Ok((Place::Below(fd), last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dir;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    type Way = fn(BorrowedFd<'_>, &CStr, libc::c_int, libc::mode_t, Links) -> io::Result<OwnedFd>;
    const WAYS: [Way; 2] = [beneath, stepwise];

    /// A directory `in`, of which `in/a/out` leads out, and one beside it.
    fn folders() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(inside.join("a/b/file"), "here").unwrap();
        symlink(&outside, inside.join("a/out")).unwrap();
        symlink("../../out", inside.join("a/up")).unwrap();
        symlink("../a/b", inside.join("a/b/round")).unwrap();
        symlink("b/file", inside.join("a/file")).unwrap();
        symlink("b/new", inside.join("a/new")).unwrap();
        symlink("self", inside.join("self")).unwrap();
        let dir = Dir::open(&inside).unwrap();
        (folder, dir)
    }

    fn count(path: &Path) -> usize {
        fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn without_openat2_names_are_looked_up_alike() {
        let (folder, dir) = folders();
        let at = |name| folder.path().join("in").join(name);
        let create = libc::O_RDWR | libc::O_CREAT;
        let path = libc::O_PATH;
        #[rustfmt::skip]
        let cases = [
            (c"a/b/file", libc::O_RDONLY, Links::Refused, Ok("a/b/file")),
            (c"a/b/file", path, Links::Below, Ok("a/b/file")),
            (c".", libc::O_RDONLY, Links::Refused, Ok(".")),
            (c"a/file", libc::O_RDONLY, Links::Refused, Err(libc::ELOOP)),
            (c"a/file", libc::O_RDONLY, Links::Below, Ok("a/b/file")),
            (c"a/file", path, Links::Below, Ok("a/b/file")),
            (c"a/file", create | libc::O_EXCL, Links::Below, Err(libc::EEXIST)),
            (c"a/b/round/file", libc::O_RDONLY, Links::Refused, Err(libc::ELOOP)),
            (c"a/b/round", PLACE, Links::Refused, Err(libc::ELOOP)),
            (c"a/b/file", PLACE, Links::Refused, Err(libc::ENOTDIR)),
            (c"a/out/secret", libc::O_RDONLY, Links::Refused, Err(libc::ELOOP)),
            (c"a/out/secret", create, Links::Below, Err(libc::EXDEV)),
            (c"a/out/made", create, Links::Below, Err(libc::EXDEV)),
            (c"a/up/secret", create, Links::Below, Err(libc::EXDEV)),
            (c"a/up", PLACE, Links::Below, Err(libc::EXDEV)),
            (c"../out/secret", libc::O_RDONLY, Links::Refused, Err(libc::EXDEV)),
            (c"a/../../out/secret", libc::O_RDONLY, Links::Refused, Err(libc::EXDEV)),
            (c"a/b/..", PLACE, Links::Refused, Ok("a")),
            (c"/etc/passwd", libc::O_RDONLY, Links::Refused, Err(libc::EXDEV)),
            (c"/etc/passwd", libc::O_RDONLY, Links::Below, Err(libc::EXDEV)),
            (c"self", libc::O_RDONLY, Links::Below, Err(libc::ELOOP)),
            (c"a/none/x", libc::O_RDONLY, Links::Below, Err(libc::ENOENT)),
        ];
        for (name, flags, links, wanted) in cases {
            for (number, way) in WAYS.into_iter().enumerate() {
                let opened = way(dir.as_fd(), name, flags | libc::O_CLOEXEC, 0o600, links);
                let inode = |fd| fs::File::from(fd).metadata().unwrap().ino();
                let found = opened.map(inode).map_err(|e| e.raw_os_error().unwrap());
                let wanted = wanted.map(|name: &str| fs::metadata(at(name)).unwrap().ino());
                assert_eq!(found, wanted, "{name:?} {flags:o} {links:?} by way {number}");
            }
        }
        for way in WAYS {
            way(dir.as_fd(), c"a/new", create | libc::O_CLOEXEC, 0o600, Links::Below).unwrap();
            fs::remove_file(at("a/b/new")).unwrap();
        }
        assert_eq!(count(&folder.path().join("out")), 1);
    }

    #[test]
    fn directories_are_kept_whatever_takes_their_place() {
        let (folder, dir) = folders();
        let at = |name| folder.path().join("in").join(name);
        let mut parents = Parents::new(1);
        let mut inode = |name: &CStr, key| -> Result<u64, i32> {
            let place = parents.place(dir.as_fd(), name, key, Links::Refused);
            let (place, last) = place.map_err(|e| e.raw_os_error().unwrap())?;
            let found = crate::dir::stat(place, last, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
            found.map(|found| found.inode).map_err(|e| e.raw_os_error().unwrap())
        };
        let file = fs::metadata(at("a/b/file")).unwrap().ino();
        assert_eq!(inode(c"a/b/file", 7), Ok(file));
        // Somebody puts a link in the way: the directory is used on, and not found anew.
        fs::rename(at("a/b"), at("a/c")).unwrap();
        symlink(folder.path().join("out"), at("a/b")).unwrap();
        assert_eq!(inode(c"a/b/file", 7), Ok(file));
        assert_eq!(inode(c"a/c/file", 8), Ok(file));
        assert_eq!(inode(c"a/b/file", 7), Err(libc::ELOOP), "another one took its place");
        let own = fs::symlink_metadata(at("self")).unwrap().ino();
        assert_eq!(inode(c"self", 9), Ok(own));
    }
}
