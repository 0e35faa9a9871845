//! Blocks in the order in which they were referenced last, and how far down in it each one is.

/// Bits of a group of the tree: a cache line of them is counted by itself.
const GROUP: usize = 512;

/// Neighbouring blocks whose entries lie side by side: a large request waits for memory once for so many.
const SIDE: u64 = 8;

/// Least number of moments between two renumberings.
pub(crate) const MOMENTS: usize = 1 << 16;

/// A block that was referenced.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its number in the object.
    block: u64,
    object: u32,
    /// When it was referenced last; [`Entry::FREE`] where the entry is of no block.
    time: u32,
}

impl Entry {
    const FREE: u32 = u32::MAX;

    const NOTHING: Entry = Entry { block: 0, object: 0, time: Entry::FREE };
}

/// Which moments are no block's last reference any more, and how many these are up to any moment.
#[derive(Debug, Default)]
struct Gone {
    bits: Vec<u64>,
    /// Fenwick tree over groups of bits.
    tree: Vec<u32>,
    all: u32,
}

impl Gone {
    fn new(moments: usize) -> Gone {
        let groups = moments.div_ceil(GROUP);
        Gone { bits: vec![0; groups * GROUP / 64], tree: vec![0; groups + 1], all: 0 }
    }

    fn has(&self, time: u32) -> bool {
        self.bits[time as usize / 64] >> (time % 64) & 1 == 1
    }

    /// How many there are before a moment.
    #[inline]
    fn before(&self, time: u32) -> u32 {
        let (group, word) = (time as usize / GROUP, time as usize / 64);
        let mut before = (self.bits[word] & ((1 << (time % 64)) - 1)).count_ones();
        before += self.bits[group * GROUP / 64..word].iter().map(|bits| bits.count_ones()).sum::<u32>();
        let mut at = group;
        while at > 0 {
            before += self.tree[at];
            at &= at - 1;
        }
        before
    }

