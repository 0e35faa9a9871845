//! What the files of sets hold while a run is verified: which content each has, as they are made, renamed and removed.

use super::World;
use crate::fileset::{LONGEST, Set};
use crate::metrics::progress::{Phase, Progress};
use crate::payload::of_set;
use crate::verification::{Unread, also};
use loadstone_files::{Links, open_at};
use loadstone_verify::{About, Before, Ledger, Verifier, When};
use rustc_hash::FxHashMap;
use rustix::io::Errno;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// Number of what nobody knows.
const NOBODY: u64 = u64::MAX;
/// Files that are named where they could not be read.
const NAMED: u64 = 8;
/// Numbers of a set's contents.
const CONTENTS: u64 = 1 << 40;

/// Contents of the files of one set.
struct SetContents {
    /// Of each file: the number of what it holds.
    numbers: Box<[AtomicU64]>,
    /// Number of what the next new file holds.
    next: AtomicU64,
    /// Names beyond the first that contents have.
    names: Mutex<FxHashMap<u64, u32>>,
}

/// Contents of the files of all sets that are trees.
pub struct ContentMap {
    verifier: Arc<Verifier>,
    contents: Vec<Option<SetContents>>,
    /// Files are written through memory.
    mapped: bool,
}

fn about(size: u64, before: Before, mapped: bool) -> About {
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

    /// A name that leads to another: whose file that will be when it is used nobody knows.
    pub fn led(&self, set: usize, to: u32) {
        if let Some(contents) = &self.contents[set] {
            contents.numbers[to as usize].store(NOBODY, Relaxed);
        }
    }
}

impl World {
    /// Begins to keep contents.
    pub fn verify(self: &Arc<World>) {
        let Some(contents) = &self.contents else { return };
        let world: Weak<World> = Arc::downgrade(self);
        let (unit, mapped) = (contents.verifier.blocks.unit(), contents.mapped);
        // Whatever is asked for without having been made during the run was there when it began.
        let make = move |number: u64| {
            let world = world.upgrade()?;
            let at = (number.checked_sub(of_set(0, 0))? / CONTENTS) as usize;
            let (set, file) = (world.sets.get(at)?, number % CONTENTS);
            let there = file < set.files.len() as u64;
            there.then(|| Ledger::growing(about(set.size(file as u32), Before::Filled, mapped), unit))
        };
        contents.verifier.shelf.set_up(Box::new(make));
    }

    /// Reads all files from end to end; why not all could be, if it could not.
    pub fn sweep(&self, progress: &Progress) -> Unread {
        let Some(contents) = self.contents.as_ref() else { return Unread::default() };
        let verifier = &contents.verifier;
        let mut names: FxHashMap<u64, String> = FxHashMap::default();
        let mut stopped = progress.stop.load(Relaxed).then(|| "the run was stopped".to_string());
        let (mut unread, mut failed) = (Unread::default(), 0);
        progress.begin(Phase::Verifying, None);
        for (at, set) in self.sets.iter().enumerate().filter(|(at, _)| contents.contents[*at].is_some()) {
            let mut room = [0; LONGEST];
            for file in (0..set.files.len() as u32).filter(|file| set.files.is_present(*file)) {
                let name = set.file_path(file, &mut room);
                let Some(number) = contents.number(set, at, file).filter(|number| *number != NOBODY) else {
                    continue;
                };
                names.insert(number, format!("{}/{}", set.id, name.to_string_lossy()));
                if stopped.is_some() {
                    continue;
                }
                let open = |flags: libc::c_int| {
                    let flags = flags | libc::O_RDONLY;
                    let root = self.root(at).ok_or(Errno::BADF)?;
                    open_at(root, name, flags, 0, Links::Refused).map(File::from)
                };
                let swept = open(libc::O_DIRECT).or_else(|_| open(0)).map(|opened| {
                    verifier.sweep(number, &opened, When::Ended, |bytes| {
                        progress.advance(bytes);
                        if progress.stop.load(Relaxed) {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    })
                });
                let told = match swept {
                    Ok(swept) => {
                        stopped = swept.stopped.then(|| "interrupted".into());
                        unread.unreadable += swept.unreadable.blocks;
                        swept.unreadable.tell()
                    }
                    Err(e) => Some(e.to_string()),
                };
                if let Some(told) = told {
                    failed += 1;
                    if failed <= NAMED {
                        also(
                            &mut unread.reason,
                            Some(format!("{}/{}: {told}", set.id, name.to_string_lossy())),
                        );
                    }
                }
            }
        }
        let damages = verifier.findings().damages;
        let wanted =
            damages.iter().flat_map(|damage| [Some(damage.file), damage.belongs.map(|(file, _)| file)]);
        verifier.name(wanted.flatten().filter_map(|number| Some((number, names.get(&number)?.clone()))));
        let more = (failed > NAMED).then(|| format!("and {} more files", failed - NAMED));
        also(&mut unread.reason, more);
        also(&mut unread.reason, stopped);
        unread
    }
}
