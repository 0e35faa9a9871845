//! What becomes of the chunks of a tree, by how often they had been there. The thesis draws which chunks of a modified file
//! change; real ones that came lately go sooner. Whatever is chosen here is among equals: the model's own numbers stay.

use crate::chunks::Chunks;
use crate::create::change::alignment::Sums;
use crate::create::change::layout::{Piece, deal, merge, news, nudge, shift, slide, split};
use crate::create::content::law::Shares;
use crate::create::draw::Draw;
use crate::profile::{Carried, Changed, Step};
use crate::tree::Series;
use std::iter::Peekable;
use std::ops::Range;
use std::slice;

const MOST: usize = Carried::MOST as usize;
/// By how often chunks were in all snapshots so far, and in the last one; where sizes are told those of all sizes, and then
/// those of each.
const CLASSES: usize = (Carried::SIZES as usize + 1) * OF_ONE_SIZE;
const OF_ONE_SIZE: usize = MOST * MOST;
/// Times that files are laid out anew, for each file and in all, and chunks and stretches that are looked at.
const TRIES: usize = 20000;
const MOST_TRIES: usize = 1 << 19;
const LOOKS: usize = 1 << 25;
/// Chunks whose sizes are added up for a new layout in the time that one is looked at.
const ADDED: usize = 8;
/// Chunks that are looked at for one of which too many are kept.
const AHEAD: usize = 64;
/// By how much worse what is tried may be at first, on average, in the units of chi-square.
const HEAT: f64 = 6.0;
/// What a place weighs in which a file changes, and half of it what is kept on either side, where rows do not tell places.
const PLACES: f64 = 0.15;
/// What a stretch weighs that new chunks can hardly fill, so that what is behind it moves.
const MISFIT: f64 = 1.0;
/// What a chunk weighs that is in place beyond those of its row or short of them.
const OUT_OF_PLACE: f64 = 0.05;
/// What a place weighs that a file lacks of those that its row tells, and what all of them do together: where few are told each is
/// there. Of many some may be one: programs with less than half of their chunks in common do not change in the same places as
/// often as real ones do, and readers of large chunks would find less.
const LACKING: f64 = 0.1;
const ALL_LACKING: f64 = 4.0;
/// What a doubling weighs by which a stretch between two places is longer or shorter than it was laid out: real changes are near
/// each other, and readers of large chunks feel that.
const GAP: f64 = 0.1;
/// What a chunk weighs that goes from a place beyond those that come there, or comes beyond those that go: nineteen of twenty
/// places of real files lose as many as they get.
const UNEVEN: f64 = 0.3;
/// What a chunk weighs that a file keeps and its row does not have.
const SPARE: f64 = 0.2;
/// What chunks weigh that are there too often to be counted as unique, or as duplicates of one or two.
const OLD: f64 = 0.1;
/// What each chunk weighs by which a class is off, however many are in it: of those that stay some are counted with the few that
/// do not.
const EACH: f64 = 0.3;
/// What chunks of one size weigh beside those of all sizes. More than this keeps chunks from going by their age.
const OF_SIZE: f64 = 0.3;

/// A file that changes: its chunks before, and its row.
type File<'a> = (&'a [u32], &'a Changed);

/// Lays a file out from its row.
type Again<'a> = dyn Fn(usize, &mut Draw) -> Vec<Piece> + 'a;

/// Chunks of each class, by how often files have kept them.
type Kept = [[f64; MOST + 1]; CLASSES];

/// What a step says of the chunks of a tree.
pub(crate) struct Ages<'a> {
    counts: &'a [u32],
    /// Of each chunk.
    classes: Vec<u8>,
    wanted: Kept,
    chunks: &'a Chunks,
    /// Bytes of the smallest and the largest chunk that a new one can be.
    sizes: (u32, u32),
}

