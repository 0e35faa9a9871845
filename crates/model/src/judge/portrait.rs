//! What a stream of requests is like, so that what a model draws can be compared with its trace.
//!
//! Nothing here goes by the model's buckets except the joint histogram: the numbers of each dimension are counted
//! finely, so that what coarse buckets lose is seen. Sources: MDH thesis, sections 3.4 and 3.5; for burstiness Gusella,
//! "Characterizing the variability of arrival processes with indexes of dispersion" (IEEE JSAC 9, 1991).

use crate::error::Result;
use crate::feature::Rows;
use crate::feature::files::catalog::Catalog;
use crate::fit::coder::Coder;
use crate::fit::early::Known;
use crate::fit::encode::{Codes, ROWS};
use crate::judge::caches::{Caches, Misses};
use crate::model::Model;
use crate::schema::cells::{Layout, bits_for};
use crate::schema::dimension::Role;
use crate::schema::rates::Rates;
use crate::schema::rule::Rule;
use loadstone_trace::lru::{Curve, Stack};
use loadstone_trace::{Batch, NONE, Requests};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Sub-buckets of each power of two in which numbers are counted: within 1.6 %.
const FINE: u32 = 64;

/// Requests up to which the miss ratios are exact.
const EXACT: u64 = 10_000_000;

/// Blocks that are followed of streams with more requests.
const SAMPLED: usize = 1 << 18;

/// Distances, in requests, at which gaps are correlated.
pub const LAGS: [usize; 5] = [1, 2, 5, 10, 100];

/// Lengths of the windows in which arrivals are counted, in mean gaps.
pub const SCALES: [u32; 4] = [10, 100, 1000, 10_000];

/// How often the numbers of a dimension occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// Requests that have no number.
    pub none: u64,
    /// First and last number of a bucket and its requests, ascending; each number by itself where it is a name.
    pub counts: Vec<(i64, i64, u64)>,
}

/// What a stream is like.
#[derive(Debug, Clone)]
pub struct Portrait {
    /// Requests.
    pub requests: u64,
    /// The numbers of each dimension of the model.
    pub dimensions: Vec<Numbers>,
    /// Requests by the codes of all dimensions that are generated or given, in the model's buckets; nothing where
    /// these need more than 64 bits.
    pub joint: FxHashMap<u64, u64>,
    /// Correlation of gaps so many requests apart ([`LAGS`]), -1 to 1.
    pub correlation: [f64; LAGS.len()],
    /// Variance of the arrivals in a window over their mean, by its length ([`SCALES`]); 1 for a Poisson process.
    pub dispersion: [f64; SCALES.len()],
    /// Share of requests that begin where the one before ended, on their object.
    pub sequential: f64,
    /// Misses of LRU caches of 4 KiB blocks, and the blocks touched.
    pub curve: Curve,
    /// Misses of caches of other policies; none where the model does not tell how many blocks its trace has.
    pub misses: Vec<Misses>,
    /// What is moved when, in equal parts of the length of the model's trace.
    pub rates: Rates,
}

/// Looks at a whole stream, of whose files there is a `catalog`, with the dimensions of a model; `progress(requests)` is called after every batch, and an
/// error of it stops the work.
///
/// # Errors
/// Those of the stream and of `progress`.
pub fn portrait(
    model: &Model,
    requests: &mut dyn Requests,
    catalog: Catalog,
    progress: &mut dyn FnMut(u64) -> loadstone_trace::Result<()>,
) -> Result<Portrait> {
    let mut codes = Codes::of(&model.header, Arc::new(catalog));
    let mut counts: Vec<Counts> = model.header.dimensions.iter().map(|d| Counts::new(&d.rule)).collect();
    let (joined, layout) = joined(model);
    let mut joint = FxHashMap::default();
    let mut arrivals = Arrivals::new(model);
    let mut sequence = Sequence::default();
    let mut rates = Rates::new(model.header.source.span_ns);
    let many = model.requests() > EXACT;
    let mut stack = if many { Stack::sampled(SAMPLED) } else { Stack::exact() };
    let mut caches = Caches::of(model);
    let (mut batch, mut done, mut keys) = (Batch::default(), 0, Vec::new());
    while requests.next(&mut batch)? {
        done += batch.len() as u64;
        batch.time.iter().for_each(|&time| arrivals.add(time));
        sequence.add(&batch);
        stack.add(&batch);
        caches.iter_mut().for_each(|caches| caches.add(&batch));
        rates.add(&batch);
        for from in (0..batch.len()).step_by(ROWS) {
            let rows = Rows::of(&batch, from..(from + ROWS).min(batch.len()));
            codes.fill(&rows, &Known::new());
            for (counts, numbers) in counts.iter_mut().zip(codes.numbers()) {
                counts.add(numbers);
            }
            let Some(layout) = &layout else { continue };
            keys.clear();
            keys.resize(rows.len(), 0);
            for (d, codes) in codes.columns().enumerate() {
                let Some(at) = joined.iter().position(|x| *x == d) else { continue };
                // A code the model does not have makes a key of its own.
                for (key, &code) in keys.iter_mut().zip(codes) {
                    *key = layout.place(at).part(code).map_or(u64::MAX, |part| *key | part);
                }
            }
            keys.iter().for_each(|key| *joint.entry(*key).or_default() += 1);
        }
        progress(done)?;
    }
    Ok(Portrait {
        requests: done,
        dimensions: counts.into_iter().map(Counts::end).collect(),
        joint,
        correlation: arrivals.correlation(),
        dispersion: arrivals.dispersion(),
        sequential: sequence.followed as f64 / done.max(1) as f64,
        curve: stack.curve(),
        misses: caches.map_or_else(Vec::new, |caches| caches.misses()),
        rates,
    })
}

