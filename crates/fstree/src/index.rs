//! A hash table of numbers whose keys live elsewhere: 4 bytes a slot, whatever the keys are.

/// Marks a slot that nothing is in.
const EMPTY: u32 = u32::MAX;

/// Numbers found by the hash and the equality that the caller knows.
pub(crate) struct Index {
    slots: Vec<u32>,
    used: usize,
}

impl Default for Index {
    /// Nothing yet.
    fn default() -> Index {
        Index { slots: vec![EMPTY; 16], used: 0 }
    }
}

impl Index {
    /// The number with this hash for which `same` holds.
    pub fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = spread(hash) & mask;
        while self.slots[at] != EMPTY {
            if same(self.slots[at]) {
                return Some(self.slots[at]);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Adds a number that is not there yet; `hash_of` tells the hash of those that are.
    pub fn add(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        debug_assert_ne!(number, EMPTY);
        // Three quarters full at most: beyond, linear probing slows.
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            let old =
                std::mem::replace(&mut self.slots, vec![EMPTY; 2 * self.used.next_power_of_two().max(16)]);
            for number in old.into_iter().filter(|number| *number != EMPTY) {
                self.put(hash_of(number), number);
            }
        }
        self.put(hash, number);
        self.used += 1;
    }

    fn put(&mut self, hash: u64, number: u32) {
        let mask = self.slots.len() - 1;
        let mut at = spread(hash) & mask;
        while self.slots[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = number;
    }
}

/// Low bits that depend on all bits (Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, 6.4).
fn spread(hash: u64) -> usize {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize
}

/// Hash of bytes that are names.
pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
