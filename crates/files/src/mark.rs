//! A file inside a directory that says that Loadstone made it.
//!
//! The mark names the directory it was made for: its file system, its inode and, where the file system tells, the time it
//! was made, which nobody can set. So a copy of a marked directory, or another one at the same path, is not ours.
//!
//! Device numbers change when loop devices are attached in another order, and btrfs makes them up at each mount. So the
//! file system is named by its identity of statfs(2), which follows from its UUID, and tells snapshots apart. Only on XFS
//! that is the device's number again, and the UUID takes its place.

use crate::dir::stat_of;
use crate::{Dir, Error, Result, Stat, random_hex};
use rustix::fs::{RenameFlags, fstatfs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::CString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Its name.
pub const MARK: &str = ".loadstone";
/// Of its content.
const VERSION: u32 = 1;
/// Bytes it has at most.
const MOST: u64 = 1 << 20;
/// What the last line of a mark begins with when all was done; the time follows.
const ENDED: &str = "ended ";
/// FS_IOC_GETFSUUID of linux/fs.h: its length and 16 bytes.
const GET_UUID: libc::c_ulong = 0x8011_1500;

/// FS_IOC_GETVERSION of linux/fs.h.
const GET_VERSION: libc::c_ulong = 0x8008_7601;
/// How long the clock of a file system is waited for: some count whole seconds, others ticks of the kernel.
const TICK: Duration = Duration::from_millis(1500);

/// What the mark in a directory says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// For whoever looks.
    note: String,
    version: u32,
    /// What the directory is.
    pub kind: String,
    /// Random, so that no two directories have the same mark.
    pub id: String,
    file_system: String,
    inode: u64,
    #[serde(default)]
    born: Option<i64>,
    /// More about it, for whoever made it.
    #[serde(default)]
    pub about: Value,
    /// When all was done that Loadstone does in it, by the clock of the file system, ns since 1970; nothing before.
    #[serde(skip)]
    pub ended: Option<i64>,
}

/// What tells a file or directory from others, also after its file system was mounted anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    file_system: String,
    inode: u64,
    /// When it was made, or the generation of its number, where the file system tells one of them.
    born: Option<i64>,
}

impl Identity {
    /// Of what is open.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn of(file: &impl AsFd) -> io::Result<Identity> {
        let stat = stat_of(file)?;
        let born = stat.born.or_else(|| generation(file));
        Ok(Identity { file_system: file_system(file, &stat)?, inode: stat.inode, born })
    }
}

/// Whether a name is that of a mark, or of one that was being put in the place of another.
pub fn is_mark(name: &[u8]) -> bool {
    name.strip_prefix(MARK.as_bytes()).is_some_and(|rest| {
        rest.is_empty() || rest.len() == 33 && rest[0] == b'.' && rest[1..].iter().all(u8::is_ascii_hexdigit)
    })
}

pub(crate) fn name() -> CString {
    CString::new(MARK).unwrap_or_default()
}

impl Mark {
    /// Marks a directory, which has no mark yet.
    ///
    /// # Errors
    /// When there is one, or it cannot be written.
    pub fn put(dir: &Dir, kind: &str, about: Value) -> Result<Mark> {
        let mark = Mark::new(dir, kind, random_hex(), about)?;
        Mark::remove_begun(dir);
        mark.write(dir, MARK.as_bytes())?;
        Ok(mark)
    }

    /// Marks a new directory with an id that was drawn before.
    pub(crate) fn put_as(dir: &Dir, kind: &str, id: &str) -> Result<Mark> {
        let mark = Mark::new(dir, kind, id.into(), Value::Null)?;
        mark.write(dir, MARK.as_bytes())?;
        Ok(mark)
    }

    /// Removes a mark that was being made when its maker was killed.
    pub(crate) fn remove_begun(dir: &Dir) {
        if dir.stat_below(MARK.as_bytes()).is_ok_and(|stat| stat.is(libc::S_IFREG) && stat.size == 0) {
            let _ = dir.unlink_below(MARK.as_bytes(), false);
        }
    }