/// The dimensions of the joint histogram, and how its keys are laid out if they fit.
fn joined(model: &Model) -> (Vec<usize>, Option<Layout>) {
    let dimensions = &model.header.dimensions;
    let joined: Vec<usize> =
        (0..dimensions.len()).filter(|&d| dimensions[d].role != Role::Observed).collect();
    let largest = |d: usize| model.marginal(d, None).ok()?.keys.last().map(|&code| code as u32);
    let bits: Vec<u8> = joined.iter().map(|&d| bits_for(largest(d).unwrap_or(0))).collect();
    (joined, Layout::new(&bits))
}

/// The numbers of a dimension while they are counted.
enum Counts {
    Fine {
        coder: Coder,
        codes: Vec<u32>,
        counts: Vec<u64>,
    },
    /// Numbers that are names of something.
    Names(FxHashMap<i64, u64>),
}

fn fine() -> Rule {
    Rule::Log2 { sub: FINE, signed: true }
}

impl Counts {
    fn new(rule: &Rule) -> Counts {
        match rule {
            Rule::Category { .. } => Counts::Names(FxHashMap::default()),
            _ => Counts::Fine { coder: Coder::new(&fine()), codes: Vec::new(), counts: Vec::new() },
        }
    }

    fn add(&mut self, numbers: &[i64]) {
        match self {
            Counts::Names(counts) => {
                for same in numbers.chunk_by(|a, b| a == b) {
                    *counts.entry(same[0]).or_default() += same.len() as u64;
                }
            }
            Counts::Fine { coder, codes, counts } => {
                coder.column(numbers, codes);
                for &code in &*codes {
                    if counts.len() <= code as usize {
                        counts.resize(code as usize + 1, 0);
                    }
                    counts[code as usize] += 1;
                }
            }
        }
    }

    fn end(self) -> Numbers {
        match self {
            Counts::Names(mut counts) => {
                let none = counts.remove(&NONE).unwrap_or(0);
                let mut counts: Vec<_> = counts.into_iter().map(|(name, n)| (name, name, n)).collect();
                counts.sort_unstable();
                Numbers { none, counts }
            }
            Counts::Fine { counts, .. } => {
                let rule = fine();
                let none = counts.first().copied().unwrap_or(0);
                let used = (0u32..).zip(&counts).skip(1).filter(|(_, n)| **n > 0);
                let mut counts: Vec<_> =
                    used.filter_map(|(code, &n)| rule.range(code).map(|r| (r.first, r.last, n))).collect();
                counts.sort_unstable();
                Numbers { none, counts }
            }
        }
    }
}

/// Gaps and arrivals by window.
struct Arrivals {
    last: Option<i64>,
    first: i64,
    /// Gaps, their sum and the sum of their squares.
    n: u64,
    sum: f64,
    squares: f64,
    /// The last gaps, and sums of products so many gaps apart.
    gaps: Vec<f64>,
    products: [f64; LAGS.len()],
    windows: [Window; SCALES.len()],
}

/// Arrivals in windows of one length.
#[derive(Debug, Clone, Copy)]
struct Window {
    length: i64,
    /// When the open one ends.
    end: i64,
    count: u64,
    sum: f64,
    squares: f64,
}

impl Window {
    fn new(length: i64) -> Window {
        Window { length: length.max(1), end: i64::MIN, count: 0, sum: 0.0, squares: 0.0 }
    }

    fn close(&mut self) {
        self.sum += self.count as f64;
        self.squares += (self.count as f64).powi(2);
        self.count = 0;
    }
}

impl Arrivals {
    fn new(model: &Model) -> Arrivals {
        // The same windows for the trace and what is drawn.
        let gap = model.header.source.span_ns as f64 / model.requests().max(1) as f64;
        Arrivals::of(SCALES.map(|scale| (gap * f64::from(scale)) as i64))
    }

