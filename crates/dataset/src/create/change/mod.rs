//! How a modified file changes: which of its chunks stay, in which runs, and how long new ones are.

pub(crate) mod ages;
pub(crate) mod alignment;
pub(crate) mod growth;
pub(crate) mod layout;
pub(crate) mod runs;

use crate::create::content::populate::Populate;
use crate::profile::{Changed, Step};
use layout::Piece;
use runs::Runs;

/// A file stays as it is.
pub(crate) const KEPT: u32 = u32::MAX;
/// A file is deleted; anything smaller is its row among the changes.
pub(crate) const GONE: u32 = u32::MAX - 1;

/// What new files are made from.
pub(crate) enum Newcomers<'a, 'b> {
    /// Rows of the step, with the series' numbers of the profile's extensions, and runs where it has any.
    Rows(&'a [u16], Option<Runs>),
    /// Laws: so many files.
    Laws(&'b mut Populate<'a>, u64),
}

impl Newcomers<'_, '_> {
    /// About how many they are.
    pub fn count(&self, step: &Step, factor: f64) -> u64 {
        match self {
            Newcomers::Rows(..) => {
                let rows: u64 = step.new.iter().map(|row| u64::from(row.count)).sum();
                (rows as f64 * factor) as u64
            }
            Newcomers::Laws(_, count) => *count,
        }
    }
}

/// What one generation does to a tree.
pub(crate) struct Change<'a, 'b> {
    /// What becomes of each regular file: [`KEPT`], [`GONE`], or a row of `changes`.
    pub fates: Vec<u32>,
    pub changes: Vec<&'a Changed>,
    /// Stretches of each changed file, in the order of the files.
    pub layouts: Vec<Vec<Piece>>,
    pub step: &'a Step,
    /// How many files each one of the step stands for.
    pub factor: f64,
    pub newcomers: Newcomers<'a, 'b>,
    /// Whether directories and links become as many as the step has.
    pub whole: bool,
    /// Deleted files that come again.
    pub again: u32,
}
