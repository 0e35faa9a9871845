//! Everything below some paths: files and devices to read, and what is not read.

use crate::{Error, Result};
use rustc_hash::FxHashSet;
use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Something to read.
pub struct Data<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// Its bytes.
    pub size: u64,
}

/// What a path leads to.
pub enum Entry<'a> {
    /// A regular file, or a device that was named.
    File(Data<'a>),
    /// It, or what is in it, cannot be read.
    Unreadable(&'a Path, io::Error),
    /// Neither a file nor a directory, or a further name of a file that was told already.
    Other,
}

/// Tells of all that is there, in the order of names. Links are followed only where they are one of `paths`.
///
/// # Errors
/// When one of `paths` cannot be looked at.
pub fn walk(
    paths: &[PathBuf],
    each: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let mut linked = FxHashSet::default();
    for path in paths {
        let failed = |e| Error::io("cannot be looked at", path, e);
        let meta = std::fs::metadata(path).map_err(failed)?;
        let flow = if meta.file_type().is_block_device() {
            let size =
                File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0))).map_err(failed)?;
            each(Entry::File(Data { path, size }))
        } else {
            enter(path, &meta, &mut linked, each)
        };
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn enter(
    path: &Path,
    meta: &Metadata,
    linked: &mut FxHashSet<(u64, u64)>,
    each: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if meta.is_file() {
        // Only files with several names are remembered, as there are few of them.
        if meta.nlink() > 1 && !linked.insert((meta.dev(), meta.ino())) {
            return each(Entry::Other);
        }
        return each(Entry::File(Data { path, size: meta.size() }));
    }
    if !meta.is_dir() {
        return each(Entry::Other);
    }
    let names = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>());
    let mut names = match names {
        Ok(names) => names,
        Err(cause) => return each(Entry::Unreadable(path, cause)),
    };
    names.sort_unstable();
    for name in names {
        let inside = path.join(name);
        match std::fs::symlink_metadata(&inside) {
            Ok(meta) => enter(&inside, &meta, linked, each)?,
            Err(cause) => each(Entry::Unreadable(&inside, cause))?,
        }
    }
    ControlFlow::Continue(())
}
