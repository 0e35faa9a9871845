//! One io_uring per worker (io_uring(7)).
//!
//! The ring belongs to its thread (`SINGLE_ISSUER`), completions are processed when the thread asks
//! for them (`DEFER_TASKRUN`, `COOP_TASKRUN`), files are registered. Older kernels get what they know.

use crate::payload::buffer::Pair;
use crate::payload::of_target;
use crate::request::{Request, op};
use crate::{Error, Result};
use io_uring::{IoUring, Submitter, cqueue, opcode, squeue, types};
use std::io;
use std::os::fd::RawFd;

/// Requests handed to the kernel per call at most: completions in the page cache happen during the
/// call, so a larger batch only adds to their latency.
pub const BATCH: usize = 8;

/// A ring with its registered files.
pub struct Ring {
    ring: IoUring,
}

/// Whether this process may use io_uring at all; asked before anything is touched.
///
/// # Errors
/// [`Error::System`] with the kernel's answer, and which setting or limit stands behind it.
pub fn available() -> Result<()> {
    build(2).map(drop)
}

fn refused(cause: io::Error) -> Error {
    let help = match cause.raw_os_error() {
        Some(libc::ENOSYS) => "; this kernel or container has no io_uring: use --backend sync",
        Some(libc::EPERM | libc::EACCES) => {
            "; io_uring is not permitted here (kernel.io_uring_disabled or seccomp): use --backend sync"
        }
        Some(libc::ENOMEM) => {
            "; the locked-memory limit is too low: raise it (ulimit -l), lower --depth, or use --backend sync"
        }
        _ => "; use --backend sync",
    };
    Error::System { what: "setting up io_uring".into(), cause, help }
}

fn build(entries: u32) -> Result<IoUring> {
    let mut last = None;
    for level in 0..3 {
        let mut b = IoUring::builder();
        b.dontfork().setup_cqsize(entries.next_power_of_two() * 2);
        if level < 2 {
            b.setup_coop_taskrun().setup_taskrun_flag();
        }
        if level < 1 {
            b.setup_single_issuer().setup_defer_taskrun();
        }
        match b.build(entries) {
            Ok(ring) => {
                if !ring.params().is_feature_ext_arg() {
                    return Err(refused(io::Error::from_raw_os_error(libc::ENOSYS)));
                }
                return Ok(ring);
            }
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => last = Some(e),
            Err(e) => return Err(refused(e)),
        }
    }
    Err(refused(last.unwrap_or_else(io::Error::last_os_error)))
}

impl Ring {
    /// A ring for `depth` requests in flight on `files`; must be made by the thread that uses it.
    ///
    /// # Errors
    /// When the kernel refuses a ring.
    pub fn new(depth: u32, files: &[RawFd]) -> Result<Ring> {
        let ring = build(depth.min(4096))?;
        if !files.is_empty() {
            ring.submitter().register_files(files).map_err(refused)?;
        }
        Ok(Ring { ring })
    }

    /// Registers the memory of small transfers as one buffer: measured, a 4 KiB read from the page
    /// cache takes 4 % less with it. `false` where the limit of locked memory forbids it.
    ///
    /// # Safety
    /// The memory must stay mapped while the ring has requests in flight.
    pub unsafe fn register(&self, memory: &mut [u8]) -> bool {
        let part = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
        // SAFETY: as the caller promises.
        unsafe { self.ring.submitter().register_buffers(&[part]).is_ok() }
    }

    /// Its two queues, to be used from now on.
    pub fn queues(&mut self) -> Queues<'_> {
        let (mut submitter, submission, completion) = self.ring.split();
        // Saves a lookup per call since Linux 5.18; works without it all the same.
        let _ = submitter.register_ring_fd();
        Queues { submitter, submission, completion }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel takes a ring apart later; the files must not stay open until then.
        let _ = self.ring.submitter().unregister_files();
    }
}

/// The two queues of a ring.
pub struct Queues<'a> {
    submitter: Submitter<'a>,
    submission: squeue::SubmissionQueue<'a>,
    completion: cqueue::CompletionQueue<'a>,
}

