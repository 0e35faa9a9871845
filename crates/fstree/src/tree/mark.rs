//! What a file is and what happened to it, and the tags of what is kept of it beside.

use serde::{Deserialize, Serialize};

/// What an entry of a directory is, if not a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A regular file with its chunks.
    File = 0,
    /// A symbolic link; [`tag::LINK`] has where it leads.
    Symlink = 1,
    /// A further name of a file; [`tag::HARD`] has its number.
    Hard = 2,
    /// A device, pipe or socket.
    Other = 3,
    /// A regular file whose content could not be read.
    Unreadable = 4,
}

/// What happened to a file since the snapshot before (section 4.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum State {
    /// It was not there.
    New = 0,
    /// Its chunks are others.
    Modified = 1,
    /// Its chunks are the same.
    Unmodified = 2,
}

/// Kind and state of a file in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub u8);

impl Mark {
    /// Of a kind, in a state.
    pub fn new(kind: Kind, state: State) -> Mark {
        Mark(kind as u8 | (state as u8) << 4)
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        match self.0 & 15 {
            0 => Kind::File,
            1 => Kind::Symlink,
            2 => Kind::Hard,
            3 => Kind::Other,
            _ => Kind::Unreadable,
        }
    }

    /// What happened to it.
    pub fn state(self) -> State {
        match self.0 >> 4 {
            0 => State::New,
            1 => State::Modified,
            _ => State::Unmodified,
        }
    }

    pub(super) fn is_known(self) -> bool {
        self.0 & 15 <= 4 && self.0 >> 4 <= 2
    }
}

/// Tags of records in private sections. Those from 0x100 on are for extensions.
pub mod tag {
    /// Where a symbolic link leads: bytes.
    pub const LINK: u16 = 1;
    /// The file that a hard link is a further name of: u32, smaller than its own number.
    pub const HARD: u16 = 2;
    /// Holes of a sparse file: pairs of u64, offset and length in bytes, in ascending order.
    pub const HOLES: u16 = 3;
    /// A file that may be executed: no bytes.
    pub const EXECUTABLE: u16 = 4;
    /// The first tag of extensions.
    pub const EXTENSION: u16 = 0x100;
}
