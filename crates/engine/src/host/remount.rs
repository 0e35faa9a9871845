//! File systems unmounted and mounted again before a load, so that nothing of them is cached.
//!
//! It is tried once before anything else is done: only the kernel knows for sure whether a file system can be unmounted.
//! The device stays open in between, or a loop device would go away with its mount. What was unmounted is mounted again
//! whatever happens, short of the death of the process.

use crate::metrics::progress::{Phase, Progress};
use crate::{Error, Result};
use loadstone_files::{Dir, Identity, Links, Mount, open_at};
use loadstone_plan::{Plan, Step, TargetKind};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two tries, and how many there are: programs that look at every new mount are soon done.
const PATIENCE: (Duration, u32) = (Duration::from_millis(50), 20);

/// Options of a mount that are flags of mount(2).
const FLAGS: [(&str, MountFlags); 12] = [
    ("ro", MountFlags::RDONLY),
    ("nosuid", MountFlags::NOSUID),
    ("nodev", MountFlags::NODEV),
    ("noexec", MountFlags::NOEXEC),
    ("noatime", MountFlags::NOATIME),
    ("nodiratime", MountFlags::NODIRATIME),
    ("relatime", MountFlags::RELATIME),
    ("nosymfollow", MountFlags::NOSYMFOLLOW),
    ("sync", MountFlags::SYNCHRONOUS),
    ("dirsync", MountFlags::DIRSYNC),
    ("mand", MountFlags::PERMIT_MANDATORY_FILE_LOCKING),
    ("lazytime", MountFlags::LAZYTIME),
];

/// Options that name a device besides the one that is mounted: journals and parts of XFS, ext4 and btrfs.
const OTHER_DEVICES: [&str; 5] = ["logdev=", "rtdev=", "journal_path=", "journal_dev=", "device="];

/// `_IOR(0x94, 31, 1024 bytes)` of linux/btrfs.h: devices and, from byte 16 on, the id of a file system.
const BTRFS_IOC_FS_INFO: libc::c_ulong = 0x8400_941f;

/// Flags and data for mount(2) that make it again.
fn arguments(mount: &Mount) -> (MountFlags, String) {
    let all = || mount.options.split(',').chain(mount.data.split(','));
    let mut flags = MountFlags::empty();
    for (name, flag) in FLAGS {
        if all().any(|one| one == name) {
            flags |= flag;
        }
    }
    if !flags.intersects(MountFlags::NOATIME | MountFlags::RELATIME) {
        flags |= MountFlags::STRICTATIME;
    }
    let own =
        |one: &&str| !matches!(*one, "rw" | "seclabel" | "") && FLAGS.iter().all(|(name, _)| name != one);
    (flags, mount.data.split(',').filter(own).collect::<Vec<_>>().join(","))
}

/// The command that mounts it, for a person.
fn by_hand(mount: &Mount) -> String {
    let data = if mount.data.is_empty() { String::new() } else { format!(",{}", mount.data) };
    format!(
        "mount -t {} -o {}{data} {} {}",
        mount.kind,
        mount.options,
        mount.source.display(),
        mount.at.display()
    )
}

/// The directory that it is mounted in, and its name there. Nothing in its path is a link.
fn place(mount: &Mount) -> Result<(Dir, &[u8])> {
    let bytes = mount.at.as_os_str().as_bytes();
    let (above, name) = bytes.split_at(bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
    let root = Dir::open(Path::new("/")).map_err(Error::files)?;
    let above = match above {
        [] => root,
        [_, above @ ..] => root
            .dir_below(above)
            .map_err(|e| Error::target_io(&mount.at, "cannot be reached for a remount", &e))?,
    };
    Ok((above, name.strip_prefix(b"/").unwrap_or(name)))
}

/// Whether it is mounted from a device of this number. A name may lead to another device by now.
fn is_of(mount: &Mount, device: u64) -> Result<bool> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    if mount.kind != "btrfs" {
        return Ok(mount.device == format!("{major}:{minor}"));
    }
    let Ok(block) = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}")) else {
        return Ok(false);
    };
    let name = block.file_name().unwrap_or_default();
    Ok(devices(mount)?.is_some_and(|devices| devices.join(name).exists()))
}

