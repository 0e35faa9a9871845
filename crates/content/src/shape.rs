//! Compressible blocks: random bytes and references back to earlier ones, in turns over the whole block.
//!
//! A block that is random up to a point and zeros beyond it has a ratio, too, but no store sees such data, and some need
//! no codec to save it. Here every stretch of a block is as compressible as the next. A codec stores random bytes as they are
//! and a reference in some bytes of its own kind, so the lengths of both give the ratio. What a reference costs differs
//! among codecs (lz4: 3 bytes and one more for each 255 of a length; DEFLATE, RFC 1951: about as much, but again for each 258
//! bytes; Zstandard, RFC 8878: about 4). So there are few and long ones, and the lengths are such that
//! lz4, Zstandard at level 1 and zlib at level 6 lie around the ratio.
//!
//! In texts and programs repetitions are short: of the windows of 64 bytes in JavaScript that compresses 4.7 times nine of ten
//! are new, and by those chunkers cut. So references of chunks, which chunkers are to meet, are several strings in a row from
//! different places; with one string each, three of ten windows are new, and Rabin's fingerprints say cut as much more rarely.

use crate::{Error, LEAST_UNIT, MOST_UNIT, Result};
use std::ops::Range;

/// Highest ratio. Beyond it codecs disagree by more than they can be asked to agree.
pub const MOST_RATIO: f64 = 10.0;
/// Lowest ratio that is not 1: below it fast codecs find nothing.
const LEAST_RATIO: f64 = 1.05;

/// Mean length of a run of random bytes; with longer ones fast codecs begin to skip positions and miss references.
const RUN: f64 = 192.0;
/// References of a block, at least: short runs where few bytes are left over.
const TURNS: f64 = 15.0;
/// How far back references lead at most, bytes: within the tables of all codecs at their fastest levels.
const REACH: usize = 4 << 10;
/// Lengths lie around their means by this share of them.
const SPREAD: f64 = 0.8;
/// Bytes of a string of a chunk, at least.
const STRING: f64 = 96.0;
/// Beyond this ratio they are longer by the square of the ratio: codecs disagree on what strings cost.
const LONGER: f64 = 4.8;
/// What a further string of a reference costs, bytes.
const MORE: f64 = 3.5;
/// Runs of random bytes that strings come from: the last ones.
const SOURCES: usize = 8;
/// Of 64 bits, near the golden ratio: what is multiplied by it differs in its upper bits.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Smallest chunk that can be made compressible, bytes.
const LEAST_CHUNK: usize = 64;
/// Random bytes of a chunk, at least.
const LEAST_RANDOM: f64 = 16.0;
/// Rounds after which lengths and costs of references fit each other.
const ROUNDS: usize = 8;
/// What codecs write for each block besides, bytes.
const HEAD: f64 = 20.0;
/// What a reference costs, bytes, by its mean length in bytes; halfway between the cheapest codec and the dearest.
/// Measured with lz4 1.10.0, zstd 1.5.7 and zlib 1.3.1 on 4 KiB to 128 KiB.
const COST: [(f64, f64); 13] = [
    (8.0, 4.8),
    (17.0, 5.4),
    (26.0, 5.9),
    (46.0, 6.4),
    (106.0, 6.5),
    (157.0, 6.7),
    (207.0, 7.2),
    (308.0, 8.4),
    (410.0, 9.1),
    (610.0, 10.3),
    (1010.0, 12.2),
    (1410.0, 14.0),
    (1800.0, 16.2),
];

/// Where random bytes and references alternate in blocks of one size and ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    size: usize,
    /// References of a block.
    turns: usize,
    /// Random bytes of a block; the rest refers to them.
    random: usize,
    /// Strings that references are made of: one each, or several, one after the other.
    strings: usize,
    /// How far back references lead at most, bytes.
    reach: usize,
}

