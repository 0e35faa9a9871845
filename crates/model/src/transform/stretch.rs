//! The numbers of a dimension multiplied: buckets become the buckets they then fall into.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Matrix, Model, too_wide};
use crate::schema::cells::{Cells, Layout, bits_for};
use crate::schema::header::Table;
use crate::schema::rule::{OVER, Rule};
use rustc_hash::FxHashMap;

/// Most buckets that one is spread over.
const MOST: usize = 4096;

/// How numbers are multiplied.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// By how much.
    pub factor: f64,
    /// What results are multiples of.
    pub grain: i64,
    /// Whether a whole number `n` stands for all of `n..n + 1`, as the number of a region does.
    pub covers: bool,
}

impl Stretch {
    /// What a number becomes.
    pub fn number(&self, value: i64) -> i64 {
        let grain = self.grain as f64;
        let least = if value > 0 { grain } else { 0.0 };
        ((value as f64 * self.factor / grain).round() * grain).max(least) as i64
    }

    /// The rule for the new numbers.
    fn rule(&self, rule: &Rule) -> Rule {
        match rule {
            Rule::Exact { values, rest } if !self.covers => {
                let mut values: Vec<i64> = values.iter().map(|&value| self.number(value)).collect();
                values.sort_unstable();
                values.dedup();
                Rule::Exact { values, rest: rest.clone() }
            }
            Rule::Exact { rest, .. } => (**rest).clone(),
            other => other.clone(),
        }
    }

    /// The buckets of the new rule that a bucket of the old one falls into, with their shares, which add up to 1.
    fn shares(&self, old: &Rule, new: &Rule, code: u32) -> Result<Vec<(u32, f64)>> {
        let Some(range) = old.range(code) else { return Ok(vec![(code, 1.0)]) };
        let fits = |code: u32| if code == OVER { Err(self.no_bucket(range.last)) } else { Ok(code) };
        if range.first == range.last && !self.covers {
            return Ok(vec![(fits(new.code(self.number(range.first)))?, 1.0)]);
        }
        let (inner, skipped) = match new {
            Rule::Exact { values, rest } => (&**rest, values.len() as u32),
            rule => (rule, 0),
        };
        let (mut from, mut to) = (range.first as f64 * self.factor, (range.last as f64 + 1.0) * self.factor);
        if !self.covers && range.first > 0 {
            // What was something does not become nothing.
            from = from.max(self.grain as f64);
            to = to.max(from + 1.0);
        }
        if to >= i64::MAX as f64 {
            return Err(self.no_bucket(range.last));
        }
        let (mut at, mut shares) = (from, Vec::new());
        while at < to && shares.len() < MOST {
            let code = fits(inner.code(at as i64))?;
            let Some(bucket) = inner.range(code) else { break };
            let end = (bucket.last as f64 + 1.0).min(to);
            shares.push((code + skipped, (end - at) / (to - from)));
            at = end;
        }
        match shares.len() {
            MOST => Err(Error::new(
                ErrorKind::Asked,
                format!("buckets would be spread over more than {MOST} others"),
            )
            .help("ask for less of a change")),
            _ => Ok(shares),
        }
    }

    fn no_bucket(&self, number: i64) -> Error {
        Error::new(ErrorKind::Asked, format!("{number} times {} is more than any bucket holds", self.factor))
            .help("ask for less of a change")
    }
}

/// Counts of one old bucket, handed on to the new ones by their shares.
struct Spread {
    codes: Vec<(u32, f64)>,
    /// Handed on so far: in all, and to each.
    all: u64,
    given: Vec<u64>,
}

impl Spread {
    fn new(codes: Vec<(u32, f64)>) -> Spread {
        Spread { given: vec![0; codes.len()], codes, all: 0 }
    }

    /// Hands on some requests, so that after all of them each bucket has its share.
    fn next(&mut self, count: u64, mut to: impl FnMut(u32, u64)) {
        self.all += count;
        let (all, mut left) = (self.all as f64, count);
        let mut now = vec![0u64; self.codes.len()];
        for ((now, given), (_, share)) in now.iter_mut().zip(&self.given).zip(&self.codes) {
            let due = (all * share) as u64;
            *now = due.saturating_sub(*given).min(left);
            left -= *now;
        }
        // The rest, less than one for each bucket, to those that lack most.
        while left > 0 {
            let lack = |i: usize| all * self.codes[i].1 - (self.given[i] + now[i]) as f64;
            let most = (0..now.len()).max_by(|&a, &b| lack(a).total_cmp(&lack(b))).unwrap_or(0);
            now[most] += 1;
            left -= 1;
        }
        for ((now, given), (code, _)) in now.iter().zip(&mut self.given).zip(&self.codes) {
            *given += now;
            if *now > 0 {
                to(*code, *now);
            }
        }
    }
}

impl Model {
    /// The model with keys no wider than its codes need.
    pub(super) fn tight(mut self) -> Result<Model> {
        let mut largest = vec![0u32; self.header.dimensions.len()];
        for (d, largest) in largest.iter_mut().enumerate() {
            let placed = self.header.tables.iter().any(|table| table.dimensions.contains(&d));
            if placed {
                *largest = self.marginal(d, None)?.keys.last().map_or(0, |&code| code as u32);
            }
        }
        let layouts = Model::tight_layouts(&self.header, &largest)?;
        for matrix in &mut self.matrices {
            for (t, cells) in matrix.tables.iter_mut().enumerate() {
                cells.rekey(&self.layouts[t], &layouts[t]);
            }
        }
        self.layouts = layouts;
        Ok(self)
    }

