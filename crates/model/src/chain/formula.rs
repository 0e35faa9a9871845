//! Distributions in place of histograms: a formula with a few parameters stands for the cells of a slice.
//!
//! Source: section 3.3 of the MDH thesis. Families are evaluated by whoever has registered to do so ([`register`]): the
//! Python library knows all of `scipy.stats`. Loading turns each formula back into counts, whole numbers whose sum is
//! the formula's requests, so nothing else need know of it.

use crate::error::{Error, ErrorKind, Result};
use crate::schema::cells::{Cells, Layout};
use crate::schema::chain::{Formula, Link, LinkCells};
use crate::schema::header::Header;
use crate::schema::rule::Rule;
use std::sync::OnceLock;

/// Most buckets of one formula.
const BUCKETS: u32 = 1 << 12;

/// Most formulas of one link.
const FORMULAS: usize = 1 << 12;

/// Answers how likely each bucket is, in any unit: of a family, its parameters, and the buckets as (first number, last
/// number), ascending.
pub type Evaluate = Box<dyn Fn(&str, &[f64], &[(i64, i64)]) -> Result<Vec<f64>> + Send + Sync>;

static EVALUATE: OnceLock<Evaluate> = OnceLock::new();

/// Says who evaluates families; only the first to do so is heard.
pub fn register(evaluate: Evaluate) {
    let _ = EVALUATE.set(evaluate);
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Damaged, format!("a formula of the model is damaged: {what}"))
        .help("fit the model again, or fetch the file again")
}

/// A bucket that a formula covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Its code.
    pub code: u32,
    /// Its smallest number.
    pub first: i64,
    /// Its largest.
    pub last: i64,
}

/// The buckets between two codes in the order of their numbers.
///
/// # Errors
/// When they are not all buckets of numbers: exact values have buckets of their own, and categories have no order.
pub fn buckets(rule: &Rule, (from, to): (u32, u32)) -> Result<Vec<Bucket>> {
    let least = match rule {
        Rule::Exact { values, .. } => values.len() as u32 + 1,
        Rule::Category { .. } => return Err(damaged("its dimension has no order")),
        _ => 1,
    };
    if from < least || to < from || to - from >= BUCKETS {
        return Err(damaged("the codes that it covers"));
    }
    let bucket = |code: u32| {
        let range = rule.range(code)?;
        Some(Bucket { code, first: range.first, last: range.last })
    };
    let buckets = (from..=to).map(bucket).collect::<Option<Vec<_>>>();
    let mut buckets =
        buckets.ok_or_else(|| damaged("it covers a code that its bucket rule does not have"))?;
    buckets.sort_unstable_by_key(|bucket| bucket.first);
    Ok(buckets)
}

impl Formula {
    /// Requests of each code that has some; they add up to all.
    fn counts(&self, rule: &Rule) -> Result<Vec<(u32, u64)>> {
        let buckets = buckets(rule, self.codes)?;
        let evaluate = EVALUATE.get().ok_or_else(|| {
            Error::new(
                ErrorKind::Damaged,
                "the model has formulas in place of histograms, and nothing here evaluates them",
            )
            .help("load it with Loadstone's Python library")
        })?;
        let numbers: Vec<(i64, i64)> = buckets.iter().map(|bucket| (bucket.first, bucket.last)).collect();
        let shares = evaluate(&self.family, &self.parameters, &numbers)?;
        let sum: f64 = shares.iter().sum();
        let fits = shares.len() == buckets.len() && shares.iter().all(|share| *share >= 0.0);
        if !fits || sum <= 0.0 || !sum.is_finite() {
            let at = format!("{} {:?}", self.family, self.parameters);
            return Err(damaged(&format!("{at} has no distribution over buckets {:?}", self.codes)));
        }
        // Whole numbers whose running total is the nearest to what it should be.
        let (mut due, mut given) = (0.0, 0);
        let mut counts = Vec::new();
        for (bucket, share) in buckets.iter().zip(&shares) {
            due += share / sum * self.requests as f64;
            let upto = (due.round() as u64).clamp(given, self.requests);
            if upto > given {
                counts.push((bucket.code, upto - given));
            }
            given = upto;
        }
        if let (Some(last), true) = (counts.last_mut(), given < self.requests) {
            last.1 += self.requests - given;
        }
        Ok(counts)
    }
}

/// The key of a slice in a link's layout, without the code that is set.
fn slice(formula: &Formula, link: &Link, layout: &Layout, matrices: usize) -> Result<(usize, u64)> {
    let matrix = match (formula.matrix, link.by_matrix) {
        (Some(m), true) if (m as usize) < matrices => m as usize,
        (None, false) => 0,
        _ => return Err(damaged("its matrix")),
    };
    if formula.given.len() != link.given.len() {
        return Err(damaged("what it is given"));
    }
    let part = |(at, &code): (usize, &u32)| layout.place(at).part(code);
    let key = formula.given.iter().enumerate().map(part).try_fold(0, |key, part| Some(key | part?));
    Ok((matrix, key.ok_or_else(|| damaged("what it is given"))?))
}

/// The cells of a link with those of its formulas.
pub(super) fn expand(header: &Header, link: &Link, told: &LinkCells) -> Result<Vec<Cells>> {
    if link.formulas.len() > FORMULAS {
        return Err(damaged("there are too many"));
    }
    let all: u64 = header.windows.counts.iter().sum();
    let (rule, place) = (&header.dimensions[link.dimension].rule, told.layout.place(link.given.len()));
    let mut pairs: Vec<Vec<(u64, u64)>> = vec![Vec::new(); told.cells.len()];
    for formula in &link.formulas {
        if formula.requests > all {
            return Err(damaged("it has more requests than the model"));
        }
        let (matrix, key) = slice(formula, link, &told.layout, told.cells.len())?;
        for (code, count) in formula.counts(rule)? {
            let part = place.part(code).ok_or_else(|| damaged("a code that does not fit"))?;
            pairs[matrix].push((key | part, count));
        }
    }
    let add = |(cells, mut pairs): (&Cells, Vec<(u64, u64)>)| {
        if pairs.is_empty() {
            return cells.clone();
        }
        pairs.extend(cells.keys.iter().copied().zip(cells.counts.iter().copied()));
        Cells::from_pairs(pairs)
    };
    Ok(told.cells.iter().zip(pairs).map(add).collect())
}

/// Takes the cells that a link's formulas stand for out of its tables, and tells the formulas how many requests those
/// have.
///
/// # Errors
/// When a formula is of no slice, or of one without requests.
pub(super) fn replace(header: &Header, link: &mut Link, own: &mut LinkCells) -> Result<()> {
    let rule = &header.dimensions[link.dimension].rule;
    let at = link.given.len();
    let mut formulas = std::mem::take(&mut link.formulas);
    for formula in &mut formulas {
        buckets(rule, formula.codes)?;
        let (matrix, key) = slice(formula, link, &own.layout, own.cells.len())?;
        let (place, cells) = (own.layout.place(at), &mut own.cells[matrix]);
        let (from, to) = formula.codes;
        let mut kept = Cells::default();
        formula.requests = 0;
        for (&cell, &count) in cells.keys.iter().zip(&cells.counts) {
            let code = place.code(cell);
            if cell & !place.bits() == key && (from..=to).contains(&code) {
                formula.requests += count;
            } else {
                kept.keys.push(cell);
                kept.counts.push(count);
            }
        }
        if formula.requests == 0 {
            return Err(Error::new(ErrorKind::Damaged, "a formula stands for no request"));
        }
        *cells = kept;
    }
    link.formulas = formulas;
    Ok(())
}
