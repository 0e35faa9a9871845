//! What each system call does to files, and the request it is.

use super::files::Open;
use super::line::{Call, Shown, number, shown, text};
use super::{Request, State, short};
use crate::chunk::MOST_BYTES;
use crate::{NO_OBJECT, NONE, Op, Result, flag};

/// Calls on names: op, and which arguments are directory and path.
const NAMES: &[(&[u8], Op, Option<usize>, usize)] = &[
    (b"stat", Op::Stat, None, 0),
    (b"lstat", Op::Stat, None, 0),
    (b"stat64", Op::Stat, None, 0),
    (b"lstat64", Op::Stat, None, 0),
    (b"newfstatat", Op::Stat, Some(0), 1),
    (b"fstatat64", Op::Stat, Some(0), 1),
    (b"statx", Op::Stat, Some(0), 1),
    (b"access", Op::Access, None, 0),
    (b"faccessat", Op::Access, Some(0), 1),
    (b"faccessat2", Op::Access, Some(0), 1),
    (b"mkdir", Op::Mkdir, None, 0),
    (b"mkdirat", Op::Mkdir, Some(0), 1),
    (b"rmdir", Op::Rmdir, None, 0),
    (b"unlink", Op::Remove, None, 0),
    (b"unlinkat", Op::Remove, Some(0), 1),
    (b"rename", Op::Rename, None, 0),
    (b"renameat", Op::Rename, Some(0), 1),
    (b"renameat2", Op::Rename, Some(0), 1),
    (b"link", Op::Link, None, 0),
    (b"linkat", Op::Link, Some(0), 1),
    (b"symlink", Op::Symlink, None, 1),
    (b"symlinkat", Op::Symlink, Some(1), 2),
    (b"readlink", Op::Readlink, None, 0),
    (b"readlinkat", Op::Readlink, Some(0), 1),
    (b"mknod", Op::Mknod, None, 0),
    (b"mknodat", Op::Mknod, Some(0), 1),
    (b"truncate", Op::Truncate, None, 0),
    (b"chmod", Op::Setattr, None, 0),
    (b"fchmodat", Op::Setattr, Some(0), 1),
    (b"chown", Op::Setattr, None, 0),
    (b"lchown", Op::Setattr, None, 0),
    (b"fchownat", Op::Setattr, Some(0), 1),
    (b"utimensat", Op::Setattr, Some(0), 1),
    (b"statfs", Op::Fsstat, None, 0),
    (b"getxattr", Op::Getxattr, None, 0),
    (b"lgetxattr", Op::Getxattr, None, 0),
    (b"setxattr", Op::Setxattr, None, 0),
    (b"lsetxattr", Op::Setxattr, None, 0),
];

/// Calls on descriptors that move no data.
const DESCRIPTORS: &[(&[u8], Op)] = &[
    (b"fstat", Op::Stat),
    (b"fstat64", Op::Stat),
    (b"fsync", Op::Sync),
    (b"syncfs", Op::Sync),
    (b"fdatasync", Op::Datasync),
    (b"sync_file_range", Op::Datasync),
    (b"getdents", Op::Readdir),
    (b"getdents64", Op::Readdir),
    (b"fchmod", Op::Setattr),
    (b"fchown", Op::Setattr),
    (b"futimesat", Op::Setattr),
    (b"ftruncate", Op::Truncate),
    (b"fstatfs", Op::Fsstat),
    (b"fgetxattr", Op::Getxattr),
    (b"fsetxattr", Op::Setxattr),
];

/// Reads and writes: op, and which argument is the offset, if it has one.
const DATA: &[(&[u8], Op, Option<usize>)] = &[
    (b"read", Op::Read, None),
    (b"readv", Op::Read, None),
    (b"pread64", Op::Read, Some(3)),
    (b"preadv", Op::Read, Some(3)),
    (b"preadv2", Op::Read, Some(3)),
    (b"write", Op::Write, None),
    (b"writev", Op::Write, None),
    (b"pwrite64", Op::Write, Some(3)),
    (b"pwritev", Op::Write, Some(3)),
    (b"pwritev2", Op::Write, Some(3)),
];

