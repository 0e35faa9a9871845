//! Targets: opened with every rule of safety checked before the first byte is written.
//!
//! A run writes only inside files it made itself. Anything that was there before is read only,
//! unless the plan says that the user named it with `--allow-destroy`; a device that is mounted,
//! partitioned or held is refused even then.

use crate::host::atomic;
use crate::host::backing::{images_of, refuse_shared};
use crate::host::file_locks::Locked;
use crate::host::holes::first_hole;
use crate::host::tree_root;
use crate::{Error, Result};
use loadstone_files::{Dir, Identity, Lock, Stat, lock, lock_patiently};
use loadstone_plan::{Act, Advice, Backend, Plan, Prepare, Source, SyncMode, TargetKind};
use rustc_hash::{FxBuildHasher, FxHashMap};
use rustix::fs::{self, FallocateFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is said of a path that leads to something else.
const REPLACED: &str = "another file has taken its place since the run began";

/// An open target.
#[derive(Debug)]
pub struct Open {
    /// Its path; empty for `null`.
    pub path: PathBuf,
    /// Usable bytes.
    pub size: u64,
    /// The file; `None` for `null`.
    pub file: Option<File>,
    /// The run made this file.
    pub created: bool,
    /// Whether requests may change it.
    pub writable: bool,
    /// What is to be done to it before the run.
    pub prepare: Prepare,
    /// Images below it, the files of loop devices. Their locks last as long as they are open.
    pub images: Vec<(PathBuf, File)>,
}

impl Open {
    /// The descriptor, or -1 for `null`, which no backend ever uses.
    pub fn fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// The directory that it lies in, and its name there, links in its path followed.
    ///
    /// # Errors
    /// When that cannot be opened, or another file is there now.
    pub fn place(&self) -> Result<(Dir, CString)> {
        let failed = |e| Error::target_io(&self.path, "cannot be looked at", &e);
        let whole = self.path.canonicalize().map_err(failed)?;
        let parent = Dir::open(whole.parent().unwrap_or(Path::new("/"))).map_err(Error::files)?;
        let name = whole.file_name().unwrap_or_default().as_bytes();
        let found = parent.stat_below(name).map_err(failed)?;
        let meta = self.file.as_ref().map(File::metadata).transpose().map_err(failed)?;
        if !meta.is_some_and(|meta| is_of(&found, &meta)) {
            return Err(Error::target(&self.path, "is another file than when the run began; start it again"));
        }
        Ok((parent, CString::new(name).map_err(|e| failed(e.into()))?))
    }

    /// Opens it once more, with other flags.
    ///
    /// # Errors
    /// When that fails, or its path leads to something else now.
    pub fn again(&self, write: bool, flags: libc::c_int) -> io::Result<File> {
        let open = OpenOptions::new().read(!write).write(write).custom_flags(flags).open(&self.path)?;
        match &self.file {
            Some(file) if !same(file, &open)? => Err(io::Error::other(REPLACED)),
            _ => Ok(open),
        }
    }
}

/// Whether two open files are one.
fn same(one: &File, other: &File) -> io::Result<bool> {
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino(), meta.rdev()));
    Ok(identity(one)? == identity(other)?)
}

/// Whether what was found at a name is an open file.
fn is_of(found: &Stat, file: &std::fs::Metadata) -> bool {
    let (major, minor) = found.device;
    (found.inode, libc::makedev(major, minor)) == (file.ino(), file.dev())
}

/// What the workers will do to one target.
#[derive(Debug, Clone, Copy, Default)]
pub struct Use {
    pub reads: bool,
    pub writes: bool,
    /// Bytes are read or written, so that it must have as many as the plan says.
    pub moves: bool,
}

/// What a plan's workers do to the target of this id.
pub fn uses(plan: &Plan, id: &str) -> Use {
    let mut sum = Use::default();
    for worker in plan.workers.iter().filter(|w| w.backend != Backend::Null) {
        if let Source::Program { ops, .. } = &worker.source {
            let sets: Vec<_> = plan.sets.iter().filter(|set| set.target == id).map(|set| &set.id).collect();
            uses_of(ops, &sets, &mut sum);
            sum.moves = true;
            continue;
        }
        if !worker.map.objects.iter().any(|e| e.target == id) {
            continue;
        }
        match worker.source {
            // What reserves or cuts off space reads nothing and changes the file.
            _ if matches!(worker.backend, Backend::Allocate | Backend::Truncate) => sum.writes = true,
            Source::Uniform { reads, .. } => {
                sum.moves = true;
                sum.reads |= reads > 0.0;
                sum.writes |= reads < 1.0;
            }
            // What a trace or model holds is known to whoever lowered it.
            _ => {
                (sum.moves, sum.reads) = (true, true);
                sum.writes |= !worker.reads_only;
            }
        }
    }
    sum
}

