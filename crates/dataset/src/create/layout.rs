//! Where a modified file keeps what it had (section 4.5.2: change patterns).

use super::draw::Draw;
use crate::profile::Changed;

/// A stretch of a modified file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// Chunks it had: from one of them, so many.
    Kept(usize, usize),
    /// Chunks it did not have.
    Other(usize),
}

/// The stretches of a file of `before` chunks, each of `bytes`, once it is changed, in order.
pub(super) fn layout(
    row: &Changed,
    before: usize,
    bytes: &dyn Fn(usize) -> u32,
    draw: &mut Draw,
) -> Vec<Piece> {
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
    // What is changed in place goes where the new comes.
    let gone = if before == size { added } else { spread(before - kept, draw) };
    let first = if middle { 1 + weighted(kept - 1, &|i| bytes(gone[0] + 1 + i), draw) } else { kept };
    vec![
        Piece::Other(added[0]),
        Piece::Kept(gone[0], first),
        Piece::Other(added[1]),
        Piece::Kept(gone[0] + first + gone[1], kept - first),
        Piece::Other(added[2]),
    ]
}

/// One of `count`, with a chance in proportion to its bytes: a change hits large chunks more often.
fn weighted(count: usize, bytes: &dyn Fn(usize) -> u32, draw: &mut Draw) -> usize {
    let total: usize = (0..count).map(|i| bytes(i) as usize).sum();
    let mut left = draw.below(total);
    (0..count)
        .find(|i| {
            let here = bytes(*i) as usize;
            let found = left < here;
            left -= here.min(left);
            found
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{File, Pattern};

    fn row(before: u32, size: u32, kept: u32, pattern: Pattern) -> Changed {
        let file = File { depth: 0, extension: 0, size: before, unique: before, dup1: 0, dup2: 0 };
        let unique = size - kept;
        Changed {
            file,
            bits: 16,
            state: 0,
            size,
            unique,
            dup1: kept,
            dup2: 0,
            kept,
            twice: 0,
            often: 0,
            runs: 0,
            pattern,
            count: 1,
        }
    }

    #[test]
    fn what_is_laid_out_has_the_pattern_it_is_laid_out_by() {
        let mut draw = Draw::new(9, 9, 0);
        for pattern in Pattern::ALL {
            for (before, size, kept) in [(10, 10, 6), (10, 14, 7), (14, 10, 5), (20, 10, 4), (9, 40, 8)] {
                let old: Vec<u32> = (0..before).collect();
                let (mut new, mut next) = (Vec::new(), 1000);
                for piece in layout(&row(before, size, kept, pattern), before as usize, &|_| 8192, &mut draw)
                {
                    match piece {
                        Piece::Kept(from, count) => new.extend_from_slice(&old[from..from + count]),
                        Piece::Other(count) => {
                            new.extend(next..next + count as u32);
                            next += count as u32;
                        }
                    }
                }
                assert_eq!(new.len(), size as usize);
                assert_eq!(new.iter().filter(|chunk| old.contains(chunk)).count(), kept as usize);
                assert_eq!(Pattern::of(&old, &new), pattern, "{before} {size} {kept} {new:?}");
            }
        }
    }

    #[test]
    fn files_that_are_smaller_than_wanted_keep_what_they_have() {
        let pieces = layout(&row(10, 8, 6, Pattern::M), 3, &|_| 1, &mut Draw::new(1, 1, 0));
        let kept: usize = pieces.iter().map(|p| if let Piece::Kept(_, n) = p { *n } else { 0 }).sum();
        let other: usize = pieces.iter().map(|p| if let Piece::Other(n) = p { *n } else { 0 }).sum();
        assert_eq!((kept, other), (3, 5));
    }
}
