//! What the files of sets hold while a run is verified: which content each has, as they are made, renamed and removed.

use crate::fileset::Set;
use crate::payload::of_set;
use loadstone_verify::{About, Before, Ledger, Verifier};
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Number of what nobody knows.
pub const NOBODY: u64 = u64::MAX;
/// Numbers of a set's contents.
pub const CONTENTS: u64 = 1 << 40;

/// Contents of the files of one set.
pub struct SetContents {
    /// Of each file: the number of what it holds.
    numbers: Box<[AtomicU64]>,
    /// Number of what the next new file holds.
    next: AtomicU64,
    /// Names beyond the first that contents have.
    names: Mutex<FxHashMap<u64, u32>>,
}

/// Contents of the files of all sets that are trees.
pub struct ContentMap {
    pub verifier: Arc<Verifier>,
    pub contents: Vec<Option<SetContents>>,
    /// Files are written through memory.
    pub mapped: bool,
}

pub fn about(size: u64, before: Before, mapped: bool) -> About {
    About { path: PathBuf::new(), size, before, stable: false, discards: false, mapped }
}

impl ContentMap {
    /// Of sets as they are when a run begins; `known`: whether Loadstone alone makes their files.
    pub fn new(
        verifier: Arc<Verifier>,
        sets: &[Set],
        known: impl Fn(usize) -> bool,
        mapped: bool,
    ) -> ContentMap {
        let of_set_of_files = |(i, set): (usize, &Set)| {
            let first = of_set(i, 0);
            (!set.is_alone() && known(i)).then(|| SetContents {
                numbers: (0..set.files.len() as u64).map(|file| AtomicU64::new(first + file)).collect(),
                next: AtomicU64::new(first + set.files.len() as u64),
                names: Mutex::default(),
            })
        };
        ContentMap { verifier, contents: sets.iter().enumerate().map(of_set_of_files).collect(), mapped }
    }

    /// Number of what a file holds; nothing where its set is one target.
    #[inline]
    pub fn number(&self, set: &Set, at: usize, file: u32) -> Option<u64> {
        match &self.contents[at] {
            Some(contents) => Some(contents.numbers[file as usize].load(Relaxed)),
            None => (!set.is_alone()).then_some(NOBODY),
        }
    }

    /// A new file is about to be made.
    pub fn created(&self, set: usize, file: u32) {
        let Some(contents) = &self.contents[set] else { return };
        let number = contents.next.fetch_add(1, Relaxed);
        let ledger = Ledger::growing(about(0, Before::Zeros, self.mapped), self.verifier.blocks.unit());
        self.verifier.shelf.put(number, ledger);
        contents.numbers[file as usize].store(number, Relaxed);
    }

    /// A name of a file is gone.
    pub fn removed(&self, set: usize, file: u32) {
        let Some(contents) = &self.contents[set] else { return };
        let number = contents.numbers[file as usize].swap(NOBODY, Relaxed);
        let mut names = contents.names.lock().unwrap_or_else(|e| e.into_inner());
        match names.get_mut(&number) {
            Some(more) if *more > 0 => *more -= 1,
            _ => {
                names.remove(&number);
                self.verifier.shelf.remove(number);
            }
        }
    }

    /// A file has got a second name, or the other in place of the first.
    pub fn named(&self, set: usize, from: u32, to: u32, renamed: bool) {
        let Some(contents) = &self.contents[set] else { return };
        let number = match renamed {
            true => contents.numbers[from as usize].swap(NOBODY, Relaxed),
            false => contents.numbers[from as usize].load(Relaxed),
        };
        contents.numbers[to as usize].store(number, Relaxed);
        if !renamed && number != NOBODY {
            *contents.names.lock().unwrap_or_else(|e| e.into_inner()).entry(number).or_default() += 1;
        }
    }
}
