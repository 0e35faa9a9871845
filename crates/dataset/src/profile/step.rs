//! One snapshot as a change of the one before.

use super::{MOST_SIZE, Markov, Pattern};
use crate::chunks::MOST_CHUNK;
use crate::tree::{Chunking, Kind, Series, State, Tree};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Steps of chunk sizes for each doubling.
const SIZE_STEPS: f64 = 32.0;
/// Ratios that count as one.
const RATIO_STEP: u8 = 4;

/// Characteristics of a file (section 4.5.2). Of new files chunks count by how often they occur in the snapshot before;
/// of those that are deleted or modified by how often besides in their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct New {
    /// What they are like.
    pub file: File,
    /// Of their unique chunks, those that are twice in the new snapshot.
    pub twice: u32,
    /// More often.
    pub often: u32,
    /// Of their other chunks, those that no file kept: moved, not copied.
    pub moved: u32,
    /// Files.
    pub count: u32,
}

/// Deleted files that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gone {
    /// What they were like.
    pub file: File,
    /// Bits of their size in bytes: 0 of empty ones, then of less than 2, 4, 8, .. bytes.
    pub bits: u32,
    /// [`State`] they were in.
    pub state: u32,
    /// Files.
    pub count: u32,
}

/// Modified files that are alike, before and after: a change descriptor of the thesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Changed {
    /// What they were like.
    pub file: File,
    /// Bits of their size in bytes: 0 of empty ones, then of less than 2, 4, 8, .. bytes.
    pub bits: u32,
    /// [`State`] they were in.
    pub state: u32,
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
    /// Of its unique chunks, those that are twice in the new snapshot.
    pub twice: u32,
    /// More often.
    pub often: u32,
    /// Where it changed.
    pub pattern: Pattern,
    /// Files.
    pub count: u32,
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

    fn of(mut counts: FxHashMap<(u16, u8), u32>) -> Sizes {
        let mut cells: Vec<_> = counts.drain().map(|((size, ratio), count)| (size, ratio, count)).collect();
        cells.sort_unstable();
        Sizes { cells }
    }

    fn check(&self) -> Result<(), String> {
        let wrong = |(size, ratio, _): &(u16, u8, u32)| *size >= 768 || *ratio > u8::MAX / RATIO_STEP + 1;
        if self.cells.iter().any(wrong) { Err("a chunk of 16 MiB or more".into()) } else { Ok(()) }
    }
}

