//! Files mapped into memory (mmap(2)), and copies to and from them that no fault ends.
//!
//! Touching a page beyond the end of its file, or one that the device cannot give, raises SIGBUS. While a copy goes on,
//! its thread says where; a fault there gets a page of zeros in place of the file's, the copy goes on, and is then
//! counted as short or failed. A fault anywhere else goes to whoever handled it before.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, compiler_fence};

thread_local! {
    /// First byte that the thread copies to or from, and the one behind the last.
    static WATCHED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// Whether a fault came.
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

static INSTALLED: Once = Once::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);
/// What handled SIGBUS before: written once, before the handler is there.
static mut BEFORE: MaybeUninit<libc::sigaction> = MaybeUninit::zeroed();

extern "C" fn on_bus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid siginfo; BEFORE was written before this handler was installed. Only system
    // calls and plain memory of the thread are used.
    unsafe {
        let at = (*info).si_addr() as usize;
        let (first, end) = WATCHED.get();
        let page = PAGE.load(Relaxed);
        if first < end && at >= first & !(page - 1) && at < end {
            let errno = *libc::__errno_location();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let given = libc::mmap((at & !(page - 1)) as *mut libc::c_void, page, protection, flags, -1, 0);
            *libc::__errno_location() = errno;
            if given != libc::MAP_FAILED {
                FAULTED.set(true);
                return;
            }
        }
        let before = *(&raw const BEFORE).cast::<libc::sigaction>();
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The access is made again when this returns, and ends the process as it would have.
                let usual: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &usual, null_mut());
            }
            other if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(other);
                handler(signal, info, context);
            }
            other => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(other);
                handler(signal);
            }
        }
    }
}

fn install() {
    INSTALLED.call_once(|| {
        // SAFETY: sysconf has no conditions; the new action is plain data with a handler of the right shape.
        unsafe {
            PAGE.store(libc::sysconf(libc::_SC_PAGESIZE).max(4096) as usize, Relaxed);
            libc::sigaction(libc::SIGBUS, std::ptr::null(), (&raw mut BEFORE).cast());
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, null_mut());
        }
    });
}

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
    pub fn new(fd: RawFd, len: u64, writable: bool) -> Result<Mapping, i32> {
        install();
        let len = usize::try_from(len).map_err(|_| libc::ENOMEM)?;
        let at = map(null_mut(), len, writable, 0, fd, 0).ok_or_else(last)?;
        Ok(Mapping { at, len, fd, writable })
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
        // SAFETY: `guarded` has seen that the range lies inside; the rest is promised.
        self.guarded(offset, size, |at| unsafe { std::ptr::copy_nonoverlapping(at, to, size) })
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
        self.guarded(offset, size, |at| unsafe { std::ptr::copy_nonoverlapping(from, at, size) })
    }

    /// Waits until what was stored there is stable (msync(2)): 0 or a negative errno.
    pub fn flush(&self, offset: u64, size: usize) -> i64 {
        let (first, length) = self.pages(offset as usize, size);
        // SAFETY: the pages lie inside the mapping.
        let done = unsafe { libc::msync(self.at.add(first).cast(), length, libc::MS_SYNC) };
        if done == 0 { 0 } else { -i64::from(last()) }
    }

    /// First byte and length of the pages of a range.
    fn pages(&self, offset: usize, size: usize) -> (usize, usize) {
        let page = PAGE.load(Relaxed);
        let first = offset & !(page - 1);
        (first, offset + size - first)
    }

    #[inline]
    fn guarded(&self, offset: u64, size: usize, copy: impl FnOnce(*mut u8)) -> i64 {
        let inside =
            usize::try_from(offset).ok().filter(|at| at.checked_add(size).is_some_and(|end| end <= self.len));
        let Some(offset) = inside else { return -i64::from(libc::EINVAL) };
        // SAFETY: inside the mapping, as just seen.
        let at = unsafe { self.at.add(offset) };
        WATCHED.set((at as usize, at as usize + size));
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        copy(at);
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        WATCHED.set((0, 0));
        if FAULTED.replace(false) { self.faulted(offset, size) } else { size as i64 }
    }

    /// What became of a copy that met a fault; the file's own pages are mapped again.
    #[cold]
    fn faulted(&self, offset: usize, size: usize) -> i64 {
        let (first, length) = self.pages(offset, size);
        // SAFETY: inside the mapping.
        let at = unsafe { self.at.add(first) };
        if map(at, length, self.writable, libc::MAP_FIXED, self.fd, first as i64).is_none() {
            return -i64::from(last());
        }
        match length_of(self.fd) {
            Some(end) if end < (offset + size) as u64 => end.saturating_sub(offset as u64) as i64,
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

fn map(
    at: *mut u8,
    len: usize,
    writable: bool,
    flags: libc::c_int,
    fd: RawFd,
    offset: i64,
) -> Option<*mut u8> {
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: either a new mapping, or one over pages that belong to the caller's own.
    let at = unsafe { libc::mmap(at.cast(), len, protection, libc::MAP_SHARED | flags, fd, offset) };
    (at != libc::MAP_FAILED).then_some(at.cast())
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
            assert!(got.iter().all(|byte| *byte == 0));
            assert_eq!(map.write(3 * 4096, got.as_ptr(), 4096), 0);
        }
        file.set_len(5 * 4096).unwrap();
        file.write_all_at(&[7; 4096], 3 * 4096).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { map.read(3 * 4096, got.as_mut_ptr(), 4096) }, 4096);
        assert!(got[..4096].iter().all(|byte| *byte == 7));
    }
}
