//! Files that processes hold locks on, as proc(5) tells of all of them. In a container it tells of the container's alone, so
//! there each file is asked itself.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// The first pid namespace by its number (PROC_PID_INIT_INO of linux/proc_ns.h). Only there `/proc/locks` tells of all.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// A lock that somebody holds.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    /// Of the whole file, by flock(2).
    whole: bool,
    /// Its number; -1 of a lock that belongs to an open file (F_OFD_SETLK).
    process: i64,
    device: u64,
    inode: u64,
}

/// All locks.
pub struct Locked {
    others: Vec<Lock>,
    own: Vec<Lock>,
    /// Whether the kernel tells of this process.
    known: bool,
    /// Whether it tells of all.
    complete: bool,
}

impl Lock {
    fn is_of(&self, meta: &Metadata) -> bool {
        // The kernel names the device of the whole file system, and btrfs tells another one for each subvolume.
        self.inode == meta.ino() && (self.device == meta.dev() || libc::major(meta.dev()) == 0)
    }
}

impl Locked {
    /// Those that are held now.
    pub fn now() -> Locked {
        let text = std::fs::read_to_string("/proc/locks");
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        let known = text.is_ok();
        let complete = known && namespace.is_ok_and(|name| name.as_os_str() == FIRST_NAMESPACE);
        let text = text.unwrap_or_default();
        let is_own = |lock: &Lock| lock.process == i64::from(std::process::id());
        let (own, others) = text.lines().filter_map(lock).partition(is_own);
        Locked { others, own, known, complete }
    }

    /// Whether a file of this number in its file system may be locked.
    pub fn may_hold(&self, number: u64) -> bool {
        !self.complete || self.others.iter().any(|lock| lock.inode == number)
    }

    /// Whether this process holds one, or it is not known what it holds.
    pub fn is_own(&self, meta: &Metadata) -> bool {
        !self.known || self.own.iter().any(|lock| lock.is_of(meta))
    }

    /// Who holds a lock on a file, which `open` opens.
    pub fn holder(&self, meta: &Metadata, open: impl FnOnce() -> io::Result<File>) -> Option<String> {
        self.holder_where(meta, true, open)
    }

    /// Who holds one on bytes of it (fcntl(2)), as virtual machines and databases do.
    pub fn holder_of_records(
        &self,
        meta: &Metadata,
        open: impl FnOnce() -> io::Result<File>,
    ) -> Option<String> {
        self.holder_where(meta, false, open)
    }

    fn holder_where(
        &self,
        meta: &Metadata,
        whole: bool,
        open: impl FnOnce() -> io::Result<File>,
    ) -> Option<String> {
        let is_its = |lock: &&Lock| lock.is_of(meta) && (whole || !lock.whole);
        let found = self.others.iter().find(is_its).map(|lock| match lock.process {
            process @ 0.. => format!("process {process}"),
            _ => "another program".into(),
        });
        // Runs lock directories, and virtual machines devices.
        let kind = meta.file_type();
        let locked = kind.is_file() || kind.is_dir() || kind.is_block_device();
        if found.is_some() || self.complete || !locked || self.own.iter().any(|lock| is_its(&lock)) {
            return found;
        }
        let file = open().ok()?;
        let held = has_records(&file) || whole && is_locked(&file);
        held.then(|| "a program that is not seen from here".into())
    }
}

/// Who has locked bytes of a block device through any of its nodes. A lock belongs to the inode of the node, and virtual
/// machines and containers have nodes of their own.
pub fn holder_of_device(number: u64) -> Option<String> {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_other = |name: &str| name != own && name.bytes().all(|byte| byte.is_ascii_digit());
    processes.map(|entry| entry.path()).find_map(|process| {
        let name = process.file_name()?.to_str().filter(|name| is_other(name))?;
        let mut open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let locks = |fd: &std::fs::DirEntry| {
            let meta = std::fs::metadata(fd.path()).ok();
            meta.is_some_and(|meta| meta.file_type().is_block_device() && meta.rdev() == number)
                && std::fs::read_to_string(process.join("fdinfo").join(fd.file_name()))
                    .is_ok_and(|info| info.lines().filter_map(of_descriptor).any(|lock| !lock.whole))
        };
        open.any(|fd| locks(&fd)).then(|| format!("process {name}"))
    })
}

/// `lock: 1: POSIX  ADVISORY  WRITE 2193 fe:00:1024 0 EOF`, as proc_pid_fdinfo(5) tells of an open file.
fn of_descriptor(line: &str) -> Option<Lock> {
    lock(line.strip_prefix("lock:")?.trim_start())
}

/// Whether another program has locked bytes of it.
fn has_records(file: &File) -> bool {
    // SAFETY: zeros are the whole file from its start; the call changes the struct alone. Rustix asks for no such locks.
    unsafe {
        let mut range: libc::flock = std::mem::zeroed();
        range.l_type = libc::F_WRLCK as libc::c_short;
        libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) == 0
            && range.l_type != libc::F_UNLCK as libc::c_short
    }
}

/// Whether another program has locked it whole: a lock is tried, which ends with `file`.
fn is_locked(file: &File) -> bool {
    loadstone_files::lock(file, loadstone_files::Lock::Exclusive).is_ok_and(|free| !free)
}

/// `1: FLOCK  ADVISORY  WRITE 2193 fe:00:10207248 0 EOF`; what waits for a lock has an arrow.
fn lock(line: &str) -> Option<Lock> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let kind = words.next().filter(|kind| matches!(*kind, "FLOCK" | "POSIX" | "OFDLCK"))?;
    let mut words = words.skip(2);
    let process = words.next()?.parse().ok()?;
    let mut place = words.next()?.split(':');
    let mut hex = || u32::from_str_radix(place.next()?, 16).ok();
    let device = libc::makedev(hex()?, hex()?);
    Some(Lock { whole: kind == "FLOCK", process, device, inode: place.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let read = |line| lock(line).map(|lock| (lock.process, lock.device, lock.inode));
        let device = libc::makedev(0xfe, 1);
        assert_eq!(read("1: FLOCK  ADVISORY  WRITE 2193 fe:01:1020 0 EOF"), Some((2193, device, 1020)));
        assert_eq!(read("1: OFDLCK ADVISORY  READ  -1 fe:01:1020 0 EOF"), Some((-1, device, 1020)));
        assert_eq!(read("2: POSIX  ADVISORY  READ  7 fe:01:9 128 128"), Some((7, device, 9)));
        for line in [
            "2: -> POSIX  ADVISORY  READ  7 fe:01:9 128 128",
            "3: LEASE  ACTIVE READ 7 fe:01:9 0 EOF",
            "",
            "1:",
        ] {
            assert_eq!(read(line), None);
        }
    }
}
