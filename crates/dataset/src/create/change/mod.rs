//! How a modified file changes: which of its chunks stay, in which runs, and how long new ones are.

pub(crate) mod ages;
pub(crate) mod alignment;
pub(crate) mod growth;
pub(crate) mod layout;
pub(crate) mod runs;
