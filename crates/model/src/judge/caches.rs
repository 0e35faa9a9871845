//! What caches of other policies than LRU miss: FIFO, CLOCK (Corbató, 1968) and ARC (Megiddo and Modha, FAST 2003).
//!
//! No single pass gives all sizes of these, so a few are followed, each a share of the blocks that the trace has. Where
//! there are many blocks, only a sample of them is followed, in caches as much smaller (Waldspurger et al., ATC 2017).

use crate::model::Model;
use loadstone_trace::Batch;
use loadstone_trace::lru::{blocks, is_sampled};
use rustc_hash::FxHashMap;

/// Blocks that are followed at most, about.
const SAMPLED: u64 = 1 << 18;

/// Sizes of the caches: shares of the footprint, as powers of a half.
const HALVINGS: std::ops::RangeInclusive<u32> = 1..=8;

/// Nothing, where a block's number is.
const NOBODY: u32 = u32::MAX;

/// A cache of a fixed number of blocks; blocks are numbered from 0 as they are first referenced.
trait Policy: Send {
    /// References a block; whether it was there.
    fn reference(&mut self, block: u32) -> bool;
}

/// The misses of one policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Misses {
    /// Its name.
    pub policy: &'static str,
    /// Size of the cache in blocks, and the share of the references that miss it.
    pub ratios: Vec<(u64, f64)>,
}

/// One cache while it is followed.
struct Followed {
    policy: &'static str,
    blocks: u64,
    cache: Box<dyn Policy>,
    missed: u64,
}

/// Caches of several policies and sizes that see one stream.
pub(crate) struct Caches {
    level: usize,
    numbers: FxHashMap<(u32, u64), u32>,
    followed: Vec<Followed>,
    referenced: u64,
}

impl Caches {
    /// For streams like a model's trace, if the model tells how many blocks that has.
    pub fn of(model: &Model) -> Option<Caches> {
        let footprint = model.header.distances.as_ref()?.new;
        Some(Caches::new(footprint))
    }

    fn new(footprint: u64) -> Caches {
        let level = (0..63).find(|level| footprint >> level <= SAMPLED).unwrap_or(63);
        let mut sizes: Vec<u64> =
            HALVINGS.map(|by| footprint >> by).filter(|size| size >> level > 0).collect();
        sizes.reverse();
        sizes.dedup();
        let mut followed = Vec::new();
        for &blocks in &sizes {
            let most = (blocks >> level) as usize;
            let all: [(&str, Box<dyn Policy>); 3] = [
                ("FIFO", Box::new(Fifo::new(most))),
                ("CLOCK", Box::new(Clock::new(most))),
                ("ARC", Box::new(Arc::new(most))),
            ];
            followed.extend(all.map(|(policy, cache)| Followed { policy, blocks, cache, missed: 0 }));
        }
        Caches { level, numbers: FxHashMap::default(), followed, referenced: 0 }
    }

    /// Takes the reads and writes of a batch.
    pub fn add(&mut self, batch: &Batch) {
        if self.followed.is_empty() {
            return;
        }
        let places = batch.offset.iter().zip(&batch.size);
        for ((&op, &object), (&offset, &size)) in batch.op.iter().zip(&batch.object).zip(places) {
            for block in blocks(op, offset, size).filter(|&block| is_sampled(object, block, self.level)) {
                self.referenced += 1;
                let next = self.numbers.len() as u32;
                let number = *self.numbers.entry((object, block)).or_insert(next);
                for followed in &mut self.followed {
                    followed.missed += u64::from(!followed.cache.reference(number));
                }
            }
        }
    }

    /// What was missed, by policy.
    pub fn misses(&self) -> Vec<Misses> {
        ["FIFO", "CLOCK", "ARC"]
            .into_iter()
            .map(|policy| {
                let those = self.followed.iter().filter(|followed| followed.policy == policy);
                let share = |missed: u64| missed as f64 / self.referenced.max(1) as f64;
                Misses { policy, ratios: those.map(|f| (f.blocks, share(f.missed))).collect() }
            })
            .collect()
    }
}

