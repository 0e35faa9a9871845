//! Programs: threads that follow a list of steps over and over, on sets of files they share.
//!
//! The steps are those of Filebench's workload language; what it does wrong is done right here
//! (`docs/reference/filebench.md`). Names are looked up once ([`code`]); what threads share is in [`world`]; a [`machine`] is one
//! thread, and its system calls are in [`acts`].

mod acts;
mod aio;
mod code;
mod extract;
mod machine;
mod maps;
mod span;
mod stdio;
mod tally;
mod transfers;
mod world;

pub use code::{Code, Label, OTHER};
pub use machine::Machine;
pub use span::Span;
pub use tally::Tally;
pub use world::World;
