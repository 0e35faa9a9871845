//! Sets of files: what there may be, what there is, and who uses it.
//!
//! An entry takes eight bytes and two bits, and eight more where sizes differ; names are made up from the shape when
//! they are needed.

mod bits;
mod build;
mod outline;
mod shape;

use crate::source::random::below;
use crate::source::variables::{Draws, Number, Variables};
use bits::Bits;
use loadstone_content::seed::derive;
use loadstone_files::Links;
use loadstone_plan::{Act, FileSet, Op, Plan, Source, TargetKind};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use shape::{ROOT, Shape};
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

pub use build::{SetPath, file_system, refuse_larger};

/// The entry is there.
const PRESENT: u32 = 1 << 31;
/// Somebody makes or removes it.
const CHANGING: u32 = 1 << 30;
/// Draws of a random entry before the next one is looked for.
const TRIES: u32 = 8;

/// Digits of the name of a directory, at least.
const DIGITS: u8 = 8;

/// Longest path below a set's root, with its end.
pub const LONGEST: usize = 4096;

/// Things that may be there or not, each used by some threads.
pub struct Entries {
    /// Of each: users, and the flags above.
    states: Vec<AtomicU32>,
    present: Bits,
    absent: Bits,
    /// Where the next one that is not there, and that is there, is looked for, where they are taken in turn.
    next: Option<[AtomicUsize; 2]>,
}

impl Entries {
    fn new(present: impl ExactSizeIterator<Item = bool>) -> Entries {
        let count = present.len();
        let (present_now, absent) = (Bits::new(count), Bits::new(count));
        let entries = Entries { states: Vec::new(), present: present_now, absent, next: None };
        let states = present.enumerate().map(|(i, there)| {
            if there {
                entries.present.insert(i)
            } else {
                entries.absent.insert(i)
            };
            AtomicU32::new(if there { PRESENT } else { 0 })
        });
        let states = states.collect();
        Entries { states, ..entries }
    }

    /// How many there may be.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether one is there.
    pub fn is_present(&self, entry: u32) -> bool {
        self.states[entry as usize].load(Relaxed) & PRESENT != 0
    }

    /// Uses one that is there; it is not removed until [`Entries::release`].
    pub fn hold(&self, entry: u32) -> bool {
        let change = |state| (state & PRESENT != 0 && state & CHANGING == 0).then_some(state + 1);
        self.states[entry as usize].fetch_update(Relaxed, Relaxed, change).is_ok()
    }

    /// Ends a use.
    pub fn release(&self, entry: u32) {
        self.states[entry as usize].fetch_sub(1, Relaxed);
    }

    /// Takes one that nobody uses, to make it (`there`: false) or to remove it; [`Entries::settle`] gives it back.
    pub fn claim(&self, entry: u32, there: bool) -> bool {
        let free = if there { PRESENT } else { 0 };
        self.states[entry as usize].compare_exchange(free, CHANGING, Relaxed, Relaxed).is_ok()
    }

    /// Says what became of a claimed one, and how many use it now.
    pub fn settle(&self, entry: u32, there: bool, users: u32) {
        let at = entry as usize;
        if there {
            self.absent.remove(at);
            self.present.insert(at);
        } else {
            self.present.remove(at);
            self.absent.insert(at);
        }
        self.states[at].store(if there { PRESENT | users } else { 0 }, Relaxed);
    }

    /// One by chance that `take` accepts, from those that are there or those that are not.
    fn by_chance(
        &self,
        there: bool,
        random: &mut Xoshiro256PlusPlus,
        take: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let count = self.states.len() as u64;
        if count == 0 {
            return None;
        }
        if let Some(next) = &self.next {
            return self.in_turn(there, &next[usize::from(there)], take);
        }
        let mut last = 0;
        for _ in 0..TRIES {
            last = below(random, count) as u32;
            if take(last) {
                return Some(last);
            }
        }
        self.next(there, last as usize, take)
    }