/// Number of a size, and of a ratio.
fn numbers(size: u32, ratio: u8) -> (u16, u8) {
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

/// Range of ratios that a number stands for.
pub(crate) fn ratios(number: u8) -> (u8, u8) {
    if number == 0 {
        (0, 0)
    } else {
        ((number - 1) * RATIO_STEP + 1, (number - 1).saturating_mul(RATIO_STEP) + RATIO_STEP)
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
    /// Deleted files.
    pub gone: Vec<Gone>,
    /// Modified files.
    pub changed: Vec<Changed>,
    /// How many new chunks are three times or more in the new snapshot: times, chunks.
    pub often: Vec<(u32, u32)>,
    /// New chunks that are the only one of their file.
    pub only: Sizes,
    /// Others that are not the last of their file.
    pub inner: Sizes,
    /// Those that are.
    pub last: Sizes,
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
        };
        let changed = |row: &Changed| {
            let parts = u64::from(row.unique) + u64::from(row.kept);
            let dups = u64::from(row.unique) + u64::from(row.dup1) + u64::from(row.dup2);
            file(&row.file)
                || row.size > MOST_SIZE
                || parts > u64::from(row.size)
                || dups > u64::from(row.size)
                || row.kept > row.file.size
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
        if self.often.iter().any(|(times, _)| *times < 3) {
            return Err("a chunk that is there three times or more is there less often".into());
        }
        for sizes in [&self.only, &self.inner, &self.last] {
            sizes.check()?;
        }
        let most = match chunking {
            Chunking::Fixed { size } => size,
            Chunking::Fastcdc { max, .. } => max,
        };
        let fits =
            most <= MOST_CHUNK && self.inner.cells.iter().all(|(size, ..)| Sizes::range(*size).0 <= most);
        if fits { Ok(()) } else { Err("a chunk is larger than its chunking makes them".into()) }
    }
}

impl Step {
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

/// Bits of a size in bytes.
pub(crate) fn bits(size: u64) -> u32 {
    u64::BITS - size.leading_zeros()
}

/// How often each chunk occurs in a tree.
pub(crate) fn occurrences(tree: &Tree, chunks: usize) -> Vec<u32> {
    let mut counts = vec![0u32; chunks];
    tree.refs.iter().for_each(|chunk| counts[*chunk as usize] += 1);
    counts
}

/// A file's characteristics, where chunks that occur `first` times have no duplicate.
pub(crate) fn file_of(chunks: &[u32], counts: &[u32], first: u32, depth: u32, extension: u32) -> File {
    let mut file = File { depth, extension, size: chunks.len() as u32, unique: 0, dup1: 0, dup2: 0 };
    for chunk in chunks {
        match counts[*chunk as usize].wrapping_sub(first) {
            0 => file.unique += 1,
            1 => file.dup1 += 1,
            2 => file.dup2 += 1,
            _ => {}
        }
    }
    file
}

/// Collects steps in order.
pub(super) struct Collector<'a> {
    series: &'a Series,
    extensions: &'a [u32],
    /// Files of the snapshot before, by path.
    paths: FxHashMap<u64, u32>,
    counts: Vec<u32>,
    /// What happened to each of them.
    states: Vec<State>,
    /// Paths that went with the snapshot before.
    gone: Vec<u64>,
    /// From state to what became of it: modified, unmodified, deleted.
    moves: [[u64; 3]; 3],
    /// New files, deleted ones, files before; deleted ones that came again, of how many.
    sums: [u64; 5],
}

impl<'a> Collector<'a> {
    pub fn new(series: &'a Series, extensions: &'a [u32]) -> Collector<'a> {
        let counts = vec![0; series.chunks.len()];
        let (paths, states, gone) = (FxHashMap::default(), Vec::new(), Vec::new());
        Collector { series, extensions, paths, counts, states, gone, moves: [[0; 3]; 3], sums: [0; 5] }
    }

    /// The change to snapshot `i` from the one before.
    pub fn step(&mut self, i: usize) -> Step {
        let (series, empty) = (self.series, Tree::new(""));
        let before = if i == 0 { &empty } else { &series.trees[i - 1] };
        let after = &series.trees[i];
        let hashes = after.path_hashes(&series.names);
        let counts = occurrences(after, series.chunks.len());
        let pairs = self.pairs(before, after, &hashes);
        let kept = self.kept(before, after, &pairs);
        let depths = (before.depths(), after.depths());

        let mut step = Step { before: self.paths.len() as u32, ..Step::default() };
        let mut rows = Rows::default();
        let mut states = vec![State::New; after.len()];
        for file in regular(after) {
            let (chunks, entry) = (after.chunks_of(file), after.file(file));
            let depth = u32::from(depths.1[entry.dir as usize]);
            let extension = self.extensions[usize::from(entry.extension)];
            let told = file_of(chunks, &self.counts, 0, depth, extension);
            let fresh = |times: fn(u32) -> bool| {
                let wanted =
                    |chunk: &&u32| self.counts[**chunk as usize] == 0 && times(counts[**chunk as usize]);
                chunks.iter().filter(wanted).count() as u32
            };
            let (twice, often) = (fresh(|n| n == 2), fresh(|n| n > 2));
            let Some(was) = pairs[file as usize] else {
                let moved = |chunk: &&u32| self.counts[**chunk as usize] > 0 && kept[**chunk as usize] == 0;
                let moved = chunks.iter().filter(moved).count() as u32;
                rows.add_new(New { file: told, twice, often, moved, count: 0 });
                continue;
            };
            let old = before.chunks_of(was);
            if old == chunks {
                states[file as usize] = State::Unmodified;
                continue;
            }
            states[file as usize] = State::Modified;
            let has: rustc_hash::FxHashSet<u32> = old.iter().copied().collect();
            let same = chunks.iter().filter(|chunk| has.contains(chunk)).count() as u32;
            rows.add_changed(Changed {
                file: self.told(before, &depths.0, was),
                bits: bits(before.file(was).size),
                state: self.states[was as usize] as u32,
                size: told.size,
                unique: told.unique,
                dup1: told.dup1,
                dup2: told.dup2,
                // A chunk that is there twice was not kept twice from one.
                kept: same.min(old.len() as u32),
                twice,
                often,
                pattern: Pattern::of(old, chunks),
                count: 0,
            });
        }
        let stays: rustc_hash::FxHashSet<u32> = pairs.iter().flatten().copied().collect();
        let mut gone = Vec::new();
        for (hash, was) in &self.paths {
            if !stays.contains(was) {
                gone.push(*hash);
                let state = self.states[*was as usize] as u32;
                let bits = bits(before.file(*was).size);
                rows.add_gone(Gone { file: self.told(before, &depths.0, *was), bits, state, count: 0 });
            }
        }
        rows.into_step(&mut step);
        self.sizes(after, &counts, &mut step);
        step.directories = by_depth(&mut depths.1.iter().copied());
        let links = |kind| {
            let links = (0..after.len() as u32).filter(move |file| after.file(*file).mark.kind() == kind);
            by_depth(&mut links.map(|file| depths.1[after.file(file).dir as usize]))
        };
        (step.symlinks, step.hard_links) = (links(Kind::Symlink), links(Kind::Hard));
        self.count_moves(i, &pairs, &states, &hashes, &gone);
        self.paths = regular(after).map(|file| (hashes[file as usize], file)).collect();
        (self.counts, self.states, self.gone) = (counts, states, gone);
        step
    }

    /// Which file of the snapshot before each one was.
    fn pairs(&self, before: &Tree, after: &Tree, hashes: &[u64]) -> Vec<Option<u32>> {
        let regular = |tree: &Tree, file: u32| tree.file(file).mark.kind() == Kind::File;
        let pair =
            |file: u32| self.paths.get(&hashes[file as usize]).copied().filter(|was| regular(before, *was));
        (0..after.len() as u32).map(|file| pair(file).filter(|_| regular(after, file))).collect()
    }

    /// How often each chunk is in what files kept of themselves.
    fn kept(&self, before: &Tree, after: &Tree, pairs: &[Option<u32>]) -> Vec<u32> {
        let mut kept = vec![0u32; self.counts.len()];
        for file in regular(after) {
            if let Some(was) = pairs[file as usize] {
                let has: rustc_hash::FxHashSet<u32> = before.chunks_of(was).iter().copied().collect();
                let chunks = after.chunks_of(file).iter().filter(|chunk| has.contains(chunk));
                chunks.for_each(|chunk| kept[*chunk as usize] += 1);
            }
        }
        kept
    }

    /// A file's characteristics within its own snapshot.
    fn told(&self, tree: &Tree, depths: &[u16], file: u32) -> File {
        let entry = tree.file(file);
        let extension = self.extensions[usize::from(entry.extension)];
        file_of(tree.chunks_of(file), &self.counts, 1, u32::from(depths[entry.dir as usize]), extension)
    }

    fn sizes(&self, after: &Tree, counts: &[u32], step: &mut Step) {
        let (mut only, mut inner, mut last) =
            (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        let (mut often, mut seen) = (FxHashMap::default(), vec![false; counts.len()]);
        for file in regular(after) {
            let chunks = after.chunks_of(file);
            for (i, chunk) in chunks.iter().enumerate() {
                let at = *chunk as usize;
                if self.counts[at] > 0 || std::mem::replace(&mut seen[at], true) {
                    continue;
                }
                let cells = if chunks.len() == 1 {
                    &mut only
                } else if i + 1 < chunks.len() {
                    &mut inner
                } else {
                    &mut last
                };
                let key = numbers(self.series.chunks.size(*chunk), self.series.chunks.ratio(*chunk).0);
                *cells.entry(key).or_insert(0) += 1;
                if counts[at] > 2 {
                    *often.entry(counts[at]).or_insert(0) += 1;
                }
            }
        }
        (step.only, step.inner, step.last) = (Sizes::of(only), Sizes::of(inner), Sizes::of(last));
        step.often = often.into_iter().collect();
        step.often.sort_unstable();
    }

    fn count_moves(
        &mut self,
        i: usize,
        pairs: &[Option<u32>],
        states: &[State],
        hashes: &[u64],
        gone: &[u64],
    ) {
        let now: rustc_hash::FxHashSet<u64> = hashes.iter().copied().collect();
        if i > 0 {
            self.sums[0] += pairs.iter().zip(states).filter(|(pair, _)| pair.is_none()).count() as u64;
            self.sums[1] += gone.len() as u64;
            self.sums[2] += self.paths.len() as u64;
            self.sums[3] += self.gone.iter().filter(|hash| now.contains(hash)).count() as u64;
            self.sums[4] += self.gone.len() as u64;
        }
        // States are known from the second snapshot on: in the first everything counts as new.
        if i > 1 {
            for (pair, state) in pairs.iter().zip(states) {
                if let Some(was) = pair {
                    let to = usize::from(*state == State::Unmodified);
                    self.moves[self.states[*was as usize] as usize][to] += 1;
                }
            }
            for hash in gone {
                self.moves[self.states[self.paths[hash] as usize] as usize][2] += 1;
            }
        }
    }

    /// Transitions over all that was collected.
    pub fn markov(&self) -> Option<Markov> {
        let percent =
            |part: u64, whole: u64| if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
        let of = |state: State, to: usize| {
            let row = self.moves[state as usize];
            percent(row[to], row.iter().sum())
        };
        let [new, gone, before, again, of_gone] = self.sums;
        (before > 0).then(|| Markov {
            n: percent(new, before),
            nm: of(State::New, 0),
            nu: of(State::New, 1),
            nd: of(State::New, 2),
            mu: of(State::Modified, 1),
            md: of(State::Modified, 2),
            mm: of(State::Modified, 0),
            um: of(State::Unmodified, 0),
            ud: of(State::Unmodified, 2),
            uu: of(State::Unmodified, 1),
            dn: percent(again, of_gone),
            d: percent(gone, before),
        })
    }
}

/// Regular files of a tree.
pub(crate) fn regular(tree: &Tree) -> impl Iterator<Item = u32> + '_ {
    (0..tree.len() as u32).filter(|file| tree.file(*file).mark.kind() == Kind::File)
}

