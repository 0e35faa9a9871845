//! An open directory, and names below it that never lead out.

use crate::denied::denied;
use crate::lookup::{Links, PLACE, Place, open_at, plain};
use crate::{Error, Result, shown};
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, RawDir, RenameFlags, StatxFlags};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

/// What a name leads to, as statx(2) tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Type and permissions.
    pub mode: u32,
    /// Bytes.
    pub size: u64,
    /// Its number in its file system.
    pub inode: u64,
    /// Device of the file system, major and minor number.
    pub device: (u32, u32),
    /// Of the mount it was reached by; 0 where the kernel does not tell.
    pub mount: u64,
    /// Names it has.
    pub links: u32,
    /// Who owns it.
    pub owner: u32,
    /// Its group.
    pub group: u32,
    /// When it was made, ns since 1970, where the file system tells. Nobody can set it.
    pub born: Option<i64>,
    /// When it, its name or its attributes changed last, ns since 1970. Nobody can set it.
    pub changed: i64,
}

impl Stat {
    /// Whether it is of a type, such as `libc::S_IFDIR`.
    pub fn is(&self, kind: libc::mode_t) -> bool {
        self.mode & libc::S_IFMT == kind
    }

    /// Whether this and another are the same file.
    pub fn same(&self, other: &Stat) -> bool {
        (self.inode, self.device) == (other.inode, other.device)
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: CString,
    /// Whether it is a directory; a link to one is not.
    pub directory: bool,
    /// Its number in its file system, as the directory has it: that of what is under a mount, not of what is mounted.
    pub inode: u64,
}

impl Dir {
    /// Opens a directory that a user named. Links in the path are followed.
    ///
    /// # Errors
    /// When it is none or cannot be opened.
    pub fn open(path: &Path) -> Result<Dir> {
        let shown = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let failed = |e| Error::io(shown, "cannot be opened as a directory", e);
        let name = CString::new(shown.as_os_str().as_bytes()).map_err(|e| failed(e.into()))?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let fd = plain(CWD, &name, flags, 0).map_err(failed)?;
        Ok(Dir { fd, path: shown.into() })
    }

    /// A directory that is open already; `path` is what errors say.
    pub fn of(fd: OwnedFd, path: &Path) -> Dir {
        Dir { fd, path: path.into() }
    }

    /// Its path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a name below it, for messages.
    pub fn path_of(&self, name: &[u8]) -> PathBuf {
        self.path.join(std::ffi::OsStr::from_bytes(name))
    }

    /// A second descriptor of the same directory.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn try_clone(&self) -> io::Result<Dir> {
        Ok(Dir { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// The mount that an open file was reached by; 0 where the kernel does not tell.
    ///
    /// # Errors
    /// When the system does not tell of the file.
    pub fn mount_of(file: &impl AsFd) -> io::Result<u64> {
        Ok(stat_of(file)?.mount)
    }

    /// What it is itself.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn stat(&self) -> io::Result<Stat> {
        stat_of(self)
    }

    /// Opens a name below it, which may have several components, without following any link.
    ///
    /// # Errors
    /// When the name leads out, passes a link, or the system refuses.
    pub fn open_below(&self, name: &[u8], flags: libc::c_int, mode: libc::mode_t) -> io::Result<File> {
        self.open_raw(name, flags, mode).map(File::from)
    }

    /// Makes a file below it, which must be new, without the permissions that [`crate::deny`] denies.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn create_below(&self, name: &[u8], mode: libc::mode_t) -> io::Result<File> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        self.open_below(name, flags, mode & !denied())
    }

    /// Opens a directory below it.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn dir_below(&self, name: &[u8]) -> io::Result<Dir> {
        let fd = self.open_raw(name, libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        Ok(Dir { fd, path: self.path_of(name) })
    }

    /// Makes a directory below it, without the permissions that [`crate::deny`] denies.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn mkdir_below(&self, name: &[u8], mode: libc::mode_t) -> io::Result<()> {
        let (place, last) = self.place(name)?;
        Ok(fs::mkdirat(place, last, Mode::from_raw_mode(mode & !denied()))?)
    }

