//! What happened to a request in the kernel's block layer, whichever text or record told it.

use crate::chunk::MOST_BYTES;
use crate::{Error, Result};

/// Category bits of `include/uapi/linux/blktrace_api.h`.
pub mod cat {
    #![allow(missing_docs)]
    pub const WRITE: u16 = 1 << 1;
    pub const FLUSH: u16 = 1 << 2;
    pub const SYNC: u16 = 1 << 3;
    pub const PC: u16 = 1 << 9;
    pub const NOTIFY: u16 = 1 << 10;
    pub const AHEAD: u16 = 1 << 11;
    pub const META: u16 = 1 << 12;
    pub const DISCARD: u16 = 1 << 13;
    pub const FUA: u16 = 1 << 15;
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
    /// Bits of [`cat`].
    pub category: u16,
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
