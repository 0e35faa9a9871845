//! Which blocks were not asked for yet, where each comes once before any comes again.

/// One bit for each free block, and above them one bit for each word that has any, up to a single word.
pub struct Free {
    levels: Vec<Box<[u64]>>,
    blocks: u64,
    left: u64,
}

impl Free {
    /// All of them free; nothing where the memory cannot be had.
    pub fn new(blocks: u64) -> Option<Free> {
        let mut levels = Vec::new();
        let mut len = blocks;
        loop {
            len = len.div_ceil(64).max(1);
            let mut level = Vec::new();
            level.try_reserve_exact(usize::try_from(len).ok()?).ok()?;
            level.resize(len as usize, 0);
            levels.push(level.into_boxed_slice());
            if len == 1 {
                break;
            }
        }
        let mut free = Free { levels, blocks, left: 0 };
        free.refill();
        Some(free)
    }

    /// Frees all.
    fn refill(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(u64::MAX);
            let rest = bits % 64;
            if let (Some(last), true) = (level.last_mut(), rest != 0) {
                *last = (1 << rest) - 1;
            }
            bits = bits.div_ceil(64);
        }
        self.left = self.blocks;
    }

    /// `block`, or the next free one after it, the first one where there is none; all are free again once none is.
    pub fn from(&mut self, block: u64) -> u64 {
        if self.left == 0 {
            self.refill();
        }
        self.next(block).or_else(|| self.next(0)).unwrap_or(block)
    }

    /// Takes a free block and those after it, up to `count` of them; returns how many.
    pub fn take(&mut self, block: u64, count: u64) -> u64 {
        let mut taken = 0;
        while taken < count && self.is_free(block + taken) {
            self.remove(block + taken);
            taken += 1;
        }
        self.left -= taken;
        taken
    }

    fn is_free(&self, block: u64) -> bool {
        block < self.blocks && self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    fn remove(&mut self, block: u64) {
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[(at / 64) as usize];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    fn next(&self, from: u64) -> Option<u64> {
        let (mut level, mut at) = (0, from);
        loop {
            // What is left of this word; then of the one above.
            let word = self.levels[level].get((at / 64) as usize)? & (u64::MAX << (at % 64));
            if word == 0 {
                level += 1;
                if level == self.levels.len() {
                    return None;
                }
                at = at / 64 + 1;
                continue;
            }
            at = at / 64 * 64 + u64::from(word.trailing_zeros());
            if level == 0 {
                return Some(at);
            }
            level -= 1;
            at *= 64;
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
            blocks in 1u64..9_000, steps in prop::collection::vec((any::<u64>(), 1u64..40), 1..400),
        ) {
            let mut free = Free::new(blocks).unwrap();
            let mut set: BTreeSet<u64> = (0..blocks).collect();
            for (block, count) in steps {
                let block = block % blocks;
                if set.is_empty() {
                    set = (0..blocks).collect();
                }
                let found = free.from(block);
                prop_assert_eq!(found, *set.range(block..).next().unwrap_or_else(|| set.first().unwrap()));
                let run = (found..).take(count as usize).take_while(|b| set.remove(b)).count() as u64;
                prop_assert_eq!(free.take(found, count), run);
            }
        }
    }
}
