//! Calls on names in an open directory, none of which follows a link that leads out.

use loadstone_files::{Links, open_at};
use rustix::fs::{Access, AtFlags, FileType, accessat, statat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// What the system refused, as a negative errno.
pub fn refused(e: &io::Error) -> i64 {
    -i64::from(e.raw_os_error().unwrap_or(libc::EIO))
}

/// Makes a call again while signals interrupt it: what it returns, or a negative errno.
#[inline(always)]
pub fn call(mut once: impl FnMut() -> io::Result<i64>) -> i64 {
    loop {
        match once() {
            Ok(done) => return done,
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            Err(e) => return refused(&e),
        }
    }
}

/// Opens what a name leads to, neither for reading nor for writing.
///
/// # Errors
/// What the system refuses.
pub fn followed(root: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    open_at(root, name, libc::O_PATH, 0, Links::Below)
}

/// Whether what has a name in a directory may be used so, as faccessat(2) says; of a link, whether it is there.
///
/// # Errors
/// Where it may not, or is not there.
pub fn access(dir: BorrowedFd<'_>, name: &CStr, asked: Access) -> io::Result<()> {
    match accessat(dir, name, asked, AtFlags::SYMLINK_NOFOLLOW) {
        // Linux before 5.8, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => access_before(dir, name, asked),
        told => Ok(told?),
    }
}

fn access_before(dir: BorrowedFd<'_>, name: &CStr, asked: Access) -> io::Result<()> {
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_link = FileType::from_raw_mode(found.st_mode).is_symlink();
    if is_link { Ok(()) } else { Ok(accessat(dir, name, asked, AtFlags::empty())?) }
}

/// The same of what a name leads to, which lies below `root`.
///
/// # Errors
/// As [`access`].
pub fn access_followed(root: BorrowedFd<'_>, name: &CStr, asked: Access) -> io::Result<()> {
    let file = followed(root, name)?;
    let (fd, asked_raw) = (file.as_raw_fd(), asked.bits());
    // SAFETY: the empty name ends with a zero byte. The library does not pass AT_EMPTY_PATH on.
    let done =
        unsafe { libc::syscall(libc::SYS_faccessat2, fd, c"".as_ptr(), asked_raw, libc::AT_EMPTY_PATH) };
    if done == 0 {
        return Ok(());
    }
    Ok(rustix::fs::access(format!("/proc/self/fd/{fd}"), asked)?)
}

/// What a symbolic link `new` says to lead to `name`, both below the same directory.
pub fn relative(name: &CStr, new: &CStr) -> CString {
    let up = new.to_bytes().iter().filter(|byte| **byte == b'/').count();
    let mut path = b"../".repeat(up);
    path.extend_from_slice(name.to_bytes());
    CString::new(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn access_is_told_alike_by_every_kernel_and_of_links_as_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o400)).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink("/etc/passwd", at("out")).unwrap();
        let dir = File::open(folder.path()).unwrap();
        let dir = dir.as_fd();
        let told = |told: io::Result<()>| told.map_or_else(|e| e.raw_os_error().unwrap(), |()| 0);
        for way in [access, access_before] {
            let way = |name, asked| told(way(dir, name, asked));
            assert_eq!(way(c"file", Access::READ_OK), 0);
            assert_eq!(way(c"file", Access::EXEC_OK), libc::EACCES);
            assert_eq!(way(c"none", Access::EXISTS), libc::ENOENT);
            assert_eq!(way(c"dangling", Access::EXISTS), 0);
        }
        let followed = |name, asked| told(access_followed(dir, name, asked));
        assert_eq!(followed(c"link", Access::READ_OK), 0);
        assert_eq!(followed(c"link", Access::EXEC_OK), libc::EACCES);
        assert_eq!(followed(c"dangling", Access::EXISTS), libc::ENOENT);
        assert_eq!(followed(c"out", Access::EXISTS), libc::EXDEV);
    }

    #[test]
    fn links_lead_from_their_own_directory() {
        assert_eq!(relative(c"a/b", c"l").as_c_str(), c"a/b");
        assert_eq!(relative(c"a/b", c"x/y/l").as_c_str(), c"../../a/b");
    }
}