    /// The first from `from` on, and then from the beginning, that `take` accepts.
    fn next(&self, there: bool, from: usize, take: impl Fn(u32) -> bool) -> Option<u32> {
        let bits = if there { &self.present } else { &self.absent };
        for (mut at, end) in [(from, self.states.len()), (0, from)] {
            while let Some(found) = bits.next(at).filter(|found| *found < end) {
                if take(found as u32) {
                    return Some(found as u32);
                }
                at = found + 1;
            }
        }
        None
    }

    /// The next one after that which anybody took last.
    fn in_turn(&self, there: bool, turn: &AtomicUsize, take: impl Fn(u32) -> bool) -> Option<u32> {
        let bits = if there { &self.present } else { &self.absent };
        // Twice round: those that others use or change are passed over.
        for _ in 0..2 * self.states.len() {
            let at = turn.load(Relaxed);
            let found = bits.next(at).or_else(|| bits.next(0))?;
            let taken = turn.compare_exchange(at, found + 1, Relaxed, Relaxed).is_ok();
            if taken && take(found as u32) {
                return Some(found as u32);
            }
        }
        self.next(there, 0, take)
    }

    /// Holds one that is there, by chance.
    pub fn hold_any(&self, random: &mut Xoshiro256PlusPlus) -> Option<u32> {
        self.by_chance(true, random, |entry| self.hold(entry))
    }

    /// Holds the next one that is there.
    pub fn hold_next(&self, from: usize) -> Option<u32> {
        self.next(true, from, |entry| self.hold(entry))
    }

    /// Claims the first from `from` on, and then from the beginning.
    pub fn claim_next(&self, there: bool, from: usize) -> Option<u32> {
        self.next(there, from, |entry| self.claim(entry, there))
    }

    /// Claims one by chance.
    pub fn claim_any(&self, there: bool, random: &mut Xoshiro256PlusPlus) -> Option<u32> {
        self.by_chance(there, random, |entry| self.claim(entry, there))
    }
}

/// Whether a program makes symbolic links in a set.
fn makes_links(ops: &[Op], set: &str) -> bool {
    let makes = |op: &Op| op.act == Act::Symlink && op.set.as_deref() == Some(set);
    ops.iter().any(|op| makes(op) || makes_links(&op.ops, set))
}

/// Sizes of files.
enum Sizes {
    Alike(u64),
    Each(Vec<u64>),
}

/// A set while it is used.
pub struct Set {
    /// Its id in the plan.
    pub id: String,
    shape: Shape,
    /// Number of the next directory that is listed, where they are taken in turn.
    turn: Option<AtomicUsize>,
    sizes: Sizes,
    /// Digits of files' names, fewest and most.
    digits: [u8; 2],
    /// Name of the one file or device that it is in its directory, if it is no tree.
    alone: Option<CString>,
    /// What becomes of links in its names: those that programs make are followed to what is in the set.
    pub links: Links,
    /// Where its files end and cannot be made longer: a device's size.
    pub end: u64,
    /// How its files are opened: for reading and writing, unless it is a device that nothing writes to.
    pub access: libc::c_int,
    /// Its files.
    pub files: Entries,
    /// Its leaf directories.
    pub leaves: Entries,
}

impl Set {
    /// Whether programs make symbolic links in it.
    pub fn has_links(&self) -> bool {
        matches!(self.links, Links::Below)
    }