/// Whether it lies on more than one device.
fn is_of_several(mount: &Mount) -> Result<bool> {
    let several = match devices(mount)? {
        Some(devices) => std::fs::read_dir(devices).is_ok_and(|devices| devices.count() > 1),
        None => false,
    };
    let other = |one: &str| OTHER_DEVICES.iter().any(|name| one.starts_with(name));
    Ok(several || mount.options.split(',').chain(mount.data.split(',')).any(other))
}

/// The directory of a btrfs in /sys that has its devices: the number of a btrfs is that of no device.
fn devices(mount: &Mount) -> Result<Option<PathBuf>> {
    if mount.kind != "btrfs" {
        return Ok(None);
    }
    let at = File::open(&mount.at).map_err(|e| Error::target_io(&mount.at, "cannot be looked at", &e))?;
    let mut info = [0_u8; 1024];
    // SAFETY: the call fills in 1024 bytes.
    if unsafe { libc::ioctl(at.as_raw_fd(), BTRFS_IOC_FS_INFO, info.as_mut_ptr()) } != 0 {
        return Ok(None);
    }
    let mut id: String = info[16..32].iter().map(|byte| format!("{byte:02x}")).collect();
    for dash in [20, 16, 12, 8] {
        id.insert(dash, '-');
    }
    Ok(Some(Path::new("/sys/fs/btrfs").join(id).join("devices")))
}

fn refuse<T>(mount: &Mount, what: impl std::fmt::Display) -> Result<T> {
    Err(Error::target(
        &mount.at,
        format!("cannot be unmounted and mounted again: {what}, or use `cache` drop"),
    ))
}

fn mounts() -> Result<Vec<Mount>> {
    loadstone_files::mounts().map_err(|e| Error::system("reading /proc/self/mountinfo", e))
}

/// File systems that will be mounted again.
pub struct Remount {
    mounts: Vec<Mount>,
}

impl Remount {
    /// Finds those of the plan's targets and tries it, if the plan asks for it. No file of them may be open.
    ///
    /// # Errors
    /// When one cannot be unmounted.
    pub fn rehearse(plan: &Plan) -> Result<Option<Remount>> {
        if !plan.steps.contains(&Step::Remount) {
            return Ok(None);
        }
        let table = mounts()?;
        let mut found: Vec<Mount> = Vec::new();
        for target in &plan.targets {
            if !matches!(target.kind, TargetKind::File | TargetKind::Tree) {
                continue;
            }
            let mount = mount_of(&target.path, &table)?;
            if found.iter().all(|other| other.id != mount.id) {
                possible(&mount, &table)?;
                found.push(mount);
            }
        }
        for mount in &mut found {
            mount.id = again(mount, || Ok(()))?;
        }
        Ok(Some(Remount { mounts: found }))
    }

    /// Does it; `held` are this run's own descriptors, which have the same numbers afterwards.
    /// Says in words what was done.
    ///
    /// # Errors
    /// When a file system cannot be unmounted any more, or something of it not be opened again.
    pub fn perform(&self, held: &[RawFd], progress: &Progress) -> Result<String> {
        progress.begin(Phase::Remounting, None);
        let mut notes = Vec::new();
        for mount in &self.mounts {
            let mut aside = Vec::new();
            let done = again(mount, || {
                for fd in held {
                    aside.extend(Aside::put(*fd, &mount.at)?);
                }
                Ok(())
            });
            // Also after a failure, as what is not needed for the load is needed to tidy up.
            let back = aside.iter().try_for_each(|aside| aside.take_back(mount));
            done?;
            back?;
            notes.push(format!("unmounted {} and mounted it again", mount.at.display()));
            let now = mounts()?.into_iter().rfind(|now| now.at == mount.at);
            if let Some(now) = now.filter(|now| (&now.options, &now.data) != (&mount.options, &mount.data)) {
                notes.push(format!(
                    "its options are now {},{} in place of {},{}",
                    now.options, now.data, mount.options, mount.data
                ));
            }
        }
        Ok(notes.join("; "))
    }
}

/// A descriptor whose file is closed for a while.
struct Aside {
    fd: RawFd,
    path: PathBuf,
    /// From where its file system is mounted on.
    name: Vec<u8>,
    flags: OFlags,
    identity: Identity,
}

