//! Temporary files that have no name.

use crate::lookup::{Links, PLACE, open_at, plain};
use crate::random_hex;
use rustix::fs::{AtFlags, unlinkat};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a file in a directory, for reading and writing, that has no name and is gone when it is closed.
///
/// # Errors
/// When it cannot be made.
pub fn unnamed(directory: &Path) -> io::Result<File> {
    let directory = OpenOptions::new().read(true).custom_flags(PLACE).open(directory)?;
    // With O_EXCL nobody can give it a name later.
    let flags = libc::O_RDWR | libc::O_TMPFILE | libc::O_EXCL;
    match open_at(&directory, c".", flags, 0o600, Links::Refused) {
        // The file system, or the kernel, knows no such files.
        Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => {
            renounced(&directory)
        }
        made => made.map(File::from),
    }
}

/// The same with a name that nobody can guess, for a moment.
fn renounced(directory: &File) -> io::Result<File> {
    let name = CString::new(format!(".loadstone-{}", random_hex()))?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let file = plain(directory, &name, flags, 0o600)?;
    unlinkat(directory, &name, AtFlags::empty())?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn they_have_no_name_and_are_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let place = OpenOptions::new().read(true).custom_flags(PLACE).open(folder.path()).unwrap();
        for mut file in [unnamed(folder.path()).unwrap(), renounced(&place).unwrap()] {
            let of = file.metadata().unwrap();
            assert_eq!((of.nlink(), of.mode() & 0o777), (0, 0o600));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            file.write_all(b"kept").unwrap();
            file.rewind().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "kept");
        }
        assert!(unnamed(&folder.path().join("none")).is_err());
    }
}
