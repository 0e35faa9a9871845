//! Sampling: a model becomes a stream of requests again.
//!
//! The sampler walks the time line; each window gets as many cells of its matrix as it had requests.
//! The cells are drawn without replacement over the life of their matrix, so that the whole stream has exactly the
//! model's histogram, and put in an order in which each follows what it is given. Inside a bucket numbers are uniform on
//! the grain.

mod block;
mod codes;
mod column;
mod decode;
mod file;
mod gaps;
mod mix;
mod stream;

use crate::error::Result;
use crate::model::Model;
use crate::sample::block::sampler::BlockSampler;
use crate::sample::file::sampler::FileSampler;
use crate::sample::stream::Stream;
pub use crate::sample::stream::Tally;
use loadstone_trace::{Batch, Object, Requests};
use std::sync::Arc;

/// A model as a stream of requests; the same seed gives the same stream.
pub enum Sampler {
    /// Of a model of blocks.
    Blocks(Box<BlockSampler>),
    /// Of a model of files, which are made up.
    Files(Box<FileSampler>),
}

impl Sampler {
    /// A stream from the start of the model's time.
    ///
    /// # Errors
    /// When the model does not set op, size and gap.
    pub fn new(model: Arc<Model>, seed: u64) -> Result<Sampler> {
        Ok(if model.header.is_of_files() {
            Sampler::Files(Box::new(FileSampler::new(&model, seed)?))
        } else {
            Sampler::Blocks(Box::new(BlockSampler::new(&model, seed)?))
        })
    }

    fn stream(&self) -> &Stream {
        match self {
            Sampler::Blocks(sampler) => &sampler.stream,
            Sampler::Files(sampler) => &sampler.stream,
        }
    }

    /// What had to be done besides drawing, so far.
    pub fn tally(&self) -> Tally {
        self.stream().tally
    }

    /// Names of the objects generated so far: those of the model, or of files that are made up.
    pub fn names(&self) -> Vec<Object> {
        match self {
            Sampler::Blocks(sampler) => sampler.names(),
            Sampler::Files(sampler) => sampler.names(),
        }
    }
}

impl Requests for Sampler {
    fn next(&mut self, batch: &mut Batch) -> loadstone_trace::Result<bool> {
        let (more, bytes, stream) = match self {
            Sampler::Blocks(sampler) => (sampler.refill(batch), sampler.bytes(), &mut sampler.stream),
            Sampler::Files(sampler) => (sampler.refill(batch), sampler.bytes(), &mut sampler.stream),
        };
        stream.room.check(bytes)?;
        Ok(more)
    }
}
