//! From codes back to numbers: uniform inside the bucket, on the grain.

use crate::random::{Random, below, unit};
use crate::schema::rule::Rule;
use loadstone_trace::NONE;
use rand_xoshiro::rand_core::Rng;
use rustc_hash::FxHashMap;

/// The numbers of one code: `n` multiples of the grain from `first` on, without `skip`.
#[derive(Clone, Default)]
struct Slot {
    first: i64,
    step: i64,
    n: u64,
    skip: Option<Box<[i64]>>,
    /// Both ends of the bucket, whatever the grain.
    range: (i64, i64),
}

/// The numbers of every code of one dimension.
#[derive(Default)]
pub(crate) struct Decoder {
    slots: Vec<Slot>,
    sparse: FxHashMap<u32, Slot>,
}

/// Codes below this lie in a plain vector.
const DENSE: u32 = 1 << 16;

impl Decoder {
    /// For these codes of a rule, which has a range for each of them.
    pub fn new(rule: &Rule, grain: i64, largest: Option<i64>, codes: impl Iterator<Item = u32>) -> Decoder {
        let mut decoder = Decoder { slots: Vec::new(), sparse: FxHashMap::default() };
        for code in codes.filter(|c| *c != 0) {
            let slot = slot(rule, grain, largest, code);
            if code < DENSE {
                if decoder.slots.len() <= code as usize {
                    decoder.slots.resize(code as usize + 1, Slot::default());
                }
                decoder.slots[code as usize] = slot;
            } else {
                decoder.sparse.insert(code, slot);
            }
        }
        decoder
    }

    #[inline]
    fn slot(&self, code: u32) -> Option<&Slot> {
        self.slots.get(code as usize).or_else(|| self.sparse.get(&code))
    }

    /// Whether a number is one of any code.
    pub fn has(&self, value: i64) -> bool {
        let all = self.slots.iter().skip(1).chain(self.sparse.values());
        all.filter(|slot| slot.n > 0).any(|slot| (slot.range.0..=slot.range.1).contains(&value))
    }

    /// Smallest and largest number of this code.
    #[inline]
    pub fn range(&self, code: u32) -> (i64, i64) {
        self.slot(code).map_or((0, 0), |slot| slot.range)
    }

    /// The number in the middle of this code's.
    #[inline]
    pub fn middle(&self, code: u32) -> i64 {
        let (first, last) = self.range(code);
        first.midpoint(last)
    }

    /// Whether a number in the range of this code has a code of its own.
    #[inline]
    pub fn excepts(&self, code: u32, value: i64) -> bool {
        self.slot(code).and_then(|slot| slot.skip.as_ref()).is_some_and(|skip| skip.contains(&value))
    }

    /// A number of this code; [`NONE`] for code 0.
    #[inline]
    pub fn draw(&self, code: u32, rng: &mut Random) -> i64 {
        if code == 0 {
            return NONE;
        }
        let Some(slot) = self.slot(code) else { return NONE };
        if slot.n == 1 && slot.skip.is_none() {
            return slot.first;
        }
        let value = slot.first + slot.step * below(rng, slot.n) as i64;
        match &slot.skip {
            None => value,
            // Each exception at or below pushes the number one step on.
            Some(skip) => skip.iter().fold(value, |v, &s| if s <= v { v + slot.step } else { v }),
        }
    }
}

