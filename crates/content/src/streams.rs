//! Random bytes in which a Gear hash never says cut, without a look at what was made.
//!
//! Three streams of bytes are drawn once, and a chunk takes a byte of each in turn, each stream from a place of its own. The
//! Gear hash is a sum: that of the chunk is the sum of the hashes of the three streams, in which each byte counts for three,
//! times 1, 2 and 4 in some order. As numbers on a circle of 2^window, those of the streams are kept from h / 7 to 1 / 7 of
//! it, where h is the largest number that has no bit of the mask. So the sum is between h and 1 whatever the places are, it
//! has a bit of the mask, and there is no cut. With more streams some byte values would never do.
//!
//! Two chunks have bytes in common only where the three places are equally far apart, of which there are 2^34 ways, and near
//! each other: of 10^8 chunks of 8 KiB not one in 10^4. What codecs look for, repeated strings and frequent bytes, is not there.

use crate::generator::{Generator, Id};
use std::ops::Range;

/// Streams; a chunk has one byte of each in turn.
const STREAMS: usize = 3;
/// What their hashes are multiplied by, in all.
const WEIGHTS: u64 = (1 << STREAMS) - 1;
/// Places in a stream at which a piece may begin: with three streams all fit a second-level cache.
const PLACES: usize = 1 << 17;
/// Bytes of a piece; larger chunks have several.
pub(crate) const PIECE: usize = 48 << 10;

/// What pieces are made of.
#[derive(Clone)]
pub(crate) struct Streams {
    bytes: [Vec<u8>; STREAMS],
}

impl Streams {
    /// Drawn from `generator`, for a hash of which bits of `mask` must be zero where there is a cut.
    pub fn new(gear: &[u64; 256], mask: u64, generator: &Generator) -> Streams {
        let circle = 1u64 << (u64::BITS - mask.leading_zeros());
        let range = ((circle - 1) & !mask) / WEIGHTS + 1..circle / WEIGHTS;
        let bytes = [0, 1, 2].map(|stream| {
            let mut draws = vec![0; 2 * (PLACES + PIECE / STREAMS)];
            generator.fill(Id(u128::MAX - 1 - stream), &mut draws);
            drawn(&draws, gear, circle, &range)
        });
        Streams { bytes }
    }

    /// Piece `piece` of the chunk `id`, of 96 bits. Hashes that take in nothing but it never say cut.
    pub fn piece(&self, generator: &Generator, id: Id, piece: u32) -> Piece<'_> {
        let mut places = [0; 4 * STREAMS];
        generator.fill(Id(id.0 | u128::from(piece) << 96), &mut places);
        let places = places.as_chunks::<4>().0;
        let part = |stream: usize| {
            let place = u32::from_le_bytes(places[stream]) as usize % PLACES;
            &self.bytes[stream][place..place + PIECE / STREAMS]
        };
        Piece { parts: [part(0), part(1), part(2)] }
    }
}

/// A stretch of each stream.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    parts: [&'a [u8]; STREAMS],
}

impl Piece<'_> {
    /// The same from a byte of it on.
    pub fn from(self, first: usize) -> Self {
        let part = |turn: usize| &self.parts[(first + turn) % STREAMS][(first + turn) / STREAMS..];
        Piece { parts: [part(0), part(1), part(2)] }
    }

    /// Its first bytes.
    pub fn fill(&self, into: &mut [u8]) {
        let mut parts = self.parts;
        for (turn, part) in parts.iter_mut().enumerate() {
            *part = &part[..(into.len() + STREAMS - 1 - turn) / STREAMS];
        }
        let done = weave(parts, into);
        alternate(parts.map(|part| &part[done..]), &mut into[done * STREAMS..]);
    }
}

/// Takes a byte of each part in turn, one by one.
fn alternate([a, b, c]: [&[u8]; STREAMS], into: &mut [u8]) {
    let (whole, rest) = into.as_chunks_mut::<STREAMS>();
    for (bytes, ((a, b), c)) in whole.iter_mut().zip(a.iter().zip(b).zip(c)) {
        *bytes = [*a, *b, *c];
    }
    for (byte, part) in rest.iter_mut().zip([a, b]) {
        *byte = part[whole.len()];
    }
}

