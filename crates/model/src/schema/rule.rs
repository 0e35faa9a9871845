//! Bucket rules: how a number becomes a small code, and which numbers a code stands for.
//!
//! Code 0 always means "no value" (the request has no such number, or another dimension decides);
//! a rule's own buckets are the codes from 1 on.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::{Field, Kind};
use loadstone_trace::NONE;
use serde::{Deserialize, Serialize};

/// Largest code a dimension may have, so that codes fit the file's int32 columns.
pub const MAX_CODE: u32 = i32::MAX as u32 - 1;

/// What [`Rule::code`] answers for a value it has no code for.
pub const OVER: u32 = u32::MAX;

/// Most values an exact rule keeps.
pub const MAX_EXACT: usize = 4096;

/// Most values a category rule keeps.
pub const MAX_CATEGORIES: usize = 1 << 22;

/// The numbers a code stands for, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Smallest number.
    pub first: i64,
    /// Largest number.
    pub last: i64,
}

/// How a dimension puts numbers into buckets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Rule {
    /// Buckets of equal width, the first one starting at zero.
    Linear {
        /// Width of a bucket in the feature's unit.
        width: i64,
        /// Whether negative numbers occur; they mirror in codes between the positive ones.
        #[serde(default)]
        signed: bool,
    },
    /// Buckets whose width grows with the number: `sub` of them in every octave, zero alone.
    Log2 {
        /// Buckets per octave, a power of two; numbers below `2 * sub` have a bucket each.
        sub: u32,
        /// Whether negative numbers occur: sign and magnitude.
        #[serde(default)]
        signed: bool,
    },
    /// A bucket for each of some common values; all others by the inner rule.
    Exact {
        /// The values, ascending.
        values: Vec<i64>,
        /// The rule of all other values.
        rest: Box<Rule>,
    },
    /// A bucket for every value, in order of first appearance.
    Category {
        /// The values by bucket.
        values: Vec<i64>,
    },
}

/// Interleaves negative with positive numbers: 0, 1, -1, 2, -2, ... become 0, 1, 2, 3, 4.
fn zigzag(bucket: u64, negative: bool) -> u64 {
    if bucket == 0 { 0 } else { bucket * 2 - u64::from(!negative) }
}

/// The inverse of [`zigzag`].
fn unzigzag(code: u64) -> (u64, bool) {
    (code.div_ceil(2), code != 0 && code.is_multiple_of(2))
}

#[inline(always)]
pub(crate) fn log2_bucket(magnitude: u64, s: u32) -> u64 {
    if magnitude < 2 << s {
        return magnitude;
    }
    let shift = 63 - magnitude.leading_zeros() - s;
    (u64::from(shift) << s) + (magnitude >> shift)
}

fn log2_range(bucket: u64, s: u32) -> Option<(u64, u64)> {
    if bucket < 2 << s {
        return Some((bucket, bucket));
    }
    let shift = (bucket >> s) - 1;
    let top = bucket - (shift << s);
    if shift + u64::from(s) + 1 > 63 {
        return None;
    }
    Some((top << shift, ((top + 1) << shift) - 1))
}

fn to_code(bucket: u64) -> u32 {
    if bucket >= u64::from(MAX_CODE) { OVER } else { bucket as u32 + 1 }
}

impl Rule {
    /// The code of a number; [`OVER`] if the rule has none, 0 for [`NONE`].
    ///
    /// Negative numbers of an unsigned rule have none either.
    pub fn code(&self, value: i64) -> u32 {
        if value == NONE {
            return 0;
        }
        match self {
            Rule::Linear { width, signed } => {
                if value >= 0 {
                    let bucket = (value / width) as u64;
                    to_code(if *signed { bucket.saturating_mul(2) } else { bucket })
                } else if *signed {
                    // -1 ..= -width is the first bucket below zero.
                    to_code((((-(value + 1)) / width) as u64).saturating_mul(2).saturating_add(1))
                } else {
                    OVER
                }
            }
            Rule::Log2 { sub, signed } => {
                let bucket = log2_bucket(value.unsigned_abs(), sub.trailing_zeros());
                match (signed, value < 0) {
                    (true, negative) => to_code(zigzag(bucket, negative)),
                    (false, false) => to_code(bucket),
                    (false, true) => OVER,
                }
            }
            Rule::Exact { values, rest } => match values.binary_search(&value) {
                Ok(i) => i as u32 + 1,
                Err(_) => match rest.code(value) {
                    OVER => OVER,
                    code => code.checked_add(values.len() as u32).filter(|c| *c <= MAX_CODE).unwrap_or(OVER),
                },
            },
            Rule::Category { values } => {
                values.iter().position(|v| *v == value).map_or(OVER, |i| i as u32 + 1)
            }
        }
    }

