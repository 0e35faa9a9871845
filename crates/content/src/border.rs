//! Where FastCDC cuts, kept to the ends of chunks.
//!
//! FastCDC (Xia et al., USENIX ATC 2016; the version of 2020) cuts before the byte at which the masked bits of its Gear
//! hash are all zero. The hash takes in one bit more of every byte it has passed, so only the last 48 bytes count, that of the
//! next chunk's first byte among them. So every chunk begins with one and the same byte and ends with one of some
//! thousand tails after which, with that byte, there is a cut; and wherever else a cut would be, a byte is changed.

use crate::generator::{Generator, Id};
use crate::{Error, Result};
use fastcdc::v2020::{Normalization, get_gear_with_seed, select_masks};

/// What every chunk begins with.
const FIRST: u8 = 0x4c;
/// Tails there are; one comes again after 8 MiB of chunks of 8 KiB, beyond what most codecs remember.
const TAILS: usize = 1024;
/// Stretches that are hashed at once, as each step of one waits for the step before.
const LANES: usize = 4;
/// Length over which lanes pay.
const LONG: usize = 1 << 10;

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
    /// `TAILS` of one byte less than a window.
    tails: Vec<u8>,
}

impl Borders {
    /// For a cutter; tails are drawn from `generator`.
    pub fn new(cutter: Cutter, generator: &Generator) -> Result<Borders> {
        let (table, _) = get_gear_with_seed(0);
        let mut gear = [0; 256];
        gear.copy_from_slice(&table);
        let (strict, loose) = select_masks(cutter.average, Normalization::Level1);
        let window = 64 - (strict | loose).leading_zeros() as usize;
        if strict & loose != loose || cutter.min < 2 * window {
            return Err(Error::Option(format!(
                "FastCDC of {} bytes on average: use 1 KiB or more",
                cutter.average
            )));
        }
        let mut borders = Borders { cutter, gear, strict, loose, window, tails: Vec::new() };
        let mut tails = vec![0; TAILS * (window - 1)];
        generator.fill(Id(u128::MAX), &mut tails);
        for tail in tails.chunks_exact_mut(window - 1) {
            while !borders.close(tail, 0) {
                tail[0] = tail[0].wrapping_add(1);
            }
        }
        borders.tails = tails;
        Ok(borders)
    }

    /// As [`Cutter::least_inner`].
    pub fn least(&self) -> usize {
        self.cutter.least_inner()
    }

    /// Bytes at the end of a chunk that tails take.
    pub fn tail(&self) -> usize {
        self.window - 1
    }

    /// Makes a chunk of its content.
    pub fn apply(&self, id: u32, chunk: &mut [u8]) {
        let Cutter { min, max, .. } = self.cutter;
        let length = chunk.len();
        if let Some(first) = chunk.first_mut() {
            *first = FIRST;
        }
        if length <= min || length > max {
            return;
        }
        let tail = self.tail();
        if length == max {
            self.clear(chunk, min, length);
        } else if length < min + self.window {
            // The hash begins at the smallest size: here it has not taken in a whole tail yet.
            self.clear(chunk, min, length);
            self.close(&mut chunk[min..], 0);
        } else {
            self.clear(chunk, min, length - tail);
            for attempt in 0..TAILS {
                let at = (id as usize + attempt) % TAILS * tail;
                chunk[length - tail..].copy_from_slice(&self.tails[at..at + tail]);
                if self.first_cut(chunk, length - tail, length).is_none() {
                    break;
                }
            }
        }
    }

