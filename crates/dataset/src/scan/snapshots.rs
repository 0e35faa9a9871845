//! Directories whose children are snapshots, as backup programs and file systems have them.

use super::seen::Subvolume;
use crate::{Error, Result};
use std::cmp::Ordering;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// In which order snapshots are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By name, numbers in names by their value: 2 comes before 10.
    Name,
    /// The other way round, as rotated backups are named: `daily.1` is older than `daily.0`.
    Reverse,
    /// By when they were made: a subvolume of btrfs as it says, another directory as statx(2) tells its birth.
    Created,
}

/// The snapshots in a directory, in order: its directories, hidden ones left out. Where one is a snapshot of snapper
/// (it has `info.xml`), that is its directory `snapshot`.
///
/// # Errors
/// When it cannot be listed or has no directory, and where it is not known when one was made.
pub fn snapshots(folder: &Path, order: Order) -> Result<Vec<PathBuf>> {
    crate::write::refuse_unfinished(folder)?;
    let failed = |e| Error::io("cannot be listed", folder, e);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        // A link, like the "latest" that some backup programs keep, would be a snapshot twice.
        if entry.file_type().map_err(failed)?.is_dir() && !name.as_bytes().starts_with(b".") {
            let path = entry.path();
            let inner = path.join("snapshot");
            let path = if path.join("info.xml").is_file() && inner.is_dir() { inner } else { path };
            let made = if order == Order::Created { created(&path)? } else { 0 };
            found.push((made, name, path));
        }
    }
    if found.is_empty() {
        return Err(Error::file(folder, "has no directory; name one whose children are snapshots"));
    }
    found.sort_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| by_value(a.1.as_bytes(), b.1.as_bytes()).then_with(|| a.1.cmp(&b.1)))
    });
    if order == Order::Reverse {
        found.reverse();
    }
    Ok(found.into_iter().map(|(_, _, path)| path).collect())
}

/// When a snapshot was made, nanoseconds since 1970.
fn created(path: &Path) -> Result<i128> {
    if let Some(subvolume) = Subvolume::of(path) {
        return Ok(i128::from(subvolume.made));
    }
    let born = fs::metadata(path).and_then(|meta| meta.created());
    let born =
        born.map_err(|e| Error::io("does not tell when it was made (order by name instead)", path, e))?;
    Ok(born.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128))
}

/// Compares names, runs of digits in them by value.
fn by_value(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let (number_a, number_b);
            (number_a, a) = digits(a);
            (number_b, b) = digits(b);
            number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b))
        } else {
            (a, b) = (&a[1..], &b[1..]);
            x.cmp(y)
        };
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// The digits that a text begins with, without zeros in front, and the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let (number, rest) = text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count());
    (&number[number.iter().take_while(|digit| **digit == b'0').count()..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_compared_by_value() {
        let mut names =
            ["daily.10", "daily.9", "2024-01-10", "2024-01-9", "v1.10", "v1.9.2", "v1.09", "a", "daily.0"];
        names.sort_by(|a, b| by_value(a.as_bytes(), b.as_bytes()));
        assert_eq!(
            names,
            ["2024-01-9", "2024-01-10", "a", "daily.0", "daily.9", "daily.10", "v1.09", "v1.9.2", "v1.10"]
        );
    }

    #[test]
    fn children_are_snapshots_but_hidden_ones_links_and_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["hourly.0", "hourly.10", "hourly.2", ".tmp", "7/snapshot", "8/snapshot"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("7/info.xml"), "").unwrap();
        fs::write(folder.path().join("log"), "").unwrap();
        std::os::unix::fs::symlink("hourly.0", folder.path().join("latest")).unwrap();
        let told = |order| -> Vec<String> {
            let paths = snapshots(folder.path(), order).unwrap();
            let name = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap().display().to_string();
            paths.iter().map(name).collect()
        };
        assert_eq!(told(Order::Name), ["7/snapshot", "8", "hourly.0", "hourly.2", "hourly.10"]);
        assert_eq!(told(Order::Reverse), ["hourly.10", "hourly.2", "hourly.0", "8", "7/snapshot"]);
        let text = snapshots(&folder.path().join(".tmp"), Order::Name).unwrap_err().to_string();
        assert!(text.contains("has no directory"), "{text}");
    }
}
