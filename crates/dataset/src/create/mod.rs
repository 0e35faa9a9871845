//! FS-IMPRESSIONS, FS-POPULATE and FS-MUTATE: series that are made up, or go on (Tarasov, sections 4.3.3 and 4.5.2).
//!
//! A series begins with nothing, with a tree from distributions alone ([`Initial`]), or with one that is there. Every
//! further generation is the one before, changed: by a step of a profile, whose histograms say which files are deleted,
//! modified and new; by a Markov chain alone ([`Chain`]); or as a [`Mutator`] says. Whoever chooses, the same
//! code makes the change ([`maker`]).

mod change;
mod content;
mod draw;
mod estimate;
mod first_tree;
mod initial;
mod maker;
mod markov;
mod pace;
mod place;

use crate::profile::Profile;
use crate::scan::CHUNKER;
use crate::tree::{Chunking, Meta, Series};
use crate::{Error, Result, Watch};
pub use content::law::{Cell, Laws, SizeLaw, Tail};
use draw::Draw;
pub use initial::Initial;
use maker::Maker;
pub use markov::chain::Chain;
pub use markov::columns::{Changes, Columns, Mutator};
use pace::Pace;
use place::users::{self, Lineage};
use serde::Serialize;

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Snapshots to make.
    pub generations: u32,
    /// Of everything drawn, and of the content.
    pub seed: u64,
    /// How many times as many files as a profile has; of series that begin with nothing.
    pub scale: f64,
    /// Copies of the first tree, side by side, that go on by themselves (section 4.3.1).
    pub users: u32,
    /// Bytes of memory that may be taken; what would take more is refused before it is begun.
    pub memory: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { generations: 1, seed: 0, scale: 1.0, users: 1, memory: u64::MAX }
    }
}

/// How one generation came about.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Generation {
    /// Which of the profile's steps it is.
    pub step: usize,
    /// Files added.
    pub new: u64,
    /// Of these, files that were deleted a generation before and are there again under their name.
    pub again: u64,
    /// Files asked to be deleted or modified.
    pub wanted: u64,
    /// Of these, files for which only a best match was found.
    pub best_match: u64,
    /// And those for which there was none left.
    pub missing: u64,
    /// Chunks made.
    pub fresh: u64,
}

impl Generation {
    fn add(&mut self, other: &Generation) {
        self.step = other.step;
        self.new += other.new;
        self.again += other.again;
        self.wanted += other.wanted;
        self.best_match += other.best_match;
        self.missing += other.missing;
        self.fresh += other.fresh;
    }
}

/// What a series begins with.
pub enum Start<'a> {
    /// Nothing: the first step of a profile makes the first tree.
    Nothing,
    /// Distributions.
    Laws(&'a Initial),
    /// Snapshots that are there; the last one is changed.
    Series(Box<Series>),
}

