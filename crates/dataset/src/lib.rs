//! Datasets for deduplication, compression and backup: file trees with their chunks over generations, after chapter 4 of
//! V. Tarasov, *Multi-dimensional Workload Analysis and Synthesis for Modern Storage Systems* (PhD thesis, Stony Brook
//! University, 2013).
//!
//! A [`Series`] holds snapshots ([`Tree`]) and the chunks they share. [`scan()`] makes one of real files; `docs/explanation/datasets.md`
//! tells what can be done with it.

#![warn(clippy::missing_errors_doc)]

mod create;
pub mod exercise;
mod extensions;
pub mod fsl;
mod measure;
mod profile;
mod runs;
mod scan;
mod write;

use loadstone_fstree::{chunks, file, names, tree};

pub use chunks::{Chunks, MOST_CHUNK, Ratio};
pub use create::{
    By, Cell, Chain, Changes, Columns, Generation, Initial, Laws, Mutator, Options as CreateOptions, SizeLaw,
    Start, Tail, create,
};
pub use file::{Damage, may_write};
pub use loadstone_fstree::{Error, Result};
pub use measure::{Counts, Measured, measure};
pub use names::{MOST_NAME, Name, Names};
pub use profile::{
    Again, Carried, Changed, File, Gone, Markov, Material, New, Pattern, Profile, Sizes, Step,
};
pub use runs::{RunLengths, run_lengths};
pub use scan::{Commits, Compress, Options as ScanOptions, Order, Report, Watch, scan, scan_git, snapshots};
pub use tree::{Chunking, Dirs, Entry, Files, Kind, Mark, Meta, Private, Series, State, Tree, tag};
pub use write::{
    Form, Options as WriteOptions, UNFINISHED, Written, check_room, refuse_unfinished, write_folder,
    write_hashes, write_snapshots, write_tar, write_tar_file,
};
