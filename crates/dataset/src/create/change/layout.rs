//! Where a modified file keeps what it had (section 4.5.2: change patterns).

use crate::create::draw::Draw;
use crate::profile::Changed;

/// Chunks that are near to one.
const NEAR: usize = 8;

/// A stretch of a modified file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Chunks it had: from one of them, so many.
    Kept(usize, usize),
    /// Chunks it did not have.
    Other(usize),
}

/// The stretches of a file of `before` chunks once it is changed, in order.
pub(crate) fn layout(row: &Changed, before: usize, draw: &mut Draw) -> Vec<Piece> {
    let size = row.size as usize;
    let kept = (row.kept as usize).min(before).min(size);
    let (begin, mut middle, end) = row.pattern.parts();
    // Without two chunks to keep there is nothing that could be in the middle of them.
    middle &= kept > 1;
    let mut places = Vec::with_capacity(3);
    places.extend([begin, middle, end].iter().enumerate().filter(|(_, there)| **there).map(|(i, _)| i));
    if places.is_empty() {
        places.push(0);
    }
    let spread = |whole: usize, draw: &mut Draw| {
        let (mut parts, mut at) = (vec![0; places.len()], [0; 3]);
        draw.split(whole, &mut parts);
        places.iter().zip(parts).for_each(|(place, part)| at[*place] = part);
        at
    };
    let added = spread(size - kept, draw);
    // What goes was where the new comes, about as much of it.
    let gone = if before == size {
        added
    } else if added != [0; 3] {
        let gone = in_proportion(before - kept, &added);
        [gone[0], gone[1], gone[2]]
    } else {
        spread(before - kept, draw)
    };
    let first = if middle { 1 + draw.below(kept - 1) } else { kept };
    vec![
        Piece::Other(added[0]),
        Piece::Kept(gone[0], first),
        Piece::Other(added[1]),
        Piece::Kept(gone[0] + first + gone[1], kept - first),
        Piece::Other(added[2]),
    ]
}

/// Splits a whole in proportion to parts that are not all empty.
pub(crate) fn in_proportion(whole: usize, parts: &[usize]) -> Vec<usize> {
    let all = parts.iter().sum::<usize>().max(1) as u128;
    let (mut sum, mut done) = (0u128, 0);
    let part = |part: &usize| {
        sum += *part as u128;
        let to = ((whole as u128 * sum + all / 2) / all) as usize;
        to - std::mem::replace(&mut done, to)
    };
    parts.iter().map(part).collect()
}

/// The same stretches with one elsewhere that is between two that are kept: from a chunk of the file before on (`to`), or near
/// where it was, or anywhere; nothing where there is none, or no room.
pub(crate) fn nudge(pieces: &[Piece], to: Option<usize>, draw: &mut Draw) -> Option<Vec<Piece>> {
    let places: Vec<_> =
        (1..pieces.len()).filter_map(|at| middle(pieces, at).map(|found| (at, found))).collect();
    let (at, ((first, left), count, (second, right))) = *places.get(draw.below(places.len()))?;
    let (gone, end) = (second - first - left, second + right);
    let near = |draw: &mut Draw| (first + left + draw.below(2 * NEAR + 1)).saturating_sub(NEAR);
    let to = match to {
        Some(to) => to,
        None if draw.happens(0.5) => near(draw).clamp(first + 1, end - gone - 1),
        None => draw.below(pieces.iter().rev().find_map(end_of)?),
    };
    let mut other = pieces[..at - 1].to_vec();
    other.push(Piece::Kept(first, end - first));
    other.extend_from_slice(&pieces[at + 2..]);
    let room = |piece: &Piece| match *piece {
        Piece::Kept(from, stays) if from < to && to + gone < from + stays => Some((from, from + stays)),
        _ => None,
    };
    let (here, (from, end)) = other.iter().enumerate().find_map(|(i, piece)| Some((i, room(piece)?)))?;
    let apart = [Piece::Kept(from, to - from), Piece::Other(count), Piece::Kept(to + gone, end - to - gone)];
    other.splice(here..=here, apart);
    Some(other)
}