    /// The numbers of a code; `None` for code 0 and for codes the rule never gives.
    ///
    /// For an exact rule's inner codes the range may contain some of its exact values
    /// ([`Rule::exceptions`]), which do not belong to it.
    pub fn range(&self, code: u32) -> Option<Range> {
        if code == 0 || code > MAX_CODE {
            return None;
        }
        let bucket = u64::from(code) - 1;
        match self {
            Rule::Linear { width, signed: false } => {
                let first = width.checked_mul(bucket as i64)?;
                Some(Range { first, last: first.saturating_add(width - 1) })
            }
            Rule::Linear { width, signed: true } => {
                let first = width.checked_mul((bucket / 2) as i64)?;
                let last = first.saturating_add(width - 1);
                if bucket.is_multiple_of(2) {
                    Some(Range { first, last })
                } else {
                    Some(Range { first: -last - 1, last: -first - 1 })
                }
            }
            Rule::Log2 { sub, signed } => {
                let (bucket, negative) = if *signed { unzigzag(bucket) } else { (bucket, false) };
                let (first, last) = log2_range(bucket, sub.trailing_zeros())?;
                let (first, last) = (first as i64, last as i64);
                Some(if negative { Range { first: -last, last: -first } } else { Range { first, last } })
            }
            Rule::Exact { values, rest } => match values.get(bucket as usize) {
                Some(&v) => Some(Range { first: v, last: v }),
                None => rest.range(code - values.len() as u32),
            },
            Rule::Category { values } => values.get(bucket as usize).map(|&v| Range { first: v, last: v }),
        }
    }

    /// The exact values inside the range of an inner code: numbers that have codes of their own.
    pub fn exceptions(&self, code: u32) -> &[i64] {
        match (self, self.range(code)) {
            (Rule::Exact { values, .. }, Some(range)) if code as usize > values.len() => {
                let from = values.partition_point(|v| *v < range.first);
                let to = values.partition_point(|v| *v <= range.last);
                &values[from..to]
            }
            _ => &[],
        }
    }

    /// Whether its numbers can be the feature's: not negative where that is not, and ops and objects
    /// within their types.
    pub(crate) fn suits(&self, kind: &Kind) -> bool {
        let most = match kind.field {
            Field::Op => 255,
            Field::Object => i64::from(u32::MAX),
            _ => i64::MAX,
        };
        let fits = |v: &i64| kind.signed || (0..=most).contains(v);
        match self {
            Rule::Linear { signed, .. } | Rule::Log2 { signed, .. } => *signed == kind.signed,
            Rule::Exact { values, rest } => values.iter().all(fits) && rest.suits(kind),
            Rule::Category { values } => values.iter().all(fits),
        }
    }

    /// Refuses a rule that cannot have been learned (files are untrusted).
    ///
    /// # Errors
    /// [`ErrorKind::Asked`] with what no fit makes.
    pub fn check(&self) -> Result<()> {
        match self {
            Rule::Linear { width, .. } if *width < 1 => {
                Err(Error::new(ErrorKind::Asked, format!("linear width {width} is not positive")))
            }
            Rule::Log2 { sub, .. } if !sub.is_power_of_two() || *sub > 4096 => Err(Error::new(
                ErrorKind::Asked,
                format!("{sub} buckets per octave: not a power of two up to 4096"),
            )),
            Rule::Exact { values, rest } => {
                if values.len() > MAX_EXACT || values.windows(2).any(|w| w[0] >= w[1]) {
                    return Err(Error::new(
                        ErrorKind::Asked,
                        "exact values are not ascending, or are too many",
                    ));
                }
                if values.first() == Some(&NONE)
                    || matches!(**rest, Rule::Exact { .. } | Rule::Category { .. })
                {
                    return Err(Error::new(
                        ErrorKind::Asked,
                        "an exact rule needs a linear or log2 rule for the rest",
                    ));
                }
                rest.check()
            }
            Rule::Category { values } => {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                if values.len() > MAX_CATEGORIES || sorted.windows(2).any(|w| w[0] == w[1]) {
                    return Err(Error::new(ErrorKind::Asked, "category values repeat, or are too many"));
                }
                match sorted.first() {
                    Some(&NONE) => Err(Error::new(
                        ErrorKind::Asked,
                        "a category cannot be the value that stands for none",
                    )),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// A rule as a person asks for it, before anything is learned: `log2:4`, `linear:4096`, `exact+log2:2`, `category`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSpec {
    /// Whether common values are learned and get buckets of their own.
    pub exact: bool,
    /// The rule of all (other) values, with `signed` still to be set by the feature.
    pub base: Rule,
}

impl std::str::FromStr for RuleSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::new(ErrorKind::Asked, format!("{text:?} is not a bucket rule"))
                .help("write log2:SUB, linear:WIDTH, exact+log2:SUB, exact+linear:WIDTH or category")
        };
        let (exact, base) = match text.strip_prefix("exact+") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (kind, number) = base.split_once(':').unwrap_or((base, ""));
        let base = match (kind, number) {
            ("category", "") if !exact => Rule::Category { values: Vec::new() },
            ("linear", n) => Rule::Linear { width: n.parse().map_err(|_| wrong())?, signed: false },
            ("log2", "") => Rule::Log2 { sub: 1, signed: false },
            ("log2", n) => Rule::Log2 { sub: n.parse().map_err(|_| wrong())?, signed: false },
            _ => return Err(wrong()),
        };
        base.check()?;
        Ok(RuleSpec { exact, base })
    }
}

impl std::fmt::Display for RuleSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let exact = if self.exact { "exact+" } else { "" };
        match &self.base {
            Rule::Linear { width, .. } => write!(f, "{exact}linear:{width}"),
            Rule::Log2 { sub, .. } => write!(f, "{exact}log2:{sub}"),
            _ => f.write_str("category"),
        }
    }
}

