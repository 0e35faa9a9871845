//! Backends: what performs a request.

pub mod copy;
pub mod mapped;
mod mmap;
mod null;
mod space;
mod sync;
pub mod uring;

pub use mmap::{Mapped, Mmap, map_all};
pub use null::Null;
pub use space::Space;
pub use sync::{Sync, again, discarded};

use crate::request::Request;

/// Performs one request at a time, in the calling thread.
pub trait Perform {
    /// Puts right what `request` needs and no request before it did; it is not measured.
    #[inline(always)]
    fn before(&mut self, _request: &Request) {}

    /// Performs `request`: the bytes transferred, or a negative errno.
    fn perform(&mut self, request: &Request) -> i64;
}
