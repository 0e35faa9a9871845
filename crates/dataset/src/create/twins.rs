//! Files that are alike and change alike: copies with another version in them, or one program built twice, with more of it in
//! one of them.

use super::draw::Draw;
use super::layout::Piece;
use crate::profile::Changed;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Times that the first of a group is laid out anew until all others can follow.
const TRIES: usize = 32;

/// A file that changes: its chunks before, and its row.
pub(super) type File<'a> = (&'a [u32], &'a Changed);

/// Files that change alike, each told by its number among all that change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The one that is laid out.
    pub lead: usize,
    /// Those that follow it.
    pub twins: Vec<Twin>,
}

impl Group {
    /// All of its files.
    pub fn files(&self) -> impl Iterator<Item = usize> {
        [self.lead].into_iter().chain(self.twins.iter().map(|twin| twin.file))
    }
}

/// A file that changes where another one does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Twin {
    pub file: usize,
    /// For each chunk of the other, and its end: where the first one is of those that both have from there on, and where the
    /// last one before ends; nothing where places are the same.
    at: Option<Vec<[usize; 2]>>,
    /// Stretches of chunks beyond those of the other.
    own: Vec<Range<usize>>,
    /// Where what both have is in the other and in this one.
    common: Vec<(usize, usize)>,
    chunks: usize,
    kept: usize,
    /// New chunks beyond those of the other, and how many of them no other file has.
    more: usize,
    alone: usize,
}

impl Twin {
    /// The stretches of this file where the other has these: what this one has beyond the other changes among its own
    /// chunks. Nothing where that cannot be.
    pub fn follow(&self, pieces: &[Piece]) -> Option<Vec<Piece>> {
        let Some(at) = &self.at else { return Some(pieces.to_vec()) };
        let before = at.len() - 1;
        // What is new, and the stretch behind it that is kept, here and in the other file.
        let mut places: Vec<(usize, Range<usize>, Range<usize>)> = Vec::with_capacity(pieces.len() / 2 + 2);
        let (mut added, mut end) = (0, 0);
        for piece in pieces {
            match *piece {
                Piece::Other(count) | Piece::Own(count) => added += count,
                Piece::Kept(_, 0) => {}
                Piece::Kept(from, count) => {
                    // At its beginning and end a file loses as many chunks as the other, between them those that the other has.
                    let lost = match end {
                        0 => 0..from,
                        _ if at[end][0] < at[from][1] => at[end][0]..at[from][1],
                        _ => at[from][0]..at[from][0],
                    };
                    // A stretch of which it has nothing is no stretch of its own, but at the beginning.
                    while places.len() > 1
                        && let Some((more, ..)) = places.pop_if(|(_, stays, _)| lost.start <= stays.start)
                    {
                        added += more;
                    }
                    match places.last_mut() {
                        Some((_, stays, _)) if lost.start <= stays.start => return None,
                        Some((_, stays, _)) => stays.end = lost.start.min(self.chunks),
                        None => {}
                    }
                    end = from + count;
                    places.push((std::mem::take(&mut added), lost.end..self.chunks, from..end));
                }
            }
        }
        let (_, last, _) = places.last_mut()?;
        last.end = self.chunks.checked_sub(before - end).filter(|end| *end > last.start)?;
        let there: usize = places.iter().map(|(_, stays, _)| stays.len()).sum();
        let less = there.checked_sub(self.kept)?;
        // What is others', too, comes last: before that it has theirs where the other has them.
        match places.last_mut().filter(|_| added == 0) {
            Some((last, ..)) => *last += self.more - self.alone,
            None => added += self.more - self.alone,
        }
        let replaced = less.min(self.alone);
        let (mut pieces, left) = self.lose(&places, added, less - replaced);
        if left + replaced + self.alone > 0 {
            self.put(&mut pieces, left + replaced)?;
        }
        Some(pieces)
    }

    /// The stretches without so many chunks of what is kept here beyond the other file, the first ones: what is behind them is where
    /// the other has it. Tells how many are still to go.
    fn lose(
        &self,
        places: &[(usize, Range<usize>, Range<usize>)],
        added: usize,
        mut less: usize,
    ) -> (Vec<Piece>, usize) {
        let mut pieces = Vec::with_capacity(2 * places.len() + 3);
        for (i, (added, stays, others)) in places.iter().enumerate() {
            pieces.push(Piece::Other(*added));
            let mut from = stays.start;
            let beyond =
                if less > 0 { beyond(&self.common, others.clone(), stays.clone()) } else { Vec::new() };
            // The first chunk that is kept and the last one stay.
            let most = stays.end - usize::from(i + 1 == places.len());
            for own in beyond {
                let start = own.start.max(from + usize::from(i == 0 && from == stays.start));
                let end = own.end.min(most).min(start + less);
                if start < end {
                    pieces.push(Piece::Kept(from, start - from));
                    (from, less) = (end, less - (end - start));
                }
            }
            pieces.push(Piece::Kept(from, stays.end - from));
        }
        pieces.push(Piece::Other(added));
        pieces.retain(|piece| !matches!(piece, Piece::Other(0) | Piece::Kept(_, 0)));
        (pieces, less)
    }

