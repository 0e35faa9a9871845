//! Runs of new chunks and of others, as long as those of real files (Tarasov, section 4.5.1).

use crate::create::change::layout::Piece;
use crate::create::content::law::Shares;
use crate::create::draw::Draw;
use crate::profile::{Changed, New, Step};
use std::collections::BinaryHeap;

/// Lengths of runs that a step has.
pub(crate) struct Runs {
    new: Lengths,
    other: Lengths,
}

/// Lengths, drawn as often as they were seen.
struct Lengths {
    lengths: Vec<usize>,
    shares: Shares,
}

impl Lengths {
    fn new(seen: &[(u32, u32)]) -> Lengths {
        Lengths {
            lengths: seen.iter().map(|(length, _)| *length as usize).collect(),
            shares: Shares::new(seen.iter().map(|(_, runs)| f64::from(*runs))),
        }
    }

    /// Splits a whole into so many runs, none of them empty.
    fn split(&self, whole: usize, count: usize, draw: &mut Draw) -> Vec<usize> {
        if count < 2 {
            return vec![whole; count];
        }
        let drawn: Vec<usize> = (0..count).map(|_| self.lengths[self.shares.draw(draw)]).collect();
        let times = whole as f64 / drawn.iter().sum::<usize>() as f64;
        let mut parts: Vec<usize> =
            drawn.iter().map(|length| ((*length as f64 * times) as usize).max(1)).collect();
        let mut sum: usize = parts.iter().sum();
        // What rounding left over goes to any; what it took in excess is taken from the longest.
        while sum < whole {
            let part = draw.below(count);
            parts[part] += 1;
            sum += 1;
        }
        let mut longest: BinaryHeap<(usize, usize)> = parts.iter().copied().zip(0..).collect();
        while sum > whole
            && let Some((length, part)) = longest.pop()
        {
            let less = (sum - whole).min((length / 2).max(1));
            parts[part] -= less;
            longest.push((parts[part], part));
            sum -= less;
        }
        parts
    }
}

impl Runs {
    /// Of a step of a profile that has runs.
    pub fn of(step: &Step) -> Option<Runs> {
        let there = !step.runs.is_empty() && !step.gaps.is_empty();
        there.then(|| Runs { new: Lengths::new(&step.runs), other: Lengths::new(&step.gaps) })
    }

    /// Stretches of a modified file of `before` chunks; nothing where it cannot have the runs of its row.
    pub fn layout(&self, row: &Changed, before: usize, draw: &mut Draw) -> Option<Vec<Piece>> {
        let size = row.size as usize;
        let kept = (row.kept as usize).min(before).min(size);
        let (begin, _, end) = row.pattern.parts();
        let edges = usize::from(begin) + usize::from(end);
        let (runs, fresh) = (row.runs as usize, size - kept);
        let gaps = (runs + 1).checked_sub(edges)?;
        if runs == 0 || runs > fresh || runs < edges || gaps == 0 || gaps > kept {
            return None;
        }
        let (added, stays) = (self.new.split(fresh, runs, draw), self.other.split(kept, gaps, draw));
        let gone = gone(&added, before - kept, draw);
        let (mut pieces, mut at) = (Vec::with_capacity(runs + gaps), 0);
        let mut stays = stays.into_iter();
        let mut keep = |pieces: &mut Vec<Piece>, at: &mut usize| {
            if let Some(count) = stays.next() {
                pieces.push(Piece::Kept(*at, count));
                *at += count;
            }
        };
        if !begin {
            keep(&mut pieces, &mut at);
        }
        for (added, gone) in added.into_iter().zip(gone) {
            pieces.push(Piece::Other(added));
            at += gone;
            keep(&mut pieces, &mut at);
        }
        Some(pieces)
    }