fn uses_of(ops: &[loadstone_plan::Op], sets: &[&String], sum: &mut Use) {
    for op in ops {
        if op.set.as_ref().is_some_and(|set| sets.contains(&set)) {
            sum.writes |= op.act.writes();
            sum.reads |= matches!(op.act, Act::Read | Act::ReadWhole);
        }
        uses_of(&op.ops, sets, sum);
    }
}

/// Opens every target of the plan, or none: files that were made are removed again on an error.
///
/// # Errors
/// When one cannot be opened or must not be used.
pub fn open_all(plan: &Plan) -> Result<Vec<Open>> {
    let mut open = Vec::new();
    for target in &plan.targets {
        match open_one(plan, target) {
            Ok(one) => open.push(one),
            Err(e) => {
                discard(&open);
                return Err(e);
            }
        }
    }
    if let Err(e) = lock_all(&open).and_then(|()| advise_all(plan, &open)) {
        discard(&open);
        return Err(e);
    }
    Ok(open)
}

/// Tells the kernel how the targets are going to be read.
///
/// # Errors
/// When it does not take the advice.
pub fn advise_all(plan: &Plan, open: &[Open]) -> Result<()> {
    for (target, one) in plan.targets.iter().zip(open) {
        let advice = match target.advice {
            Advice::Normal => continue,
            Advice::Random => fs::Advice::Random,
            Advice::Sequential => fs::Advice::Sequential,
        };
        let file = one.file.as_ref().ok_or(Errno::BADF);
        file.and_then(|file| fs::fadvise(file, 0, None, advice))
            .map_err(|e| Error::target_io(&one.path, "takes no advice (fadvise)", &e.into()))?;
    }
    Ok(())
}

/// Removes the files that a run has made and that never became usable, and directories that are empty again.
pub fn discard(targets: &[Open]) {
    for target in targets.iter().filter(|t| t.created) {
        target.file.iter().for_each(|file| remove(&target.path, file));
    }
}

/// Removes a file or an empty directory that this run made. Whatever has taken its place meanwhile is somebody else's.
fn remove(path: &Path, made: &File) {
    let (Some(name), Ok(of)) = (path.file_name(), made.metadata()) else { return };
    let Ok(parent) = Dir::open(path.parent().unwrap_or(Path::new(""))) else { return };
    let name = name.as_encoded_bytes();
    if parent.stat_below(name).is_ok_and(|found| is_of(&found, &of)) {
        let _ = parent.unlink_below(name, of.is_dir());
    }
}

/// Locks every target: alone where the run writes it, else with other runs that only read it.
///
/// # Errors
/// When another run uses it.
pub fn lock_all(targets: &[Open]) -> Result<()> {
    let mut locked: Vec<(u64, u64)> = Vec::new();
    let held = Locked::now();
    let of_images = if targets.iter().any(|target| target.writable) { Lock::Exclusive } else { Lock::Shared };
    for target in targets {
        let Some(file) = &target.file else { continue };
        let meta = file.metadata().map_err(|e| Error::target_io(&target.path, "cannot be looked at", &e))?;
        // A plan may name a target twice, and has one lock for it.
        let identity = if meta.rdev() == 0 { (meta.dev(), meta.ino()) } else { (0, meta.rdev()) };
        if locked.contains(&identity) {
            continue;
        }
        locked.push(identity);
        let how = if target.writable { Lock::Exclusive } else { Lock::Shared };
        if !meta.file_type().is_block_device() {
            refuse_within(&target.path, &held)?;
        }
        lock_one(target, file, how, "")?;
        for (path, image) in &target.images {
            let meta = image.metadata().map_err(|e| Error::target_io(path, "cannot be looked at", &e))?;
            // Two partitions of a plan may lie in one image.
            if !locked.contains(&(meta.dev(), meta.ino())) {
                locked.push((meta.dev(), meta.ino()));
                lock_one(target, image, of_images, &format!("made of {}, which is ", path.display()))?;
            }
        }
    }
    Ok(())
}

