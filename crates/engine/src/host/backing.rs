//! What else a target's blocks belong to: loop devices over it, and others over the file that it is made of itself.
//!
//! Device and inode tell which file it is, and its name does not: a hard link to an image is the image. An overlayfs shows
//! a file under another device. It shows a file that was copied up under the inode of the lower layer. So size and times are
//! compared there. A loop device may back another loop device.

use crate::{Error, Result};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// LOOP_GET_STATUS64 of linux/loop.h.
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;

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
    /// Bytes.
    size: u64,
    /// `None` where it cannot be asked, as in a container that does not have its node.
    backing: Option<On>,
    /// Path of its file as it was when it was attached. Another file may be there now, or none in this mount namespace.
    path: PathBuf,
}

impl Loop {
    /// Whether its file may be this one: an overlayfs shows one of the two, or the file that it has cannot be told.
    fn may_be_of(&self, meta: &Metadata, name: &OsStr, overlaid: bool) -> bool {
        let its = || std::fs::metadata(&self.path);
        match self.backing {
            _ if !meta.is_file() => false,
            Some(On::File(..)) => {
                (overlaid || is_overlaid(&self.path)) && its().is_ok_and(|its| may_be_same(&its, meta))
            }
            Some(On::Device(_)) => false,
            None => match its() {
                Ok(its) => On::of(&its) == On::of(meta) || may_be_same(&its, meta),
                // Its path leads nowhere here, as in a container that has the file elsewhere.
                Err(_) => self.is_called(name) && self.size <= meta.len(),
            },
        }
    }

    fn is_called(&self, name: &OsStr) -> bool {
        self.path.file_name() == Some(name)
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
    /// Those in use now; an error is one of `place`.
    ///
    /// # Errors
    /// When it cannot be found out.
    pub fn in_use(place: &Path) -> Result<Images> {
        let loops = loops(place)?;
        let overlaid = loops.iter().any(|l| is_overlaid(&l.path));
        Ok(Images { loops, overlaid })
    }

    /// Whether one that cannot be asked for its number is called so.
    pub fn are_called(&self, name: &OsStr) -> bool {
        self.loops.iter().any(|l| l.backing.is_none() && l.is_called(name))
    }

    /// Whether an overlayfs shows one of them, so that numbers do not tell which file it is.
    pub fn are_overlaid(&self) -> bool {
        self.overlaid
    }

    /// Their numbers in their file systems.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.loops.iter().filter_map(|l| match l.backing {
            Some(On::File(_, inode)) => Some(inode),
            Some(On::Device(_)) => None,
            None => std::fs::metadata(&l.path).ok().map(|its| its.ino()),
        })
    }

    /// The name of the loop device that a file called `name` backs. `overlaid`: the file's path lies on an overlayfs.
    pub fn user_of(&self, meta: &Metadata, name: &OsStr, overlaid: bool) -> Option<&str> {
        let is_its = |l: &&Loop| l.backing == Some(On::of(meta)) || l.may_be_of(meta, name, overlaid);
        let found = self.loops.iter().find(is_its);
        found.map(|l| l.name.as_str())
    }
}

/// Whether a path lies on an overlayfs.
pub(crate) fn is_overlaid(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == libc::OVERLAYFS_SUPER_MAGIC)
}

/// The begin of struct loop_info64 of linux/loop.h: where the file is, all that is read here; 232 bytes in whole.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    real_device: u64,
    rest: [u64; 26],
}

/// A file or device, and all that lies below it. Below a partition lies its disk. Below a mapping or an array lie its
/// devices, and below a loop device its file.
fn all_below(on: On, loops: &[Loop]) -> Vec<On> {
    let mut found = vec![on];
    let mut next = 0;
    // None is taken twice, so this ends.
    while let Some(&on) = found.get(next) {
        next += 1;
        let On::Device(device) = on else { continue };
        let of_loop = loops.iter().find(|l| l.device == device).and_then(|l| l.backing);
        for below in of_loop.into_iter().chain(parts_of(device).map(On::Device)) {
            if !found.contains(&below) {
                found.push(below);
            }
        }
    }
    found
}

/// The disk that a block device is a partition of, or the devices that it is put together from, by their numbers.
fn parts_of(device: u64) -> impl Iterator<Item = u64> {
    let place = PathBuf::from(format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device)));
    let disk = place.join("partition").exists().then(|| place.join(".."));
    let slaves = std::fs::read_dir(place.join("slaves")).into_iter().flatten().flatten();
    disk.into_iter().chain(slaves.map(|entry| entry.path())).filter_map(|path| number_in(&path))
}