/// Calls that make descriptors of what is no file: sockets, queues of events, clocks.
const NO_FILES: &[&[u8]] = &[
    b"socket",
    b"accept",
    b"accept4",
    b"epoll_create",
    b"epoll_create1",
    b"eventfd",
    b"eventfd2",
    b"inotify_init",
    b"inotify_init1",
    b"io_uring_setup",
    b"perf_event_open",
    b"pidfd_open",
    b"signalfd",
    b"signalfd4",
    b"timerfd_create",
    b"userfaultfd",
];

const OTHERS: &[&[u8]] = &[
    b"open",
    b"openat",
    b"openat2",
    b"creat",
    b"close",
    b"fallocate",
    b"copy_file_range",
    b"sendfile",
    b"mmap",
];

/// Calls that make processes and threads.
pub const FORKS: &[&[u8]] = &[b"fork", b"vfork", b"clone", b"clone3"];

/// Whether a call of this name may be a request.
pub fn may_be_request(name: &[u8]) -> bool {
    NAMES.iter().any(|(known, ..)| *known == name)
        || DESCRIPTORS.iter().any(|(known, _)| *known == name)
        || DATA.iter().any(|(known, ..)| *known == name)
        || OTHERS.contains(&name)
}

/// The number of a descriptor.
fn descriptor(arg: &[u8]) -> Option<i64> {
    number(shown(arg).0)
}

fn has(arg: &[u8], word: &[u8]) -> bool {
    arg.split(|c| !(c.is_ascii_alphanumeric() || *c == b'_')).any(|part| part == word)
}

/// The size of a regular file in what `stat` or `statx` found.
fn size_in(arg: &[u8]) -> Option<u64> {
    has(arg, b"S_IFREG").then_some(())?;
    let keys = [&b"st_size="[..], b"stx_size="];
    let at = keys.iter().find_map(|key| Some(memchr::memmem::find(arg, key)? + key.len()))?;
    let digits = arg[at..].iter().take_while(|c| c.is_ascii_digit()).count();
    u64::try_from(number(&arg[at..at + digits])?).ok()
}

/// The number that a pointer leads to, before the call: `[16384]`, `[0] => [16384]`; `None` of `NULL`.
fn pointed(arg: &[u8]) -> Option<i64> {
    let inner = arg.strip_prefix(b"[")?;
    let digits = inner.iter().take_while(|c| c.is_ascii_digit()).count();
    number(&inner[..digits])
}

/// What a mode of `fallocate` asks for; `None` where bytes of a file move, which no request does.
fn allocates(mode: &[u8]) -> Option<Op> {
    // Numbers of `linux/falloc.h`, as `-X raw` shows them.
    let bits = number(mode).unwrap_or(0);
    let asks = |name: &[u8], bit: i64| has(mode, name) || bits & bit != 0;
    let moves = asks(b"FALLOC_FL_COLLAPSE_RANGE", 0x08) || asks(b"FALLOC_FL_INSERT_RANGE", 0x20);
    let punches = asks(b"FALLOC_FL_PUNCH_HOLE", 0x02);
    (!moves).then_some(if punches { Op::Discard } else { Op::Fallocate })
}

/// Bytes as far as a request may reach.
fn bounded(offset: u64, size: u64) -> Option<(i64, i64)> {
    let end = offset.checked_add(size).filter(|end| *end <= MOST_BYTES as u64);
    end.map(|_| (offset.cast_signed(), size.cast_signed()))
}

impl State {
    fn plain(&mut self, op: Op, path: &[u8]) -> Option<Request> {
        let object = self.paths.text(path);
        let (offset, size, flags) = (NONE, NONE, 0);
        Some(Request { op, object, offset, size, flags, result: NONE, other: NO_OBJECT })
    }

    /// The descriptor of an argument, which stands from now on for what strace shows that it does.
    fn learn(&mut self, pid: u32, arg: &[u8]) -> Option<i64> {
        let (fd, shown) = shown(arg);
        let Some(fd) = number(fd) else {
            if let (b"AT_FDCWD", Shown::File(path)) = (fd, shown) {
                self.files.enter(pid, path);
            }
            return None;
        };
        match shown {
            Shown::File(path) if !self.files.is_shown_as(pid, fd, &path) => {
                // Opened before the trace began, or closed without a line and opened again.
                let open = Open { shown: path.clone(), path, position: 0, append: false, flags: 0 };
                self.files.insert(pid, fd, open, false);
            }
            Shown::Other => {
                self.files.close(pid, fd);
                return None;
            }
            Shown::File(_) | Shown::Nothing => {}
        }
        Some(fd)
    }

