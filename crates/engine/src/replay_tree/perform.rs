//! The backend of file-level requests: system calls on names and descriptors, in the calling thread.

use super::Files;
use crate::backend::Perform;
use crate::host::names::{access, followed};
use crate::payload::buffer::Pair;
use crate::payload::{Payload, of_object};
use crate::request::{FAILED, Request, lack};
use loadstone_trace::{NO_OBJECT, Op, flag};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Bytes asked for by a readdir: what the C library does.
const ENTRIES: usize = 32 << 10;

/// Name and content of the extended attribute that is set and read.
const ATTRIBUTE: &std::ffi::CStr = c"user.loadstone";

/// Performs requests on a tree, one at a time.
pub struct Named {
    files: Arc<Files>,
    buffers: Pair,
}

impl Named {
    /// In a thread of its own.
    pub fn new(files: Arc<Files>, payload: &Payload) -> Named {
        Named { files, buffers: Pair::new(payload) }
    }

    /// The descriptor of the directory that a name lies in.
    fn at(&self, dir: &Option<Arc<OwnedFd>>) -> RawFd {
        dir.as_ref().map_or(self.files.root(), |dir| dir.as_raw_fd())
    }

    fn fd(&self, r: &Request) -> io::Result<Arc<std::os::fd::OwnedFd>> {
        self.files.held(r.object, r.actor)
    }

    fn data(&mut self, r: &Request, write: bool) -> io::Result<i64> {
        let file = self.fd(r)?;
        let (fd, size, offset) = (file.as_raw_fd(), r.size as usize, r.offset as i64);
        if !write {
            let (data, _) = self.buffers.for_read(size);
            // SAFETY: the buffer holds `size` bytes.
            return done(unsafe { libc::pread(fd, data.cast(), size, offset) } as i64);
        }
        let number = of_object(self.files.first(r.object));
        let (data, _) = self.buffers.for_write(size, number, r.offset);
        let part = libc::iovec { iov_base: data.cast_mut().cast(), iov_len: size };
        let mut flags = 0;
        for (bit, how) in
            [(flag::APPEND, libc::RWF_APPEND), (flag::SYNC, libc::RWF_SYNC), (flag::FUA, libc::RWF_DSYNC)]
        {
            flags |= if r.flags & bit != 0 { how } else { 0 };
        }
        // SAFETY: one iovec over `size` bytes.
        done(unsafe { libc::pwritev2(fd, &part, 1, offset, flags) } as i64)
    }

    /// A call on the object's name, in the directory that it lies in.
    fn named(
        &self,
        r: &Request,
        mut call: impl FnMut(RawFd, *const libc::c_char) -> libc::c_int,
    ) -> io::Result<i64> {
        let (dir, name) = self.files.place(r.object)?;
        done(i64::from(call(self.at(&dir), name.as_ptr())))
    }

    /// A call on the names of both objects, each in its directory.
    fn pair(
        &self,
        r: &Request,
        call: impl Fn(RawFd, *const libc::c_char, RawFd, *const libc::c_char) -> libc::c_int,
    ) -> io::Result<i64> {
        let (from, name) = self.files.place(r.object)?;
        if r.other == NO_OBJECT {
            let new = self.files.untold()?;
            return done(i64::from(call(self.at(&from), name.as_ptr(), self.files.root(), new.as_ptr())));
        }
        let (to, new) = self.files.place(r.other)?;
        done(i64::from(call(self.at(&from), name.as_ptr(), self.at(&to), new.as_ptr())))
    }

    /// A call on the object's descriptor.
    fn described(&self, r: &Request, call: impl Fn(RawFd) -> libc::c_int) -> io::Result<i64> {
        let file = self.fd(r)?;
        done(i64::from(call(file.as_raw_fd())))
    }

