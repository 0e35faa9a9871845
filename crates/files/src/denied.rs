//! Permissions that nothing gets that is made from now on.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

thread_local! {
    /// Permissions that outputs made by this thread do not get.
    static DENIED: Cell<u32> = const { Cell::new(0o077) };
}

/// Denies these permissions to all outputs that this thread makes from now on: 0o077 at first, as outputs hold what inputs
/// hold, and nobody lists all inputs. The umask would not do: the default access control list of a directory replaces it,
/// while the mode of a call bounds that, too (acl(5)). 0 denies nothing.
pub fn deny(mode: u32) {
    DENIED.set(mode);
}

/// What is denied.
pub(crate) fn denied() -> u32 {
    DENIED.get()
}

/// Makes a directory, which must be new, without the permissions that [`deny`] denies.
///
/// # Errors
/// When it is there, or cannot be made.
pub fn create_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o777 & !denied()).create(path)
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
