//! Files that processes hold locks on, as proc(5) tells of all of them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A lock that somebody else holds.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    /// Of the whole file, by flock(2).
    whole: bool,
    /// Its number; -1 of a lock that belongs to an open file (F_OFD_SETLK).
    process: i64,
    device: u64,
    inode: u64,
}

/// All locks of others.
pub struct Locked(Vec<Lock>);

impl Locked {
    /// Those that are held now; none where the kernel does not tell.
    pub fn now() -> Locked {
        let text = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        Locked(
            text.lines()
                .filter_map(lock)
                .filter(|lock| lock.process != i64::from(std::process::id()))
                .collect(),
        )
    }

    /// Numbers of the files in their file systems.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|lock| lock.inode)
    }

    /// Who holds a lock on a file.
    pub fn holder(&self, meta: &Metadata) -> Option<String> {
        self.holder_where(meta, |_| true)
    }

    /// Who holds one on bytes of it (fcntl(2)), as virtual machines and databases do.
    pub fn holder_of_records(&self, meta: &Metadata) -> Option<String> {
        self.holder_where(meta, |lock| !lock.whole)
    }

    fn holder_where(&self, meta: &Metadata, wanted: impl Fn(&Lock) -> bool) -> Option<String> {
        // The kernel names the device of the whole file system, and btrfs tells another one for each subvolume.
        let on = |device| meta.dev() == device || libc::major(meta.dev()) == 0;
        let found = self.0.iter().find(|lock| lock.inode == meta.ino() && on(lock.device) && wanted(lock));
        found.map(|lock| match lock.process {
            process @ 0.. => format!("process {process}"),
            _ => "another program".into(),
        })
    }
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
