//! Files that others name: opened without waiting for anything, and locked.

use crate::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock, fstatfs};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// Opens a file for reading; with `follow` it may be a link to one. What is no regular file is refused, not waited for.
///
/// # Errors
/// When it is not there, is no regular file, or cannot be opened.
pub fn open_regular(path: &Path, follow: bool) -> Result<File> {
    let failed = |e| Error::io(path, "cannot be opened", e);
    let kind = |meta: fs::Metadata| {
        let kind = meta.file_type();
        let what = match kind {
            _ if kind.is_file() => return Ok(()),
            _ if kind.is_dir() => "a directory",
            _ if kind.is_fifo() => "a pipe",
            _ if kind.is_socket() => "a socket",
            _ if kind.is_symlink() => "a link",
            _ => "a device",
        };
        Err(Error::new(path, format!("is {what}, and a file is wanted; name a file")))
    };
    // Looked at first, as opening some devices does something.
    kind(if follow { fs::metadata(path) } else { fs::symlink_metadata(path) }.map_err(failed)?)?;
    let flags = libc::O_NONBLOCK | if follow { 0 } else { libc::O_NOFOLLOW };
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    kind(file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// Between two questions whether to wait on.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

static GO_ON: OnceLock<fn() -> bool> = OnceLock::new();

/// What is asked from time to time while a pipe is waited for; `false` gives up. The first one counts.
pub fn while_waiting(go_on: fn() -> bool) {
    let _ = GO_ON.set(go_on);
}

/// Opens whatever a user names for reading. A pipe is waited for until somebody writes to it, in steps, as no signal ends
/// the wait of open(2) itself.
///
/// # Errors
/// What the system says, or `Interrupted` where [`while_waiting`] gave up.
pub fn open_for_reading(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        if is_of_kernel(&file)? {
            let what = "lies in procfs or tracefs, where a read may wait for ever; copy it to a file first";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        return Ok(file);
    }
    if !kind.is_fifo() {
        return File::open(path);
    }
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    while !matches!(poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&PATIENCE)), Ok(1..)) {
        if GO_ON.get().is_some_and(|go_on| !go_on()) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted; nobody wrote to the pipe"));
        }
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Whether a file lies in procfs or tracefs: some of theirs wait for what comes, and what was read is gone.
fn is_of_kernel(file: &File) -> io::Result<bool> {
    let kind = fstatfs(file)?.f_type;
    Ok(kind == libc::PROC_SUPER_MAGIC || kind == libc::TRACEFS_MAGIC)
}

/// Times a lock is asked for where it is waited for, and the time between them.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Who else may hold a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Others who share it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// Locks an open file, device or directory by flock(2) until its last descriptor is closed; `false` when others hold it.
/// Where a file system has no locks nothing is locked, and that is no error.
///
/// # Errors
/// When the system fails.
pub fn lock(file: &impl AsFd, how: Lock) -> io::Result<bool> {
    let how = match how {
        Lock::Shared => FlockOperation::NonBlockingLockShared,
        Lock::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    loop {
        match flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            // NFS wants an exclusively locked file open for writing.
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::BADF) => {
                return Ok(true);
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// The same, tried for a second: the system's device manager locks a device for a moment when somebody has closed it, and
/// what a killed process had in io_uring is given back a little after its end.
///
/// # Errors
/// When the system fails.
pub fn lock_patiently(file: &impl AsFd, how: Lock) -> io::Result<bool> {
    for _ in 1..TRIES {
        if lock(file, how)? {
            return Ok(true);
        }
        std::thread::sleep(PAUSE);
    }
    lock(file, how)
}

/// Locks what a killed process may have left; false where others hold it, and where a file system has no locks: then
/// nobody can tell whether its maker lives.
pub(crate) fn alone(file: &impl AsFd) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe, link) = (folder.path().join("f"), folder.path().join("p"), folder.path().join("l"));
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(open_regular(&pipe, true).unwrap_err().to_string().contains("pipe"));
        assert!(open_regular(folder.path(), true).is_err());
        assert!(open_regular(Path::new("/dev/null"), true).is_err());
        assert!(open_regular(&link, false).is_err());
        open_regular(&link, true).unwrap();
        open_regular(&file, false).unwrap();
    }

    #[test]
    fn locks_are_shared_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::open(folder.path()).unwrap();
        let (first, second, third) = (open(), open(), open());
        assert!(lock(&first, Lock::Shared).unwrap() && lock(&second, Lock::Shared).unwrap());
        assert!(!lock(&third, Lock::Exclusive).unwrap());
        drop((first, second));
        assert!(lock(&third, Lock::Exclusive).unwrap());
        assert!(!lock(&open(), Lock::Shared).unwrap());
    }
}
