//! Drawing requests of a block trace: in which order, and where each goes.

pub(crate) mod ledger;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod placement;
pub(crate) mod pools;
pub(crate) mod recall;
pub(crate) mod recency;
pub(crate) mod sampler;
pub(crate) mod schedule;
pub(crate) mod urn;
pub(crate) mod waits;
