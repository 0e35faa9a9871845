//! Traces, models, datasets, logs and states of a run must not be its targets. Else the load overwrites its own trace, or
//! the log replaces the target.

use crate::{Error, Result};
use loadstone_plan::{Plan, Target, TargetKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Refuses a plan whose targets are, or hold and give up, files of its own.
///
/// # Errors
/// Names the target and the file.
pub fn check(plan: &Plan) -> Result<()> {
    let read = plan.artefacts.iter().map(|artefact| (&artefact.path, "which the run reads"));
    let verify = plan.verify.as_ref();
    let from = verify.and_then(|verify| verify.from.as_ref()).map(|path| (path, "which the run reads"));
    let state =
        verify.and_then(|verify| verify.state.as_ref()).map(|path| (path, "where the run keeps its state"));
    let log = plan.log.as_ref().map(|path| (path, "where the run writes its log"));
    let own: Vec<_> = read.chain(from).chain(state).chain(log).collect();
    for target in &plan.targets {
        let places = places(plan, target);
        for (path, what) in &own {
            if target.kind != TargetKind::Tree && is_same(&target.path, path) {
                let what = format!("is {}, {what}; name another target", path.display());
                return Err(Error::target(&target.path, what));
            }
            if places.iter().any(|place| lies_below(place, path)) {
                let what = format!("is given up and holds {}, {what}; move that elsewhere", path.display());
                return Err(Error::target(&target.path, what));
            }
        }
    }
    Ok(())
}

/// Directories whose content a run may remove.
fn places(plan: &Plan, target: &Target) -> Vec<PathBuf> {
    if target.kind != TargetKind::Tree || !target.allow_destroy {
        return Vec::new();
    }
    let sets = plan.sets.iter().filter(|set| set.target == target.id).map(|set| target.path.join(&set.path));
    let sets: Vec<_> = sets.collect();
    if sets.is_empty() { vec![target.path.clone()] } else { sets }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) if one.file_type().is_block_device() => {
            other.file_type().is_block_device() && one.rdev() == other.rdev()
        }
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
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
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(std::fs::canonicalize(parent).ok()?.join(path.file_name()?))
}