/// Takes a byte of each part in turn, as far as vectors do it, and tells how many of each it took.
#[cfg(target_arch = "x86_64")]
fn weave(parts: [&[u8]; STREAMS], into: &mut [u8]) -> usize {
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has it.
        unsafe { shuffle(parts, into) }
    } else {
        0
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn weave(_: [&[u8]; STREAMS], _: &mut [u8]) -> usize {
    0
}

/// Bytes of a vector, and of its halves, which are shuffled each by itself.
#[cfg(target_arch = "x86_64")]
const LANES: usize = 32;
#[cfg(target_arch = "x86_64")]
const HALF: usize = LANES / 2;

/// Which byte of a half of each stream is where in the three halves that they make; 128: none (Intel's manual, volume 2,
/// VPSHUFB).
#[cfg(target_arch = "x86_64")]
const ORDER: [[[u8; LANES]; STREAMS]; STREAMS] = {
    let mut order = [[[128; LANES]; STREAMS]; STREAMS];
    let mut at = 0;
    while at < STREAMS * HALF {
        let from = (at / STREAMS) as u8;
        order[at / HALF][at % STREAMS][at % HALF] = from;
        order[at / HALF][at % STREAMS][at % HALF + HALF] = from;
        at += 1;
    }
    order
};

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn shuffle(parts: [&[u8]; STREAMS], into: &mut [u8]) -> usize {
    use std::arch::x86_64::{
        _mm256_loadu_si256, _mm256_or_si256, _mm256_permute2x128_si256, _mm256_shuffle_epi8,
        _mm256_storeu_si256,
    };
    let load = |bytes: &[u8; LANES]| {
        // SAFETY: all of the vector's bytes are those of the array, and none need be aligned.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    };
    let order = ORDER.map(|of| of.map(|lanes| load(&lanes)));
    let [a, b, c] = parts.map(|part| part.as_chunks::<LANES>().0);
    let (whole, _) = into.as_chunks_mut::<{ STREAMS * LANES }>();
    for (bytes, ((a, b), c)) in whole.iter_mut().zip(a.iter().zip(b).zip(c)) {
        let [a, b, c] = [a, b, c].map(load);
        // The lower halves of these follow each other, and then the upper ones.
        let [x, y, z] = order.map(|[of_a, of_b, of_c]| {
            let two = _mm256_or_si256(_mm256_shuffle_epi8(a, of_a), _mm256_shuffle_epi8(b, of_b));
            _mm256_or_si256(two, _mm256_shuffle_epi8(c, of_c))
        });
        let thirds = [
            _mm256_permute2x128_si256::<0x20>(x, y),
            _mm256_permute2x128_si256::<0x30>(z, x),
            _mm256_permute2x128_si256::<0x31>(y, z),
        ];
        for (third, vector) in bytes.as_chunks_mut::<LANES>().0.iter_mut().zip(thirds) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(third.as_mut_ptr().cast(), vector) };
        }
    }
    whole.len() * LANES
}

/// Draws bytes such that the hash of each is in a range. Of two that do, out of some thirty, the one that is there less
/// often so far is taken, as codecs would make use of frequent ones.
fn drawn(draws: &[u8], gear: &[u64; 256], circle: u64, range: &Range<u64>) -> Vec<u8> {
    let values = Values::new(gear.iter().copied(), circle);
    let draws = draws.as_chunks::<2>().0;
    let (mut bytes, mut hashes, mut counts) = (vec![0; draws.len()], vec![0; draws.len()], [0u32; 256]);
    let (mut at, mut dead_ends) = (0, 0);
    while at < bytes.len() {
        // Before the first byte there is any hash: pieces begin with bytes that are looked at.
        let before: u64 = if at == 0 { circle / 3 } else { hashes[at - 1] };
        let shifted = (before << STREAMS) & (circle - 1);
        let least = (range.start + circle - shifted) & (circle - 1);
        let values = values.between(least, least + (range.end - range.start));
        if values.is_empty() {
            // The counts have changed since, so another way will be taken.
            dead_ends += 1;
            at = at.saturating_sub(dead_ends);
            continue;
        }
        let [one, other] = draws[at].map(|draw| values[usize::from(draw) % values.len()]);
        let (value, byte) =
            if counts[usize::from(one.1)] <= counts[usize::from(other.1)] { one } else { other };
        (bytes[at], hashes[at]) = (byte, (shifted + value) & (circle - 1));
        counts[usize::from(byte)] += 1;
        at += 1;
    }
    bytes
}

/// What bytes add to a hash, ascending, twice around the circle, so that any stretch of it is in one piece.
#[derive(Clone)]
pub(crate) struct Values {
    sorted: Vec<(u64, u8)>,
    /// How many are below each of equal parts of both rounds.
    below: Vec<u16>,
    /// Of the size of a part, binary logarithm.
    part: u32,
}

impl Values {
    /// `added` has what each byte adds; a hash is less than `circle`, a power of two.
    pub fn new(added: impl Iterator<Item = u64>, circle: u64) -> Values {
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
    pub fn between(&self, from: u64, to: u64) -> &[(u64, u8)] {
        &self.sorted[self.rank(from)..self.rank(to)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_a_byte_of_each_stream_in_turn() {
        let streams = [0, 1, 2].map(|stream| {
            let mut bytes = vec![0; PIECE / STREAMS];
            Generator::new(stream).fill(Id(0), &mut bytes);
            bytes
        });
        let parts = [&streams[0][..], &streams[1], &streams[2]];
        let mut whole = vec![0; 1000];
        Piece { parts }.fill(&mut whole);
        for first in [0, 1, 2, 3, 500, 998] {
            let mut bytes = vec![0; 1000 - first];
            Piece { parts }.from(first).fill(&mut bytes);
            assert!(bytes == whole[first..], "from byte {first}");
        }
        for length in (0..300).chain([PIECE - 1, PIECE]) {
            let mut bytes = vec![0; length];
            Piece { parts }.fill(&mut bytes);
            let right = |(at, byte): (usize, &u8)| *byte == streams[at % STREAMS][at / STREAMS];
            assert!(bytes.iter().enumerate().all(right), "{length} bytes");
            // The same on a CPU without the vectors.
            bytes.fill(0);
            alternate(parts, &mut bytes);
            assert!(bytes.iter().enumerate().all(right), "{length} bytes, one by one");
        }
    }
}