impl Shape {
    /// For blocks of `size` bytes that codecs make `ratio` times smaller; nothing for a ratio of 1.
    ///
    /// # Errors
    /// For a ratio or a size that cannot be had.
    pub fn new(ratio: f64, size: usize) -> Result<Option<Shape>> {
        if !(LEAST_UNIT..=MOST_UNIT).contains(&size) || !size.is_multiple_of(LEAST_UNIT) {
            let what = format!(
                "blocks of {size} bytes: use a multiple of {LEAST_UNIT} from {LEAST_UNIT} to {MOST_UNIT}"
            );
            return Err(Error::Option(what));
        }
        if ratio == 1.0 {
            return Ok(None);
        }
        if !(LEAST_RATIO..=MOST_RATIO).contains(&ratio) {
            let what = format!(
                "a compression ratio of {ratio}: use 1 (incompressible) or {LEAST_RATIO} to {MOST_RATIO}"
            );
            return Err(Error::Option(what));
        }
        Ok(Some(Shape::fitted(size as f64 / ratio, size, f64::INFINITY)))
    }

    /// For a chunk of any size that codecs make `compressed` bytes of, as near as it can be; nothing where nothing is to be
    /// saved.
    pub(crate) fn of_chunk(compressed: f64, size: usize) -> Option<Shape> {
        (size >= LEAST_CHUNK && compressed * LEAST_RATIO.sqrt() < size as f64).then(|| {
            let compressed = compressed.max(LEAST_RANDOM + HEAD + 8.0);
            let ratio = size as f64 / compressed;
            Shape::fitted(compressed, size, STRING * (ratio / LONGER).max(1.0).powi(2))
        })
    }

    /// With so many references of one string each, which lead back by `reach` bytes at most, and random bytes.
    pub(crate) fn of_matches(size: usize, turns: usize, random: usize, reach: usize) -> Shape {
        Shape { size, turns, random: random.min(size), strings: turns, reach }
    }

    /// With strings of so many bytes.
    fn fitted(compressed: f64, size: usize, string: f64) -> Shape {
        let mut fit = Fit::new(compressed, size, string);
        for _ in 0..ROUNDS {
            let before = fit;
            let exact = fit.again();
            // Costs rise by less than 0.07 for each byte of length, so all further rounds change less than this one did.
            let change = (fit.random - before.random).abs();
            let is_settled = fit.turns == before.turns && change < 0.5 && (exact - fit.turns).abs() < 0.49;
            if is_settled && (fit.random - change) as usize == (fit.random + change) as usize {
                break;
            }
        }
        fit.shape()
    }

    /// Bytes of the blocks it is for.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of a block that stay random.
    pub(crate) fn random(&self) -> usize {
        self.random
    }

    /// Makes a whole block of random bytes compressible. Where references are and lead to is drawn from these bytes.
    pub fn press(&self, bytes: &mut [u8]) {
        self.press_with(bytes, &mut |_, _, _| {});
    }

    /// As [`Shape::press`]. `random` is called with every range that stays random and how many such bytes are before it, before
    /// it is referred to, and may change what is in it.
    pub(crate) fn press_with(
        &self,
        bytes: &mut [u8],
        random: &mut impl FnMut(&mut [u8], Range<usize>, usize),
    ) {
        debug_assert_eq!(bytes.len(), self.size);
        let referred = self.size - self.random;
        let (mut at, mut runs, mut references) = (0, 0, 0);
        let mut sources = [(0, 0); SOURCES];
        for turn in 0..self.turns {
            let Some(draw) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else { return };
            let draw = u64::from_le_bytes(*draw);
            let share = |shift: u32| (draw >> shift & 0xffff) as f64 / 65536.0;
            // Ends of runs and of references lie around equal parts of their sums, so no error adds up.
            let part = |turn: f64, drawn: f64, parts: f64| (turn + 1.0 + (drawn - 0.5) * SPREAD) / parts;
            let (index, turns) = (turn as f64, self.turns as f64);
            let run_end = (self.random as f64 * part(index, share(0), turns + 1.0)) as usize;
            let reference_end = match turn + 1 == self.turns {
                true => referred,
                false => (referred as f64 * part(index, share(16), turns)) as usize,
            };
            random(bytes, at..at + (run_end - runs), runs);
            sources[turn % SOURCES] = (at, run_end - runs);
            at += run_end - runs;
            let (begin, length) = (at, reference_end - references);
            let strings = self.strings * (turn + 1) / self.turns - self.strings * turn / self.turns;
            for string in 0..strings {
                let end = begin + length * (string + 1) / strings;
                let length = end - at;
                let far = at.min(self.reach);
                let near = length.min(far);
                let back = if self.strings == self.turns {
                    near + ((far - near) as f64 * share(32)) as usize
                } else {
                    let draw = (draw ^ string as u64).wrapping_mul(ODD);
                    let below = |end: usize, shift: u32| ((draw >> shift & 0xffff) as usize * end) >> 16;
                    let (from, run) = sources[below(SOURCES.min(turn + 1), 48)];
                    (at - from - below(run, 32)).clamp(near, far)
                };
                refer(bytes, at, back.max(1), length);
                at = end;
            }
            (runs, references) = (run_end, reference_end);
        }
        random(bytes, at..self.size, runs);
    }
}

