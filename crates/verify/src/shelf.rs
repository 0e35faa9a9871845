//! The ledgers of files that come and go, by the number of what they hold.

use crate::ledger::Ledger;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock, RwLock};

/// Parts that are locked apart.
const PARTS: usize = 64;

type Part = RwLock<FxHashMap<u64, Arc<Ledger>>>;

/// Makes the ledger of a number that has none yet; nothing: nothing is known of it.
pub type Make = Box<dyn Fn(u64) -> Option<Ledger> + Send + Sync>;

/// Ledgers by number.
#[derive(Default)]
pub struct Shelf {
    parts: OnceLock<Box<[Part]>>,
    make: OnceLock<Make>,
}

impl Shelf {
    /// Ledgers are made by `make` when they are first asked for.
    pub fn set_up(&self, make: Make) {
        let _ = self.parts.set((0..PARTS).map(|_| Part::default()).collect());
        let _ = self.make.set(make);
    }

    fn part(&self, number: u64) -> Option<&Part> {
        self.parts.get()?.get((number % PARTS as u64) as usize)
    }

    /// The ledger of a number.
    pub fn find(&self, number: u64) -> Option<Arc<Ledger>> {
        let part = self.part(number)?;
        if let Some(ledger) = part.read().unwrap_or_else(|e| e.into_inner()).get(&number) {
            return Some(ledger.clone());
        }
        let made = Arc::new((self.make.get()?)(number)?);
        let mut part = part.write().unwrap_or_else(|e| e.into_inner());
        Some(part.entry(number).or_insert(made).clone())
    }

    /// A file has begun to be there.
    pub fn put(&self, number: u64, ledger: Ledger) {
        if let Some(part) = self.part(number) {
            part.write().unwrap_or_else(|e| e.into_inner()).insert(number, Arc::new(ledger));
        }
    }

    /// The last name of a file is gone.
    pub fn remove(&self, number: u64) {
        if let Some(part) = self.part(number) {
            part.write().unwrap_or_else(|e| e.into_inner()).remove(&number);
        }
    }
}
