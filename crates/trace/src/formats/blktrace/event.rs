//! What happened to a request in the kernel's block layer, whichever text or record told it.

use crate::chunk::MOST_BYTES;
use crate::{Error, Result};
use bitflags::bitflags;

bitflags! {
    /// Categories of an event (`include/uapi/linux/blktrace_api.h`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Category: u16 {
        /// Reads.
        const READ = 1 << 0;
        /// Writes.
        const WRITE = 1 << 1;
        /// Flushes the cache, by itself or before its data.
        const FLUSH = 1 << 2;
        /// Somebody waits for it.
        const SYNC = 1 << 3;
        /// Waits in a queue.
        const QUEUE = 1 << 4;
        /// Was given to the driver.
        const ISSUE = 1 << 6;
        /// Is done.
        const COMPLETE = 1 << 7;
        /// Passed through, such as a command of SCSI.
        const PC = 1 << 9;
        /// A note.
        const NOTIFY = 1 << 10;
        /// Ahead of demand.
        const AHEAD = 1 << 11;
        /// Metadata of a file system.
        const META = 1 << 12;
        /// Gives space back.
        const DISCARD = 1 << 13;
        /// Forced to stable media before it is done.
        const FUA = 1 << 15;
    }
}

/// The actions that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Q: asked for.
    Queue,
    /// D: given to the driver.
    Issue,
    /// C: done.
    Complete,
    /// Merges, splits, plugs, remaps, ...
    Other,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds of the tracing host's clock.
    pub time: u64,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Bytes.
    pub bytes: u32,
    /// What happened.
    pub action: Action,
    /// Categories.
    pub category: Category,
    /// Process.
    pub pid: u32,
    /// `(major << 20) + minor`.
    pub device: u32,
    /// Whether a completion failed.
    pub failed: bool,
}

impl Event {
    /// # Errors
    /// When its time or place is impossible.
    pub fn check(&self) -> Result<()> {
        if self.time > i64::MAX as u64 {
            return Err(Error::malformed(format!("time {} ns is beyond any clock", self.time)));
        }
        let end = self.sector.saturating_mul(512).saturating_add(u64::from(self.bytes));
        if self.action == Action::Queue && self.bytes > 0 && end > MOST_BYTES as u64 {
            return Err(Error::malformed(format!("sector {} lies beyond any device (1 EiB)", self.sector)));
        }
        Ok(())
    }
}
