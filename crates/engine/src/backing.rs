//! What else a target's blocks belong to: loop devices over it, and others over the file that it is made of itself.
//!
//! Device and inode tell which file it is, and its name does not: a hard link to an image is the image. An overlayfs shows
//! a file under another device. It shows a file that was copied up under the inode of the lower layer. So size and times are
//! compared there. A loop device may back another loop device.

use crate::{Error, Result};
use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// LOOP_GET_STATUS64 of linux/loop.h.
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
/// Loop devices over loop devices that are followed.
const DEEPEST: usize = 16;

/// What blocks are on: a file by device and inode, or a block device by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    File(u64, u64),
    Device(u64),
}

impl On {
    fn of(meta: &Metadata) -> On {
        if meta.file_type().is_block_device() {
            On::Device(meta.rdev())
        } else {
            On::File(meta.dev(), meta.ino())
        }
    }
}

/// A loop device in use.
struct Loop {
    name: String,
    device: u64,
    backing: On,
    /// Path of its file. Somebody may have put another file there since.
    path: PathBuf,
}

impl Loop {
    /// Whether its file may be this one. Only asked for where an overlayfs shows one of the two.
    fn may_be_of(&self, meta: &Metadata, overlaid: bool) -> bool {
        matches!(self.backing, On::File(..))
            && meta.is_file()
            && (overlaid || is_overlaid(&self.path))
            && std::fs::metadata(&self.path).is_ok_and(|its| may_be_same(&its, meta))
    }
}

/// Whether these may be one file, seen through an overlayfs and beneath it. An overlayfs passes on the change time (ctime)
/// of the file beneath. No program can set that time.
pub(crate) fn may_be_same(one: &Metadata, other: &Metadata) -> bool {
    let changed = |meta: &Metadata| (meta.ctime(), meta.ctime_nsec(), meta.mtime(), meta.mtime_nsec());
    one.is_file()
        && other.is_file()
        && one.len() == other.len()
        && one.dev() != other.dev()
        && (one.ino() == other.ino() || changed(one) == changed(other))
}

/// Backing files of loop devices.
pub(crate) struct Images {
    loops: Vec<Loop>,
    overlaid: bool,
}

impl Images {
    /// Those in use now.
    pub fn in_use() -> Images {
        let loops = loops();
        let overlaid = loops.iter().any(|l| is_overlaid(&l.path));
        Images { loops, overlaid }
    }

    /// Whether an overlayfs shows one of them, so that numbers do not tell which file it is.
    pub fn are_overlaid(&self) -> bool {
        self.overlaid
    }

    /// Their numbers in their file systems.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.loops.iter().filter_map(|l| if let On::File(_, inode) = l.backing { Some(inode) } else { None })
    }

    /// The name of the loop device that a file backs. `overlaid`: the file's path lies on an overlayfs.
    pub fn user_of(&self, meta: &Metadata, overlaid: bool) -> Option<&str> {
        let found = self.loops.iter().find(|l| l.backing == On::of(meta) || l.may_be_of(meta, overlaid));
        found.map(|l| l.name.as_str())
    }
}

/// Whether a path lies on an overlayfs.
pub(crate) fn is_overlaid(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: plain data that the call fills in; the name ends with a zero byte.
    unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        libc::statfs(name.as_ptr(), &mut found) == 0 && found.f_type == libc::OVERLAYFS_SUPER_MAGIC
    }
}

/// The begin of struct loop_info64 of linux/loop.h: where the file is, all that is read here; 232 bytes in whole.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    real_device: u64,
    rest: [u64; 26],
}

/// Refuses to overwrite what a loop device is made of, or shares its blocks with another one.
///
/// # Errors
/// Names the loop device.
pub fn refuse_shared(path: &Path, meta: &Metadata) -> Result<()> {
    let loops = loops();
    let mut below = vec![On::of(meta)];
    while let Some(On::Device(device)) = below.last().copied()
        && let Some(found) = loops.iter().find(|l| l.device == device)
        && below.len() < DEEPEST
        && !below.contains(&found.backing)
    {
        below.push(found.backing);
    }
    let own = |l: &Loop| below.contains(&On::Device(l.device));
    if let Some(other) = loops.iter().find(|l| below.contains(&l.backing) && !own(l)) {
        let name = &other.name;
        let what = if below[0] == other.backing { "is in use by" } else { "is made of the same file as" };
        let what = format!("{what} /dev/{name}; detach it first (losetup -d /dev/{name})");
        return Err(Error::target(path, what));
    }
    let overlaid = is_overlaid(path);
    if let Some(Loop { name, .. }) = loops.iter().find(|l| l.may_be_of(meta, overlaid)) {
        let what = format!(
            "seems to back /dev/{name} through an overlay; detach that first (losetup -d /dev/{name})"
        );
        return Err(Error::target(path, what));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for device in
        below[1..].iter().filter_map(|on| if let On::Device(device) = on { Some(*device) } else { None })
    {
        let number = format!("{}:{}", libc::major(device), libc::minor(device));
        if mounts.lines().any(|line| line.split(' ').nth(2) == Some(number.as_str())) {
            return Err(Error::target(
                path,
                format!("is made of the device {number}, which is mounted; unmount it first"),
            ));
        }
    }
    Ok(())
}

/// All loop devices that are in use.
fn loops() -> Vec<Loop> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(backing) = std::fs::read(entry.path().join("loop/backing_file")) else { continue };
        let Ok(number) = std::fs::read_to_string(entry.path().join("dev")) else { continue };
        let Some(device) = number
            .trim()
            .split_once(':')
            .and_then(|(major, minor)| Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?)))
        else {
            continue;
        };
        let path = PathBuf::from(OsStr::from_bytes(backing.trim_ascii_end()));
        let on = asked(&name, device).or_else(|| std::fs::metadata(&path).ok().map(|meta| On::of(&meta)));
        if let Some(backing) = on {
            all.push(Loop { name, device, backing, path });
        }
    }
    all
}

/// What a loop device is made of, as it says itself; only who may open it can ask.
fn asked(name: &str, device: u64) -> Option<On> {
    let file = File::open(Path::new("/dev").join(name)).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.file_type().is_block_device() || meta.rdev() != device {
        return None;
    }
    let mut info = Info { device: 0, inode: 0, real_device: 0, rest: [0; 26] };
    // SAFETY: the call writes the 232 bytes of the struct.
    if unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64 as _, &mut info) } != 0 {
        return None;
    }
    Some(if info.real_device == 0 {
        On::File(decoded(info.device), info.inode)
    } else {
        On::Device(decoded(info.real_device))
    })
}

/// A device number as the kernel packs it into 64 bits (`huge_encode_dev`).
fn decoded(number: u64) -> u64 {
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00));
    libc::makedev(major as u32, minor as u32)
}
