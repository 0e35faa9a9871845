//! Files that were read in an earlier snapshot and need not be read again.
//!
//! A file is taken for one that was read if it is the same inode with the same size, mtime and ctime, and its ctime
//! lies well before the time at which the two could begin to differ. The kernel sets ctime at every change and no program
//! can set it back (inode(7)), but the clock it is taken from moves in ticks, and a snapshot takes a moment to make.
//!
//! An inode number means the same file within one file system, so hard links between snapshots are known (they can only
//! differ from when the scan began). Every subvolume of btrfs is a file system of its own; two of them with a common
//! past have the same numbers, and parted when the snapshot between them was made (BTRFS_IOC_GET_SUBVOL_INFO).

use crate::tree::Tree;
use rustc_hash::FxHashMap;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When and how large a file was; mtime and ctime in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: i128,
    changed: i128,
}

impl Stamp {
    pub fn of(meta: &Metadata) -> Stamp {
        let nanoseconds = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
        Stamp {
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Where an inode number means one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Home {
    Device(u64),
    /// Subvolumes with a common past.
    Family(usize),
}

/// A file, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Inode(Home, u64);

/// A file that was read.
#[derive(Clone, Copy)]
struct Sight {
    /// The root below which it was read.
    root: usize,
    /// Snapshot and number of the file there.
    tree: u32,
    file: u32,
    stamp: Stamp,
}

/// A subvolume of btrfs.
#[derive(Clone, Copy)]
pub(super) struct Subvolume {
    uuid: [u8; 16],
    /// Of what it is a snapshot; zeros where it is none.
    parent: [u8; 16],
    /// When it was made, nanoseconds since 1970.
    pub made: i128,
}

/// The root of a snapshot.
struct Root {
    device: u64,
    subvolume: Option<(Subvolume, usize)>,
}

/// Files that were read and may be met again.
pub(super) struct Seen {
    files: FxHashMap<Inode, Sight>,
    roots: Vec<Root>,
    begun: i128,
    settled: i128,
}

impl Seen {
    /// `settled`: how long a file must have been left alone before two snapshots could differ.
    pub fn new(settled: Duration) -> Seen {
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        Seen { files: FxHashMap::default(), roots: Vec::new(), begun, settled: settled.as_nanos() as i128 }
    }

    /// A directory is begun.
    pub fn enter(&mut self, root: &Path, device: u64) {
        let subvolume = Subvolume::of(root).map(|subvolume| {
            let kin = |root: &Root| root.subvolume.filter(|(other, _)| subvolume.parted(other).is_some());
            let family = self.roots.iter().find_map(kin).map_or(self.roots.len(), |(_, family)| family);
            (subvolume, family)
        });
        self.roots.push(Root { device, subvolume });
    }

    /// Which file that is, if it may be met in another snapshot.
    pub fn inode(&self, meta: &Metadata) -> Option<Inode> {
        let root = self.roots.last()?;
        match root.subvolume {
            Some((_, family)) if root.device == meta.dev() => Some(Inode(Home::Family(family), meta.ino())),
            _ => (meta.nlink() > 1).then(|| Inode(Home::Device(meta.dev()), meta.ino())),
        }
    }

    /// The snapshot and file in which it was read, if it is the same.
    pub fn find(&self, inode: Inode, stamp: Stamp) -> Option<(u32, u32)> {
        let sight = self.files.get(&inode).filter(|sight| sight.stamp == stamp)?;
        let parted = match inode.0 {
            Home::Device(_) => self.begun,
            Home::Family(_) => {
                let now = self.roots.last()?;
                let (subvolume, _) = now.subvolume?;
                let before = self.roots.get(sight.root)?;
                if before.device == now.device {
                    self.begun
                } else {
                    subvolume.parted(&before.subvolume?.0)?
                }
            }
        };
        (stamp.changed < parted - self.settled).then_some((sight.tree, sight.file))
    }

    /// A file was read.
    pub fn add(&mut self, inode: Inode, stamp: Stamp, tree: u32, file: u32) {
        let root = self.roots.len().saturating_sub(1);
        self.files.insert(inode, Sight { root, tree, file, stamp });
    }

    /// A file was found to be one that was read.
    pub fn renew(&mut self, inode: Inode, tree: u32, file: u32) {
        let root = self.roots.len().saturating_sub(1);
        if let Some(sight) = self.files.get_mut(&inode) {
            *sight = Sight { root, tree, file, ..*sight };
        }
    }
}

impl Subvolume {
    /// The one that a directory is in; nothing where that is not btrfs, or the kernel is older than 4.18.
    pub fn of(path: &Path) -> Option<Subvolume> {
        const GET_SUBVOL_INFO: libc::c_ulong = 2 << 30 | (SIZE as libc::c_ulong) << 16 | 0x94 << 8 | 60;
        /// Bytes of struct btrfs_ioctl_get_subvol_info_args (linux/btrfs.h), and where its fields are.
        const SIZE: usize = 504;
        const UUID: usize = 296;
        const PARENT: usize = 312;
        const MADE: usize = 392;
        let file = File::open(path).ok()?;
        let mut told = [0u64; SIZE / 8];
        // SAFETY: the descriptor is open, and the kernel writes SIZE bytes at most, which `told` has.
        let failed = unsafe { libc::ioctl(file.as_raw_fd(), GET_SUBVOL_INFO as _, told.as_mut_ptr()) } < 0;
        if failed {
            return None;
        }
        let uuid = |at: usize| {
            let mut uuid = [0; 16];
            uuid[..8].copy_from_slice(&told[at / 8].to_ne_bytes());
            uuid[8..].copy_from_slice(&told[at / 8 + 1].to_ne_bytes());
            uuid
        };
        let nanoseconds = i128::from(told[MADE / 8 + 1] as u32);
        let made = i128::from(told[MADE / 8]) * 1_000_000_000 + nanoseconds;
        Some(Subvolume { uuid: uuid(UUID), parent: uuid(PARENT), made })
    }

    /// When two that had a common past parted.
    fn parted(&self, other: &Subvolume) -> Option<i128> {
        if self.uuid == other.uuid {
            None
        } else if self.parent == other.uuid {
            Some(self.made)
        } else if other.parent == self.uuid {
            Some(other.made)
        } else {
            (self.parent == other.parent && self.parent != [0; 16]).then(|| self.made.min(other.made))
        }
    }
}

/// Chunks and holes of a file in an earlier snapshot.
pub(super) fn copy(trees: &[Tree], (tree, file): (u32, u32)) -> (Vec<u32>, u64, Option<Vec<u8>>) {
    let tree = &trees[tree as usize];
    let holes = tree.private_of(file).find(|(tag, _)| *tag == crate::tree::tag::HOLES);
    (tree.chunks_of(file).to_vec(), tree.file(file).size, holes.map(|(_, bytes)| bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(uuid: u8, parent: u8, made: i128) -> Subvolume {
        Subvolume { uuid: [uuid; 16], parent: [parent; 16], made }
    }

    #[test]
    fn subvolumes_part_when_the_snapshot_between_them_is_made() {
        let source = made(1, 0, 10);
        let (first, second) = (made(2, 1, 20), made(3, 1, 30));
        assert_eq!(first.parted(&source), Some(20));
        assert_eq!(source.parted(&first), Some(20));
        assert_eq!(second.parted(&first), Some(20));
        assert_eq!(first.parted(&second), Some(20));
        // No parent is not a common one, and a grandchild's past is not known.
        assert_eq!(source.parted(&made(4, 0, 40)), None);
        assert_eq!(made(5, 2, 50).parted(&source), None);
    }

    #[test]
    fn a_file_is_known_by_inode_and_stamp_if_it_was_left_alone() {
        let seen_at = |changed: i128, settled: u64, other: Stamp| {
            let mut seen = Seen::new(Duration::from_secs(settled));
            let stamp = Stamp { changed: seen.begun - changed, ..other };
            let inode = Inode(Home::Device(1), 7);
            seen.add(inode, stamp, 3, 4);
            assert_eq!(seen.find(Inode(Home::Device(2), 7), stamp), None);
            for other in
                [Stamp { size: 6, ..stamp }, Stamp { modified: 6, ..stamp }, Stamp { changed: 6, ..stamp }]
            {
                assert_eq!(seen.find(inode, other), None);
            }
            seen.find(inode, stamp)
        };
        let stamp = Stamp { size: 5, modified: 5, changed: 5 };
        assert_eq!(seen_at(61_000_000_000, 60, stamp), Some((3, 4)));
        assert_eq!(seen_at(60_000_000_000, 60, stamp), None);
    }
}