/// Refuses a target in a directory that another run uses, as that may empty it.
fn refuse_within(path: &Path, held: &Locked) -> Result<()> {
    let Ok(real) = std::fs::canonicalize(path) else { return Ok(()) };
    for above in real.ancestors().skip(1) {
        // What cannot be opened cannot be locked by who runs this either.
        let Ok(dir) = File::open(above) else { continue };
        let own = dir.metadata().is_ok_and(|meta| held.is_own(&meta));
        if own || lock(&dir, Lock::Shared).unwrap_or(true) {
            continue;
        }
        let what = format!(
            "lies in {}, which is in use by another run (it holds a lock on it); wait for its end, or name another \
             target",
            above.display()
        );
        return Err(Error::target(path, what));
    }
    Ok(())
}

/// Locks a file for a target; `of` says which file it is, if it is not the target itself.
fn lock_one(target: &Open, file: &File, how: Lock, of: &str) -> Result<()> {
    if lock_patiently(file, how).map_err(|e| Error::target_io(&target.path, "cannot be locked", &e))? {
        return Ok(());
    }
    let used = if target.writable { "in use by" } else { "being written by" };
    let what = format!(
        "is {of}{used} another run (it holds a lock on it); wait for its end, or name another target"
    );
    Err(Error::target(&target.path, what))
}

/// Whether a file or device could be opened for the run, with nothing made.
///
/// # Errors
/// What [`open_all`] would say of it, but for a lack of space.
pub fn look(plan: &Plan, target: &loadstone_plan::Target) -> Result<()> {
    if matches!(target.kind, TargetKind::Tree | TargetKind::Null) {
        return Ok(());
    }
    match std::fs::symlink_metadata(&target.path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => can_be_made(target, uses(plan, &target.id)),
        _ => open_one(plan, target).map(drop),
    }
}

fn open_one(plan: &Plan, target: &loadstone_plan::Target) -> Result<Open> {
    let path = target.path.as_path();
    if target.kind == TargetKind::Tree {
        // Sets have places of their own below it, each of which is looked at by itself.
        let root = if plan.sets.iter().any(|set| set.target == target.id) {
            tree_root::open_home(path)?
        } else {
            tree_root::open_root(path, target.allow_destroy)?
        };
        return Ok(Open {
            path: path.into(),
            size: 0,
            file: Some(root.directory),
            created: root.created,
            writable: true,
            prepare: Prepare::None,
            images: Vec::new(),
        });
    }
    if target.kind == TargetKind::Null {
        let path = PathBuf::new();
        return Ok(Open {
            path,
            size: target.size,
            file: None,
            created: false,
            writable: true,
            prepare: Prepare::None,
            images: Vec::new(),
        });
    }
    let used = uses(plan, &target.id);
    let fill = target.prepare == Prepare::Fill;
    let meta = match std::fs::metadata(path) {
        Ok(meta) => Some(meta),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(Error::target_io(path, "cannot be looked at", &e)),
    };
    let Some(meta) = meta else {
        return create(plan, target, used);
    };
    check_kind(path, &meta, target.kind)?;
    let was_made = || {
        let file = loadstone_files::open_regular(path, false).map_err(Error::files)?;
        made_before(path, &file)
    };
    let allowed = target.allow_destroy || target.made_before && was_made()?;
    if (used.writes || fill) && !allowed {
        return Err(Error::target(
            path,
            format!(
                "was there before, and this run would overwrite it; name a new file, or pass `allow_destroy` {} to give it up",
                path.display()
            ),
        ));
    }
    if target.kind == TargetKind::Device {
        refuse_held(path, &meta, used.writes || fill)?;
    }
    if used.writes || fill {
        refuse_shared(path, &meta)?;
    }
    let writable = used.writes || fill;
    let file = open_file(target, writable, false)?;
    if writable {
        stays_within(target, &file)?;
    }
    if writable && !target.allow_destroy {
        made_before(path, &file)?;
    }
    if target.atomic {
        atomic::check(plan, target, &file)?;
    }
    let size = size_of(path, &file)?;
    if size < target.size && !(target.kind == TargetKind::File && (fill || !used.moves)) {
        return Err(Error::target(
            path,
            format!(
                "is too small: it has {size} bytes and the run needs {}; use a larger one, a smaller `size`, or `offsets` wrap or scale",
                target.size
            ),
        ));
    }
    if used.reads && !fill && target.kind == TargetKind::File {
        refuse_holes(path, &file, target.size)?;
    }
    let images = match target.kind {
        TargetKind::Device if writable => images_of(path, &meta)?,
        // Where the kernel does not tell, as in a container, reading does no harm.
        TargetKind::Device => images_of(path, &meta).unwrap_or_default(),
        _ => Vec::new(),
    };
    Ok(Open {
        path: path.into(),
        size: target.size,
        file: Some(file),
        created: false,
        writable,
        prepare: target.prepare,
        images,
    })
}