    /// Makes a directory below it with all that lead to it, and opens it. Says which of them are new, outer ones first.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn make_below(&self, name: &[u8], mode: libc::mode_t) -> io::Result<(Dir, Vec<Vec<u8>>)> {
        check_name(name)?;
        let ends = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut new = Vec::new();
        for end in ends.chain([name.len()]) {
            match self.mkdir_below(&name[..end], mode) {
                Ok(()) => new.push(name[..end].to_vec()),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Ok((self.dir_below(name)?, new))
    }

    /// Removes a file, a link, or, with `directory`, an empty directory below it.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn unlink_below(&self, name: &[u8], directory: bool) -> io::Result<()> {
        let (place, last) = self.place(name)?;
        let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        Ok(fs::unlinkat(place, last, flags)?)
    }

    /// Makes a symbolic link below it. What it says may be anything: it is never followed here.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn symlink_below(&self, to: &[u8], name: &[u8]) -> io::Result<()> {
        let (place, last) = self.place(name)?;
        Ok(fs::symlinkat(CString::new(to)?, place, last)?)
    }

    /// Gives a file below it a second name.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn link_below(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        let ((source, old), (place, new)) = (self.place(from)?, self.place(to)?);
        Ok(fs::linkat(source, old, place, new, AtFlags::empty())?)
    }

    /// Renames below it; `flags` are those of renameat2(2).
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn rename_below(&self, from: &[u8], to: &[u8], flags: RenameFlags) -> io::Result<()> {
        let ((source, old), (place, new)) = (self.place(from)?, self.place(to)?);
        Ok(match flags.is_empty() {
            true => fs::renameat(source, old, place, new),
            false => fs::renameat_with(source, old, place, new, flags),
        }?)
    }

    /// What a name below it is; a link is told as a link.
    ///
    /// # Errors
    /// As [`Dir::open_below`].
    pub fn stat_below(&self, name: &[u8]) -> io::Result<Stat> {
        let (place, last) = self.place(name)?;
        stat(place, &last, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Goes through its entries; `false` from `each` ends that.
    ///
    /// # Errors
    /// When it cannot be read, or `each` fails.
    pub fn each(&self, mut each: impl FnMut(Entry) -> io::Result<bool>) -> io::Result<()> {
        // A description of its own: others of the same directory keep their position.
        let fd = plain(self, c".", libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC, 0)?;
        let mut room = Vec::with_capacity(32 << 10);
        let mut entries = RawDir::new(&fd, room.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let directory = match entry.file_type() {
                FileType::Unknown => {
                    stat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| stat.is(libc::S_IFDIR))
                }
                kind => kind == FileType::Directory,
            };
            if !each(Entry { name: name.into(), directory, inode: entry.ino() })? {
                break;
            }
        }
        Ok(())
    }

    /// Puts its entries on stable storage.
    ///
    /// # Errors
    /// When that fails.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fs::fsync(self)?)
    }

    /// The directory that a name lies in, and its last component.
    fn place(&self, name: &[u8]) -> io::Result<(Place<'_>, CString)> {
        check_name(name)?;
        let Some(cut) = name.iter().rposition(|byte| *byte == b'/') else {
            return Ok((Place::Root(self.as_fd()), CString::new(name)?));
        };
        let place = self.open_raw(&name[..cut], PLACE, 0)?;
        Ok((Place::Below(Arc::new(place)), CString::new(&name[cut + 1..])?))
    }

    fn open_raw(&self, name: &[u8], flags: libc::c_int, mode: libc::mode_t) -> io::Result<OwnedFd> {
        check_name(name)?;
        open_at(self, &CString::new(name)?, flags | libc::O_NOFOLLOW, mode, Links::Refused)
    }
}

impl AsRawFd for Dir {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Dir> for OwnedFd {
    fn from(dir: Dir) -> OwnedFd {
        dir.fd
    }
}

/// Refuses names that are no plain way down: absolute or empty ones, with a zero byte, or a component that is empty, `.`
/// or `..`.
///
/// # Errors
/// Says the name.
pub fn check_name(name: &[u8]) -> io::Result<()> {
    let why = if name.is_empty() {
        "is empty"
    } else if name[0] == b'/' {
        "is absolute"
    } else if name.contains(&0) {
        "has a zero byte"
    } else if parts(name).any(<[u8]>::is_empty) {
        "has an empty component"
    } else if parts(name).any(|part| matches!(part, b"." | b"..")) {
        "has a component . or .."
    } else {
        return Ok(());
    };
    let what = format!("the name \"{}\" {why}, so it is no plain way below a directory", shown(name));
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The components of a name.
pub fn parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| *byte == b'/')
}

