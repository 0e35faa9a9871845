//! Features of where a request goes, seen from the requests before it.

pub(crate) mod align;
pub(crate) mod jump;
pub(crate) mod op_jump;
pub(crate) mod region;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod seek;
pub(crate) mod stream;
