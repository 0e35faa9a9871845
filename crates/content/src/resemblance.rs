//! What neighbouring chunks have in common, though they are not alike.
//!
//! A codec that gets more than one chunk finds strings of one in the next: of texts and programs it then makes less than of the
//! chunks one by one. So some of the random bytes of a compressible chunk come from a pool that it shares: with
//! chunks beside it, or with every sixteenth of a larger stretch, which only codecs that look that far back find. Bytes
//! are taken in stretches of [`STRETCH`], each from the same place of the pool by all of them, so the more they are, the less
//! each costs; and they lie apart, so that chunkers find nothing that is alike.

use crate::generator::{Generator, Id};
use crate::texture::Texture;

/// Bytes of a stretch.
const STRETCH: usize = 192;
/// Bytes of a pool for a run of literals; longer runs are a chunk's own.
pub(crate) const SLOT: usize = 256;
/// Bytes of neighbours that are near, and of a piece in which a codec finds them.
const NEAR: usize = 128 << 10;
/// How many times further others are.
const FURTHER: u32 = 8;
/// Of what such chunks have in common codecs save so much, near and far: each stretch costs a reference, references of the chunk itself
/// cut some into two. Measured with zstd 1.5.7 at levels 1 and 3, ratios of 2 to 4.
const SAVED: [f64; 2] = [0.735, 0.62];
/// Near ones are found in larger pieces by so much more: fewer groups are cut apart.
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
pub(crate) struct Resemblance {
    /// Share of stretches that neighbours have in common.
    near: f64,
    /// And those further away.
    far: f64,
    /// Chunks that are near each other.
    group: u32,
    /// What was asked: how much less codecs make of pieces.
    asked: [f64; 2],
}

impl Resemblance {
    /// For chunks of `average` bytes of which codecs make so much less in pieces of 128 KiB, and of 1 MiB, than one by one,
    /// the first of each left out (shares, 0 to 1); nothing where there is nothing to share.
    pub fn of(average: usize, near: f64, far: f64) -> Option<Resemblance> {
        let (group, asked) = ((NEAR / average).max(1) as u32, [near, far]);
        let far_share = (far - (near * FURTHER_ON).max(HEADS)).max(0.0) / (all_but_one(FURTHER) * SAVED[1]);
        let near_share = match group {
            1 => 0.0,
            _ => (near - HEADS) / (all_but_one(group) * SAVED[0]),
        };
        let (near, far) = (near_share.clamp(0.0, MOST), far_share.clamp(0.0, MOST));
        let far = far.min(MOST - near);
        (near + far > 0.0).then_some(Resemblance { near, far, group, asked })
    }

    /// Of a chunk whose random bytes are so small a share of what codecs make of it: the more of them, nested in those of others
    /// with a larger share, so that as much is saved of it.
    pub fn of_chunk(self, random: f64) -> Resemblance {
        let (near, far) = (self.near / random, self.far / random);
        let most = (MOST / (near + far)).min(1.0);
        Resemblance { near: near * most, far: far * most, ..self }
    }

    /// Of a chunk that has matches and literals: shares of its runs of literals.
    pub fn of_texture(self, texture: &Texture) -> Resemblance {
        let [near, far] = self.asked;
        let far = texture.common((far - near * FURTHER_ON).max(0.0)) / all_but_one(FURTHER);
        let near = if self.group == 1 { 0.0 } else { texture.common(near) };
        let near = near.min(MOST);
        Resemblance { near, far: far.min(MOST - near), ..self }
    }

    /// The share that is in common with others.
    pub fn share(self) -> f64 {
        self.near + self.far
    }

    /// Where the run of literals comes from that is the `nth` of a chunk, if it has it in common with others.
    pub fn run(self, number: u32, pass: u64, nth: usize) -> Option<Pool> {
        self.pool(number, pass, nth).map(|id| Pool { id, place: nth * SLOT })
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
        (before / STRETCH..end.div_ceil(STRETCH)).filter_map(move |stretch| {
            let id = self.pool(number, pass, stretch)?;
            let (from, to) = ((stretch * STRETCH).max(before), ((stretch + 1) * STRETCH).min(end));
            Some((from - before..to - before, Pool { id, place: from }))
        })
    }

    /// The pool that the `nth` stretch of a chunk comes from, if it is in common with others.
    fn pool(self, number: u32, pass: u64, nth: usize) -> Option<Id> {
        let whole = number / (self.group * FURTHER);
        // The same stretches of all that resemble each other, others further on: so few as a chunk has are no exact share of it.
        let first = f64::from(whole) * STEP * STEP;
        let drawn = (first + nth as f64 * STEP).fract();
        let (kind, of) = if nth == 0 {
            return None;
        } else if drawn < self.near {
            (1 << 127, number / self.group)
        } else if drawn >= 1.0 - self.far {
            (3 << 126, whole * self.group + number % self.group)
        } else {
            return None;
        };
        Some(Id(kind | u128::from(pass) << 32 | u128::from(of)))
    }
}

/// Of a group in one piece all but the first save.
fn all_but_one(group: u32) -> f64 {
    f64::from(group - 1) / f64::from(group)
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
