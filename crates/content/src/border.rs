//! Where FastCDC cuts, kept to the ends of chunks.
//!
//! FastCDC (Xia et al., USENIX ATC 2016; the version of 2020) cuts before the byte at which the masked bits of its Gear
//! hash are all zero. The hash takes in one bit more of every byte it has passed, so only the last 48 bytes count, that of the
//! next chunk's first byte among them. So every chunk begins with one and the same byte and ends with one of some
//! thousand tails after which, with that byte, there is a cut. In between, a byte is changed where FastCDC would cut, and only
//! there: other chunkers, also those of smaller chunks, find as many cuts as in real data.

use crate::generator::{Generator, Id};
use crate::{Error, Result};
use fastcdc::v2020::{Normalization, get_gear_with_seed, select_masks};

/// What every chunk begins with.
pub(crate) const FIRST: u8 = 0x4c;
/// Bytes of chunks after which a tail comes again, beyond what most codecs remember.
const APART: usize = 8 << 20;
/// Bytes that are hashed together.
const GROUP: usize = 8;
/// Chunkers of larger chunks that ends are chosen for, each of chunks twice as large as the one before.
const LEVELS: u32 = 8;
/// Of ends of chunks larger than the average, of which two bits less are asked, those that smaller ones could have, too.
const STRICT: f64 = 0.25;
/// Tails of which one is taken.
const CHOICE: usize = 4;
/// Parts of the circle of hashes that are looked up, binary logarithm.
const PARTS: u32 = 5;
/// Average chunk of the largest chunker, bytes.
const LARGEST: usize = 1 << 24;

/// FastCDC with its sizes, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutter {
    /// Smallest chunk.
    pub min: usize,
    /// On average.
    pub average: usize,
    /// Largest.
    pub max: usize,
}

impl Cutter {
    /// Bytes that a chunk must have so that a cut behind it is sure, if another one follows.
    pub fn least_inner(&self) -> usize {
        self.min + 4
    }
}

/// Makes chunks end where FastCDC cuts, and nowhere else.
#[derive(Clone)]
pub(crate) struct Borders {
    cutter: Cutter,
    gear: [u64; 256],
    strict: u64,
    loose: u64,
    /// Bytes that a hash takes in.
    window: usize,
    /// What each byte adds together with [`FIRST`] behind it.
    added: Values,
    /// Each of one byte less than a window: of chunks below the average, and of others.
    tails: [Vec<u8>; 2],
    plain: u8,
}

impl Borders {
    /// For a cutter; tails are drawn from `generator`.
    pub fn new(cutter: Cutter, generator: &Generator) -> Result<Borders> {
        let (table, _) = get_gear_with_seed(0);
        let mut gear = [0; 256];
        gear.copy_from_slice(&table);
        let (strict, loose) = select_masks(cutter.average, Normalization::Level1);
        let window = 64 - (strict | loose).leading_zeros() as usize;
        if cutter.min < 2 * window {
            return Err(Error::Option(format!(
                "FastCDC with chunks of {} bytes: use {} or more for the smallest",
                cutter.min,
                2 * window
            )));
        }
        let added = Values::new(
            gear.iter().map(|added| (added << 1).wrapping_add(gear[usize::from(FIRST)])),
            1 << window,
        );
        let tails = Default::default();
        let mut borders = Borders { cutter, gear, strict, loose, window, added, tails, plain: 0 };
        let runs_on = |byte: &u8| !borders.says_cut(borders.hash_of(&[*byte; 64]));
        borders.plain = (0..=u8::MAX).find(runs_on).unwrap_or_default();
        // The larger chunks are, the longer a tail takes to find, and the fewer are needed.
        let count = (APART / cutter.average).clamp(16, 1024);
        borders.tails = [1.0, STRICT].map(|share| borders.find_tails(generator, count, share));
        Ok(borders)
    }