/// References and random bytes of blocks on the way to a shape.
#[derive(Clone, Copy)]
struct Fit {
    /// What codecs are to make of a block, and its bytes.
    compressed: f64,
    whole: f64,
    /// Mean lengths of runs and of strings.
    run: f64,
    string: f64,
    turns: f64,
    random: f64,
}

impl Fit {
    fn new(compressed: f64, size: usize, string: f64) -> Fit {
        let run = (compressed / TURNS).min(RUN);
        let turns = rounded(compressed / (run + 8.0)).max(1.0);
        Fit { compressed, whole: size as f64, run, string, turns, random: compressed }
    }

    /// The cost of references follows from their length, and that from what they cost. Answers how many references there
    /// should be, of which there is a whole number.
    fn again(&mut self) -> f64 {
        let cost = cost((self.whole - self.random) / self.turns, self.string);
        let exact = (self.compressed - HEAD) / (self.run + cost);
        self.turns = rounded(exact).max(1.0);
        self.random = (self.compressed - HEAD - self.turns * cost).clamp(LEAST_RANDOM, self.whole);
        exact
    }

    fn shape(&self) -> Shape {
        let strings = rounded((self.whole - self.random) / self.string).max(self.turns) as usize;
        let (size, turns, random) = (self.whole as usize, self.turns as usize, self.random as usize);
        Shape { size, turns, random, strings, reach: REACH }
    }
}

/// `length` bytes at `at` become what lies `back` bytes before each of them.
fn refer(bytes: &mut [u8], at: usize, back: usize, length: usize) {
    let end = (at + length).min(bytes.len());
    let (mut to, mut step) = (at, back);
    while to < end && at >= back {
        let piece = step.min(end - to);
        bytes.copy_within(at - back..at - back + piece, to);
        to += piece;
        // What was copied repeats every `back` bytes, so twice as much can be copied next.
        step += piece;
    }
}

/// The nearest whole number of one from 0 to 2^53, as [`f64::round`] has it, which calls a library where the CPU may be any
/// of its kind; nothing above 0 for one below.
fn rounded(number: f64) -> f64 {
    let whole = number as i64 as f64;
    if number - whole >= 0.5 { whole + 1.0 } else { whole }
}

/// What a reference of a mean length costs that is made of strings of so many bytes.
fn cost(length: f64, string: f64) -> f64 {
    let strings = (length / string).max(1.0);
    cost_of_one(length / strings) + (strings - 1.0) * MORE
}