impl Queues<'_> {
    /// Queues a request; `slot` comes back with its completion. `false` when the queue is full. `ioprio` is as the kernel
    /// has it, of reads and writes; 0: that of the thread.
    ///
    /// # Safety
    /// `buffers` must stay where it is, and unused, until the completion of `slot` was reaped.
    #[inline(always)]
    pub unsafe fn push(&mut self, r: &Request, slot: u32, buffers: &mut Pair, ioprio: u16) -> bool {
        let (fd, file) = (types::Fixed(u32::from(r.target)), of_target(r.target.into()));
        let entry: squeue::Entry = match r.op {
            op::READ => {
                let (at, fixed) = buffers.for_read_of(r.size as usize, file, r.offset);
                if fixed {
                    opcode::ReadFixed::new(fd, at, r.size as u32, 0).offset(r.offset).ioprio(ioprio).build()
                } else {
                    opcode::Read::new(fd, at, r.size as u32).offset(r.offset).ioprio(ioprio).build()
                }
            }
            op::WRITE => {
                let flags = i32::from(r.write_flags);
                let (at, fixed) = buffers.for_write(r.size as usize, file, r.offset);
                if fixed {
                    opcode::WriteFixed::new(fd, at, r.size as u32, 0)
                        .offset(r.offset)
                        .rw_flags(flags)
                        .ioprio(ioprio)
                        .build()
                } else {
                    opcode::Write::new(fd, at, r.size as u32)
                        .offset(r.offset)
                        .rw_flags(flags)
                        .ioprio(ioprio)
                        .build()
                }
            }
            op::FLUSH => {
                buffers.for_sync(file);
                opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build()
            }
            _ => {
                buffers.for_discard(r.size as usize, file, r.offset);
                opcode::Fallocate::new(fd, r.size)
                    .offset(r.offset)
                    .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                    .build()
            }
        };
        // SAFETY: the buffers live as long as the request, as the caller promises.
        unsafe { self.submission.push(&entry.user_data(u64::from(slot))).is_ok() }
    }

    /// Hands everything queued to the kernel and waits for `want` completions, at most `timeout` ns.
    ///
    /// # Errors
    /// When the kernel refuses the call.
    #[inline(always)]
    pub fn enter(&mut self, want: usize, timeout: Option<i64>) -> Result<()> {
        self.submission.sync();
        let result = match timeout {
            Some(ns) if want > 0 => {
                let time =
                    types::Timespec::new().sec(ns as u64 / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                self.submitter.submit_with_args(want, &types::SubmitArgs::new().timespec(&time))
            }
            _ => self.submitter.submit_and_wait(want),
        };
        self.submission.sync();
        match result {
            Ok(_) => Ok(()),
            Err(e) => match e.raw_os_error() {
                // Time is up, a signal came, or the kernel wants completions reaped first: look again.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(refused(e)),
            },
        }
    }

    /// Whether there is work that only [`Queues::enter`] can move on.
    #[inline(always)]
    pub fn pending(&mut self) -> bool {
        self.submission.taskrun() || !self.submission.is_empty()
    }

    /// Hands every completion to `each`: slot and result. Returns how many there were.
    #[inline(always)]
    pub fn reap(&mut self, mut each: impl FnMut(u32, i64)) -> usize {
        self.completion.sync();
        let mut n = 0;
        for c in &mut self.completion {
            each(c.user_data() as u32, i64::from(c.result()));
            n += 1;
        }
        self.completion.sync();
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{Payload, PayloadPlan};
    use std::os::fd::AsRawFd;

    #[test]
    fn the_kernel_gets_the_priority_of_each_request() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 16).unwrap();
        let mut ring = Ring::new(4, &[file.as_raw_fd()]).unwrap();
        let payload = Payload::new(1, PayloadPlan::default(), 0);
        let (mut queues, mut results) = (ring.queues(), Vec::new());
        // There is no seventh class; of best effort the level 7 is the last one.
        for (slot, code, ioprio) in
            [(0, op::READ, 7 << 13), (1, op::WRITE, 7 << 13), (2, op::READ, 2 << 13 | 7)]
        {
            let request = Request { op: code, size: 4096, ..Request::default() };
            let mut buffers = Pair::new(&payload);
            // SAFETY: the buffers live until the completion was reaped below.
            assert!(unsafe { queues.push(&request, slot, &mut buffers, ioprio) });
            queues.enter(1, Some(10_000_000_000)).unwrap();
            queues.reap(|slot, result| results.push((slot, result)));
        }
        let invalid = -i64::from(libc::EINVAL);
        assert_eq!(results, [(0, invalid), (1, invalid), (2, 4096)]);
    }
}
