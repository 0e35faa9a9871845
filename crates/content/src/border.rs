//! Where FastCDC cuts, kept to the ends of chunks.
//!
//! FastCDC (Xia et al., USENIX ATC 2016; the version of 2020) cuts before the byte at which the masked bits of its Gear
//! hash are all zero. The hash takes in one bit more of every byte it has passed, so only the last 48 bytes count, that of the
//! next chunk's first byte among them. So every chunk begins with one and the same byte and ends with one of some
//! thousand tails after which, with that byte, there is a cut. In between, bytes come from [`Streams`], where there is none;
//! where two pieces of them meet, the 48 bytes are hashed, and wherever a cut would be one is changed.

use crate::generator::{Generator, Id};
use crate::resemblance::Pool;
use crate::streams::{PIECE, Streams, Values};
use crate::wide::{self, HALF, Wide};
use crate::{Error, Result};
use fastcdc::v2020::{Normalization, get_gear_with_seed, select_masks};
use std::ops::Range;

/// What every chunk begins with.
pub(crate) const FIRST: u8 = 0x4c;
/// Bytes of chunks after which a tail comes again, beyond what most codecs remember.
const APART: usize = 8 << 20;
/// Bytes that are hashed together.
const GROUP: usize = 8;
/// Chunkers of larger chunks that ends are chosen for, each of chunks twice as large as the one before. Their masks have what this
/// one's have and more bits, so they cut what is made at some ends of its chunks and nowhere else, where they would cut random
/// bytes inside of chunks, too: more ends have to be such than by chance.
const LEVELS: u32 = 8;
/// Of ends of chunks larger than the average, of which less is asked, those that smaller ones could have, too: of all ends then
/// five eighths, as many as a chunker of chunks twice as large finds in random bytes.
const STRICT: f64 = 0.42;
/// Tails of which one is taken.
const CHOICE: usize = 4;
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
    /// The same for many windows at once.
    wide: Option<Wide>,
    strict: u64,
    loose: u64,
    /// What both masks have.
    common: u64,
    /// Bytes that a hash takes in.
    window: usize,
    /// What each byte adds together with [`FIRST`] behind it.
    added: Values,
    /// Each of one byte less than a window: of chunks below the average, and of others.
    tails: [Vec<u8>; 2],
    streams: Streams,
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
        let common = strict & loose;
        let streams = Streams::new(&gear, common, generator);
        let added = Values::new(
            gear.iter().map(|added| (added << 1).wrapping_add(gear[usize::from(FIRST)])),
            1 << window,
        );
        let (wide, tails) = (Wide::new(&gear).filter(|_| window <= wide::BITS), Default::default());
        let mut borders =
            Borders { cutter, gear, wide, strict, loose, common, window, added, tails, streams, plain: 0 };
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

    /// Random bytes of the chunk `id` that begin with `stamp`. No hash of a whole window of them says cut.
    pub fn fill(&self, generator: &Generator, id: Id, stamp: &[u8], chunk: &mut [u8]) {
        for (piece, bytes) in chunk.chunks_mut(PIECE).enumerate() {
            self.streams.piece(generator, id, piece as u32).fill(bytes);
        }
        chunk[..stamp.len()].copy_from_slice(stamp);
        for joint in std::iter::once(stamp.len()).chain((PIECE..chunk.len()).step_by(PIECE)) {
            self.settle(chunk, joint..joint + self.window);
        }
    }

    /// Puts what a pool has into a chunk. No hash of a whole window that ends in it, or behind it, says cut.
    pub fn lend(&self, generator: &Generator, pool: &Pool, chunk: &mut [u8], range: Range<usize>) {
        let (piece, first) = (pool.place / PIECE, pool.place % PIECE);
        self.streams.piece(generator, pool.id, piece as u32).from(first).fill(&mut chunk[range.clone()]);
        for joint in [range.start, range.end] {
            self.settle(chunk, joint..joint + self.window);
        }
    }

    /// Bytes that a hash takes in.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Changes bytes until no hash of a whole window that ends in a range says cut, nor one of those that the changes are in.
    pub fn settle(&self, chunk: &mut [u8], range: Range<usize>) {
        self.clear(chunk, 0, range, chunk.len());
    }

    /// Ends a chunk in whose windows there is no cut, as one of so many bytes ends that has this number.
    pub fn apply(&self, (id, like): (u32, usize), chunk: &mut [u8]) {
        let Cutter { min, max, .. } = self.cutter;
        let (length, tail) = (chunk.len(), self.tail());
        if length <= min || length > max {
            return;
        }
        let inner = length != max && length >= min + self.window;
        // The hash begins at the smallest size, so that the first windows are not whole.
        let end = if inner { length - tail } else { length };
        self.clear(chunk, min, min..min + self.window, end);
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
    /// zero, as they are where the hash is in the first part of its circle.
    fn ends(&self, hash: u64, mask: u64) -> impl Iterator<Item = u8> {
        let ones = (mask << (64 - self.window)).leading_ones();
        let circle = 1 << self.window;
        let from = (hash << 2).wrapping_neg() & (circle - 1);
        self.added.between(from, from + (circle >> ones)).iter().map(|(_, byte)| *byte)
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

    /// Changes bytes until there is no cut in a range, nor, where it changed any, in windows that these are in. Hashes begin
    /// at `begin`, and nothing from `end` on is looked at or changed.
    fn clear(&self, chunk: &mut [u8], begin: usize, range: Range<usize>, end: usize) {
        let (mut at, mut to) = (range.start, range.end.min(end));
        if to.saturating_sub(at) <= HALF
            && let Some(wide) = &self.wide
            && let Some(from) = at.checked_sub(HALF).filter(|from| *from >= begin)
            && let Some(bytes) = chunk[from..].first_chunk()
            && wide.have(self.common, bytes)
        {
            return;
        }
        // Bytes before the window count for nothing, and whole groups are hashed faster.
        let first = at.saturating_sub((self.window - 1).next_multiple_of(GROUP)).max(begin);
        let mut hash = chunk.get(first..at).map_or(0, |bytes| self.hash_of(bytes));
        while at < to {
            // What some bytes add does not wait for the hash before, so it is found meanwhile.
            if let Some(group) = chunk[at..to].first_chunk::<GROUP>() {
                let (mut added, mut free) = (0, true);
                for (i, byte) in group.iter().enumerate() {
                    added = self.step(added, *byte);
                    free &= (hash << (i + 1)).wrapping_add(added) & self.common != 0;
                }
                if free {
                    (hash, at) = ((hash << GROUP).wrapping_add(added), at + GROUP);
                    continue;
                }
            }
            let before = hash;
            hash = self.step(before, chunk[at]);
            if self.says_cut(hash) {
                while self.says_cut(hash) {
                    chunk[at] = chunk[at].wrapping_add(1);
                    hash = self.step(before, chunk[at]);
                }
                to = to.max(at + self.window).min(end);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

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
            for level in 0..4 {
                // About a third of all chunks are smaller than the average; those have 1.25 times that many bytes.
                let [small, large] = &borders.tails;
                let found = 0.35 * ends(small, level) + 0.65 * ends(large, level);
                let natural = 1.25 / f64::from(2u32 << level);
                assert!((found / natural - 1.0).abs() < 0.1, "{average} {level}: {found} for {natural}");
            }
        }
    }

    #[test]
    fn windows_looked_at_together_make_no_other_bytes() {
        let generator = Generator::new(1);
        for average in [1 << 10, 8 << 10, 1 << 20] {
            let cutter = Cutter { min: average / 4, average, max: average * 8 };
            let wide = Borders::new(cutter, &generator).unwrap();
            let plain = Borders { wide: None, ..wide.clone() };
            for number in 0..200 {
                let size = cutter.least_inner() + (average + number as usize * 7919) % average;
                let [one, other] = [&wide, &plain].map(|borders| {
                    let mut chunk = vec![0; size];
                    borders.fill(&generator, Id(number), &[FIRST; 5], &mut chunk);
                    if let Some(shape) = Shape::of_chunk(size as f64 / (1.0 + number as f64 / 20.0), size) {
                        let settle = &mut |bytes: &mut [u8], range| borders.settle(bytes, range);
                        shape.press_with(&mut chunk, borders.window(), &mut |_, _, _| {}, settle);
                    }
                    borders.apply((number as u32, size), &mut chunk);
                    chunk
                });
                assert!(one == other, "chunk {number} of {average} on average");
            }
        }
    }
}
