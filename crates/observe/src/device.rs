//! Which block device's counters tell of a path, and what lies below that device.

use crate::{Error, Result};
use loadstone_files::{Mount, mounts};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A block device that keeps counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// The kernel's name: `sda1`, `loop0`, `dm-3`.
    pub name: String,
    /// How it was found, and what it rests on, from the device downwards: `loop0 on /var/disk.img`,
    /// `vda`. Its load shows again in the counters of those.
    pub below: Vec<String>,
    /// Whether the kernel keeps its block counters (`queue/iostats`); `None` if it does not say.
    pub iostats: Option<bool>,
    /// The folder under /sys.
    pub sysfs: PathBuf,
}

impl Device {
    /// The file that is sampled.
    pub fn stat_path(&self) -> PathBuf {
        self.sysfs.join("stat")
    }

    /// What a person must know before trusting the counters.
    pub fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.iostats == Some(false) {
            out.push(format!(
                "{}: queue/iostats is 0, so the kernel keeps no block counters; write 1 to {} to have them",
                self.name,
                queue(&self.sysfs).join("iostats").display()
            ));
        }
        if !self.below.is_empty() {
            out.push(format!(
                "{} is observed; the same load shows again below it, in {}",
                self.name,
                self.below.join(", ")
            ));
        }
        out
    }
}

/// A partition has no queue of its own but its disk's.
fn queue(sysfs: &Path) -> PathBuf {
    let own = sysfs.join("queue");
    if own.exists() { own } else { sysfs.join("../queue") }
}

/// The device of a path: a block device is itself (a partition too), a file or folder lies on the
/// device of its file system. A path that does not exist yet is where its nearest folder is.
///
/// A file system without a device of its own (overlay, btrfs, device-less ones) is looked up in
/// /proc/self/mountinfo; [`Error::NoDevice`] says which it is when nothing lies behind it.
///
/// # Errors
/// [`Error::NoDevice`], or what the system refuses.
pub fn resolve(path: &Path) -> Result<Device> {
    resolve_within(path, path, 0)
}

fn resolve_within(asked: &Path, path: &Path, depth: u32) -> Result<Device> {
    let none = |reason: String| Error::NoDevice { path: asked.into(), reason };
    if depth > 8 {
        return Err(none("its mounts go round in circles".into()));
    }
    let mut at = path;
    let meta = loop {
        match fs::metadata(at) {
            Ok(meta) => break meta,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                at = match at.parent() {
                    Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
                    Some(parent) => parent,
                    None => return Err(Error::io("cannot be looked at", asked, e)),
                };
            }
            Err(e) => return Err(Error::io("cannot be looked at", asked, e)),
        }
    };
    if meta.file_type().is_char_device() {
        return Err(none("it is a character device".into()));
    }
    let number = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
    let (major, minor) = (libc::major(number), libc::minor(number));
    if major != 0 {
        return numbered(major, minor)
            .ok_or_else(|| none(format!("device {major}:{minor} is not under /sys/dev/block")));
    }
    let real = fs::canonicalize(at).map_err(|e| Error::io("cannot be looked at", at, e))?;
    let mounts = mounts().map_err(|e| Error::io("cannot be read", Path::new("/proc/self/mountinfo"), e))?;
    let Some(mount) = mount_of(&mounts, &real) else {
        return Err(none(format!("device {major}:{minor} is anonymous and no mount covers it")));
    };
    if mount.kind == "overlay"
        && let Some(upper) = mount.data.split(',').find_map(|o| o.strip_prefix("upperdir="))
    {
        return resolve_within(
            asked,
            &PathBuf::from(upper.replace("\\,", ",").replace("\\:", ":")),
            depth + 1,
        );
    }
    let source = &mount.source;
    if source.is_absolute() && fs::metadata(source).is_ok_and(|m| m.file_type().is_block_device()) {
        return resolve_within(asked, source, depth + 1);
    }
    Err(none(format!("its file system is {} ({}), which has none", mount.kind, source.display())))
}

/// The mount a path lies on: the deepest mount point above it, the last one mounted there.
fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.at))
        .max_by_key(|mount| mount.at.components().count())
}

