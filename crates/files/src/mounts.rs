//! Mounts inside a directory, found before anything in it is removed.

use crate::{Dir, Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

/// The mounts that this process sees, a line each (proc_pid_mountinfo(5)). Bytes of paths that are no UTF-8 are replaced.
///
/// # Errors
/// When /proc does not tell.
pub fn mount_table() -> std::io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read("/proc/self/mountinfo")?).into_owned())
}

/// Refuses a directory in which something is mounted: a file system, or a directory or file by a bind mount.
///
/// # Errors
/// Names the mount.
pub fn refuse_mounts(dir: &Dir) -> Result<()> {
    // Without /proc nothing is known beforehand; removing compares mounts anyway.
    let Ok(here) = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())) else { return Ok(()) };
    let Ok(mounts) = std::fs::read("/proc/self/mountinfo") else { return Ok(()) };
    let here = here.as_os_str().as_bytes();
    match inside(&mounts, here) {
        Some(rest) => Err(mounted(dir, &rest)),
        None => Ok(()),
    }
}

/// The error for a mount at a name below a directory.
pub(crate) fn mounted(dir: &Dir, name: &[u8]) -> Error {
    let what = "something is mounted here; nothing of it is removed: unmount it, or name another directory";
    Error::new(&dir.path_of(name), what)
}

/// What comes after `here` in the first mount point below it; `mounts` is what proc(5) has of them.
fn inside(mounts: &[u8], here: &[u8]) -> Option<Vec<u8>> {
    mounts.split(|byte| *byte == b'\n').find_map(|line| {
        let point = unescaped(line.split(|byte| *byte == b' ').nth(4)?);
        let rest = point.strip_prefix(here)?;
        let rest = if here == b"/" { rest } else { rest.strip_prefix(b"/")? };
        (!rest.is_empty()).then(|| rest.to_vec())
    })
}

/// A path in which blanks and line ends are octal numbers.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(path.len()), path);
    while let [first, after @ ..] = rest {
        if let (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) = (first, after) {
            plain.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = after;
        } else {
            plain.push(*first);
            rest = after;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_compared_by_component_and_unescaped() {
        let mounts = b"1 0 8:1 / / rw - ext4 x rw\n2 1 8:1 /x /a/b\\040c/d rw - ext4 x rw\n3 1 0:4 / /ab rw - tmpfs t rw\n";
        assert_eq!(inside(mounts, b"/a/b c").unwrap(), b"d");
        assert_eq!(inside(mounts, b"/").unwrap(), b"a/b c/d");
        assert!(inside(mounts, b"/a/b c/d").is_none());
        assert!(inside(mounts, b"/a/b").is_none());
    }
}