    /// So many tails, of which such a share ends chunks of any size, half as many also chunks of a chunker of chunks twice as large,
    /// half of these chunks four times as large, and so on.
    fn find_tails(&self, generator: &Generator, count: usize, share: f64) -> Vec<u8> {
        let length = self.tail();
        let larger = (1..=LEVELS).map(|level| self.cutter.average << level).filter(|size| *size <= LARGEST);
        let larger = larger.map(|average| select_masks(average, Normalization::Level1).0);
        let masks: Vec<_> = [self.strict | self.loose].into_iter().chain(larger).collect();
        let wanted: Vec<_> = (0..masks.len() as i32).map(|level| share * 0.5f64.powi(level)).collect();
        let (mut there, mut tails) = (vec![0.0; masks.len()], Vec::with_capacity(count));
        for i in 1..=count {
            let tried = (0..CHOICE).map(|choice| {
                let mut tail = vec![0; length];
                generator.fill_from(Id(u128::MAX), (i * CHOICE + choice) * length, &mut tail);
                // Half of those that may be the end of large chunks only are.
                let mask = if share < 1.0 && choice % 2 == 0 { self.loose } else { masks[0] };
                while !self.close(&mut tail, 0, mask) {
                    tail[0] = tail[0].wrapping_add(1);
                }
                let hash = self.hash_of(&[&tail[..], &[FIRST]].concat());
                let ends: Vec<_> =
                    masks.iter().map(|mask| if hash & mask == 0 { 1.0 } else { 0.0 }).collect();
                let off = |(level, ends): (usize, &f64)| {
                    let due = wanted[level] * i as f64;
                    (there[level] + ends - due).powi(2) / (due + 1.0)
                };
                (ends.iter().enumerate().map(off).sum::<f64>(), tail, ends)
            });
            if let Some((_, tail, ends)) = tried.min_by(|one, other| one.0.total_cmp(&other.0)) {
                there.iter_mut().zip(ends).for_each(|(there, ends)| *there += ends);
                tails.push(tail);
            }
        }
        // In an order of chance (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2P).
        let mut drawn = vec![0; 4 * count];
        generator.fill(Id(u128::MAX - 1), &mut drawn);
        for (i, drawn) in (1..count).rev().zip(drawn.as_chunks::<4>().0) {
            let drawn = u64::from(u32::from_le_bytes(*drawn));
            tails.swap(i, ((drawn * (i as u64 + 1)) >> 32) as usize);
        }
        tails.concat()
    }

    /// As [`Cutter::least_inner`].
    pub fn least(&self) -> usize {
        self.cutter.least_inner()
    }

    /// Bytes at the end of a chunk that tails take.
    pub fn tail(&self) -> usize {
        self.window - 1
    }

    /// A byte that may be repeated any number of times: the first after which, however many there are, no hash says cut.
    pub fn plain(&self) -> u8 {
        self.plain
    }

    /// Where what a chunk of so many bytes repeats has to end: before a tail, where it needs one.
    pub fn end_of_plain(&self, length: usize) -> usize {
        if length > self.cutter.min && length != self.cutter.max {
            length - self.tail().min(length)
        } else {
            length
        }
    }

    /// Changes bytes at which there would be a cut, and ends a chunk as one of so many bytes ends that has this number.
    pub fn apply(&self, (id, like): (u32, usize), chunk: &mut [u8]) {
        let Cutter { min, max, .. } = self.cutter;
        let (length, tail) = (chunk.len(), self.tail());
        if length <= min || length > max {
            return;
        }
        let inner = length != max && length >= min + self.window;
        // The hash begins at the smallest size, so that the first windows are not whole.
        let end = if inner { length - tail } else { length };
        self.clear(chunk, end);
        if length != max && !inner {
            self.close(&mut chunk[min..], 0, self.strict | self.loose);
        } else if inner {
            let tails = &self.tails[usize::from(like >= self.cutter.average)];
            for attempt in 0..tails.len() / tail {
                let at = (id as usize * tail + attempt * tail) % tails.len();
                chunk[length - tail..].copy_from_slice(&tails[at..at + tail]);
                // What ends a large chunk need not end a small one.
                let is_end = self.step(self.hash(chunk, length - 1), FIRST) & self.mask(length) == 0;
                if is_end && self.first_cut(chunk, length - tail, length).is_none() {
                    break;
                }
            }
        }
    }

