//! Models that may be published: no name, host, date or rare value survives.

use crate::error::Result;
use crate::feature::{FeatureId, Field};
use crate::model::{Matrix, Model};
use crate::schema::cells::Cells;
use crate::schema::header::Source;
use crate::schema::mean_sizes::code_of;
use crate::schema::rule::{MAX_EXACT, Range, Rule, RuleSpec};
use loadstone_trace::Counts;
use std::collections::BTreeMap;

impl Model {
    /// The model without what could tell where it comes from.
    ///
    /// Names of objects, the time of the trace and of the fitting, the reader's warnings (they may hold names) and its
    /// counts are left out. Every exact value seen fewer than `least` times joins the bucket it would have been in, and
    /// buckets are joined where they would give so rare numbers more exactly than to a 32nd. So rare flags and results
    /// are left out. Lengths of files are never exact, however many requests a file has. Largest numbers, extents
    /// and the length are rounded up to the end of their bucket, region (or 32nd) and window, and a window's length to
    /// three digits. What is left is counts of buckets and of windows.
    ///
    /// # Errors
    /// When the keys of a table no longer fit 64 bits, which joining buckets does not bring about.
    pub fn published(&self, least: u64) -> Result<Model> {
        let mut header = self.header.clone();
        header.chain = None;
        let mut maps = Vec::new();
        let mut largest = vec![0u32; header.dimensions.len()];
        for (d, dimension) in header.dimensions.iter_mut().enumerate() {
            let marginal = self.marginal(d, None)?;
            // Every request of a file repeats its length, so many requests may still be one file.
            let of_file = OF_FILES.contains(&dimension.feature.kind().name);
            let least = if of_file { u64::MAX } else { least };
            let map = rarer(dimension.feature, &dimension.rule, &marginal, least);
            if let Some((rule, _)) = &map {
                dimension.rule = rule.clone();
            }
            let code = |code: u32| map.as_ref().map_or(code, |(_, map)| map(code));
            largest[d] = marginal.keys.iter().map(|&key| code(key as u32)).max().unwrap_or(0);
            let ends = |most: i64| dimension.rule.range(dimension.rule.code(most)).map(|range| range.last);
            dimension.largest = match dimension.rule {
                // A rare category that was left out must not be told here.
                Rule::Category { ref values } => dimension.largest.and(values.iter().copied().max()),
                _ => dimension.largest.and_then(ends),
            };
            maps.push(map.map(|(_, map)| map));
        }
        for object in &mut header.objects {
            object.name = String::new();
            // One request may have reached that far, and nothing tells it more exactly than a 32nd.
            let step = (1i64 << object.region_shift)
                .max(object.extent.clamp(1, 1 << 62).cast_unsigned().next_power_of_two() as i64 / 32);
            object.extent = object.extent.saturating_add(step - 1) / step * step;
        }
        if let Some(sizes) = header.dimensions.iter().find(|d| d.feature.kind().field == Field::Size) {
            header.mean_sizes.retain(|mean| mean.requests >= least && code_of(mean, &sizes.rule).is_some());
        }
        header.distances = header.distances.map(|distances| distances.coarser(least));
        // A usual window is a share of the trace's length, and would tell it to the microsecond.
        header.windows.length_ns = rounded_up(header.windows.length_ns);
        let span_ns = header.windows.span_ns();
        header.source = Source {
            tool: header.source.tool,
            requests: header.source.requests,
            span_ns,
            counts: Counts { requests: header.source.requests, ..Counts::default() },
            ..Source::default()
        };
        let layouts = Model::tight_layouts(&header, &largest)?;
        let matrices = (self.matrices.iter())
            .map(|matrix| {
                let tables = (0..header.tables.len()).map(|t| {
                    let (old, new, table) = (&self.layouts[t], &layouts[t], &header.tables[t]);
                    let pack = |key: u64| {
                        new.pack(table.dimensions.iter().enumerate().map(|(at, &d)| {
                            let code = old.code(key, at);
                            maps[d].as_ref().map_or(code, |map| map(code))
                        }))
                    };
                    let cells = &matrix.tables[t];
                    Cells::from_pairs(
                        cells.keys.iter().zip(&cells.counts).map(|(&key, &n)| (pack(key), n)).collect(),
                    )
                });
                Matrix { tables: tables.collect() }
            })
            .collect();
        let model = Model { header, layouts, matrices, links: Vec::new() };
        model.header.check()?;
        model.check()?;
        model.stored_as(self)
    }
}

/// Features of categories whose values are numbers of the trace's: those of others are codes and ids of our own.
const NUMBERS: [&str; 2] = ["flags", "result"];

/// Features that are the same for all requests of a file: no exact value of them is published.
const OF_FILES: [&str; 1] = ["length"];

/// From a code of the old rule to one of the new.
type CodeMap = Box<dyn Fn(u32) -> u32>;

/// The next number with no more than three digits before its zeros.
fn rounded_up(n: i64) -> i64 {
    let step = 10u64.pow(n.max(1).ilog10().saturating_sub(2));
    n.max(1).cast_unsigned().checked_next_multiple_of(step).map_or(n, |up| i64::try_from(up).unwrap_or(n))
}

