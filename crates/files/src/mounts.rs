//! Mounts inside a directory, found before anything in it is removed.

use crate::{Dir, Error, Result};
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A mount: a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its number.
    pub id: u64,
    /// That of the mount it lies on.
    pub parent: u64,
    /// Device of its file system, major and minor number with a colon between them.
    pub device: String,
    /// What of the file system is mounted.
    pub root: PathBuf,
    /// Where.
    pub at: PathBuf,
    /// Options of the mount.
    pub options: String,
    /// How mounts below it spread to other places (mount_namespaces(7)): `shared:2`; empty of a private one.
    pub spreads: Vec<String>,
    /// Type of the file system.
    pub kind: String,
    /// What it was mounted from.
    pub source: PathBuf,
    /// Options of the file system.
    pub data: String,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Mount> {
        // Optional fields end with a dash.
        let mut fields = line.split(|byte| *byte == b' ');
        let mut next = || fields.next().map(unescaped);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        let (id, parent) = (text(next()?).parse().ok()?, text(next()?).parse().ok()?);
        let (device, root, at, options) = (text(next()?), path(next()?), path(next()?), text(next()?));
        let mut spreads = Vec::new();
        loop {
            match next()? {
                dash if dash == b"-" => break,
                tag => spreads.push(text(tag)),
            }
        }
        let (kind, source, data) = (text(next()?), path(next()?), text(next()?));
        Some(Mount { id, parent, device, root, at, options, spreads, kind, source, data })
    }
}

/// The mounts in the text of a mountinfo.
pub fn mounts_in(table: &[u8]) -> Vec<Mount> {
    table.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect()
}

/// The mounts that this process sees, later ones last.
///
/// # Errors
/// When /proc does not tell.
pub fn mounts() -> std::io::Result<Vec<Mount>> {
    Ok(mounts_in(&std::fs::read("/proc/self/mountinfo")?))
}

/// Refuses a directory in which something is mounted: a file system, or a directory or file by a bind mount.
///
/// # Errors
/// Names the mount.
pub fn refuse_mounts(dir: &Dir) -> Result<()> {
    // Without /proc nothing is known beforehand; removing compares mounts anyway.
    let Ok(here) = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())) else { return Ok(()) };
    let Ok(mounts) = mounts() else { return Ok(()) };
    match inside(&mounts, &here) {
        Some(rest) => Err(mounted(dir, &rest)),
        None => Ok(()),
    }
}

/// The error for a mount at a name below a directory.
pub(crate) fn mounted(dir: &Dir, name: &[u8]) -> Error {
    let what = "something is mounted here; nothing of it is removed: unmount it, or name another directory";
    Error::new(&dir.path_of(name), what)
}

/// What comes after `here` in the first mount point below it.
fn inside(mounts: &[Mount], here: &Path) -> Option<Vec<u8>> {
    let below = mounts.iter().filter_map(|mount| mount.at.strip_prefix(here).ok());
    below.map(|rest| rest.as_os_str().as_bytes().to_vec()).find(|rest| !rest.is_empty())
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
        let mounts = mounts_in(mounts);
        let inside = |here: &str| inside(&mounts, Path::new(here));
        assert_eq!(inside("/a/b c").unwrap(), b"d");
        assert_eq!(inside("/").unwrap(), b"a/b c/d");
        assert!(inside("/a/b c/d").is_none());
        assert!(inside("/a/b").is_none());
    }

    #[test]
    fn a_line_is_read_whole_or_not_at_all() {
        let line =
            b"36 27 7:3 /r\\134 /mnt/a\\040\xff rw,nosuid shared:1 master:2 - ext4 /dev/loop3 rw,lazytime\n";
        let [mount] = &mounts_in(line)[..] else { panic!() };
        assert_eq!((mount.id, mount.parent, mount.device.as_str()), (36, 27, "7:3"));
        assert_eq!(
            (mount.root.as_os_str().as_bytes(), mount.at.as_os_str().as_bytes()),
            (&b"/r\\"[..], &b"/mnt/a \xff"[..])
        );
        assert_eq!((mount.kind.as_str(), mount.source.as_path()), ("ext4", Path::new("/dev/loop3")));
        assert_eq!((mount.options.as_str(), mount.data.as_str()), ("rw,nosuid", "rw,lazytime"));
        assert_eq!(mounts_in(b"1 2 8:1 / /m ro\ngarbage\n- - -\n"), []);
    }
}
