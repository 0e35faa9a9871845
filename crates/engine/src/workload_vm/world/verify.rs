//! Keeping what the files of sets hold, and reading them from end to end.

use super::World;
use super::content_map::{CONTENTS, NOBODY, about};
use crate::fileset::LONGEST;
use crate::metrics::progress::{Phase, Progress};
use crate::payload::of_set;
use crate::verification::{Unread, also};
use loadstone_files::{Links, open_at};
use loadstone_verify::{Before, Ledger, When};
use rustc_hash::FxHashMap;
use rustix::io::Errno;
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// Files that are named where they could not be read.
const NAMED: u64 = 8;

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
                    verifier.count_behind(number, opened.metadata().map_or(0, |meta| meta.len()));
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