    /// The model with the numbers of a dimension multiplied. What belongs to the dimension elsewhere in the header
    /// is the caller's.
    ///
    /// # Errors
    /// When a number grows beyond all buckets, or keys beyond 64 bits.
    pub(super) fn stretched(&self, dimension: usize, stretch: &Stretch) -> Result<Model> {
        let mut header = self.header.clone();
        let rule = stretch.rule(&header.dimensions[dimension].rule);
        let old = std::mem::replace(&mut header.dimensions[dimension].rule, rule.clone());
        let changed = &mut header.dimensions[dimension];
        changed.grain = stretch.grain;
        changed.largest = changed
            .largest
            .map(|most| if stretch.covers { last(stretch, most) } else { stretch.number(most) });
        let mut spreads: FxHashMap<u32, Spread> = FxHashMap::default();
        let marginal = self.marginal(dimension, None)?;
        let mut largest = 0;
        for &code in &marginal.keys {
            let shares = stretch.shares(&old, &rule, code as u32)?;
            largest = shares.iter().map(|share| share.0).fold(largest, u32::max);
            spreads.insert(code as u32, Spread::new(shares));
        }
        let layouts = (header.tables.iter().zip(&self.layouts))
            .map(|(table, layout)| relaid(&header, table, layout, dimension, largest))
            .collect::<Result<Vec<Layout>>>()?;
        let matrices = self.matrices.iter().map(|matrix| {
            let tables = header.tables.iter().enumerate().map(|(t, table)| {
                let (old, new) = (&self.layouts[t], &layouts[t]);
                let cells = &matrix.tables[t];
                let Some(at) = table.dimensions.iter().position(|d| *d == dimension) else {
                    return cells.clone();
                };
                let mut pairs = Vec::with_capacity(cells.len());
                for (&key, &count) in cells.keys.iter().zip(&cells.counts) {
                    let pack = |code: u32| {
                        new.pack((0..old.len()).map(|d| if d == at { code } else { old.code(key, d) }))
                    };
                    if let Some(spread) = spreads.get_mut(&old.code(key, at)) {
                        spread.next(count, |code, n| pairs.push((pack(code), n)));
                    }
                }
                Cells::from_pairs(pairs)
            });
            Matrix { tables: tables.collect() }
        });
        let matrices = matrices.collect();
        Ok(Model { header, layouts, matrices, links: Vec::new() })
    }
}

/// The last number that the largest becomes.
fn last(stretch: &Stretch, most: i64) -> i64 {
    (((most as f64 + 1.0) * stretch.factor).ceil() as i64 - 1).max(0)
}

/// The layout of a table when a dimension's largest code has become another.
fn relaid(
    header: &crate::schema::header::Header,
    table: &Table,
    layout: &Layout,
    dimension: usize,
    largest: u32,
) -> Result<Layout> {
    let dimensions = table.dimensions.iter().enumerate();
    let bits: Vec<u8> =
        dimensions.map(|(at, &d)| if d == dimension { bits_for(largest) } else { layout.bits(at) }).collect();
    Layout::new(&bits).ok_or_else(|| too_wide(header, table.dimensions.iter().copied(), &bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up_and_means_are_multiplied(
            code in 1u32..90, factor in 0.1f64..20.0, sub in 0u32..4, linear in any::<bool>(),
        ) {
            let base = Rule::Log2 { sub: 1 << sub, signed: false };
            let rule = if linear { Rule::Linear { width: 100, signed: false } } else { base };
            prop_assume!(rule.range(code).is_some_and(|r| r.last < 1 << 40));
            let stretch = Stretch { factor, grain: 1, covers: true };
            let shares = stretch.shares(&rule, &stretch.rule(&rule), code).unwrap();
            let sum: f64 = shares.iter().map(|share| share.1).sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{:?}", shares);
            // What falls into a bucket lies in the range it came from, multiplied.
            let old = rule.range(code).unwrap();
            for (code, _) in shares {
                let new = rule.range(code).unwrap();
                prop_assert!(new.last as f64 + 1.0 > old.first as f64 * factor - 1e-6);
                prop_assert!((new.first as f64) < (old.last as f64 + 1.0) * factor + 1e-6);
            }
        }

        #[test]
        fn nothing_is_lost_where_it_is_spread(counts in proptest::collection::vec(1u64..50, 1..60), n in 1usize..6) {
            let shares: Vec<(u32, f64)> = (1..=n as u32).map(|code| (code, 1.0 / n as f64)).collect();
            let mut spread = Spread::new(shares);
            let mut given = vec![0u64; n];
            for &count in &counts {
                let mut now = 0;
                spread.next(count, |code, n| {
                    given[code as usize - 1] += n;
                    now += n;
                });
                prop_assert_eq!(now, count);
            }
            let all: u64 = counts.iter().sum();
            for given in given {
                prop_assert!((given as f64 - all as f64 / n as f64).abs() <= n as f64, "{} of {}", given, all);
            }
        }
    }

    #[test]
    fn common_sizes_stay_common() {
        let rule = Rule::Exact {
            values: vec![4096, 6144, 65536],
            rest: Box::new(Rule::Log2 { sub: 1, signed: false }),
        };
        let stretch = Stretch { factor: 0.1, grain: 512, covers: false };
        let new = stretch.rule(&rule);
        let Rule::Exact { values, .. } = &new else { panic!("{new:?}") };
        assert_eq!(values, &[512, 6656]);
        // 4096 and 6144 become one block, and none becomes nothing.
        assert_eq!(stretch.shares(&rule, &new, 1).unwrap(), [(1, 1.0)]);
        assert_eq!(stretch.shares(&rule, &new, 2).unwrap(), [(1, 1.0)]);
        assert_eq!(stretch.shares(&rule, &new, 3).unwrap(), [(2, 1.0)]);
        assert_eq!(stretch.shares(&rule, &new, 0).unwrap(), [(0, 1.0)]);
    }
}
