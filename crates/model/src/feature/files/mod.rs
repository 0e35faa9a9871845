//! Features of names: which file, what happened to it, where it is new.

pub(crate) mod catalog;
pub(crate) mod file;
pub(crate) mod length;
pub(crate) mod near;
pub(crate) mod other;
pub(crate) mod state;
