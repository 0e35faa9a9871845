//! Gear hashes of many windows at once, where the CPU looks up 64 bytes together (AVX-512 VBMI).
//!
//! What a byte adds to a hash is a number of 64 bits, of which the lower 48 are looked at: six tables of 256 bytes have one
//! byte of each. A look-up in one of them takes three instructions for 64 bytes, and unpacking puts those of a number
//! together. Bytes are dealt to eight lanes, so many that follow each other to each: in all of them hashes go on at once as if
//! nothing were before, and what was before is added in the end, as hashes are sums.

/// Bytes before the first hash, and bytes whose hashes are looked at. A hash takes in no more than [`BITS`] of them.
pub(crate) const HALF: usize = 48;
/// Bits of a hash that may be looked at.
pub(crate) const BITS: usize = 8 * PLANES;
const PLANES: usize = 6;

/// The tables.
#[derive(Clone)]
pub(crate) struct Wide {
    planes: [[u8; 256]; PLANES],
}

impl Wide {
    /// For what bytes add; nothing where the CPU does not have it.
    pub fn new(gear: &[u64; 256]) -> Option<Wide> {
        let plane = |plane: usize| gear.map(|added| added.to_le_bytes()[plane]);
        is_there().then(|| Wide { planes: std::array::from_fn(plane) })
    }