    /// Takes a call: the request it is, or `None`.
    ///
    /// # Errors
    /// When it lacks an argument it must have.
    pub fn request(&mut self, pid: u32, call: &Call) -> Result<Option<Request>> {
        let failed = call.result.is_some_and(|result| result < 0);
        let arg = |at: usize| call.args.get(at).copied().ok_or_else(|| short(call));
        if let Some((_, op, from)) = DATA.iter().find(|(name, ..)| *name == call.name) {
            let fd = self.learn(pid, arg(0)?);
            let own = from.map(&arg).transpose()?.and_then(number);
            return self.data(pid, call, *op, fd, own);
        }
        if let Some((_, op, from, at)) = NAMES.iter().find(|(name, ..)| *name == call.name) {
            let directory = from.map(&arg).transpose()?.and_then(|fd| self.learn(pid, fd));
            return self.named(pid, call, *op, directory, arg(*at)?);
        }
        if let Some((_, op)) = DESCRIPTORS.iter().find(|(name, _)| *name == call.name) {
            let Some(fd) = self.learn(pid, arg(0)?) else { return Ok(None) };
            let Some(path) = self.files.get(pid, fd).map(|open| open.path.clone()) else { return Ok(None) };
            self.failed += u64::from(failed);
            let mut size = NONE;
            if *op == Op::Stat && !failed {
                self.sized(&path, call);
            }
            if *op == Op::Truncate {
                let length = arg(1).ok().and_then(number).unwrap_or(0).max(0).unsigned_abs();
                if !failed {
                    self.files.grow(&path, length, true);
                }
                size = bounded(0, length).map_or(NONE, |(_, size)| size);
            }
            return Ok(self.plain(*op, &path).map(|request| Request { size, ..request }));
        }
        match call.name {
            b"open" | b"openat" | b"openat2" | b"creat" => self.open(pid, call),
            b"close" => {
                let Some(fd) = self.learn(pid, arg(0)?) else { return Ok(None) };
                Ok(self.files.close(pid, fd).and_then(|path| self.plain(Op::Close, &path)))
            }
            b"fallocate" => {
                let Some(fd) = self.learn(pid, arg(0)?) else { return Ok(None) };
                let place = number(arg(2)?).zip(number(arg(3)?));
                let Some(op) = allocates(arg(1)?) else { return Ok(None) };
                let Some(path) = self.files.get(pid, fd).map(|open| open.path.clone()) else {
                    return Ok(None);
                };
                self.failed += u64::from(failed);
                let place = place.and_then(|(offset, size)| {
                    bounded(u64::try_from(offset).ok()?, u64::try_from(size).ok()?)
                });
                let (offset, size) = place.unwrap_or((NONE, NONE));
                Ok(self.plain(op, &path).map(|request| Request { offset, size, ..request }))
            }
            b"copy_file_range" => self.copied(pid, call, [0, 1], [2, 3]),
            b"sendfile" | b"sendfile64" => {
                let to = self.learn(pid, arg(0)?);
                if to.is_some_and(|fd| self.files.get(pid, fd).is_some()) {
                    // The target's position is its own: the last argument is a length, and no place.
                    return self.copied(pid, call, [1, 2], [0, 3]);
                }
                // To a socket or a pipe it is a read.
                let fd = self.learn(pid, arg(1)?);
                self.data(pid, call, Op::Read, fd, call.args.get(2).copied().and_then(pointed))
            }
            b"mmap" => {
                let Some(fd) = self.learn(pid, arg(4)?) else { return Ok(None) };
                let Some(path) = self.files.get(pid, fd).map(|open| open.path.clone()) else {
                    return Ok(None);
                };
                let place = number(arg(5)?).zip(number(arg(1)?));
                let place = place.and_then(|(offset, size)| {
                    bounded(u64::try_from(offset).ok()?, u64::try_from(size).ok()?)
                });
                self.failed += u64::from(failed);
                let (offset, size) = place.unwrap_or((NONE, NONE));
                Ok(self.plain(Op::Mmap, &path).map(|request| Request { offset, size, ..request }))
            }
            _ => {
                self.follow(pid, call);
                Ok(None)
            }
        }
    }