    fn of(lengths: [i64; SCALES.len()]) -> Arrivals {
        Arrivals {
            last: None,
            first: 0,
            n: 0,
            sum: 0.0,
            squares: 0.0,
            gaps: vec![0.0; LAGS[LAGS.len() - 1]],
            products: [0.0; LAGS.len()],
            windows: lengths.map(Window::new),
        }
    }

    fn add(&mut self, time: i64) {
        let last = self.last.replace(time);
        if last.is_none() {
            self.first = time;
        }
        for window in &mut self.windows {
            if time >= window.end {
                window.close();
                let since = time - self.first;
                window.end = time.saturating_add(window.length - since % window.length);
            }
            window.count += 1;
        }
        let Some(last) = last else { return };
        let gap = (time - last) as f64;
        let most = self.gaps.len() as u64;
        for (sum, lag) in self.products.iter_mut().zip(LAGS) {
            if self.n >= lag as u64 {
                *sum += gap * self.gaps[((self.n - lag as u64) % most) as usize];
            }
        }
        self.gaps[(self.n % most) as usize] = gap;
        self.n += 1;
        self.sum += gap;
        self.squares += gap * gap;
    }

    fn correlation(&self) -> [f64; LAGS.len()] {
        let n = self.n.max(1) as f64;
        let mean = self.sum / n;
        let variance = self.squares / n - mean * mean;
        let mut found = [0.0; LAGS.len()];
        for ((found, sum), lag) in found.iter_mut().zip(self.products).zip(LAGS) {
            let pairs = self.n.saturating_sub(lag as u64);
            if pairs > 0 && variance > 0.0 {
                *found = (sum / pairs as f64 - mean * mean) / variance;
            }
        }
        found
    }

    fn dispersion(&self) -> [f64; SCALES.len()] {
        let span = self.last.unwrap_or(0) - self.first;
        self.windows.map(|window| {
            // The open one is not whole.
            let windows = (span / window.length) as f64;
            let mean = window.sum / windows.max(1.0);
            if mean > 0.0 { (window.squares / windows - mean * mean) / mean } else { 0.0 }
        })
    }
}

/// Requests that begin where the one before on their object ended.
#[derive(Default)]
struct Sequence {
    ends: FxHashMap<u32, i64>,
    followed: u64,
}

impl Sequence {
    fn add(&mut self, batch: &Batch) {
        for ((&object, &offset), &size) in batch.object.iter().zip(&batch.offset).zip(&batch.size) {
            if offset != NONE {
                let end = offset.saturating_add(size.max(0));
                let before = self.ends.insert(object, end);
                self.followed += u64::from(before == Some(offset));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(times: impl Iterator<Item = i64>, mean: i64) -> Arrivals {
        let mut arrivals = Arrivals::of(SCALES.map(|scale| mean * i64::from(scale)));
        times.for_each(|time| arrivals.add(time));
        arrivals
    }

    #[test]
    fn gaps_that_alternate_are_correlated_and_even_arrivals_do_not_vary() {
        // Gaps of 50 and 150 in turns.
        let even = arrivals((0..100_001i64).map(|i| i * 100 - if i % 2 == 1 { 50 } else { 0 }), 100);
        let found = even.correlation();
        for (correlation, expected) in found.iter().zip([-1.0, 1.0, -1.0, 1.0, 1.0]) {
            assert!((correlation - expected).abs() < 1e-3, "{found:?}");
        }
        assert!(even.dispersion().iter().all(|d| *d < 0.01), "{:?}", even.dispersion());
    }

    #[test]
    fn bursts_vary_by_their_size() {
        // 100 arrivals at once, then nothing for 100 mean gaps: windows of 10 hold 100 or nothing.
        let bursts = arrivals((0..100_000i64).map(|i| i / 100 * 10_000), 100);
        let dispersion = bursts.dispersion();
        assert!((dispersion[0] - 90.0).abs() < 1.0, "{dispersion:?}");
        assert!(dispersion[1] < 1.0 && dispersion[2] < 1.0, "{dispersion:?}");
    }

    #[test]
    fn numbers_are_counted_finely_and_names_one_by_one() {
        let mut fine = Counts::new(&Rule::Linear { width: 1 << 20, signed: false });
        fine.add(&[NONE, -5, 3, 3, 1 << 20]);
        let found = fine.end();
        assert_eq!(found.none, 1);
        assert_eq!(found.counts[..2], [(-5, -5, 1), (3, 3, 2)]);
        assert_eq!((found.counts[2].0, found.counts[2].2), (1 << 20, 1));
        let mut names = Counts::new(&Rule::Category { values: vec![] });
        names.add(&[7, 7, -1, NONE, 7]);
        assert_eq!(names.end(), Numbers { none: 1, counts: vec![(-1, -1, 1), (7, 7, 3)] });
    }
}
