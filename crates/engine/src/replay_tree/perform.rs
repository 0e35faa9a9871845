//! The backend of file-level requests: system calls on names and descriptors, in the calling thread.

use super::Files;
use crate::backend::Perform;
use crate::host::names::{access, followed, refused};
use crate::payload::buffer::Pair;
use crate::payload::{Payload, of_object};
use crate::request::{FAILED, Request, lack};
use loadstone_trace::{NO_OBJECT, Op, flag};
use rustix::fs::{self, Access, AtFlags, FallocateFlags, FileType, Mode, RawDir, RenameFlags, SeekFrom};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, XattrFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::slice;
use std::sync::Arc;

/// Result of a call that returns nothing.
type Done = rustix::io::Result<()>;

/// Bytes asked for by a readdir: what the C library does.
const ENTRIES: usize = 32 << 10;

/// Name and content of the extended attribute that is set and read.
const ATTRIBUTE: &CStr = c"user.loadstone";

/// Permissions of what is made.
const DIRECTORY: Mode = Mode::from_bits_retain(0o755);
const FILE: Mode = Mode::from_bits_retain(0o644);

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

    fn fd(&self, r: &Request) -> io::Result<Arc<OwnedFd>> {
        self.files.held(r.object, r.actor)
    }

    fn data(&mut self, r: &Request, write: bool) -> io::Result<i64> {
        let file = self.fd(r)?;
        let (fd, size, offset) = (file.as_raw_fd(), r.size as usize, r.offset as i64);
        if !write {
            let (data, _) = self.buffers.for_read(size);
            // SAFETY: the buffer holds `size` bytes, or is null, which only the kernel can be handed.
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
        // SAFETY: one iovec over `size` bytes, or none.
        done(unsafe { libc::pwritev2(fd, &part, 1, offset, flags) } as i64)
    }

    /// A call on the object's name, in the directory that it lies in.
    fn named(&self, r: &Request, call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Done) -> io::Result<i64> {
        let (dir, name) = self.files.place(r.object)?;
        call(dir.as_fd(), name)?;
        Ok(0)
    }

    /// A call on the names of both objects, each in its directory.
    fn pair(
        &self,
        r: &Request,
        call: impl FnOnce((BorrowedFd<'_>, &CStr), (BorrowedFd<'_>, &CStr)) -> Done,
    ) -> io::Result<i64> {
        let (from, name) = self.files.place(r.object)?;
        if r.other == NO_OBJECT {
            call((from.as_fd(), name), (self.files.root(), &self.files.untold()?))?;
        } else {
            let (to, new) = self.files.place(r.other)?;
            call((from.as_fd(), name), (to.as_fd(), new))?;
        }
        Ok(0)
    }

    /// A call on the object's descriptor.
    fn described(&self, r: &Request, call: impl FnOnce(&OwnedFd) -> Done) -> io::Result<i64> {
        call(&*self.fd(r)?)?;
        Ok(0)
    }

    /// Makes the call of a request.
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
                let done = self.named(r, |dir, name| fs::unlinkat(dir, name, AtFlags::empty()));
                self.files.renewed(r.object);
                done
            }
            Op::Rmdir => {
                let done = self.named(r, |dir, name| fs::unlinkat(dir, name, AtFlags::REMOVEDIR));
                self.files.renewed(r.object);
                done
            }
            Op::Mkdir => self.named(r, |dir, name| fs::mkdirat(dir, name, DIRECTORY)),
            Op::Mknod => self.named(r, |dir, name| fs::mknodat(dir, name, FileType::RegularFile, FILE, 0)),
            Op::Rename => {
                // What kept one from being done in the trace may be what it must not replace.
                let done = self.pair(r, |(from, name), (to, new)| match failed {
                    false => fs::renameat(from, name, to, new),
                    true => fs::renameat_with(from, name, to, new, RenameFlags::NOREPLACE),
                });
                self.files.renewed(r.object);
                if r.other != NO_OBJECT {
                    self.files.renewed(r.other);
                }
                done
            }
            Op::Link => {
                self.pair(r, |(from, name), (to, new)| fs::linkat(from, name, to, new, AtFlags::empty()))
            }
            Op::Symlink => {
                let to = match r.other {
                    NO_OBJECT => c"nowhere".to_owned(),
                    other => self.files.leads(r.object, other)?,
                };
                self.named(r, |dir, name| fs::symlinkat(&to, dir, name))
            }
            Op::Readlink => {
                let mut content = [0u8; 4096];
                self.named(r, |dir, name| fs::readlinkat_raw(dir, name, &mut content[..]).map(drop))
            }
            Op::Stat | Op::Lookup => {
                self.named(r, |dir, name| fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(drop))
            }
            // Of a link of the trace what it leads to.
            Op::Access if self.files.is_led(r.object) => {
                followed(self.files.root(), self.files.name(r.object)?).map(|_| 0)
            }
            Op::Access => {
                let (dir, name) = self.files.place(r.object)?;
                access(dir.as_fd(), name, Access::EXISTS).map(|()| 0)
            }
            Op::Setattr => {
                let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
                let now = Timestamps { last_access: now, last_modification: now };
                self.named(r, |dir, name| fs::utimensat(dir, name, &now, AtFlags::SYMLINK_NOFOLLOW))
            }
            Op::Readdir | Op::Readdirplus => {
                let file = self.fd(r)?;
                let (data, _) = self.buffers.for_read(ENTRIES);
                if data.is_null() {
                    return Err(Errno::FAULT.into());
                }
                // SAFETY: the buffer holds as many bytes.
                let room = unsafe { slice::from_raw_parts_mut(data.cast::<MaybeUninit<u8>>(), ENTRIES) };
                match RawDir::new(&file, room).next() {
                    Some(read) => {
                        read?;
                    }
                    // Listed to its end; whoever lists it next begins anew.
                    None => drop(fs::seek(&file, SeekFrom::Start(0))),
                }
                Ok(0)
            }
            Op::Truncate => self.described(r, |file| fs::ftruncate(file, r.size)),
            Op::Fallocate | Op::Discard => {
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let how = if op == Op::Discard { punch } else { FallocateFlags::empty() };
                self.described(r, |file| fs::fallocate(file, how, r.offset, r.size.max(1)))
            }
            Op::Sync | Op::Commit => self.described(r, |file| fs::fsync(file)),
            Op::Datasync | Op::Flush => self.described(r, |file| fs::fdatasync(file)),
            Op::Getxattr => {
                let mut content = [0u8; 256];
                self.described(r, |file| match fs::fgetxattr(file, ATTRIBUTE, &mut content[..]) {
                    // It was another one's in the trace, which is not here.
                    Err(Errno::NODATA) => Ok(()),
                    found => found.map(drop),
                })
            }
            Op::Setxattr => self.described(r, |file| {
                fs::fsetxattr(file, ATTRIBUTE, &ATTRIBUTE.to_bytes()[..4], XattrFlags::empty())
            }),
            Op::CopyRange => {
                if r.other == NO_OBJECT {
                    return self.data(r, true);
                }
                let (from, to) = (self.files.held(r.other, r.actor)?, self.fd(r)?);
                let (mut source, mut target) = (r.offset, r.offset);
                let (source, target) = (Some(&mut source), Some(&mut target));
                Ok(fs::copy_file_range(from, source, to, target, r.size as usize)? as i64)
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
                fs::fstatfs(self.files.root())?;
                Ok(0)
            }
            Op::TxnBegin | Op::TxnCommit | Op::TxnAbort => Err(Errno::OPNOTSUPP.into()),
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
        if r.flags & lack::NOTHING != 0 {
            fs::unlinkat(&dir, name, AtFlags::empty())
                .or_else(|_| fs::unlinkat(&dir, name, AtFlags::REMOVEDIR))?;
        } else if r.flags & lack::DIRECTORY != 0 {
            fs::mkdirat(&dir, name, DIRECTORY)?;
        } else {
            fs::mknodat(&dir, name, FileType::RegularFile, FILE, 0)?;
        }
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
                Err(e) => refused(&e),
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
