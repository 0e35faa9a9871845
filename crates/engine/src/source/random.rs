//! Uniform numbers of a generator.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// A number from 0, included, to 1, excluded, of 53 bits.
#[inline(always)]
pub fn unit(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// A whole number below `count` (Lemire 2019; the bias is below `count` / 2^64).
#[inline(always)]
pub fn below(random: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}
