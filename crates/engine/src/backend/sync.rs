//! pread(2), pwrite(2), pwritev2(2) with `RWF_DSYNC`, fdatasync(2), fallocate(2).

use super::Perform;
use crate::buffer::Pair;
use crate::descriptors::Descriptors;
use crate::material::{Material, of_target};
use crate::request::{Request, op};
use std::os::fd::RawFd;

/// The sync backend of one thread.
pub struct Sync {
    files: Descriptors,
    buffers: Pair,
}

impl Sync {
    /// Performs on `files`, one per target of the plan, in the calling thread, which may use no
    /// other descriptors from now on; the caller keeps them open.
    pub fn new(files: Vec<RawFd>, material: &Material) -> Sync {
        Sync { files: Descriptors::new(files), buffers: Pair::new(material) }
    }
}

fn errno() -> i64 {
    i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Makes stable or gives back: 0 or a negative errno.
pub fn control(fd: RawFd, r: &Request) -> i64 {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    loop {
        // SAFETY: no pointers.
        let done = unsafe {
            match r.op {
                op::FLUSH => libc::fdatasync(fd),
                _ => libc::fallocate(fd, mode, r.offset as i64, r.size as i64),
            }
        };
        if done >= 0 {
            return i64::from(done);
        }
        let errno = errno();
        if errno != i64::from(libc::EINTR) {
            return -errno;
        }
    }
}

impl Perform for Sync {
    #[inline(always)]
    fn perform(&mut self, r: &Request) -> i64 {
        let fd = self.files.of(r.target);
        let (offset, size) = (r.offset as i64, r.size as usize);
        loop {
            let done = match r.op {
                // SAFETY: the buffer holds `size` bytes.
                op::READ => unsafe {
                    libc::pread(fd, self.buffers.for_read(size).0.cast(), size, offset) as i64
                },
                op::WRITE => {
                    let (data, _) = self.buffers.for_write(size, of_target(r.target.into()), r.offset);
                    if r.dsync {
                        let part = libc::iovec { iov_base: data.cast_mut().cast(), iov_len: size };
                        // SAFETY: one iovec over `size` bytes.
                        unsafe { libc::pwritev2(fd, &part, 1, offset, libc::RWF_DSYNC) as i64 }
                    } else {
                        // SAFETY: the buffer holds `size` bytes.
                        unsafe { libc::pwrite(fd, data.cast(), size, offset) as i64 }
                    }
                }
                _ => return control(fd, r),
            };
            if done >= 0 {
                return done;
            }
            let errno = errno();
            if errno != i64::from(libc::EINTR) {
                return -errno;
            }
        }
    }
}