impl<'a> Ages<'a> {
    /// Of a tree whose chunks were there so often in all so far (`seen`) and in itself; nothing where the step does not tell.
    pub fn of(
        step: &Step,
        (seen, counts): (&[u8], &'a [u32]),
        (series, sizes): (&'a Series, (u32, u32)),
    ) -> Option<Ages<'a>> {
        let is_sized = step.carried.first()?.size > 0;
        let chunking = series.meta.chunking;
        let class = |(chunk, count): (usize, &u32)| {
            let size =
                if is_sized { Carried::size_of(series.chunks.size(chunk as u32), chunking) } else { 0 };
            class(size, seen[chunk].max(1), (*count).clamp(1, MOST as u32) as u8) as u8
        };
        let mut ages = Ages {
            counts,
            classes: counts.iter().enumerate().map(class).collect(),
            wanted: [[0.0; MOST + 1]; CLASSES],
            chunks: &series.chunks,
            sizes,
        };
        for row in &step.carried {
            let (kept, count) = (usize::from(row.kept), f64::from(row.count));
            let class = self::class(row.size, row.seen, row.before);
            ages.wanted[class][kept] += count;
        }
        ages.fill_in();
        let there = ages.count(counts);
        for (wanted, there) in ages.wanted.iter_mut().zip(there) {
            let (told, there): (f64, f64) = (wanted.iter().sum(), there.iter().sum());
            // A class that the profile does not know stays as it is laid out.
            let times = if told > 0.0 { there / told } else { 0.0 };
            wanted.iter_mut().for_each(|count| *count *= times);
        }
        Some(ages)
    }

    /// What chunks of all sizes do together is what those of sizes do that the profile does not have.
    fn fill_in(&mut self) {
        for age in 0..OF_ONE_SIZE {
            let all = || (age..CLASSES).step_by(OF_ONE_SIZE);
            let mut wanted = [0.0; MOST + 1];
            all().for_each(|class| add(&mut wanted, &self.wanted[class]));
            for class in all().filter(|class| self.wanted[*class] == [0.0; MOST + 1]).collect::<Vec<_>>() {
                self.wanted[class] = wanted;
            }
        }
    }

    fn class(&self, chunk: usize) -> usize {
        usize::from(self.classes[chunk])
    }

    fn count(&self, kept: &[u32]) -> Kept {
        let mut there = [[0.0; MOST + 1]; CLASSES];
        for (chunk, kept) in kept.iter().enumerate().filter(|(chunk, _)| self.counts[*chunk] > 0) {
            let (class, kept) = (self.class(chunk), (*kept as usize).min(MOST));
            there[class][kept] += 1.0;
            if class >= OF_ONE_SIZE {
                there[class % OF_ONE_SIZE][kept] += 1.0;
            }
        }
        there
    }

    /// Lays files out anew as long as that brings what they keep nearer to the step: simulated annealing (Kirkpatrick, Gelatt
    /// and Vecchi, Science 220, 1983). `files` are the chunks and the row of each, `kept`: how often files keep each chunk;
    /// `again` lays one out from its row.
    pub fn steer(
        &self,
        files: &[File<'_>],
        layouts: &mut [Vec<Piece>],
        kept: &mut [u32],
        again: &Again<'_>,
        draw: &mut Draw,
    ) {
        let there = self.count(kept);
        let mut account = Account { ages: self, there, kept, looks: 0 };
        let spare =
            files.iter().zip(&*layouts).map(|((chunks, row), layout)| self.spare(chunks, row, layout));
        let mut spare: Vec<_> = spare.collect();
        // Only what is to stay in place is measured.
        let measured = files.iter().map(|(chunks, row)| if row.in_place > 0 { *chunks } else { &[] });
        let sums: Vec<_> = measured.map(|chunks| Sums::of(chunks, self.chunks, self.sizes)).collect();
        let gaps: Vec<_> = layouts.iter().map(|layout| Gaps::of(layout)).collect();
        let mut unlikes: Vec<_> = files
            .iter()
            .zip(sums.iter().zip(&gaps))
            .zip(&*layouts)
            .map(|((file, laid_out), layout)| unlike(file.1, laid_out, layout))
            .collect();
        let shares = Shares::new(files.iter().map(|file| (file.0.len() as f64).sqrt()));
        let most = files.len().saturating_mul(TRIES).min(MOST_TRIES);
        for tries in 0..most {
            let done = (tries as f64 / most as f64).max(account.looks as f64 / LOOKS as f64);
            if done > 1.0 {
                break;
            }
            let i = shares.draw(draw);
            let (chunks, layout) = (files[i].0, &layouts[i]);
            let to = if draw.happens(0.5) { account.amiss(chunks, draw) } else { None };
            let mut other = match draw.below(10) {
                0..3 => nudge(layout, None, draw),
                3 => deal(layout, draw),
                8 => shift(layout, draw),
                4 => more_like(files[i].1, layout, draw),
                5 => merge(layout, draw),
                // Of chunks of one size as many have to come as go, or what is behind them moves.
                6..8 if self.sizes.0 < self.sizes.1 || files[i].1.in_place == 0 => slide(layout, draw),
                _ => None,
            }
            .unwrap_or_else(|| {
                account.looks += chunks.len() / ADDED;
                again(i, draw)
            });
            if to.is_some() {
                other = nudge(&other, to, draw).unwrap_or(other);
            }
            // There are never more places than the row tells.
            let runs = files[i].1.runs as usize;
            if runs > 0 && news(&other) > runs.max(news(layout)) {
                account.looks += layout.len();
                continue;
            }
            account.looks += layout.len().max(other.len());
            let other_is = unlike(files[i].1, (&sums[i], &gaps[i]), &other);
            let worse = other_is - unlikes[i];
            let turns = turns(&lost(chunks.len(), layout), &lost(chunks.len(), &other));
            let mut left = spare[i];
            let worse = worse + account.turn(chunks, &turns, false, &mut left);
            // What is worse by so much is taken as well, less and less often.
            if worse <= -HEAT * (1.0 - done) * (1.0 - draw.uniform()).ln() {
                (unlikes[i], spare[i], layouts[i]) = (other_is, left, other);
            } else {
                account.turn(chunks, &turns, true, &mut left);
            }
        }
    }

    /// Chunks that a file keeps beyond what its row has after it, by how often they were in the tree before.
    fn spare(&self, chunks: &[u32], row: &Changed, pieces: &[Piece]) -> [i64; 3] {
        let after = [row.dup1, row.dup2, row.size - row.unique - row.dup1 - row.dup2];
        let mut spare = after.map(|after| -i64::from(after));
        chunks.iter().for_each(|chunk| spare[self.copies(*chunk)] += 1);
        let lost = lost(chunks.len(), pieces).into_iter().flat_map(|range| &chunks[range]);
        lost.for_each(|chunk| spare[self.copies(*chunk)] -= 1);
        spare
    }

    fn copies(&self, chunk: u32) -> usize {
        self.counts[chunk as usize].min(3) as usize - 1
    }
}

/// Of chunks of such a size that were there so often in all and in the last one.
fn class(size: u8, seen: u8, before: u8) -> usize {
    (usize::from(size) * MOST + usize::from(seen) - 1) * MOST + usize::from(before) - 1
}

fn add(all: &mut [f64; MOST + 1], more: &[f64; MOST + 1]) {
    all.iter_mut().zip(more).for_each(|(all, one)| *all += one);
}

/// How far what files keep is from what is wanted.
struct Account<'a, 'b> {
    ages: &'b Ages<'a>,
    there: Kept,
    kept: &'b mut [u32],
    /// Chunks and stretches that were looked at.
    looks: usize,
}

impl Account<'_, '_> {
    /// Where in a file a stretch of chunks begins that another file does not keep, or of which too many are kept; the next one
    /// after any chunk.
    fn amiss(&mut self, chunks: &[u32], draw: &mut Draw) -> Option<usize> {
        let first = 1 + draw.below(chunks.len());
        let found = (first..chunks.len().min(first + AHEAD))
            .find(|at| self.is_amiss(chunks[*at]) && !self.is_amiss(chunks[*at - 1]));
        self.looks += found.map_or(AHEAD, |at| at - first);
        found
    }

    fn is_amiss(&self, chunk: u32) -> bool {
        let (kept, counts) = (self.kept[chunk as usize], self.ages.counts[chunk as usize]);
        let class = self.ages.class(chunk as usize) % OF_ONE_SIZE;
        let (there, wanted) = (&self.there[class], &self.ages.wanted[class]);
        let at = (kept as usize).min(MOST);
        kept > 0 && (kept < counts || there[at] >= wanted[at] + 1.0)
    }

    /// A file loses chunks and keeps others, or the other way round; tells by how much that is worse. `spare`: those that it
    /// keeps beyond its row.
    fn turn(
        &mut self,
        chunks: &[u32],
        turns: &[(Range<usize>, bool)],
        undo: bool,
        spare: &mut [i64; 3],
    ) -> f64 {
        let surplus = |spare: &[i64; 3]| SPARE * spare.iter().map(|one| (*one).max(0)).sum::<i64>() as f64;
        let mut worse = -surplus(spare);
        for (range, back) in turns {
            let back = *back != undo;
            for chunk in &chunks[range.clone()] {
                worse += self.turn_one(*chunk as usize, back);
                spare[self.ages.copies(*chunk)] += if back { 1 } else { -1 };
            }
            self.looks += range.len();
        }
        worse + surplus(spare)
    }

    fn turn_one(&mut self, chunk: usize, back: bool) -> f64 {
        let class = self.ages.class(chunk);
        let from = self.kept[chunk];
        let to = if back { from + 1 } else { from - 1 };
        self.kept[chunk] = to;
        let (from, to) = ((from as usize).min(MOST), (to as usize).min(MOST));
        if from == to {
            return 0.0;
        }
        let age = class % OF_ONE_SIZE;
        let mut worse = self.count_one(age, from, to);
        if class != age {
            worse += OF_SIZE * self.count_one(class, from, to);
        }
        if age / MOST + 1 < MOST { worse } else { OLD * worse }
    }

    /// A chunk of a class is kept `to` times and not `from` times.
    fn count_one(&mut self, class: usize, from: usize, to: usize) -> f64 {
        let (there, wanted) = (&mut self.there[class], &self.ages.wanted[class]);
        let off = |there: &[f64; MOST + 1]| {
            let one = |at: usize| {
                let off = there[at] - wanted[at];
                off.powi(2) / (wanted[at] + 1.0) + EACH * off.abs()
            };
            one(from) + one(to)
        };
        let before = off(there);
        there[from] -= 1.0;
        there[to] += 1.0;
        off(there) - before
    }
}

/// The same stretches in a number of places that is nearer to that of the row, or dealt out otherwise.
fn more_like(row: &Changed, pieces: &[Piece], draw: &mut Draw) -> Option<Vec<Piece>> {
    match (row.runs as usize, news(pieces)) {
        (0, _) if draw.happens(0.5) => split(pieces, draw),
        (0, _) => merge(pieces, draw),
        (runs, there) if there < runs => split(pieces, draw),
        (runs, there) if there > runs => merge(pieces, draw),
        _ => deal(pieces, draw),
    }
}

/// How much worse a layout is for places: each that its row has more, or each where rows do not tell; where they do also for other
/// distances between them than it was laid out with, and for places that lose more or fewer chunks than they get. And for
/// stretches that cannot be as long as what they replace, or too many or few in place, where the row has chunks that stay in
/// place.
fn unlike(row: &Changed, (sums, gaps): (&Sums, &Gaps), pieces: &[Piece]) -> f64 {
    let places = match row.runs as usize {
        0 => PLACES * pieces.len() as f64,
        runs => {
            let lacking = runs.saturating_sub(news(pieces)) as f64;
            (LACKING + ALL_LACKING / runs as f64) * lacking
                + GAP * gaps.apart(&Gaps::of(pieces))
                + UNEVEN * uneven(row.file.size as usize, pieces) as f64
        }
    };
    let asked = row.in_place as usize;
    if asked == 0 {
        return places;
    }
    let staying = sums.staying(pieces, asked);
    places + MISFIT * staying.misfits as f64 + OUT_OF_PLACE * staying.chunks.abs_diff(asked) as f64
}

/// By how many chunks places of a file of so many lose more or fewer than they get.
fn uneven(chunks: usize, pieces: &[Piece]) -> usize {
    let (mut end, mut added, mut off) = (0, 0usize, 0);
    for piece in pieces {
        match *piece {
            Piece::Kept(_, 0) => {}
            Piece::Kept(from, count) => {
                off += added.abs_diff(from.saturating_sub(end));
                (end, added) = (from + count, 0);
            }
            Piece::Other(count) => added += count,
        }
    }
    off + added.abs_diff(chunks.saturating_sub(end))
}

/// Stretches that are kept between two places: how many are of so many bits.
struct Gaps([u32; u32::BITS as usize]);

impl Gaps {
    fn of(pieces: &[Piece]) -> Gaps {
        let mut gaps = Gaps([0; u32::BITS as usize]);
        for piece in &pieces[pieces.len().min(1)..pieces.len().max(1) - 1] {
            if let Piece::Kept(_, count) = piece
                && *count > 0
            {
                gaps.0[count.ilog2().min(u32::BITS - 1) as usize] += 1;
            }
        }
        gaps
    }

    /// By how many doublings together they are longer or shorter than those; of other many, the longest are compared.
    fn apart(&self, other: &Gaps) -> f64 {
        let mut more = 0i64;
        let both = self.0.iter().zip(&other.0).rev();
        both.map(|(one, other)| {
            more += i64::from(*one) - i64::from(*other);
            more.abs() as f64
        })
        .sum()
    }
}

/// Stretches of a file of so many chunks that it does not keep.
fn lost(chunks: usize, pieces: &[Piece]) -> Vec<Range<usize>> {
    let (mut lost, mut end) = (Vec::with_capacity(pieces.len()), 0);
    let kept = pieces.iter().filter_map(|piece| match piece {
        Piece::Kept(from, count) if *count > 0 => Some((*from, *from + *count)),
        _ => None,
    });
    for (from, to) in kept.chain([(chunks, chunks)]) {
        if end < from {
            lost.push(end..from);
        }
        end = to;
    }
    lost
}

/// What one loses and the other does not; told is whether the second keeps it. Both ascend.
fn turns(one: &[Range<usize>], other: &[Range<usize>]) -> Vec<(Range<usize>, bool)> {
    let mut edges: Vec<usize> = one.iter().chain(other).flat_map(|range| [range.start, range.end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let has = |ranges: &mut Peekable<slice::Iter<'_, Range<usize>>>, at: usize| {
        while ranges.next_if(|range| range.end <= at).is_some() {}
        ranges.peek().is_some_and(|range| range.start <= at)
    };
    let differ = edges.windows(2).filter_map(|edge| {
        let (first, second) = (has(&mut one, edge[0]), has(&mut other, edge[0]));
        (first != second).then_some((edge[0]..edge[1], first))
    });
    differ.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_uneven_by_what_they_lose_more_or_fewer() {
        let even = [Piece::Other(1), Piece::Kept(1, 3), Piece::Other(2), Piece::Kept(6, 4)];
        assert_eq!(uneven(10, &even), 0);
        // Nothing goes for one, two more than come, and one at the end that nothing takes the place of.
        let other =
            [Piece::Kept(0, 2), Piece::Other(1), Piece::Kept(2, 2), Piece::Other(1), Piece::Kept(7, 2)];
        assert_eq!(uneven(10, &other), 1 + 2 + 1);
        assert_eq!(uneven(3, &[]), 3);
    }

    #[test]
    fn distances_are_apart_by_doublings() {
        let of = |counts: &[usize]| {
            let kept = counts.iter().flat_map(|count| [Piece::Kept(0, *count), Piece::Other(1)]);
            let all: Vec<_> = [Piece::Kept(0, 99), Piece::Other(1)].into_iter().chain(kept).collect();
            Gaps::of(&[&all[..], &[Piece::Kept(0, 99)]].concat())
        };
        // What is before the first and behind the last is none.
        assert_eq!(of(&[]).0, [0; u32::BITS as usize]);
        assert_eq!(of(&[3, 9]).apart(&of(&[2, 8])), 0.0);
        assert_eq!(of(&[3, 9]).apart(&of(&[3, 33])), 2.0);
        assert_eq!(of(&[1, 9]).apart(&of(&[9])), 1.0);
        assert_eq!(Gaps::of(&[]).apart(&of(&[1, 2])), 3.0);
    }

    #[test]
    fn turns_are_what_only_one_of_two_loses() {
        let mut draw = Draw::new(4, 4, 0);
        for _ in 0..2000 {
            let mut some = || -> Vec<bool> { (0..30).map(|_| draw.happens(0.5)).collect() };
            let (one, other) = (some(), some());
            let ranges = |lost: &[bool]| {
                let mut ranges: Vec<Range<usize>> = Vec::new();
                for at in (0..lost.len()).filter(|at| lost[*at]) {
                    match ranges.last_mut().filter(|last| last.end == at) {
                        Some(last) => last.end += 1,
                        None => ranges.push(at..at + 1),
                    }
                }
                ranges
            };
            let mut found = vec![None; 30];
            for (range, back) in turns(&ranges(&one), &ranges(&other)) {
                range.for_each(|at| assert_eq!(found[at].replace(back), None, "each is told once"));
            }
            let right = one.iter().zip(&other).map(|(one, other)| (one != other).then_some(*one));
            assert!(right.eq(found));
        }
    }
}
