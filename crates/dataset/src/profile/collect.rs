//! Tells one snapshot as a change of the one before.

use super::places::Growth;
use super::size_class::class;
use super::step::numbers;
use super::{Again, Carried, Changed, File, Gone, Markov, Material, New, Pattern, Sizes, Step};
use crate::chunks::Ratio;
use crate::tree::{Chunking, Kind, Series, State, Tree};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Bytes by which what lies in a file may move and be found by readers of blocks: a page, by whole numbers of which sections of
/// programs move.
const BLOCK: u64 = 4096;

/// Collects steps in order.
pub(super) struct Collector<'a> {
    series: &'a Series,
    extensions: &'a [u32],
    /// Whether runs are told.
    with_runs: bool,
    /// Files of the snapshot before, by path.
    paths: FxHashMap<u64, u32>,
    counts: Vec<u32>,
    /// How often each chunk was in all snapshots so far, up to what is told apart.
    seen: Vec<u8>,
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
    pub fn new(series: &'a Series, extensions: &'a [u32], with_runs: bool) -> Collector<'a> {
        Collector {
            series,
            extensions,
            with_runs,
            paths: FxHashMap::default(),
            counts: vec![0; series.chunks.len()],
            seen: vec![0; series.chunks.len()],
            states: Vec::new(),
            gone: Vec::new(),
            moves: [[0; 3]; 3],
            sums: [0; 5],
        }
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
        let mut lengths = Lengths::new(self.with_runs);
        let mut growth = Growth::default();
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
            let kind = self.kind(chunks);
            let (twice, often) = (fresh(|n| n == 2), fresh(|n| n > 2));
            let Some(was) = pairs[file as usize] else {
                let moved = |chunk: &&u32| self.counts[**chunk as usize] > 0 && kept[**chunk as usize] == 0;
                let moved = chunks.iter().filter(moved).count() as u32;
                let unique = chunks.iter().map(|chunk| self.counts[*chunk as usize] == 0);
                let (runs, gaps) = lengths.see(unique);
                let row = New { class: class(entry.size), ..New::default() };
                rows.add_new(New { file: told, twice, often, moved, kind, runs, gaps, ..row });
                continue;
            };
            let old = before.chunks_of(was);
            if old == chunks {
                states[file as usize] = State::Unmodified;
                continue;
            }
            states[file as usize] = State::Modified;
            let has: FxHashSet<u32> = old.iter().copied().collect();
            let same = chunks.iter().filter(|chunk| has.contains(chunk)).count() as u32;
            let (runs, _) = lengths.see(chunks.iter().map(|chunk| !has.contains(chunk)));
            growth.see(&series.chunks, old, chunks, &has);
            rows.add_changed(Changed {
                file: self.told(before, &depths.0, was),
                class: class(before.file(was).size),
                state: self.states[was as usize] as u32,
                becomes: if old.len() == 1 { self.class_of_one(chunks) } else { 0 },
                size: told.size,
                unique: told.unique,
                dup1: told.dup1,
                dup2: told.dup2,
                // A chunk that is there twice was not kept twice from one.
                kept: same.min(old.len() as u32),
                in_place: self.in_place(old, chunks).min(same).min(old.len() as u32),
                twice,
                often,
                kind,
                // A chunk that is there twice may be kept more often than there was one.
                runs: runs.min(told.size - same.min(old.len() as u32)),
                pattern: Pattern::of(old, chunks),
                count: 0,
            });
        }
        let stays: FxHashSet<u32> = pairs.iter().flatten().copied().collect();
        let mut gone = Vec::new();
        for (hash, was) in &self.paths {
            if !stays.contains(was) {
                gone.push(*hash);
                let state = self.states[*was as usize] as u32;
                let class = class(before.file(*was).size);
                rows.add_gone(Gone { file: self.told(before, &depths.0, *was), class, state, count: 0 });
            }
        }
        rows.into_step(&mut step);
        lengths.into_step(&mut step);
        step.growth = growth.told();
        self.sizes(after, &counts, &growth, &mut step);
        step.carried = self.carried(&kept);
        step.directories = by_depth(&mut depths.1.iter().copied());
        let links = |kind| {
            let links = (0..after.len() as u32).filter(move |file| after.file(*file).mark.kind() == kind);
            by_depth(&mut links.map(|file| depths.1[after.file(file).dir as usize]))
        };
        (step.symlinks, step.hard_links) = (links(Kind::Symlink), links(Kind::Hard));
        step.again = self.again(&hashes);
        self.count_moves(i, &pairs, &states, step.again, &gone);
        self.paths = regular(after).map(|file| (hashes[file as usize], file)).collect();
        see(&mut self.seen, &counts);
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
                let has: FxHashSet<u32> = before.chunks_of(was).iter().copied().collect();
                let chunks = after.chunks_of(file).iter().filter(|chunk| has.contains(chunk));
                chunks.for_each(|chunk| kept[*chunk as usize] += 1);
            }
        }
        kept
    }

    /// Chunks of a file, and the byte at which each begins, but for whole blocks of [`BLOCK`] bytes; of chunks of one size, which
    /// always are, all of it.
    fn places<'b>(&'b self, chunks: &'b [u32]) -> impl Iterator<Item = (u32, u64)> + 'b {
        let block = match self.series.meta.chunking {
            Chunking::Fastcdc { .. } => BLOCK,
            Chunking::Fixed { .. } => u64::MAX,
        };
        let mut at = 0;
        chunks.iter().map(move |chunk| {
            let from = at % block;
            at += u64::from(self.series.chunks.size(*chunk));
            (*chunk, from)
        })
    }

    /// How many chunks of a file are at the place at which it had the same before.
    fn in_place(&self, old: &[u32], new: &[u32]) -> u32 {
        let mut left: FxHashMap<_, u32> = FxHashMap::default();
        self.places(old).for_each(|place| *left.entry(place).or_default() += 1);
        let mut stays = |place: &(u32, u64)| {
            left.get_mut(place).and_then(|left| left.checked_sub(1).map(|less| *left = less)).is_some()
        };
        self.places(new).filter(|place| stays(place)).count() as u32
    }

    /// A file's characteristics within its own snapshot.
    fn told(&self, tree: &Tree, depths: &[u16], file: u32) -> File {
        let entry = tree.file(file);
        let extension = self.extensions[usize::from(entry.extension)];
        file_of(tree.chunks_of(file), &self.counts, 1, u32::from(depths[entry.dir as usize]), extension)
    }

    /// The class of the size of a file of one chunk; 0 of others.
    fn class_of_one(&self, chunks: &[u32]) -> u32 {
        if let [chunk] = chunks { class(u64::from(self.series.chunks.size(*chunk))) } else { 0 }
    }

    /// The [`Material`] that the new chunks of a file are of.
    fn kind(&self, chunks: &[u32]) -> u8 {
        let of = &self.series.chunks;
        let new = chunks.iter().filter(|chunk| self.counts[**chunk as usize] == 0);
        let told = new.filter(|chunk| chunks.len() > 1 && of.ratio(**chunk) != Ratio::UNKNOWN);
        let (bytes, compressed) = told.fold((0.0, 0.0), |(bytes, compressed), chunk| {
            let size = f64::from(of.size(*chunk));
            (bytes + size, compressed + size / of.ratio(*chunk).value())
        });
        Material::number(bytes, compressed)
    }

    fn sizes(&self, after: &Tree, counts: &[u32], growth: &Growth, step: &mut Step) {
        // By kind: those that are the only one of their file are of none.
        let mut once: BTreeMap<u8, [FxHashMap<_, u32>; 3]> = BTreeMap::new();
        let mut shared: [FxHashMap<_, u32>; 3] = Default::default();
        let mut seen = vec![false; counts.len()];
        for file in regular(after) {
            let chunks = after.chunks_of(file);
            let kind = self.kind(chunks);
            for (i, chunk) in chunks.iter().enumerate() {
                let at = *chunk as usize;
                if self.counts[at] > 0 || std::mem::replace(&mut seen[at], true) {
                    continue;
                }
                let place = match chunks.len() {
                    1 => 0,
                    all => 1 + usize::from(i + 1 == all),
                };
                let (size, ratio) =
                    numbers(self.series.chunks.size(*chunk), self.series.chunks.ratio(*chunk).0);
                match counts[at] {
                    1 if growth.has(*chunk) => {}
                    1 => *once.entry(kind).or_default()[place].entry((size, ratio)).or_insert(0) += 1,
                    times => *shared[place].entry((times, size, ratio)).or_insert(0) += 1,
                }
            }
        }
        for (kind, cells) in once {
            let [only, inner, last] = cells.map(Sizes::of);
            if kind == 0 {
                (step.only, step.inner, step.last) = (only, inner, last);
            } else {
                step.kinds.push(Material { kind, inner, last });
            }
        }
        let [only, inner, last] = shared.map(|cells| {
            let cells = cells.into_iter().map(|((times, size, ratio), count)| (times, size, ratio, count));
            let mut cells: Vec<_> = cells.collect();
            cells.sort_unstable();
            cells
        });
        step.shared = Again { only, inner, last };
    }

    /// What became of the chunks of the snapshot before.
    fn carried(&self, kept: &[u32]) -> Vec<Carried> {
        let mut rows = FxHashMap::default();
        for (at, before) in self.counts.iter().enumerate().filter(|(_, before)| **before > 0) {
            // A chunk that a file has more often than before was not kept so often.
            let [before, kept] =
                [*before, kept[at].min(*before)].map(|times| times.min(u32::from(Carried::MOST)) as u8);
            let size = Carried::size_of(self.series.chunks.size(at as u32), self.series.meta.chunking);
            let row = Carried { size, seen: self.seen[at], before, kept, count: 0 };
            *rows.entry(row).or_insert(0) += 1;
        }
        let mut rows: Vec<_> = rows.into_iter().map(|(row, count)| Carried { count, ..row }).collect();
        rows.sort_unstable();
        rows
    }

    /// Files that went with the snapshot before and are there again.
    fn again(&self, hashes: &[u64]) -> u32 {
        let gone: FxHashSet<u64> = self.gone.iter().copied().collect();
        hashes.iter().filter(|hash| gone.contains(hash)).count() as u32
    }

    fn count_moves(&mut self, i: usize, pairs: &[Option<u32>], states: &[State], again: u32, gone: &[u64]) {
        if i > 0 {
            self.sums[0] += pairs.iter().zip(states).filter(|(pair, _)| pair.is_none()).count() as u64;
            self.sums[1] += gone.len() as u64;
            self.sums[2] += self.paths.len() as u64;
            self.sums[3] += u64::from(again);
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

/// Lengths of runs in files that are new or changed.
struct Lengths {
    wanted: bool,
    runs: FxHashMap<u32, u32>,
    gaps: FxHashMap<u32, u32>,
}

impl Lengths {
    fn new(wanted: bool) -> Lengths {
        Lengths { wanted, runs: FxHashMap::default(), gaps: FxHashMap::default() }
    }

    /// How many runs of new chunks, and of others, a file has.
    fn see(&mut self, fresh: impl Iterator<Item = bool>) -> (u32, u32) {
        let (mut counts, mut length, mut last) = ((0, 0), 0, None);
        if !self.wanted {
            return counts;
        }
        let mut end = |kind: Option<bool>, length: u32| {
            let (all, count) = match kind {
                Some(true) => (&mut self.runs, &mut counts.0),
                Some(false) => (&mut self.gaps, &mut counts.1),
                None => return,
            };
            *all.entry(length).or_insert(0) += 1;
            *count += 1;
        };
        for one in fresh {
            if last != Some(one) {
                end(last, length);
                (last, length) = (Some(one), 0);
            }
            length += 1;
        }
        end(last, length);
        counts
    }

    fn into_step(self, step: &mut Step) {
        (step.runs, step.gaps) = (self.runs.into_iter().collect(), self.gaps.into_iter().collect());
        step.runs.sort_unstable();
        step.gaps.sort_unstable();
    }
}

/// Regular files of a tree.
pub(crate) fn regular(tree: &Tree) -> impl Iterator<Item = u32> + '_ {
    (0..tree.len() as u32).filter(|file| tree.file(*file).mark.kind() == Kind::File)
}

/// How often each chunk occurs in a tree.
pub(crate) fn occurrences(tree: &Tree, chunks: usize) -> Vec<u32> {
    let mut counts = vec![0u32; chunks];
    tree.refs.iter().for_each(|chunk| counts[*chunk as usize] += 1);
    counts
}

/// Adds how often chunks are in one more snapshot to how often they were in those before.
pub(crate) fn see(seen: &mut [u8], counts: &[u32]) {
    for (seen, count) in seen.iter_mut().zip(counts) {
        *seen = (u32::from(*seen).saturating_add(*count)).min(u32::from(Carried::MOST)) as u8;
    }
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
