//! One snapshot as a change of the one before.

use super::{MOST_SIZE, Pattern};
use crate::chunks::{MOST_CHUNK, Ratio};
use crate::tree::Chunking;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Steps of chunk sizes for each doubling.
const SIZE_STEPS: f64 = 32.0;
/// Ratios that count as one.
const RATIO_STEP: u8 = 4;

/// Characteristics of a file (section 4.5.2). Of new files chunks count by how often they occur in the snapshot before;
/// of those that are deleted or modified by how often besides in their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct File {
    /// Directories it is in, the root not counted.
    pub depth: u32,
    /// Which one of the profile's extensions.
    pub extension: u32,
    /// Chunks.
    pub size: u32,
    /// Chunks without a duplicate.
    pub unique: u32,
    /// With one.
    pub dup1: u32,
    /// With two.
    pub dup2: u32,
}

/// New files that are alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct New {
    /// What they are like.
    pub file: File,
    /// Of their unique chunks, those that are twice in the new snapshot.
    pub twice: u32,
    /// More often.
    pub often: u32,
    /// Of their other chunks, those that no file kept: moved, not copied.
    pub moved: u32,
    /// [`Material`] that its unique chunks are of; 0 where that is not told.
    #[serde(default, skip_serializing_if = "is_none")]
    pub kind: u8,
    /// Runs of unique chunks, where runs are told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs: u32,
    /// Runs of the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gaps: u32,
    /// Class of their size, as of [`Gone`]; 0 also where that is not told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub class: u32,
    /// Files.
    pub count: u32,
}

/// Deleted files that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gone {
    /// What they were like.
    pub file: File,
    /// Class of their size in bytes: 0 of empty files, then four for each doubling. Up to version 3 one for each doubling.
    #[serde(alias = "bits")]
    pub class: u32,
    /// [`State`](crate::State) they were in.
    pub state: u32,
    /// Files.
    pub count: u32,
}

/// Modified files that are alike, before and after: a change descriptor of the thesis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Changed {
    /// What they were like.
    pub file: File,
    /// Class of their size in bytes: 0 of empty files, then four for each doubling. Up to version 3 one for each doubling.
    #[serde(alias = "bits")]
    pub class: u32,
    /// [`State`](crate::State) they were in.
    pub state: u32,
    /// Of a file of one chunk before and after, class of its size after; 0 of others, and where that is not told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub becomes: u32,
    /// Chunks after.
    pub size: u32,
    /// Of these, not in the snapshot before.
    pub unique: u32,
    /// Once in the snapshot before.
    pub dup1: u32,
    /// Twice.
    pub dup2: u32,
    /// Chunks that the file had before.
    pub kept: u32,
    /// Of these, chunks that begin at the same byte as before, or, cut by FastCDC, whole blocks of 4 KiB from it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_place: u32,
    /// Of its unique chunks, those that are twice in the new snapshot.
    pub twice: u32,
    /// More often.
    pub often: u32,
    /// [`Material`] that its unique chunks are of; 0 where that is not told.
    #[serde(default, skip_serializing_if = "is_none")]
    pub kind: u8,
    /// Runs of chunks that the file did not have, where runs are told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs: u32,
    /// Where it changed.
    pub pattern: Pattern,
    /// Files.
    pub count: u32,
}

/// Chunks of the snapshot before that are alike, and what became of them. Each number of times is told up to
/// [`Carried::MOST`], which stands for all from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Carried {
    /// Of what size they are, by [`Carried::size_of`]; 0 where that is not told.
    #[serde(default, skip_serializing_if = "is_none")]
    pub size: u8,
    /// How often they were in all snapshots up to that one together.
    pub seen: u8,
    /// How often in that one.
    pub before: u8,
    /// Of these, how often files have kept them.
    pub kept: u8,
    /// Chunks.
    pub count: u32,
}

impl Carried {
    /// Times that are told apart.
    pub const MOST: u8 = 4;
    /// Sizes that are told apart.
    pub const SIZES: u8 = 4;

