//! Which of the dimensions that lead to an offset decides, request by request.

use crate::feature::{Context, PAGE};
use crate::rule::Rule;
use loadstone_trace::NONE;

/// Blanks the codes of dimensions that do not decide: jump and region, of which one sets the offset,
/// and the alignment where the jump leaves it no choice.
pub(crate) struct Masks {
    /// Jump and region, when the distance chooses between them.
    pub near: Option<(usize, usize)>,
    /// Longest jump that counts as near; the object's region width where not given.
    pub far: Option<i64>,
    /// Jump and alignment, when both set.
    pub aligned: Option<(usize, usize)>,
    /// By code of the jump: 0 not looked at yet, 1 its bucket spans a page, 2 it does not.
    spans: Vec<u8>,
}

impl Masks {
    pub fn new(near: Option<(usize, usize)>, far: Option<i64>, aligned: Option<(usize, usize)>) -> Masks {
        Masks { near, far, aligned, spans: Vec::new() }
    }

    /// Blanks jumps or regions. `codes` are (jump, region).
    pub fn near(&self, jumps: &[i64], objects: &[u32], context: &Context, codes: (&mut [u32], &mut [u32])) {
        for (i, (&jump, &object)) in jumps.iter().zip(objects).enumerate() {
            if self.is_near(jump, object, context) { codes.1[i] = 0 } else { codes.0[i] = 0 }
        }
    }

    /// Whether a jump is short enough to decide the offset.
    #[inline]
    pub fn is_near(&self, jump: i64, object: u32, context: &Context) -> bool {
        jump != NONE
            && jump.unsigned_abs() <= self.far.map_or_else(|| 1 << context.shift(object), |f| f as u64)
    }

    /// Blanks the alignment where the jump's bucket is narrower than a page.
    pub fn aligned(&mut self, rule: &Rule, jumps: &[u32], aligns: &mut [u32]) {
        for (&jump, align) in jumps.iter().zip(aligns) {
            if jump != 0 && !self.spans_a_page(rule, jump) {
                *align = 0;
            }
        }
    }

    fn spans_a_page(&mut self, rule: &Rule, code: u32) -> bool {
        match self.spans.get(code as usize) {
            Some(1) => true,
            Some(2) => false,
            known => {
                let spans = spans_a_page(rule, code);
                // Codes are small but for odd rules, which are not worth remembering.
                if known.is_some() || code < 1 << 16 {
                    if self.spans.len() <= code as usize {
                        self.spans.resize(code as usize + 1, 0);
                    }
                    self.spans[code as usize] = if spans { 1 } else { 2 };
                }
                spans
            }
        }
    }
}

/// Whether a bucket holds every remainder of a page.
fn spans_a_page(rule: &Rule, code: u32) -> bool {
    rule.range(code).is_some_and(|r| r.last.saturating_sub(r.first) >= PAGE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_jumps_leave_no_choice_of_alignment() {
        let rule = Rule::Log2 { sub: 1, signed: true };
        let mut masks = Masks::new(None, None, Some((0, 1)));
        let jumps: Vec<u32> = [NONE, 0, 700, 5000, -5000, 1 << 30].map(|j| rule.code(j)).into();
        let mut aligns = vec![7; 6];
        for _ in 0..2 {
            masks.aligned(&rule, &jumps, &mut aligns);
            assert_eq!(aligns, [7, 0, 0, 7, 7, 7]);
        }
    }
}
