//! What listing a live tree tells those who read its files.

use super::seen::Inode;
use rustc_hash::FxHashMap;

/// What listing tells of files beside their names.
#[derive(Default)]
pub(super) struct Listed {
    /// Files that may have holes, ascending.
    pub sparse: Vec<u32>,
    /// Files that may be met in another snapshot, ascending.
    pub inodes: Vec<(u32, Inode)>,
    /// Files that were read in an earlier snapshot, ascending, and where they are there (snapshot, number).
    pub known: Vec<(u32, (u32, u32))>,
    /// First names of files that have several.
    pub linked: FxHashMap<(u64, u64), u32>,
}
