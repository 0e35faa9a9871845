//! pread(2), pwrite(2), pwritev2(2) with `RWF_DSYNC` or `RWF_ATOMIC`, fdatasync(2), fallocate(2).

use super::Perform;
use crate::host::descriptors::Descriptors;
use crate::payload::buffer::Pair;
use crate::payload::{Payload, of_target};
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
    pub fn new(files: Vec<RawFd>, payload: &Payload) -> Sync {
        Sync { files: Descriptors::new(files), buffers: Pair::new(payload) }
    }
}

fn errno() -> i64 {
    i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// What a system call returned, or the negative errno; it is called again while signals interrupt it.
#[inline(always)]
pub fn again(mut call: impl FnMut() -> i64) -> i64 {
    loop {
        let done = call();
        if done >= 0 {
            return done;
        }
        let errno = errno();
        if errno != i64::from(libc::EINTR) {
            return -errno;
        }
    }
}

/// Says what is about to happen to a target that is no transfer.
pub fn announce(r: &Request, buffers: &mut Pair) {
    let file = of_target(r.target.into());
    match r.op {
        op::FLUSH => buffers.for_sync(file),
        _ => buffers.for_discard(r.size as usize, file, r.offset),
    }
}

/// What a request has moved: the bytes of a discard, which the kernel does not tell.
#[inline(always)]
pub fn discarded(r: &Request, result: i64) -> i64 {
    if result == 0 && r.op == op::DISCARD { r.size as i64 } else { result }
}

/// Makes stable or gives back: 0 or a negative errno.
pub fn control(fd: RawFd, r: &Request) -> i64 {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no pointers.
    again(|| unsafe {
        i64::from(match r.op {
            op::FLUSH => libc::fdatasync(fd),
            _ => libc::fallocate(fd, mode, r.offset as i64, r.size as i64),
        })
    })
}

impl Perform for Sync {
    #[inline(always)]
    fn perform(&mut self, r: &Request) -> i64 {
        let fd = self.files.of(r.target);
        let (offset, size, file) = (r.offset as i64, r.size as usize, of_target(r.target.into()));
        let result = match r.op {
            op::READ => {
                let (room, _) = self.buffers.for_read_of(size, file, r.offset);
                // SAFETY: the buffer has room for `size` bytes.
                again(|| unsafe { libc::pread(fd, room.cast(), size, offset) as i64 })
            }
            op::WRITE => {
                let (data, _) = self.buffers.for_write(size, file, r.offset);
                if r.write_flags != 0 {
                    let flags = i32::from(r.write_flags);
                    let part = libc::iovec { iov_base: data.cast_mut().cast(), iov_len: size };
                    // SAFETY: one iovec over `size` bytes.
                    again(|| unsafe { libc::pwritev2(fd, &part, 1, offset, flags) as i64 })
                } else {
                    // SAFETY: the buffer holds `size` bytes.
                    again(|| unsafe { libc::pwrite(fd, data.cast(), size, offset) as i64 })
                }
            }
            _ => {
                announce(r, &mut self.buffers);
                control(fd, r)
            }
        };
        self.buffers.ended(result, r.is_stable());
        discarded(r, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::PayloadPlan;
    use crate::request::ATOMIC;
    use std::os::fd::AsRawFd;

    #[test]
    fn an_atomic_write_through_the_page_cache_is_refused_by_the_kernel() {
        let file = tempfile::tempfile().unwrap();
        let mut sync = Sync::new(vec![file.as_raw_fd()], &Payload::new(1, PayloadPlan::default(), 0));
        let mut write = |write_flags| {
            sync.perform(&Request { op: op::WRITE, size: 4096, write_flags, ..Request::default() })
        };
        assert_eq!(write(0), 4096);
        assert_eq!(write(ATOMIC), -i64::from(libc::EOPNOTSUPP));
    }
}
