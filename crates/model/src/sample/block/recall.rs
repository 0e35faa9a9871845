//! When the blocks of a drawn request are to have been used.

use crate::sample::decode::Decoder;

/// When a request's last block is to have been used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recall {
    /// Whenever.
    Any,
    /// Never.
    New,
    /// So many other blocks ago.
    Used(u64, u64),
}

impl Recall {
    /// What a code of the stack distance says.
    pub fn of(distance: &Decoder, code: u32) -> Recall {
        let (low, high) = distance.range(code);
        if code == 0 { Recall::New } else { Recall::Used(low.max(0) as u64, high.max(0) as u64) }
    }
}
