//! fallocate(2) and ftruncate(2) in place of transfers.

use super::Perform;
use super::sync::again;
use crate::host::descriptors::Descriptors;
use crate::request::{Request, op};
use std::os::fd::RawFd;

/// Reserves, gives back or cuts off space of files and moves no data.
pub struct Space {
    files: Descriptors,
    truncates: bool,
}

impl Space {
    /// On `files`, one per target of the plan, in the calling thread; `truncates`: ftruncate(2), else fallocate(2).
    pub fn new(files: Vec<RawFd>, truncates: bool) -> Space {
        Space { files: Descriptors::new(files), truncates }
    }
}

impl Perform for Space {
    fn perform(&mut self, r: &Request) -> i64 {
        let fd = self.files.of(r.target);
        if self.truncates && r.op != op::WRITE {
            return -i64::from(libc::EINVAL);
        }
        let (offset, size) = (r.offset as i64, r.size as i64);
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: no pointers.
        let done = again(|| unsafe {
            i64::from(match (self.truncates, r.op) {
                (true, _) => libc::ftruncate(fd, offset),
                (false, op::READ) => libc::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, offset, size),
                (false, op::WRITE) => libc::fallocate(fd, 0, offset, size),
                (false, _) => libc::fallocate(fd, punch, offset, size),
            })
        });
        // Counted as what it stands for.
        if done == 0 { size } else { done }
    }
}