    /// Changes the last three bytes until there is a cut behind them by a mask, and none before by any; false where none do.
    fn close(&self, bytes: &mut [u8], from: usize, mask: u64) -> bool {
        let free = bytes.len().min(3);
        let (head, last) = bytes.split_at_mut(bytes.len() - free);
        let before = head[from..].iter().fold(0, |hash, byte| self.step(hash, *byte));
        let start = last.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte));
        let count = 1u32 << (8 * free);
        let mut tried = 0;
        while tried < count {
            let drawn = start.wrapping_add(tried).to_be_bytes();
            let [upper @ .., first] = drawn;
            let (mut hash, mut cut) = (before, false);
            for byte in &upper[4 - free..] {
                hash = self.step(hash, *byte);
                cut |= self.says_cut(hash);
            }
            let does = |byte: u8| {
                let hash = self.step(hash, byte);
                self.step(hash, FIRST) & mask == 0 && !self.says_cut(hash)
            };
            // What is left to be tried of these 256: the lowest byte with which all that counts is zero.
            let bytes = first..=first.saturating_add((count - tried - 1).min(255) as u8);
            let found = self.ends(hash, mask).filter(|byte| bytes.contains(byte) && does(*byte)).min();
            if !cut && let Some(byte) = found {
                last[..free - 1].copy_from_slice(&upper[4 - free..]);
                last[free - 1] = byte;
                return true;
            }
            tried += 256 - u32::from(first);
        }
        false
    }

    /// Bytes that come into question for a cut behind them, after a hash: with [`FIRST`] its uppermost bits that count are
    /// zero, as they are in some parts of its circle.
    fn ends(&self, hash: u64, mask: u64) -> impl Iterator<Item = u8> {
        let part = self.window as u32 - PARTS;
        let circle = 1u64 << self.window;
        let counts = mask >> part;
        (0..1u64 << PARTS).filter(move |at| at & counts == 0).flat_map(move |at| {
            let from = (at << part).wrapping_sub(hash << 2) & (circle - 1);
            self.added.between(from, from + (1 << part)).iter().map(|(_, byte)| *byte)
        })
    }

    #[inline]
    fn step(&self, hash: u64, byte: u8) -> u64 {
        (hash << 1).wrapping_add(self.gear[usize::from(byte)])
    }

    /// Whether there may be a cut, before or after the average size.
    fn says_cut(&self, hash: u64) -> bool {
        hash & self.loose == 0 || hash & self.strict == 0
    }

    fn mask(&self, at: usize) -> u64 {
        if at < self.cutter.average { self.strict } else { self.loose }
    }

    /// The hash at a byte, which it takes in.
    fn hash(&self, chunk: &[u8], at: usize) -> u64 {
        let from = (at + 1).saturating_sub(self.window).max(self.cutter.min);
        self.hash_of(&chunk[from..=at])
    }

    /// The first cut from one byte to before another.
    fn first_cut(&self, chunk: &[u8], from: usize, to: usize) -> Option<usize> {
        let mut hash = if from > self.cutter.min { self.hash(chunk, from - 1) } else { 0 };
        (from..to).find(|at| {
            hash = self.step(hash, chunk[*at]);
            hash & self.mask(*at) == 0
        })
    }

    /// Changes bytes before `end` at which there would be a cut.
    fn clear(&self, chunk: &mut [u8], end: usize) {
        let (mut at, mut hash) = (self.cutter.min, 0u64);
        while at < end {
            let mask = self.mask(at);
            let until = if at < self.cutter.average { end.min(self.cutter.average) } else { end };
            // What some bytes add does not wait for the hash before, so it is found meanwhile.
            if let Some(group) = chunk[at..until].first_chunk::<GROUP>() {
                let (mut added, mut free) = (0, true);
                for (i, byte) in group.iter().enumerate() {
                    added = self.step(added, *byte);
                    free &= (hash << (i + 1)).wrapping_add(added) & mask != 0;
                }
                if free {
                    (hash, at) = ((hash << GROUP).wrapping_add(added), at + GROUP);
                    continue;
                }
            }
            let before = hash;
            hash = self.step(before, chunk[at]);
            while hash & mask == 0 {
                chunk[at] = chunk[at].wrapping_add(1);
                hash = self.step(before, chunk[at]);
            }
            at += 1;
        }
    }

    /// The hash of bytes before which there is none.
    fn hash_of(&self, bytes: &[u8]) -> u64 {
        let (groups, rest) = bytes.as_chunks::<GROUP>();
        let added = |group: &[u8; GROUP]| group.iter().fold(0, |hash, byte| self.step(hash, *byte));
        let hash = groups.iter().fold(0u64, |hash, group| (hash << GROUP).wrapping_add(added(group)));
        rest.iter().fold(hash, |hash, byte| self.step(hash, *byte))
    }
}