    /// Makes the call of a request.
    ///
    /// All unsafe calls are alike: names end with a zero byte and live as long as the call, buffers hold what is
    /// asked for, descriptors are held open by the `Arc` of the file.
    #[allow(clippy::undocumented_unsafe_blocks, reason = "said once for all of them")]
    fn call(&mut self, op: Op, r: &Request) -> io::Result<i64> {
        let failed = r.flags & FAILED != 0;
        match op {
            Op::Read => self.data(r, false),
            Op::Write => self.data(r, true),
            Op::Open | Op::Create if failed => {
                // Whatever kept it from being made must do so again, so nothing is made.
                let refused = if op == Op::Create { libc::O_CREAT | libc::O_EXCL } else { 0 };
                self.files.open(r.object, r.actor, libc::O_RDWR | refused)?;
                self.files.close(r.object, r.actor);
                Ok(0)
            }
            Op::Open => self.files.open(r.object, r.actor, libc::O_RDWR | libc::O_CREAT).map(|()| 0),
            Op::Create => {
                let flags = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
                self.files.open(r.object, r.actor, flags).map(|()| 0)
            }
            Op::Close => {
                self.files.close(r.object, r.actor);
                Ok(0)
            }
            Op::Remove => {
                let done = self.named(r, |dir, name| unsafe { libc::unlinkat(dir, name, 0) });
                self.files.renewed(r.object);
                done
            }
            Op::Rmdir => {
                let done =
                    self.named(r, |dir, name| unsafe { libc::unlinkat(dir, name, libc::AT_REMOVEDIR) });
                self.files.renewed(r.object);
                done
            }
            Op::Mkdir => self.named(r, |dir, name| unsafe { libc::mkdirat(dir, name, 0o755) }),
            Op::Mknod => {
                self.named(r, |dir, name| unsafe { libc::mknodat(dir, name, libc::S_IFREG | 0o644, 0) })
            }
            Op::Rename => {
                // What kept one from being done in the trace may be what it must not replace.
                let flags = if failed { libc::RENAME_NOREPLACE } else { 0 };
                let done = self.pair(r, |from, name, to, new| unsafe {
                    match flags {
                        0 => libc::renameat(from, name, to, new),
                        _ => libc::syscall(libc::SYS_renameat2, from, name, to, new, flags) as libc::c_int,
                    }
                });
                self.files.renewed(r.object);
                if r.other != NO_OBJECT {
                    self.files.renewed(r.other);
                }
                done
            }
            Op::Link => self.pair(r, |from, name, to, new| unsafe { libc::linkat(from, name, to, new, 0) }),
            Op::Symlink => {
                let to = match r.other {
                    NO_OBJECT => c"nowhere".to_owned(),
                    other => self.files.leads(r.object, other)?,
                };
                self.named(r, |dir, name| unsafe { libc::symlinkat(to.as_ptr(), dir, name) })
            }
            Op::Readlink => {
                let mut content = [0u8; 4096];
                let found = self.named(r, |dir, name| unsafe {
                    libc::readlinkat(dir, name, content.as_mut_ptr().cast(), content.len()) as libc::c_int
                });
                found.map(|_| 0)
            }
            Op::Stat | Op::Lookup => {
                // SAFETY: plain data that the call fills in.
                let mut found: libc::stat = unsafe { std::mem::zeroed() };
                let found = &raw mut found;
                self.named(r, |dir, name| unsafe {
                    libc::fstatat(dir, name, found, libc::AT_SYMLINK_NOFOLLOW)
                })
            }
            // Of a link of the trace what it leads to.
            Op::Access if self.files.is_led(r.object) => {
                followed(self.files.root(), self.files.name(r.object)?).map(|_| 0)
            }
            Op::Access => {
                let (dir, name) = self.files.place(r.object)?;
                match access(self.at(&dir), name, libc::F_OK) {
                    0 => Ok(0),
                    failed => Err(io::Error::from_raw_os_error(-failed as i32)),
                }
            }
            Op::Setattr => self.named(r, |dir, name| unsafe {
                libc::utimensat(dir, name, std::ptr::null(), libc::AT_SYMLINK_NOFOLLOW)
            }),
            Op::Readdir | Op::Readdirplus => {
                let file = self.fd(r)?;
                let (data, _) = self.buffers.for_read(ENTRIES);
                let fd = file.as_raw_fd();
                // SAFETY: the buffer holds as many bytes.
                let read = done(unsafe { libc::syscall(libc::SYS_getdents64, fd, data, ENTRIES) })?;
                // Listed to its end; whoever lists it next begins anew.
                if read == 0 {
                    unsafe { libc::lseek(fd, 0, libc::SEEK_SET) };
                }
                Ok(0)
            }
            Op::Truncate => self.described(r, |fd| unsafe { libc::ftruncate(fd, r.size as i64) }),
            Op::Fallocate => self.described(r, |fd| unsafe {
                libc::fallocate(fd, 0, r.offset as i64, (r.size as i64).max(1))
            }),
            Op::Sync | Op::Commit => self.described(r, |fd| unsafe { libc::fsync(fd) }),
            Op::Datasync | Op::Flush => self.described(r, |fd| unsafe { libc::fdatasync(fd) }),
            Op::Discard => self.described(r, |fd| unsafe {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                libc::fallocate(fd, mode, r.offset as i64, (r.size as i64).max(1))
            }),
            Op::Getxattr => {
                let mut content = [0u8; 256];
                let data = content.as_mut_ptr();
                let found = self.described(r, |fd| unsafe {
                    libc::fgetxattr(fd, ATTRIBUTE.as_ptr(), data.cast(), 256) as libc::c_int
                });
                match found {
                    // It was another one's in the trace, which is not here.
                    Err(e) if e.raw_os_error() == Some(libc::ENODATA) => Ok(0),
                    other => other.map(|_| 0),
                }
            }
            Op::Setxattr => self.described(r, |fd| unsafe {
                libc::fsetxattr(fd, ATTRIBUTE.as_ptr(), ATTRIBUTE.as_ptr().cast(), 4, 0)
            }),
            Op::CopyRange => {
                if r.other == NO_OBJECT {
                    return self.data(r, true);
                }
                let (from, to) = (self.files.held(r.other, r.actor)?, self.fd(r)?);
                let (mut source, mut target) = (r.offset as i64, r.offset as i64);
                // SAFETY: both positions outlive the call.
                done(unsafe {
                    libc::copy_file_range(
                        from.as_raw_fd(),
                        &raw mut source,
                        to.as_raw_fd(),
                        &raw mut target,
                        r.size as usize,
                        0,
                    )
                } as i64)
            }
            Op::Mmap => {
                let file = self.fd(r)?;
                let (length, offset) = ((r.size as usize).max(1), r.offset as i64 & !4095);
                // SAFETY: a new mapping that nobody looks at and that is taken down at once.
                unsafe {
                    let (how, kind) = (libc::PROT_READ, libc::MAP_SHARED);
                    let at = libc::mmap(std::ptr::null_mut(), length, how, kind, file.as_raw_fd(), offset);
                    if at == libc::MAP_FAILED {
                        return Err(io::Error::last_os_error());
                    }
                    libc::munmap(at, length);
                }
                Ok(0)
            }
            Op::Fsstat | Op::Fsinfo | Op::Pathconf => {
                // SAFETY: plain data that the call fills in.
                let mut found: libc::statfs = unsafe { std::mem::zeroed() };
                done(i64::from(unsafe { libc::fstatfs(self.files.root(), &mut found) }))
            }
            Op::TxnBegin | Op::TxnCommit | Op::TxnAbort => {
                Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
            }
        }
    }
}

