//! Which files change, by the histograms of a profile (Tarasov, section 4.5.2).

use crate::Result;
use crate::create::Generation;
use crate::create::change::ages::Ages;
use crate::create::change::layout::{Piece, layout};
use crate::create::change::runs::Runs;
use crate::create::change::{Change, GONE, KEPT, Newcomers};
use crate::create::content::source::Pools;
use crate::create::draw::Draw;
use crate::create::maker::Maker;
use crate::create::markov::matching::{self, Traits};
use crate::create::place::users::Lineage;
use crate::profile::{Changed, Profile, class, file_of, occurrences, regular, see};
use crate::tree::Tree;

impl Maker<'_> {
    /// The next tree by a profile: that of its step `place.0`, for `place.1` times as many files, or beyond its steps of one
    /// that is drawn.
    pub fn by_profile(
        &mut self,
        profile: &Profile,
        place: (usize, f64),
        before: &Tree,
        lineage: &mut Lineage,
        draw: &mut Draw,
    ) -> Result<(Tree, Generation)> {
        let extensions = self.extensions(profile.extensions.iter());
        let count = profile.steps.len();
        // Files are in no state but new before the second step, so later ones do without it where they can.
        let first = if count > 2 { 2 } else { 1 };
        let number = if place.0 < count { place.0 } else { first + draw.below(count - first) };
        let step = &profile.steps[number];
        let files: Vec<u32> = regular(before).collect();
        let factor = if place.0 == 0 { place.1 } else { files.len() as f64 / f64::from(step.before.max(1)) };
        let counts = occurrences(before, self.series.chunks.len());
        lineage.seen.resize(counts.len(), 0);
        see(&mut lineage.seen, &counts);
        let ages = Ages::of(step, (&lineage.seen, &counts), (&self.series, self.sizes));
        let (mut wanted, mut changes) = (Vec::new(), Vec::new());
        for row in &step.gone {
            let times = draw.scaled(row.count, factor) as usize;
            wanted.extend(std::iter::repeat_n(Traits::new(row.file, row.state, row.class), times));
        }
        let gone = wanted.len() as u32;
        for row in &step.changed {
            let times = draw.scaled(row.count, factor) as usize;
            wanted.extend(std::iter::repeat_n(Traits::new(row.file, row.state, row.class), times));
            changes.extend(std::iter::repeat_n(row, times));
        }
        let traits = self.traits(before, &files, &counts, &extensions);
        let (mut fates, matched) = matching::assign(traits, &wanted, draw);
        for fate in &mut fates {
            *fate = if *fate == u32::MAX { KEPT } else { fate.checked_sub(gone).unwrap_or(GONE) };
        }
        let runs = Runs::of(step);
        let mut layouts = self.layouts(before, (&files, &fates), &changes, runs.as_ref(), draw);
        let changed = files.iter().zip(&fates).filter(|(_, fate)| **fate < GONE);
        let changed: Vec<_> =
            changed.map(|(file, row)| (before.chunks_of(*file), changes[*row as usize])).collect();
        let again = |i: usize, draw: &mut Draw| Self::layout(changed[i].0, changed[i].1, runs.as_ref(), draw);
        let mut kept = kept(before, &files, &fates, &layouts, &counts);
        if let Some(ages) = &ages {
            ages.steer(&changed, &mut layouts, &mut kept, &again, draw);
        }
        let pools = pools(before, (&files, &fates), kept, &counts, &|chunk| {
            self.series.chunks.size(chunk) < self.sizes.0
        });
        let change = Change {
            fates,
            changes,
            layouts,
            step,
            factor,
            newcomers: Newcomers::Rows(&extensions, runs),
            whole: true,
            again: draw.scaled(step.again, factor),
        };
        let (tree, told) = self.apply(change, before, (&counts, pools), &mut lineage.left, draw)?;
        let wanted = wanted.len() as u64;
        Ok((
            tree,
            Generation { step: number, wanted, best_match: matched.best, missing: matched.missing, ..told },
        ))
    }

    fn traits(&self, tree: &Tree, files: &[u32], counts: &[u32], extensions: &[u16]) -> Vec<(Traits, u32)> {
        let depths = tree.depths();
        let mut numbers = vec![0u32; self.series.names.extensions.len()];
        (0..).zip(extensions).for_each(|(number, own)| numbers[usize::from(*own)] = number);
        let traits = files.iter().zip(0..).map(|(file, i)| {
            let entry = tree.file(*file);
            let (depth, extension) =
                (u32::from(depths[entry.dir as usize]), numbers[usize::from(entry.extension)]);
            let told = file_of(tree.chunks_of(*file), counts, 1, depth, extension);
            (Traits::new(told, entry.mark.state() as u32, class(entry.size)), i)
        });
        traits.collect()
    }

    /// Stretches of all files that change.
    pub fn layouts(
        &self,
        before: &Tree,
        (files, fates): (&[u32], &[u32]),
        changes: &[&Changed],
        runs: Option<&Runs>,
        draw: &mut Draw,
    ) -> Vec<Vec<Piece>> {
        let changed = files.iter().zip(fates).filter(|(_, fate)| **fate < GONE);
        let layouts = changed
            .map(|(file, row)| Self::layout(before.chunks_of(*file), changes[*row as usize], runs, draw));
        layouts.collect()
    }

    fn layout(chunks: &[u32], row: &Changed, runs: Option<&Runs>, draw: &mut Draw) -> Vec<Piece> {
        let by_runs = runs.and_then(|runs| runs.layout(row, chunks.len(), draw));
        by_runs.unwrap_or_else(|| layout(row, chunks.len(), draw))
    }
}

