//! Making targets ready: filling them.

use crate::host::target::Open;
use crate::metrics::progress::{Phase, Progress};
use crate::payload::buffer::{ALIGN, Buffer, fill_random};
use crate::payload::{PayloadPlan, of_target};
use crate::{Error, Result};
use loadstone_content::seed::derive;
use loadstone_plan::Prepare;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes per write while filling.
const PIECE: u64 = 4 << 20;

/// Writes every target that asks for it from end to end; `false` when stopped on the way.
///
/// # Errors
/// When the target cannot be written.
pub fn fill(targets: &[Open], progress: &Progress, seed: u64, payload_plan: &PayloadPlan) -> Result<bool> {
    let asked = || targets.iter().enumerate().filter(|(_, t)| t.prepare == Prepare::Fill);
    progress.begin(Phase::Filling, Some(asked().map(|(_, t)| t.size).sum()));
    for (i, (number, target)) in asked().enumerate() {
        if !fill_one(target, progress, derive(seed, "fill", i as u64), payload_plan, of_target(number))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fill_one(
    target: &Open,
    progress: &Progress,
    seed: u64,
    payload_plan: &PayloadPlan,
    number: u64,
) -> Result<bool> {
    // Not the run's own descriptor: neither its O_SYNC nor its alignment rules matter here.
    let open = |flags| target.again(true, flags);
    let file = open(libc::O_DIRECT)
        .or_else(|_| open(0))
        .map_err(|e| Error::target_io(&target.path, "cannot be filled", &e))?;
    let mut buffer = Buffer::new(PIECE as usize).ok_or_else(|| Error::no_memory("free some"))?;
    fill_random(buffer.bytes(), seed);
    let (mut at, mut scratch) = (0, Vec::new());
    while at < target.size {
        if progress.stop.load(Relaxed) {
            return Ok(false);
        }
        let piece = PIECE.min(target.size - at);
        let bytes = &mut buffer.bytes()[..piece as usize];
        if !payload_plan.before(number, at, bytes, &mut scratch) {
            stamp(bytes, at, seed);
        }
        let done = write_at(&file, bytes, at)
            .or_else(|e| {
                // A size that is no multiple of the sector ends with a buffered write.
                if e.raw_os_error() == Some(libc::EINVAL) { write_at(&open(0)?, bytes, at) } else { Err(e) }
            })
            .map_err(|e| Error::target(&target.path, format!("cannot be filled at byte {at}: {e}")))?;
        at += done;
        progress.advance(done);
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
