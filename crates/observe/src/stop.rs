//! The end of an observation, which all its threads wait for.

use crate::clock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Readable for ever once the observation is to end; every thread polls it.
pub(crate) struct Stop(OwnedFd);

impl Stop {
    pub(crate) fn new() -> io::Result<Stop> {
        Ok(Stop(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn set(&self) {
        // Of eight bytes, as eventfd(2) wants.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Sleeps until `deadline` (monotonic); `true` if the observation is to end.
    pub(crate) fn wait_until(&self, deadline: i64) -> bool {
        loop {
            let left = deadline - clock::monotonic_ns();
            let timeout =
                Timespec { tv_sec: left.max(0) / 1_000_000_000, tv_nsec: left.max(0) % 1_000_000_000 };
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout)) {
                Ok(1..) => return true,
                Ok(0) if clock::monotonic_ns() >= deadline => return false,
                _ => {}
            }
        }
    }
}
