//! Trees of files as targets: built as the trace found them, and used by name.
//!
//! Everything happens below one directory, by paths that were taken apart beforehand (`loadstone_trace::tree`): none
//! leads out, and links are made to places inside.

mod build;
mod files;
mod perform;

pub use build::open_root;
pub use files::Files;
pub use perform::Named;

use crate::{Error, Result};
use loadstone_trace::tree::{self, Tree};
use loadstone_trace::{OpenOptions, Reader};
use std::path::Path;

/// The tree that the requests of a trace found when it began.
pub fn of_trace(path: &Path) -> Result<Tree> {
    let open = || -> Result<Reader> { Ok(loadstone_trace::open(&[path.into()], &OpenOptions::default())?) };
    // Names are known for sure once all was read.
    let mut reader = open()?;
    let mut names = names(&reader);
    if names.is_empty() {
        let mut batch = loadstone_trace::Batch::default();
        while loadstone_trace::Requests::next(&mut reader, &mut batch)? {}
        names = self::names(&reader);
        reader = open()?;
    }
    if names.is_empty() {
        return Err(Error::target(path, "names no files, so no tree can be built from it"));
    }
    Ok(tree::of(&mut reader, &names)?)
}

fn names(reader: &Reader) -> Vec<String> {
    let objects = reader.info().objects;
    let most = objects.iter().map(|object| object.id as usize + 1).max().unwrap_or(0);
    let mut names = vec![String::new(); most];
    for object in objects {
        names[object.id as usize] = object.name;
    }
    names
}