/// What bytes add to a hash, ascending, twice around the circle, so that any stretch of it is in one piece.
#[derive(Clone)]
struct Values {
    sorted: Vec<(u64, u8)>,
    /// How many are below each of equal parts of both rounds.
    below: Vec<u16>,
    /// Of the size of a part, binary logarithm.
    part: u32,
}

impl Values {
    /// `added` has what each byte adds; a hash is less than `circle`, a power of two.
    fn new(added: impl Iterator<Item = u64>, circle: u64) -> Values {
        let mut sorted: Vec<(u64, u8)> = added.map(|value| value & (circle - 1)).zip(0..=u8::MAX).collect();
        sorted.sort_unstable();
        let count = sorted.len();
        sorted.extend_from_within(..);
        sorted[count..].iter_mut().for_each(|(value, _)| *value += circle);
        let part = circle.ilog2().saturating_sub(9);
        let less = |number: u64| sorted.partition_point(|(value, _)| *value < number) as u16;
        let below = (0..=2 << 9.min(circle.ilog2())).map(|i: u64| less(i << part)).collect();
        Values { below, sorted, part }
    }

    /// How many are below a number.
    fn rank(&self, number: u64) -> usize {
        let first = usize::from(self.below[(number >> self.part) as usize]);
        first + self.sorted[first..].iter().take_while(|(value, _)| *value < number).count()
    }

    /// Those from one number to before another, which are less than twice the circle, and the bytes.
    fn between(&self, from: u64, to: u64) -> &[(u64, u8)] {
        &self.sorted[self.rank(from)..self.rank(to)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunkers_of_larger_chunks_cut_at_as_many_ends_as_in_random_bytes() {
        for (seed, average) in [(1, 1 << 10), (2, 8 << 10), (3, 8 << 10), (4, 64 << 10)] {
            let cutter = Cutter { min: average / 4, average, max: average * 8 };
            let borders = Borders::new(cutter, &Generator::new(seed)).unwrap();
            let ends = |tails: &[u8], level: usize| {
                let (mask, _) = select_masks(average << level, Normalization::Level1);
                let tails = tails.chunks_exact(borders.tail());
                let all = tails.len() as f64;
                let is_end = |tail: &&[u8]| borders.hash_of(&[*tail, &[FIRST]].concat()) & mask == 0;
                tails.filter(is_end).count() as f64 / all
            };
            for (tails, share) in borders.tails.iter().zip([1.0, 0.25]) {
                for level in 0..4 {
                    let (found, natural) = (ends(tails, level), share / f64::from(1u32 << level));
                    assert!((found / natural - 1.0).abs() < 0.1, "{average} {level}: {found} for {natural}");
                }
            }
        }
    }
}
