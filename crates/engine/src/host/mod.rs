//! What a run asks of the host: targets and who else uses them, caches, mounts, memory, scheduling.

pub mod atomic;
pub mod backing;
pub mod descriptors;
pub mod file_locks;
pub mod fill;
pub mod holes;
pub mod memory_cgroup;
pub mod names;
pub mod page_cache;
pub mod remount;
pub mod scheduling;
pub mod target;
pub mod tree_root;
pub mod write_back;