    /// Changes the last three bytes until there is a cut behind them, and none before; false where none do.
    fn close(&self, bytes: &mut [u8], from: usize) -> bool {
        let free = bytes.len().min(3);
        let (head, last) = bytes.split_at_mut(bytes.len() - free);
        let before = head[from..].iter().fold(0, |hash, byte| self.step(hash, *byte));
        let start = last.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte));
        for tried in 0..1u32 << (8 * free) {
            let drawn = start.wrapping_add(tried).to_be_bytes();
            let drawn = &drawn[4 - free..];
            let (mut hash, mut cut) = (before, false);
            for byte in drawn {
                hash = self.step(hash, *byte);
                cut |= hash & self.strict == 0;
            }
            if !cut && self.step(hash, FIRST) & self.strict == 0 {
                last.copy_from_slice(drawn);
                return true;
            }
        }
        false
    }

    fn step(&self, hash: u64, byte: u8) -> u64 {
        (hash << 1).wrapping_add(self.gear[usize::from(byte)])
    }

    fn mask(&self, at: usize) -> u64 {
        if at < self.cutter.average { self.strict } else { self.loose }
    }

    /// The hash at a byte, which it takes in.
    fn hash(&self, chunk: &[u8], at: usize) -> u64 {
        let from = (at + 1).saturating_sub(self.window).max(self.cutter.min);
        chunk[from..=at].iter().fold(0, |hash, byte| self.step(hash, *byte))
    }

    /// The first cut from one byte to before another.
    fn first_cut(&self, chunk: &[u8], from: usize, to: usize) -> Option<usize> {
        let mut hash = if from > self.cutter.min { self.hash(chunk, from - 1) } else { 0 };
        (from..to).find(|at| {
            hash = self.step(hash, chunk[*at]);
            hash & self.mask(*at) == 0
        })
    }

    /// Changes bytes until there is no cut from one of them to before another.
    fn clear(&self, chunk: &mut [u8], from: usize, to: usize) {
        let middle = self.cutter.average.clamp(from, to);
        let mut cuts = Vec::new();
        for (from, to, mask) in [(from, middle, self.strict), (middle, to, self.loose)] {
            self.cuts(chunk, from, to, mask, &mut cuts);
        }
        let mut clean = from;
        for cut in cuts {
            let mut next = Some(cut.max(clean));
            // A change moves the hashes of the bytes behind it.
            while let Some(at) = next.filter(|at| *at < to) {
                let hash = self.hash(chunk, at);
                if hash & self.mask(at) == 0 {
                    let before = hash.wrapping_sub(self.gear[usize::from(chunk[at])]);
                    while before.wrapping_add(self.gear[usize::from(chunk[at])]) & self.mask(at) == 0 {
                        chunk[at] = chunk[at].wrapping_add(1);
                    }
                    clean = (at + self.window).min(to);
                }
                next = self.first_cut(chunk, (at + 1).min(clean), clean);
            }
        }
    }

    /// Collects, in order, all bytes at which the hash has no bit of the mask.
    fn cuts(&self, chunk: &[u8], from: usize, to: usize, mask: u64, cuts: &mut Vec<usize>) {
        let mut rest = from;
        if to - from >= LONG {
            let length = (to - from) / LANES;
            let lane = |i: usize| &chunk[from + i * length..][..length];
            let mut hashes = [0; LANES];
            for (i, hash) in hashes.iter_mut().enumerate() {
                let begin = from + i * length;
                *hash = if begin > self.cutter.min { self.hash(chunk, begin - 1) } else { 0 };
            }
            let first = cuts.len();
            let together = lane(0).iter().zip(lane(1)).zip(lane(2)).zip(lane(3));
            for (at, (((a, b), c), d)) in together.enumerate() {
                for (i, byte) in [a, b, c, d].into_iter().enumerate() {
                    hashes[i] = self.step(hashes[i], *byte);
                    if hashes[i] & mask == 0 {
                        cuts.push(from + i * length + at);
                    }
                }
            }
            cuts[first..].sort_unstable();
            rest = from + LANES * length;
        }
        let mut hash = if rest > self.cutter.min { self.hash(chunk, rest - 1) } else { 0 };
        for (at, byte) in chunk[rest..to].iter().enumerate() {
            hash = self.step(hash, *byte);
            if hash & mask == 0 {
                cuts.push(rest + at);
            }
        }
    }
}
