//! The directory that a tree of files, or sets of files, lie in.

use crate::{Error, Result};
use loadstone_files::Dir;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A new file system has this directory, which stays.
pub const LOST: &CStr = c"lost+found";

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
    let home = directory.try_clone().map_err(|e| Error::target_io(path, "cannot be opened", &e))?;
    let mut empty = true;
    let read = Dir::of(home.into(), path).each(|entry| {
        empty &= *entry.name == *LOST;
        Ok(empty)
    });
    read.map_err(|e| Error::target_io(path, "cannot be read", &e))?;
    if !empty && !allow_destroy {
        return Err(Error::target(
            path,
            format!(
                "is not empty, and a tree of files would be built in it; name an empty or new directory, or pass \
                 `allow_destroy` {} to give up what is in it",
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
    let created = match loadstone_files::create_dir(path) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(Error::target_io(path, "cannot be made", &e)),
    };
    let directory = std::fs::OpenOptions::new()
        .read(true)
        // What was just made is no link.
        .custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC | if created { libc::O_NOFOLLOW } else { 0 })
        .open(path)
        .map_err(|e| Error::target_io(path, "cannot be opened as a directory", &e))?;
    Ok(Root { directory, created })
}