/// What changes a tree into the next one.
pub enum By<'a> {
    /// The steps of a profile.
    Profile(&'a Profile),
    /// Transitions and patterns.
    Chain(&'a Chain),
    /// Whatever somebody wrote.
    Mutator(&'a mut dyn Mutator),
    /// Nothing does: there is one generation.
    Nothing,
}

/// Makes a series, or goes on with one. `watch` is told of files of all snapshots, of how many if further ones have as many
/// as the one at hand; nothing is told where it ends the work.
///
/// # Errors
/// For options that cannot be met: what is wrong, and what to do.
pub fn create(
    start: Start<'_>,
    mut by: By<'_>,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Option<(Series, Vec<Generation>)>> {
    check(&start, &by, options)?;
    estimate::check(&start, &by, options)?;
    let pace = Pace::new(watch, trees(&start, options));
    let (mut maker, mut told) = (Maker::new(meta_of(&start, &by, options), pace), Vec::new());
    let mut users = vec![Lineage::default()];
    let (initial, there) = match start {
        Start::Nothing => (None, false),
        Start::Laws(initial) => (Some(initial), false),
        Start::Series(series) => {
            maker.go_on(*series);
            users = users::part(&maker.series, options.users);
            (None, true)
        }
    };
    for generation in 0..options.generations as usize {
        let mut sum = Generation::default();
        for user in 0..users.len() {
            let draw = &mut Draw::new(options.seed, generation as u64, user as u64);
            let (before, lineage) = (users::take(&mut maker.series, &mut users, user), &mut users[user]);
            let (tree, one) = match (initial, &mut by) {
                (Some(initial), _) if generation == 0 => maker.begin(initial, options, draw)?,
                (_, By::Profile(profile)) => {
                    let place = (generation + usize::from(there), options.scale);
                    maker.by_profile(profile, place, &before, lineage, draw)?
                }
                (_, By::Chain(chain)) => maker.by_chain(chain, &before, lineage, draw)?,
                (_, By::Mutator(mutator)) => maker.by_mutator(&mut **mutator, &before, draw)?,
                (_, By::Nothing) => (before.clone(), Generation::default()),
            };
            if !maker.pace.end() {
                return Ok(None);
            }
            sum.add(&one);
            users::put(
                &mut maker.series,
                &mut users,
                user,
                (generation > 0 || there).then_some(before),
                tree,
            );
        }
        if users.len() > 1 {
            maker.series.trees.push(users::join(&users)?);
        } else if generation == 0 && !there && options.users > 1 {
            users = users::part(&maker.series, options.users);
            maker.series.trees.pop();
            maker.series.trees.push(users::join(&users)?);
        }
        told.push(sum);
    }
    Ok(Some((maker.series, told)))
}

/// Trees to make: users have the first one together, unless it is there.
fn trees(start: &Start<'_>, options: &Options) -> u64 {
    let together = u64::from(!matches!(start, Start::Series(_)));
    together + (u64::from(options.generations) - together) * u64::from(options.users)
}

/// Refuses what is not allowed.
fn check(start: &Start<'_>, by: &By<'_>, options: &Options) -> Result<()> {
    let Options { generations, scale, users, .. } = *options;
    let refuse = |text: String| Err(Error::Option(text));
    if generations == 0 || !(scale > 0.0 && scale <= 1e6) {
        return refuse(format!(
            "{generations} generations of a scale of {scale}: use 1 or more, and up to a million times"
        ));
    }
    if !(1..=65_536).contains(&users) {
        return refuse(format!("{users} users: use 1 to 65536"));
    }
    let changes = match start {
        Start::Nothing => generations > 1,
        Start::Laws(initial) => {
            initial.check()?;
            generations > 1
        }
        Start::Series(series) if series.trees.is_empty() => {
            return refuse("a series without a snapshot: scan a directory or an archive first".into());
        }
        Start::Series(_) => true,
    };
    match by {
        By::Profile(profile) if changes && profile.steps.len() == 1 => refuse(
            "the profile is of a single snapshot and knows of no changes: make 1 generation, or profile a series".into(),
        ),
        By::Nothing if changes => refuse("nothing says how generations change: make 1, or name a profile".into()),
        By::Profile(profile) => same_chunks(start, profile.chunking),
        By::Chain(chain) => chain.check(),
        By::Mutator(_) | By::Nothing => Ok(()),
    }
}

fn same_chunks(start: &Start<'_>, wanted: Chunking) -> Result<()> {
    let text = |chunking| match chunking {
        Chunking::Fixed { size } => format!("fixed:{size}"),
        Chunking::Fastcdc { min, average, max } => format!("fastcdc:{min},{average},{max}"),
    };
    match start {
        Start::Series(series) if series.meta.chunking != wanted => Err(Error::Option(format!(
            "the series has chunks of {}, the profile of {}: scan one of the two again with the chunking of the other",
            text(series.meta.chunking),
            text(wanted)
        ))),
        _ => Ok(()),
    }
}

/// What holds for the whole series.
fn meta_of(start: &Start<'_>, by: &By<'_>, options: &Options) -> Meta {
    let seed = Some(options.seed);
    match (start, by) {
        // What was written of it before has the same content as what comes.
        (Start::Series(series), _) => series.meta.clone(),
        (Start::Laws(initial), _) => {
            Meta { codec: initial.codec(), seed, ..Meta::new(initial.chunking, CHUNKER) }
        }
        (Start::Nothing, By::Profile(profile)) => Meta {
            codec: profile.codec.clone(),
            seed,
            resemblance: profile.resemblance,
            lz4: profile.lz4.clone(),
            stays: profile.stays,
            ..Meta::new(profile.chunking, &profile.chunker)
        },
        _ => Meta { seed, ..Meta::new(Chunking::default(), CHUNKER) },
    }
}

#[cfg(test)]
mod tests;