/// The block that came first goes first.
struct Fifo {
    there: Vec<bool>,
    ring: Vec<u32>,
    most: usize,
    hand: usize,
}

impl Fifo {
    fn new(most: usize) -> Fifo {
        Fifo { there: Vec::new(), ring: Vec::new(), most, hand: 0 }
    }
}

impl Policy for Fifo {
    fn reference(&mut self, block: u32) -> bool {
        let at = block as usize;
        if self.there.len() <= at {
            self.there.resize(at + 1, false);
        }
        if std::mem::replace(&mut self.there[at], true) {
            return true;
        }
        if self.ring.len() < self.most {
            self.ring.push(block);
        } else {
            let gone = std::mem::replace(&mut self.ring[self.hand], block);
            self.there[gone as usize] = false;
            self.hand = (self.hand + 1) % self.most;
        }
        false
    }
}

/// Where a block of [`Clock`] is.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    Absent,
    Once,
    Again,
}

/// The first block under the hand goes that was not used since the hand last passed it.
struct Clock {
    seen: Vec<Seen>,
    ring: Vec<u32>,
    most: usize,
    hand: usize,
}

impl Clock {
    fn new(most: usize) -> Clock {
        Clock { seen: Vec::new(), ring: Vec::new(), most, hand: 0 }
    }
}

impl Policy for Clock {
    fn reference(&mut self, block: u32) -> bool {
        let at = block as usize;
        if self.seen.len() <= at {
            self.seen.resize(at + 1, Seen::Absent);
        }
        if self.seen[at] != Seen::Absent {
            self.seen[at] = Seen::Again;
            return true;
        }
        self.seen[at] = Seen::Once;
        if self.ring.len() < self.most {
            self.ring.push(block);
            return false;
        }
        while self.seen[self.ring[self.hand] as usize] == Seen::Again {
            self.seen[self.ring[self.hand] as usize] = Seen::Once;
            self.hand = (self.hand + 1) % self.most;
        }
        let gone = std::mem::replace(&mut self.ring[self.hand], block);
        self.seen[gone as usize] = Seen::Absent;
        self.hand = (self.hand + 1) % self.most;
        false
    }
}

/// The lists of [`Arc`], as its paper names them: in the cache once or more often, and gone from it.
#[derive(Clone, Copy, PartialEq)]
enum List {
    None,
    T1,
    T2,
    B1,
    B2,
}

/// A block in one of the lists of [`Arc`].
#[derive(Clone, Copy)]
struct Link {
    list: List,
    /// The blocks used next before and after it.
    older: u32,
    newer: u32,
}

/// Balances blocks that were used once with those that were used again, by what it missed of either.
struct Arc {
    most: usize,
    /// What T1 should have.
    target: usize,
    links: Vec<Link>,
    /// Of each list the oldest block, the newest, and how many there are.
    ends: [(u32, u32, usize); 5],
}

impl Arc {
    fn new(most: usize) -> Arc {
        Arc { most, target: 0, links: Vec::new(), ends: [(NOBODY, NOBODY, 0); 5] }
    }

    fn len(&self, list: List) -> usize {
        self.ends[list as usize].2
    }

    fn take(&mut self, block: u32) {
        let Link { list, older, newer } = self.links[block as usize];
        if list == List::None {
            return;
        }
        let ends = &mut self.ends[list as usize];
        ends.2 -= 1;
        match older {
            NOBODY => ends.0 = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NOBODY => ends.1 = older,
            newer => self.links[newer as usize].older = older,
        }
        self.links[block as usize].list = List::None;
    }

    fn put(&mut self, block: u32, list: List) {
        self.take(block);
        let ends = &mut self.ends[list as usize];
        let older = std::mem::replace(&mut ends.1, block);
        ends.2 += 1;
        match older {
            NOBODY => ends.0 = block,
            older => self.links[older as usize].newer = block,
        }
        self.links[block as usize] = Link { list, older, newer: NOBODY };
    }

    fn drop_oldest(&mut self, list: List) {
        let oldest = self.ends[list as usize].0;
        if oldest != NOBODY {
            self.take(oldest);
        }
    }

