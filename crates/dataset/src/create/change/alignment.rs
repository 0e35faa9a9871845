//! Changes that keep the length of what they replace, so that what lies behind them stays where it is in its file: blocks of
//! one size find it again only then.

use crate::chunks::Chunks;
use crate::create::change::layout::Piece;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Places of a file of so many chunks before: what goes before each stretch that is kept, and behind the last one; how many come
/// there; and whether they have to be as long, so that the stretch begins where it did. About `in_place` chunks do, the first ones: what moved once hardly ever
/// comes back to where it was.
pub(crate) fn places(pieces: &[Piece], in_place: usize, before: usize) -> Vec<Place> {
    let (mut places, mut lengths, mut end, mut added) = (Vec::new(), Vec::new(), 0, 0);
    for piece in pieces {
        match *piece {
            Piece::Kept(from, count) if count > 0 => {
                // Where nothing changes before a stretch it stays whatever is asked.
                let stays = places.is_empty() && from == 0 && added == 0;
                lengths.push((stays, count));
                places.push(Place { gone: end..from, added, stays: false });
                (end, added) = (from + count, 0);
            }
            Piece::Kept(..) => {}
            Piece::Other(count) => added += count,
        }
    }
    let mut left = in_place;
    for (place, (stays, length)) in places.iter_mut().zip(lengths) {
        if stays || length < 2 * left {
            place.stays = true;
            left = left.saturating_sub(length);
        }
    }
    places.push(Place { gone: end.min(before)..before, added, stays: false });
    places
}

/// A place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Chunks of the file before.
    pub gone: Range<usize>,
    /// How many come.
    pub added: usize,
    /// What is behind stays where it was.
    pub stays: bool,
}

impl Place {
    /// Of the `nth` chunk that comes the one in whose place it is, where as many come as go.
    pub fn replaced(&self, nth: usize) -> Option<usize> {
        (self.gone.len() == self.added && nth < self.added).then(|| self.gone.start + nth)
    }
}

/// Bytes before each chunk of a file, and those of the smallest and the largest chunk that a new one can be.
pub(crate) struct Sums(Vec<u64>, (u32, u32));

impl Sums {
    pub fn of(file: &[u32], chunks: &Chunks, sizes: (u32, u32)) -> Sums {
        let mut sum = 0;
        let sums = file.iter().map(|chunk| {
            sum += u64::from(chunks.size(*chunk));
            sum
        });
        Sums([0].into_iter().chain(sums).collect(), sizes)
    }

    fn bytes(&self, chunks: Range<usize>) -> u64 {
        self.0[chunks.end] - self.0[chunks.start]
    }

    /// Whether so many new chunks can be as long as these.
    fn fits(&self, gone: Range<usize>, added: usize) -> bool {
        let (least, most) = (u64::from(self.1.0), u64::from(self.1.1));
        (added as u64 * least..=added as u64 * most).contains(&self.bytes(gone))
    }

    /// What is in place where as many chunks are to be as asked.
    pub fn staying(&self, pieces: &[Piece], in_place: usize) -> Staying {
        let mut staying = Staying::default();
        let places = places(pieces, in_place, self.0.len() - 1).into_iter().zip(stretches(pieces));
        for (Place { gone, added, .. }, kept) in places.filter(|(place, _)| place.stays) {
            staying.misfits += usize::from(!self.fits(gone, added));
            if staying.misfits == 0 {
                staying.chunks += kept.len();
                staying.bytes += self.bytes(kept);
            }
        }
        staying
    }
}

/// What of a file is in place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Staying {
    /// Chunks that are, and their bytes, up to where new ones cannot be as long as those that they replace: what lies behind moves.
    pub chunks: usize,
    pub bytes: u64,
    /// Stretches that should be, before which there are far too many or too few new chunks.
    pub misfits: usize,
}

/// Stretches that are kept.
fn stretches(pieces: &[Piece]) -> impl Iterator<Item = Range<usize>> {
    pieces.iter().filter_map(|piece| match *piece {
        Piece::Kept(from, count) if count > 0 => Some(from..from + count),
        _ => None,
    })
}

