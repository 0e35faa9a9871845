//! Dropping the page cache of targets: of their own files, of what lies below a loop device, of the host.

use crate::host::backing::images_of_device;
use crate::host::target::Open;
use crate::metrics::progress::{Phase, Progress};
use crate::{Error, Result};
use rustix::fs::{Advice, Mode, OFlags, fadvise, openat};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Deepest directory that is gone into, which bounds the descriptors held at once.
const DEEPEST: usize = 200;

/// Writes dirty pages and drops the page cache of the targets; `host`: all clean caches of the host besides.
/// Returns what was done, in words.
///
/// # Errors
/// When what the run may write cannot be made stable, or the host's caches cannot be dropped.
pub fn drop_all(targets: &[Open], host: bool, progress: &Progress) -> Result<String> {
    progress.begin(Phase::DroppingCaches, None);
    let (mut files, mut below) = (0, Vec::new());
    for target in targets {
        let Some(file) = &target.file else { continue };
        // A read-only descriptor may be refused; then another process's dirty pages stay.
        if let Err(e) = file.sync_all()
            && target.writable
        {
            return Err(Error::target_io(&target.path, "cannot be made stable", &e));
        }
        let Ok(meta) = file.metadata() else { continue };
        if meta.is_dir() {
            let _ = rustix::fs::syncfs(file);
            files += drop_tree(file.as_fd(), meta.dev(), DEEPEST);
        } else {
            drop_pages(file.as_fd());
            files += 1;
        }
        let device = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
        // Where the kernel does not tell, they stay cached.
        below.extend(images_of_device(&target.path, device).unwrap_or_default());
    }
    if targets.iter().all(|target| target.file.is_none()) {
        return Ok("no target has a cache".into());
    }
    for (_, file) in &below {
        let _ = file.sync_all();
        drop_pages(file.as_fd());
    }
    let under = if below.is_empty() { "" } else { " and of the files below their loop devices" };
    let files = if files == 1 { "1 file or device".into() } else { format!("{files} files or devices") };
    let done = format!("synced and dropped the pages of {files}{under}");
    if !host {
        return Ok(done);
    }
    // What is dirty cannot be dropped. Metadata that stays, such as ext4's blocks of extents, is cached
    // again piece by piece instead of whole, and requests are then split where those pieces end.
    rustix::fs::sync();
    let path = Path::new("/proc/sys/vm/drop_caches");
    File::options().write(true).open(path).and_then(|mut caches| caches.write_all(b"3")).map_err(|e| {
        Error::target_io(
            path,
            "cannot be written, and `cache` drop-host needs it (root); use `cache` drop",
            &e,
        )
    })?;
    Ok(format!("{done}, then all clean caches of the host"))
}

fn drop_pages(file: BorrowedFd<'_>) {
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

/// Drops the pages of all regular files below a directory, on its file system; how many there are.
///
/// Nothing is followed, and whatever cannot be opened keeps its pages.
fn drop_tree(directory: BorrowedFd<'_>, device: u64, levels: usize) -> u64 {
    let Ok(entries) = std::fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd())) else { return 0 };
    let mut files = 0;
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let wanted = kind.is_file() || (kind.is_dir() && levels > 0);
        if !wanted {
            continue;
        }
        // Somebody may put a FIFO in the file's place, which must not be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(directory, entry.file_name(), flags, Mode::empty()).map(File::from) else {
            continue;
        };
        let Ok(meta) = file.metadata() else { continue };
        if meta.dev() != device {
            continue;
        }
        if meta.is_dir() {
            files += drop_tree(file.as_fd(), device, levels.saturating_sub(1));
        } else {
            drop_pages(file.as_fd());
            files += 1;
        }
    }
    files
}