fn by_depth(depths: &mut dyn Iterator<Item = u16>) -> Vec<u32> {
    let mut counts = Vec::new();
    for depth in depths {
        let depth = usize::from(depth);
        counts.resize(counts.len().max(depth + 1), 0);
        counts[depth] += 1;
    }
    counts
}

/// Rows that are alike, counted.
#[derive(Default)]
struct Rows {
    new: FxHashMap<New, u32>,
    gone: FxHashMap<Gone, u32>,
    changed: FxHashMap<Changed, u32>,
}

impl Rows {
    fn add_new(&mut self, row: New) {
        *self.new.entry(row).or_insert(0) += 1;
    }

    fn add_gone(&mut self, row: Gone) {
        *self.gone.entry(row).or_insert(0) += 1;
    }

    fn add_changed(&mut self, row: Changed) {
        *self.changed.entry(row).or_insert(0) += 1;
    }

    fn into_step(self, step: &mut Step) {
        step.new = self.new.into_iter().map(|(row, count)| New { count, ..row }).collect();
        step.gone = self.gone.into_iter().map(|(row, count)| Gone { count, ..row }).collect();
        step.changed = self.changed.into_iter().map(|(row, count)| Changed { count, ..row }).collect();
        step.new.sort_unstable();
        step.gone.sort_unstable();
        step.changed.sort_unstable();
    }
}
