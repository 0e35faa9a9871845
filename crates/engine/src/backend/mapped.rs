//! Files mapped into memory (mmap(2)), and copies to and from them that no fault ends but as a short or failed request.

use crate::backend::copy::{self, copy};
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// A file or device, or its beginning, in memory.
#[derive(Debug)]
pub struct Mapping {
    at: *mut u8,
    len: usize,
    fd: RawFd,
    writable: bool,
}

// SAFETY: the memory is that of the file, which other processes may change at any time, too; it is only ever copied.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `len` bytes of an open file, which must stay open; an errno where it cannot be mapped.
    ///
    /// # Errors
    /// The errno where it cannot be mapped.
    pub fn new(fd: RawFd, len: u64, writable: bool) -> Result<Mapping, i32> {
        if !copy::POSSIBLE {
            return Err(libc::ENOSYS);
        }
        copy::install();
        let len = usize::try_from(len).map_err(|_| libc::ENOMEM)?;
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping.
        let at = unsafe { libc::mmap(null_mut(), len, protection, libc::MAP_SHARED, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(last());
        }
        Ok(Mapping { at: at.cast(), len, fd, writable })
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Copies `size` bytes at `offset`, which lie inside, to `to`: bytes, fewer where the file has no more, or a
    /// negative errno.
    ///
    /// # Safety
    /// `to` has room for `size` bytes, or is null, where there was no memory for it: EFAULT.
    #[inline]
    pub unsafe fn read(&self, offset: u64, to: *mut u8, size: usize) -> i64 {
        if to.is_null() {
            return -i64::from(libc::EFAULT);
        }
        // SAFETY: `at` has seen that the range lies inside; the rest is promised.
        self.copied(offset, size, |at| unsafe { copy(to, at, size) })
    }

    /// Copies `size` bytes from `from` to `offset`, likewise.
    ///
    /// # Safety
    /// `from` holds `size` bytes, or is null, likewise.
    #[inline]
    pub unsafe fn write(&self, offset: u64, from: *const u8, size: usize) -> i64 {
        if from.is_null() || !self.writable {
            return -i64::from(if from.is_null() { libc::EFAULT } else { libc::EBADF });
        }
        // SAFETY: as above.
        self.copied(offset, size, |at| unsafe { copy(at, from, size) })
    }

    /// Waits until what was stored there is stable (msync(2)): 0 or a negative errno.
    pub fn flush(&self, offset: u64, size: usize) -> i64 {
        let page = rustix::param::page_size();
        let first = offset as usize & !(page - 1);
        // SAFETY: the pages lie inside the mapping.
        let done =
            unsafe { libc::msync(self.at.add(first).cast(), offset as usize + size - first, libc::MS_SYNC) };
        if done == 0 { 0 } else { -i64::from(last()) }
    }

    #[inline]
    fn copied(&self, offset: u64, size: usize, copy: impl FnOnce(*mut u8) -> Result<(), usize>) -> i64 {
        let inside =
            usize::try_from(offset).ok().filter(|at| at.checked_add(size).is_some_and(|end| end <= self.len));
        let Some(offset) = inside else { return -i64::from(libc::EINVAL) };
        // SAFETY: inside the mapping, as just seen.
        match copy(unsafe { self.at.add(offset) }) {
            Ok(()) => size as i64,
            Err(fault) => self.faulted(offset, fault),
        }
    }

    /// What became of a copy from or to `offset` that a fault at the address `fault` ended: bytes that the file has
    /// there, where it ends before the fault, or a negative errno.
    #[cold]
    fn faulted(&self, offset: usize, fault: usize) -> i64 {
        let Some(fault) = fault.checked_sub(self.at as usize).filter(|at| *at < self.len) else {
            return -i64::from(libc::EFAULT);
        };
        match length_of(self.fd) {
            Some(end) if end <= fault as u64 => end.saturating_sub(offset as u64) as i64,
            _ => -i64::from(libc::EIO),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and not used after.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

/// Bytes of an open file or device; nothing of what has no length. Its position moves.
pub fn length_of(fd: RawFd) -> Option<u64> {
    // SAFETY: no pointers.
    u64::try_from(unsafe { libc::lseek(fd, 0, libc::SEEK_END) }).ok()
}

fn last() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn copies_move_bytes_and_what_is_stored_reaches_the_file() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10_000).unwrap();
        file.write_all_at(b"there", 4094).unwrap();
        let map = Mapping::new(file.as_raw_fd(), 10_000, true).unwrap();
        let mut got = [0u8; 5];
        // SAFETY: the arrays are as long as is said.
        unsafe {
            assert_eq!(map.read(4094, got.as_mut_ptr(), 5), 5);
            assert_eq!(map.write(9_000, b"back".as_ptr(), 4), 4);
            assert_eq!(map.read(9_997, got.as_mut_ptr(), 5), -i64::from(libc::EINVAL));
        }
        assert_eq!((&got, map.flush(9_000, 4)), (b"there", 0));
        let mut content = [0u8; 4];
        file.read_exact_at(&mut content, 9_000).unwrap();
        assert_eq!(&content, b"back");
        let map = Mapping::new(file.as_raw_fd(), 10_000, false).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { map.write(0, b"back".as_ptr(), 4) }, -i64::from(libc::EBADF));
    }

    #[test]
    fn a_file_that_shrinks_makes_a_copy_short_and_one_that_grows_again_is_seen() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(5 * 4096).unwrap();
        let map = Mapping::new(file.as_raw_fd(), 5 * 4096, true).unwrap();
        file.set_len(4096 + 100).unwrap();
        let mut got = vec![1u8; 3 * 4096];
        // SAFETY: the vector is as long as is said.
        unsafe {
            assert_eq!(map.read(4096, got.as_mut_ptr(), 3 * 4096), 100);
            assert!(got[..4096].iter().all(|byte| *byte == 0));
            assert!(got[4096..].iter().all(|byte| *byte == 1), "bytes that nobody has");
            assert_eq!(map.write(3 * 4096, got.as_ptr(), 4096), 0);
        }
        file.set_len(5 * 4096).unwrap();
        file.write_all_at(&[7; 4096], 3 * 4096).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { map.read(3 * 4096, got.as_mut_ptr(), 4096) }, 4096);
        assert!(got[..4096].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn of_many_threads_none_takes_a_page_that_is_not_there_for_read_or_written() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(5 * 4096).unwrap();
        let map = Mapping::new(file.as_raw_fd(), 5 * 4096, true).unwrap();
        file.set_len(4096).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let map = &map;
                scope.spawn(move || {
                    let mut room = [0u8; 4096];
                    for round in 0..20_000 {
                        let at = 4096 * (1 + (thread + round) % 4);
                        // SAFETY: the array is as long as is said.
                        let (read, written) = unsafe {
                            (map.read(at, room.as_mut_ptr(), 4096), map.write(at, room.as_ptr(), 4096))
                        };
                        assert_eq!((read, written), (0, 0), "{round}");
                    }
                });
            }
        });
        assert_eq!(length_of(file.as_raw_fd()), Some(4096));
    }
}
