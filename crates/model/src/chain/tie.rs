//! A tie: what a link keeps of a dimension that it is not given.
//!
//! To be told by a dimension costs a link a table for each of its codes. Often one number does as well: how much likelier
//! small codes are with one code of that dimension than with all others. In dtrs 5 % of the requests that continue
//! the one before come within 20 us at 2,500 times the pace, of all others 28 %: as tables that is twice the gaps of
//! each matrix, as a tie it is an odds ratio. Slices keep their tables; only which of their
//! requests have which code follows it.

use super::Link;
use crate::model::Model;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Largest logarithm of an odds ratio.
const MOST: f64 = 12.0;

/// Halvings in the search for it.
const HALVINGS: usize = 40;

/// Variance from which on a sum of requests is as good as normal.
const ENOUGH: f64 = 25.0;

/// How a link's small codes go with one code of a dimension that links before it set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tie {
    /// Position of that dimension.
    pub dimension: usize,
    /// Its code.
    pub code: u32,
    /// Codes of the link's own dimension below this one are small.
    pub below: u32,
    /// Odds of a small code with that code over odds without, in every slice (the common odds ratio of Mantel and
    /// Haenszel, Journal of the National Cancer Institute 22, 1959).
    pub odds: f64,
}

/// Requests of one slice: all, those that have the code, those that have a small code, and those that have both.
#[derive(Debug, Clone, Copy, Default)]
struct Fourfold {
    all: f64,
    coded: f64,
    small: f64,
    both: f64,
}

/// How many of `all` requests have both, where so many are `coded` and so many `small`, for an odds ratio.
///
/// At the odds' own value the table is balanced: both (all - coded - small + both) = odds (coded - both) (small - both).
pub(super) fn both(all: f64, coded: f64, small: f64, odds: f64) -> f64 {
    let (least, most) = ((coded + small - all).max(0.0), coded.min(small));
    let a = 1.0 - odds;
    let b = all - coded - small + odds * (coded + small);
    let c = -odds * coded * small;
    let found =
        if a.abs() < 1e-9 { -c / b } else { (-b + (b * b - 4.0 * a * c).max(0.0).sqrt()) / (2.0 * a) };
    // Where only one number is possible, rounding may set its bounds the wrong way round; and odds may be too large or
    // small to be reckoned with.
    if found.is_finite() {
        found.min(most).max(least)
    } else if odds > 1.0 {
        most
    } else {
        least
    }
}

impl Fourfold {
    /// How many would have both by chance, and the variance of that.
    fn chance(&self) -> (f64, f64) {
        let Fourfold { all, coded, small, .. } = *self;
        if all < 2.0 {
            return (self.both, 0.0);
        }
        let variance = coded * small * (all - coded) * (all - small) / (all * all * (all - 1.0));
        (coded * small / all, variance)
    }
}

/// Counts of the small codes of one link, by slice and by code of another dimension.
struct Counts {
    /// Requests of each slice by own code.
    slices: Vec<Vec<f64>>,
    /// The same of those that have a code of the other dimension.
    coded: Vec<FxHashMap<u32, Vec<f64>>>,
    codes: usize,
}

impl Counts {
    /// Of the joint cells of a model, for a link and another dimension, both by position in the drawn table.
    fn of(model: &Model, link: &Link, own: usize, given: &[usize], other: usize) -> Counts {
        let table = model.header.drawn_table();
        let layout = &model.layouts[table];
        let mask = given.iter().fold(0, |mask, &at| mask | layout.place(at).bits());
        let mut numbers: FxHashMap<(usize, u64), usize> = FxHashMap::default();
        let mut counts = Counts { slices: Vec::new(), coded: Vec::new(), codes: 0 };
        let matrices = model.matrices.iter().map(|matrix| &matrix.tables[table]);
        for (matrix, cells) in matrices.enumerate() {
            for (&key, &n) in cells.keys.iter().zip(&cells.counts) {
                let next = numbers.len();
                let by = if link.by_matrix { matrix } else { 0 };
                let slice = *numbers.entry((by, key & mask)).or_insert(next);
                if slice == next {
                    counts.slices.push(Vec::new());
                    counts.coded.push(FxHashMap::default());
                }
                let code = layout.code(key, own) as usize;
                counts.codes = counts.codes.max(code + 1);
                add(&mut counts.slices[slice], code, n as f64);
                add(counts.coded[slice].entry(layout.code(key, other)).or_default(), code, n as f64);
            }
        }
        counts
    }

    /// The slices' tables for a code of the other dimension and small codes below a bound.
    fn tables(&self, code: u32, below: usize) -> impl Iterator<Item = Fourfold> {
        let sum = |counts: &[f64]| counts.iter().sum::<f64>();
        let small = move |counts: &[f64]| counts[..below.min(counts.len())].iter().sum::<f64>();
        self.slices.iter().zip(&self.coded).map(move |(slice, coded)| {
            let coded = coded.get(&code).map_or(&[][..], |counts| counts);
            Fourfold { all: sum(slice), coded: sum(coded), small: small(slice), both: small(coded) }
        })
    }