    /// Puts what is new beyond the other in place of so many chunks, where it has most chunks alone. Nothing where no stretch has
    /// so many.
    fn put(&self, pieces: &mut Vec<Piece>, less: usize) -> Option<()> {
        let fits = |piece: &Piece| match *piece {
            Piece::Kept(from, count) if count > less + 1 => Some((from, from + count)),
            _ => None,
        };
        let alone = |(from, end): (usize, usize)| {
            let first = self.own.partition_point(|own| own.end <= from);
            let here = self.own[first..].iter().take_while(|own| own.start < end);
            here.map(|own| (own.end.min(end) - own.start.max(from), own.start)).max()
        };
        let found = pieces.iter().enumerate().filter_map(|(i, piece)| Some((i, fits(piece)?)));
        let most = found.max_by_key(|(_, (from, end))| (alone((*from, *end)).map(|own| own.0), end - from));
        let (i, (from, end)) = most?;
        let at = alone((from, end)).map_or(from, |own| own.1).clamp(from + 1, end - less - 1);
        let apart =
            [Piece::Kept(from, at - from), Piece::Own(self.alone), Piece::Kept(at + less, end - at - less)];
        pieces.splice(i..=i, apart.into_iter().filter(|piece| *piece != Piece::Own(0)));
        Some(())
    }
}

/// Files in groups, alone where nothing is like them: those that change by one row and have most chunks in common, place by
/// place; and those of which one has most chunks of another, in its order, that change in the same pattern, and most of whose
/// new chunks are other files', too.
pub(super) fn groups(files: &[File<'_>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut first: FxHashMap<(&Changed, usize), usize> = FxHashMap::default();
    // By chunk the group whose first file has it.
    let mut having: FxHashMap<u32, usize> = FxHashMap::default();
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|i| (added(files[*i].1), files[*i].0.len()));
    for i in order {
        let (chunks, row) = files[i];
        let alike = first.get(&(row, chunks.len())).copied().filter(|group| {
            let other = files[groups[*group].lead].0;
            2 * chunks.iter().zip(other).filter(|(one, other)| one == other).count() > chunks.len()
        });
        if let Some(group) = alike {
            groups[group].twins.push(Twin {
                file: i,
                at: None,
                own: Vec::new(),
                common: Vec::new(),
                chunks: chunks.len(),
                kept: 0,
                more: 0,
                alone: 0,
            });
            continue;
        }
        let shares = 2 * (u64::from(row.twice) + u64::from(row.often)) > u64::from(added(row));
        if shares {
            let most = most_common(chunks.iter().filter_map(|chunk| having.get(chunk).copied()));
            if let Some(group) = most
                && let Some(twin) = twin(files, groups[group].lead, i)
            {
                groups[group].twins.push(twin);
                continue;
            }
            chunks.iter().for_each(|chunk| {
                having.entry(*chunk).or_insert(groups.len());
            });
        }
        first.entry((row, chunks.len())).or_insert(groups.len());
        groups.push(Group { lead: i, twins: Vec::new() });
    }
    groups
}

/// Lays twins out like the first of their group, or lets them go where they cannot follow. `again` lays a file out anew.
pub(super) fn follow(
    groups: &mut Vec<Group>,
    layouts: &mut [Vec<Piece>],
    again: &dyn Fn(usize, &mut Draw) -> Vec<Piece>,
    draw: &mut Draw,
) {
    let mut alone = Vec::new();
    for group in &mut *groups {
        for _ in 0..TRIES {
            if group.twins.iter().all(|twin| twin.follow(&layouts[group.lead]).is_some()) {
                break;
            }
            layouts[group.lead] = again(group.lead, draw);
        }
        group.twins.retain(|twin| match twin.follow(&layouts[group.lead]) {
            Some(pieces) => {
                layouts[twin.file] = pieces;
                true
            }
            None => {
                alone.push(Group { lead: twin.file, twins: Vec::new() });
                false
            }
        });
    }
    groups.append(&mut alone);
}

/// Chunks of a changed file that it did not have.
fn added(row: &Changed) -> u32 {
    row.size - row.kept
}

/// What is there most often; the least of several.
fn most_common(all: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts.into_iter().max_by_key(|(one, count)| (*count, std::cmp::Reverse(*one))).map(|(one, _)| one)
}

