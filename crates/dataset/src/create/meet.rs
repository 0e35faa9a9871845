//! Places that changed files have in common: in place of the same chunks, or where the same are before or behind. What is new
//! there is the same in all, as one source is built into several programs.

use super::layout::Piece;
use crate::profile::Changed;
use rustc_hash::FxHashMap;

/// A stretch of a changed file: the file's number among all that change, and which of its pieces it is.
type Stretch = (usize, usize);

/// New chunks that are the same in several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meeting {
    /// Its number.
    pub id: usize,
    /// Chunks, at the beginning of the stretch or at its end.
    pub chunks: u32,
    /// Files that have them.
    pub files: u32,
}

/// Where a stretch meets others: what it begins with, and what it ends with.
pub(super) type Ends = [Option<Meeting>; 2];

/// A file that changes: its chunks before, its row, and its stretches.
pub(super) type File<'a> = (&'a [u32], &'a Changed, &'a [Piece]);

/// Of chunks that a file keeps, one in so many at least stays in place where others' lengths have to fit.
const IN_PLACE: u32 = 16;

/// Chunks that tell a place.
type Key = [Option<u32>; 4];

/// A stretch that is new beside one that is kept.
struct Place {
    stretch: Stretch,
    /// By which it is found, one after the other, and which end of it then is the same.
    keys: [(Option<Key>, usize); 5],
    /// New chunks that are no other file's so far.
    left: u32,
}

impl Place {
    /// `whole`: only what is in place of the same, with the same on both sides, is the same place.
    fn of(
        stretch: Stretch,
        count: usize,
        lost: &[u32],
        (before, behind): (Option<u32>, Option<u32>),
        whole: bool,
    ) -> Place {
        let (first, last) = (lost.first().copied(), lost.last().copied());
        let one = |chunk: Option<u32>| chunk.map(|chunk| [Some(chunk), None, None, None]).filter(|_| !whole);
        let both = if whole { [before, behind, first, last] } else { [before, behind, None, None] };
        let keys = [(Some(both), 0), (one(before), 0), (one(behind), 1), (one(first), 0), (one(last), 1)];
        Place { stretch, keys, left: count as u32 }
    }
}

