//! Verification: every block says whose it is, where it belongs and when it was written, or can be made again; whoever
//! reads it knows what it may hold.
//!
//! [`Blocks`] makes blocks and recognises them, a [`Ledger`] knows which generations of every block of a file there may
//! be, a [`Checker`] accompanies requests, [`Verifier::sweep`] reads files afterwards, and [`state`] keeps what is
//! known. `docs/explanation/verification.md` tells what can be found and what cannot.

#![warn(clippy::missing_errors_doc)]

mod blocks;
mod checker;
mod damage;
mod error;
pub mod exercise;
mod ledger;
mod mark;
pub mod memory;
mod shelf;
pub mod state;
mod sweep;
mod verifier;

pub use blocks::{Before, Block, Blocks, Kind, Room};
pub use checker::Checker;
pub use damage::{Damage, Read, Wrong};
pub use error::{Error, Result};
pub use ledger::{About, Allowed, Entry, Ledger};
pub use mark::{LARGEST_IN_STRIP, Mark, Marks, SECTOR, STRIP};
pub use shelf::{Make, Shelf};
pub use sweep::{Swept, Unreadable, When};
pub use verifier::{Counts, Findings, Unsynced, Verifier};