/// Files that runs of this process made, by path.
fn made() -> MutexGuard<'static, FxHashMap<PathBuf, Identity>> {
    static MADE: Mutex<FxHashMap<PathBuf, Identity>> = Mutex::new(FxHashMap::with_hasher(FxBuildHasher));
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a run of this process made the file of that path; an error where another has taken its place.
fn made_before(path: &Path, file: &File) -> Result<bool> {
    let failed = |e| Error::target_io(path, "cannot be looked at", &e);
    let what = match made().get(path) {
        None => return Ok(false),
        Some(id) if *id != Identity::of(file).map_err(failed)? => {
            "is not the file that an earlier run of this command made: another has taken its place since"
        }
        Some(_) if file.metadata().map_err(failed)?.nlink() > 1 => {
            "was made by an earlier run of this command, and has got another name since, which a hard link gave it"
        }
        Some(_) => return Ok(true),
    };
    Err(Error::target(path, format!("{what}; move it away")))
}

/// Whether a file would be made among device nodes: in /dev or below, but for what else is mounted there. /dev/shm is for
/// files, even where it is a directory of /dev's own.
fn is_for_devices(path: &Path) -> bool {
    let Some(folder) = path.parent().and_then(|parent| parent.canonicalize().ok()) else {
        return path.starts_with("/dev") && !path.starts_with("/dev/shm");
    };
    let device = |path: &Path| path.metadata().map(|of| of.dev()).ok();
    folder.starts_with("/dev")
        && !folder.starts_with("/dev/shm")
        && device(&folder) == device(Path::new("/dev"))
}

/// Refuses to make what could not be used.
fn can_be_made(target: &loadstone_plan::Target, used: Use) -> Result<()> {
    let path = target.path.as_path();
    if target.kind == TargetKind::Device || is_for_devices(path) {
        return Err(Error::target(path, "does not exist; check the device's name (lsblk lists them)"));
    }
    if used.reads && target.prepare == Prepare::None {
        return Err(Error::target(
            path,
            "does not exist, so there is nothing to read; let it be filled (prepare: fill)",
        ));
    }
    Ok(())
}

fn create(plan: &Plan, target: &loadstone_plan::Target, used: Use) -> Result<Open> {
    can_be_made(target, used)?;
    let path = target.path.as_path();
    let parent = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if !parent.is_dir() {
        return Err(Error::target(
            path,
            format!("cannot be made: the directory {} does not exist", parent.display()),
        ));
    }
    let file = open_file(target, true, true)?;
    let possible = || if target.atomic { atomic::check(plan, target, &file) } else { Ok(()) };
    if let Err(e) = stays_within(target, &file).and_then(|()| possible()) {
        remove(path, &file);
        return Err(e);
    }
    if let Ok(identity) = Identity::of(&file) {
        made().insert(path.into(), identity);
    }
    let mut open = Open {
        path: path.into(),
        size: target.size,
        file: None,
        created: true,
        writable: true,
        prepare: target.prepare,
        images: Vec::new(),
    };
    let reserved = if target.sparse { file.set_len(target.size) } else { reserve(&file, target.size) };
    open.file = Some(file);
    if let Err(e) = reserved {
        discard(std::slice::from_ref(&open));
        let what = format!("cannot hold {} bytes: {e}; free some space or use a smaller `size`", target.size);
        return Err(Error::target(path, what));
    }
    Ok(open)
}