impl Aside {
    /// Closes the file of a descriptor below `at`, but keeps its number; nothing for one elsewhere.
    fn put(fd: RawFd, at: &Path) -> Result<Option<Aside>> {
        let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) else { return Ok(None) };
        let Ok(name) = path.strip_prefix(at) else { return Ok(None) };
        let name = name.as_os_str().as_bytes().to_vec();
        let failed = |e: &io::Error| Error::target_io(&path, "cannot be put aside", e);
        // SAFETY: whoever owns it keeps it open meanwhile.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        let identity = Identity::of(&file).map_err(|e| failed(&e))?;
        let flags = fcntl_getfl(file).map_err(|e| failed(&e.into()))?;
        let null = File::open("/dev/null").map_err(|e| failed(&e))?;
        exchange(&null, fd).map_err(|e| failed(&e))?;
        Ok(Some(Aside { fd, path, name, flags, identity }))
    }

    /// Opens it again below where its file system is mounted now, if it is the same file.
    fn take_back(&self, mount: &Mount) -> Result<()> {
        let failed =
            |e: &io::Error| Error::target_io(&self.path, "cannot be opened again after its remount", e);
        let (above, point) = place(mount)?;
        let root = above.dir_below(point).map_err(|e| failed(&e))?;
        let name =
            if self.name.is_empty() { c".".into() } else { CString::new(&*self.name).unwrap_or_default() };
        let flags = (self.flags | OFlags::NOFOLLOW).bits().cast_signed();
        let file = open_at(&root, &name, flags, 0, Links::Refused).map_err(|e| failed(&e))?;
        if Identity::of(&file).map_err(|e| failed(&e))? != self.identity {
            let what = "was replaced while its file system was mounted again; leave it alone during a run";
            return Err(Error::target(&self.path, what));
        }
        exchange(&file, self.fd).map_err(|e| failed(&e))
    }
}

/// Makes `fd` another name of what `file` is.
fn exchange(file: &impl AsRawFd, fd: RawFd) -> io::Result<()> {
    // SAFETY: no pointers; whoever owns `fd` goes on owning it, so there is no `OwnedFd` of it here.
    match unsafe { libc::dup3(file.as_raw_fd(), fd, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The mount that a path, or the directory it will be made in, lies on.
fn mount_of(path: &Path, table: &[Mount]) -> Result<Mount> {
    let there = path.ancestors().find(|at| at.exists()).unwrap_or(Path::new("/"));
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(there)
        .map_err(|e| Error::target_io(there, "cannot be looked at", &e))?;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).unwrap_or_default();
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse::<u64>().ok());
    table
        .iter()
        .find(|mount| Some(mount.id) == id)
        .cloned()
        .ok_or_else(|| Error::target(path, "lies on no mount that this process sees; use `cache` drop"))
}

/// Refuses what could not be mounted again as it was.
fn possible(mount: &Mount, table: &[Mount]) -> Result<()> {
    if mount.at == Path::new("/") {
        return refuse(mount, "it is the root of the machine; name a target on a file system of its own");
    }
    if mount.root != Path::new("/") {
        return refuse(
            mount,
            "it shows only a part of a file system (a bind mount); name the file system itself",
        );
    }
    let kinds = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let on_device = kinds.lines().any(|line| line.strip_prefix('\t') == Some(mount.kind.as_str()));
    if !on_device || mount.kind.starts_with("fuse") {
        let kind = &mount.kind;
        return refuse(
            mount,
            format!("{kind} does not lie on a block device; name one that does (ext4, xfs, btrfs)"),
        );
    }
    let known = |one: &&str| *one == "rw" || FLAGS.iter().any(|(name, _)| name == one);
    if let Some(other) = mount.options.split(',').find(|one| !known(one)) {
        return refuse(mount, format!("its mount option {other} would be lost"));
    }
    if let Some(other) = mount.spreads.iter().find(|one| !one.starts_with("shared:")) {
        return refuse(mount, format!("it would not be {other} any more (mount_namespaces(7))"));
    }
    let source = mount.source.display();
    match std::fs::metadata(&mount.source) {
        Ok(meta) if meta.file_type().is_block_device() => {
            if !is_of(mount, meta.rdev())? {
                return refuse(
                    mount,
                    format!("its device {source} is now another one; mount it by its path"),
                );
            }
        }
        _ => {
            let what = format!("its device {source} is not there by that name; mount it by its path");
            return refuse(mount, what);
        }
    }
    if is_of_several(mount)? {
        return refuse(mount, "it lies on several devices; name a target on a file system of one");
    }
    if let Some(inside) = table.iter().find(|other| other.parent == mount.id) {
        return refuse(mount, format!("{} is mounted inside; unmount that first", inside.at.display()));
    }
    if let Some(other) = table.iter().find(|other| other.id != mount.id && other.device == mount.device) {
        return refuse(
            mount,
            format!("it is mounted at {} too, and stays cached; unmount that first", other.at.display()),
        );
    }
    Ok(())
}

/// What is mounted again when this is dropped.
struct Unmounted<'a> {
    mount: &'a Mount,
    /// Number of its device.
    device: u64,
    above: &'a Dir,
    name: &'a [u8],
    over: bool,
}

