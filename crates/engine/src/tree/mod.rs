//! Trees of files as targets: built as the trace found them, and used by name.
//!
//! Everything happens below one directory, by paths that were taken apart beforehand (`loadstone_trace::tree`): none
//! leads out, and links are made to places inside.

mod build;
mod files;
mod perform;

pub use build::{Filling, open_home, open_root};
pub use files::Files;
pub use perform::Named;

use crate::{Error, Result};
use loadstone_model::{Model, Sampler};
use loadstone_trace::tree::{self, Tree};
use loadstone_trace::{Batch, Object, OpenOptions, Reader, Requests};
use std::path::Path;
use std::sync::Arc;

/// The tree that the requests of a trace found when it began.
pub fn of_trace(path: &Path, options: &OpenOptions) -> Result<Tree> {
    let open = || -> Result<Reader> { Ok(loadstone_trace::open(&[path.into()], options)?) };
    // Names are known for sure once all was read.
    let mut reader = open()?;
    let mut names = names(&reader);
    if names.is_empty() {
        let mut batch = Batch::default();
        while reader.next(&mut batch)? {}
        names = self::names(&reader);
        reader = open()?;
    }
    if names.is_empty() {
        return Err(Error::target(path, "names no files, so no tree can be built from it"));
    }
    Ok(tree::of(&mut reader, &names)?)
}

/// The tree that what is drawn from a model is to find: it is drawn once for the names, which are made up on the way, and
/// once for what happens to them.
pub fn of_model(model: &Arc<Model>, seed: u64) -> Result<Tree> {
    let mut sampler = Sampler::new(Arc::clone(model), seed)?;
    let mut batch = Batch::default();
    while sampler.next(&mut batch)? {}
    let names = by_id(sampler.names());
    Ok(tree::of(&mut Sampler::new(Arc::clone(model), seed)?, &names)?)
}

fn names(reader: &Reader) -> Vec<String> {
    by_id(reader.info().objects)
}

fn by_id(objects: Vec<Object>) -> Vec<String> {
    let most = objects.iter().map(|object| object.id as usize + 1).max().unwrap_or(0);
    let mut names = vec![String::new(); most];
    for object in objects {
        names[object.id as usize] = object.name;
    }
    names
}
