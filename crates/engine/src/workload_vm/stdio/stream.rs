//! A stream of the C library on a copy of a descriptor.

use loadstone_plan::Act;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::fcntl_dupfd_cloexec;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};

unsafe extern "C" {
    // Of POSIX, but not in the libc crate: getc_unlocked(3), putc_unlocked(3).
    fn getc_unlocked(file: *mut libc::FILE) -> libc::c_int;
    fn putc_unlocked(byte: libc::c_int, file: *mut libc::FILE) -> libc::c_int;
}

/// A stream on a copy of a descriptor.
pub struct Stream {
    file: *mut libc::FILE,
    /// What the stream keeps its data in, if it was to be of a certain size.
    _room: Vec<u8>,
    /// Whether it was written last: C asks for a seek between reading and writing.
    writing: bool,
    /// Bytes from the file's begin.
    pub at: u64,
    /// Others may not see yet what was written.
    pub lags: bool,
}

/// The last error as a negative errno.
fn failure() -> i64 {
    -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

impl Stream {
    /// On `fd`, with a buffer of `room` bytes, or with 0 of what the C library takes; at the begin of the file.
    ///
    /// # Errors
    /// A negative errno.
    pub fn new(fd: BorrowedFd<'_>, room: usize) -> Result<Stream, i64> {
        let errno = |e: rustix::io::Errno| -i64::from(e.raw_os_error());
        let own = fcntl_dupfd_cloexec(fd, 0).map_err(errno)?;
        let access = fcntl_getfl(fd).map_err(errno)? & OFlags::ACCMODE;
        let mode = if access == OFlags::RDONLY { c"r" } else { c"r+" };
        // SAFETY: the mode ends with a zero byte, and the descriptor is new and nobody else's.
        let file = unsafe { libc::fdopen(own.as_raw_fd(), mode.as_ptr()) };
        if file.is_null() {
            return Err(failure());
        }
        // The stream's from now on.
        let _ = own.into_raw_fd();
        let mut kept = Vec::new();
        if kept.try_reserve_exact(room).is_err() {
            // SAFETY: the stream is new.
            unsafe { libc::fclose(file) };
            return Err(-i64::from(libc::ENOMEM));
        }
        kept.resize(room, 0u8);
        // SAFETY: the stream is new, the buffer lives as long as it does. A seek to the begin cannot be wrong.
        unsafe {
            if room > 0 {
                libc::setvbuf(file, kept.as_mut_ptr().cast(), libc::_IOFBF, room);
            }
            libc::fseek(file, 0, libc::SEEK_SET);
        }
        Ok(Stream { file, _room: kept, writing: false, at: 0, lags: false })
    }

    /// Hands what was written to the kernel; a negative errno when that fails.
    pub fn flush(&mut self) -> i64 {
        // SAFETY: the stream is open.
        if unsafe { libc::fflush(self.file) } == 0 { 0 } else { failure() }
    }

    pub fn turn(&mut self, writing: bool) {
        if self.writing != writing {
            // SAFETY: the stream is open.
            unsafe { libc::fseek(self.file, 0, libc::SEEK_CUR) };
            self.writing = writing;
        }
    }

    /// Moves up to `size` bytes from or to `data`, which has room for them; how many, or a negative errno.
    pub fn once(&mut self, act: Act, data: *mut u8, size: usize) -> i64 {
        let file = self.file;
        // SAFETY: the stream is open and this thread's own; `data` is as large as is said.
        let moved = unsafe {
            libc::clearerr(file);
            match act {
                Act::Fread => libc::fread(data.cast(), 1, size, file),
                Act::Fwrite => libc::fwrite(data.cast(), 1, size, file),
                Act::Getc => (0..size)
                    .take_while(|i| {
                        let byte = getc_unlocked(file);
                        if byte >= 0 {
                            data.add(*i).write(byte as u8);
                        }
                        byte >= 0
                    })
                    .count(),
                _ => {
                    (0..size).take_while(|i| putc_unlocked(i32::from(data.add(*i).read()), file) >= 0).count()
                }
            }
        };
        self.at += moved as u64;
        // SAFETY: as above.
        if moved < size && unsafe { libc::ferror(file) } != 0 { failure() } else { moved as i64 }
    }

    /// From the begin of the file.
    pub fn rewind(&mut self) {
        // SAFETY: the stream is open.
        unsafe { libc::fseek(self.file, 0, libc::SEEK_SET) };
        self.at = 0;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: open until here, with its buffer; its descriptor is its own.
        unsafe { libc::fclose(self.file) };
    }
}
