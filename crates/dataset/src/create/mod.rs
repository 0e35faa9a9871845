//! FS-IMPRESSIONS, FS-POPULATE and FS-MUTATE: series that are like a profile (Tarasov, sections 4.3.3 and 4.5.2).
//!
//! Every generation is the one before, changed by a step of the profile: files are deleted and modified that have the
//! characteristics and the state that the histograms ask for, or are the best match, and new ones are added. The first
//! generation is that change of an empty tree.

mod draw;
mod layout;
mod matching;
mod supply;

use crate::chunks::Chunks;
use crate::names::{Interner, Name, Names};
use crate::profile::{Changed, New, Profile, Step, bits, file_of, occurrences, regular};
use crate::tree::{Chunking, Entry, Kind, Mark, Meta, Series, State, Tree, tag};
use crate::{Error, Result};
use draw::Draw;
use layout::{Piece, layout};
use loadstone_content::Cutter;
use matching::Traits;
use serde::Serialize;
use std::ops::ControlFlow;
use supply::{Place, Pools, Supply, Times};

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Snapshots.
    pub generations: u32,
    /// Of everything drawn, and of the content.
    pub seed: u64,
    /// How many times as many files as the profile has.
    pub scale: f64,
}

/// How one generation came about.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Generation {
    /// Which of the profile's steps it is.
    pub step: usize,
    /// Files added.
    pub new: u64,
    /// Files asked to be deleted or modified.
    pub wanted: u64,
    /// Of these, files for which only a best match was found.
    pub best_match: u64,
    /// And those for which there was none left.
    pub missing: u64,
    /// Chunks made.
    pub fresh: u64,
}

/// Makes a series. Nothing is told where `watch`, told of generations done, ends it.
///
/// # Errors
/// For options that the profile does not allow, and more than 2^32 chunks.
pub fn create(
    profile: &Profile,
    options: &Options,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<(Series, Vec<Generation>)>> {
    let Options { generations, scale, .. } = *options;
    if generations == 0 || !(scale > 0.0 && scale <= 1e6) {
        let text = format!(
            "{generations} generations of a scale of {scale}: use 1 or more, and up to a million times"
        );
        return Err(Error::Option(text));
    }
    if generations > 1 && profile.steps.len() == 1 {
        return Err(Error::Option(
            "the profile is of a single snapshot and knows of no changes: make 1 generation, or profile a series".into(),
        ));
    }
    let mut maker = Maker::new(profile, options);
    let mut told = Vec::new();
    for generation in 0..generations as usize {
        told.push(maker.generation(generation)?);
        if watch(generation as u64 + 1, u64::from(generations)).is_break() {
            return Ok(None);
        }
    }
    Ok(Some((maker.series, told)))
}

struct Maker<'a> {
    profile: &'a Profile,
    options: Options,
    series: Series,
    /// The series' numbers of the profile's extensions.
    extensions: Vec<u16>,
    next_name: u32,
    /// Smallest chunk that another can follow, and largest.
    sizes: (u32, u32),
}

/// A file that is made or changed.
#[derive(Default)]
struct Drawn {
    chunks: Vec<u32>,
    kinds: Vec<Slot>,
}

/// What goes where in a file.
#[derive(Clone, Copy)]
enum Slot {
    Fresh(Times),
    Repeated(usize, bool),
}