fn numbered(major: u32, minor: u32) -> Option<Device> {
    let sysfs = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let name = sysfs.file_name()?.to_string_lossy().replace('!', "/");
    let iostats = fs::read_to_string(queue(&sysfs).join("iostats")).ok().map(|t| t.trim() != "0");
    let mut below = Vec::new();
    below_of(&sysfs, &mut below, 0);
    Some(Device { major, minor, name, below, iostats, sysfs })
}

/// What a device rests on, level by level: a loop device's file, the parts of a stacked device, the
/// disk of a partition.
fn below_of(sysfs: &Path, out: &mut Vec<String>, depth: u32) {
    if depth > 8 {
        return;
    }
    if let Ok(file) = fs::read_to_string(sysfs.join("loop/backing_file")) {
        let file = file.trim_end();
        match fs::metadata(file).map(|m| numbered_below(m.dev())) {
            Ok(Some((name, folder))) => {
                if add(out, format!("{name} (file {file})")) {
                    below_of(&folder, out, depth + 1);
                }
            }
            _ => {
                add(out, format!("file {file}"));
            }
        }
    } else if sysfs.join("partition").exists()
        && let Some(disk) = sysfs.parent()
        && let Some(name) = disk.file_name()
    {
        if add(out, format!("{} (whole disk)", name.to_string_lossy())) {
            below_of(disk, out, depth + 1);
        }
    } else if let Ok(slaves) = fs::read_dir(sysfs.join("slaves")) {
        let mut slaves: Vec<_> = slaves.flatten().map(|e| e.path()).collect();
        slaves.sort();
        for slave in slaves {
            if let (Some(name), Ok(folder)) = (slave.file_name(), fs::canonicalize(&slave))
                && add(out, name.to_string_lossy().into_owned())
            {
                below_of(&folder, out, depth + 1);
            }
        }
    }
}

/// Appends what is not there yet.
fn add(out: &mut Vec<String>, text: String) -> bool {
    let new = !out.contains(&text);
    if new {
        out.push(text);
    }
    new
}

fn numbered_below(dev: u64) -> Option<(String, PathBuf)> {
    let folder =
        fs::canonicalize(format!("/sys/dev/block/{}:{}", libc::major(dev), libc::minor(dev))).ok()?;
    Some((folder.file_name()?.to_string_lossy().into_owned(), folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const TABLE: &[u8] = b"22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        27 1 254:0 / / rw - ext4 /dev/vda rw\n\
        30 27 0:40 / /mnt/with\\040space rw shared:1 master:2 - btrfs /dev/sdb1 rw,subvol=/\n\
        31 27 0:41 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n\
        32 27 0:42 / /merged rw - tmpfs tmpfs rw\n";

    #[test]
    fn deepest_and_latest_mount() {
        let mounts = loadstone_files::mounts_in(TABLE);
        let kind = |path: &str| mount_of(&mounts, Path::new(path)).map(|m| m.kind.clone());
        assert_eq!(kind("/proc/self"), Some("proc".into()));
        assert_eq!(kind("/procession"), Some("ext4".into()), "a prefix of letters is no prefix of folders");
        assert_eq!(kind("/merged/x"), Some("tmpfs".into()), "the later mount hides the earlier");
        let space = mount_of(&mounts, Path::new("/mnt/with space/file")).unwrap();
        assert_eq!((space.kind.as_str(), space.source.as_path()), ("btrfs", Path::new("/dev/sdb1")));
        assert_eq!(mount_of(&[], Path::new("/x")), None);
    }

    #[test]
    fn file_systems_without_a_device_say_so() {
        let error = resolve(Path::new("/proc/self/status")).unwrap_err();
        assert!(error.to_string().contains("proc"), "{error}");
        let error = resolve(Path::new("/dev/null")).unwrap_err();
        assert!(error.to_string().contains("character device"), "{error}");
    }

    #[test]
    fn a_file_that_does_not_exist_yet_is_where_its_folder_is() {
        let folder = tempfile::tempdir().unwrap();
        match (resolve(folder.path()), resolve(&folder.path().join("not/yet"))) {
            (Ok(a), Ok(b)) => assert_eq!(a, b),
            (Err(Error::NoDevice { .. }), Err(Error::NoDevice { .. })) => {
                let reason = "the temporary folder is on no block device";
                let _ = writeln!(std::io::stderr(), "skipped: a file that does not exist yet: {reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}