    /// Puts another mark in the place of this one, in one step, for what is made in the directory from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn renew(&self, dir: &Dir, about: Value) -> Result<Mark> {
        let mark = Mark::new(dir, &self.kind, random_hex(), about)?;
        let aside = format!("{MARK}.{}", mark.id);
        mark.write(dir, aside.as_bytes())?;
        let renamed = dir.rename_below(aside.as_bytes(), MARK.as_bytes(), RenameFlags::empty());
        renamed.map_err(|e| Error::io(&dir.path_of(MARK.as_bytes()), "cannot be made anew", e))?;
        Ok(mark)
    }

    /// Says in the mark that all that Loadstone does in the directory is done: what changes later, somebody else changed.
    ///
    /// # Errors
    /// When another mark is there, or it cannot be written.
    pub fn end(&self, dir: &Dir) -> Result<()> {
        let path = dir.path_of(MARK.as_bytes());
        if Mark::read(dir)?.is_none_or(|found| found.id != self.id) {
            return Err(Error::new(&path, "is not the mark that was put there"));
        }
        let opened = dir.open_below(MARK.as_bytes(), libc::O_WRONLY | libc::O_APPEND | libc::O_NONBLOCK, 0);
        let ended = opened.and_then(|file| {
            // A change that changes nothing: its time is now, by the clock of the file system.
            let now = || {
                file.set_permissions(file.metadata()?.permissions())?;
                Ok::<_, io::Error>(stat_of(&file)?.changed)
            };
            let (ended, began) = (now()?, Instant::now());
            // What somebody else changes next must have a later time.
            while now()? <= ended && began.elapsed() < TICK {
                std::thread::sleep(Duration::from_millis(1));
            }
            (&file).write_all(format!("{ENDED}{ended}\n").as_bytes())
        });
        ended.map_err(|e| Error::io(&path, "cannot be written", e))
    }

    fn new(dir: &Dir, kind: &str, id: String, about: Value) -> Result<Mark> {
        let failed = |e| Error::io(&dir.path_of(MARK.as_bytes()), "cannot be made", e);
        let Identity { file_system, inode, born } = Identity::of(dir).map_err(failed)?;
        Ok(Mark {
            note: "Loadstone made this directory, and may remove what it made in it.".into(),
            version: VERSION,
            kind: kind.into(),
            id,
            file_system,
            inode,
            born,
            about,
            ended: None,
        })
    }

    fn write(&self, dir: &Dir, name: &[u8]) -> Result<()> {
        let failed = |e| Error::io(&dir.path_of(name), "cannot be made", e);
        let mut text = serde_json::to_vec(self).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        if text.len() as u64 > MOST {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let mut file = dir.open_below(name, flags, 0o644).map_err(failed)?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        written.map_err(|e| {
            let _ = dir.unlink_below(name, false);
            failed(e)
        })
    }

    /// The mark of a directory; nothing where it has none.
    ///
    /// # Errors
    /// When there is something of that name that does not say that Loadstone made this very directory.
    pub fn read(dir: &Dir) -> Result<Option<Mark>> {
        let path = dir.path_of(MARK.as_bytes());
        let failed = |e| Error::io(&path, "cannot be read", e);
        let wrong = |what: &str| Error::new(&path, format!("is no mark of Loadstone: {what}"));
        let found = match dir.stat_below(MARK.as_bytes()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(failed)?,
        };
        if !found.is(libc::S_IFREG) {
            return Err(wrong("it is no regular file"));
        }
        let flags = libc::O_RDONLY | libc::O_NONBLOCK;
        let file = dir.open_below(MARK.as_bytes(), flags, 0).map_err(failed)?;
        let (stat, of) = (stat_of(&file).map_err(failed)?, dir.stat().map_err(failed)?);
        if !stat.is(libc::S_IFREG) || !stat.same(&found) || stat.links != 1 {
            return Err(wrong("it is no regular file of one name"));
        }
        // In a directory that all may write to, others can make any file.
        if stat.owner != of.owner {
            return Err(wrong("it belongs to another user than its directory"));
        }
        let mut text = Vec::new();
        file.take(MOST + 1).read_to_end(&mut text).map_err(failed)?;
        if text.is_empty() {
            return Ok(None);
        }
        if text.len() as u64 > MOST {
            return Err(wrong("it is too large"));
        }
        // The time stands in the mark: whoever changes the mark's own, by chmod for one, changes nothing of it.
        let lines: Vec<&[u8]> = text.trim_ascii_end().split(|byte| *byte == b'\n').collect();
        let last = lines.last().and_then(|line| std::str::from_utf8(line).ok()?.strip_prefix(ENDED));
        let json = if last.is_some() { lines[..lines.len() - 1].concat() } else { lines.concat() };
        let mut mark: Mark = serde_json::from_slice(&json).map_err(|e| wrong(&e.to_string()))?;
        mark.ended = last.map(|at| at.parse().map_err(|_| wrong("it ended at no time"))).transpose()?;
        if mark.version != VERSION {
            return Err(wrong(&format!("it has version {}, this Loadstone knows {VERSION}", mark.version)));
        }
        let said = Identity { file_system: mark.file_system.clone(), inode: mark.inode, born: mark.born };
        if said != Identity::of(dir).map_err(failed)? {
            return Err(wrong("it is of another directory, from which this one was copied"));
        }
        Ok(Some(mark))
    }

    /// Removes this mark from a directory.
    ///
    /// # Errors
    /// When another is there, or it cannot be removed.
    pub fn remove(&self, dir: &Dir) -> Result<()> {
        let path = dir.path_of(MARK.as_bytes());
        if Mark::read(dir)?.is_none_or(|found| found.id != self.id) {
            return Err(Error::new(&path, "is not the mark that was put there"));
        }
        dir.unlink_below(MARK.as_bytes(), false).map_err(|e| Error::io(&path, "cannot be removed", e))
    }
}

