//! How like its trace a model's stream is.

pub mod caches;
pub mod portrait;