fn done(result: i64) -> io::Result<i64> {
    if result >= 0 { Ok(result) } else { Err(io::Error::last_os_error()) }
}

impl Named {
    /// Makes what a request lacks, or takes away what is in its way; where it cannot, the request fails.
    fn put_right(&self, r: &Request) -> io::Result<()> {
        let second = r.flags & lack::NOTHING != 0 && Op::from_code(r.op) == Some(Op::Link);
        let object = if second { r.other } else { r.object };
        let (dir, name) = self.files.place(object)?;
        let dir = self.at(&dir);
        // SAFETY: the name ends with a zero byte.
        let result = unsafe {
            if r.flags & lack::NOTHING != 0 {
                match libc::unlinkat(dir, name.as_ptr(), 0) {
                    0 => 0,
                    _ => libc::unlinkat(dir, name.as_ptr(), libc::AT_REMOVEDIR),
                }
            } else if r.flags & lack::DIRECTORY != 0 {
                libc::mkdirat(dir, name.as_ptr(), 0o755)
            } else {
                libc::mknodat(dir, name.as_ptr(), libc::S_IFREG | 0o644, 0)
            }
        };
        done(i64::from(result))?;
        self.files.renewed(object);
        Ok(())
    }
}

impl Perform for Named {
    fn before(&mut self, r: &Request) {
        if r.flags & lack::ANY != 0 && self.put_right(r).is_ok() {
            self.files.note_made_up();
        }
    }

    fn perform(&mut self, r: &Request) -> i64 {
        let Some(op) = Op::from_code(r.op) else { return -i64::from(libc::EINVAL) };
        let failed = r.flags & FAILED != 0;
        loop {
            return match self.call(op, r) {
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => continue,
                // It did in the trace, too.
                Err(_) if failed => 0,
                Err(e) => -i64::from(e.raw_os_error().unwrap_or(libc::EIO)),
                Ok(result) => {
                    if failed && !matches!(op, Op::Read | Op::Write) {
                        self.files.note_success();
                    }
                    if failed { 0 } else { result }
                }
            };
        }
    }
}
