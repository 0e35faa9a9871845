//! Blocks in the order in which they were referenced last, and how far down in it each one is.

use crate::wide;
use std::ops::{Range, RangeInclusive};

/// Bits of a group of the tree: a cache line of them is counted by itself.
const GROUP: usize = 512;

/// Neighbouring blocks that share an entry: a large request looks one up, and waits for memory, once for so many.
const SIDE: u64 = 8;

/// Entries of a request that are asked for before they are needed.
const ASKED: usize = 4;

/// Least number of moments between two renumberings.
pub(crate) const MOMENTS: usize = 1 << 16;

/// Marks a block that was never referenced, in the place of a moment.
const NEVER: u32 = u32::MAX;

/// Neighbouring blocks of which at least one was referenced, or room for some.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Number of the first block in the object, divided by [`SIDE`].
    number: u64,
    object: u32,
    taken: bool,
    /// When each block was referenced last, or [`NEVER`].
    times: [u32; SIDE as usize],
}

impl Entry {
    const NOTHING: Entry = Entry { number: 0, object: 0, taken: false, times: [NEVER; SIDE as usize] };

    fn new(object: u32, number: u64) -> Entry {
        Entry { number, object, taken: true, ..Entry::NOTHING }
    }
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
        // A power of two, so that no search has to look where the tree ends: what lies behind the last moment is never
        // reached, as it counts as left.
        let groups = moments.div_ceil(GROUP).next_power_of_two();
        Gone { bits: vec![0; groups * GROUP / 64], tree: vec![0; groups + 1], all: 0 }
    }

    fn has(&self, time: u32) -> bool {
        self.bits[time as usize / 64] >> (time % 64) & 1 == 1
    }

    /// How many there are before a moment.
    #[inline(always)]
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

    /// Takes a moment that [`Gone::count`] will be told of.
    #[inline(always)]
    fn mark(&mut self, time: u32) {
        self.bits[time as usize / 64] |= 1 << (time % 64);
    }

    /// Counts so many moments of a group that were marked.
    #[inline(always)]
    fn count(&mut self, group: usize, moments: u32) {
        self.all += moments;
        let mut at = group + 1;
        while at < self.tree.len() {
            self.tree[at] += moments;
            at += at & at.wrapping_neg();
        }
    }

    /// The moment that so many others before it are still there of.
    #[inline(always)]
    fn nth_left(&self, mut others: u32) -> u32 {
        // Which way each step goes is chance, so it is computed and not branched on.
        let (mut group, mut step) = (0, (self.tree.len() - 1) / 2);
        while step > 0 {
            let left = (step * GROUP) as u32 - self.tree[group + step];
            let beyond = others >= left;
            others -= if beyond { left } else { 0 };
            group += if beyond { step } else { 0 };
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
        word as u32 * 64 + nth_one(!self.bits[word], others)
    }
}

impl Gone {
    /// The first moment from this one on that is not gone.
    #[inline]
    fn next_left(&self, moment: u32) -> Option<u32> {
        let mut word = moment as usize / 64;
        let mut left = !*self.bits.get(word)? & (u64::MAX << (moment % 64));
        while left == 0 {
            word += 1;
            left = !*self.bits.get(word)?;
        }
        Some(word as u32 * 64 + left.trailing_zeros())
    }
}

/// Position of the bit that is set with so many others below it.
#[inline(always)]
fn nth_one(mut bits: u64, mut others: u32) -> u32 {
    let mut at = 0;
    for width in [32, 16, 8] {
        let ones = (bits & ((1 << width) - 1)).count_ones();
        let beyond = others >= ones;
        others -= if beyond { ones } else { 0 };
        at += if beyond { width } else { 0 };
        bits >>= if beyond { width } else { 0 };
    }
    for _ in 0..others {
        bits &= bits - 1;
    }
    at + bits.trailing_zeros()
}

/// Blocks that follow each other and were referenced at one stack distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// How many other blocks were referenced since each of them was; `None`: they are new.
    pub distance: Option<u64>,
    /// How many blocks.
    pub blocks: u64,
}

