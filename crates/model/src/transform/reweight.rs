//! A model with other numbers of requests: cells, windows and groups that agree again.

use super::Apportion;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Matrix, Model};
use crate::schema::cells::Cells;
use crate::schema::header::{Groups, OpCounts, Windows};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Windows that were counted together, and their requests by op.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The windows.
    pub windows: Range<usize>,
    /// Their matrix.
    pub matrix: usize,
    /// Requests, by op as [`Told::ops`] numbers them.
    pub requests: Vec<u64>,
}

/// The time line as groups that tell all their ops.
pub struct Told {
    /// Code of each op; the last is the one the header does not list.
    pub ops: Vec<u32>,
    /// In order of time; they cover all windows.
    pub groups: Vec<Group>,
}

impl Told {
    /// What the header of a model tells; where that is nothing, each phase is a group of one op.
    ///
    /// # Errors
    /// Where the model does not tell which of its requests have which op.
    pub fn of(model: &Model, op: usize) -> Result<Told> {
        let line = &model.header.windows;
        let listed: Vec<u32> = line.groups.ops.iter().map(|ops| ops.code).collect();
        let marginal = model.marginal(op, None)?;
        let rest: Vec<u32> =
            marginal.keys.iter().map(|&key| key as u32).filter(|c| !listed.contains(c)).collect();
        let [rest] = rest[..] else {
            return Err(Error::new(
                ErrorKind::Asked,
                "the model does not tell which of its requests have which op",
            )
            .help("fit it again with this version"));
        };
        let lengths: Vec<u64> = match line.groups.windows.is_empty() {
            true => line.matrices.iter().map(|run| run.0).collect(),
            false => line.groups.windows.clone(),
        };
        let mut matrices = model.matrix_of_window();
        let mut at = 0;
        let groups = lengths.iter().enumerate().map(|(g, &length)| {
            let windows = at..at + length as usize;
            at = windows.end;
            let matrix = matrices.by_ref().take(length as usize).last().unwrap_or(0) as usize;
            let mut requests: Vec<u64> = line.groups.ops.iter().map(|ops| ops.requests[g]).collect();
            let all: u64 = line.counts[windows.clone()].iter().sum();
            requests.push(all.saturating_sub(requests.iter().sum()));
            Group { windows, matrix, requests }
        });
        let groups = groups.collect();
        Ok(Told { ops: listed.into_iter().chain([rest]).collect(), groups })
    }

    /// Requests of each op in each matrix.
    fn by_matrix(&self, matrices: usize) -> Vec<Vec<u64>> {
        let mut sums = vec![vec![0; self.ops.len()]; matrices];
        for group in &self.groups {
            for (sum, n) in sums[group.matrix].iter_mut().zip(&group.requests) {
                *sum += n;
            }
        }
        sums
    }
}

