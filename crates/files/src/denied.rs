//! Permissions that nothing gets that is made from now on.

use rustix::fs::{Mode, fchmod, fremovexattr, fstat};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Permissions that no file gets that takes the place of another.
static DENIED: AtomicU32 = AtomicU32::new(0);

/// Attributes of access control lists (acl(5)): who may use a file besides its mode, and what new files inherit.
const ACLS: [&CStr; 2] = [c"system.posix_acl_access", c"system.posix_acl_default"];

/// Denies these permissions to all files and directories made from now on, so that outputs of private files are private.
/// The umask is not enough: the default access control list of a directory overrides it. 0 denies nothing.
pub fn deny(mode: u32) {
    DENIED.store(mode, Relaxed);
}

/// What is denied.
pub(crate) fn denied() -> u32 {
    DENIED.load(Relaxed)
}

/// Takes from a file or directory that was just made what is denied, whatever it inherited.
///
/// # Errors
/// When its permissions cannot be changed.
pub(crate) fn restrict(file: &impl AsFd) -> io::Result<()> {
    if denied() == 0 {
        return Ok(());
    }
    for name in ACLS {
        // Most have no such attribute, and not every file system has any.
        let _ = fremovexattr(file, name);
    }
    let mode = fstat(file)?.st_mode & 0o7777 & !denied();
    Ok(fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Makes a directory, which must be new, without the permissions that [`deny`] denies.
///
/// # Errors
/// When it is there, or cannot be made.
pub fn create_dir(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    if denied() != 0 { restrict(&File::open(path)?) } else { Ok(()) }
}

/// The same with all directories that lead to it; they may be there.
///
/// # Errors
/// When one cannot be made.
pub fn create_dirs(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|at| !at.is_dir()).collect();
    missing.iter().rev().filter(|at| !at.as_os_str().is_empty()).try_for_each(|at| match create_dir(at) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && at.is_dir() => Ok(()),
        made => made,
    })
}