/// What one of a mean length costs, bytes.
fn cost_of_one(length: f64) -> f64 {
    // All at once is faster than a search, of which each step waits for the one before.
    let below: usize = COST.iter().map(|(known, _)| usize::from(*known < length)).sum();
    let above = below.clamp(1, COST.len() - 1);
    let ((x0, y0), (x1, y1)) = (COST[above - 1], COST[above]);
    // Beyond the ends of the table it goes on as between the last two.
    y0 + (length - x0) / (x1 - x0) * (y1 - y0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, Id};
    use proptest::prelude::*;

    /// Bytes of blocks of a size and ratio, by identity.
    fn blocks(ratio: f64, size: usize, ids: impl Iterator<Item = u128>) -> Vec<Vec<u8>> {
        let (generator, shape) = (Generator::new(5), Shape::new(ratio, size).unwrap());
        let make = |id| {
            let mut bytes = vec![0; size];
            generator.fill(Id(id), &mut bytes);
            if let Some(shape) = &shape {
                shape.press(&mut bytes);
            }
            bytes
        };
        ids.map(make).collect()
    }

    /// Ratios that lz4, zstd at level 1 and zlib at level 6 find, block by block.
    fn found(blocks: &[Vec<u8>]) -> [(&'static str, f64); 3] {
        let whole: usize = blocks.iter().map(Vec::len).sum();
        let ratio = |codec: &dyn Fn(&[u8]) -> usize| {
            whole as f64 / blocks.iter().map(|block| codec(block)).sum::<usize>() as f64
        };
        let zlib = |block: &[u8]| {
            let mut codec = flate2::Compress::new(flate2::Compression::new(6), true);
            let mut out = Vec::with_capacity(2 * block.len());
            codec.compress_vec(block, &mut out, flate2::FlushCompress::Finish).unwrap();
            out.len()
        };
        [
            ("lz4", ratio(&|block| lz4::block::compress(block, None, false).unwrap().len())),
            ("zstd", ratio(&|block| zstd::bulk::compress(block, 1).unwrap().len())),
            ("zlib", ratio(&zlib)),
        ]
    }

    #[test]
    fn codecs_find_the_ratio_within_two_percent() {
        let mut far = Vec::new();
        for size in [4096, 8192, 12288, 16384, 32768, 65536, 131_072, 1 << 20] {
            for ratio in [1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.2, 2.5, 3.0, 3.5, 4.0, 5.0] {
                let blocks = blocks(ratio, size, 0..((2 << 20) / size) as u128);
                for (codec, is) in found(&blocks) {
                    if (is / ratio - 1.0).abs() > 0.02 {
                        far.push(format!("{size} {ratio} {codec} {is:.3}"));
                    }
                }
            }
        }
        assert!(far.is_empty(), "{far:#?}");
    }

    #[test]
    fn high_ratios_are_near() {
        let mut far = Vec::new();
        for size in [4096, 8192, 16384, 131_072] {
            for (ratio, off) in [(6.0, 0.03), (8.0, 0.05), (10.0, 0.07)] {
                for (codec, is) in found(&blocks(ratio, size, 0..((2 << 20) / size) as u128)) {
                    if (is / ratio - 1.0).abs() > off {
                        far.push(format!("{size} {ratio} {codec} {is:.3}"));
                    }
                }
            }
        }
        assert!(far.is_empty(), "{far:#?}");
    }

    #[test]
    fn what_has_settled_is_what_all_rounds_come_to() {
        for size in (64..3000).chain((3000..1 << 20).step_by(997)) {
            for ratio in [1.03, 1.1, 1.5, 2.0, 2.57, 3.3, 4.9, 8.0, 30.0] {
                let compressed = (size as f64 / ratio).max(LEAST_RANDOM + HEAD + 8.0);
                for string in [f64::INFINITY, STRING, 300.0] {
                    let mut fit = Fit::new(compressed, size, string);
                    for _ in 0..ROUNDS {
                        fit.again();
                    }
                    assert_eq!(
                        Shape::fitted(compressed, size, string),
                        fit.shape(),
                        "{size} {ratio} {string}"
                    );
                }
            }
        }
    }

    #[test]
    fn random_blocks_do_not_compress() {
        for (codec, is) in found(&blocks(1.0, 65536, 0..16)) {
            assert!((0.99..=1.0).contains(&is), "{codec} {is}");
        }
    }

    #[test]
    fn every_stretch_of_a_block_compresses_alike() {
        let blocks = blocks(2.0, 131_072, 0..16);
        for part in 0..8 {
            let parts: Vec<_> =
                blocks.iter().map(|block| block[part << 14..(part + 1) << 14].to_vec()).collect();
            // Cut out of a block, references into what was before are lost: at most REACH of 16 KiB.
            let (_, zstd) = found(&parts)[1];
            assert!((1.6..2.1).contains(&zstd), "part {part}: {zstd}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let say = |ratio, size| Shape::new(ratio, size).unwrap_err().to_string();
        assert!(say(0.5, 4096).contains("ratio of 0.5"));
        assert!(say(11.0, 4096).contains("1.05 to 10"));
        assert!(say(f64::NAN, 4096).contains("NaN"));
        assert!(say(2.0, 5000).contains("5000 bytes"));
        assert!(Shape::new(1.0, 4096).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn any_ratio_of_any_block_is_near(ratio in 1.05f64..5.0, pages in 1usize..=64, first: u64) {
            let size = pages * LEAST_UNIT;
            let ids = (0..).map(|i| u128::from(first) + i).take((512 << 10) / size + 1);
            for (codec, is) in found(&blocks(ratio, size, ids)) {
                prop_assert!((is / ratio - 1.0).abs() < 0.025, "{codec} finds {is} in {size}, asked {ratio}");
            }
        }
    }
}
