//! Paths used safely: the one place for it.
//!
//! A user's path is followed once, to an open directory ([`Dir`]). Names that come from anywhere else are used relative
//! to it and never lead out. What is temporary has an unpredictable name and a lock. What is removed was made by
//! Loadstone, as a [`Mark`] inside says, and no removal crosses a mount.

#![warn(clippy::missing_errors_doc)]

mod aside;
mod denied;
mod dir;
mod error;
mod folder;
mod lookup;
mod mark;
mod memory;
mod mounts;
mod opened;
mod remove;
mod unnamed;

pub use aside::{Aside, ROOM};
pub use denied::{create_dir, create_dirs, deny};
pub use dir::{Dir, Entry, Stat, check_name, parts};
pub use error::{Error, Result, shown};
pub use folder::{Folder, keep_folder, sweep_folders};
pub use lookup::{Links, Parents, Place, open_at, parent, split};
pub use mark::{Identity, MARK, Mark, is_mark};
pub use memory::{available_memory, limited_memory};
pub use mounts::{Mount, mounts, mounts_in, refuse_mounts};
pub use opened::{Lock, lock, lock_patiently, open_for_reading, open_regular, while_waiting};
pub use remove::{clear, clear_but, clear_where, look, remove_tree};
pub use unnamed::unnamed;

use rustix::rand::GetRandomFlags;

/// Random bytes of the kernel, as hexadecimal digits.
pub fn random_hex() -> String {
    let mut bytes = [0u8; 16];
    let mut have = 0;
    while have < bytes.len() {
        // It fails only when a signal comes before the kernel has randomness.
        have += rustix::rand::getrandom(&mut bytes[have..], GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