/// Refuses a file that was opened by a name that leads out of its directory: what was looked at when the plan was made may
/// be something else now.
fn stays_within(target: &loadstone_plan::Target, file: &File) -> Result<()> {
    let Some(within) = &target.within else { return Ok(()) };
    let path = target.path.as_path();
    let failed = |e: io::Error| Error::target_io(path, "cannot be looked at", &e);
    let meta = file.metadata().map_err(failed)?;
    let real = std::fs::canonicalize(path).map_err(failed)?;
    let there = std::fs::symlink_metadata(&real).map_err(failed)?;
    let dir = Dir::open(within).map_err(Error::files)?;
    // That is a path without links: one that is in its place now is none.
    let what = if !real.starts_with(within) || (there.dev(), there.ino()) != (meta.dev(), meta.ino()) {
        "is reached by a link now that leads elsewhere"
    } else if !target.allow_destroy {
        return Ok(());
    } else if meta.nlink() != 1 {
        "has another name now, which was not given up"
    } else if Dir::mount_of(file).map_err(failed)? != dir.stat().map_err(failed)?.mount {
        "lies on another mount now"
    } else {
        return Ok(());
    };
    Err(Error::target(path, format!("{what}, out of {}; somebody changed it meanwhile", within.display())))
}

/// Gives the file its size, with its space reserved where the file system can.
fn reserve(file: &File, size: u64) -> io::Result<()> {
    match fs::fallocate(file, FallocateFlags::empty(), 0, size) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => file.set_len(size),
        reserved => Ok(reserved?),
    }
}

fn open_file(target: &loadstone_plan::Target, writable: bool, new: bool) -> Result<File> {
    let path = target.path.as_path();
    let mut flags = libc::O_CLOEXEC;
    if target.direct {
        flags |= libc::O_DIRECT;
    }
    flags |= match target.sync {
        SyncMode::None | SyncMode::Recorded => 0,
        SyncMode::Sync => libc::O_SYNC,
        SyncMode::Dsync => libc::O_DSYNC,
    };
    if target.kind == TargetKind::Device {
        // Fails while a file system, swap or another holder has the device.
        flags |= libc::O_EXCL;
    }
    let open =
        |flags: libc::c_int| OpenOptions::new().read(true).write(writable).custom_flags(flags).open(path);
    // Reads of a target shall not write its access time; only its owner may ask for that.
    let usual = || match open(flags | libc::O_NOATIME) {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => open(flags),
        other => other,
    };
    let opened = if new {
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).and_then(|made| {
            // A file system without direct I/O says so only once it has made the file.
            let same = |file| if same(&made, &file)? { Ok(file) } else { Err(io::Error::other(REPLACED)) };
            usual().and_then(same).inspect_err(|_| remove(path, &made))
        })
    } else {
        usual()
    };
    opened.map_err(|e| {
        let direct = target.direct && e.raw_os_error() == Some(libc::EINVAL);
        let what = match e.raw_os_error() {
            Some(libc::EBUSY) => {
                "is in use (mounted, swap, or held by another device); unmount it first".into()
            }
            Some(libc::EACCES | libc::EPERM | libc::EROFS) if writable => format!("is not writable: {e}"),
            Some(libc::EACCES | libc::EPERM) => format!("is not readable: {e}"),
            Some(libc::EINVAL) if direct => "its file system knows no direct I/O; leave out `direct`".into(),
            Some(libc::ETXTBSY) => "is in use as swap or as a running program".into(),
            _ => format!("cannot be opened: {e}"),
        };
        Error::target(path, what)
    })
}

fn check_kind(path: &Path, meta: &std::fs::Metadata, kind: TargetKind) -> Result<()> {
    let is = meta.file_type();
    let what = if is.is_dir() {
        "is a directory; name a file inside it"
    } else if !is.is_file() && !is.is_block_device() {
        "is neither a regular file nor a block device"
    } else if is.is_file() && kind == TargetKind::Device {
        "is a regular file but the plan says device"
    } else if is.is_block_device() && kind == TargetKind::File {
        "is a block device but the plan says file"
    } else {
        return Ok(());
    };
    Err(Error::target(path, what))
}

/// Bytes of a file or block device that is there; `None` of anything else.
pub fn length_of(path: &Path) -> Option<u64> {
    let meta = std::fs::metadata(path).ok()?;
    match meta.file_type() {
        kind if kind.is_file() => Some(meta.len()),
        kind if kind.is_block_device() => size_of(path, &File::open(path).ok()?).ok(),
        _ => None,
    }
}

/// Bytes of a file or device.
fn size_of(path: &Path, mut file: &File) -> Result<u64> {
    use std::io::Seek;
    file.seek(io::SeekFrom::End(0)).map_err(|e| Error::target_io(path, "has no size", &e))
}