    /// A read or write, at an offset of its own or at the file's position.
    fn data(
        &mut self,
        pid: u32,
        call: &Call,
        op: Op,
        fd: Option<i64>,
        own: Option<i64>,
    ) -> Result<Option<Request>> {
        // The kernel takes no notice of the offset of a write that appends.
        let appends =
            call.name == b"pwritev2" && call.args.last().is_some_and(|flags| has(flags, b"RWF_APPEND"));
        let own = own.and_then(|offset| u64::try_from(offset).ok()).filter(|_| !appends);
        let done = call.result.unwrap_or(-1);
        let Some((path, append)) =
            fd.and_then(|fd| self.files.get(pid, fd)).map(|o| (o.path.clone(), o.append || appends))
        else {
            // Standard input and output are nearly always there before, and what has no positions is no file.
            let is_file = |fd: i64| own.is_some() || fd > 2 && !self.no_files.contains(&fd);
            self.unknown += u64::from(done >= 0 && fd.is_some_and(is_file));
            return Ok(None);
        };
        let end = self.files.size(&path);
        let Some(open) = fd.and_then(|fd| self.files.get(pid, fd)) else { return Ok(None) };
        let at = match own {
            Some(offset) => offset,
            None if append && op == Op::Write => end,
            None => open.position,
        };
        let size = done.max(0).unsigned_abs();
        let flags = if append && op == Op::Write { open.flags | flag::APPEND } else { open.flags };
        if own.is_none() {
            open.position = at.saturating_add(size);
        }
        self.failed += u64::from(done < 0);
        let Some((offset, size)) = bounded(at, size) else {
            self.far += 1;
            return Ok(None);
        };
        self.files.grow(&path, (offset + size).unsigned_abs(), false);
        let object = self.paths.text(&path);
        Ok(Some(Request { op, object, offset, size, flags, result: NONE, other: NO_OBJECT }))
    }

    /// A copy within the kernel: a request of the file that is written. Where it reads elsewhere than it writes it is a read
    /// and a write, as a request has one offset. The arguments' places: descriptor and offset of both.
    fn copied(&mut self, pid: u32, call: &Call, from: [usize; 2], to: [usize; 2]) -> Result<Option<Request>> {
        let arg = |at: usize| call.args.get(at).copied().ok_or_else(|| short(call));
        let (source, target) = (self.learn(pid, arg(from[0])?), self.learn(pid, arg(to[0])?));
        let (from, to) = (pointed(arg(from[1])?), pointed(arg(to[1])?));
        let failed = self.failed;
        let read = self.data(pid, call, Op::Read, source, from)?;
        // One call fails once.
        self.failed = failed;
        let Some(write) = self.data(pid, call, Op::Write, target, to)? else { return Ok(read) };
        let Some(read) = read else { return Ok(Some(write)) };
        if read.offset != write.offset && write.size > 0 {
            self.before = Some(read);
            return Ok(Some(write));
        }
        Ok(Some(Request { op: Op::CopyRange, other: read.object, ..write }))
    }

