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
    pub fn fill(&self, generator: &Generator, id: Id, piece: u32, into: &mut [u8]) {
        debug_assert!(into.len() <= PIECE);
        let mut places = [0; 4 * STREAMS];
        generator.fill(Id(id.0 | u128::from(piece) << 96), &mut places);
        let places = places.as_chunks::<4>().0;
        let length = into.len().div_ceil(STREAMS);
        let part = |stream: usize| {
            let place = u32::from_le_bytes(places[stream]) as usize % PLACES;
            &self.bytes[stream][place..place + length]
        };
        let parts = [part(0), part(1), part(2)];
        let (whole, rest) = into.as_chunks_mut::<STREAMS>();
        for (bytes, ((a, b), c)) in whole.iter_mut().zip(parts[0].iter().zip(parts[1]).zip(parts[2])) {
            *bytes = [*a, *b, *c];
        }
        for (byte, part) in rest.iter_mut().zip(parts) {
            *byte = part[length - 1];
        }
    }
}

/// Draws bytes such that the hash of each is in a range. Of two that do, out of some thirty, the one that is there less
/// often so far is taken, as codecs would make use of frequent ones.
fn drawn(draws: &[u8], gear: &[u64; 256], circle: u64, range: &Range<u64>) -> Vec<u8> {
    let mut values: Vec<(u64, u8)> =
        (0..=u8::MAX).map(|byte| (gear[usize::from(byte)] % circle, byte)).collect();
    values.sort_unstable();
    values.extend_from_within(..);
    values[256..].iter_mut().for_each(|(value, _)| *value += circle);
    let draws = draws.as_chunks::<2>().0;
    let (mut bytes, mut hashes, mut counts) = (vec![0; draws.len()], vec![0; draws.len()], [0u32; 256]);
    let (mut at, mut dead_ends) = (0, 0);
    while at < bytes.len() {
        // Before the first byte there is any hash: pieces begin with bytes that are looked at.
        let before: u64 = if at == 0 { circle / 3 } else { hashes[at - 1] };
        let shifted = (before << STREAMS) % circle;
        let least = (range.start + circle - shifted) % circle;
        let values = &values[values.partition_point(|(value, _)| *value < least)..];
        let do_so = values.iter().take_while(|(value, _)| *value < least + (range.end - range.start)).count();
        if do_so == 0 {
            // The counts have changed since, so another way will be taken.
            dead_ends += 1;
            at = at.saturating_sub(dead_ends);
            continue;
        }
        let [one, other] = draws[at].map(|draw| values[usize::from(draw) % do_so]);
        let (value, byte) =
            if counts[usize::from(one.1)] <= counts[usize::from(other.1)] { one } else { other };
        (bytes[at], hashes[at]) = (byte, (shifted + value) % circle);
        counts[usize::from(byte)] += 1;
        at += 1;
    }
    bytes
}
