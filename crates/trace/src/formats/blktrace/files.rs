//! The per-CPU files of a capture: found by their common base, and told when some are left out.

use crate::input::Input;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// CPU of a file name that ends in `.N`, and what stands before.
fn split(name: &str) -> Option<(&str, u32)> {
    let stem = [".gz", ".zst", ".bz2", ".xz"].iter().find_map(|e| name.strip_suffix(e)).unwrap_or(name);
    let (base, cpu) = stem.rsplit_once('.')?;
    Some((base, cpu.parse().ok()?))
}

/// The per-CPU files of a base, in order of CPU.
fn set(directory: &Path, base: &str) -> Vec<PathBuf> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let (stem, cpu) = split(name.to_str()?)?;
            (stem == base).then(|| (cpu, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Replaces a path that is no file by the per-CPU files it is the base of: `loop0` or
/// `loop0.blktrace` by `loop0.blktrace.0`, `loop0.blktrace.1`, ...
///
/// # Errors
/// When there is neither a file nor a set of that name.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        if path.exists() {
            all.push(path.clone());
            continue;
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let name = name.strip_suffix('.').unwrap_or(name);
        let mut files = set(directory, &format!("{name}.blktrace"));
        if files.is_empty() && name.ends_with(".blktrace") {
            files = set(directory, name);
        }
        if files.is_empty() {
            return Err(Error::missing(path));
        }
        all.append(&mut files);
    }
    Ok(all)
}

/// The other files of the capture that a per-CPU file belongs to.
pub fn others(file: &Path) -> Vec<PathBuf> {
    let Some((base, _)) = file.file_name().and_then(|n| n.to_str()).and_then(split) else {
        return Vec::new();
    };
    let mut all = set(file.parent().unwrap_or(Path::new("")), base);
    all.retain(|other| other.file_name() != file.file_name());
    all
}

/// Warns of CPUs without a file among those with one: a copy of the capture may not be whole.
fn missing(files: &[PathBuf], base: &str) -> Vec<String> {
    let cpu = |path: &PathBuf| split(path.file_name()?.to_str()?).map(|(_, cpu)| cpu);
    let there: BTreeSet<u32> = files.iter().filter_map(cpu).collect();
    let most = there.last().copied().unwrap_or(0);
    let first = (0..most).find(|cpu| !there.contains(cpu));
    let told =
        |cpu| format!("there is no {base}.{cpu}: the capture is not whole, unless that CPU was offline");
    first.map(told).into_iter().collect()
}

/// Warns of per-CPU files beside the given ones that were not given.
pub fn beside(inputs: &[Input]) -> Vec<String> {
    let Some(first) = inputs.first() else { return Vec::new() };
    let directory = first.path.parent().unwrap_or(Path::new(""));
    let Some((base, _)) = first.path.file_name().and_then(|n| n.to_str()).and_then(split) else {
        return Vec::new();
    };
    let given = |path: &PathBuf| inputs.iter().any(|i| i.path.file_name() == path.file_name());
    let left: Vec<String> =
        set(directory, base).iter().filter(|p| !given(p)).map(|p| p.display().to_string()).collect();
    if left.is_empty() {
        return missing(&set(directory, base), base);
    }
    vec![format!("of this capture not read: {}; name the base {base} to read all of it", left.join(", "))]
}
