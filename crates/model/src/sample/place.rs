//! Where a generated request goes: inside its object, and as far from the last one as was drawn.

use super::decode::{Decoder, below};
use crate::dimension::OffsetRule;
use crate::feature::PAGE;
use crate::feature::op_jump::{CLASSES, class};
use crate::header::Header;
use loadstone_trace::NONE;
use rand_xoshiro::Xoshiro256PlusPlus;

/// An object while requests are being generated.
#[derive(Clone, Copy)]
struct State {
    extent: i64,
    shift: u8,
}

/// The codes that lead to an offset; 0 where the dimension does not decide.
#[derive(Clone, Copy)]
pub(super) struct Codes {
    pub jump: u32,
    pub region: u32,
    pub align: u32,
}

/// Decoders of the dimensions that lead to an offset.
pub(super) struct Decoders {
    pub jump: Decoder,
    pub region: Decoder,
    pub align: Decoder,
}

/// A request's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// First byte, or [`NONE`].
    pub offset: i64,
    /// Bytes that fit the object, or [`NONE`].
    pub size: i64,
    /// From the end of the request before on the object, [`NONE`] if there was none.
    pub jump: i64,
    /// The same, of the request before of the same op.
    pub op_jump: i64,
}

/// Objects and the rule that sets offsets.
pub(super) struct Places {
    objects: Vec<State>,
    /// Ends of the last requests, by object and by object and op.
    ends: Vec<i64>,
    op_ends: Vec<i64>,
    /// Whether jumps are drawn from the last request of the same op.
    by_op: bool,
    decoders: Decoders,
    rule: OffsetRule,
    far: Option<i64>,
    grain: i64,
    jump_grain: i64,
}

impl Places {
    pub fn new(header: &Header, decoders: Decoders, jump_grain: i64, by_op: bool) -> Places {
        let most = header.objects.iter().map(|o| o.id as usize + 1).max().unwrap_or(0);
        let mut objects = vec![State { extent: 0, shift: 12 }; most];
        for o in &header.objects {
            objects[o.id as usize] = State { extent: o.extent, shift: o.region_shift };
        }
        let (rule, far, grain) = (header.offset_rule, header.far, header.offset_grain);
        let (ends, op_ends) = (vec![NONE; most], vec![NONE; most * CLASSES as usize]);
        Places { objects, ends, op_ends, by_op, decoders, rule, far, grain, jump_grain }
    }

    /// log2 of the region width of an object.
    pub fn shift(&self, object: u32) -> u8 {
        self.objects.get(object as usize).map_or(12, |o| o.shift)
    }

    /// Places a request; `None` if what was drawn does not fit the position that the last request on
    /// the object left, unless `force`: then it goes as near to it as can be.
    #[inline]
    pub fn place(
        &mut self,
        (object, op): (u32, u8),
        size: i64,
        codes: Codes,
        rng: &mut Xoshiro256PlusPlus,
        force: bool,
    ) -> Option<Place> {
        let Some(&state) = self.objects.get(object as usize) else {
            return Some(Place { offset: NONE, size, jump: NONE, op_jump: NONE });
        };
        let length = if size == NONE { 0 } else { size.min(state.extent) };
        let size = if size == NONE { NONE } else { length };
        // The last offset at which the request still ends inside the object.
        let most = state.extent - length;
        let (at, op_at) = (object as usize, class(object, op) as usize);
        let (last, op_last) = (self.ends[at], self.op_ends[op_at]);
        let mut end = if self.by_op { op_last } else { last };
        let from = end;
        let offset = if codes.jump != 0 {
            if end == NONE {
                end = pick(0, most, self.grain, 0, rng).unwrap_or(0);
            }
            match self.near(end, most, codes, rng) {
                Some(offset) => offset,
                None if force => {
                    wrap(end.saturating_add(self.decoders.jump.draw(codes.jump, rng)), most, self.grain)
                }
                None => return None,
            }
        } else if codes.region != 0 {
            match self.far(state, from, most, codes, rng) {
                Some(offset) => offset,
                None if force => self.anywhere_in(state, most, codes, rng),
                None => return None,
            }
        } else if self.rule == OffsetRule::Jump && length > 0 {
            // The first request of an object has no jump.
            pick(0, most, self.grain, 0, rng).unwrap_or(0)
        } else {
            return Some(Place { offset: NONE, size, jump: NONE, op_jump: NONE });
        };
        (self.ends[at], self.op_ends[op_at]) = (offset + length, offset + length);
        let jump = |end: i64| if end == NONE { NONE } else { offset - end };
        Some(Place { offset, size, jump: jump(last), op_jump: jump(op_last) })
    }