    /// The paper's REPLACE: a block of the cache goes, and is remembered.
    fn replace(&mut self, of_b2: bool) {
        let once = self.len(List::T1);
        let (from, to) = if once > 0 && (once > self.target || (of_b2 && once == self.target)) {
            (List::T1, List::B1)
        } else {
            (List::T2, List::B2)
        };
        let oldest = self.ends[from as usize].0;
        if oldest != NOBODY {
            self.put(oldest, to);
        }
    }
}

impl Policy for Arc {
    fn reference(&mut self, block: u32) -> bool {
        let at = block as usize;
        if self.links.len() <= at {
            self.links.resize(at + 1, Link { list: List::None, older: NOBODY, newer: NOBODY });
        }
        match self.links[at].list {
            List::T1 | List::T2 => {
                self.put(block, List::T2);
                return true;
            }
            List::B1 => {
                let by = (self.len(List::B2) / self.len(List::B1)).max(1);
                self.target = (self.target + by).min(self.most);
                self.replace(false);
                self.put(block, List::T2);
            }
            List::B2 => {
                let by = (self.len(List::B1) / self.len(List::B2)).max(1);
                self.target = self.target.saturating_sub(by);
                self.replace(true);
                self.put(block, List::T2);
            }
            List::None => {
                let once = self.len(List::T1) + self.len(List::B1);
                let all = once + self.len(List::T2) + self.len(List::B2);
                if once == self.most {
                    if self.len(List::T1) < self.most {
                        self.drop_oldest(List::B1);
                        self.replace(false);
                    } else {
                        self.drop_oldest(List::T1);
                    }
                } else if all >= self.most {
                    if all == 2 * self.most {
                        self.drop_oldest(List::B2);
                    }
                    self.replace(false);
                }
                self.put(block, List::T1);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn missed(mut cache: impl Policy, blocks: &[u32]) -> usize {
        blocks.iter().filter(|&&block| !cache.reference(block)).count()
    }

    #[test]
    fn each_policy_misses_what_its_definition_says() {
        // Of Belady, Nelson and Shedler (CACM 12, 1969): more pages, more faults of FIFO.
        let pages = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
        assert_eq!((missed(Fifo::new(3), &pages), missed(Fifo::new(4), &pages)), (9, 10));
        // The hand passes 0, which was used again, and takes 1.
        let mut clock = Clock::new(2);
        assert_eq!(
            [0, 1, 0, 2, 0, 1].map(|block| clock.reference(block)),
            [false, false, true, false, true, false]
        );
        // A scan leaves what is used again where it is: LRU and FIFO miss it, ARC does not.
        let mut scanned: Vec<u32> = [0, 1, 0, 1].to_vec();
        scanned.extend(10..40);
        scanned.extend([0, 1]);
        assert_eq!(missed(Arc::new(4), &scanned), 2 + 30);
        assert_eq!(missed(Fifo::new(4), &scanned), 2 + 30 + 2);
    }

    proptest! {
        #[test]
        fn no_cache_holds_more_than_it_may(blocks in proptest::collection::vec(0u32..40, 0..400), most in 1usize..20) {
            let mut arc = Arc::new(most);
            let mut seen = std::collections::HashSet::new();
            for block in blocks {
                let hit = arc.reference(block);
                prop_assert!(!hit || seen.contains(&block));
                seen.insert(block);
                prop_assert!(arc.len(List::T1) + arc.len(List::T2) <= most);
                prop_assert!(arc.len(List::T1) + arc.len(List::B1) <= most);
                let all: usize = [List::T1, List::T2, List::B1, List::B2].into_iter().map(|list| arc.len(list)).sum();
                prop_assert!(all <= 2 * most && arc.target <= most);
            }
        }

        #[test]
        fn a_cache_for_all_blocks_misses_each_once(blocks in proptest::collection::vec(0u32..40, 0..400)) {
            let different = blocks.iter().collect::<std::collections::HashSet<_>>().len();
            prop_assert_eq!(missed(Fifo::new(40), &blocks), different);
            prop_assert_eq!(missed(Clock::new(40), &blocks), different);
            prop_assert_eq!(missed(Arc::new(40), &blocks), different);
        }
    }
}