    /// Draws shape, sizes and what is there of a set of a checked plan.
    pub fn draw(set: &FileSet, plan: &Plan, variables: &Variables, position: usize) -> Set {
        let seed = derive(plan.seed, "set", position as u64);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Not the number of a thread, which may draw from the same variable.
        let mut draws = Draws::new(variables, seed, derive(0, "set", position as u64));
        let depth = set.depth.as_ref().map(|depth| Number::of(depth, &plan.variables));
        let shape = Shape::draw(set, depth, &mut draws, &mut random);
        let size = Number::of(&set.size, &plan.variables);
        let one = plan.targets.iter().find(|target| {
            target.id == set.target && matches!(target.kind, TargetKind::File | TargetKind::Device)
        });
        // Its name is known once its target is open.
        let alone = one.map(|_| CString::default());
        let led = plan
            .workers
            .iter()
            .any(|worker| matches!(&worker.source, Source::Program { ops, .. } if makes_links(ops, &set.id)));
        let links = if led { Links::Below } else { Links::Refused };
        let sizes = match size {
            _ if one.is_some() => Sizes::Alike(one.map_or(0, |one| one.size)),
            Number::Always(size) => Sizes::Alike(size as u64),
            drawn => Sizes::Each((0..set.entries).map(|_| draws.value(drawn, || 0) as u64).collect()),
        };
        let share = if one.is_some() { 1.0 } else { set.present };
        let files = Entries::new(shape.homes.iter().map(|_| shape::present(share, &mut random)));
        let leaves = Entries::new(shape.leaves.iter().map(|_| shape::present(set.present, &mut random)));
        let end = one.map_or(u64::MAX, |one| one.size);
        let reads_only = one.is_some_and(|one| !crate::host::target::uses(plan, &one.id).writes);
        let access = if reads_only { libc::O_RDONLY } else { libc::O_RDWR };
        let next = || set.in_turn.then(Default::default);
        let (files, leaves) = (Entries { next: next(), ..files }, Entries { next: next(), ..leaves });
        let turn = set.in_turn.then(AtomicUsize::default);
        let digits = set.digits;
        Set { id: set.id.clone(), turn, shape, sizes, digits, alone, links, end, access, files, leaves }
    }

    /// Bytes of a file when it was made.
    pub fn size(&self, file: u32) -> u64 {
        match &self.sizes {
            Sizes::Alike(size) => *size,
            Sizes::Each(sizes) => sizes[file as usize],
        }
    }

    /// Directories below the root.
    pub fn directories(&self) -> usize {
        self.shape.directories.len()
    }

    /// Number of a directory to be listed.
    pub fn any_directory(&self, random: &mut Xoshiro256PlusPlus) -> u32 {
        let count = self.directories().max(1);
        match &self.turn {
            Some(turn) => (turn.fetch_add(1, Relaxed) % count) as u32,
            None => below(random, count as u64) as u32,
        }
    }

    /// Whether it is one file or device that was there.
    pub fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// Blocks of `unit` bytes that all files there may be have when they are made.
    pub fn blocks(&self, unit: u64) -> u64 {
        let blocks = |file| self.size(file).div_ceil(unit);
        (0..self.files.len() as u32).map(blocks).fold(0, u64::saturating_add)
    }

    /// Bytes and number of what is there now.
    pub fn content(&self) -> (u64, u64) {
        let there = (0..self.files.len() as u32).filter(|file| self.files.is_present(*file));
        there.fold((0u64, 0), |sum, file| (sum.0.saturating_add(self.size(file)), sum.1 + 1))
    }

    /// Says what the one file or device is called that it is.
    pub fn call_alone(&mut self, name: CString) {
        self.alone = Some(name);
    }

    /// Number of the directory that a file is in.
    pub fn home(&self, file: u32) -> u32 {
        self.shape.homes.get(file as usize).copied().unwrap_or(ROOT)
    }

    /// Number of the directory that a leaf directory is in.
    pub fn leaf_home(&self, leaf: u32) -> u32 {
        self.shape.leaves.get(leaf as usize).map_or(ROOT, |leaf| leaf.0)
    }

    /// Number of the directory that a directory is in.
    pub fn parent(&self, directory: u32) -> u32 {
        self.shape.directories.get(directory as usize).map_or(ROOT, |directory| directory.parent)
    }

