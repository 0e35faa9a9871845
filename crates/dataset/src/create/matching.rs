//! Files with wanted characteristics: those that have them, drawn at random, and else the best match, "the file that
//! matches most of the properties" (Tarasov, section 4.5.2).

use super::draw::Draw;
use crate::profile::File;
use rustc_hash::FxHashMap;

/// Characteristics that are compared.
const FIELDS: usize = 8;
/// How much each counts where as many others match: depth, extension, size, unique, dup1, dup2, state, bits of bytes.
const WEIGHTS: [u32; FIELDS] = [2, 4, 24, 12, 8, 6, 10, 1];

/// A file, or one that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traits([u32; FIELDS]);

impl Traits {
    pub fn new(file: File, state: u32, bits: u32) -> Traits {
        Traits([file.depth, file.extension, file.size, file.unique, file.dup1, file.dup2, state, bits])
    }

    /// A hash of the fields that a mask has.
    fn hash(&self, mask: u32) -> u64 {
        let mut hash = 0u64;
        for (i, field) in self.0.iter().enumerate() {
            let field = if mask >> i & 1 == 1 { u64::from(*field) + 1 } else { 0 };
            hash = (hash.rotate_left(23) ^ field).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        hash ^ hash >> 29
    }
}

/// What came of matching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Matched {
    /// Wanted files that were only the best match.
    pub best: u64,
    /// Wanted files of which there were not enough.
    pub missing: u64,
}

/// Gives each of `wanted` a file: tells for each file which one it is, `u32::MAX` for none.
pub(super) fn assign(files: &[Traits], wanted: &[Traits], draw: &mut Draw) -> (Vec<u32>, Matched) {
    let mut assigned = vec![u32::MAX; files.len()];
    let mut matched = Matched::default();
    if wanted.is_empty() {
        return (assigned, matched);
    }
    let mut order: Vec<u32> = (0..files.len() as u32).collect();
    draw.shuffle(&mut order);
    let mut left: Vec<u32> = (0..wanted.len() as u32).collect();
    // Those that are alike get different changes by chance.
    draw.shuffle(&mut left);
    for (turn, mask) in masks().into_iter().enumerate() {
        if left.is_empty() || order.is_empty() {
            break;
        }
        // Wanted files of one hash form a list: the first is in the map, each one has the next.
        let (mut first, mut next) = (FxHashMap::default(), vec![u32::MAX; left.len()]);
        for (i, want) in left.iter().enumerate() {
            let head = first.entry(wanted[*want as usize].hash(mask)).or_insert(u32::MAX);
            next[i] = std::mem::replace(head, i as u32);
        }
        let before = left.len();
        let mut open = vec![true; left.len()];
        order.retain(|file| {
            let Some(head) =
                first.get_mut(&files[*file as usize].hash(mask)).filter(|head| **head != u32::MAX)
            else {
                return true;
            };
            let i = *head as usize;
            *head = next[i];
            open[i] = false;
            assigned[*file as usize] = left[i];
            false
        });
        let mut i = 0;
        left.retain(|_| {
            i += 1;
            open[i - 1]
        });
        if turn > 0 {
            matched.best += (before - left.len()) as u64;
        }
    }
    matched.missing = left.len() as u64;
    (assigned, matched)
}

/// Which fields are compared, turn by turn: all, then all but one, and so on to none.
fn masks() -> Vec<u32> {
    let weight = |mask: u32| (0..FIELDS).filter(|i| mask >> i & 1 == 1).map(|i| WEIGHTS[i]).sum::<u32>();
    let mut masks: Vec<u32> = (0..1 << FIELDS).collect();
    masks.sort_by_key(|mask| std::cmp::Reverse((mask.count_ones(), weight(*mask))));
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(size: u32, extension: u32) -> Traits {
        Traits::new(File { depth: 1, extension, size, unique: size, dup1: 0, dup2: 0 }, 0, 13)
    }

    #[test]
    fn what_fits_is_taken_first() {
        let files = [traits(1, 1), traits(2, 1), traits(2, 2), traits(3, 1)];
        let wanted = [traits(2, 2), traits(9, 9), traits(3, 2)];
        let (assigned, matched) = assign(&files, &wanted, &mut Draw::new(1, 1));
        assert_eq!((assigned[2], assigned[3]), (0, 2), "the size counts more than the extension");
        assert_eq!(matched, Matched { best: 2, missing: 0 });
        let (assigned, matched) = assign(&files[..1], &wanted, &mut Draw::new(1, 1));
        assert_ne!(assigned[0], u32::MAX);
        assert_eq!((matched.best, matched.missing), (1, 2));
    }

    #[test]
    fn files_that_fit_alike_are_drawn() {
        let files = vec![traits(1, 1); 100];
        let wanted = vec![traits(1, 1); 10];
        let chosen = |seed| {
            let (assigned, matched) = assign(&files, &wanted, &mut Draw::new(seed, 0));
            assert_eq!(matched, Matched::default());
            (0..100).filter(|i| assigned[*i] != u32::MAX).collect::<Vec<_>>()
        };
        assert_eq!(chosen(1).len(), 10);
        assert_ne!(chosen(1), chosen(2));
        assert_eq!(chosen(1), chosen(1));
    }
}
