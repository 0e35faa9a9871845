//! A set of numbers in which the next one is found quickly, used by many threads at once.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// One bit for each number, and above them one bit for each word that is not zero, up to a single word.
///
/// Under concurrent changes [`Bits::next`] may miss a number that is being added and find one that is being taken away:
/// it says where to look, not what holds.
pub struct Bits {
    levels: Vec<Box<[AtomicU64]>>,
}

impl Bits {
    /// None of `count` numbers.
    pub fn new(count: usize) -> Bits {
        let (mut levels, mut len) = (Vec::new(), count);
        loop {
            len = len.div_ceil(64).max(1);
            levels.push((0..len).map(|_| AtomicU64::new(0)).collect());
            if len == 1 {
                return Bits { levels };
            }
        }
    }

    /// Adds a number.
    pub fn insert(&self, number: usize) {
        let mut at = number;
        for level in &self.levels {
            let before = level[at / 64].fetch_or(1 << (at % 64), SeqCst);
            if before != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Takes a number away.
    pub fn remove(&self, number: usize) {
        let mut at = number;
        for (above, level) in self.levels.iter().enumerate() {
            let bit = 1 << (at % 64);
            if level[at / 64].fetch_and(!bit, SeqCst) != bit {
                return;
            }
            at /= 64;
            // Somebody may have added to the word after it was empty and before this level is told.
            if let Some(next) = self.levels.get(above + 1) {
                next[at / 64].fetch_and(!(1 << (at % 64)), SeqCst);
                if level[at].load(SeqCst) != 0 {
                    next[at / 64].fetch_or(1 << (at % 64), SeqCst);
                    return;
                }
                if next[at / 64].load(SeqCst) != 0 {
                    return;
                }
            }
        }
    }

    /// The smallest number that is not below `from`.
    pub fn next(&self, from: usize) -> Option<usize> {
        let (mut level, mut at) = (0, from);
        loop {
            // What is left of this word; then of the one above.
            let word = self.levels[level].get(at / 64)?.load(SeqCst) & (u64::MAX << (at % 64));
            if word != 0 {
                at = at / 64 * 64 + word.trailing_zeros() as usize;
                if level == 0 {
                    return Some(at);
                }
                level -= 1;
                at *= 64;
            } else {
                level += 1;
                if level == self.levels.len() {
                    return None;
                }
                at = at / 64 + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_an_ordered_set(
            count in 1usize..20_000, steps in prop::collection::vec((any::<bool>(), any::<usize>()), 1..300),
        ) {
            let (bits, mut set) = (Bits::new(count), BTreeSet::new());
            for (add, number) in steps {
                let number = number % count;
                if add {
                    bits.insert(number);
                    set.insert(number);
                } else {
                    bits.remove(number);
                    set.remove(&number);
                }
                let from = number.saturating_sub(70);
                prop_assert_eq!(bits.next(from), set.range(from..).next().copied());
            }
            prop_assert_eq!(bits.next(0), set.first().copied());
            prop_assert_eq!(bits.next(count), None);
        }
    }

    #[test]
    fn nothing_is_lost_when_threads_share_words() {
        let bits = Bits::new(64 * 64 * 3);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let bits = &bits;
                scope.spawn(move || {
                    for _ in 0..200 {
                        for number in (thread..64 * 64 * 3).step_by(97) {
                            bits.insert(number);
                            bits.remove(number);
                        }
                    }
                    bits.insert(thread);
                });
            }
        });
        assert_eq!((0..4).map(|i| bits.next(i)).collect::<Vec<_>>(), [Some(0), Some(1), Some(2), Some(3)]);
    }
}
