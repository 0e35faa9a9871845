//! Which chunks files get: sizes, ratios and duplicates.

pub(crate) mod fresh;
pub(crate) mod law;
pub(crate) mod populate;
pub(crate) mod shared;
pub(crate) mod source;