/// The number of the device that a folder of sysfs is about.
fn number_in(folder: &Path) -> Option<u64> {
    let number = std::fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = number.trim().split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Numbers of the block devices that a target's blocks are on, its own first.
///
/// # Errors
/// When the kernel does not tell of loop devices.
pub fn devices_of(path: &Path, meta: &Metadata) -> Result<Vec<u64>> {
    let number = |on| if let On::Device(device) = on { Some(device) } else { None };
    Ok(all_below(On::of(meta), &loops(path)?).into_iter().filter_map(number).collect())
}

/// Images below a block device: the files of loop devices. Those that cannot be opened here are left out.
///
/// # Errors
/// When the kernel does not tell of loop devices.
pub fn images_of(path: &Path, meta: &Metadata) -> Result<Vec<(PathBuf, File)>> {
    images_below(path, On::of(meta))
}

/// The same of the device that a file system is on.
///
/// # Errors
/// When the kernel does not tell of loop devices.
pub fn images_of_device(path: &Path, device: u64) -> Result<Vec<(PathBuf, File)>> {
    images_below(path, On::Device(device))
}

fn images_below(path: &Path, on: On) -> Result<Vec<(PathBuf, File)>> {
    let loops = loops(path)?;
    let below = all_below(on, &loops);
    let own = loops.iter().filter(|l| below.contains(&On::Device(l.device)));
    let opened = own.filter(|l| !matches!(l.backing, Some(On::Device(_)))).filter_map(|l| {
        // Anything may lie there by now.
        let file = loadstone_files::open_regular(&l.path, true).ok()?;
        let its = file.metadata().ok()?;
        l.backing.is_none_or(|backing| backing == On::of(&its)).then(|| (l.path.clone(), file))
    });
    Ok(opened.collect())
}

/// Refuses to overwrite what a loop device is made of, or shares its blocks with another one.
///
/// # Errors
/// Names the loop device.
pub fn refuse_shared(path: &Path, meta: &Metadata) -> Result<()> {
    let loops = loops(path)?;
    let below = all_below(On::of(meta), &loops);
    let own = |l: &Loop| below.contains(&On::Device(l.device));
    let shares = |l: &&Loop| l.backing.is_some_and(|backing| below.contains(&backing)) && !own(l);
    if let Some(other) = loops.iter().find(shares) {
        let name = &other.name;
        let what =
            if other.backing == Some(below[0]) { "is in use by" } else { "is made of the same file as" };
        let what = format!("{what} /dev/{name}; detach it first (losetup -d /dev/{name})");
        return Err(Error::target(path, what));
    }
    let overlaid = is_overlaid(path);
    let called = path.file_name().unwrap_or_default();
    if let Some(Loop { name, .. }) = loops.iter().find(|l| l.may_be_of(meta, called, overlaid)) {
        let what = format!("seems to back /dev/{name}; detach that first (losetup -d /dev/{name})");
        return Err(Error::target(path, what));
    }
    let mounts = loadstone_files::mounts().unwrap_or_default();
    for device in
        below[1..].iter().filter_map(|on| if let On::Device(device) = on { Some(*device) } else { None })
    {
        let number = format!("{}:{}", libc::major(device), libc::minor(device));
        if mounts.iter().any(|mount| mount.device == number) {
            return Err(Error::target(
                path,
                format!("is made of the device {number}, which is mounted; unmount it first"),
            ));
        }
    }
    Ok(())
}

/// All loop devices that are in use.
///
/// # Errors
/// Where the kernel does not tell, one of `place`.
fn loops(place: &Path) -> Result<Vec<Loop>> {
    let mut all = Vec::new();
    let untold = |e| {
        let what = "may be the image of a loop device, and /sys/block does not tell (mount /sys)";
        Error::target_io(place, what, &e)
    };
    // Where /sys hides devices, as sandboxes do, the kernel has them here nevertheless. What is attached meanwhile is not
    // among these.
    let partitions = std::fs::read_to_string("/proc/partitions").unwrap_or_default();
    let mut told = Vec::new();
    for entry in std::fs::read_dir("/sys/block").map_err(untold)?.flatten() {
        if entry.path().join("dev").exists() {
            told.push(entry.file_name());
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(backing) = std::fs::read(entry.path().join("loop/backing_file")) else { continue };
        let Some(device) = number_in(&entry.path()) else { continue };
        let path = PathBuf::from(OsStr::from_bytes(backing.trim_ascii_end()));
        let sectors = std::fs::read_to_string(entry.path().join("size")).unwrap_or_default();
        let size = sectors.trim().parse::<u64>().unwrap_or(0).saturating_mul(512);
        all.push(Loop { backing: asked(&name, device), name, device, size, path });
    }
    let mut names = partitions.lines().filter_map(|line| line.split_ascii_whitespace().nth(3));
    let is_loop = |name: &str| {
        name.strip_prefix("loop")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit()))
    };
    match names.find(|name| is_loop(name) && !told.iter().any(|told| told == name)) {
        Some(_) => Err(untold(io::ErrorKind::NotFound.into())),
        None => Ok(all),
    }
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