/// A path to a name in an open directory that nobody can put a link into.
fn own(dir: &Dir, name: &[u8]) -> CString {
    let slash: &[u8] = if name.is_empty() { b"" } else { b"/" };
    let path = [format!("/proc/self/fd/{}", dir.as_raw_fd()).as_bytes(), slash, name].concat();
    CString::new(path).unwrap_or_default()
}

impl Unmounted<'_> {
    fn mount(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let (flags, data) = arguments(self.mount);
        let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        // The name is kept where it still leads there.
        let named = std::fs::metadata(&self.mount.source).is_ok_and(|meta| meta.rdev() == self.device);
        let source = if named {
            text(self.mount.source.as_os_str().as_bytes())
        } else {
            let (major, minor) = (libc::major(self.device), libc::minor(self.device));
            text(format!("/dev/block/{major}:{minor}").as_bytes())
        };
        let (kind, data) = (text(self.mount.kind.as_bytes()), text(data.as_bytes()));
        let mounted = self.above.dir_below(self.name).and_then(|point| {
            let at = own(&point, b"");
            patiently(|| Ok(mount(&source, &at, &kind, flags, &*data)?))?;
            // A mount below a shared one is shared from the start.
            let spreads = match self.mount.spreads.is_empty() {
                true => MountPropagationFlags::PRIVATE,
                false => MountPropagationFlags::SHARED,
            };
            Ok(mount_change(own(self.above, self.name), spreads)?)
        });
        mounted.map_err(|e| {
            let what = format!(
                "was unmounted and cannot be mounted again: {e}; do it by hand: {}",
                by_hand(self.mount)
            );
            Error::target(&self.mount.at, what)
        })
    }
}

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        let _ = self.mount();
    }
}

/// Unmounts a file system, once `before` has closed what the run has open on it, and mounts it again: the number of the new
/// mount.
fn again(mount: &Mount, before: impl FnOnce() -> Result<()>) -> Result<u64> {
    let device = File::open(&mount.source)
        .map_err(|e| Error::target_io(&mount.source, "cannot be opened to keep it for a remount", &e))?;
    let number_of = |file: &File| file.metadata().map(|meta| meta.rdev());
    let kept = number_of(&device).map_err(|e| Error::target_io(&mount.source, "cannot be looked at", &e))?;
    if !is_of(mount, kept)? {
        let source = mount.source.display();
        return refuse(mount, format!("its device {source} is now another one; mount it by its path"));
    }
    let (above, name) = place(mount)?;
    let number =
        || above.stat_below(name).map_err(|e| Error::target_io(&mount.at, "cannot be looked at", &e));
    // Before Linux 5.8 nothing tells.
    if ![0, mount.id].contains(&number()?.mount) {
        return refuse(mount, "another file system has been mounted there since; wait until it is at rest");
    }
    before()?;
    let at = own(&above, name);
    let unmounted = patiently(|| Ok(unmount(&at, UnmountFlags::NOFOLLOW)?));
    match unmounted {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {
            return refuse(mount, format!("{}; end that", holders(&mount.at)));
        }
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
            return refuse(mount, "that needs root (CAP_SYS_ADMIN); run as root");
        }
        Err(e) => return refuse(mount, format!("{e}; unmount it by hand to see why")),
    }
    let mut unmounted = Unmounted { mount, device: kept, above: &above, name, over: false };
    // Mounts of other namespaces keep it alive, and all its caches with it.
    let alone = patiently(|| {
        let exclusive = libc::O_EXCL | libc::O_CLOEXEC;
        match OpenOptions::new().read(true).custom_flags(exclusive).open(&mount.source) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => Err(e),
            _ => Ok(()),
        }
    });
    unmounted.mount()?;
    drop(device);
    if alone.is_err() {
        return refuse(
            mount,
            "it is mounted in another mount namespace too (a container, a service); end that",
        );
    }
    Ok(number()?.mount)
}