/// Where files meet, as far as their rows have chunks that are there twice and more often.
pub(super) fn meetings<'a>(files: impl Iterator<Item = File<'a>>) -> FxHashMap<Stretch, Ends> {
    let (mut places, mut shares) = (Vec::new(), Vec::new());
    for (number, (old, row, pieces)) in files.enumerate() {
        // What a file has twice in itself is no other's.
        shares.push([row.twice.saturating_sub(2 * row.own_twice), row.often.saturating_sub(row.own_often)]);
        if shares[number] == [0; 2] {
            continue;
        }
        let kept = |at: Option<usize>| match pieces.get(at?) {
            Some(Piece::Kept(from, count @ 1..)) => Some((*from, from + count)),
            _ => None,
        };
        // Chunks of another length would move what is behind them.
        let whole = u64::from(IN_PLACE) * u64::from(row.in_place) >= u64::from(row.kept.max(1));
        for (at, piece) in pieces.iter().enumerate() {
            let (before, behind) = (kept(at.checked_sub(1)), kept(Some(at + 1)));
            let is_edge = (at == 0 || before.is_some()) && (at + 1 == pieces.len() || behind.is_some());
            if let (Piece::Other(count @ 1..), true) = (piece, is_edge && before.or(behind).is_some()) {
                let lost = before.map_or(0, |range| range.1)..behind.map_or(old.len(), |range| range.0);
                let around = (before.map(|range| old[range.1 - 1]), behind.map(|range| old[range.0]));
                places.push(Place::of((number, at), *count, &old[lost], around, whole));
            }
        }
    }
    let (mut all, mut id) = (FxHashMap::<Stretch, Ends>::default(), 0);
    for pass in 0..5 {
        // In the order of the files, so that what is made follows from them.
        let mut order = Vec::new();
        let mut having: FxHashMap<Key, Vec<usize>> = FxHashMap::default();
        for (i, place) in places.iter().enumerate().filter(|(_, place)| place.left > 0) {
            let (Some(key), end) = place.keys[pass] else { continue };
            // Where an end is taken what is left there is of this file alone.
            if all.get(&place.stretch).is_some_and(|ends| ends[end].is_some()) {
                continue;
            }
            let here = having.entry(key).or_default();
            if here.is_empty() {
                order.push(key);
            }
            if here.last().is_none_or(|other: &usize| places[*other].stretch.0 != place.stretch.0) {
                here.push(i);
            }
        }
        for key in order {
            let mut here = having.remove(&key).unwrap_or_default();
            let share = |place: usize, which: usize| shares[places[place].stretch.0][which];
            // All that have chunks that are there more than twice, or else two that have some that are there twice.
            let often = here.iter().filter(|place| share(**place, 1) > 0).count() > 2;
            let which = usize::from(often);
            here.retain(|place| share(*place, which) > 0);
            here.truncate(if often { here.len() } else { 2 });
            let most = here.iter().map(|place| share(*place, which).min(places[*place].left)).min();
            let Some(chunks) = most.filter(|_| here.len() > 1) else { continue };
            let meeting = Meeting { id, chunks, files: here.len() as u32 };
            id += 1;
            for place in here {
                let Place { stretch, keys, left } = &mut places[place];
                *left -= chunks;
                shares[stretch.0][which] -= chunks;
                all.entry(*stretch).or_default()[keys[pass].1] = Some(meeting);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::row;
    use super::*;
    use crate::profile::Pattern;

    #[test]
    fn files_meet_where_the_same_chunks_are_around_what_is_new() {
        let like = |twice, often, in_place| Changed { twice, often, in_place, ..row(9, 9, 5, Pattern::M) };
        let old: [&[u32]; 3] =
            [&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, 3, 4, 20, 6, 7, 8, 9], &[1, 2, 30, 4, 5, 6]];
        // In place of 3 with 2 and 4 around in two of them, and of 5 and of 20 with 4 before; then of 7, and of 7 and 8.
        let one = [Piece::Kept(0, 2), Piece::Other(2), Piece::Kept(3, 1), Piece::Other(1), Piece::Kept(5, 1)];
        let one = [&one[..], &[Piece::Other(3), Piece::Kept(7, 2)]].concat();
        let two = [Piece::Kept(0, 2), Piece::Other(1), Piece::Kept(3, 1), Piece::Other(2), Piece::Kept(5, 1)];
        let two = [&two[..], &[Piece::Other(4), Piece::Kept(8, 1)]].concat();
        let of = |rows: [Changed; 2], layouts: [&[Piece]; 2]| {
            let files: Vec<_> = (0..2).map(|i| (old[i], &rows[i], layouts[i])).collect();
            let found = meetings(files.into_iter());
            let mut all: Vec<_> = found
                .into_iter()
                .map(|(at, ends)| (at, ends.map(|end| end.map(|end| (end.id, end.chunks)))))
                .collect();
            all.sort_unstable_by_key(|(at, _)| *at);
            all
        };
        let head = |id, chunks| [Some((id, chunks)), None];
        assert_eq!(
            of([like(9, 0, 0), like(9, 0, 0)], [&one, &two]),
            [
                ((0, 1), head(0, 1)),
                ((0, 3), head(1, 1)),
                ((0, 5), head(2, 3)),
                ((1, 1), head(0, 1)),
                ((1, 3), head(1, 1)),
                ((1, 5), head(2, 3)),
            ]
        );
        // No more than rows have, and where much stays in place only where the same goes.
        assert_eq!(
            of([like(9, 0, 0), like(2, 0, 0)], [&one, &two]),
            [((0, 1), head(0, 1)), ((0, 3), head(1, 1)), ((1, 1), head(0, 1)), ((1, 3), head(1, 1))]
        );
        assert_eq!(
            of([like(9, 0, 4), like(9, 0, 4)], [&one, &two]),
            [((0, 1), head(0, 1)), ((1, 1), head(0, 1)),]
        );
        assert_eq!(of([like(9, 0, 0), like(0, 9, 0)], [&one, &two]), []);
        // Three have what is there more often.
        let third = [Piece::Kept(0, 2), Piece::Other(1), Piece::Kept(3, 3)];
        let rows = [like(9, 3, 0), like(9, 3, 0), like(9, 3, 0)];
        let files = [(old[0], &rows[0], &one[..]), (old[1], &rows[1], &two), (old[2], &rows[2], &third)];
        let found = meetings(files.into_iter());
        let first =
            [(0, 1), (1, 1), (2, 1)].map(|at| found[&at][0].map(|met| (met.id, met.chunks, met.files)));
        assert_eq!(first, [Some((0, 1, 3)); 3]);
    }
    #[test]
    fn a_stretch_meets_others_once_at_an_end() {
        let rows = [(); 3].map(|()| Changed { twice: 9, ..row(9, 9, 5, Pattern::M) });
        let old: [&[u32]; 3] = [&[1, 2, 3, 4], &[1, 2, 30, 4], &[1, 2, 31, 5]];
        // Two of the first one's three are its own: the third has 2 before, too, and has what it has alone.
        let layouts = [3, 1, 3].map(|count| [Piece::Kept(0, 2), Piece::Other(count), Piece::Kept(3, 1)]);
        let found = meetings((0..3).map(|i| (old[i], &rows[i], &layouts[i][..])));
        let mut at: Vec<_> = found.iter().map(|(at, ends)| (*at, *ends)).collect();
        at.sort_unstable_by_key(|(at, _)| *at);
        let ends = [Some(Meeting { id: 0, chunks: 1, files: 2 }), None];
        assert_eq!(at, [((0, 1), ends), ((1, 1), ends)]);
    }
}