    /// A call on a name.
    fn named(
        &mut self,
        pid: u32,
        call: &Call,
        op: Op,
        directory: Option<i64>,
        name: &[u8],
    ) -> Result<Option<Request>> {
        let failed = call.result.is_some_and(|result| result < 0);
        let name = match text(name) {
            Some(name) => name,
            None if name == b"NULL" => Vec::new(),
            None => return Ok(None),
        };
        let path = match directory {
            // An empty name, or none, means the descriptor itself.
            Some(fd) if name.is_empty() => match self.files.get(pid, fd) {
                Some(open) => open.path.clone(),
                None => return Ok(None),
            },
            None if name.is_empty() => return Ok(None),
            from => self.files.path(pid, from, &name),
        };
        // Two names that change places are no request that there is.
        if call.args.last().is_some_and(|flags| has(flags, b"RENAME_EXCHANGE")) {
            return Ok(None);
        }
        let op = match op {
            Op::Remove if call.args.last().is_some_and(|flags| has(flags, b"AT_REMOVEDIR")) => Op::Rmdir,
            op => op,
        };
        self.failed += u64::from(failed);
        if !failed {
            match op {
                Op::Remove => self.files.grow(&path, 0, true),
                Op::Truncate => {
                    let size = call.args.get(1).and_then(|size| number(size)).unwrap_or(0);
                    self.files.grow(&path, size.max(0).unsigned_abs(), true);
                }
                Op::Stat => self.sized(&path, call),
                _ => {}
            }
        }
        let other = self.second(pid, call, &path);
        let size = match op {
            Op::Truncate => call.args.get(1).and_then(|size| number(size)).filter(|size| *size >= 0),
            _ => None,
        };
        let size = size.and_then(|size| bounded(0, size.unsigned_abs())).map_or(NONE, |(_, size)| size);
        Ok(self.plain(op, &path).map(|request| Request { other, size, ..request }))
    }

    /// Learns the size that a call found its file to have.
    fn sized(&mut self, path: &[u8], call: &Call) {
        if let Some(size) = call.args.iter().find_map(|arg| size_in(arg)) {
            self.files.grow(path, size, true);
        }
    }

    /// The second name of a call that has two.
    fn second(&mut self, pid: u32, call: &Call, path: &[u8]) -> u32 {
        // Positions of directory and name.
        let (from, at) = match call.name {
            b"rename" | b"link" => (None, 1),
            b"renameat" | b"renameat2" | b"linkat" => (Some(2), 3),
            b"symlink" | b"symlinkat" => (None, 0),
            _ => return NO_OBJECT,
        };
        let Some(name) = call.args.get(at).and_then(|arg| text(arg)) else { return NO_OBJECT };
        let directory = from.and_then(|at: usize| call.args.get(at).copied());
        let directory = directory.and_then(|arg| self.learn(pid, arg));
        let is_symlink = call.name.starts_with(b"symlink");
        let whole = if is_symlink && !name.starts_with(b"/") {
            // A link's content is read from where the link is.
            let end = path.iter().rposition(|c| *c == b'/').unwrap_or(0);
            [&path[..end], b"/", &name].concat()
        } else {
            self.files.path(pid, directory, &name)
        };
        if !is_symlink && call.result == Some(0) {
            self.files.give_name(&whole);
        }
        self.paths.text(&whole)
    }

    fn open(&mut self, pid: u32, call: &Call) -> Result<Option<Request>> {
        let at = usize::from(call.name.starts_with(b"openat"));
        let arg = |at: usize| call.args.get(at).copied().ok_or_else(|| short(call));
        let directory = if at == 1 { self.learn(pid, arg(0)?) } else { None };
        let Some(name) = text(arg(at)?) else { return Ok(None) };
        let flags = if call.name == b"creat" { &b"O_WRONLY|O_CREAT|O_TRUNC"[..] } else { arg(at + 1)? };
        let path = match (self.files.path(pid, directory, &name), &call.returned) {
            // A relative name, of a directory that is not known.
            (path, Shown::File(shown)) if !path.starts_with(b"/") && shown.ends_with(&path) => shown.clone(),
            (path, _) => path,
        };
        // A file without a name in the directory that is named.
        let unnamed = has(flags, b"O_TMPFILE") && call.result.is_some_and(|fd| fd >= 0);
        let path = match &call.returned {
            Shown::File(shown) if unnamed => shown.clone(),
            _ if unnamed => {
                self.unnamed += 1;
                [&path[..], format!("/#unnamed-{}", self.unnamed).as_bytes()].concat()
            }
            _ => path,
        };
        let made = unnamed || has(flags, b"O_CREAT") && (has(flags, b"O_EXCL") || has(flags, b"O_TRUNC"));
        let Some(fd) = call.result.filter(|fd| *fd >= 0) else {
            self.failed += 1;
            return Ok(self.plain(Op::Open, &path));
        };
        if call.returned == Shown::Other {
            self.files.close(pid, fd);
            return Ok(None);
        }
        if has(flags, b"O_TRUNC") {
            self.files.grow(&path, 0, true);
        }
        let mut bits = 0;
        for (word, bit) in
            [(&b"O_SYNC"[..], flag::SYNC | flag::FUA), (b"O_DSYNC", flag::FUA), (b"O_DIRECT", flag::DIRECT)]
        {
            bits |= if has(flags, word) { bit } else { 0 };
        }
        let shown = match &call.returned {
            Shown::File(shown) => shown.clone(),
            Shown::Other | Shown::Nothing => Vec::new(),
        };
        let append = has(flags, b"O_APPEND");
        let open = Open { path: path.clone(), shown, position: 0, append, flags: bits };
        self.files.insert(pid, fd, open, has(flags, b"O_CLOEXEC"));
        Ok(self.plain(if made { Op::Create } else { Op::Open }, &path))
    }

