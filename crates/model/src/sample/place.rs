//! Where a generated request goes: inside its object, and as far from the last one as was drawn.

use super::decode::{Decoder, below};
use crate::dimension::OffsetRule;
use crate::header::Header;
use loadstone_trace::NONE;
use rand_xoshiro::Xoshiro256PlusPlus;

/// An object while requests are being generated.
#[derive(Clone, Copy)]
struct State {
    extent: i64,
    end: i64,
    shift: u8,
}

/// Objects and the rule that sets offsets.
pub(super) struct Places {
    objects: Vec<State>,
    rule: OffsetRule,
    far: Option<i64>,
    grain: i64,
}

/// A request's place, or why there is none for it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Offset, size and the jump that led there ([`NONE`] where there was none).
    At { offset: i64, size: i64, jump: i64 },
    /// What was drawn does not fit the position the last request on the object left.
    Conflict,
}

impl Places {
    pub fn new(header: &Header) -> Places {
        let most = header.objects.iter().map(|o| o.id as usize + 1).max().unwrap_or(0);
        let mut objects = vec![State { extent: 0, end: NONE, shift: 12 }; most];
        for o in &header.objects {
            objects[o.id as usize] = State { extent: o.extent, end: NONE, shift: o.region_shift };
        }
        Places { objects, rule: header.offset_rule, far: header.far, grain: header.offset_grain }
    }

    /// log2 of the region width of an object.
    pub fn shift(&self, object: u32) -> u8 {
        self.objects.get(object as usize).map_or(12, |o| o.shift)
    }

    /// Places a request whose jump and region have these codes; with `force`, wherever it can be.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    pub fn place(
        &mut self,
        object: u32,
        size: i64,
        jump: (&Decoder, u32),
        region: (&Decoder, u32),
        rng: &mut Xoshiro256PlusPlus,
        force: bool,
    ) -> Place {
        let (far, grain) = (self.far, self.grain);
        let Some(state) = self.objects.get_mut(object as usize) else {
            return Place::At { offset: NONE, size, jump: NONE };
        };
        let length = if size == NONE { 0 } else { size.min(state.extent) };
        let size = if size == NONE { NONE } else { length };
        // The last offset at which the request still ends inside the object.
        let most = state.extent - length;
        let offset = if jump.1 != 0 {
            if state.end == NONE {
                state.end = anywhere(most, grain, rng);
            }
            let mut offset = state.end.saturating_add(jump.0.draw(jump.1, rng));
            if offset < 0 || offset > most {
                // Another number of the same bucket may do.
                offset = state.end.saturating_add(jump.0.draw(jump.1, rng));
            }
            if offset < 0 || offset > most {
                if !force {
                    return Place::Conflict;
                }
                offset = wrap(offset, most, grain);
            }
            offset
        } else if region.1 != 0 {
            let near = far.unwrap_or(1 << state.shift);
            let mut found = NONE;
            for _ in 0..4 {
                let first = region.0.draw(region.1, rng).saturating_mul(1 << state.shift);
                let last = first.saturating_add((1 << state.shift) - 1);
                let offset = between(first.min(most), last.min(most), grain, rng);
                let jump = offset.saturating_sub(state.end);
                if self.rule != OffsetRule::Near || state.end == NONE || jump.saturating_abs() > near {
                    found = offset;
                    break;
                }
                if force {
                    found = offset;
                }
            }
            if found == NONE {
                return Place::Conflict;
            }
            found
        } else if self.rule == OffsetRule::Jump && length > 0 {
            // The first request of an object has no jump.
            anywhere(most, grain, rng)
        } else {
            return Place::At { offset: NONE, size, jump: NONE };
        };
        let jumped = if state.end == NONE { NONE } else { offset - state.end };
        state.end = offset + length;
        Place::At { offset, size, jump: jumped }
    }
}

/// A multiple of the grain from 0 to `most`.
fn anywhere(most: i64, grain: i64, rng: &mut Xoshiro256PlusPlus) -> i64 {
    below(rng, (most.max(0) / grain) as u64 + 1) as i64 * grain
}

/// A multiple of the grain from `first` to `last`, or the last one before if there is none.
fn between(first: i64, last: i64, grain: i64, rng: &mut Xoshiro256PlusPlus) -> i64 {
    let (low, high) = (first / grain + i64::from(first % grain != 0), last / grain);
    if low > high {
        return high * grain;
    }
    (low + below(rng, (high - low) as u64 + 1) as i64) * grain
}

/// The offset brought back into 0..=most, on the grain.
fn wrap(offset: i64, most: i64, grain: i64) -> i64 {
    let wrapped = offset.rem_euclid(most.max(0) + 1);
    wrapped - wrapped % grain
}