/// Where the chunks end that are kept here.
fn end_of(piece: &Piece) -> Option<usize> {
    match *piece {
        Piece::Kept(from, count) if count > 0 => Some(from + count),
        _ => None,
    }
}

/// The same stretches with one that is kept between two that are new somewhat further on or back, so that one of these
/// replaces more chunks and the other fewer; nothing where there is no room.
pub(crate) fn slide(pieces: &[Piece], draw: &mut Draw) -> Option<Vec<Piece>> {
    let between = |at: usize| match *pieces.get(at - 1..at + 2)? {
        [Piece::Other(before), Piece::Kept(first, count), Piece::Other(behind)]
            if before > 0 && behind > 0 && count > 0 =>
        {
            let start = |piece: Option<&Piece>| match piece {
                Some(Piece::Kept(from, kept)) => Some((*from, from + kept)),
                _ => None,
            };
            let low = at.checked_sub(2).map_or(Some(0), |at| start(pieces.get(at)).map(|(_, end)| end))?;
            let (high, _) = start(pieces.get(at + 2))?;
            (low + count < high).then_some((at, first, count, low, high - count))
        }
        _ => None,
    };
    let places: Vec<_> = (1..pieces.len()).filter_map(between).collect();
    let (at, first, count, low, high) = *places.get(draw.below(places.len()))?;
    let to = (first + draw.below(2 * NEAR + 1)).saturating_sub(NEAR).clamp(low, high);
    let mut pieces = pieces.to_vec();
    pieces[at] = Piece::Kept(to, count);
    Some(pieces)
}

/// The same stretches with a part of one apart from it, further on; nothing where none is between two that are kept and of two
/// chunks.
pub(crate) fn split(pieces: &[Piece], draw: &mut Draw) -> Option<Vec<Piece>> {
    let places: Vec<_> =
        (1..pieces.len()).filter_map(|at| middle(pieces, at).map(|found| (at, found))).collect();
    let (at, ((first, left), count, (second, right))) = *places.get(draw.below(places.len()))?;
    if count < 2 || right < 2 {
        return None;
    }
    let gone = second - first - left;
    let part = 1 + draw.below(count - 1);
    // What is changed in place stays so.
    let part_gone = gone * part / count;
    let (here, second) = (1 + draw.below(right - 1), second - part_gone);
    let mut other = pieces[..at].to_vec();
    other.extend([Piece::Other(count - part), Piece::Kept(second, here), Piece::Other(part)]);
    other.push(Piece::Kept(second + here + part_gone, right - here));
    other.extend_from_slice(&pieces[at + 2..]);
    Some(other)
}

/// The same stretches with two as one.
pub(crate) fn merge(pieces: &[Piece], draw: &mut Draw) -> Option<Vec<Piece>> {
    let both = |at: usize| Some((at, middle(pieces, at)?, middle(pieces, at + 2)?));
    let places: Vec<_> = (1..pieces.len()).filter_map(both).collect();
    let (at, (_, count, (_, between)), (_, more, (third, right))) = *places.get(draw.below(places.len()))?;
    let mut other = pieces[..at].to_vec();
    other.extend([Piece::Other(count + more), Piece::Kept(third - between, between + right)]);
    other.extend_from_slice(&pieces[at + 4..]);
    Some(other)
}

