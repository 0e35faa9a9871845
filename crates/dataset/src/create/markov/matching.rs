//! Files with wanted characteristics: those that have them, drawn at random, and else the best match, "the file that
//! matches most of the properties" (Tarasov, section 4.5.2).

use crate::create::draw::Draw;
use crate::profile::File;
use rustc_hash::FxHashMap;

/// Characteristics that are compared.
const FIELDS: usize = 8;
/// How much each counts where as many others match: depth, extension, size, unique, dup1, dup2, state, class of size.
const WEIGHTS: [u32; FIELDS] = [2, 4, 24, 12, 8, 6, 10, 20];

/// A file, or one that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits([u32; FIELDS]);

impl Traits {
    pub fn new(file: File, state: u32, class: u32) -> Traits {
        Traits([file.depth, file.extension, file.size, file.unique, file.dup1, file.dup2, state, class])
    }

    /// A hash of the fields whose factors are not 0 (multilinear: Carter and Wegman, Universal Classes of Hash Functions,
    /// Journal of Computer and System Sciences 18, 1979).
    fn hash(&self, factors: &[u64; FIELDS]) -> u64 {
        let terms =
            self.0.iter().zip(factors).map(|(field, factor)| (u64::from(*field) + 1).wrapping_mul(*factor));
        let sum = terms.fold(0u64, u64::wrapping_add);
        sum ^ sum >> 32
    }
}

/// Bits of hashes that somebody looks for: most files are passed over without a look into a table.
struct Filter(Vec<u64>);

impl Filter {
    const BITS: u64 = 1 << 16;

    fn of(hashes: impl Iterator<Item = u64>) -> Filter {
        let mut filter = Filter(vec![0; Self::BITS as usize / 64]);
        hashes.for_each(|hash| filter.0[(hash % Self::BITS / 64) as usize] |= 1 << (hash % 64));
        filter
    }

    fn may_have(&self, hash: u64) -> bool {
        self.0[(hash % Self::BITS / 64) as usize] >> (hash % 64) & 1 == 1
    }
}

/// What came of matching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Matched {
    /// Wanted files that were only the best match.
    pub best: u64,
    /// Wanted files of which there were not enough.
    pub missing: u64,
}

/// Gives each of `wanted` a file: tells for each file, by its number, which one it is, `u32::MAX` for none.
pub(crate) fn assign(
    mut files: Vec<(Traits, u32)>,
    wanted: &[Traits],
    draw: &mut Draw,
) -> (Vec<u32>, Matched) {
    let mut assigned = vec![u32::MAX; files.len()];
    let mut matched = Matched::default();
    if wanted.is_empty() {
        return (assigned, matched);
    }
    draw.shuffle(&mut files);
    let mut left: Vec<u32> = (0..wanted.len() as u32).collect();
    // Those that are alike get different changes by chance.
    draw.shuffle(&mut left);
    let factors: [u64; FIELDS] = std::array::from_fn(|_| draw.seed() | 1);
    let mut there = files.len();
    for (turn, mask) in masks().into_iter().enumerate() {
        if left.is_empty() || there == 0 {
            break;
        }
        let factors: [u64; FIELDS] = std::array::from_fn(|i| if mask >> i & 1 == 1 { factors[i] } else { 0 });
        // Wanted files of one hash form a list: the first is in the map, each one has the next.
        let (mut first, mut next) = (FxHashMap::default(), vec![u32::MAX; left.len()]);
        for (i, want) in left.iter().enumerate() {
            let head = first.entry(wanted[*want as usize].hash(&factors)).or_insert(u32::MAX);
            next[i] = std::mem::replace(head, i as u32);
        }
        let filter = Filter::of(first.keys().copied());
        let before = left.len();
        let mut open = vec![true; before];
        let mut found = 0;
        for (traits, file) in &files {
            let hash = traits.hash(&factors);
            if !filter.may_have(hash) || assigned[*file as usize] != u32::MAX {
                continue;
            }
            if let Some(head) = first.get_mut(&hash).filter(|head| **head != u32::MAX) {
                let i = *head as usize;
                *head = next[i];
                open[i] = false;
                assigned[*file as usize] = left[i];
                found += 1;
                if found == before {
                    break;
                }
            }
        }
        let mut i = 0;
        left.retain(|_| {
            i += 1;
            open[i - 1]
        });
        there -= found;
        if turn > 0 {
            matched.best += found as u64;
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

    fn numbered(files: &[Traits]) -> Vec<(Traits, u32)> {
        files.iter().copied().zip(0..).collect()
    }

    #[test]
    fn what_fits_is_taken_first() {
        let files = [traits(1, 1), traits(2, 1), traits(2, 2), traits(3, 1)];
        let wanted = [traits(2, 2), traits(9, 9), traits(3, 2)];
        let (assigned, matched) = assign(numbered(&files), &wanted, &mut Draw::new(1, 1, 0));
        assert_eq!((assigned[2], assigned[3]), (0, 2), "the size counts more than the extension");
        assert_eq!(matched, Matched { best: 2, missing: 0 });
        let (assigned, matched) = assign(numbered(&files[..1]), &wanted, &mut Draw::new(1, 1, 0));
        assert_ne!(assigned[0], u32::MAX);
        assert_eq!((matched.best, matched.missing), (1, 2));
    }

    #[test]
    fn files_that_fit_alike_are_drawn() {
        let files = vec![traits(1, 1); 100];
        let wanted = vec![traits(1, 1); 10];
        let chosen = |seed| {
            let (assigned, matched) = assign(numbered(&files), &wanted, &mut Draw::new(seed, 0, 0));
            assert_eq!(matched, Matched::default());
            (0..100).filter(|i| assigned[*i] != u32::MAX).collect::<Vec<_>>()
        };
        assert_eq!(chosen(1).len(), 10);
        assert_ne!(chosen(1), chosen(2));
        assert_eq!(chosen(1), chosen(1));
    }
}