    /// An offset whose jump from `end` lies in the bucket.
    #[inline]
    fn near(&self, end: i64, most: i64, codes: Codes, rng: &mut Xoshiro256PlusPlus) -> Option<i64> {
        let (first, last) = self.decoders.jump.range(codes.jump);
        let (low, high) = (end.saturating_add(first).max(0), end.saturating_add(last).min(most));
        if first == last {
            return (low <= high).then_some(low);
        }
        for _ in 0..4 {
            let offset = if codes.align == 0 {
                pick(low, high, self.jump_grain, end, rng)
            } else {
                pick(low, high, PAGE, self.decoders.align.draw(codes.align, rng), rng)
            }?;
            // Jumps with buckets of their own do not belong to this one.
            if !self.decoders.jump.excepts(codes.jump, offset - end) {
                return Some(offset);
            }
        }
        None
    }

    /// An offset in the region, and not near the last request where near ones are told by the jump.
    #[inline]
    fn far(
        &self,
        state: State,
        end: i64,
        most: i64,
        codes: Codes,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Option<i64> {
        let (low, high) = self.interval(state, most, codes);
        let (modulus, rest) = self.alignment(codes, rng);
        if self.rule != OffsetRule::Near || end == NONE {
            return pick(low, high, modulus, rest, rng);
        }
        let near = self.far.unwrap_or(1 << state.shift);
        let below_near = (low, high.min(end.saturating_sub(near) - 1));
        let above_near = (low.max(end.saturating_add(near).saturating_add(1)), high);
        let length = |(low, high): (i64, i64)| (high.saturating_sub(low).saturating_add(1)).max(0) as u64;
        let (before, after) = (length(below_near), length(above_near));
        if before + after == 0 {
            return None;
        }
        let (low, high) = if below(rng, before + after) < before { below_near } else { above_near };
        pick(low, high, modulus, rest, rng)
    }

    /// An offset in the region, or as close to it as the object lets it be.
    fn anywhere_in(&self, state: State, most: i64, codes: Codes, rng: &mut Xoshiro256PlusPlus) -> i64 {
        let (low, high) = self.interval(state, most, codes);
        let (modulus, rest) = self.alignment(codes, rng);
        pick(low, high, modulus, rest, rng).unwrap_or_else(|| wrap(low.min(most), most, self.grain))
    }

    fn interval(&self, state: State, most: i64, codes: Codes) -> (i64, i64) {
        let (first, last) = self.decoders.region.range(codes.region);
        let width = 1i64 << state.shift;
        let low = first.max(0).saturating_mul(width);
        (low, last.max(0).saturating_add(1).saturating_mul(width).saturating_sub(1).min(most))
    }

    fn alignment(&self, codes: Codes, rng: &mut Xoshiro256PlusPlus) -> (i64, i64) {
        match codes.align {
            0 => (self.grain, 0),
            code => (PAGE, self.decoders.align.draw(code, rng)),
        }
    }
}

/// A number from `low` to `high` that leaves the same rest as `rest`, if there is one.
#[inline]
fn pick(low: i64, high: i64, modulus: i64, rest: i64, rng: &mut Xoshiro256PlusPlus) -> Option<i64> {
    // Grains and pages are powers of two.
    let first = low.checked_add(rest.wrapping_sub(low) & (modulus - 1))?;
    if first > high {
        return None;
    }
    let n = ((high - first) / modulus) as u64 + 1;
    Some(first + below(rng, n) as i64 * modulus)
}

/// The offset brought back into 0..=most, on the grain.
fn wrap(offset: i64, most: i64, grain: i64) -> i64 {
    let wrapped = offset.rem_euclid(most.max(0).saturating_add(1));
    wrapped - wrapped % grain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::rand_core::SeedableRng;

    proptest! {
        #[test]
        fn what_is_picked_lies_between_and_leaves_the_rest(
            low in 0i64..100_000, more in 0i64..100_000, bits in 0u32..13, rest in -5000i64..5000, seed in any::<u64>(),
        ) {
            let modulus = 1i64 << bits;
            let picked = pick(low, low + more, modulus, rest, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
            match picked {
                Some(n) => prop_assert!(n >= low && n <= low + more && (n - rest) % modulus == 0),
                None => prop_assert!((low..=low + more).all(|n| (n - rest) % modulus != 0)),
            }
        }
    }
}