impl Model {
    /// The model with other numbers of requests: `due` is how many of each op a group should have. In a matrix the
    /// cells of an op all grow or shrink alike, those of one that was not there are those of all matrices; what is
    /// observed goes with the whole matrix.
    ///
    /// # Errors
    /// When no request is left.
    pub(super) fn retold(&self, op: usize, due: impl Fn(&Group) -> Vec<f64>) -> Result<Model> {
        let table = self.header.drawn_table();
        let at = (self.header.tables[table].dimensions.iter().position(|d| *d == op))
            .ok_or_else(|| Error::new(ErrorKind::Asked, "the op is not drawn"))?;
        let old = Told::of(self, op)?;
        let mut given = vec![vec![Apportion::default(); old.ops.len()]; self.matrices.len()];
        let mut new = Told { ops: old.ops.clone(), groups: old.groups.clone() };
        for group in &mut new.groups {
            let shares = due(group);
            let given = given[group.matrix].iter_mut();
            group.requests = given.zip(shares).map(|(given, share)| given.next(share)).collect();
        }
        let (before, after) = (old.by_matrix(self.matrices.len()), new.by_matrix(self.matrices.len()));
        let number: FxHashMap<u32, usize> = old.ops.iter().enumerate().map(|(i, code)| (*code, i)).collect();
        // An op that a matrix did not have is there as it is elsewhere.
        let mut elsewhere = Cells::default();
        if before.iter().zip(&after).any(|(b, a)| b.iter().zip(a).any(|(&b, &a)| b == 0 && a > 0)) {
            self.matrices.iter().for_each(|matrix| elsewhere.add(&matrix.tables[table]));
        }
        let op_of = |key: u64| number[&self.layouts[table].code(key, at)];
        let mut all = vec![0u64; old.ops.len()];
        for (&key, &count) in elsewhere.keys.iter().zip(&elsewhere.counts) {
            all[op_of(key)] += count;
        }
        let matrices =
            self.matrices.iter().zip(before.iter().zip(&after)).map(|(matrix, (before, after))| {
                let share = |i: usize, of: u64| after[i] as f64 / of.max(1) as f64;
                let whole = after.iter().sum::<u64>() as f64 / before.iter().sum::<u64>().max(1) as f64;
                let tables = matrix.tables.iter().enumerate().map(|(t, cells)| {
                    let mut given = vec![Apportion::default(); old.ops.len()];
                    if t != table {
                        // Observed, which says nothing of ops.
                        return regrown(cells, |_, count| given[0].next(count as f64 * whole));
                    }
                    let mut own = regrown(cells, |key, count| {
                        let i = op_of(key);
                        given[i].next(count as f64 * share(i, before[i]))
                    });
                    own.add(&regrown(&elsewhere, |key, count| {
                        let i = op_of(key);
                        if before[i] > 0 { 0 } else { given[i].next(count as f64 * share(i, all[i])) }
                    }));
                    own
                });
                Matrix { tables: tables.collect() }
            });
        let matrices: Vec<Matrix> = matrices.collect();
        let mut model =
            Model { header: self.header.clone(), layouts: self.layouts.clone(), matrices, links: Vec::new() };
        model.header.windows = line(&self.header.windows, &old, &new);
        model.header.source.requests = model.header.windows.counts.iter().sum();
        if model.header.source.requests == 0 {
            return Err(
                Error::new(ErrorKind::Asked, "no request would be left").help("ask for less of a change")
            );
        }
        model.drop_unused();
        Ok(model)
    }

    /// Drops matrices without requests; their windows, which have none, go on with the phase before.
    fn drop_unused(&mut self) {
        let used: Vec<bool> = self.matrices.iter().map(|matrix| matrix.requests() > 0).collect();
        let mut numbers = Vec::new();
        let mut next = 0u32;
        for &used in &used {
            numbers.push(next);
            next += u32::from(used);
        }
        let line = &mut self.header.windows;
        let first = line.matrices.iter().find(|run| used[run.1 as usize]).map_or(0, |run| run.1);
        let (mut runs, mut last) = (Vec::<(u64, u32)>::new(), first);
        for &(windows, matrix) in &line.matrices {
            last = if used[matrix as usize] { matrix } else { last };
            match runs.last_mut() {
                Some((run, same)) if *same == numbers[last as usize] => *run += windows,
                _ => runs.push((windows, numbers[last as usize])),
            }
        }
        line.matrices = runs;
        let mut used = used.into_iter();
        self.matrices.retain(|_| used.next().unwrap_or(true));
    }
}

/// Cells with other counts; those without requests are gone.
fn regrown(cells: &Cells, mut count: impl FnMut(u64, u64) -> u64) -> Cells {
    let mut new = Cells::default();
    for (&key, &old) in cells.keys.iter().zip(&cells.counts) {
        let n = count(key, old);
        if n > 0 {
            new.keys.push(key);
            new.counts.push(n);
        }
    }
    new
}

/// The time line with the new groups' requests; a group's windows keep their shares of it.
fn line(windows: &Windows, old: &Told, new: &Told) -> Windows {
    let mut counts = vec![0; windows.counts.len()];
    for (before, after) in old.groups.iter().zip(&new.groups) {
        let all = |group: &Group| group.requests.iter().sum::<u64>() as f64;
        let (from, to) = (all(before).max(1.0), all(after));
        let mut given = Apportion::default();
        for w in before.windows.clone() {
            counts[w] = given.next(windows.counts[w] as f64 * to / from);
        }
    }
    let listed = windows.groups.ops.iter().enumerate();
    let ops = listed.map(|(i, ops)| OpCounts {
        code: ops.code,
        requests: new.groups.iter().map(|group| group.requests[i]).collect(),
    });
    let groups = Groups { windows: windows.groups.windows.clone(), ops: ops.collect() };
    Windows { counts, groups, ..windows.clone() }
}