/// How often each chunk is in what files keep.
pub(crate) fn kept(
    before: &Tree,
    files: &[u32],
    fates: &[u32],
    layouts: &[Vec<Piece>],
    counts: &[u32],
) -> Vec<u32> {
    let mut kept = counts.to_vec();
    let mut layouts = layouts.iter();
    for (file, fate) in files.iter().zip(fates).filter(|(_, fate)| **fate != KEPT) {
        let chunks = before.chunks_of(*file);
        chunks.iter().for_each(|chunk| kept[*chunk as usize] -= 1);
        let pieces = if *fate < GONE { layouts.next() } else { None };
        for piece in pieces.into_iter().flatten() {
            if let Piece::Kept(from, count) = *piece {
                chunks[from..from + count].iter().for_each(|chunk| kept[*chunk as usize] += 1);
            }
        }
    }
    kept
}

/// Chunks by how often they were there, those that files keep apart from those that no file does.
pub(crate) fn pools(
    before: &Tree,
    (files, fates): (&[u32], &[u32]),
    mut kept: Vec<u32>,
    counts: &[u32],
    ends: &dyn Fn(u32) -> bool,
) -> Pools {
    let class = |chunk: usize| counts[chunk].min(3) as usize - 1;
    let mut pools = Pools::new();
    let went = files.iter().zip(fates).filter(|(_, fate)| **fate != KEPT);
    let mut went: Vec<u32> = went.map(|(file, _)| *file).collect();
    // Files that are alike together: new files that were moved come in the same order.
    went.sort_by_key(|file| (before.file(*file).extension, before.chunks_of(*file).len()));
    for chunk in went.iter().flat_map(|file| before.chunks_of(*file)) {
        let at = *chunk as usize;
        if kept[at] == 0 {
            pools.gone[class(at)].push(*chunk, ends(*chunk));
            // Once is enough.
            kept[at] = u32::MAX;
        }
    }
    // Numbers are given in the order of files, so those that follow each other are runs of files.
    for (at, _) in kept.iter().enumerate().filter(|(_, kept)| !matches!(**kept, 0 | u32::MAX)) {
        pools.stay[class(at)].push(at as u32);
    }
    pools
}
