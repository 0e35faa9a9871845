//! Which files are deleted, modified and new: by histograms, by transitions alone, or by somebody's own rule.

pub(crate) mod chain;
pub(crate) mod columns;
pub(crate) mod matching;
pub(crate) mod select;
