//! Which of the dimensions that lead to an offset decides, request by request.

use crate::feature::Context;
use crate::schema::dimension::OffsetRule;
use loadstone_trace::NONE;

/// Earlier requests that are further back than this are long ago.
const LONG_AGO: i64 = 64;

/// A jump below this many bytes says more of the next place than that it was used long ago.
const CLOSE: u64 = 1 << 18;

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
    limits: Vec<u64>,
}

impl Masks {
    pub fn new(rule: OffsetRule, far: Option<i64>) -> Masks {
        Masks { rule, far, limits: Vec::new() }
    }

    /// What sets each request's offset: a run comes first, then an old place, then the distance; but a
    /// close one comes before runs and places of long ago. What the model has no dimension for is `None`.
    #[inline(always)]
    pub fn decide(&mut self, from: &Numbers, objects: &[u32], context: &Context, by: &mut Vec<By>) {
        self.limits(objects, context);
        let limits = &self.limits;
        let number = |numbers: Option<&[i64]>, i: usize| numbers.map_or(NONE, |numbers| numbers[i]);
        by.resize(limits.len(), By::Region);
        // Which one it is nobody can predict, so nothing branches in the usual model.
        match (from.resume, from.reuse, from.jump) {
            (Some(resume), Some(reuse), Some(jump)) => {
                let numbers = resume.iter().zip(reuse).zip(jump).zip(limits);
                for (by, (((&resume, &reuse), &jump), &limit)) in by.iter_mut().zip(numbers) {
                    *by = one(resume, reuse, jump, limit);
                }
            }
            _ => {
                for (i, (by, &limit)) in by.iter_mut().zip(limits).enumerate() {
                    let [resume, reuse, jump] = [from.resume, from.reuse, from.jump].map(|n| number(n, i));
                    *by = one(resume, reuse, jump, limit);
                }
            }
        }
    }

    /// How far a jump of each request may reach to decide the offset; none
    /// is below 0.
    #[inline(always)]
    fn limits(&mut self, objects: &[u32], context: &Context) {
        let limit = |object: u32| self.far.unwrap_or_else(|| 1 << context.shift(object));
        self.limits.resize(objects.len(), 0);
        match self.rule {
            OffsetRule::Jump => self.limits.fill(u64::MAX),
            OffsetRule::Region => self.limits.fill(0),
            OffsetRule::Near => {
                for (most, &object) in self.limits.iter_mut().zip(objects) {
                    *most = limit(object) as u64 + 1;
                }
            }
        }
    }
}

/// A request's decision; jumps below `limit` are near.
#[inline(always)]
fn one(resume: i64, reuse: i64, jump: i64, limit: u64) -> By {
    let mut by = if jump.unsigned_abs() < limit { By::Jump } else { By::Region };
    // Without `resume`, a jump of 0 continues a run.
    by = if (reuse != NONE) & (jump != 0) { By::Reuse } else { by };
    by = if resume != NONE { By::Resume } else { by };
    let long_ago = (resume > LONG_AGO) | ((resume == NONE) & (reuse > LONG_AGO));
    let close = (jump != 0) & (jump.unsigned_abs() < limit.min(CLOSE));
    let back = close & (jump < 0) & (resume != NONE);
    if (long_ago & close) | back { By::Jump } else { by }
}

/// Blanks the codes, or numbers, of requests whose offset something else decides.
#[inline(always)]
pub(crate) fn blank<T: Copy>(by: &[By], mine: By, codes: &mut [T], nothing: T) {
    for (&by, code) in by.iter().zip(codes) {
        *code = if by == mine { *code } else { nothing };
    }
}

/// Blanks the codes of ages of requests that something else leads to their place; of one that a jump leads
/// there, `again` tells that the place was used before.
#[inline(always)]
pub(crate) fn blank_ages(by: &[By], codes: &mut [u32], again: u32) {
    for (&by, code) in by.iter().zip(codes) {
        let known = if *code == 0 { 0 } else { again };
        *code = match by {
            By::Reuse => *code,
            By::Jump => known,
            By::Resume | By::Region => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_first_then_old_places_then_the_distance() {
        let mut masks = Masks::new(OffsetRule::Near, Some(100));
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

    #[test]
    fn a_close_jump_comes_before_what_was_long_ago() {
        let mut masks = Masks::new(OffsetRule::Near, None);
        let context = Context { other_shift: 24, ..Context::default() };
        let jump = [8192, 8192, -8192, 8192, 1 << 20, 8192];
        let (resume, reuse) = ([65, 64, NONE, NONE, 900, 3], [70, 70, 65, 64, 900, 900]);
        let numbers = Numbers { jump: Some(&jump), resume: Some(&resume), reuse: Some(&reuse) };
        let mut by = Vec::new();
        masks.decide(&numbers, &[0; 6], &context, &mut by);
        use By::{Jump, Resume, Reuse};
        assert_eq!(by, [Jump, Resume, Jump, Reuse, Resume, Resume]);
        let mut codes = [5, 5, 0, 6, 7, 8];
        blank_ages(&by, &mut codes, 1);
        assert_eq!(codes, [1, 0, 0, 6, 0, 0]);
    }
}
