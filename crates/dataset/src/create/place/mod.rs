//! Where files are: directories, names, links, and the trees of users.

pub(crate) mod arrive;
pub(crate) mod directories;
pub(crate) mod users;
