//! Making targets ready: filling them, and dropping their caches.

use crate::buffer::{ALIGN, Buffer, fill_random};
use crate::material::{Wishes, of_target};
use crate::run::Shared;
use crate::target::Open;
use crate::{Error, Result};
use loadstone_plan::Prepare;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes per write while filling.
const PIECE: u64 = 4 << 20;

/// Writes every target that asks for it from end to end; `false` when stopped on the way.
pub fn fill(targets: &[Open], shared: &Shared, seed: u64, wishes: &Wishes) -> Result<bool> {
    let asked = || targets.iter().enumerate().filter(|(_, t)| t.prepare == Prepare::Fill);
    shared.begin("filling", Some(asked().map(|(_, t)| t.size).sum()));
    for (i, (number, target)) in asked().enumerate() {
        if !fill_one(target, shared, seed ^ ((i as u64) << 32), wishes, of_target(number))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fill_one(target: &Open, shared: &Shared, seed: u64, wishes: &Wishes, number: u64) -> Result<bool> {
    // Not the run's own descriptor: neither its O_SYNC nor its alignment rules matter here.
    let open =
        |flags| OpenOptions::new().write(true).custom_flags(flags | libc::O_CLOEXEC).open(&target.path);
    let file = open(libc::O_DIRECT)
        .or_else(|_| open(0))
        .map_err(|e| Error::target_io(&target.path, "cannot be filled", &e))?;
    let mut buffer = Buffer::new(PIECE as usize).ok_or_else(|| Error::no_memory("free some"))?;
    fill_random(buffer.bytes(), seed);
    let (mut at, mut scratch) = (0, Vec::new());
    while at < target.size {
        if shared.stop.load(Relaxed) {
            return Ok(false);
        }
        let piece = PIECE.min(target.size - at);
        let bytes = &mut buffer.bytes()[..piece as usize];
        if !wishes.before(number, at, bytes, &mut scratch) {
            stamp(bytes, at, seed);
        }
        let done = write_at(&file, bytes, at)
            .or_else(|e| {
                // A size that is no multiple of the sector ends with a buffered write.
                if e.raw_os_error() == Some(libc::EINVAL) { write_at(&open(0)?, bytes, at) } else { Err(e) }
            })
            .map_err(|e| Error::target(&target.path, format!("cannot be filled at byte {at}: {e}")))?;
        at += done;
        shared.advance(done);
    }
    file.sync_all().map_err(|e| Error::target_io(&target.path, "cannot be made stable after filling", &e))?;
    Ok(true)
}

/// Gives every 4 KiB its place, so that no two blocks of the target are alike.
fn stamp(bytes: &mut [u8], at: u64, seed: u64) {
    for (i, block) in bytes.chunks_mut(ALIGN).enumerate().filter(|(_, block)| block.len() >= 8) {
        block[..8].copy_from_slice(&((at + (i * ALIGN) as u64) ^ seed).to_le_bytes());
    }
}

fn write_at(file: &std::fs::File, bytes: &[u8], at: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    match file.write_at(bytes, at) {
        Ok(0) => Err(io::Error::from(io::ErrorKind::WriteZero)),
        Ok(n) => Ok(n as u64),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e),
    }
}

/// Writes dirty pages and drops the page cache of the targets, and of the host where permitted.
/// Returns what was done, in words.
pub fn drop_caches(targets: &[Open], shared: &Shared) -> Result<String> {
    shared.begin("dropping caches", None);
    let mut files = 0;
    for target in targets {
        let Some(file) = &target.file else { continue };
        // A read-only descriptor may be refused; then another process's dirty pages stay.
        if let Err(e) = file.sync_all()
            && target.writable
        {
            return Err(Error::target_io(&target.path, "cannot be made stable", &e));
        }
        // SAFETY: no pointers.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        files += 1;
    }
    if files == 0 {
        return Ok("no target has a cache".into());
    }
    let drop_all = |mut caches: File| {
        // What is dirty cannot be dropped. Metadata that stays, such as ext4's blocks of extents, is cached
        // again piece by piece instead of whole, and requests are then split where those pieces end.
        // SAFETY: no arguments.
        unsafe { libc::sync() };
        caches.write_all(b"3")
    };
    let caches = File::options().write(true).open("/proc/sys/vm/drop_caches");
    Ok(match caches.and_then(drop_all) {
        Ok(()) => {
            format!("synced and dropped the pages of {files} targets, then all clean caches of the host")
        }
        Err(e) => format!("synced and dropped the pages of {files} targets only (host caches: {e})"),
    })
}
