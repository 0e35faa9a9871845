//! The descriptors of a thread that performs requests, in a table of its own where possible.
//!
//! A process with several threads has one table for all of them, so every system call takes and
//! gives back a reference to its file by two atomic operations on memory that all threads share.
//! A table that only one thread uses spares both: about 50 ns of a 4 KiB read from the page cache.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::RawFd;

/// Lets this process have as many descriptors as it may (setrlimit(2)), and says how many.
pub fn raise() -> u64 {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Being refused leaves what there is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    maximum.unwrap_or(u64::MAX)
}

/// Most directories that all threads, and that one of them, keeps open for the names in them.
const PARENTS: [u64; 2] = [32768, 4096];

/// Directories that each of some threads keeps open for the names in them: its part of an eighth of all descriptors.
pub fn parents(limit: u64, threads: usize) -> usize {
    let [all, each] = PARENTS;
    ((limit / 8).min(all) / threads.max(1) as u64).clamp(1, each) as usize
}

/// Descriptors of the targets, good in the thread that made this.
pub struct Descriptors {
    files: Vec<RawFd>,
    own: bool,
}

impl Descriptors {
    /// Gives the calling thread a table of its own with `files` and the standard streams in it; from
    /// now on it must use no other. Where the kernel cannot (before 5.9), the thread goes on with
    /// the table of the process. The caller keeps `files` open.
    pub fn new(files: Vec<RawFd>) -> Descriptors {
        let own = separate(&files);
        Descriptors { files, own }
    }

    /// The descriptor of a target.
    #[inline(always)]
    pub fn of(&self, target: u16) -> RawFd {
        self.files[usize::from(target)]
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // A thread's table outlives its join for a moment, in which a target would still be in use.
        for fd in self.files.iter().filter(|_| self.own) {
            // SAFETY: the copy in this thread's table; the process keeps its own.
            unsafe { libc::close(*fd) };
        }
    }
}

/// Whether the calling thread has left the table of the process, keeping `files`.
fn separate(files: &[RawFd]) -> bool {
    let mut kept: Vec<u32> = files.iter().filter_map(|fd| u32::try_from(*fd).ok()).chain(0..=2).collect();
    kept.sort_unstable();
    // The others are closed in the copy: it must not hold pipes and sockets open that somebody
    // waits for. What is above the last kept one is not even copied.
    let mut last = u32::MAX;
    let mut flags = libc::CLOSE_RANGE_UNSHARE;
    for fd in kept.into_iter().rev() {
        if fd < last {
            // SAFETY: no pointers; the table of the process stays as it is, since the first call
            // leaves it and nothing more is closed when that fails.
            if unsafe { libc::syscall(libc::SYS_close_range, fd + 1, last, flags) } != 0 && flags != 0 {
                return false;
            }
            flags = 0;
        }
        last = fd.saturating_sub(1);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write, pipe};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    use std::sync::mpsc::channel;

    fn is_open(fd: RawFd) -> bool {
        // SAFETY: no pointers.
        unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
    }

    #[test]
    fn a_thread_keeps_the_targets_and_holds_nothing_else_open() {
        let (mut below, mut below_writer) = pipe().unwrap();
        let file = tempfile::tempfile().unwrap();
        let (mut above, above_writer) = pipe().unwrap();
        let fds = [file.as_raw_fd(), below_writer.as_raw_fd(), above_writer.as_raw_fd()];
        let (ready, readiness) = channel();
        let (go, wait) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let descriptors = Descriptors::new(vec![-1, fds[0]]);
            let own = descriptors.own;
            ready.send((own, fds.map(is_open))).unwrap();
            let _ = wait.recv();
            assert_eq!(descriptors.of(1), fds[0]);
            drop(descriptors);
            (own, is_open(fds[0]))
        });
        let (own, open) = readiness.recv().unwrap();
        assert_eq!(open, [true, !own, !own]);
        // Nobody else's descriptors were touched, and closing one is noticed at once.
        below_writer.write_all(b"x").unwrap();
        drop((below_writer, above_writer));
        let mut text = String::new();
        if own {
            below.read_to_string(&mut text).unwrap();
            above.read_to_string(&mut text).unwrap();
            assert_eq!(text, "x");
        }
        drop(go);
        let (own, open) = thread.join().unwrap();
        assert_eq!(open, !own);
        file.write_all_at(b"still open", 0).unwrap();
    }
}
