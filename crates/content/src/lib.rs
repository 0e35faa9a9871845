//! What is written: bytes of blocks that a store cannot cheat on, and a reader that tells what a store finds in them.
//!
//! A block's content follows from its identity alone ([`Generator`]), so it can be made again by anybody, in any order,
//! by any number of threads. Identities are unique, or drawn from a pool so that a wanted share are duplicates
//! ([`Identities`]). With a compression ratio, random bytes and references back to earlier ones alternate over the whole
//! block ([`Shape`]), as in real data. Chunks of datasets are made alike, of any length, resembling their neighbours as far as
//! wanted, and such that FastCDC cuts them where they end ([`ChunkMaker`]). [`examine()`] shares nothing with that: it reads files and tells what
//! chunkers and codecs find. `docs/explanation/content.md` has the figures.

#![warn(clippy::missing_errors_doc)]

mod border;
mod chunk;
mod content;
mod error;
mod examine;
mod generator;
mod identity;
mod resemblance;
pub mod seed;
mod shape;
mod texture;

pub use border::Cutter;
pub use chunk::{ChunkMaker, Ratios};
pub use content::{Content, Wanted};
pub use error::{Error, Result};
pub use examine::{Codecs, Duplicates, Found, Options, Start, examine};
pub use generator::{Generator, Id};
pub use identity::{Identities, Place};
pub use shape::{MOST_RATIO, Shape};

/// Smallest block, and what all blocks are multiples of, bytes.
pub const LEAST_UNIT: usize = 4 << 10;
/// Largest block, bytes.
pub const MOST_UNIT: usize = 1 << 20;
