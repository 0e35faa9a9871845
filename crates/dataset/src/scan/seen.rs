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

/// When and how large a file was; mtime and ctime in nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: i64,
    changed: i64,
}

impl Stamp {
    pub fn of(meta: &Metadata) -> Stamp {
        Stamp {
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// A time in nanoseconds since 1970; the years from 1678 to 2262 are told apart.
fn nanoseconds(seconds: i64, more: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(more)
}

/// Where an inode number means one file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Device(u64),
    /// Subvolumes with a common past.
    Family(usize),
}

/// A file, whatever its name: its home, by number, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Inode(u32, u64);

/// A file that was read.
#[derive(Clone, Copy)]
struct Sight {
    /// The root below which it was read.
    root: u32,
    /// Its number there.
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
    pub made: i64,
}

/// The root of a snapshot.
struct Root {
    /// The number of the snapshot.
    tree: u32,
    device: u64,
    subvolume: Option<(Subvolume, usize)>,
}

/// Files that were read and may be met again.
pub(super) struct Seen {
    files: FxHashMap<Inode, Sight>,
    homes: Vec<Home>,
    roots: Vec<Root>,
    begun: i64,
    settled: i64,
}

impl Seen {
    /// `settled`: how long a file must have been left alone before two snapshots could differ.
    pub fn new(settled: Duration) -> Seen {
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
        let settled = i64::try_from(settled.as_nanos()).unwrap_or(i64::MAX);
        let (files, homes, roots) = (FxHashMap::default(), Vec::new(), Vec::new());
        Seen { files, homes, roots, begun, settled }
    }

    /// A directory is begun, which is to be a snapshot of this number.
    pub fn enter(&mut self, root: &Path, device: u64, tree: u32) {
        let subvolume = Subvolume::of(root).map(|subvolume| {
            let kin = |root: &Root| root.subvolume.filter(|(other, _)| subvolume.is_kin(other));
            let family = self.roots.iter().find_map(kin).map_or(self.roots.len(), |(_, family)| family);
            (subvolume, family)
        });
        self.roots.push(Root { tree, device, subvolume });
    }

    /// Which file that is, if it may be met in another snapshot.
    pub fn inode(&mut self, meta: &Metadata) -> Option<Inode> {
        let root = self.roots.last()?;
        let home = match root.subvolume {
            Some((_, family)) if root.device == meta.dev() => Home::Family(family),
            _ => Home::Device(meta.dev()),
        };
        if matches!(home, Home::Device(_)) && meta.nlink() < 2 {
            return None;
        }
        let known = self.homes.iter().rposition(|known| *known == home);
        let number = known.unwrap_or_else(|| {
            self.homes.push(home);
            self.homes.len() - 1
        });
        Some(Inode(number as u32, meta.ino()))
    }

    /// The snapshot and file in which it was read, if it is the same.
    pub fn find(&self, inode: Inode, stamp: Stamp) -> Option<(u32, u32)> {
        let sight = self.files.get(&inode).filter(|sight| sight.stamp == stamp)?;
        // A mount can show a file twice below one root, of which there is no snapshot yet.
        let (now, earlier) = self.roots.split_last()?;
        let before = earlier.get(sight.root as usize)?;
        let parted = match self.homes.get(inode.0 as usize)? {
            Home::Family(_) if before.device != now.device => {
                now.subvolume?.0.parted(&before.subvolume?.0)?
            }
            _ => self.begun,
        };
        (stamp.changed < parted.saturating_sub(self.settled)).then_some((before.tree, sight.file))
    }

    /// A file of the directory was read, or found to be one that was.
    pub fn add(&mut self, inode: Inode, stamp: Stamp, file: u32) {
        let root = self.roots.len().saturating_sub(1) as u32;
        // The nearest snapshot is the likeliest to have a past in common with the next.
        self.files.insert(inode, Sight { root, file, stamp });
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
        let made = nanoseconds(told[MADE / 8] as i64, i64::from(told[MADE / 8 + 1] as u32));
        Some(Subvolume { uuid: uuid(UUID), parent: uuid(PARENT), made })
    }

    /// Whether two have inode numbers in common because they are one, or were.
    fn is_kin(&self, other: &Subvolume) -> bool {
        self.uuid == other.uuid || self.parted(other).is_some()
    }

    /// When two that had a common past parted.
    fn parted(&self, other: &Subvolume) -> Option<i64> {
        // Without a parent there are zeros, which the uppermost subvolume of an old file system has for its own.
        let is_of = |one: &Subvolume, uuid: [u8; 16]| one.parent != [0; 16] && one.parent == uuid;
        if self.uuid == other.uuid {
            None
        } else if is_of(self, other.uuid) {
            Some(self.made)
        } else if is_of(other, self.uuid) {
            Some(other.made)
        } else {
            is_of(self, other.parent).then(|| self.made.min(other.made))
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

    fn made(uuid: u8, parent: u8, made: i64) -> Subvolume {
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
        assert!(first.is_kin(&first) && first.is_kin(&second) && first.parted(&first).is_none());
        // No parent is not a common one, and a grandchild's past is not known.
        assert_eq!(source.parted(&made(4, 0, 40)), None);
        assert_eq!(made(5, 2, 50).parted(&source), None);
        assert_eq!(source.parted(&made(0, 0, 5)), None);
    }

    #[test]
    fn a_file_is_known_by_inode_and_stamp_if_it_was_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let seen_at = |before: u64, settled: u64| {
            let mut seen = Seen::new(Duration::from_secs(settled));
            seen.enter(folder.path(), 1, 3);
            seen.homes.push(Home::Device(1));
            let (inode, size) = (Inode(0, 7), 5);
            let stamp = Stamp { size, modified: 5, changed: seen.begun - before as i64 };
            seen.add(inode, stamp, 4);
            assert_eq!(seen.find(inode, stamp), None, "the snapshot it is of is not done");
            seen.enter(folder.path(), 1, 5);
            assert_eq!(seen.find(Inode(0, 8), stamp), None);
            for other in
                [Stamp { size: 6, ..stamp }, Stamp { modified: 6, ..stamp }, Stamp { changed: 6, ..stamp }]
            {
                assert_eq!(seen.find(inode, other), None);
            }
            seen.find(inode, stamp)
        };
        assert_eq!(seen_at(60_000_000_001, 60), Some((3, 4)));
        assert_eq!(seen_at(60_000_000_000, 60), None);
    }
}
