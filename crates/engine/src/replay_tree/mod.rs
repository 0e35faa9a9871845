//! Trees of files as targets: built as the trace found them, and used by name.
//!
//! Everything happens below one directory, by paths that were taken apart beforehand (`loadstone_trace::tree`): none
//! leads out, and links are made to places inside.

mod build;
mod files;
mod perform;

pub use build::Filling;
pub use files::Files;
pub use perform::Named;

use crate::{Error, Result};
use loadstone_model::{Model, Sampler};
use loadstone_trace::tree::{self, Tree};
use loadstone_trace::{Batch, NONE, Object, OpenOptions, Reader, Requests};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// The tree that the requests of a trace found when it began.
///
/// # Errors
/// When the trace cannot be read, or names no files.
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
    let told = reader.summary().map(|told| told.objects.iter().map(|of| (of.object, of.end)).collect());
    Ok(tree::of(&mut AsTold { reader: &mut reader, path, told }, &names)?)
}

/// Requests that reach as far as the file's own summary says: how much room is asked for goes by that.
struct AsTold<'a> {
    reader: &'a mut Reader,
    path: &'a Path,
    /// Where each object ends, of a file that has a summary.
    told: Option<FxHashMap<u32, i64>>,
}

impl Requests for AsTold<'_> {
    fn next(&mut self, batch: &mut Batch) -> loadstone_trace::Result<bool> {
        let more = self.reader.next(batch)?;
        let Some(told) = &self.told else { return Ok(more) };
        for ((object, &offset), &size) in batch.object.iter().zip(&batch.offset).zip(&batch.size) {
            let end = if offset == NONE { 0 } else { offset.saturating_add(size.max(0)) };
            let most = told.get(object).copied().unwrap_or(0);
            if end > most {
                let what =
                    format!("its summary ends object {object} at byte {most}, and a request ends at {end}");
                return Err(loadstone_trace::Error::malformed(what).path(self.path).help("convert it again"));
            }
        }
        Ok(more)
    }
}

/// The tree that requests of a model find at the start. The model is drawn twice: once for the names, which drawing makes
/// up, and once for what happens to them.
///
/// # Errors
/// When the model cannot be drawn from, or is not a model of files.
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