/// Calls until the answer is other than that something is busy.
fn patiently(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut last = Ok(());
    for _ in 0..PATIENCE.1 {
        last = call();
        match &last {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(PATIENCE.0),
            _ => break,
        }
    }
    last
}

/// Who has something open below a mount point, in words.
fn holders(at: &Path) -> String {
    let mut found = Vec::new();
    let own = std::process::id().to_string();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = process.file_name().to_string_lossy().into_owned();
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let links = ["cwd", "root", "exe"].map(|name| process.path().join(name));
        let mut held = links.into_iter().chain(open.map(|entry| entry.path()));
        if let Some(what) =
            held.find_map(|link| std::fs::read_link(link).ok().filter(|to| to.starts_with(at)))
        {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let who = if pid == own {
                "this process".into()
            } else {
                format!("process {pid} ({})", name.trim_end())
            };
            found.push(format!("{who} has {} open", what.display()));
        }
    }
    match found.len() {
        0 => "it is in use (swap, a loop device, an export or a mapping)".into(),
        1..=3 => found.join(", "),
        n => format!("{}, and {} more processes", found[..3].join(", "), n - 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_files::mounts_in;

    fn parsed(line: &str) -> Mount {
        mounts_in(line.as_bytes()).remove(0)
    }

    const LINE: &str = "36 27 7:3 / /mnt/a\\040b rw,nosuid,noatime shared:1 - ext4 /dev/loop3 rw,seclabel,\
                        lazytime,errors=remount-ro,commit=30";

    #[test]
    fn a_mount_is_read_and_would_be_made_again_as_it_was() {
        let (flags, data) = arguments(&parsed(LINE));
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::NOATIME | MountFlags::LAZYTIME);
        assert_eq!(data, "errors=remount-ro,commit=30");
        let strict = parsed("1 2 8:1 / /m ro - xfs /dev/sda1 rw,inode64");
        assert_eq!(arguments(&strict), (MountFlags::RDONLY | MountFlags::STRICTATIME, "inode64".into()));
    }

    #[test]
    fn what_could_not_come_back_is_refused() {
        let refuse = |line: &str, table: &[Mount]| possible(&parsed(line), table).unwrap_err().to_string();
        for (line, wanted) in [
            ("1 0 8:1 / / rw - ext4 /dev/sda1 rw", "the root of the machine"),
            ("2 1 8:1 /home /mnt rw - ext4 /dev/sda1 rw", "bind mount"),
            ("2 1 0:40 / /mnt rw - tmpfs tmpfs rw", "tmpfs does not lie on a block device"),
            ("2 1 0:41 / /mnt rw - nfs4 host:/x rw", "nfs4 does not lie on a block device"),
            ("2 1 8:1 / /mnt rw,idmapped - ext4 /dev/sda1 rw", "its mount option idmapped would be lost"),
            ("2 1 8:1 / /mnt rw master:1 - ext4 /dev/sda1 rw", "it would not be master:1 any more"),
        ] {
            let refused = refuse(line, &[]);
            assert!(refused.contains(wanted) && refused.ends_with("or use `cache` drop"), "{refused}");
        }
    }

    #[test]
    fn a_descriptor_keeps_its_number_and_flags() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"here").unwrap();
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NOATIME).open(&path).unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert!(Aside::put(file.as_raw_fd(), Path::new("/elsewhere")).unwrap().is_none());
        let mount = Mount { at: root.clone(), ..parsed(LINE) };
        let aside = Aside::put(file.as_raw_fd(), &root).unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
        aside.take_back(&mount).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 4);
        assert!(fcntl_getfl(&file).unwrap().contains(OFlags::NOATIME));
    }
    #[test]
    fn only_the_very_file_is_opened_again_and_through_no_link() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mount = Mount { at: root.clone(), ..parsed(LINE) };
        let (folder, other) = (root.join("folder"), root.join("other"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("file"), b"here").unwrap();
        let file = File::open(folder.join("file")).unwrap();
        let aside = Aside::put(file.as_raw_fd(), &root).unwrap().unwrap();
        std::fs::rename(&folder, &other).unwrap();
        symlink(&other, &folder).unwrap();
        let told = aside.take_back(&mount).unwrap_err().to_string();
        assert!(told.contains("cannot be opened again"), "{told}");
        std::fs::remove_file(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("file"), b"here").unwrap();
        let told = aside.take_back(&mount).unwrap_err().to_string();
        assert!(told.contains("was replaced"), "{told}");
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