    /// Which of the sizes chunks of so many bytes are of, from 1 on: a change hits large ones more often. Sizes of chunks that
    /// all have one are not told.
    pub(crate) fn size_of(bytes: u32, chunking: Chunking) -> u8 {
        match chunking {
            Chunking::Fixed { .. } => 0,
            Chunking::Fastcdc { average, .. } => {
                let ends = [3 * u64::from(average) / 4, 5 * u64::from(average) / 4, 2 * u64::from(average)];
                1 + ends.iter().filter(|end| u64::from(bytes) >= **end).count() as u8
            }
        }
    }

    fn check(&self) -> bool {
        self.size <= Self::SIZES
            && (1..=Self::MOST).contains(&self.before)
            && (self.before..=Self::MOST).contains(&self.seen)
            && self.kept <= self.before
    }
}

/// Sizes and ratios of new chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Size in 32nds of a doubling, ratio in eighths of one from 1 on (0: unknown), chunks.
    pub cells: Vec<(u16, u8, u32)>,
}

impl Sizes {
    /// Range of a size's number, bytes.
    pub fn range(number: u16) -> (u32, u32) {
        let edge = |number: u16| (f64::from(number) / SIZE_STEPS).exp2().ceil() as u32;
        (edge(number).max(1), edge(number + 1).max(edge(number) + 1) - 1)
    }

    pub(super) fn of(mut counts: FxHashMap<(u16, u8), u32>) -> Sizes {
        let mut cells: Vec<_> = counts.drain().map(|((size, ratio), count)| (size, ratio, count)).collect();
        cells.sort_unstable();
        Sizes { cells }
    }

    fn check(mut cells: impl Iterator<Item = (u16, u8)>) -> Result<(), String> {
        let wrong = |(size, ratio): (u16, u8)| size >= 768 || ratio > u8::MAX / RATIO_STEP + 1;
        if cells.any(wrong) { Err("a chunk of 16 MiB or more".into()) } else { Ok(()) }
    }
}

/// New chunks of files whose new chunks compress about as far together, and which have several chunks: programs, texts and
/// pictures are far apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Material {
    /// Which one: quarters of a doubling that the ratio of all together has, from 1 on.
    pub kind: u8,
    /// Chunks that are not the last of their file.
    pub inner: Sizes,
    /// Those that are.
    pub last: Sizes,
}

impl Material {
    /// Of chunks of so many bytes, and of so many when compressed.
    pub(super) fn number(bytes: f64, compressed: f64) -> u8 {
        if compressed > 0.0 { 1 + (4.0 * (bytes / compressed).log2()).clamp(0.0, 250.0) as u8 } else { 0 }
    }
}

/// Sizes and ratios of new chunks that are in the new snapshot more than once: how often, and the cells of [`Sizes`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// Of chunks that are the only one of their file where they are there first.
    pub only: Vec<(u32, u16, u8, u32)>,
    /// That another one follows.
    pub inner: Vec<(u32, u16, u8, u32)>,
    /// That end it.
    pub last: Vec<(u32, u16, u8, u32)>,
}

impl Again {
    fn all(&self) -> impl Iterator<Item = &(u32, u16, u8, u32)> {
        self.only.iter().chain(&self.inner).chain(&self.last)
    }

    fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// Number of a size, and of a ratio.
pub(super) fn numbers(size: u32, ratio: u8) -> (u16, u8) {
    let mut number = (f64::from(size).log2() * SIZE_STEPS) as u16;
    // Rounding may have put an edge on its wrong side.
    while Sizes::range(number).0 > size {
        number -= 1;
    }
    while Sizes::range(number).1 < size {
        number += 1;
    }
    (number, if ratio == 0 { 0 } else { (ratio - 1) / RATIO_STEP + 1 })
}

/// Sizes and ratios of chunks, counted.
pub(crate) fn sizes_of(chunks: impl Iterator<Item = (u32, Ratio)>) -> Sizes {
    let mut cells = FxHashMap::default();
    chunks.for_each(|(size, ratio)| *cells.entry(numbers(size, ratio.0)).or_insert(0) += 1);
    Sizes::of(cells)
}

/// Range of ratios that a number stands for.
pub(crate) fn ratios(number: u8) -> (u8, u8) {
    if number == 0 {
        (0, 0)
    } else {
        let first = (number - 1).saturating_mul(RATIO_STEP).saturating_add(1);
        (first, first.saturating_add(RATIO_STEP - 1))
    }
}

/// One snapshot as a change of the one before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Regular files before.
    pub before: u32,
    /// Directories after, by depth; the root is at depth 0.
    pub directories: Vec<u32>,
    /// Symbolic links after, by depth.
    pub symlinks: Vec<u32>,
    /// Further names of files after, by depth.
    pub hard_links: Vec<u32>,
    /// New files.
    pub new: Vec<New>,
    /// New files that were deleted one snapshot before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u32,
    /// Deleted files.
    pub gone: Vec<Gone>,
    /// Modified files.
    pub changed: Vec<Changed>,
    /// What became of the chunks there were; nothing of the first snapshot, and in profiles of version 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Carried>,
    /// How many new chunks are three times or more in the new snapshot: times, chunks; of profiles up to version 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub often: Vec<(u32, u32)>,
    /// New chunks that are the only one of their file.
    pub only: Sizes,
    /// Others that are not the last of their file, of files of no kind.
    pub inner: Sizes,
    /// Those that are.
    pub last: Sizes,
    /// Those of files of some kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Material>,
    /// Those of all of them that are twice or more in the new snapshot, which the others are without from version 3 on.
    #[serde(default, skip_serializing_if = "Again::is_empty")]
    pub shared: Again,
    /// Runs of new chunks in new and modified files, where runs are told: chunks, runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<(u32, u32)>,
    /// Runs of other chunks between, before and after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<(u32, u32)>,
    /// Places of modified files at which as many chunks come as go: bytes that come for each byte that goes, and the same of
    /// what codecs make of them. The sizes above are without these chunks. Nothing where there is no such place, and in profiles
    /// up to version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<[f64; 2]>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_none(kind: &u8) -> bool {
    *kind == 0
}

