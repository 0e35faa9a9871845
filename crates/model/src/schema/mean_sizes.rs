//! Mean sizes of buckets: what a system moves is a sum, and the middle of a bucket is not the mean of what lies in it.

use crate::schema::rule::Rule;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Codes of ops and sizes up to which means are kept: buckets of finer rules need none.
const MOST: (usize, usize) = (64, 4096);

/// A mean is kept where the middle of its bucket would add or take this share of all bytes.
const SHARE: u64 = 4096;

/// The mean size of the requests of one op in one bucket; in the file as `[op, first, mean, requests]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, i64, i64, u64)", into = "(i64, i64, i64, u64)")]
pub struct MeanSize {
    /// Number of the op.
    pub op: i64,
    /// Smallest number of the bucket, bytes.
    pub first: i64,
    /// Mean of the sizes in it, bytes.
    pub mean: i64,
    /// Requests in it.
    pub requests: u64,
}

impl From<(i64, i64, i64, u64)> for MeanSize {
    fn from((op, first, mean, requests): (i64, i64, i64, u64)) -> MeanSize {
        MeanSize { op, first, mean, requests }
    }
}

impl From<MeanSize> for (i64, i64, i64, u64) {
    fn from(mean: MeanSize) -> (i64, i64, i64, u64) {
        (mean.op, mean.first, mean.mean, mean.requests)
    }
}

/// Sums of sizes while requests are counted.
#[derive(Debug, Default)]
pub(crate) struct SizeSums {
    /// By code of the op and of the size: requests and bytes.
    sums: Vec<Vec<(u64, u64)>>,
}

impl SizeSums {
    /// Takes requests by the codes of their ops and sizes; a size that is not there is below 0.
    pub fn add(&mut self, ops: &[u32], codes: &[u32], sizes: &[i64]) {
        for ((&op, &code), &size) in ops.iter().zip(codes).zip(sizes) {
            let (op, code) = (op as usize, code as usize);
            if op >= MOST.0 || code >= MOST.1 || size < 0 {
                continue;
            }
            if self.sums.len() <= op {
                self.sums.resize(op + 1, Vec::new());
            }
            let row = &mut self.sums[op];
            if row.len() <= code {
                row.resize(code + 1, (0, 0));
            }
            row[code].0 += 1;
            row[code].1 = row[code].1.saturating_add(size.cast_unsigned());
        }
    }

    /// The means that differ from the middle of their bucket. `ops[code - 1]` is the number of the op with that code.
    pub fn means(&self, ops: &[i64], sizes: &Rule) -> Vec<MeanSize> {
        let total = self.sums.iter().flatten().fold(0u64, |all, sum| all.saturating_add(sum.1));
        let mut means = Vec::new();
        for (&op, row) in ops.iter().zip(self.sums.iter().skip(1)) {
            for (code, &(requests, bytes)) in row.iter().enumerate().filter(|(_, sum)| sum.0 > 0) {
                let Some(range) = sizes.range(code as u32).filter(|range| range.first < range.last) else {
                    continue;
                };
                let mean = (bytes / requests) as i64;
                let off = range.first.midpoint(range.last).abs_diff(mean).saturating_mul(requests);
                if off > total / SHARE {
                    means.push(MeanSize { op, first: range.first, mean, requests });
                }
            }
        }
        means
    }
}

/// Over so many requests a shortage or surplus of bytes is made up for.
const MADE_UP: i64 = 8;

/// Means by the codes of a rule, and what is drawn of them.
#[derive(Debug, Default)]
pub(crate) struct Means(FxHashMap<(i64, u32), Due>);

/// A mean size, and how many bytes the requests so far lack.
#[derive(Debug)]
struct Due {
    mean: i64,
    short: i64,
}

impl Means {
    /// Of the sizes of a rule, as far as its buckets are those that the means were taken of.
    pub fn new(means: &[MeanSize], sizes: &Rule) -> Means {
        let by_code = means
            .iter()
            .filter_map(|mean| Some(((mean.op, code_of(mean, sizes)?), Due { mean: mean.mean, short: 0 })));
        Means(by_code.collect())
    }

    /// What the next sizes of an op's requests in a bucket should be on average.
    ///
    /// Not every size that is drawn finds a place, and small ones do more often: so the others make up for it.
    #[inline]
    pub fn of(&self, op: i64, code: u32) -> Option<i64> {
        self.0.get(&(op, code)).map(|due| due.mean.saturating_add(due.short / MADE_UP))
    }

    /// Takes a request that found its place.
    #[inline]
    pub fn note(&mut self, op: i64, code: u32, size: i64) {
        if let Some(due) = self.0.get_mut(&(op, code)) {
            due.short = due.short.saturating_add(due.mean.saturating_sub(size.max(0)));
        }
    }
}

/// The code of the bucket that a mean is of; nothing where the rule has no such bucket.
pub(crate) fn code_of(mean: &MeanSize, sizes: &Rule) -> Option<u32> {
    let rest = match sizes {
        Rule::Exact { values, rest } => {
            return code_of(mean, rest).map(|code| code.saturating_add(values.len() as u32));
        }
        rule => rule,
    };
    let code = rest.code(mean.first);
    let range = rest.range(code)?;
    (range.first == mean.first && (range.first..=range.last).contains(&mean.mean)).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_buckets_whose_middle_is_another_number() {
        let sizes = Rule::Exact { values: vec![4096], rest: Box::new(Rule::Log2 { sub: 1, signed: false }) };
        let numbers = [4096, 8192, 8704, -1, 9728];
        let codes = numbers.map(|n: i64| if n < 0 { 0 } else { sizes.code(n) });
        let mut sums = SizeSums::default();
        sums.add(&[1, 1, 1, 2, 2], &codes, &numbers);
        let means = sums.means(&[0, 1], &sizes);
        let first = 8192;
        assert_eq!(
            means,
            [
                MeanSize { op: 0, first, mean: 8448, requests: 2 },
                MeanSize { op: 1, first, mean: 9728, requests: 1 }
            ]
        );
        let found = Means::new(&means, &sizes);
        assert_eq!(
            (found.of(0, codes[1]), found.of(1, codes[1]), found.of(0, codes[0])),
            (Some(8448), Some(9728), None)
        );
        let mut late = Means::new(&means, &sizes);
        late.note(0, codes[1], 8192);
        assert_eq!(late.of(0, codes[1]), Some(8448 + 256 / MADE_UP));
        // Another rule has other buckets, and a damaged file a mean beyond its bucket.
        let other = Rule::Linear { width: 3000, signed: false };
        assert_eq!(Means::new(&means, &other).of(1, other.code(8192)), None);
        let beyond = [MeanSize { mean: 1 << 40, ..means[0] }];
        assert_eq!(Means::new(&beyond, &sizes).of(0, codes[1]), None);
    }
}