    /// Calls that are no requests but say what descriptors and processes become.
    fn follow(&mut self, pid: u32, call: &Call) {
        let arg = |at: usize| call.args.get(at).copied().unwrap_or_default();
        let Some(result) = call.result.filter(|result| *result >= 0) else { return };
        let first = descriptor(arg(0));
        match (call.name, first) {
            (b"io_uring_enter", _) => self.rings += 1,
            (b"io_submit" | b"splice" | b"tee" | b"vmsplice", _) if result > 0 => self.unread += 1,
            (b"lseek" | b"_llseek", Some(fd)) => {
                let Some(open) = self.files.get(pid, fd) else { return };
                // `_llseek` tells where it came to in brackets, and returns 0.
                let (result, whence) = match call.name {
                    b"_llseek" => (pointed(arg(2)).unwrap_or(0), arg(3)),
                    _ => (result, arg(2)),
                };
                open.position = result.max(0).unsigned_abs();
                let path = open.path.clone();
                if let (b"SEEK_END", Some(from)) = (whence, number(arg(1)))
                    && let Ok(size) = u64::try_from(result.saturating_sub(from))
                {
                    self.files.grow(&path, size, true);
                }
            }
            (b"dup" | b"dup2" | b"dup3", Some(fd)) => {
                if self.no_files.contains(&fd) {
                    self.no_files.insert(result);
                }
                self.files.duplicate(pid, fd, result, has(arg(2), b"O_CLOEXEC"));
            }
            (b"fcntl" | b"fcntl64", Some(fd)) => match arg(1) {
                b"F_DUPFD" => self.files.duplicate(pid, fd, result, false),
                b"F_DUPFD_CLOEXEC" => self.files.duplicate(pid, fd, result, true),
                b"F_SETFD" => self.files.close_on_exec(pid, fd, has(arg(2), b"FD_CLOEXEC")),
                _ => {}
            },
            // Descriptors of pipes and sockets stand for no file.
            (name, _) if NO_FILES.contains(&name) => {
                self.files.close(pid, result);
                self.no_files.insert(result);
            }
            (b"pipe" | b"pipe2" | b"socketpair", _) => {
                let list = call.args.iter().find(|arg| arg.starts_with(b"["));
                let ends = list.into_iter().flat_map(|list| list.split(|c| !c.is_ascii_digit()));
                for end in ends.filter_map(number) {
                    self.files.close(pid, end);
                    self.no_files.insert(end);
                }
            }
            (name, _) if FORKS.contains(&name) && result > 0 => {
                let shares = call.args.iter().any(|arg| has(arg, b"CLONE_FILES"));
                if let Ok(child) = u32::try_from(result) {
                    self.files.fork(pid, child, shares);
                }
            }
            (b"execve" | b"execveat", _) => self.files.exec(pid),
            (b"chdir", _) => {
                if let Some(name) = text(arg(0)) {
                    let path = self.files.path(pid, None, &name);
                    self.files.enter(pid, path);
                }
            }
            (b"fchdir", Some(fd)) => {
                if let Some(path) = self.files.get(pid, fd).map(|open| open.path.clone()) {
                    self.files.enter(pid, path);
                }
            }
            _ => {}
        }
    }
}
