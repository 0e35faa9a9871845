//! Calls on names in an open directory, none of which follows a link that leads out.

use loadstone_files::{Links, open_at};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};

/// The last error of a call as a negative errno.
pub fn failure() -> i64 {
    refused(&std::io::Error::last_os_error())
}

/// What the system refused, as a negative errno.
pub fn refused(e: &std::io::Error) -> i64 {
    -i64::from(e.raw_os_error().unwrap_or(libc::EIO))
}

/// Opens a name below a directory: the descriptor, or a negative errno. It is asked again when a signal interrupted it.
pub fn opened(root: RawFd, name: &CStr, flags: libc::c_int, links: Links) -> i64 {
    loop {
        match open_at(root, name, flags, 0o644, links) {
            Ok(fd) => return i64::from(fd.into_raw_fd()),
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            Err(e) => return refused(&e),
        }
    }
}

/// Opens what a name leads to, neither for reading nor for writing.
pub fn followed(root: RawFd, name: &CStr) -> std::io::Result<OwnedFd> {
    open_at(root, name, libc::O_PATH, 0, Links::Below)
}

/// Whether what has a name in a directory may be used so, as faccessat(2) says; of a link, whether it is there.
pub fn access(dir: RawFd, name: &CStr, asked: libc::c_int) -> i64 {
    // SAFETY: the name ends with a zero byte.
    let done =
        unsafe { libc::syscall(libc::SYS_faccessat2, dir, name.as_ptr(), asked, libc::AT_SYMLINK_NOFOLLOW) };
    if done == 0 {
        return 0;
    }
    match failure() {
        // Linux before 5.8, or a sandbox that does not know the call.
        unknown if [libc::ENOSYS, libc::EPERM].map(|errno| -i64::from(errno)).contains(&unknown) => {
            access_before(dir, name, asked)
        }
        failed => failed,
    }
}

fn access_before(dir: RawFd, name: &CStr, asked: libc::c_int) -> i64 {
    // SAFETY: the name ends with a zero byte, and the call fills in plain data.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        if libc::fstatat(dir, name.as_ptr(), &mut found, libc::AT_SYMLINK_NOFOLLOW) != 0 {
            return failure();
        }
        let is_link = found.st_mode & libc::S_IFMT == libc::S_IFLNK;
        if is_link || libc::faccessat(dir, name.as_ptr(), asked, 0) == 0 { 0 } else { failure() }
    }
}

/// The same of what a name leads to, which lies below `root`.
pub fn access_followed(root: RawFd, name: &CStr, asked: libc::c_int) -> i64 {
    let file = match followed(root, name) {
        Ok(file) => file,
        Err(e) => return refused(&e),
    };
    // SAFETY: the empty name ends with a zero byte.
    let done = unsafe {
        libc::syscall(libc::SYS_faccessat2, file.as_raw_fd(), c"".as_ptr(), asked, libc::AT_EMPTY_PATH)
    };
    if done == 0 {
        return 0;
    }
    let Ok(own) = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())) else { return failure() };
    // SAFETY: the name ends with a zero byte.
    if unsafe { libc::access(own.as_ptr(), asked) } == 0 { 0 } else { failure() }
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
        let fd = dir.as_raw_fd();
        let errno = |errno: libc::c_int| -i64::from(errno);
        for way in [access, access_before] {
            assert_eq!(way(fd, c"file", libc::R_OK), 0);
            assert_eq!(way(fd, c"file", libc::X_OK), errno(libc::EACCES));
            assert_eq!(way(fd, c"none", libc::F_OK), errno(libc::ENOENT));
            assert_eq!(way(fd, c"dangling", libc::F_OK), 0);
        }
        assert_eq!(access_followed(fd, c"link", libc::R_OK), 0);
        assert_eq!(access_followed(fd, c"link", libc::X_OK), errno(libc::EACCES));
        assert_eq!(access_followed(fd, c"dangling", libc::F_OK), errno(libc::ENOENT));
        assert_eq!(access_followed(fd, c"out", libc::F_OK), errno(libc::EXDEV));
    }

    #[test]
    fn links_lead_from_their_own_directory() {
        assert_eq!(relative(c"a/b", c"l").as_c_str(), c"a/b");
        assert_eq!(relative(c"a/b", c"x/y/l").as_c_str(), c"../../a/b");
    }
}