/// The same stretches with some of what is new in one, and as much of what goes there, at one end of another; nothing where
/// none is between two that are kept, has two chunks, and another has room.
pub(crate) fn deal(pieces: &[Piece], draw: &mut Draw) -> Option<Vec<Piece>> {
    let places: Vec<_> = (1..pieces.len()).filter(|at| middle(pieces, *at).is_some()).collect();
    let mut any = || places.get(draw.below(places.len())).copied();
    let (from, to) = (any()?, any()?);
    let ((first, left), count, (second, _)) = middle(pieces, from)?;
    if from == to || count < 2 {
        return None;
    }
    let part = 1 + draw.below(count - 1);
    let gone = part.min(second - first - left);
    let mut other = pieces.to_vec();
    other[from] = Piece::Other(count - part);
    if draw.happens(0.5) {
        other[from - 1] = Piece::Kept(first, left + gone);
    } else if let Piece::Kept(_, right) = other[from + 1] {
        other[from + 1] = Piece::Kept(second - gone, right + gone);
    }
    let ((first, left), count, (second, right)) = middle(&other, to)?;
    other[to] = Piece::Other(count + part);
    if draw.happens(0.5) {
        other[to - 1] = Piece::Kept(first, left.checked_sub(gone).filter(|left| *left > 0)?);
    } else {
        other[to + 1] = Piece::Kept(second + gone, right.checked_sub(gone).filter(|right| *right > 0)?);
    }
    Some(other)
}

/// The same stretches with all between two that are kept further on or back: one of these is as much longer as the other is
/// shorter; nothing where there is no room.
pub(crate) fn shift(pieces: &[Piece], draw: &mut Draw) -> Option<Vec<Piece>> {
    let kept: Vec<_> =
        (0..pieces.len()).filter(|at| matches!(pieces[*at], Piece::Kept(_, count) if count > 0)).collect();
    let mut any = || kept.get(draw.below(kept.len())).copied();
    let (one, other) = (any()?, any()?);
    let (first, second) = (one.min(other), one.max(other));
    let (Piece::Kept(begin, left), Piece::Kept(end, right)) = (pieces[first], pieces[second]) else {
        return None;
    };
    let back = draw.happens(0.5);
    let room = if back { left } else { right };
    if first == second || room < 2 {
        return None;
    }
    let by = 1 + draw.below(room - 1);
    let to = |from: usize| if back { from - by } else { from + by };
    let mut moved = pieces.to_vec();
    moved[first] = Piece::Kept(begin, to(left));
    for piece in &mut moved[first + 1..second] {
        if let Piece::Kept(from, _) = piece {
            *from = to(*from);
        }
    }
    moved[second] = Piece::Kept(to(end), if back { right + by } else { right - by });
    Some(moved)
}

/// Stretches that are new.
pub(crate) fn news(pieces: &[Piece]) -> usize {
    pieces.iter().filter(|piece| matches!(piece, Piece::Other(count) if *count > 0)).count()
}

/// A first chunk, and how many.
type Stretch = (usize, usize);