/// Refuses a device with partitions, holders, or a mount; `O_EXCL` catches what changes later.
fn refuse_held(path: &Path, meta: &std::fs::Metadata, writes: bool) -> Result<()> {
    let (major, minor) = (libc::major(meta.rdev()), libc::minor(meta.rdev()));
    let number = format!("{major}:{minor}");
    let mounts = loadstone_files::mounts().unwrap_or_default();
    if let Some(mount) = mounts.iter().find(|mount| mount.device == number) {
        return Err(Error::target(
            path,
            format!(
                "is mounted at {}; unmount it first (it is refused even with `allow_destroy`)",
                mount.at.display()
            ),
        ));
    }
    let sys = PathBuf::from(format!("/sys/dev/block/{number}"));
    // Opening a read-only device for writing may succeed; only the writes fail.
    if writes && std::fs::read_to_string(sys.join("ro")).is_ok_and(|ro| ro.trim() == "1") {
        return Err(Error::target(path, "is not writable: the device is read-only"));
    }
    let names = |dir: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(dir).map(|d| d.filter_map(|e| Some(e.ok()?.path())).collect()).unwrap_or_default()
    };
    let partitions: Vec<_> = names(&sys).into_iter().filter(|p| p.join("partition").exists()).collect();
    if let Some(first) = partitions.first().and_then(|p| p.file_name()) {
        return Err(Error::target(
            path,
            format!(
                "has {} partitions ({}, ...); it is refused even with `allow_destroy`: name a partition, or remove them first (wipefs)",
                partitions.len(),
                first.to_string_lossy()
            ),
        ));
    }
    if let Some(holder) = names(&sys.join("holders")).first().and_then(|p| p.file_name()) {
        return Err(Error::target(
            path,
            format!("is held by {}; release it first", holder.to_string_lossy()),
        ));
    }
    Ok(())
}

/// Refuses to measure reads that never reach the device.
fn refuse_holes(path: &Path, file: &File, size: u64) -> Result<()> {
    let Some(hole) = first_hole(file).filter(|hole| *hole < size) else { return Ok(()) };
    Err(Error::target(
        path,
        format!(
            "has a hole at byte {hole}, and reads of holes never reach the device; let it be filled (`fill` with `allow_destroy` {}, overwrite=1 in a job file), or write it fully first",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(path: &Path, kind: &str, reads: f64, prepare: &str, allow: bool, size: u64) -> Plan {
        let json = json!({
            "version": 1,
            "targets": [{"id": "t", "kind": kind, "path": path, "size": size, "prepare": prepare, "allow_destroy": allow}],
            "workers": [{"source": {"kind": "uniform", "reads": reads, "size": 4096},
                         "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": size}]}}],
            "steps": [{"step": "run"}],
        });
        Plan::parse(&json.to_string()).unwrap()
    }

    fn refused(plan: &Plan, text: &str) {
        let error = open_all(plan).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }

    #[test]
    fn what_was_there_before_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        std::fs::write(&path, vec![7; 8192]).unwrap();
        refused(&plan(&path, "file", 0.5, "none", false, 8192), "`allow_destroy`");
        refused(&plan(&path, "file", 1.0, "fill", false, 8192), "`allow_destroy`");
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; 8192]);
        assert!(!open_all(&plan(&path, "file", 1.0, "none", false, 8192)).unwrap()[0].writable);
        assert!(open_all(&plan(&path, "file", 0.5, "none", true, 8192)).unwrap()[0].writable);
        refused(&plan(&path, "file", 1.0, "none", false, 8193), "too small");
        refused(&plan(&path, "device", 1.0, "none", false, 8192), "plan says device");
        refused(&plan(dir.path(), "file", 1.0, "none", false, 8192), "is a directory");
    }

    #[test]
    fn a_new_target_is_made_with_its_space_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        refused(&plan(&path, "file", 1.0, "none", false, 8192), "nothing to read");
        refused(&plan(&path, "device", 1.0, "none", false, 8192), "does not exist");
        refused(&plan(&path.join("deeper"), "file", 1.0, "fill", false, 8192), "directory");
        refused(&plan(&path, "file", 1.0, "fill", false, 1 << 60), "smaller `size`");
        assert!(!path.exists());
        let open = open_all(&plan(&path, "file", 1.0, "fill", false, 8192)).unwrap();
        assert!(open[0].created && std::fs::metadata(&path).unwrap().len() == 8192);
    }

    #[test]
    fn holes_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        refused(&plan(&path, "file", 1.0, "none", false, 1 << 20), "hole at byte 0");
    }
}
