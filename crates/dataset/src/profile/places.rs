//! Places of a modified file: what comes between two chunks that stay, and what goes there.

use super::size_class::{CLASSES, class};
use crate::chunks::Chunks;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// What goes at each place of a file and what comes there, as places in its chunks before and after.
fn places(old: &[u32], new: &[u32]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut having: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    (0..).zip(old).for_each(|(at, chunk)| having.entry(*chunk).or_default().push(at));
    let (mut places, mut from, mut begin) = (Vec::new(), 0, 0);
    for i in 0..=new.len() {
        let to = match new.get(i) {
            None => old.len(),
            Some(chunk) => {
                let all = having.get(chunk).map_or(&[][..], Vec::as_slice);
                match all.get(all.partition_point(|at| *at < from)) {
                    Some(at) => *at,
                    None => continue,
                }
            }
        };
        if from < to || begin < i {
            places.push((from..to, begin..i));
        }
        (from, begin) = (to + 1, i + 1);
    }
    places
}

/// How much longer places become at which as many chunks come as go, and the chunks that come there.
#[derive(Default)]
pub(super) struct Growth {
    chunks: FxHashSet<u32>,
    /// Bytes as they are, and compressed.
    gone: [f64; 2],
    come: [f64; 2],
}

impl Growth {
    /// A file's chunks before and after, and those that it had.
    pub fn see(&mut self, chunks: &Chunks, old: &[u32], new: &[u32], has: &FxHashSet<u32>) {
        let add = |sums: &mut [f64; 2], all: &[u32], times: f64| {
            for chunk in all {
                let size = times * f64::from(chunks.size(*chunk));
                sums[0] += size;
                sums[1] += size / chunks.ratio(*chunk).value();
            }
        };
        for (gone, come) in places(old, new) {
            let (gone, come) = (&old[gone], &new[come]);
            let doublings = match (gone, come) {
                // Files of one chunk tell what they become by themselves.
                ([gone], [come]) if old.len() == 1 && new.len() == 1 => {
                    let class = |chunk: u32| f64::from(class(u64::from(chunks.size(chunk))));
                    (class(*come) - class(*gone)) / CLASSES
                }
                _ => 0.0,
            };
            if gone.len() == come.len() && !come.iter().any(|chunk| has.contains(chunk)) {
                add(&mut self.gone, gone, doublings.exp2());
                add(&mut self.come, come, 1.0);
                self.chunks.extend(come);
            }
        }
    }

    /// Whether a chunk came at such a place.
    pub fn has(&self, chunk: u32) -> bool {
        self.chunks.contains(&chunk)
    }

    /// Bytes that came for each byte that went, as they are and compressed; nothing where there is no such place.
    pub fn told(&self) -> Option<[f64; 2]> {
        // Four digits are more than enough, and short.
        let share = |i: usize| ((self.come[i] / self.gone[i] * 1e4).round() / 1e4).max(1e-4);
        (self.gone[0] > 0.0).then(|| [share(0), share(1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::Ratio;

    #[test]
    fn places_are_between_chunks_that_stay() {
        assert_eq!(places(&[1, 2, 3, 4], &[1, 9, 3, 8, 7]), [(1..2, 1..2), (3..4, 3..5)]);
        assert_eq!(places(&[1, 2, 3], &[5, 1, 3]), [(0..0, 0..1), (1..2, 2..2)]);
        assert_eq!(places(&[1], &[2]), [(0..1, 0..1)]);
        assert_eq!(places(&[1, 2], &[1, 2]), []);
    }

    #[test]
    fn growth_is_of_places_at_which_as_many_come_as_go() {
        let mut chunks = Chunks::new(0);
        for size in [1000, 2000, 3000, 1500, 2500, 4000] {
            chunks.push(size, Ratio::nearest(2.0)).unwrap();
        }
        let mut growth = Growth::default();
        assert_eq!(growth.told(), None);
        let mut see = |old: &[u32], new: &[u32]| {
            growth.see(&chunks, old, new, &old.iter().copied().collect());
            (growth.told().map(|told| told[0]), growth.has(3), growth.has(5))
        };
        // One of 1,500 bytes for one of 1,000.
        assert_eq!(see(&[0, 1], &[3, 1]), (Some(1.5), true, false));
        // Two in place of one tell nothing.
        assert_eq!(see(&[1, 2], &[4, 5, 2]), (Some(1.5), true, false));
    }
}