/// A stretch that is new between two that are kept.
fn middle(pieces: &[Piece], at: usize) -> Option<(Stretch, usize, Stretch)> {
    match *pieces.get(at - 1..at + 2)? {
        [Piece::Kept(first, left), Piece::Other(count), Piece::Kept(second, right)]
            if left > 0 && right > 0 =>
        {
            Some(((first, left), count, (second, right)))
        }
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::profile::{File, Pattern};

    pub fn row(before: u32, size: u32, kept: u32, pattern: Pattern) -> Changed {
        let file = File { depth: 0, extension: 0, size: before, unique: before, dup1: 0, dup2: 0 };
        let unique = size - kept;
        Changed { file, class: 61, size, unique, dup1: kept, kept, pattern, count: 1, ..Changed::default() }
    }

    /// Chunks after a change of chunks 0 to before `before`; new ones are from 1,000 on.
    fn changed(pieces: &[Piece]) -> Vec<u32> {
        let (mut new, mut next) = (Vec::new(), 1000);
        for piece in pieces {
            match *piece {
                Piece::Kept(from, count) => new.extend(from as u32..(from + count) as u32),
                Piece::Other(count) => {
                    new.extend(next..next + count as u32);
                    next += count as u32;
                }
            }
        }
        new
    }

    #[test]
    fn what_is_laid_out_has_the_pattern_it_is_laid_out_by() {
        let mut draw = Draw::new(9, 9, 0);
        let (mut elsewhere, mut apart, mut further, mut dealt, mut shifted) = (0, 0, 0, 0, 0);
        for pattern in Pattern::ALL {
            for (before, size, kept) in [(10, 10, 6), (10, 14, 7), (14, 10, 5), (20, 10, 4), (9, 40, 8)] {
                let old: Vec<u32> = (0..before).collect();
                let row = row(before, size, kept, pattern);
                let check = |pieces: &[Piece]| {
                    let new = changed(pieces);
                    assert_eq!(new.len(), size as usize);
                    assert_eq!(new.iter().filter(|chunk| old.contains(chunk)).count(), kept as usize);
                    assert!(new.windows(2).all(|two| two[1] >= 1000 || two[0] >= 1000 || two[0] < two[1]));
                    assert_eq!(Pattern::of(&old, &new), pattern, "{before} {size} {kept} {new:?}");
                };
                let first = layout(&row, before as usize, &mut draw);
                check(&first);
                // Moved, split, merged and dealt out it has that pattern still.
                for _ in 0..30 {
                    if let Some(other) = slide(&first, &mut draw) {
                        check(&other);
                        further += usize::from(other != first);
                    }
                    if let Some(other) = nudge(&first, None, &mut draw) {
                        check(&other);
                        elsewhere += usize::from(other != first);
                    }
                    if let Some(other) = shift(&first, &mut draw) {
                        check(&other);
                        assert_eq!(news(&other), news(&first));
                        shifted += usize::from(other != first);
                    }
                    if let Some(two) = split(&first, &mut draw) {
                        check(&two);
                        assert_eq!(two.len(), first.len() + 2);
                        let one = merge(&two, &mut draw).unwrap();
                        check(&one);
                        assert_eq!(one.len(), first.len());
                        apart += 1;
                        let Some(other) = deal(&two, &mut draw) else { continue };
                        check(&other);
                        assert_eq!(news(&other), news(&two));
                        dealt += usize::from(other != two);
                    }
                }
            }
        }
        let seen = [elsewhere, apart, further, dealt, shifted];
        assert!(seen.iter().all(|seen| *seen > 30), "{seen:?}");
    }

    #[test]
    fn proportions_make_the_whole() {
        assert_eq!(in_proportion(10, &[1, 0, 4]), [2, 0, 8]);
        assert_eq!(in_proportion(2, &[1, 1, 1]).iter().sum::<usize>(), 2);
        assert_eq!(in_proportion(0, &[3, 5]), [0, 0]);
    }

    #[test]
    fn stretches_are_moved_to_where_they_are_wanted() {
        let pieces = [Piece::Kept(0, 4), Piece::Other(2), Piece::Kept(6, 4)];
        let mut draw = Draw::new(1, 1, 0);
        let moved = nudge(&pieces, Some(7), &mut draw).unwrap();
        assert_eq!(moved, [Piece::Kept(0, 7), Piece::Other(2), Piece::Kept(9, 1)]);
        assert_eq!(nudge(&pieces, Some(8), &mut draw), None, "a chunk must be left behind it");
        assert_eq!(nudge(&pieces[1..], None, &mut draw), None, "at the beginning it stays");
        // Wherever it is wanted in the file.
        let two = [pieces[0], pieces[1], Piece::Kept(6, 2), Piece::Other(1), Piece::Kept(9, 20)];
        let whole = |from, count| Piece::Kept(from, count);
        let first = [whole(0, 8), two[3], whole(9, 6), Piece::Other(2), whole(17, 12)];
        let second = [whole(0, 4), Piece::Other(2), whole(6, 9), Piece::Other(1), whole(16, 13)];
        for _ in 0..20 {
            let moved = nudge(&two, Some(15), &mut draw).unwrap();
            assert!(moved == first || moved == second, "{moved:?}");
        }
    }

    #[test]
    fn files_that_are_smaller_than_wanted_keep_what_they_have() {
        let pieces = layout(&row(10, 8, 6, Pattern::M), 3, &mut Draw::new(1, 1, 0));
        let kept: usize = pieces.iter().map(|p| if let Piece::Kept(_, n) = p { *n } else { 0 }).sum();
        let other: usize = pieces.iter().map(|p| if let Piece::Other(n) = p { *n } else { 0 }).sum();
        assert_eq!((kept, other), (3, 5));
    }
}
