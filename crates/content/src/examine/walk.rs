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

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// A file, a device, or a directory.
    pub path: PathBuf,
    /// Bytes that are looked at of a file or device, from its beginning; nothing: all.
    pub most: Option<u64>,
}

impl From<PathBuf> for Start {
    fn from(path: PathBuf) -> Start {
        Start { path, most: None }
    }
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

/// Tells of all that is there, in the order of names. Links are followed only where they are one of `paths`. Of a file or
/// device that is one of them, no more bytes are told than its own limit.
///
/// # Errors
/// When one of `paths` cannot be looked at.
pub fn walk(paths: &[Start], each: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
    let mut linked = FxHashSet::default();
    for Start { path, most } in paths {
        let mut limited = |entry: Entry<'_>| match entry {
            Entry::File(Data { path: at, size }) if at == path => {
                each(Entry::File(Data { path: at, size: size.min(most.unwrap_or(size)) }))
            }
            other => each(other),
        };
        let failed = |e| Error::io("cannot be looked at", path, e);
        let meta = std::fs::metadata(path).map_err(failed)?;
        let flow = if meta.file_type().is_block_device() {
            let size =
                File::open(path).and_then(|mut device| device.seek(SeekFrom::End(0))).map_err(failed)?;
            limited(Entry::File(Data { path, size }))
        } else {
            enter(path, &meta, &mut linked, &mut limited)
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
        // What says that a directory is Loadstone's is no data.
        if loadstone_files::is_mark(name.as_encoded_bytes()) {
            continue;
        }
        let inside = path.join(name);
        match std::fs::symlink_metadata(&inside) {
            Ok(meta) => enter(&inside, &meta, linked, each)?,
            Err(cause) => each(Entry::Unreadable(&inside, cause))?,
        }
    }
    ControlFlow::Continue(())
}