impl RuleSpec {
    /// The rule with the values learned for it.
    pub(crate) fn learned(&self, signed: bool, values: Vec<i64>) -> Rule {
        let base = match self.base {
            Rule::Linear { width, .. } => Rule::Linear { width, signed },
            Rule::Log2 { sub, .. } => Rule::Log2 { sub, signed },
            _ => return Rule::Category { values: Vec::new() },
        };
        if self.exact && !values.is_empty() { Rule::Exact { values, rest: Box::new(base) } } else { base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules() -> impl Strategy<Value = Rule> {
        let base = prop_oneof![
            (1i64..1 << 40, any::<bool>()).prop_map(|(width, signed)| Rule::Linear { width, signed }),
            (0u32..8, any::<bool>()).prop_map(|(s, signed)| Rule::Log2 { sub: 1 << s, signed }),
        ];
        (base, proptest::collection::btree_set(-5000i64..5000, 0..20)).prop_map(|(rest, values)| {
            if values.is_empty() {
                rest
            } else {
                Rule::Exact { values: values.into_iter().collect(), rest: Box::new(rest) }
            }
        })
    }

    fn numbers() -> impl Strategy<Value = i64> {
        prop_oneof![-6000i64..6000, (i64::MIN + 1)..i64::MAX]
    }

    proptest! {
        #[test]
        fn a_number_lies_in_the_range_of_its_code(rule in rules(), value in numbers()) {
            let code = rule.code(value);
            if code != OVER {
                let range = rule.range(code).expect("a code that was given has a range");
                prop_assert!(range.first <= value && value <= range.last);
                prop_assert!(!rule.exceptions(code).contains(&value));
            }
        }

        #[test]
        fn every_number_of_a_range_has_that_code(rule in rules(), code in 1u32..5000, part in 0.0f64..1.0) {
            if let Some(range) = rule.range(code) {
                let inside = range.first.saturating_add(((range.last as f64 - range.first as f64) * part) as i64);
                for value in [range.first, inside.clamp(range.first, range.last), range.last] {
                    if !rule.exceptions(code).contains(&value) && rule.code(value) != OVER {
                        prop_assert_eq!(rule.code(value), code);
                    }
                }
            }
        }

        #[test]
        fn neighbouring_log2_buckets_touch(s in 0u32..10, bucket in 0u64..500) {
            if let (Some((_, last)), Some((first, _))) = (log2_range(bucket, s), log2_range(bucket + 1, s)) {
                prop_assert_eq!(last + 1, first);
            }
        }
    }

    #[test]
    fn zero_has_a_bucket_of_its_own_and_none_has_no_value() {
        let rule = Rule::Log2 { sub: 2, signed: true };
        assert_eq!(rule.range(rule.code(0)), Some(Range { first: 0, last: 0 }));
        assert_eq!(rule.code(NONE), 0);
        assert_eq!(rule.range(0), None);
    }

    #[test]
    fn rules_are_read_as_people_write_them() {
        let spec: RuleSpec = "exact+log2:4".parse().unwrap();
        assert_eq!(spec, RuleSpec { exact: true, base: Rule::Log2 { sub: 4, signed: false } });
        for wrong in ["log3", "log2:3", "linear:0", "linear", "exact+category", ""] {
            assert!(wrong.parse::<RuleSpec>().is_err(), "{wrong}");
        }
    }
}
