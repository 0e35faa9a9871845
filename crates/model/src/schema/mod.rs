//! What a model is made of: dimensions and their rules, cells, the header, rates and stack distances.

pub(crate) mod catalog;
pub(crate) mod cells;
pub(crate) mod dimension;
pub(crate) mod distances;
pub(crate) mod header;
pub(crate) mod mask;
pub(crate) mod mean_sizes;
pub(crate) mod rates;
pub(crate) mod rule;
