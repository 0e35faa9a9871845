//! Paths used safely: the one place for it.
//!
//! A user's path is followed once, to an open directory ([`Dir`]). Names that come from anywhere else are used relative
//! to it and never lead out. What is temporary has an unpredictable name and a lock. What is removed was made by
//! Loadstone, as a [`Mark`] inside says, and no removal crosses a mount.

mod aside;
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

pub use aside::{Aside, ROOM, create_dir, create_dirs, deny};
pub use dir::{Dir, Entry, Stat, check_name, parts};
pub use error::{Error, Result, shown};
pub use folder::{Folder, keep_folder, sweep_folders};
pub use lookup::{Links, Parents, open_at, parent, split};
pub use mark::{Identity, MARK, Mark, is_mark};
pub use memory::{available_memory, limited_memory};
pub use mounts::{mount_table, refuse_mounts};
pub use opened::{Lock, lock, lock_patiently, open_for_reading, open_regular, while_waiting};
pub use remove::{clear, clear_but, clear_where, look, remove_tree};
pub use unnamed::unnamed;

/// Random bytes of the kernel, as hexadecimal digits.
pub fn random_hex() -> String {
    let mut bytes = [0u8; 16];
    let mut have = 0;
    while have < bytes.len() {
        // SAFETY: the kernel writes at most as many bytes as are left.
        let got = unsafe { libc::getrandom(bytes[have..].as_mut_ptr().cast(), bytes.len() - have, 0) };
        // It fails only when a signal comes before the kernel has randomness.
        have += usize::try_from(got).unwrap_or(0);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