    #[inline]
    fn add(&mut self, time: u32) {
        self.bits[time as usize / 64] |= 1 << (time % 64);
        self.all += 1;
        let mut at = time as usize / GROUP + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// The moment that so many others before it are still there of.
    #[inline]
    fn nth_left(&self, mut others: u32) -> u32 {
        let groups = self.tree.len() - 1;
        let (mut group, mut step) = (0, (groups + 1).next_power_of_two() / 2);
        while step > 0 {
            if group + step <= groups {
                let left = (step * GROUP) as u32 - self.tree[group + step];
                if others >= left {
                    others -= left;
                    group += step;
                }
            }
            step /= 2;
        }
        let mut word = group * GROUP / 64;
        loop {
            let left = self.bits[word].count_zeros();
            if others < left {
                break;
            }
            others -= left;
            word += 1;
        }
        let mut left = !self.bits[word];
        for _ in 0..others {
            left &= left - 1;
        }
        word as u32 * 64 + left.trailing_zeros()
    }
}

/// The blocks of a stream in the order in which they were referenced last.
///
/// The stack distance of a block is how many others were referenced since it was (Mattson et al., IBM Systems
/// Journal 9, 1970). Every question is answered in time that grows with the logarithm of the number of blocks.
#[derive(Debug)]
pub struct Recency {
    entries: Vec<Entry>,
    live: usize,
    /// Entry by moment.
    owners: Vec<u32>,
    gone: Gone,
    /// The next moment.
    now: u32,
}

impl Default for Recency {
    fn default() -> Recency {
        Recency::with_capacity(0)
    }
}

impl Recency {
    /// With room for so many blocks from the start; more are taken, too.
    #[must_use]
    pub fn with_capacity(blocks: usize) -> Recency {
        Recency {
            entries: vec![Entry::NOTHING; (2 * blocks + 1).next_power_of_two().max(1 << 10)],
            live: 0,
            owners: vec![0; MOMENTS],
            gone: Gone::new(MOMENTS),
            now: 0,
        }
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether no block was referenced yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// References a block: its stack distance until now, `None` if it is new.
    #[inline]
    pub fn touch(&mut self, object: u32, block: u64) -> Option<u64> {
        if self.now as usize == self.owners.len() {
            self.renumber();
        }
        let at = self.find(object, block);
        let before = self.entries[at].time;
        let distance = (before != Entry::FREE).then(|| self.since(before));
        self.entries[at] = Entry { block, object, time: self.now };
        self.owners[self.now as usize] = at as u32;
        self.now += 1;
        if distance.is_some() {
            self.gone.add(before);
        } else {
            self.live += 1;
            if self.live * 2 > self.entries.len() {
                self.rebuild(self.entries.len() * 2, |_, _| true);
            }
        }
        distance
    }

    /// The stack distance of a block, `None` if it was never referenced.
    #[inline]
    #[must_use]
    pub fn distance(&self, object: u32, block: u64) -> Option<u64> {
        let time = self.entries[self.find(object, block)].time;
        (time != Entry::FREE).then(|| self.since(time))
    }

    /// Whether a block was referenced.
    #[inline]
    #[must_use]
    pub fn has(&self, object: u32, block: u64) -> bool {
        self.entries[self.find(object, block)].time != Entry::FREE
    }

    /// Object and block at a stack distance.
    #[inline]
    #[must_use]
    pub fn at(&self, distance: u64) -> Option<(u32, u64)> {
        let others = (self.live as u64).checked_sub(distance.checked_add(1)?)?;
        let entry = self.entries[self.owners[self.gone.nth_left(others as u32) as usize] as usize];
        Some((entry.object, entry.block))
    }

    /// How many blocks were referenced last after a moment.
    #[inline]
    fn since(&self, time: u32) -> u64 {
        // Moments since then that are still some block's last.
        let gone = self.gone.all - self.gone.before(time);
        u64::from(self.now - 1 - time - gone)
    }

    /// The entry of a block, or where it goes.
    #[inline]
    fn find(&self, object: u32, block: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = home(object, block) & mask;
        loop {
            let entry = &self.entries[at];
            if entry.time == Entry::FREE || (entry.block == block && entry.object == object) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Keeps only some of the blocks, by object and number.
    pub fn retain(&mut self, stays: impl Fn(u32, u64) -> bool) {
        self.rebuild(self.entries.len(), stays);
    }

    /// Puts the entries that stay into a table of another size.
    fn rebuild(&mut self, size: usize, stays: impl Fn(u32, u64) -> bool) {
        let old = std::mem::replace(&mut self.entries, vec![Entry::NOTHING; size]);
        self.live = 0;
        for entry in old.into_iter().filter(|entry| entry.time != Entry::FREE) {
            if stays(entry.object, entry.block) {
                let at = self.find(entry.object, entry.block);
                self.entries[at] = entry;
                self.owners[entry.time as usize] = at as u32;
                self.live += 1;
            } else {
                self.gone.add(entry.time);
            }
        }
    }

    /// Gives the moments that are some block's last reference the lowest numbers.
    fn renumber(&mut self) {
        let mut next = 0;
        for time in 0..self.now {
            if !self.gone.has(time) {
                let owner = self.owners[time as usize];
                self.entries[owner as usize].time = next;
                self.owners[next as usize] = owner;
                next += 1;
            }
        }
        self.now = next;
        let moments = (2 * self.live).max(MOMENTS);
        self.owners.resize(moments, 0);
        self.gone = Gone::new(moments);
    }
}

/// A number of a block that is as good as random.
#[inline]
pub(crate) fn mix(object: u32, number: u64) -> u64 {
    // The finaliser of MurmurHash3 (A. Appleby), which lets every bit change every other.
    let mut x = number ^ u64::from(object).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

#[inline]
fn home(object: u32, block: u64) -> usize {
    let group = mix(object, block / SIDE);
    (group / SIDE * SIDE + block % SIDE) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_list_whose_front_is_the_last_reference(
            steps in proptest::collection::vec((0u32..2, 0u64..40), 1..400), far in any::<bool>(),
        ) {
            let mut recency = Recency::default();
            // Over a renumbering, too.
            if far {
                for i in 0..2 * MOMENTS as u64 + 77 {
                    recency.touch(7, i % 3);
                }
                recency.retain(|object, _| object != 7);
            }
            let mut list: Vec<(u32, u64)> = Vec::new();
            for (object, block) in steps {
                let at = list.iter().position(|x| *x == (object, block));
                prop_assert_eq!(recency.distance(object, block), at.map(|at| at as u64));
                prop_assert_eq!(recency.touch(object, block), at.map(|at| at as u64));
                at.map(|at| list.remove(at));
                list.insert(0, (object, block));
                prop_assert_eq!(recency.len(), list.len());
                for (distance, block) in (0..).zip(&list) {
                    prop_assert_eq!(recency.at(distance), Some(*block));
                }
                prop_assert_eq!(recency.at(list.len() as u64), None);
                prop_assert!(!recency.has(object, 77));
            }
        }
    }
}
