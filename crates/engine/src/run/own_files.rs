//! Traces, models, scripts, datasets, logs and states of a run must not be its targets, or lie in what it removes. Else the
//! load overwrites its own trace, or the log replaces the target. Images of loop devices, and what others hold a lock on,
//! as other runs do, are not removed either.
//!
//! Device and inode tell which file it is: a hard link or a bind mount has other names for the same one.

use crate::host::backing::{Images, devices_of, images_of, is_overlaid, may_be_same};
use crate::host::file_locks::{Locked, holder_of_device};
use crate::host::target::uses;
use crate::{Error, Result};
use loadstone_files::Dir;
use loadstone_plan::{Op, Plan, Prepare, Source, Target, TargetKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

const READS: &str = "which the run reads";

/// A file of the run, and what it is to it.
type Own<'a> = (&'a Path, &'static str);

/// Refuses a plan whose targets are, or hold and give up, files of its own or images in use.
///
/// # Errors
/// Names the target and the file.
pub fn check(plan: &Plan) -> Result<()> {
    let (read, streams, locked) = (artefacts(plan), streams(), Locked::now());
    let mut own = all(plan, &read);
    own.extend(streams.iter().map(|(path, what)| (path.as_path(), *what)));
    let state = plan.verify.as_ref().and_then(|verify| verify.state.as_deref());
    if let (Some(log), Some(state)) = (plan.log.as_deref(), state)
        && is_same(log, state)
    {
        let what = "is to be the log and the state of the verification; give each a name of its own";
        return Err(Error::files(loadstone_files::Error::new(log, what)));
    }
    refuse_same(plan)?;
    for target in &plan.targets {
        refuse_locked(plan, target, &locked)?;
        let places = places(plan, target);
        let why = if target.allow_destroy { "is given up" } else { "has files that the run uses" };
        for (path, what) in &own {
            if target.kind != TargetKind::Tree && is_same(&target.path, path) {
                let what = format!("is {}, {what}; name another target", path.display());
                return Err(Error::target(&target.path, what));
            }
            if places.iter().any(|place| lies_below(place, path)) {
                let what = format!("{why} and holds {}, {what}; move that elsewhere", path.display());
                return Err(Error::target(&target.path, what));
            }
        }
        places.iter().try_for_each(|place| refuse_held(place, why, &own, &locked))?;
    }
    Ok(())
}

/// Refuses targets that are one file or device by several names, where one of them is written.
fn refuse_same(plan: &Plan) -> Result<()> {
    let mut known: FxHashMap<(bool, u64, u64), &Target> = FxHashMap::default();
    for target in plan.targets.iter().filter(|target| target.kind != TargetKind::Null) {
        let Ok(meta) = std::fs::metadata(&target.path) else { continue };
        let device = meta.file_type().is_block_device();
        let place = if device { (true, meta.rdev(), 0) } else { (false, meta.dev(), meta.ino()) };
        let Some(other) = known.insert(place, target) else { continue };
        let writes = |one: &&Target| one.prepare == Prepare::Fill || uses(plan, &one.id).writes;
        if [other, target].iter().any(writes) {
            let what = format!("is the same as {}; name one of them for all", other.path.display());
            return Err(Error::target(&target.path, what));
        }
    }
    Ok(())
}

/// Files of traces, models, datasets and archives; a base stands for all files of a capture.
fn artefacts(plan: &Plan) -> Vec<PathBuf> {
    let files = |path: &PathBuf| loadstone_trace::files_of(std::slice::from_ref(path));
    let named = plan.artefacts.iter();
    let named = named.flat_map(|one| files(&one.path).unwrap_or_else(|_| vec![one.path.clone()]));
    let mut unpacked = Vec::new();
    for worker in &plan.workers {
        if let Source::Program { ops, .. } = &worker.source {
            archives(ops, &mut unpacked);
        }
    }
    named.chain(unpacked).collect()
}

/// Archives that ops unpack.
fn archives(ops: &[Op], found: &mut Vec<PathBuf>) {
    for op in ops {
        found.extend(op.archive.clone());
        archives(&op.ops, found);
    }
}

/// Files that a plan names besides its targets; `read`: its artefacts.
fn all<'a>(plan: &'a Plan, read: &'a [PathBuf]) -> Vec<Own<'a>> {
    let read = read.iter().map(|path| (path.as_path(), READS));
    let own = plan.own.iter().map(|path| (path.as_path(), "which belongs to the run"));
    let verify = plan.verify.as_ref();
    let from = verify.and_then(|verify| Some((verify.from.as_deref()?, READS)));
    let state = verify.and_then(|verify| Some((verify.state.as_deref()?, "where the run keeps its state")));
    let log = plan.log.as_deref().map(|path| (path, "where the run writes its log"));
    read.chain(own).chain(from).chain(state).chain(log).collect()
}

/// Refuses a file to be written that another program has locked. Locks of flock(2) are asked for when it is open, as they
/// are those of other runs.
fn refuse_locked(plan: &Plan, target: &Target, locked: &Locked) -> Result<()> {
    if !(target.prepare == Prepare::Fill || uses(plan, &target.id).writes) {
        return Ok(());
    }
    let Ok(meta) = std::fs::metadata(&target.path) else { return Ok(()) };
    let refused = |what: String| Err(Error::target(&target.path, what));
    if matches!(target.kind, TargetKind::File | TargetKind::Device) {
        let open = || match target.kind {
            TargetKind::Device => File::open(&target.path),
            _ => loadstone_files::open_regular(&target.path, false).map_err(io::Error::other),
        };
        if let Some(holder) = locked.holder_of_records(&meta, open) {
            return refused(format!("is locked by {holder}, which must end first; name another target"));
        }
    }
    if target.kind != TargetKind::Device {
        return Ok(());
    }
    // A lock may be on the disk of a partition, or on the file of a loop device.
    for (i, device) in devices_of(&target.path, &meta)?.into_iter().enumerate() {
        if let Some(holder) = holder_of_device(device) {
            let what = if i == 0 { "" } else { "is made of a device that " };
            return refused(format!("{what}is locked by {holder}; end that first, or name another target"));
        }
    }
    for (path, image) in images_of(&target.path, &meta)? {
        let its = image.metadata().map_err(|e| Error::target_io(&path, "cannot be looked at", &e))?;
        if let Some(holder) = locked.holder_of_records(&its, || image.try_clone()) {
            let path = path.display();
            return refused(format!("is made of {path}, which is locked by {holder}; end that first"));
        }
    }
    Ok(())
}

/// Files that the standard streams of this process are.
fn streams() -> Vec<(PathBuf, &'static str)> {
    let named = |(number, what)| {
        let link = PathBuf::from(format!("/proc/self/fd/{number}"));
        let path =
            std::fs::metadata(&link).is_ok_and(|meta| meta.is_file()).then(|| std::fs::read_link(&link));
        Some((path?.ok()?, what))
    };
    let output = "where the output goes";
    [(0, READS), (1, output), (2, output)].into_iter().filter_map(named).collect()
}

/// Refuses a directory that is given up, or is emptied, and holds something that must not be removed, by whatever name.
fn refuse_held(place: &Path, why: &str, own: &[Own<'_>], locked: &Locked) -> Result<()> {
    let Ok(meta) = std::fs::metadata(place) else { return Ok(()) };
    // What is not there yet will be made in its directory.
    let held: Vec<_> = own
        .iter()
        .filter_map(|own| {
            Some((std::fs::metadata(own.0).or_else(|_| std::fs::metadata(above(own.0))).ok()?, own))
        })
        .collect();
    let images = Images::in_use(place)?;
    let overlaid = is_overlaid(place);
    let all = overlaid || images.are_overlaid() || own.iter().any(|(path, _)| is_overlaid(path));
    let numbers: FxHashSet<u64> = held.iter().map(|(meta, _)| meta.ino()).chain(images.numbers()).collect();
    let holds = |meta: &Metadata, name: &OsStr| {
        let found = held.iter().find(|(held, _)| same(held, meta) || all && may_be_same(held, meta));
        if let Some((_, (path, what))) = found {
            return Err(format!("is or holds {}, {what}; move that elsewhere", path.display()));
        }
        if let Some(device) = images.user_of(meta, name, overlaid) {
            return Err(format!("is in use by /dev/{device}; detach it first (losetup -d /dev/{device})"));
        }
        Ok(())
    };
    holds(&meta, OsStr::new("")).map_err(|what| Error::target(place, format!("{why} and {what}")))?;
    let mut see = |at: &Dir, entry: &loadstone_files::Entry| {
        let name = OsStr::from_bytes(entry.name.to_bytes());
        let known = numbers.contains(&entry.inode) || locked.may_hold(entry.inode) || images.are_called(name);
        if !all && !known {
            return Ok(());
        }
        let found = at.open_below(entry.name.to_bytes(), libc::O_PATH, 0).and_then(|file| file.metadata());
        // What is gone meanwhile holds nothing.
        let Ok(meta) = found else { return Ok(()) };
        let open = || at.open_below(entry.name.to_bytes(), libc::O_RDONLY | libc::O_NONBLOCK, 0);
        let wrong = holds(&meta, name)
            .err()
            .or_else(|| Some(format!("is locked by {}, which must end first", locked.holder(&meta, open)?)));
        wrong.map_or(Ok(()), |what| Err(format!("{what}; nothing was removed")))
    };
    let dir = Dir::open(place).map_err(Error::files)?;
    loadstone_files::look(&dir, &mut see).map_err(Error::files)
}

fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The directory that a path lies in.
fn above(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Directories whose content a run may remove or write to.
fn places(plan: &Plan, target: &Target) -> Vec<PathBuf> {
    if target.kind != TargetKind::Tree {
        return Vec::new();
    }
    let sets = plan.sets.iter().filter(|set| set.target == target.id).map(|set| target.path.join(&set.path));
    let sets: Vec<_> = sets.collect();
    if sets.is_empty() && target.allow_destroy { vec![target.path.clone()] } else { sets }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(this), Ok(that)) if this.file_type().is_block_device() => {
            that.file_type().is_block_device() && this.rdev() == that.rdev()
        }
        (Ok(this), Ok(that)) => {
            let overlaid = || is_overlaid(one) || is_overlaid(other);
            same(&this, &that) || may_be_same(&this, &that) && overlaid()
        }
        (Err(_), Err(_)) => real(one).is_some_and(|one| real(other) == Some(one)),
        _ => false,
    }
}

fn lies_below(place: &Path, path: &Path) -> bool {
    std::fs::canonicalize(place).is_ok_and(|place| real(path).is_some_and(|path| path.starts_with(place)))
}

/// A path without links, whose last component need not be there.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = std::fs::canonicalize(path) {
        return Some(real);
    }
    Some(std::fs::canonicalize(above(path)).ok()?.join(path.file_name()?))
}
