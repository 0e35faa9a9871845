//! Rules made fast: columns of numbers to columns of codes.

use crate::schema::rule::{MAX_CATEGORIES, MAX_CODE, OVER, Rule, log2_bucket};
use loadstone_trace::NONE;
use rustc_hash::FxHashMap;

/// Finds one of a few values with one multiplication and usually one comparison.
struct ExactTable {
    slots: Vec<(i64, u32)>,
    shift: u32,
}

impl ExactTable {
    fn new(values: &[i64]) -> Self {
        // Eight slots per value keep probes short.
        let bits = (values.len() * 8).next_power_of_two().trailing_zeros().max(4);
        let mut table = ExactTable { slots: vec![(NONE, 0); 1 << bits], shift: 64 - bits };
        for (i, &value) in values.iter().enumerate() {
            let mut slot = table.slot(value);
            while table.slots[slot].1 != 0 {
                slot = (slot + 1) & (table.slots.len() - 1);
            }
            table.slots[slot] = (value, i as u32 + 1);
        }
        table
    }

    fn slot(&self, value: i64) -> usize {
        ((value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, value: i64) -> u32 {
        let mut slot = self.slot(value);
        loop {
            let (v, code) = self.slots[slot];
            if code == 0 || v == value {
                return code;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

enum Base {
    Linear { width: i64, signed: bool },
    Log2 { s: u32, signed: bool },
    Category { small: Vec<u32>, large: FxHashMap<i64, u32>, values: Vec<i64> },
}

/// A rule ready for many numbers; a category rule learns new values as they come.
pub(crate) struct Coder {
    exact: Option<ExactTable>,
    base: Base,
    skip: u32,
}

impl Coder {
    pub fn new(rule: &Rule) -> Self {
        match rule {
            Rule::Exact { values, rest } => {
                let mut coder = Coder::new(rest);
                coder.exact = Some(ExactTable::new(values));
                coder.skip = values.len() as u32;
                coder
            }
            Rule::Linear { width, signed } => {
                Coder { exact: None, base: Base::Linear { width: *width, signed: *signed }, skip: 0 }
            }
            Rule::Log2 { sub, signed } => {
                Coder { exact: None, base: Base::Log2 { s: sub.trailing_zeros(), signed: *signed }, skip: 0 }
            }
            Rule::Category { values } => {
                let base =
                    Base::Category { small: Vec::new(), large: FxHashMap::default(), values: Vec::new() };
                let mut coder = Coder { exact: None, base, skip: 0 };
                for &value in values {
                    coder.code(value);
                }
                coder
            }
        }
    }

    /// Same as [`Rule::code`], except that a category learns.
    #[inline(always)]
    pub fn code(&mut self, value: i64) -> u32 {
        if value == NONE {
            return 0;
        }
        if let Some(exact) = &self.exact {
            let code = exact.find(value);
            if code != 0 {
                return code;
            }
        }
        let bucket = match &mut self.base {
            Base::Linear { width, signed } => match (*signed, value < 0) {
                (false, false) => (value / *width) as u64,
                (true, false) => ((value / *width) as u64).saturating_mul(2),
                (true, true) => ((-(value + 1) / *width) as u64).saturating_mul(2).saturating_add(1),
                (false, true) => return OVER,
            },
            Base::Log2 { s, signed } => {
                let bucket = log2_bucket(value.unsigned_abs(), *s);
                match (*signed, value < 0) {
                    (false, false) => bucket,
                    (false, true) => return OVER,
                    (true, negative) => (bucket * 2).saturating_sub(u64::from(!negative)),
                }
            }
            Base::Category { small, large, values } => return category(small, large, values, value),
        };
        let code = bucket + 1 + u64::from(self.skip);
        if code > u64::from(MAX_CODE) { OVER } else { code as u32 }
    }

    /// Codes of a column.
    #[inline(always)]
    pub fn column(&mut self, values: &[i64], codes: &mut Vec<u32>) {
        // Plain loops: what iterators call is compiled on its own, not for the processor this is compiled for.
        codes.resize(values.len(), 0);
        let both = codes.iter_mut().zip(values);
        match (&self.exact, &self.base) {
            // The most common rule without values of its own; most other codes end at the exact table.
            (None, &Base::Log2 { s, signed: false }) => {
                for (code, &value) in both {
                    let bucket = log2_bucket(value.unsigned_abs(), s) + 1;
                    *code = match value {
                        NONE => 0,
                        0.. if bucket <= u64::from(MAX_CODE) => bucket as u32,
                        _ => OVER,
                    };
                }
            }
            // Neighbours are often equal: an op, an object, an alignment.
            _ => {
                let mut last = (NONE, 0);
                for (code, &value) in both {
                    if value != last.0 {
                        last = (value, self.code(value));
                    }
                    *code = last.1;
                }
            }
        }
    }

    /// What a category rule has learned.
    pub fn categories(&self) -> Option<&[i64]> {
        match &self.base {
            Base::Category { values, .. } => Some(values),
            _ => None,
        }
    }
}

#[inline]
fn category(small: &mut Vec<u32>, large: &mut FxHashMap<i64, u32>, values: &mut Vec<i64>, value: i64) -> u32 {
    let index = usize::try_from(value).ok().filter(|i| *i < 1 << 16);
    let known = match index {
        Some(i) => small.get(i).copied().unwrap_or(0),
        None => large.get(&value).copied().unwrap_or(0),
    };
    if known != 0 {
        return known;
    }
    if values.len() >= MAX_CATEGORIES {
        return OVER;
    }
    values.push(value);
    let code = values.len() as u32;
    match index {
        Some(i) => {
            if small.len() <= i {
                small.resize(i + 1, 0);
            }
            small[i] = code;
        }
        None => {
            large.insert(value, code);
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fast_way_gives_the_same_codes(
            values in proptest::collection::btree_set(-300i64..300, 1..40),
            numbers in proptest::collection::vec(prop_oneof![-400i64..400, (i64::MIN + 1)..i64::MAX], 1..200),
            s in 0u32..5, width in 1i64..1000, signed in any::<bool>(),
        ) {
            let values: Vec<i64> = values.into_iter().collect();
            for base in [Rule::Log2 { sub: 1 << s, signed }, Rule::Linear { width, signed }] {
                for rule in [base.clone(), Rule::Exact { values: values.clone(), rest: Box::new(base) }] {
                    let mut coder = Coder::new(&rule);
                    for &number in &numbers {
                        prop_assert_eq!(coder.code(number), rule.code(number), "{:?} {}", rule, number);
                    }
                }
            }
        }
    }

    #[test]
    fn categories_are_learned_in_order() {
        let mut coder = Coder::new(&Rule::Category { values: vec![7] });
        assert_eq!([7, -1, 1 << 40, 7, -1].map(|v| coder.code(v)), [1, 2, 3, 1, 2]);
        assert_eq!(coder.categories(), Some(&[7, -1, 1 << 40][..]));
    }
}
