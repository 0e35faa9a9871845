//! From numbers of drawn requests to codes.

use crate::fit::coder::Coder;
use crate::schema::rule::Rule;

/// Numbers from 0 on whose codes are looked up: all ops, and nearly all runs.
const SMALL: i64 = 1 << 8;

/// The codes of one dimension's numbers.
pub(crate) struct Codes {
    small: Vec<u32>,
    coder: Coder,
}

impl Codes {
    pub fn new(rule: &Rule) -> Codes {
        Codes { small: (0..SMALL).map(|value| rule.code(value)).collect(), coder: Coder::new(rule) }
    }

    /// The code of a number; what the rule never gives if it has none.
    #[inline]
    pub fn code(&mut self, value: i64) -> u32 {
        match self.small.get(value as usize) {
            Some(&code) => code,
            None => self.large(value),
        }
    }

    #[cold]
    fn large(&mut self, value: i64) -> u32 {
        self.coder.code(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_trace::NONE;

    #[test]
    fn numbers_have_the_codes_of_the_rule() {
        let rule = Rule::Exact { values: vec![3, 300], rest: Box::new(Rule::Log2 { sub: 4, signed: true }) };
        let mut codes = Codes::new(&rule);
        for value in [NONE, -300, -1, 0, 3, 255, 256, 300, i64::MAX] {
            assert_eq!(codes.code(value), rule.code(value), "{value}");
        }
    }
}