    /// Which chunks of a new file are unique; nothing where it cannot have the runs of its row.
    pub fn order(&self, row: &New, draw: &mut Draw) -> Option<Vec<bool>> {
        let (unique, other) = (row.file.unique as usize, (row.file.size - row.file.unique) as usize);
        let (runs, gaps) = (row.runs as usize, row.gaps as usize);
        if runs == 0 || gaps == 0 || runs.abs_diff(gaps) > 1 {
            return None;
        }
        let (new, rest) = (self.new.split(unique, runs, draw), self.other.split(other, gaps, draw));
        let mut kind = if runs == gaps { draw.happens(0.5) } else { runs > gaps };
        let (mut new, mut rest) = (new.into_iter(), rest.into_iter());
        let mut order = Vec::with_capacity(row.file.size as usize);
        while let Some(length) = if kind { new.next() } else { rest.next() } {
            order.extend(std::iter::repeat_n(kind, length));
            kind = !kind;
        }
        Some(order)
    }
}

/// Places that are drawn to lose less than is new there.
const DRAWN: usize = 1000;

/// How many of `whole` chunks go where so many are new: in most places as many, as in real files, and the rest in any.
fn gone(added: &[usize], whole: usize, draw: &mut Draw) -> Vec<usize> {
    let mut gone = added.to_vec();
    let sum: usize = added.iter().sum();
    let shares = Shares::new(added.iter().map(|count| *count as f64));
    let mut excess = sum.saturating_sub(whole);
    let mut tries = 0;
    while excess > 0 {
        // Where those that are drawn have nothing left, all are asked in turn.
        let at = if tries < DRAWN { shares.draw(draw) } else { (tries - DRAWN) % gone.len() };
        let less = excess.min(gone[at]);
        gone[at] -= less;
        excess -= less;
        tries += 1;
    }
    gone[shares.draw(draw)] += whole.saturating_sub(sum);
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{File, Pattern};

    fn runs() -> Runs {
        Runs { new: Lengths::new(&[(1, 8), (5, 1)]), other: Lengths::new(&[(1, 1), (30, 1)]) }
    }

    #[test]
    fn wholes_are_split_into_runs_of_the_lengths_there_are() {
        let (lengths, mut draw) = (Lengths::new(&[(1, 8), (5, 1)]), Draw::new(1, 1, 1));
        for (whole, count) in [(1, 1), (7, 7), (9, 4), (1000, 3), (50, 40)] {
            let parts = lengths.split(whole, count, &mut draw);
            assert_eq!((parts.iter().sum::<usize>(), parts.len()), (whole, count));
            assert!(parts.iter().all(|part| *part > 0), "{parts:?}");
        }
    }

    #[test]
    fn modified_files_have_their_runs_and_their_pattern() {
        let (runs, mut draw) = (runs(), Draw::new(2, 2, 2));
        for (pattern, count) in [(Pattern::M, 3), (Pattern::B, 1), (Pattern::BE, 2), (Pattern::BEM, 6)] {
            for (before, size, kept) in [(60, 60, 45), (60, 80, 50), (60, 50, 40)] {
                let file = File { depth: 0, extension: 0, size: before, unique: before, dup1: 0, dup2: 0 };
                let row = Changed {
                    file,
                    size,
                    unique: size - kept,
                    dup1: kept,
                    kept,
                    runs: count,
                    pattern,
                    count: 1,
                    ..Changed::default()
                };
                let pieces = runs.layout(&row, before as usize, &mut draw).unwrap();
                let old: Vec<u32> = (0..before).collect();
                let (mut new, mut next) = (Vec::new(), 1000);
                for piece in &pieces {
                    match piece {
                        Piece::Kept(from, length) => new.extend_from_slice(&old[*from..from + length]),
                        Piece::Other(length) => {
                            new.extend(next..next + *length as u32);
                            next += *length as u32;
                        }
                    }
                }
                assert_eq!(new.len(), size as usize);
                assert_eq!(
                    pieces.iter().filter(|piece| matches!(piece, Piece::Other(_))).count(),
                    count as usize
                );
                assert_eq!(Pattern::of(&old, &new), pattern, "{new:?}");
            }
        }
    }
}