impl<'a> Maker<'a> {
    fn new(profile: &'a Profile, options: &Options) -> Maker<'a> {
        let mut names = Names::new();
        let mut interner = Interner::new(&names);
        let extensions = profile
            .extensions
            .iter()
            .map(|one| interner.known(&mut names, one.clone().into_bytes()))
            .collect();
        let meta = Meta {
            chunking: profile.chunking,
            chunker: profile.chunker.clone(),
            codec: profile.codec.clone(),
            seed: Some(options.seed),
        };
        let sizes = match profile.chunking {
            Chunking::Fixed { size } => (size, size),
            Chunking::Fastcdc { min, average, max } => {
                let cutter = Cutter { min: min as usize, average: average as usize, max: max as usize };
                (cutter.least_inner() as u32, max)
            }
        };
        let series = Series { meta, chunks: Chunks::new(0), names, trees: Vec::new() };
        Maker { profile, options: *options, series, extensions, next_name: 0, sizes }
    }

    fn generation(&mut self, generation: usize) -> Result<Generation> {
        let mut draw = Draw::new(self.options.seed, generation as u64);
        let before = self.series.trees.pop().unwrap_or_else(|| Tree::new(""));
        let count = self.profile.steps.len();
        let number = if generation < count { generation } else { 1 + draw.below(count - 1) };
        let step = &self.profile.steps[number];
        let factor = if generation < count {
            self.options.scale
        } else {
            regular(&before).count() as f64 / f64::from(step.before.max(1))
        };
        let made = self.mutate(step, &before, factor, &mut draw);
        if generation > 0 {
            self.series.trees.push(before);
        }
        let (tree, told) = made?;
        self.series.trees.push(tree);
        Ok(Generation { step: number, ..told })
    }

    fn mutate(
        &mut self,
        step: &Step,
        before: &Tree,
        factor: f64,
        draw: &mut Draw,
    ) -> Result<(Tree, Generation)> {
        let counts = occurrences(before, self.series.chunks.len());
        let files: Vec<u32> = regular(before).collect();
        let (traits, mut wanted, mut changes) =
            (self.traits(before, &files, &counts), Vec::new(), Vec::new());
        for row in &step.gone {
            let times = draw.scaled(row.count, factor) as usize;
            wanted.extend(std::iter::repeat_n(Traits::new(row.file, row.state, row.bits), times));
        }
        let gone = wanted.len() as u32;
        for row in &step.changed {
            let times = draw.scaled(row.count, factor) as usize;
            wanted.extend(std::iter::repeat_n(Traits::new(row.file, row.state, row.bits), times));
            changes.extend(std::iter::repeat_n(row, times));
        }
        let (assigned, matched) = matching::assign(&traits, &wanted, draw);
        drop(traits);

        // What files keep, before anything is given to anybody.
        let mut kept = vec![0u32; counts.len()];
        let mut keep = |chunks: &[u32]| chunks.iter().for_each(|chunk| kept[*chunk as usize] += 1);
        let mut layouts = Vec::new();
        for (file, want) in files.iter().zip(&assigned) {
            let chunks = before.chunks_of(*file);
            match want.checked_sub(gone) {
                _ if *want == u32::MAX => keep(chunks),
                None => {}
                Some(change) => {
                    let size = |i: usize| self.series.chunks.size(chunks[i]);
                    let pieces = layout(changes[change as usize], chunks.len(), &size, draw);
                    for piece in pieces {
                        if let Piece::Kept(from, count) = piece {
                            keep(&chunks[from..from + count]);
                        }
                    }
                    layouts.push(pieces);
                }
            }
        }
        let pools = self.pools(before, &files, &assigned, &counts, &kept);
        let mut supply = Supply::new(step, self.sizes, pools);
        let (mut tree, dirs) = self.directories(before, step, factor, draw);
        let (mut layouts, mut drawn) = (layouts.into_iter(), Drawn::default());
        for (file, want) in files.iter().zip(&assigned) {
            let entry = before.file(*file);
            let chunks = before.chunks_of(*file);
            let dir = dirs[entry.dir as usize];
            if *want == u32::MAX {
                let mark = Mark::new(Kind::File, State::Unmodified);
                tree.add_file(&Entry { dir, mark, ..entry }, chunks)?;
            } else if let Some(change) = want.checked_sub(gone)
                && let Some(pieces) = layouts.next()
            {
                self.change(
                    changes[change as usize],
                    chunks,
                    &pieces,
                    &counts,
                    (&mut supply, &mut drawn),
                    draw,
                )?;
                let mark = Mark::new(Kind::File, State::Modified);
                let size = self.bytes_of(&drawn.chunks);
                tree.add_file(&Entry { dir, mark, size, ..entry }, &drawn.chunks)?;
            }
        }
        let new = self.add_new(step, factor, &mut tree, (&mut supply, &mut drawn), draw)?;
        self.add_links(before, &dirs, step, factor, &mut tree, draw)?;
        let told = Generation {
            step: 0,
            new,
            wanted: wanted.len() as u64,
            best_match: matched.best,
            missing: matched.missing,
            fresh: supply.fresh,
        };
        Ok((tree, told))
    }

    fn traits(&self, tree: &Tree, files: &[u32], counts: &[u32]) -> Vec<Traits> {
        let depths = tree.depths();
        let mut numbers = vec![0u32; self.series.names.extensions.len()];
        (0..).zip(&self.extensions).for_each(|(number, own)| numbers[usize::from(*own)] = number);
        let traits = files.iter().map(|file| {
            let entry = tree.file(*file);
            let (depth, extension) =
                (u32::from(depths[entry.dir as usize]), numbers[usize::from(entry.extension)]);
            let told = file_of(tree.chunks_of(*file), counts, 1, depth, extension);
            Traits::new(told, entry.mark.state() as u32, bits(entry.size))
        });
        traits.collect()
    }

    /// Chunks by how often they were there, those that are kept apart from those that are not.
    fn pools(&self, before: &Tree, files: &[u32], assigned: &[u32], counts: &[u32], kept: &[u32]) -> Pools {
        let mut pools = Pools::new();
        let mut seen = vec![false; counts.len()];
        let mut order: Vec<usize> = (0..files.len()).collect();
        // Files that went, those that are alike together: new files that were moved come in the same order.
        order.sort_by_key(|i| {
            let chunks = before.chunks_of(files[*i]).len();
            (assigned[*i] == u32::MAX, before.file(files[*i]).extension, chunks)
        });
        for i in order {
            for chunk in before.chunks_of(files[i]) {
                let at = *chunk as usize;
                if !std::mem::replace(&mut seen[at], true) {
                    let class = counts[at].min(3) as usize - 1;
                    if kept[at] == 0 {
                        pools.gone[class].push_back(*chunk);
                    } else {
                        pools.stay[class].push(*chunk);
                    }
                }
            }
        }
        pools
    }

    /// The tree's directories: those there were, as many at each depth as wanted. Tells where each old one is.
    fn directories(&mut self, before: &Tree, step: &Step, factor: f64, draw: &mut Draw) -> (Tree, Vec<u32>) {
        let mut tree = Tree::new("");
        let mut dirs = vec![0; before.dirs()];
        for dir in 1..before.dirs() {
            dirs[dir] = tree.add_dir(dirs[before.dirs.parent[dir] as usize], Name(before.dirs.name[dir]));
        }
        let mut by_depth = dirs_by_depth(&tree);
        for (depth, count) in step.directories.iter().enumerate().skip(1) {
            let wanted = draw.scaled(*count, factor) as usize;
            by_depth.resize_with(by_depth.len().max(depth + 1), Vec::new);
            while by_depth[depth].len() < wanted {
                let parents = &by_depth[depth - 1];
                if parents.is_empty() {
                    break;
                }
                let parent = parents[draw.below(parents.len())];
                let name = self.name();
                by_depth[depth].push(tree.add_dir(parent, name));
            }
        }
        (tree, dirs)
    }

    fn name(&mut self) -> Name {
        self.next_name += 1;
        Name::made(self.next_name)
    }

    fn bytes_of(&self, chunks: &[u32]) -> u64 {
        chunks.iter().map(|chunk| u64::from(self.series.chunks.size(*chunk))).sum()
    }

    /// Chunks of a modified file, in `drawn`.
    fn change(
        &mut self,
        row: &Changed,
        old: &[u32],
        pieces: &[Piece; 5],
        counts: &[u32],
        (supply, drawn): (&mut Supply<'_>, &mut Drawn),
        draw: &mut Draw,
    ) -> Result<()> {
        let mut kept = [0u32; 3];
        let (mut total, mut others) = (0, 0);
        for piece in pieces {
            match piece {
                Piece::Kept(from, count) => {
                    for chunk in &old[*from..from + count] {
                        kept[counts[*chunk as usize].clamp(1, 3) as usize - 1] += 1;
                    }
                    total += count;
                }
                Piece::Other(count) => (total, others) = (total + count, others + count),
            }
        }
        // Chunks of other files make up for what the descriptor has and the file did not keep.
        let fresh = (row.unique as usize + (row.kept as usize).saturating_sub(total - others)).min(others);
        drawn.kinds.clear();
        push_fresh(&mut drawn.kinds, fresh, row.twice as usize, row.often as usize);
        let mut dups = [row.dup1.saturating_sub(kept[0]), row.dup2.saturating_sub(kept[1]), u32::MAX];
        for _ in fresh..others {
            let class = dups.iter().position(|left| *left > 0).unwrap_or(2);
            dups[class] -= 1;
            drawn.kinds.push(Slot::Repeated(class, false));
        }
        drawn.chunks.clear();
        supply.pools.jump(draw);
        let mut kinds = std::mem::take(&mut drawn.kinds).into_iter();
        for piece in pieces {
            match piece {
                Piece::Kept(from, count) => drawn.chunks.extend_from_slice(&old[*from..from + count]),
                Piece::Other(count) => {
                    for slot in kinds.by_ref().take(*count) {
                        let chunk = self.fill(slot, place(drawn.chunks.len(), total), supply, draw)?;
                        drawn.chunks.push(chunk);
                    }
                }
            }
        }
        self.settle(drawn, supply, draw)
    }

    /// New files, with their chunks.
    fn add_new(
        &mut self,
        step: &Step,
        factor: f64,
        tree: &mut Tree,
        (supply, drawn): (&mut Supply<'_>, &mut Drawn),
        draw: &mut Draw,
    ) -> Result<u64> {
        let mut by_depth = dirs_by_depth(tree);
        by_depth.iter_mut().for_each(|dirs| draw.shuffle(dirs));
        let mut new = 0;
        for row in &step.new {
            for _ in 0..draw.scaled(row.count, factor) {
                self.new_chunks(row, supply, drawn, draw)?;
                // A depth that has no directory: the deepest there is.
                let depth = (0..=row.file.depth as usize)
                    .rev()
                    .find(|d| by_depth.get(*d).is_some_and(|d| !d.is_empty()));
                let dirs = &by_depth[depth.unwrap_or(0)];
                let entry = Entry {
                    dir: dirs[draw.below(dirs.len())],
                    name: self.name(),
                    extension: self.extensions[row.file.extension as usize],
                    mark: Mark::new(Kind::File, State::New),
                    size: self.bytes_of(&drawn.chunks),
                    private: &[],
                };
                tree.add_file(&entry, &drawn.chunks)?;
                new += 1;
            }
        }
        Ok(new)
    }

    fn new_chunks(
        &mut self,
        row: &New,
        supply: &mut Supply<'_>,
        drawn: &mut Drawn,
        draw: &mut Draw,
    ) -> Result<()> {
        let file = &row.file;
        let size = file.size as usize;
        drawn.kinds.clear();
        push_fresh(&mut drawn.kinds, file.unique as usize, row.twice as usize, row.often as usize);
        let rest = file.size - file.unique - file.dup1 - file.dup2;
        let mut moved = row.moved;
        for (class, count) in [file.dup1, file.dup2, rest].into_iter().enumerate() {
            let here = moved.min(count);
            moved -= here;
            let slots = (0..count).map(|i| Slot::Repeated(class, i < here));
            drawn.kinds.extend(slots);
        }
        // Chunks of a kind follow each other; which comes first is drawn.
        if draw.happens(0.5) {
            drawn.kinds.rotate_left(file.unique as usize);
        }
        drawn.chunks.clear();
        supply.pools.jump(draw);
        for (i, slot) in std::mem::take(&mut drawn.kinds).into_iter().enumerate() {
            let chunk = self.fill(slot, place(i, size), supply, draw)?;
            drawn.chunks.push(chunk);
        }
        self.settle(drawn, supply, draw)
    }

    fn fill(&mut self, slot: Slot, place: Place, supply: &mut Supply<'_>, draw: &mut Draw) -> Result<u32> {
        let chunks = &mut self.series.chunks;
        match slot {
            Slot::Fresh(times) => supply.fresh(chunks, times, place, draw),
            Slot::Repeated(class, moved) => supply.repeated(chunks, class, moved, place, draw),
        }
    }

    /// Small chunks end files: where one that was kept is no longer the last it is replaced.
    fn settle(&mut self, drawn: &mut Drawn, supply: &mut Supply<'_>, draw: &mut Draw) -> Result<()> {
        let inner = drawn.chunks.len().saturating_sub(1);
        for i in 0..inner {
            if self.series.chunks.size(drawn.chunks[i]) < self.sizes.0 {
                if self.series.chunks.size(drawn.chunks[inner]) >= self.sizes.0 {
                    drawn.chunks.swap(i, inner);
                } else {
                    drawn.chunks[i] =
                        supply.fresh(&mut self.series.chunks, Times::Once, Place::Inner, draw)?;
                }
            }
        }
        Ok(())
    }

    /// Links: those there were, as many at each depth as wanted.
    fn add_links(
        &mut self,
        before: &Tree,
        dirs: &[u32],
        step: &Step,
        factor: f64,
        tree: &mut Tree,
        draw: &mut Draw,
    ) -> Result<()> {
        let (by_depth, depths) = (dirs_by_depth(tree), tree.depths());
        let files = tree.len();
        for (kind, wanted) in [(Kind::Symlink, &step.symlinks), (Kind::Hard, &step.hard_links)] {
            let mut left: Vec<u32> = wanted.iter().map(|count| draw.scaled(*count, factor)).collect();
            let mut links: Vec<_> = Vec::new();
            for link in (0..before.len() as u32).map(|file| before.file(file)) {
                let dir = dirs[link.dir as usize];
                let left = left.get_mut(usize::from(depths[dir as usize])).filter(|left| **left > 0);
                if let Some(left) = left.filter(|_| link.mark.kind() == kind) {
                    *left -= 1;
                    links.push((dir, link.name, State::Unmodified));
                }
            }
            for (depth, left) in left.into_iter().enumerate() {
                let places = by_depth.get(depth).map_or(&[][..], |dirs| dirs);
                for _ in 0..if places.is_empty() { 0 } else { left } {
                    links.push((places[draw.below(places.len())], self.name(), State::New));
                }
            }
            for (dir, name, state) in links {
                if files == 0 && kind == Kind::Hard {
                    break;
                }
                let first = (draw.below(files) as u32).to_le_bytes();
                let target = format!("f{:x}", draw.below(1 << 20));
                let record = match kind {
                    Kind::Hard => [(tag::HARD, &first[..])],
                    _ => [(tag::LINK, target.as_bytes())],
                };
                let size = if kind == Kind::Symlink { target.len() as u64 } else { 0 };
                let mark = Mark::new(kind, state);
                tree.add_file(&Entry { dir, name, extension: 0, mark, size, private: &record }, &[])?;
            }
        }
        Ok(())
    }
}

fn push_fresh(kinds: &mut Vec<Slot>, fresh: usize, twice: usize, often: usize) {
    let twice = twice.min(fresh);
    let often = often.min(fresh - twice);
    kinds.extend(std::iter::repeat_n(Slot::Fresh(Times::Often), often));
    kinds.extend(std::iter::repeat_n(Slot::Fresh(Times::Twice), twice));
    kinds.extend(std::iter::repeat_n(Slot::Fresh(Times::Once), fresh - twice - often));
}

fn place(at: usize, of: usize) -> Place {
    match (at + 1 == of, of) {
        (_, 1) => Place::Only,
        (true, _) => Place::Last,
        _ => Place::Inner,
    }
}

fn dirs_by_depth(tree: &Tree) -> Vec<Vec<u32>> {
    let mut dirs: Vec<Vec<u32>> = vec![Vec::new()];
    for (dir, depth) in (0..).zip(tree.depths()) {
        let depth = usize::from(depth);
        dirs.resize_with(dirs.len().max(depth + 1), Vec::new);
        dirs[depth].push(dir);
    }
    dirs
}

#[cfg(test)]
mod tests;