    /// Whether the hash at each byte of the second half has some bit of `mask`, which is less than 2^[`BITS`].
    pub fn have(&self, mask: u64, bytes: &[u8; 2 * HALF]) -> bool {
        debug_assert!(mask >> BITS == 0);
        all_have(&self.planes, mask, bytes)
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_there() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn all_have(_: &[[u8; 256]; PLANES], _: u64, _: &[u8; 2 * HALF]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn is_there() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
}

#[cfg(target_arch = "x86_64")]
fn all_have(planes: &[[u8; 256]; PLANES], mask: u64, bytes: &[u8; 2 * HALF]) -> bool {
    // SAFETY: there are tables only where the CPU has all that it takes.
    unsafe { x86::all_have(planes, mask, bytes) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{HALF, PLANES};
    use std::arch::x86_64::*;

    /// Bytes of a vector, and its lanes of 64 bits.
    const BYTES: usize = 64;
    const LANES: usize = 8;
    /// Bytes of each half that a lane has.
    const RUN: u32 = (HALF / LANES) as u32;
    /// Vectors that come from the first 64 bytes looked up: all of the first half and some of the second.
    const FIRST: usize = BYTES / LANES;

    /// Which bytes are looked up, first and then, as numbers in the first 64 of all bytes, or from 64 on in the last 64 of
    /// them. Unpacking makes a vector of two bytes of each quarter.
    const ORDERS: [[u8; BYTES]; 2] = {
        let mut orders = [[0; BYTES]; 2];
        let mut at = 0;
        while at < 2 * HALF {
            let (vector, lane) = (at / LANES, at % LANES);
            let run = RUN as usize;
            let byte = vector / run * HALF + lane * run + vector % run;
            let byte = if byte < BYTES { byte } else { byte + 2 * BYTES - 2 * HALF };
            orders[vector / FIRST][lane / 2 * 16 + vector % FIRST * 2 + lane % 2] = byte as u8;
            at += 1;
        }
        orders
    };

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub fn all_have(planes: &[[u8; 256]; PLANES], mask: u64, bytes: &[u8; 2 * HALF]) -> bool {
        let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) else { return false };
        let (first, last) = (load(first), load(last));
        let (one, other) = (load(&ORDERS[0]), load(&ORDERS[1]));
        let one = looked_up(planes, _mm512_permutex2var_epi8(first, one, last));
        let other = looked_up(planes, _mm512_permutex2var_epi8(first, other, last));
        let [b0, b1, b2, b3, b4, b5, a0, a1] = unpacked(one);
        let [a2, a3, a4, a5, ..] = unpacked(other);
        let add = |a, b| _mm512_add_epi64(a, b);
        let next = |hash, added| add(_mm512_slli_epi64::<1>(hash), added);
        let before = [b1, b2, b3, b4, b5].into_iter().fold(b0, next);
        let h1 = next(a0, a1);
        let h2 = next(h1, a2);
        let h3 = next(h2, a3);
        let h4 = next(h3, a4);
        let h5 = next(h4, a5);
        // What was before each lane of the second half: the lane before it, then two lanes, four, and eight.
        let zero = _mm512_setzero_si512();
        let (low, high) = (_mm512_alignr_epi64::<7>(before, zero), _mm512_alignr_epi64::<7>(h5, before));
        let low2 = add(low, _mm512_slli_epi64::<RUN>(_mm512_alignr_epi64::<7>(low, zero)));
        let high2 = add(high, _mm512_slli_epi64::<RUN>(_mm512_alignr_epi64::<7>(high, low)));
        let low4 = add(low2, _mm512_slli_epi64::<{ 2 * RUN }>(_mm512_alignr_epi64::<6>(low2, zero)));
        let high4 = add(high2, _mm512_slli_epi64::<{ 2 * RUN }>(_mm512_alignr_epi64::<6>(high2, low2)));
        let start = add(high4, _mm512_slli_epi64::<{ 4 * RUN }>(_mm512_alignr_epi64::<4>(high4, low4)));
        let mask = _mm512_set1_epi64(mask as i64);
        let lack = |hash, before| _mm512_testn_epi64_mask(add(hash, before), mask);
        let lacks = lack(a0, _mm512_slli_epi64::<1>(start))
            | lack(h1, _mm512_slli_epi64::<2>(start))
            | lack(h2, _mm512_slli_epi64::<3>(start))
            | lack(h3, _mm512_slli_epi64::<4>(start))
            | lack(h4, _mm512_slli_epi64::<5>(start))
            | lack(h5, _mm512_slli_epi64::<6>(start));
        lacks == 0
    }

    /// Bytes of what each byte adds, by their place in it.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    #[inline]
    fn looked_up(planes: &[[u8; 256]; PLANES], bytes: __m512i) -> [__m512i; PLANES] {
        let upper = _mm512_movepi8_mask(bytes);
        std::array::from_fn(|plane| {
            let [a, b, c, d] = std::array::from_fn(|part| load(&planes[plane].as_chunks().0[part]));
            let low = _mm512_permutex2var_epi8(a, bytes, b);
            _mm512_mask_blend_epi8(upper, low, _mm512_permutex2var_epi8(c, bytes, d))
        })
    }

    /// Numbers from their bytes.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn unpacked([p0, p1, p2, p3, p4, p5]: [__m512i; PLANES]) -> [__m512i; FIRST] {
        let zero = _mm512_setzero_si512();
        let of_half = |[low, middle, high]: [__m512i; 3]| {
            let (a, b) = (_mm512_unpacklo_epi16(low, middle), _mm512_unpackhi_epi16(low, middle));
            let (c, d) = (_mm512_unpacklo_epi16(high, zero), _mm512_unpackhi_epi16(high, zero));
            let (a0, a1) = (_mm512_unpacklo_epi32(a, c), _mm512_unpackhi_epi32(a, c));
            [a0, a1, _mm512_unpacklo_epi32(b, d), _mm512_unpackhi_epi32(b, d)]
        };
        let pairs = [(p0, p1), (p2, p3), (p4, p5)];
        let [a, b, c, d] = of_half(pairs.map(|(a, b)| _mm512_unpacklo_epi8(a, b)));
        let [e, f, g, h] = of_half(pairs.map(|(a, b)| _mm512_unpackhi_epi8(a, b)));
        [a, b, c, d, e, f, g, h]
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(bytes: &[u8; BYTES]) -> __m512i {
        // SAFETY: all of the vector's bytes are those of the array, and none need be aligned.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, Id};
    use std::io::Write as _;

    #[test]
    fn hashes_are_those_of_one_byte_after_the_other() {
        let mut gear = [0; 256];
        gear.copy_from_slice(&fastcdc::v2020::get_gear_with_seed(0).0);
        // Where the CPU cannot, nothing asks it to.
        let Some(wide) = Wide::new(&gear) else {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: hashes of wide registers: this CPU has no AVX-512 VBMI"
            );
            return;
        };
        let (generator, mut without) = (Generator::new(3), 0);
        for id in 0..20_000 {
            let mut bytes = [0; 2 * HALF];
            generator.fill(Id(id), &mut bytes);
            let mut hash = 0u64;
            let hashes = bytes.map(|byte| {
                hash = (hash << 1).wrapping_add(gear[usize::from(byte)]);
                hash
            });
            // Seven bits, wherever they are.
            let mask = 0x0008_0400_a012_u64 << (id % 5) | 1 << (id % 48);
            let have = hashes[HALF..].iter().all(|hash| hash & mask != 0);
            assert_eq!(wide.have(mask, &bytes), have, "{id}");
            without += u32::from(!have);
        }
        assert!((4000..16_000).contains(&without), "{without}");
    }
}