/// The blocks of a stream in the order in which they were referenced last.
///
/// The stack distance of a block is how many others were referenced since it was (Mattson et al., IBM Systems
/// Journal 9, 1970). Every question is answered in time that grows with the logarithm of the number of blocks.
#[derive(Debug)]
pub struct Recency {
    entries: Vec<Entry>,
    /// How many entries are taken.
    taken: usize,
    /// How many blocks were referenced.
    live: usize,
    /// Place by moment: that of the entry times [`SIDE`], and that in the entry.
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
            entries: vec![Entry::NOTHING; (2 * blocks / SIDE as usize + 1).next_power_of_two().max(1 << 7)],
            taken: 0,
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

    /// Bytes of memory that the blocks take; as soon as most of them are used, twice as many are taken besides.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.entries[..]) + size_of_val(&self.owners[..])) as u64
    }

    /// Whether no block was referenced yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// References a block: its stack distance until now, `None` if it is new.
    #[inline]
    pub fn touch(&mut self, object: u32, block: u64) -> Option<u64> {
        touch(self, object, block)
    }

    /// References blocks one after the other: how many of them were at which stack distance, in their order.
    ///
    /// Blocks that were last referenced one after the other, too, are all at one distance, which is looked up once.
    #[inline]
    pub fn touch_all(&mut self, object: u32, blocks: Range<u64>, runs: &mut Vec<Run>) {
        touch_all(self, object, blocks, runs);
    }

    /// Asks for the memory that [`Recency::touch_all`] needs of these blocks, for a request that comes soon.
    #[inline]
    pub fn ask(&self, object: u32, blocks: &Range<u64>) {
        for number in (blocks.start / SIDE..blocks.end.div_ceil(SIDE)).take(ASKED) {
            prefetch(&self.entries[self.home(object, number)]);
        }
    }

    /// The stack distance of a block, `None` if it was never referenced.
    #[inline]
    #[must_use]
    pub fn distance(&self, object: u32, block: u64) -> Option<u64> {
        distance(self, object, block)
    }

    /// Whether a block was referenced.
    #[inline]
    #[must_use]
    pub fn has(&self, object: u32, block: u64) -> bool {
        self.time(object, block) != NEVER
    }

    /// Object and block at a stack distance.
    #[inline]
    #[must_use]
    pub fn at(&self, distance: u64) -> Option<(u32, u64)> {
        let others = (self.live as u64).checked_sub(distance.checked_add(1)?)?;
        Some(self.owner(nth_left(&self.gone, others as u32)))
    }

    /// The moments at which the blocks at stack distances from `low` to `high` were referenced, those at both ends
    /// included; `None` where `high` is not below [`Recency::len`] or `low` is above it.
    #[must_use]
    pub fn moments(&self, low: u64, high: u64) -> Option<RangeInclusive<u32>> {
        let nth = |distance: u64| (self.live as u64).checked_sub(distance.checked_add(1)?);
        let (oldest, newest) = (nth(high)?, nth(low)?);
        (oldest <= newest).then(|| nth_left(&self.gone, oldest as u32)..=nth_left(&self.gone, newest as u32))
    }

    /// The first moment from `from` up to `to` that is the last reference of a block of an object, and that block;
    /// at most `looks` blocks are looked at.
    #[inline]
    #[must_use]
    pub fn first_of(&self, object: u32, from: u32, to: u32, looks: usize) -> Option<(u32, u64)> {
        let mut moment = from;
        for _ in 0..looks {
            moment = self.gone.next_left(moment).filter(|moment| *moment <= to && *moment < self.now)?;
            let (owner, block) = self.owner(moment);
            if owner == object {
                return Some((moment, block));
            }
            moment += 1;
        }
        None
    }

    /// Makes a block of an entry the one that was referenced last, and says when it was before.
    #[inline(always)]
    fn refer(&mut self, at: usize, side: usize) -> u32 {
        let before = std::mem::replace(&mut self.entries[at].times[side], self.now);
        self.owners[self.now as usize] = place(at, side);
        self.now += 1;
        self.live += usize::from(before == NEVER);
        before
    }

    /// When a block was referenced last.
    #[inline(always)]
    fn time(&self, object: u32, block: u64) -> u32 {
        // No block of an entry that is not taken was.
        self.entries[self.find(object, block / SIDE)].times[(block % SIDE) as usize]
    }

    /// Object and number of the block whose last reference was at a moment.
    #[inline(always)]
    fn owner(&self, moment: u32) -> (u32, u64) {
        let place = u64::from(self.owners[moment as usize]);
        let entry = &self.entries[(place / SIDE) as usize];
        (entry.object, entry.number * SIDE + place % SIDE)
    }

    /// How many blocks were referenced last after a moment.
    #[inline(always)]
    fn since(&self, time: u32) -> u64 {
        // Moments since then that are still some block's last.
        let gone = self.gone.all - self.gone.before(time);
        u64::from(self.now - 1 - time - gone)
    }

    /// Where the entry of this number is sought first.
    #[inline(always)]
    fn home(&self, object: u32, number: u64) -> usize {
        mix(object, number) as usize & (self.entries.len() - 1)
    }

    /// The entry of this number, or where it goes.
    #[inline(always)]
    fn find(&self, object: u32, number: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = self.home(object, number);
        loop {
            let entry = &self.entries[at];
            if !entry.taken || (entry.number == number && entry.object == object) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The entry of this number, which is made where there is none.
    #[inline(always)]
    fn entry(&mut self, object: u32, number: u64) -> usize {
        let at = self.find(object, number);
        if self.entries[at].taken { at } else { self.add(object, number) }
    }

    /// Makes an entry, and room for it.
    fn add(&mut self, object: u32, number: u64) -> usize {
        if (self.taken + 1) * 4 > self.entries.len() * 3 {
            self.rebuild(self.entries.len() * 2, |_, _| true);
        }
        let at = self.find(object, number);
        self.entries[at] = Entry::new(object, number);
        self.taken += 1;
        at
    }

    /// Keeps only some of the blocks, by object and number.
    pub fn retain(&mut self, stays: impl Fn(u32, u64) -> bool) {
        self.rebuild(self.entries.len(), stays);
    }

    /// Puts the entries that stay into a table of another size.
    fn rebuild(&mut self, size: usize, stays: impl Fn(u32, u64) -> bool) {
        let old = std::mem::replace(&mut self.entries, vec![Entry::NOTHING; size]);
        (self.taken, self.live) = (0, 0);
        for mut entry in old.into_iter().filter(|entry| entry.taken) {
            for (side, time) in (0..).zip(&mut entry.times) {
                if *time != NEVER && !stays(entry.object, entry.number * SIDE + side) {
                    self.gone.mark(*time);
                    self.gone.count(*time as usize / GROUP, 1);
                    *time = NEVER;
                }
            }
            if entry.times == Entry::NOTHING.times {
                continue;
            }
            let at = self.find(entry.object, entry.number);
            self.entries[at] = entry;
            self.taken += 1;
            for (side, time) in entry.times.into_iter().enumerate().filter(|(_, time)| *time != NEVER) {
                self.owners[time as usize] = place(at, side);
                self.live += 1;
            }
        }
    }

    /// Gives the moments that are some block's last reference the lowest numbers.
    fn renumber(&mut self) {
        let mut next = 0;
        for time in 0..self.now {
            if !self.gone.has(time) {
                let owner = self.owners[time as usize];
                self.entries[owner as usize / SIDE as usize].times[owner as usize % SIDE as usize] = next;
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

wide! {
    fn distance(recency: &Recency, object: u32, block: u64) -> Option<u64> {
        let time = recency.time(object, block);
        (time != NEVER).then(|| recency.since(time))
    }
}

wide! {
    fn nth_left(gone: &Gone, others: u32) -> u32 {
        gone.nth_left(others)
    }
}

wide! {
    fn touch(recency: &mut Recency, object: u32, block: u64) -> Option<u64> {
        if recency.now as usize == recency.owners.len() {
            recency.renumber();
        }
        let at = recency.entry(object, block / SIDE);
        let before = recency.refer(at, (block % SIDE) as usize);
        (before != NEVER).then(|| {
            // The block itself was referenced after that, and is no other one.
            let distance = recency.since(before) - 1;
            recency.gone.mark(before);
            recency.gone.count(before as usize / GROUP, 1);
            distance
        })
    }
}

wide! {
    fn touch_all(recency: &mut Recency, object: u32, blocks: Range<u64>, runs: &mut Vec<Run>) {
        runs.clear();
        // When the block before had been referenced, and how many moments of a group are marked and not counted.
        let (mut last, mut group, mut marked) = (NEVER, 0, 0);
        let mut entry = None;
        for block in blocks {
            if recency.now as usize == recency.owners.len() {
                recency.renumber();
                (last, marked) = (NEVER, 0);
            }
            let side = (block % SIDE) as usize;
            let at = match entry {
                Some(at) if side > 0 => at,
                _ => recency.entry(object, block / SIDE),
            };
            entry = Some(at);
            let before = recency.refer(at, side);
            let goes_on = before == last.wrapping_add(1) && last != NEVER;
            last = before;
            if before == NEVER {
                match runs.last_mut() {
                    Some(run) if run.distance.is_none() => run.blocks += 1,
                    _ => runs.push(Run { distance: None, blocks: 1 }),
                }
                continue;
            }
            if marked > 0 && (before as usize / GROUP != group || !goes_on) {
                recency.gone.count(group, marked);
                marked = 0;
            }
            group = before as usize / GROUP;
            match runs.last_mut() {
                // It was next to the block before, which went to the front as it does now.
                Some(run) if goes_on => run.blocks += 1,
                _ => runs.push(Run { distance: Some(recency.since(before) - 1), blocks: 1 }),
            }
            recency.gone.mark(before);
            marked += 1;
        }
        if marked > 0 {
            recency.gone.count(group, marked);
        }
    }
}

/// Asks for memory that is needed soon.
#[doc(hidden)]
#[inline]
pub fn prefetch<T>(at: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on caches, and the address is of a value.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
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

/// Where a block is, in one number.
#[inline]
fn place(at: usize, side: usize) -> u32 {
    (at * SIDE as usize + side) as u32
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

        #[test]
        fn blocks_together_are_as_one_after_the_other(
            steps in proptest::collection::vec((0u32..2, 0u64..60, 0u64..30), 1..200), far in any::<bool>(),
        ) {
            let mut pair = [Recency::default(), Recency::default()];
            if far {
                let nearly = MOMENTS as u64 - 200;
                pair.iter_mut().for_each(|one| (0..nearly).for_each(|i| { one.touch(0, i % 50); }));
            }
            let [together, single] = &mut pair;
            let mut runs = Vec::new();
            for (object, first, more) in steps {
                together.touch_all(object, first..first + more, &mut runs);
                let each: Vec<_> = (first..first + more).map(|block| single.touch(object, block)).collect();
                let told: Vec<_> = (runs.iter())
                    .flat_map(|run| std::iter::repeat_n(run.distance, run.blocks as usize))
                    .collect();
                prop_assert_eq!(told, each);
                prop_assert!((0..100).all(|block| together.distance(object, block) == single.distance(object, block)));
            }
            prop_assert_eq!(together.len(), single.len());
            prop_assert!((0..200).all(|distance| together.at(distance) == single.at(distance)));
        }

        #[test]
        fn bits_are_found_by_how_many_are_below(bits: u64) {
            let ones = (0..64).filter(|at| bits >> at & 1 == 1);
            for (others, at) in ones.enumerate() {
                prop_assert_eq!(nth_one(bits, others as u32), at as u32);
            }
        }
    }

    #[test]
    fn neighbours_share_memory() {
        let (mut recency, mut runs) = (Recency::default(), Vec::new());
        let blocks = 1 << 20;
        for first in (0..blocks).step_by(5) {
            recency.touch_all(1, first..first + 5, &mut runs);
        }
        assert!(recency.bytes() <= 24 * blocks, "{} bytes for {blocks} blocks", recency.bytes());
    }
}