impl Step {
    /// What generators rely on, checked of a step that was read.
    pub(super) fn check(&self, extensions: u32, chunking: Chunking) -> Result<(), String> {
        let file = |file: &File| {
            let parts = u64::from(file.unique) + u64::from(file.dup1) + u64::from(file.dup2);
            file.depth > 4096
                || file.extension >= extensions
                || file.size > MOST_SIZE
                || parts > u64::from(file.size)
        };
        let new = |row: &New| {
            let other = row.file.size.saturating_sub(row.file.unique);
            file(&row.file)
                || u64::from(row.twice) + u64::from(row.often) > u64::from(row.file.unique)
                || row.moved > other
                || row.runs > row.file.unique
                || row.gaps > other
        };
        let changed = |row: &Changed| {
            let parts = u64::from(row.unique) + u64::from(row.kept);
            let dups = u64::from(row.unique) + u64::from(row.dup1) + u64::from(row.dup2);
            file(&row.file)
                || row.size > MOST_SIZE
                || parts > u64::from(row.size)
                || dups > u64::from(row.size)
                || row.kept > row.file.size
                || row.in_place > row.kept
                || row.runs > row.size - row.kept
                || u64::from(row.twice) + u64::from(row.often) > u64::from(row.unique)
        };
        if self.new.iter().any(new)
            || self.gone.iter().any(|row| file(&row.file))
            || self.changed.iter().any(changed)
        {
            return Err("a file has more chunks of some kind than chunks".into());
        }
        let by_depth = [&self.directories, &self.symlinks, &self.hard_links];
        if self.directories.first() != Some(&1) || by_depth.iter().any(|counts| counts.len() > 4097) {
            return Err("it has no root, or directories that are too deep".into());
        }
        if !self.carried.iter().all(Carried::check) {
            return Err("a chunk is there more often in a part than in the whole".into());
        }
        if self.often.iter().any(|(times, count)| *times < 3 || *count == 0) {
            return Err(
                "a chunk that is there three times or more is there less often, or there is none".into()
            );
        }
        if self.runs.iter().chain(&self.gaps).any(|(length, _)| !(1..=MOST_SIZE).contains(length)) {
            return Err("a run of no chunk, or of more than a file has".into());
        }
        if self.growth.into_iter().flatten().any(|growth| !(1e-9..=1e9).contains(&growth)) {
            return Err("places of files grow to nothing, or beyond all bounds".into());
        }
        if self.shared.all().any(|(times, .., count)| *times < 2 || *count == 0) {
            return Err("a chunk that is there twice or more is there less often, or there is none".into());
        }
        if !self.kinds.is_sorted_by(|one, other| one.kind < other.kind)
            || self.kinds.iter().any(|kind| kind.kind == 0)
        {
            return Err("a kind of chunks is told twice, or is none".into());
        }
        let kinds = self.kinds.iter().flat_map(|kind| [&kind.inner, &kind.last]);
        let sizes = kinds.chain([&self.only, &self.inner, &self.last]).flat_map(|sizes| &sizes.cells);
        Sizes::check(sizes.map(|(size, ratio, _)| (*size, *ratio)))?;
        Sizes::check(self.shared.all().map(|(_, size, ratio, _)| (*size, *ratio)))?;
        let most = match chunking {
            Chunking::Fixed { size } => size,
            Chunking::Fastcdc { max, .. } => max,
        };
        let inner = self.kinds.iter().map(|kind| &kind.inner).chain([&self.inner]);
        let inner = inner.flat_map(|sizes| &sizes.cells).map(|(size, ..)| *size);
        let mut inner = inner.chain(self.shared.inner.iter().map(|(_, size, ..)| *size));
        let fits = most <= MOST_CHUNK && inner.all(|size| Sizes::range(size).0 <= most);
        if fits { Ok(()) } else { Err("a chunk is larger than its chunking makes them".into()) }
    }
}

impl Step {
    /// Turns classes of sizes of a version up to 3, of which each is a doubling, into those of today: near their middle.
    pub(super) fn renew(&mut self) {
        let gone = self.gone.iter_mut().map(|row| &mut row.class);
        let changed = self.changed.iter_mut().map(|row| &mut row.class);
        for class in gone.chain(changed).filter(|class| **class > 0) {
            *class = ((*class).min(u64::BITS) - 1) * 4 + 3;
        }
    }

    /// Regular files after a step, of which there were so many before; histograms that say something else are refused, and
    /// with them numbers that no memory holds.
    pub(super) fn files_after(&self, before: u64) -> Result<u64, String> {
        let sum = |counts: &mut dyn Iterator<Item = u32>| counts.map(u64::from).sum::<u64>();
        let gone = sum(&mut self.gone.iter().map(|row| row.count));
        let changed = sum(&mut self.changed.iter().map(|row| row.count));
        let new = sum(&mut self.new.iter().map(|row| row.count));
        if u64::from(self.before) != before || gone + changed > before {
            return Err("it changes other files than there are before it".into());
        }
        let added = self.new.iter().map(|row| u64::from(row.count) * u64::from(row.file.size));
        let changed = self.changed.iter().map(|row| u64::from(row.count) * u64::from(row.size));
        let links = [&self.directories, &self.symlinks, &self.hard_links];
        let links = links.iter().map(|counts| sum(&mut counts.iter().copied())).max().unwrap_or(0);
        let chunks = added.chain(changed).fold(0u64, u64::saturating_add);
        if [chunks, links, new].iter().any(|count| *count > u64::from(u32::MAX)) {
            return Err("it has 2^32 files, links, directories or chunks".into());
        }
        Ok(before - gone + new)
    }
}
