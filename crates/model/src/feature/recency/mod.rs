//! Features of how long ago, and how often, a place was used.

pub(crate) mod age;
pub(crate) mod distances;
pub(crate) mod popularity;
pub(crate) mod reuse;
pub(crate) mod reuse_distance;
pub(crate) mod reuse_time;
