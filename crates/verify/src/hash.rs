//! One mixing function.

/// Spreads a number over all 64 bits (the finaliser of SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
#[inline(always)]
pub fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
