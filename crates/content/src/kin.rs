//! What neighbouring chunks have in common, though they are not alike.
//!
//! A codec that gets more than one chunk finds strings of one in the next: of texts and programs it then makes less than of the
//! chunks one by one. So some of the random bytes of a compressible chunk come from a pool that it shares with its kin: with
//! chunks beside it, or with every sixteenth of a larger stretch, which only codecs that look that far back find. Bytes
//! are taken in stretches of [`STRETCH`], each from the same place of the pool by all of its kin, so the more kin, the less
//! each costs; and they lie apart, so that chunkers find nothing that is alike.

use crate::generator::{Generator, Id};

/// Bytes of a stretch: a piece of the streams has a whole number of them.
const STRETCH: usize = 192;
/// Bytes of neighbours that are near, and of a piece in which a codec finds them.
const NEAR: usize = 128 << 10;
/// How many times further others are.
const FURTHER: u32 = 8;
/// Of what kin have in common codecs save so much, near and far: each stretch costs a reference, references of the chunk itself
/// cut some into two. Measured with zstd 1.5.7 at levels 1 and 3, ratios of 2 to 4.
const SAVED: [f64; 2] = [0.735, 0.62];
/// Near kin are found in larger pieces by so much more: fewer groups are cut apart.
const FURTHER_ON: f64 = 1.09;
/// What they save of any chunks that they get together: heads of frames.
const HEADS: f64 = 0.012;
/// Most of the random bytes that are shared: some are a chunk's own.
const MOST: f64 = 0.9;
/// Fractions of its multiples lie evenly however many there are: the golden ratio (Knuth, The Art of Computer Programming,
/// volume 3, section 6.4, theorem S).
const STEP: f64 = 0.618_033_988_749_895;

/// Which random bytes chunks share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Kin {
    /// Share of stretches that neighbours have in common.
    near: f64,
    /// And those further away.
    far: f64,
    /// Chunks that are near each other.
    group: u32,
}

impl Kin {
    /// For chunks of `average` bytes of which codecs make so much less in pieces of 128 KiB, and of 1 MiB, than one by one,
    /// the first of each left out (shares, 0 to 1); nothing where there is nothing to share.
    pub fn of(average: usize, near: f64, far: f64) -> Option<Kin> {
        let group = (NEAR / average).max(1) as u32;
        // Of a group in one piece all but the first save.
        let all_but_one = |group: u32| f64::from(group - 1) / f64::from(group);
        let far_share = (far - (near * FURTHER_ON).max(HEADS)).max(0.0) / (all_but_one(FURTHER) * SAVED[1]);
        let near_share = match group {
            1 => 0.0,
            _ => (near - HEADS) / (all_but_one(group) * SAVED[0]),
        };
        let (near, far) = (near_share.clamp(0.0, MOST), far_share.clamp(0.0, MOST));
        let far = far.min(MOST - near);
        (near + far > 0.0).then_some(Kin { near, far, group })
    }

    /// Of a chunk whose random bytes are so small a share of what codecs make of it: the more of them, nested in those of its
    /// kin with a larger share, so that as much is saved of it.
    pub fn of_chunk(self, random: f64) -> Kin {
        let (near, far) = (self.near / random, self.far / random);
        let most = (MOST / (near + far)).min(1.0);
        Kin { near: near * most, far: far * most, ..self }
    }

    /// For each stretch in common among random bytes, of which `before` are before them: where it is in them, and the pool and
    /// the place in it that it comes from.
    pub fn shared(
        self,
        number: u32,
        pass: u64,
        before: usize,
        count: usize,
    ) -> impl Iterator<Item = (std::ops::Range<usize>, Pool)> {
        let end = before + count;
        let whole = number / (self.group * FURTHER);
        // The same stretches of all kin, others further on: so few as a chunk has are no exact share of it.
        let first = f64::from(whole) * STEP * STEP;
        (before / STRETCH..end.div_ceil(STRETCH)).filter_map(move |stretch| {
            let drawn = (first + stretch as f64 * STEP).fract();
            let kin = if stretch == 0 {
                return None;
            } else if drawn < self.near {
                (1 << 127, u128::from(number / self.group))
            } else if drawn >= 1.0 - self.far {
                (3 << 126, u128::from(whole * self.group + number % self.group))
            } else {
                return None;
            };
            let (from, to) = ((stretch * STRETCH).max(before), ((stretch + 1) * STRETCH).min(end));
            let id = Id(kin.0 | u128::from(pass) << 32 | kin.1);
            Some((from - before..to - before, Pool { id, place: from }))
        })
    }
}

/// Where bytes in common come from.
pub(crate) struct Pool {
    /// Of the pool.
    pub id: Id,
    /// Byte of it.
    pub place: usize,
}

impl Pool {
    /// Its bytes, where a chunker does not matter.
    pub fn fill(&self, generator: &Generator, bytes: &mut [u8]) {
        generator.fill_from(self.id, self.place, bytes);
    }
}