    /// Bits that each code of the other dimension would save with its best bound, and that bound.
    ///
    /// By the statistic of Mantel and Haenszel, which is chi-square over 2 ln 2 of likelihood in bits.
    fn best(&self) -> Option<(f64, u32, usize)> {
        let mut sums: FxHashMap<u32, Vec<(f64, f64)>> = FxHashMap::default();
        for (slice, coded) in self.slices.iter().zip(&self.coded) {
            let all: f64 = slice.iter().sum();
            for (&code, counts) in coded {
                let has: f64 = counts.iter().sum();
                let sums = sums.entry(code).or_insert_with(|| vec![(0.0, 0.0); self.codes + 1]);
                let (mut small, mut both) = (0.0, 0.0);
                for (code, (off, variance)) in sums[1..self.codes].iter_mut().enumerate() {
                    small += slice.get(code).copied().unwrap_or(0.0);
                    both += counts.get(code).copied().unwrap_or(0.0);
                    let chance = Fourfold { all, coded: has, small, both }.chance();
                    *off += both - chance.0;
                    *variance += chance.1;
                }
            }
        }
        let bits = |(off, variance): (f64, f64)| {
            if variance > ENOUGH { off * off / variance / (2.0 * std::f64::consts::LN_2) } else { 0.0 }
        };
        let all = sums
            .iter()
            .flat_map(|(&code, sums)| (1..self.codes).map(move |below| (bits(sums[below]), code, below)));
        // The order of the map is chance; ties of equal worth must not be.
        all.max_by(|a, b| a.0.total_cmp(&b.0).then((b.1, b.2).cmp(&(a.1, a.2))))
    }

    /// The odds ratio with which slices have together as many requests with both as they do.
    fn odds(&self, code: u32, below: usize) -> f64 {
        let told: f64 = self.tables(code, below).map(|table| table.both).sum();
        let (mut low, mut high) = (-MOST, MOST);
        for _ in 0..HALVINGS {
            let middle: f64 = f64::midpoint(low, high);
            let found: f64 =
                self.tables(code, below).map(|t| both(t.all, t.coded, t.small, middle.exp())).sum();
            if found < told {
                low = middle;
            } else {
                high = middle;
            }
        }
        // Four digits tell it, and a file is smaller without the others.
        let odds = f64::midpoint(low, high).exp();
        let digits = 10f64.powi(3 - odds.log10().floor() as i32);
        (odds * digits).round() / digits
    }
}

fn add(counts: &mut Vec<f64>, code: usize, n: f64) {
    if counts.len() <= code {
        counts.resize(code + 1, 0.0);
    }
    counts[code] += n;
}

/// The tie of a link, number `at` of the chain, that saves most bits, if that is more than `least`.
pub(super) fn find(model: &Model, links: &[Link], at: usize, least: f64) -> Option<Tie> {
    let link = &links[at];
    let drawn = &model.header.tables[model.header.drawn_table()].dimensions;
    let place = |d: usize| drawn.iter().position(|x| *x == d);
    let given: Vec<usize> = link.given.iter().filter_map(|d| place(*d)).collect();
    let own = place(link.dimension)?;
    let others = links[..at].iter().map(|other| other.dimension).filter(|d| !link.given.contains(d));
    let found = others.filter_map(|dimension| {
        let counts = Counts::of(model, link, own, &given, place(dimension)?);
        let (bits, code, below) = counts.best()?;
        (bits > least).then_some((bits, dimension, code, below, counts))
    });
    let (_, dimension, code, below, counts) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Tie { dimension, code, below: below as u32, odds: counts.odds(code, below) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tables_have_the_odds_they_are_made_with(
            coded in 1.0..1e4f64, small in 1.0..1e4f64, more in 1.0..1e4f64, odds in -4.0..4.0f64,
        ) {
            let (all, odds) = (coded + small + more, odds.exp());
            let both = both(all, coded, small, odds);
            let neither = all - coded - small + both;
            let found = both * neither / ((coded - both) * (small - both));
            prop_assert!((found / odds - 1.0).abs() < 1e-3, "{} {}", found, odds);
        }

        #[test]
        fn no_table_is_impossible(
            all in 0.0..100f64, coded in 0.0..100f64, small in 0.0..100f64, odds in -MOST..MOST,
        ) {
            let (coded, small) = (coded.min(all), small.min(all));
            let both = both(all, coded, small, odds.exp());
            prop_assert!(both >= (coded + small - all).max(0.0) && both <= coded.min(small) + 1e-9);
        }
    }

    #[test]
    fn odds_without_end_leave_as_many_or_as_few_as_can_be() {
        for odds in [1e200, f64::MAX] {
            assert_eq!(both(10.0, 6.0, 7.0, odds), 6.0, "{odds}");
            assert_eq!(both(10.0, 6.0, 7.0, 1.0 / odds), 3.0, "{odds}");
        }
    }
}
