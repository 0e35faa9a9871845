//! Random numbers as sampling and dealing need them.

use rand_xoshiro::rand_core::Rng;

/// Where they come from.
pub(crate) type Random = rand_xoshiro::Xoshiro256PlusPlus;

/// A number below `n` (which is above 0); the bias is below n / 2^64.
#[inline]
pub(crate) fn below(rng: &mut Random, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// A number from 0 to below 1.
#[inline]
pub(crate) fn unit(rng: &mut Random) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Puts cards into any order (Fisher and Yates).
pub(crate) fn shuffle<T>(cards: &mut [T], rng: &mut Random) {
    for last in (1..cards.len()).rev() {
        cards.swap(last, below(rng, last as u64 + 1) as usize);
    }
}
