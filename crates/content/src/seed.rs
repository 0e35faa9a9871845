//! Seeds that follow from other seeds. By adding or exclusive or, the second of one would be the first of another.

/// Spreads a number over all 64 bits, one to one (the finaliser of SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
#[inline(always)]
pub fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// The seed of number `number` of what is called `purpose`, which follows from `seed`. Of one seed and purpose no two are
/// alike; any others are alike by chance only, once in 2^64.
pub fn derive(seed: u64, purpose: &str, number: u64) -> u64 {
    // FNV-1a of the name (Fowler, Noll, Vo), which is spread further.
    let name = purpose.bytes().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mix(mix(mix(seed) ^ mix(name)) ^ mix(!number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_seed_is_that_of_another_part_of_another_run() {
        let (mut seen, mut all) = (HashSet::new(), 0);
        // What is near, and what differs in one bit: where sums and exclusive ors collide.
        let near = || (0..64).chain((0..64).map(|bit| 1u64 << bit)).collect::<HashSet<_>>();
        for seed in near() {
            for purpose in ["worker", "thread", "part", "set", ""] {
                for number in near() {
                    all += 1;
                    seen.insert(derive(seed, purpose, number));
                    seen.insert(derive(derive(seed, purpose, number), "thread", number));
                }
            }
            all += near().len() * 5;
        }
        assert_eq!(seen.len(), all);
    }

    #[test]
    fn seeds_stay_what_they_are() {
        // The same seed must give the same load with every build.
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(
            [derive(0, "worker", 0), derive(7, "thread", 3)],
            [0x2AF7_3AD3_B860_E1E9, 0xB375_5278_BBBE_6CFE]
        );
    }
}
