//! Series of file trees: snapshots, the chunks and names that they share, the file that holds them, and the content of
//! their chunks. It holds no content itself: that follows from the numbers of the chunks.
//!
//! The tree is that of chapter 4 of V. Tarasov, *Multi-dimensional Workload Analysis and Synthesis for Modern Storage
//! Systems* (PhD thesis, Stony Brook University, 2013); `docs/reference/formats/fstree.md` describes the file. Whoever scans, makes
//! and writes series builds on it (`loadstone-dataset`), and so does whoever writes their chunks as a load ([`Tape`]).

#![warn(clippy::missing_errors_doc)]

pub mod chunks;
pub mod content;
pub mod error;
pub mod file;
mod index;
pub mod names;
mod relations;
mod tape;
pub mod tree;

pub use chunks::{Chunks, Ratio};
pub use content::Content;
pub use error::{Error, Result};
pub use relations::{New, Stretch, replaced};
pub use tape::{Piece, Share, Tape};
pub use tree::{Chunking, Meta, Series, Tree};
