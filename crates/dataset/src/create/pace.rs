//! How far the making of a series is, in files.

use crate::Watch;

/// Files between two calls of who watches.
const LOOK: u64 = 256;

/// Counts files as they are made or kept. How many trees to come have is not known: each counts as the one at hand.
pub(super) struct Pace<'a> {
    watch: Watch<'a>,
    /// Trees that are not whole yet.
    trees: u64,
    /// Files of the tree at hand, and of those that are whole.
    files: u64,
    whole: u64,
    done: u64,
    is_ended: bool,
}

impl<'a> Pace<'a> {
    pub fn new(watch: Watch<'a>, trees: u64) -> Pace<'a> {
        Pace { watch, trees, files: 0, whole: 0, done: 0, is_ended: false }
    }

    /// A tree is begun that so many files are looked at for.
    pub fn begin(&mut self, files: u64) {
        self.files = files;
    }

    /// One of them is; false where the work is to end, and what there is by then is not used.
    pub fn step(&mut self) -> bool {
        self.done += 1;
        if self.done.is_multiple_of(LOOK) {
            self.tell();
        }
        !self.is_ended
    }

    /// The tree is whole; false where the work is to end.
    pub fn end(&mut self) -> bool {
        self.whole += self.files;
        self.done = self.whole;
        self.trees = self.trees.saturating_sub(1);
        self.tell();
        !self.is_ended
    }

    fn tell(&mut self) {
        if !self.is_ended {
            let of = self.whole + self.files * self.trees;
            self.is_ended = (self.watch)(self.done.min(of), of).is_break();
        }
    }
}
