//! A tie: what a link keeps of a dimension that it is not given.
//!
//! A link that depends on a dimension has a table for each code of it. Often one number is enough: how much likelier
//! small codes are with one code of that dimension than with all others. In dtrs, 5 % of the requests that continue
//! the one before come within 20 us at 2,500 times the pace, and 28 % of all others do. Tables would double the gaps of
//! each matrix; a tie is one odds ratio. Tables stay as they are: the tie only decides which requests get which codes.

use crate::model::Model;
use crate::schema::chain::{Link, Tie};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// Largest logarithm of an odds ratio.
const MOST: f64 = 12.0;

/// Halvings in the search for it.
const HALVINGS: usize = 40;

/// Variance from which on a sum of requests is as good as normal.
const ENOUGH: f64 = 25.0;

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

/// Requests by own code, ascending. Codes are numbered without gaps, as a file's largest one says nothing of its size.
type Row = Vec<(u32, f64)>;

/// Counts of the small codes of one link, by slice and by code of another dimension.
struct Counts {
    /// Requests of each slice.
    slices: Vec<Row>,
    /// The same of those that have a code of the other dimension, by slice, ascending.
    coded: FxHashMap<u32, Vec<(usize, Row)>>,
    /// The codes by number.
    codes: Vec<u32>,
}

impl Counts {
    /// Of the joint cells of a model, for a link and another dimension, both by position in the drawn table.
    fn of(model: &Model, link: &Link, own: usize, given: &[usize], other: usize) -> Counts {
        let table = model.header.drawn_table();
        let layout = &model.layouts[table];
        let mask = given.iter().fold(0, |mask, &at| mask | layout.place(at).bits());
        let matrices = || model.matrices.iter().map(|matrix| &matrix.tables[table]);
        let mut codes: Vec<u32> =
            matrices().flat_map(|cells| cells.keys.iter().map(|&key| layout.code(key, own))).collect();
        codes.sort_unstable();
        codes.dedup();
        let mut numbers: FxHashMap<(usize, u64), usize> = FxHashMap::default();
        // Slice, code of the other dimension, own code, requests.
        let mut cells: Vec<(usize, u32, u32, f64)> = Vec::new();
        for (matrix, of) in matrices().enumerate() {
            for (&key, &n) in of.keys.iter().zip(&of.counts) {
                let next = numbers.len();
                let by = if link.by_matrix { matrix } else { 0 };
                let slice = *numbers.entry((by, key & mask)).or_insert(next);
                let code = codes.partition_point(|&code| code < layout.code(key, own)) as u32;
                cells.push((slice, layout.code(key, other), code, n as f64));
            }
        }
        let mut counts =
            Counts { slices: vec![Row::new(); numbers.len()], coded: FxHashMap::default(), codes };
        cells.sort_unstable_by_key(|&(slice, _, code, _)| (slice, code));
        cells.iter().for_each(|&(slice, _, code, n)| add(&mut counts.slices[slice], code, n));
        cells.sort_unstable_by_key(|&(slice, other, code, _)| (slice, other, code));
        for (slice, other, code, n) in cells {
            let rows = counts.coded.entry(other).or_default();
            if rows.last().is_none_or(|(last, _)| *last != slice) {
                rows.push((slice, Row::new()));
            }
            add(&mut rows.last_mut().expect("pushed above").1, code, n);
        }
        counts
    }

    /// The slices' tables for a code of the other dimension and small codes below a bound, a number of a code.
    fn tables(&self, code: u32, below: usize) -> impl Iterator<Item = Fourfold> {
        let small = move |row: &Row| sum(&row[..row.partition_point(|(code, _)| (*code as usize) < below)]);
        let mut coded = self.coded.get(&code).into_iter().flatten().peekable();
        self.slices.iter().enumerate().map(move |(number, slice)| {
            let coded = coded.next_if(|(of, _)| *of == number).map_or(&NONE, |(_, row)| row);
            Fourfold { all: sum(slice), coded: sum(coded), small: small(slice), both: small(coded) }
        })
    }

    /// Bits that each code of the other dimension would save with its best bound, and that bound.
    ///
    /// By the statistic of Mantel and Haenszel, which is chi-square over 2 ln 2 of likelihood in bits.
    fn best(&self) -> Option<(f64, u32, usize)> {
        let bits = |(off, variance): (f64, f64)| {
            if variance > ENOUGH { off * off / variance / (2.0 * std::f64::consts::LN_2) } else { 0.0 }
        };
        let best_of = |(&code, rows): (&u32, &Vec<(usize, Row)>)| {
            let mut sums = vec![(0.0, 0.0); self.codes.len()];
            for (slice, coded) in rows {
                let (all, has) = (sum(&self.slices[*slice]), sum(coded));
                let (mut slice, mut coded) = (self.slices[*slice].iter().peekable(), coded.iter().peekable());
                let (mut small, mut both) = (0.0, 0.0);
                for (code, (off, variance)) in (0u32..).zip(sums.iter_mut().skip(1)) {
                    small += slice.next_if(|(of, _)| *of == code).map_or(0.0, |(_, n)| *n);
                    both += coded.next_if(|(of, _)| *of == code).map_or(0.0, |(_, n)| *n);
                    let chance = Fourfold { all, coded: has, small, both }.chance();
                    *off += both - chance.0;
                    *variance += chance.1;
                }
            }
            (1..sums.len()).map(|below| (bits(sums[below]), code, below)).max_by(worth)
        };
        self.coded.iter().filter_map(best_of).max_by(worth)
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

static NONE: Row = Row::new();

fn sum(row: &[(u32, f64)]) -> f64 {
    row.iter().map(|(_, n)| n).sum()
}

fn add(row: &mut Row, code: u32, n: f64) {
    match row.last_mut() {
        Some((last, sum)) if *last == code => *sum += n,
        _ => row.push((code, n)),
    }
}

/// The order of what is best. That of a map is chance; ties of equal worth must not be.
fn worth(a: &(f64, u32, usize), b: &(f64, u32, usize)) -> Ordering {
    a.0.total_cmp(&b.0).then((b.1, b.2).cmp(&(a.1, a.2)))
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
    Some(Tie { dimension, code, below: counts.codes[below - 1] + 1, odds: counts.odds(code, below) })
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