/// The rule without what it tells of rare values, and the codes of the old one in it; nothing where it tells nothing.
///
/// Exact values that are rare, buckets of a category that was asked for among them, join their inner bucket. Where
/// inner buckets tell rare numbers more exactly than a 32nd, as no feature's own rule does, they are joined two by two
/// until none does; what many requests have keeps a bucket of its own.
fn rarer(feature: FeatureId, rule: &Rule, marginal: &Cells, least: u64) -> Option<(Rule, CodeMap)> {
    let kind = feature.kind();
    // What users' features mean is not known, so their own rules may be too fine.
    let own = kind.rule.parse::<RuleSpec>().ok().filter(|_| !feature.is_users());
    let own = own.map(|spec| spec.learned(kind.signed, Vec::new()));
    let (values, old_rest) = match rule {
        Rule::Exact { values, rest } => (values.clone(), (**rest).clone()),
        Rule::Category { values } if matches!(own, Some(Rule::Category { .. })) => {
            return if NUMBERS.contains(&kind.name) { common(values, marginal, least) } else { None };
        }
        Rule::Category { values } => (values.clone(), Rule::Log2 { sub: 4, signed: kind.signed }),
        _ => (Vec::new(), rule.clone()),
    };
    let n = values.len() as u32;
    // What inner buckets hold, once rare values have joined them.
    let mut inner: BTreeMap<u32, u64> = BTreeMap::new();
    let mut kept = Vec::new();
    for (&key, &count) in marginal.keys.iter().zip(&marginal.counts).filter(|(key, _)| **key > 0) {
        match values.get(key as usize - 1) {
            Some(&value) if count >= least => kept.push(value),
            Some(&value) => *inner.entry(old_rest.code(value)).or_default() += count,
            None => *inner.entry(key as u32 - n).or_default() += count,
        }
    }
    let rest =
        if own.as_ref() == Some(&old_rest) { old_rest.clone() } else { coarser(&old_rest, &inner, least) };
    if rest != old_rest {
        let alone = |code: &u32| old_rest.range(*code).filter(|r| r.first == r.last).map(|r| r.first);
        let many = inner.iter().filter(|(_, count)| **count >= least).filter_map(|(code, _)| alone(code));
        kept.extend(many.take(MAX_EXACT.saturating_sub(kept.len())));
    }
    kept.sort_unstable();
    kept.dedup();
    kept.truncate(MAX_EXACT);
    if rest == old_rest && kept.len() == values.len() {
        return None;
    }
    let exact = kept.len() as u32;
    let new = match kept.is_empty() {
        true => rest.clone(),
        false => Rule::Exact { values: kept, rest: Box::new(rest.clone()) },
    };
    let to = new.clone();
    let map = move |code: u32| match code {
        0 => 0,
        _ => match values.get(code as usize - 1) {
            Some(value) => to.code(*value),
            // Inner buckets hold none of the exact values, though their first number may be one.
            None => old_rest.range(code - n).map_or(0, |range| match range.first == range.last {
                true => to.code(range.first),
                false => rest.code(range.first).saturating_add(exact),
            }),
        },
    };
    Some((new, Box::new(map)))
}

/// The rule of a category without its rare values, which are left out; `None` where no value is rare.
fn common(values: &[i64], marginal: &Cells, least: u64) -> Option<(Rule, CodeMap)> {
    let mut codes = vec![0u32; values.len() + 1];
    let mut kept = Vec::new();
    for (&key, _) in marginal.keys.iter().zip(&marginal.counts).filter(|(key, n)| **key > 0 && **n >= least) {
        kept.push(values[key as usize - 1]);
        codes[key as usize] = kept.len() as u32;
    }
    let fewer = kept.len() < values.len();
    fewer.then(|| {
        (Rule::Category { values: kept }, Box::new(move |code: u32| codes[code as usize]) as CodeMap)
    })
}

/// The rule with buckets joined two by two until none tells a rare number more exactly than a 32nd of it; `counts` by
/// code.
fn coarser(rule: &Rule, counts: &BTreeMap<u32, u64>, least: u64) -> Rule {
    let (mut rule, mut counts) = (rule.clone(), counts.clone());
    let is_fine = |rule: &Rule, code: u32| {
        rule.range(code).is_some_and(|Range { first, last }| {
            let width = last.abs_diff(first).saturating_add(1);
            width.saturating_mul(32) <= first.unsigned_abs().max(last.unsigned_abs())
        })
    };
    while counts.iter().any(|(&code, &n)| n > 0 && n < least && is_fine(&rule, code)) {
        let next = match rule {
            Rule::Log2 { sub, signed } if sub > 1 => Rule::Log2 { sub: sub / 2, signed },
            Rule::Linear { width, signed } => Rule::Linear { width: width.saturating_mul(2), signed },
            _ => break,
        };
        let mut joined: BTreeMap<u32, u64> = BTreeMap::new();
        for (code, n) in counts {
            let code = rule.range(code).map_or(0, |range| next.code(range.first));
            *joined.entry(code).or_default() += n;
        }
        (rule, counts) = (next, joined);
    }
    rule
}