/// A file as one that changes where another one does.
fn twin(files: &[File<'_>], lead: usize, file: usize) -> Option<Twin> {
    let ((lead, lead_row), (chunks, row)) = (files[lead], files[file]);
    let kept = (row.kept as usize).min(chunks.len());
    let lost = (lead.len() as u32).saturating_sub(lead_row.kept);
    if row.pattern != lead_row.pattern || (chunks.len() - kept) < lost as usize {
        return None;
    }
    let more = added(row).checked_sub(added(lead_row))? as usize;
    let common = in_common(lead, chunks);
    if 2 * common.len() <= lead.len() {
        return None;
    }
    let mut at = vec![[chunks.len(), 0]; lead.len() + 1];
    common.iter().for_each(|(from, to)| (at[*from][0], at[*from + 1][1]) = (*to, *to + 1));
    for i in 1..at.len() {
        at[i][1] = at[i][1].max(at[i - 1][1]);
        let back = at.len() - 1 - i;
        at[back][0] = at[back][0].min(at[back + 1][0]);
    }
    let own = beyond(&common, 0..lead.len(), 0..chunks.len());
    let alone = |row: &Changed| added(row).saturating_sub(row.twice + row.often) as usize;
    let alone = alone(row).saturating_sub(alone(lead_row)).min(more);
    Some(Twin { file, at: Some(at), own, common, chunks: chunks.len(), kept, more, alone })
}

/// Of stretches of two files those of the second that are not in place of as much of the first, between what both have.
fn beyond(common: &[(usize, usize)], one: Range<usize>, other: Range<usize>) -> Vec<Range<usize>> {
    let first = common.partition_point(|(from, _)| *from < one.start);
    let (mut from, mut to) = (one.start, other.start);
    let mut all = Vec::new();
    let within = common[first..].iter().take_while(|(from, _)| *from < one.end);
    for (next, here) in within.copied().chain([(one.end, other.end)]) {
        let own = here.saturating_sub(to).saturating_sub(next - from);
        if own > 0 {
            all.push(here - own..here);
        }
        (from, to) = (next + 1, here + 1);
    }
    all
}

/// Chunks of one file that another has in the same order, as many as there are: where they are in both. Those that one of
/// them has more than once are left out. The longest increasing subsequence (Schensted, Canadian Journal of Mathematics 13,
/// 1961).
fn in_common(one: &[u32], other: &[u32]) -> Vec<(usize, usize)> {
    let mut places: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
    for (at, chunk) in other.iter().enumerate() {
        places.entry(*chunk).and_modify(|place| place.1 += 1).or_insert((at, 1));
    }
    let pairs: Vec<(usize, usize)> = one
        .iter()
        .enumerate()
        .filter_map(|(from, chunk)| Some((from, places.get(chunk).filter(|place| place.1 == 1)?.0)))
        .collect();
    // The last of the best so long, and what comes before each.
    let (mut best, mut before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::with_capacity(pairs.len()));
    for (i, (_, to)) in pairs.iter().enumerate() {
        let length = best.partition_point(|last| pairs[*last].1 < *to);
        before.push(length.checked_sub(1).map_or(i, |length| best[length]));
        if length == best.len() {
            best.push(i);
        } else {
            best[length] = i;
        }
    }
    let mut common = Vec::with_capacity(best.len());
    let mut last = best.last().copied();
    while let Some(i) = last {
        common.push(pairs[i]);
        last = (before[i] != i).then_some(before[i]);
    }
    common.reverse();
    common
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::layout::tests::row;
    use crate::profile::Pattern;

    #[test]
    fn twins_have_one_row_and_most_chunks_in_common() {
        let (one, other) = (row(4, 4, 3, Pattern::M), row(4, 4, 3, Pattern::B));
        let files: [File<'_>; 6] = [
            (&[1, 2, 3, 4], &one),
            (&[9, 8, 7, 6], &one),
            (&[5, 2, 3, 4], &one),
            (&[5, 2, 3, 4], &other),
            (&[5, 2, 3, 4, 6], &one),
            (&[1, 2, 7, 8], &one),
        ];
        let groups = groups(&files);
        let told =
            groups.iter().map(|group| (group.lead, group.twins.iter().map(|twin| twin.file).collect()));
        let right = [(0, vec![2]), (1, vec![]), (3, vec![]), (5, vec![]), (4, vec![])];
        assert_eq!(told.collect::<Vec<(usize, Vec<usize>)>>(), right);
        let pieces = [Piece::Kept(0, 1), Piece::Other(1), Piece::Kept(2, 2)];
        assert_eq!(groups[0].twins[0].follow(&pieces).unwrap(), pieces);
    }

    /// A row of a file most of whose new chunks are others', too.
    fn shared(before: u32, size: u32, kept: u32) -> Changed {
        Changed { twice: size - kept, ..row(before, size, kept, Pattern::M) }
    }

    #[test]
    fn a_file_with_more_in_it_changes_where_the_other_does() {
        // The second has 50 and 51 within, and 60 to 69 behind.
        let one: Vec<u32> = (0..20).collect();
        let other: Vec<u32> = (0..8).chain([50, 51]).chain(8..20).chain(60..70).collect();
        let row_one = shared(20, 20, 17);
        let pieces =
            [Piece::Kept(0, 4), Piece::Other(1), Piece::Kept(5, 9), Piece::Other(2), Piece::Kept(16, 4)];
        let follow = |row_other: &Changed| {
            let files: [File<'_>; 2] = [(&other, row_other), (&one, &row_one)];
            let groups = groups(&files);
            assert_eq!((groups.len(), groups[0].lead, groups[0].twins[0].file), (1, 1, 0));
            groups[0].twins[0].follow(&pieces).unwrap()
        };
        let begin = [Piece::Kept(0, 4), Piece::Other(1)];
        // What it loses beyond the other is of its own chunks the first, and what more others have comes last.
        let end = [Piece::Kept(5, 3), Piece::Kept(9, 7), Piece::Other(4), Piece::Kept(18, 14)];
        assert_eq!(follow(&shared(32, 33, 28)), [&begin[..], &end].concat());
        // Where it alone has what is new, that is in place of some, where it has most beyond the other.
        let end =
            [Piece::Kept(5, 11), Piece::Other(2), Piece::Kept(18, 4), Piece::Own(2), Piece::Kept(23, 9)];
        assert_eq!(follow(&Changed { twice: 3, ..shared(32, 33, 28) }), [&begin[..], &end].concat());
    }

    #[test]
    fn what_has_no_place_of_its_own_does_not_keep_a_file_from_following() {
        // It lacks chunks 8 to 11, of which the other keeps 9 and 10.
        let one: Vec<u32> = (0..20).collect();
        let other: Vec<u32> = (0..8).chain(12..20).collect();
        let (row_one, row_other) = (shared(20, 19, 15), shared(16, 16, 11));
        let groups = groups(&[(&one, &row_one), (&other, &row_other)]);
        assert_eq!((groups.len(), groups[0].twins.len()), (1, 1));
        let kept = [Piece::Kept(0, 6), Piece::Kept(9, 2), Piece::Kept(13, 7)];
        let pieces = [kept[0], Piece::Other(3), kept[1], Piece::Other(1), kept[2]];
        let new = groups[0].twins[0].follow(&pieces).unwrap();
        // Two more go where it keeps most, as it has nothing alone.
        assert_eq!(new, [Piece::Kept(0, 6), Piece::Other(5), Piece::Kept(9, 1), Piece::Kept(12, 4)]);
    }

    #[test]
    fn what_follows_keeps_as_many_chunks_as_its_row_whatever_it_follows() {
        let mut draw = Draw::new(6, 6, 0);
        let mut followed = 0;
        for _ in 0..2000 {
            let one: Vec<u32> = (0..40).collect();
            let mut other: Vec<u32> = one.iter().copied().filter(|_| draw.happens(0.9)).collect();
            for new in 100..100 + draw.below(12) as u32 {
                other.insert(draw.below(other.len() + 1), new);
            }
            let lost = 6 + draw.below(4) as u32;
            let (before, more) = (other.len() as u32, draw.below(3) as u32);
            let pattern = Pattern::ALL[draw.below(Pattern::ALL.len())];
            let row_one = Changed { pattern, ..shared(40, 40, 34) };
            let row_other = Changed { pattern, ..shared(before, before - lost + 6 + more, before - lost) };
            let Some(twin) = twin(&[(&one, &row_one), (&other, &row_other)], 0, 1) else { continue };
            let pieces = super::super::layout::layout(&row_one, 40, &|_| 8192, &mut draw);
            let Some(new) = twin.follow(&pieces) else { continue };
            let (mut end, mut kept, mut added) = (0, 0, 0);
            for piece in &new {
                match *piece {
                    Piece::Other(count) | Piece::Own(count) => added += count as u32,
                    Piece::Kept(from, count) => {
                        assert!(from >= end && count > 0, "{pieces:?} {new:?}");
                        (end, kept) = (from + count, kept + count as u32);
                    }
                }
            }
            assert!(end <= other.len(), "{pieces:?} {new:?}");
            assert_eq!((kept, added), (row_other.kept, 6 + more), "{pieces:?} {new:?}");
            followed += 1;
        }
        assert!(followed > 1000, "{followed}");
    }

    #[test]
    fn what_two_files_have_in_common_is_in_the_order_of_both() {
        assert_eq!(in_common(&[1, 2, 3, 4], &[4, 1, 9, 3, 9, 2]), [(0, 1), (2, 3)]);
        assert_eq!(in_common(&[1, 2, 3], &[1, 1, 3]), [(2, 2)], "of two that are alike neither is it");
        assert_eq!(in_common(&[1, 2], &[]), []);
    }
}