    /// Path of a file below the root; of a set that is one file or device its name.
    pub fn file_path<'a>(&self, file: u32, room: &'a mut [u8; LONGEST]) -> &'a std::ffi::CStr {
        if let Some(path) = &self.alone {
            let path = path.as_bytes_with_nul();
            let at = LONGEST - path.len().min(LONGEST);
            room[at..].copy_from_slice(&path[path.len() - (LONGEST - at)..]);
            return std::ffi::CStr::from_bytes_with_nul(&room[at..]).expect("ends with the only zero byte");
        }
        let home = self.shape.homes[file as usize];
        let number = file - self.shape.directories[home as usize].first + 1;
        let [least, most] = self.digits;
        let more = number % (u32::from(most - least) + 1);
        self.path(home, number, least + more as u8, room)
    }

    /// Path of a leaf directory below the root.
    pub fn leaf_path<'a>(&self, leaf: u32, room: &'a mut [u8; LONGEST]) -> &'a std::ffi::CStr {
        let (home, number) = self.shape.leaves[leaf as usize];
        self.path(home, number, DIGITS, room)
    }

    /// Path of a directory below the root.
    pub fn directory_path<'a>(&self, directory: u32, room: &'a mut [u8; LONGEST]) -> &'a std::ffi::CStr {
        let at = self.shape.directories[directory as usize];
        self.path(at.parent, at.number, DIGITS, room)
    }

    /// Written from its end, so that no directory is visited twice.
    #[inline]
    fn path<'a>(
        &self,
        mut home: u32,
        mut number: u32,
        mut least: u8,
        room: &'a mut [u8; LONGEST],
    ) -> &'a std::ffi::CStr {
        let mut at = LONGEST - 1;
        room[at] = 0;
        loop {
            let mut digits = 0;
            while digits < least || number > 0 {
                at -= 1;
                room[at] = b'0' + (number % 10) as u8;
                number /= 10;
                digits += 1;
            }
            least = DIGITS;
            if home == ROOT {
                break;
            }
            at -= 1;
            room[at] = b'/';
            let directory = self.shape.directories[home as usize];
            (home, number) = (directory.parent, directory.number);
        }
        std::ffi::CStr::from_bytes_with_nul(&room[at..]).expect("ends with the only zero byte")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(present: &[bool]) -> Entries {
        Entries::new(present.iter().copied())
    }

    #[test]
    fn what_is_used_is_not_removed_and_what_is_claimed_not_used() {
        let entries = entries(&[true, false]);
        assert!(entries.hold(0) && entries.hold(0) && !entries.hold(1));
        assert!(!entries.claim(0, true));
        entries.release(0);
        entries.release(0);
        assert!(entries.claim(0, true) && !entries.claim(0, true) && !entries.hold(0));
        entries.settle(0, false, 0);
        assert!(!entries.hold(0) && entries.claim(0, false));
        entries.settle(0, true, 1);
        assert!(!entries.claim(0, true) && entries.hold(0));
    }

    #[test]
    fn in_turn_those_that_are_used_are_passed_over() {
        let entries = Entries { next: Some(Default::default()), ..entries(&[true, true, false, true, true]) };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut next = || entries.claim_any(true, &mut random);
        assert_eq!([next(), next(), next()], [Some(0), Some(1), Some(3)]);
        entries.settle(1, true, 0);
        assert_eq!([next(), next(), next()], [Some(4), Some(1), None]);
        assert_eq!(entries.claim_any(false, &mut random), Some(2));
        entries.settle(3, true, 0);
        assert_eq!(entries.hold_any(&mut random), Some(3));
    }

    #[test]
    fn the_last_one_is_found() {
        let mut present = vec![false; 10_000];
        present[77] = true;
        let entries = entries(&present);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..20 {
            assert_eq!(entries.hold_any(&mut random), Some(77));
        }
        assert_eq!(entries.hold_next(78), Some(77));
        assert_eq!(entries.claim_any(true, &mut random), None);
        assert!((0..9_999).all(|_| entries.claim_any(false, &mut random).is_some_and(|e| {
            entries.settle(e, true, 0);
            e != 77
        })));
        assert_eq!(entries.claim_any(false, &mut random), None);
    }
}
