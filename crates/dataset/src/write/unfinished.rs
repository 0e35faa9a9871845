//! What is being written is marked, so that nobody takes a part of it for the whole: a file in its directory says so until
//! the last byte is there. Whoever writes holds a lock on it, which ends with the process, however that ends.

use crate::{Error, Result};
use loadstone_files::{Dir, Lock, Stat, lock};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Name of the mark.
pub const UNFINISHED: &str = ".loadstone-unfinished";
const NAME: &[u8] = UNFINISHED.as_bytes();
/// What the mark says to whoever looks into it.
const TEXT: &str = "loadstone dataset write is writing here, or was ended before all was there.\n\
                    What is here is a part: remove it and write it again.\n";

/// A mark in a directory that is being written.
pub(super) struct Unfinished {
    dir: Dir,
    file: File,
}

impl Unfinished {
    /// Marks a directory; with `again` one that a write was ended in may be gone on with.
    ///
    /// # Errors
    /// When another run writes there, or did not finish, or the mark cannot be made.
    pub fn begin(dir: &Dir, again: bool) -> Result<Unfinished> {
        let failed = |e| Error::io("cannot be marked as unfinished", &dir.path().join(UNFINISHED), e);
        let new = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let (file, is_new) = match dir.open_below(NAME, new, 0o644) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                (dir.open_below(NAME, libc::O_WRONLY | libc::O_NONBLOCK, 0).map_err(failed)?, false)
            }
            opened => (opened.map_err(failed)?, true),
        };
        // The directory, too, so that no run empties what lies in it.
        if !lock(&file, Lock::Exclusive).map_err(failed)? || !lock(dir, Lock::Exclusive).map_err(failed)? {
            return Err(Error::file(dir.path(), "is being written by another run; name another directory"));
        }
        if !is_new && !again {
            return Err(unfinished(dir.path(), "remove it or name another directory"));
        }
        let mut mark = Unfinished { dir: dir.try_clone().map_err(failed)?, file };
        if !mark.is_there() {
            return Err(Error::file(
                dir.path(),
                "was written by another run meanwhile; name another directory",
            ));
        }
        mark.file.write_all(TEXT.as_bytes()).map_err(failed)?;
        Ok(mark)
    }

    /// All is there and stable: the mark goes.
    ///
    /// # Errors
    /// When not everything reached the disk: then the mark stays. When it cannot be removed.
    pub fn finish(self) -> Result<()> {
        // The mark was opened before anything was written, so that this tells what write-back lost since then.
        // SAFETY: the descriptor is open as long as `self` is; syncfs touches no memory.
        if unsafe { libc::syncfs(self.file.as_raw_fd()) } != 0 {
            let cause = io::Error::last_os_error();
            return Err(Error::io("did not reach the disk whole, and stays marked", self.dir.path(), cause));
        }
        let dir = self.dir.try_clone();
        self.withdraw()?;
        // Else the mark is back after a crash. Some file systems cannot; all is there nevertheless.
        let _ = dir.and_then(|dir| dir.sync());
        Ok(())
    }

    /// Nothing was written: the mark goes.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn withdraw(self) -> Result<()> {
        let failed = |e| Error::io("cannot be removed", &self.dir.path().join(UNFINISHED), e);
        if self.is_there() { self.dir.unlink_below(NAME, false).map_err(failed) } else { Ok(()) }
    }

    /// Whether the name still is this mark's.
    fn is_there(&self) -> bool {
        let same = |there: Stat, mine: std::fs::Metadata| (there.inode, there.links) == (mine.ino(), 1);
        self.dir.stat_below(NAME).is_ok_and(|there| self.file.metadata().is_ok_and(|mine| same(there, mine)))
    }
}

/// Refuses a directory that is marked.
///
/// # Errors
/// When it is: whether a run writes there, or one was ended.
pub fn refuse_unfinished(path: &Path) -> Result<()> {
    let mark = path.join(UNFINISHED);
    if std::fs::symlink_metadata(&mark).is_err() {
        return Ok(());
    }
    let held = loadstone_files::open_regular(&mark, false).is_ok_and(|file| {
        // Shared, so that two who ask do not take each other for a writer.
        matches!(lock(&file, Lock::Shared), Ok(false))
    });
    if held {
        return Err(Error::file(
            path,
            "is being written by loadstone dataset write; wait until it has ended",
        ));
    }
    Err(unfinished(
        path,
        &format!("write it again, or remove {UNFINISHED} in it to use the part that is there"),
    ))
}

fn unfinished(path: &Path, what_to_do: &str) -> Error {
    Error::file(
        path,
        format!("is unfinished: loadstone dataset write was ended before all was there; {what_to_do}"),
    )
}