impl Decoder {
    /// A number of this code; many have this mean, if it lies among the code's numbers.
    ///
    /// Numbers are even between the nearer end of the bucket and as far beyond the mean; the two at the ends are drawn
    /// half as often, as only half of what is rounded to them lies inside.
    pub fn draw_about(&self, code: u32, mean: i64, rng: &mut Random) -> i64 {
        let Some(slot) = self.slot(code).filter(|slot| slot.n > 1 && code != 0) else {
            return self.draw(code, rng);
        };
        let skipped = slot.skip.as_ref().map_or(0, |skip| skip.len() as i64);
        let last = slot.first + slot.step * (slot.n as i64 - 1 + skipped);
        // Nothing of 0 bytes fits anywhere best, so that it would be taken too often.
        let first = if slot.first == 0 { slot.step } else { slot.first };
        let mean = mean.clamp(first, last);
        let reach = (mean - first).min(last - mean);
        let at = (mean - reach) as f64 + 2.0 * reach as f64 * unit(rng);
        let nearest = ((at - first as f64) / slot.step as f64).round() as i64;
        let value = (first + slot.step * nearest).clamp(first, last);
        let Some(skip) = slot.skip.as_ref().filter(|skip| skip.contains(&value)) else { return value };
        // A number with a code of its own: the next one on either side.
        let free = |by: i64| {
            let mut next = value + by;
            while skip.contains(&next) {
                next += by;
            }
            (first..=last).contains(&next).then_some(next)
        };
        let (up, down) = (free(slot.step), free(-slot.step));
        let chosen = if rng.next_u64() & 1 == 0 { up.or(down) } else { down.or(up) };
        chosen.unwrap_or(first)
    }
}

fn slot(rule: &Rule, grain: i64, largest: Option<i64>, code: u32) -> Slot {
    let Some(mut range) = rule.range(code) else { return Slot::default() };
    // Only a damaged file has a bucket beyond the largest number.
    range.last = largest.filter(|l| *l >= range.first).map_or(range.last, |l| l.min(range.last));
    let on_grain = |step: i64| {
        let first = range.first.div_euclid(step) + i64::from(range.first.rem_euclid(step) != 0);
        let last = range.last.div_euclid(step);
        let all = if last < first { 0 } else { (i128::from(last) - i128::from(first) + 1) as u64 };
        let skip: Vec<i64> = rule
            .exceptions(code)
            .iter()
            .copied()
            .filter(|v| *v <= range.last && v.rem_euclid(step) == 0)
            .collect();
        let n = all.saturating_sub(skip.len() as u64);
        let skip = (!skip.is_empty()).then(|| skip.into_boxed_slice());
        Slot { first: first.saturating_mul(step), step, n, skip, range: (range.first, range.last) }
    };
    let slot = on_grain(grain);
    if slot.n > 0 {
        return slot;
    }
    // Only a damaged file has a bucket without any number on its grain.
    let slot = on_grain(1);
    if slot.n > 0 {
        slot
    } else {
        Slot { first: range.first, step: 1, n: 1, skip: None, range: (range.first, range.last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn many_numbers_of_a_bucket_have_the_mean_that_is_asked_for() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let exact = Rule::Exact { values: vec![16384], rest: Box::new(Rule::Log2 { sub: 1, signed: false }) };
        for (rule, first, means) in [
            (Rule::Linear { width: 65536, signed: false }, 0, vec![5130, 20_000, 32_768, 60_000]),
            (exact, 16384, vec![17_000, 22_000, 31_000]),
        ] {
            let code = rule.code(first + 4096);
            let decoder = Decoder::new(&rule, 512, None, [code].into_iter());
            for mean in means {
                let drawn: Vec<i64> = (0..20_000).map(|_| decoder.draw_about(code, mean, &mut rng)).collect();
                assert!(drawn.iter().all(|&size| rule.code(size) == code));
                let found = drawn.iter().sum::<i64>() as f64 / 20_000.0;
                assert!((found / mean as f64 - 1.0).abs() < 0.02, "{found} for {mean}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_drawn_has_the_code_and_lies_on_the_grain(
            values in proptest::collection::btree_set(0i64..10_000, 1..30), grain in 0u32..10, seed in any::<u64>(),
        ) {
            let step = 1i64 << grain;
            let values: Vec<i64> = values.into_iter().map(|v| v * step).collect();
            let exact: Vec<i64> = values.iter().copied().step_by(3).collect();
            let rule = Rule::Exact { values: exact, rest: Box::new(Rule::Log2 { sub: 2, signed: true }) };
            let codes: Vec<u32> = values.iter().map(|&v| rule.code(v)).collect();
            let decoder = Decoder::new(&rule, step, None, codes.iter().copied());
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            for &code in &codes {
                for _ in 0..20 {
                    let drawn = decoder.draw(code, &mut rng);
                    prop_assert_eq!(rule.code(drawn), code);
                    prop_assert_eq!(drawn % step, 0);
                }
            }
        }
    }
}