/// The generation of an inode's number, of which each use has another one; ext2 and ext3 have it in place of a time of birth.
fn generation(file: &impl AsFd) -> Option<i64> {
    let mut told: libc::c_long = 0;
    // SAFETY: the call writes at most a long.
    let done = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), GET_VERSION as _, &raw mut told) };
    (done == 0).then_some(told)
}

/// What tells the file system of a file from others, also after it is mounted anew.
fn file_system(file: &impl AsFd, stat: &Stat) -> io::Result<String> {
    let told = fstatfs(file)?;
    if told.f_type == libc::XFS_SUPER_MAGIC {
        let mut uuid = [0u8; 17];
        // SAFETY: the call writes at most the 17 bytes that its number says.
        if unsafe { libc::ioctl(file.as_fd().as_raw_fd(), GET_UUID as _, uuid.as_mut_ptr()) } == 0 {
            return Ok(uuid[1..].iter().fold("uuid:".into(), |text, byte| format!("{text}{byte:02x}")));
        }
    }
    // SAFETY: two integers of C, whose names the library hides.
    let id: [u32; 2] = unsafe { std::mem::transmute(told.f_fsid) };
    Ok(match id {
        [0, 0] => format!("device:{}:{}", stat.device.0, stat.device.1),
        [a, b] => format!("fsid:{a:08x}{b:08x}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    #[test]
    fn a_mark_is_of_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("d"), folder.path().join("copy"));
        fs::create_dir(&path).unwrap();
        let dir = Dir::open(&path).unwrap();
        assert_eq!(Mark::read(&dir).unwrap(), None);
        let mark = Mark::put(&dir, "set", serde_json::json!({"files": 3})).unwrap();
        assert_eq!(Mark::read(&dir).unwrap().unwrap(), mark);
        assert!(Mark::put(&dir, "set", Value::Null).is_err());
        let mark = mark.renew(&dir, serde_json::json!({"files": 4})).unwrap();
        assert_eq!(Mark::read(&dir).unwrap().unwrap().about["files"], 4);
        mark.end(&dir).unwrap();
        let ended = Mark::read(&dir).unwrap().unwrap().ended;
        assert!(ended.is_some_and(|at| at >= mark.born.unwrap_or(0)));
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::set_permissions(path.join(MARK), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(Mark::read(&dir).unwrap().unwrap().ended, ended);
        assert_eq!(mark.renew(&dir, Value::Null).unwrap().ended, None);
        assert_eq!(Mark::read(&dir).unwrap().unwrap().ended, None);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        assert!(is_mark(b".loadstone") && is_mark(format!(".loadstone.{}", mark.id).as_bytes()));
        assert!(!is_mark(b".loadstone.x") && !is_mark(b".loadstones"));
        assert!(Command::new("cp").arg("-a").args([&path, &copy]).status().unwrap().success());
        let told = Mark::read(&Dir::open(&copy).unwrap()).unwrap_err().to_string();
        assert!(told.contains("copied"), "{told}");
        // Its place may get the number of a directory that was removed, and is another one nevertheless.
        let inode = dir.stat().unwrap().inode;
        drop(dir);
        fs::remove_dir_all(&path).unwrap();
        let again = (0..50).find_map(|i| {
            let next = folder.path().join(format!("n{i}"));
            assert!(Command::new("cp").arg("-a").args([&copy, &next]).status().unwrap().success());
            let next = Dir::open(&next).unwrap();
            (next.stat().unwrap().inode == inode).then_some(next)
        });
        if let Some(again) = again {
            assert!(Mark::read(&again).is_err() || again.stat().unwrap().born.is_none());
        }
    }

    #[test]
    fn what_is_no_mark_is_not_believed_and_does_not_hang() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let path = folder.path().join(MARK);
        let tries: [&dyn Fn(); 5] = [
            &|| assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            &|| symlink("/etc/passwd", &path).unwrap(),
            &|| fs::write(&path, "{").unwrap(),
            &|| fs::write(&path, vec![b' '; MOST as usize + 1]).unwrap(),
            &|| fs::create_dir(&path).unwrap(),
        ];
        for make in tries {
            make();
            assert!(Mark::read(&dir).is_err());
            let _ = fs::remove_file(&path);
        }
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(Mark::read(&dir).unwrap(), None);
        let mark = Mark::put(&dir, "x", Value::Null).unwrap();
        fs::hard_link(&path, folder.path().join("second")).unwrap();
        assert!(mark.remove(&dir).is_err());
        fs::remove_file(folder.path().join("second")).unwrap();
        mark.remove(&dir).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_mark_of_another_user_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        Mark::put(&dir, "x", Value::Null).unwrap();
        // Only root can give files away.
        if std::os::unix::fs::chown(folder.path().join(MARK), Some(12345), None).is_ok() {
            assert!(Mark::read(&dir).unwrap_err().to_string().contains("another user"));
        }
    }
}