/// Makes the new chunks of a stretch, those from `first` on, larger or smaller so that it has the bytes of those that it
/// replaces and what is `missing` before it, the last ones most; tells how many it lacks where they cannot have them, and the next
/// stretch may make up for them. Where nothing is missing and as many come as go, each is as long as the one in whose place it
/// is: cuts stay where they are if nothing near them changes.
pub(crate) fn align(
    chunks: &mut Chunks,
    (run, first): (&[u32], u32),
    (replaced, missing): (&[u32], i64),
    (least, most): (u32, u32),
) -> i64 {
    // A file may have a new chunk several times, and then it grows by as many.
    let mut times: FxHashMap<u32, i64> = FxHashMap::default();
    run.iter().for_each(|chunk| *times.entry(*chunk).or_default() += 1);
    if missing == 0 && run.len() == replaced.len() {
        for (chunk, was) in run.iter().zip(replaced) {
            let size = chunks.size(*was);
            if *chunk >= first && times[chunk] == 1 && (least..=most).contains(&size) {
                chunks.resize(*chunk, size);
            }
        }
    }
    let bytes = |of: &[u32]| of.iter().map(|chunk| i64::from(chunks.size(*chunk))).sum::<i64>();
    let mut lacks = bytes(replaced) + missing - bytes(run);
    for chunk in run.iter().rev().filter(|chunk| **chunk >= first) {
        let (before, times) = (i64::from(chunks.size(*chunk)), times[chunk]);
        let after = (before + lacks / times).clamp(i64::from(least), i64::from(most.max(least)).max(before));
        chunks.resize(*chunk, after as u32);
        lacks -= (after - before) * times;
    }
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::Ratio;

    #[test]
    fn as_many_chunks_stay_in_place_as_asked() {
        let pieces = [
            Piece::Kept(0, 3),
            Piece::Other(2),
            Piece::Kept(5, 20),
            Piece::Other(1),
            Piece::Kept(25, 0),
            Piece::Kept(26, 6),
        ];
        let stay = |in_place| {
            let mut stay: Vec<_> = places(&pieces, in_place, 32).iter().map(|place| place.stays).collect();
            assert_eq!(stay.pop(), Some(false), "nothing is behind the last");
            stay
        };
        let told = places(&pieces, 0, 40);
        assert_eq!(
            told.iter().map(|place| place.gone.clone()).collect::<Vec<_>>(),
            [0..0, 3..5, 25..26, 32..40]
        );
        assert_eq!(told.iter().map(|place| place.added).collect::<Vec<_>>(), [0, 2, 1, 0]);
        let replaced = |at: usize| (0..3).map(|nth| told[at].replaced(nth)).collect::<Vec<_>>();
        assert_eq!(replaced(1), [Some(3), Some(4), None]);
        assert_eq!(replaced(3), [None; 3], "none comes where eight go");
        let mut chunks = Chunks::new(0);
        for size in (0..32).map(|at| if at == 25 { 5000 } else { 1000 }) {
            chunks.push(size, Ratio::nearest(1.0)).unwrap();
        }
        let sums = |sizes| Sums::of(&(0..32).collect::<Vec<_>>(), &chunks, sizes);
        let staying = |sizes, in_place| {
            let Staying { chunks, bytes, misfits } = sums(sizes).staying(&pieces, in_place);
            (chunks, bytes, misfits)
        };
        let told = [0, 9, 23, 29].map(|in_place| staying((200, 6000), in_place));
        assert_eq!(told, [3, 9, 23, 29].map(|chunks| (chunks, 1000 * chunks as u64, 0)));
        assert_eq!(staying((200, 4999), 29), (23, 23_000, 1), "one cannot be as long");
        assert_eq!(staying((1001, 6000), 29), (3, 3000, 1), "two cannot be as short");
        assert_eq!(staying((200, 4999), 23), (23, 23_000, 0), "what is to move does not matter");
        // Before the first nothing changes.
        assert_eq!(stay(0), [true, false, false]);
        assert_eq!(stay(9), [true, false, true]);
        assert_eq!(stay(23), [true, true, false]);
        assert_eq!(stay(29), [true, true, true]);
        // Twenty in place of eleven are nearer than none, in place of ten they are not.
        assert_eq!(stay(3 + 11), [true, true, false]);
        assert_eq!(stay(3 + 10), [true, false, true]);
        let other = [Piece::Other(1), Piece::Kept(1, 4)];
        assert_eq!(places(&other, 0, 5)[0], Place { gone: 0..1, added: 1, stays: false });
    }

    #[test]
    fn new_chunks_are_as_long_as_what_they_replace_or_as_near_as_they_can_be() {
        let mut chunks = Chunks::new(0);
        for size in [4000, 5000, 6000, 7000, 2500] {
            chunks.push(size, Ratio::nearest(2.0)).unwrap();
        }
        let limits = (2000, 8000);
        let sizes = |chunks: &Chunks| (0..4).map(|chunk| chunks.size(chunk)).collect::<Vec<_>>();
        // Chunk 1 was there before.
        assert_eq!(align(&mut chunks, (&[1, 2, 3], 2), (&[1], 15_500), limits), 0);
        assert_eq!(sizes(&chunks), [4000, 5000, 7500, 8000]);
        assert_eq!(align(&mut chunks, (&[1, 2, 3], 2), (&[0, 0], 0), limits), -1000);
        assert_eq!(sizes(&chunks), [4000, 5000, 2000, 2000]);
        assert_eq!(align(&mut chunks, (&[1], 2), (&[1], 1000), limits), 1000);
        assert_eq!(chunks.ratio(3), Ratio::nearest(2.0));
        assert_eq!(align(&mut chunks, (&[2, 3, 2], 2), (&[0, 1], 1), limits), 0);
        assert_eq!(sizes(&chunks), [4000, 5000, 3500, 2001], "it is there twice");
        // As many in place of as many are as long, each.
        assert_eq!(align(&mut chunks, (&[2, 3], 2), (&[1, 4], 0), limits), 0);
        assert_eq!(sizes(&chunks), [4000, 5000, 5000, 2500]);
        assert_eq!(align(&mut chunks, (&[3, 0, 3], 2), (&[1, 0, 1], 0), limits), 0);
        assert_eq!(sizes(&chunks), [4000, 5000, 5000, 5000]);
    }
}
