//! Request tables: what a trace is in memory and on disk, and everything that reads one.
//!
//! A trace is a time-ordered stream of [`Batch`]es. Readers of every format, the Parquet file and
//! generators (the model's sampler) all implement [`Requests`], so whatever consumes requests does
//! not know where they came from.

#![warn(clippy::missing_errors_doc)]

mod batch;
mod chunk;
pub mod claims;
pub mod columns;
mod cursor;
pub mod depend;
pub mod describe;
mod error;
#[doc(hidden)]
pub mod exercise;
pub mod export;
pub mod formats;
#[doc(hidden)]
pub mod guard;
mod info;
pub mod input;
mod lines;
mod look;
pub mod lru;
mod options;
mod order;
pub mod parquet;
mod reader;
mod recency;
mod scan;
pub mod select;
mod serial;
mod sort;
mod summary;
pub mod table;
pub mod thrift;
mod ties;
pub mod tree;
mod wide;

pub use batch::{Batch, NO_OBJECT, NONE, Op, Requests, flag};
pub use error::{Error, ErrorKind, Place, Result};
pub use formats::blktrace::expand as files_of;
pub use info::{Counts, Info, Object};
pub use options::OpenOptions;
pub use reader::{Reader, from_inputs, open};
pub use recency::{Recency, Run, prefetch};
pub use scan::without_quotes;
pub use summary::{Extent, Summary, summarize};
