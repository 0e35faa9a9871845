//! Which of the dimensions that lead to an offset decides, request by request.

use crate::dimension::OffsetRule;
use crate::feature::Context;
use loadstone_trace::NONE;

/// What sets the offset of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The end of an earlier request.
    Resume,
    /// The distance from the end of the request before.
    Jump,
    /// An offset that was used before.
    Reuse,
    /// The part of the object.
    Region,
}

/// The numbers of the features that may set an offset.
#[derive(Default)]
pub(crate) struct Numbers<'a> {
    pub jump: Option<&'a [i64]>,
    pub resume: Option<&'a [i64]>,
    pub reuse: Option<&'a [i64]>,
}

/// Tells which of resume, reuse, jump and region sets the offset; the codes of the others are blanked.
pub(crate) struct Masks {
    rule: OffsetRule,
    /// Longest jump that counts as near; the object's region width where not given.
    far: Option<i64>,
}

impl Masks {
    pub fn new(rule: OffsetRule, far: Option<i64>) -> Masks {
        Masks { rule, far }
    }

    /// What sets each request's offset: a run comes first, then an old place, then the distance. What
    /// the model has no dimension for is `None`.
    pub fn decide(&self, from: &Numbers, objects: &[u32], context: &Context, by: &mut Vec<By>) {
        let has = |numbers: Option<&[i64]>, i: usize| numbers.is_some_and(|numbers| numbers[i] != NONE);
        by.clear();
        by.extend(objects.iter().enumerate().map(|(i, &object)| {
            let jump = from.jump.map_or(NONE, |jumps| jumps[i]);
            match self.rule {
                _ if has(from.resume, i) => By::Resume,
                // Without streams, a run is told by its jump.
                _ if has(from.reuse, i) && jump != 0 => By::Reuse,
                OffsetRule::Jump => By::Jump,
                OffsetRule::Region => By::Region,
                OffsetRule::Near if self.is_near(jump, object, context) => By::Jump,
                OffsetRule::Near => By::Region,
            }
        }));
    }

    /// Whether a jump is short enough to decide the offset.
    #[inline]
    fn is_near(&self, jump: i64, object: u32, context: &Context) -> bool {
        jump != NONE
            && jump.unsigned_abs() <= self.far.map_or_else(|| 1 << context.shift(object), |f| f as u64)
    }
}

/// Blanks the codes, or numbers, of requests whose offset something else decides.
pub(crate) fn blank<T: Copy>(by: &[By], mine: By, codes: &mut [T], nothing: T) {
    for (&by, code) in by.iter().zip(codes) {
        if by != mine {
            *code = nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_first_then_old_places_then_the_distance() {
        let masks = Masks::new(OffsetRule::Near, Some(100));
        let (jump, resume) = ([0, 50, 50, 200, NONE, NONE, 0], [1, 3, NONE, NONE, NONE, NONE, NONE]);
        let reuse = [3, NONE, 3, NONE, 1, NONE, 2];
        let numbers = Numbers { jump: Some(&jump), resume: Some(&resume), reuse: Some(&reuse) };
        let (mut by, context) = (Vec::new(), Context::default());
        masks.decide(&numbers, &[0; 7], &context, &mut by);
        use By::{Jump, Region, Resume, Reuse};
        assert_eq!(by, [Resume, Resume, Reuse, Region, Reuse, Region, Jump]);
        let mut codes = [1, 2, 3, 4, 5, 6, 7];
        blank(&by, Reuse, &mut codes, 0);
        assert_eq!(codes, [0, 0, 3, 0, 5, 0, 0]);
    }
}
