//! What a model is made of: dimensions and their rules, cells, the header, rates and stack distances.

pub(crate) mod cells;
pub(crate) mod chain;
pub(crate) mod check;
pub(crate) mod dimension;
pub(crate) mod header;
pub(crate) mod mask;
pub(crate) mod mean_sizes;
pub(crate) mod merging;
pub(crate) mod rates;
pub(crate) mod rule;