/// What an open file is.
pub(crate) fn stat_of(file: &impl AsFd) -> io::Result<Stat> {
    stat(file, c"", AtFlags::EMPTY_PATH)
}

/// What a name at a descriptor is.
pub(crate) fn stat(at: impl AsFd, name: &CStr, flags: AtFlags) -> io::Result<Stat> {
    let want = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    let found = fs::statx(at, name, flags | AtFlags::NO_AUTOMOUNT, want)?;
    let has = |what: StatxFlags| found.stx_mask & what.bits() != 0;
    let ns =
        |at: fs::StatxTimestamp| at.tv_sec.saturating_mul(1_000_000_000).saturating_add(at.tv_nsec.into());
    Ok(Stat {
        mode: found.stx_mode.into(),
        size: found.stx_size,
        inode: found.stx_ino,
        device: (found.stx_dev_major, found.stx_dev_minor),
        mount: if has(StatxFlags::MNT_ID) { found.stx_mnt_id } else { 0 },
        links: found.stx_nlink,
        owner: found.stx_uid,
        group: found.stx_gid,
        born: has(StatxFlags::BTIME).then(|| ns(found.stx_btime)),
        changed: ns(found.stx_ctime),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_name_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::create_dir_all(inside.join("a/b")).unwrap();
        symlink(&outside, inside.join("a/link")).unwrap();
        symlink("../../out/secret", inside.join("a/file")).unwrap();
        let dir = Dir::open(&inside).unwrap();
        for name in [&b"../out/secret"[..], b"/etc/passwd", b"", b"a//b", b"a/../a", b"./a", b"a\0b", b"a/"] {
            let told = dir.open_below(name, libc::O_RDONLY, 0).unwrap_err();
            assert_eq!(told.kind(), io::ErrorKind::InvalidInput, "{told}");
            assert!(told.to_string().contains(&shown(name)), "{told}");
        }
        for name in [&b"a/link/secret"[..], b"a/file", b"a/link/new"] {
            let told = dir.open_below(name, libc::O_RDWR | libc::O_CREAT, 0o600).unwrap_err();
            assert_eq!(told.raw_os_error(), Some(libc::ELOOP), "{told}");
        }
        assert!(dir.mkdir_below(b"a/link/made", 0o700).is_err());
        assert!(dir.unlink_below(b"a/link/secret", false).is_err());
        assert!(dir.symlink_below(b"x", b"a/link/made").is_err());
        assert!(dir.link_below(b"a/link/secret", b"stolen").is_err());
        assert!(dir.rename_below(b"a/b", b"a/link/b", RenameFlags::empty()).is_err());
        assert!(dir.stat_below(b"a/link/secret").is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        dir.open_below(b"a/b/new", libc::O_RDWR | libc::O_CREAT, 0o600).unwrap();
        let (_, new) = dir.make_below(b"a/b/c/d", 0o700).unwrap();
        assert_eq!(new, [b"a/b/c".to_vec(), b"a/b/c/d".to_vec()]);
        assert!(dir.stat_below(b"a/file").unwrap().is(libc::S_IFLNK));
    }

    #[test]
    fn names_are_shown_without_control_characters() {
        assert_eq!(shown(b"a\x1b[31m\xff\xc3\xa9"), "a\\u{1b}[31m\\xff\u{e9}");
    }

    #[test]
    fn entries_of_large_directories_are_all_told() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..2000 {
            fs::write(folder.path().join(format!("{i:050}")), "").unwrap();
        }
        fs::create_dir(folder.path().join("d")).unwrap();
        symlink("d", folder.path().join("l")).unwrap();
        let (mut all, mut directories) = (0, 0);
        let dir = Dir::open(folder.path()).unwrap();
        let counted = dir.each(|entry| {
            all += 1;
            directories += usize::from(entry.directory);
            Ok(true)
        });
        counted.unwrap();
        assert_eq!((all, directories), (2002, 1));
    }
}
