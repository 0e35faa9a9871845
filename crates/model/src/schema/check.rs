//! The laws of a header.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::Field;
use crate::feature::recency::distances::Distances;
use crate::schema::chain::{Chain, Formula};
use crate::schema::dimension::{Dimension, Role, check_set};
use crate::schema::header::{Header, VERSION};
use crate::schema::rule::Rule;

impl Header {
    /// Refuses a header that breaks a law of the format; cells are checked by [`Model::check`].
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: &str| {
            Err(Error::new(ErrorKind::Damaged, format!("the model's header is damaged: {what}")))
        };
        if self.version != VERSION {
            return wrong("its version");
        }
        let set: Vec<_> = self.dimensions.iter().map(|d| (d.feature, d.role)).collect();
        check_set(&set, self.offset_rule)?;
        for d in &self.dimensions {
            d.rule
                .check()
                .map_err(|e| Error::new(ErrorKind::Asked, format!("dimension {}: {e}", d.feature)))?;
            // What numbers a user's feature has is not known without it.
            if !d.feature.is_users() && !d.rule.suits(d.feature.kind()) {
                return wrong("a bucket rule has numbers its feature never has");
            }
            if !power_of_two(d.grain) {
                return wrong("a grain is not a power of two");
            }
        }
        if !power_of_two(self.offset_grain) || self.far.is_some_and(|far| far < 0) {
            return wrong("the offset grain or the far distance");
        }
        if let Some(what) = self.distances.as_ref().and_then(Distances::wrong) {
            return wrong(what);
        }
        let by_distance = |d: &Dimension| d.role == Role::Sets && d.feature.kind().field == Field::Distance;
        if self.distances.is_none() && self.dimensions.iter().any(by_distance) {
            return wrong("it draws by stack distances and has none");
        }
        self.check_tables()?;
        let (n, w) = (self.dimensions.len(), &self.windows);
        let mut dropped: Vec<usize> = self.back_off.clone();
        dropped.sort_unstable();
        let given: Vec<usize> = (0..n).filter(|&d| self.dimensions[d].role == Role::Given).collect();
        if dropped != given {
            return wrong("the back-off order must name every given dimension once");
        }
        if !w.have_time() {
            return wrong("the windows reach beyond all time");
        }
        let covered = w.matrices.iter().try_fold(0u64, |sum, run| sum.checked_add(run.0));
        if covered != Some(w.counts.len() as u64) || w.matrices.iter().any(|run| run.0 == 0) {
            return wrong("the phases do not cover the windows");
        }
        if w.counts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)).is_none() {
            return wrong("the windows hold more requests than can be counted");
        }
        self.check_groups()?;
        let mut ids: Vec<u32> = self.objects.iter().map(|o| o.id).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|w| w[0] == w[1]) || ids.last().is_some_and(|&id| id >= most_ids(ids.len())) {
            return wrong("objects repeat, or their ids are not dense");
        }
        let known = |id: &i64| u32::try_from(*id).is_ok_and(|id| ids.binary_search(&id).is_ok());
        for d in
            self.dimensions.iter().filter(|d| d.feature.kind().field == Field::Object && d.role == Role::Sets)
        {
            if !matches!(&d.rule, Rule::Category { values } if values.iter().all(known)) {
                return wrong("an object is drawn that is not known");
            }
        }
        if self.objects.iter().any(|o| o.extent < 0 || o.region_shift > 62) {
            return wrong("an object's extent or region width");
        }
        Ok(())
    }

    fn check_groups(&self) -> Result<()> {
        let wrong = |what: &str| {
            Err(Error::new(ErrorKind::Damaged, format!("the model's groups are damaged: {what}")))
        };
        let (groups, line) = (&self.windows.groups, &self.windows);
        let mut codes: Vec<u32> = groups.ops.iter().map(|ops| ops.code).collect();
        codes.sort_unstable();
        codes.dedup();
        if codes.len() != groups.ops.len() || codes.len() > MAX_OPS {
            return wrong("an op is there twice, or there are too many");
        }
        if groups.ops.iter().any(|ops| ops.requests.len() != groups.windows.len()) {
            return wrong("an op is not counted in every group");
        }
        if groups.is_empty() {
            return if groups.windows.is_empty() { Ok(()) } else { wrong("they have no ops") };
        }
        // They end where phases do, and have the requests of their windows.
        let mut phases = line.matrices.iter().map(|run| run.0);
        let (mut at, mut left) = (0usize, 0);
        for (g, &windows) in groups.windows.iter().enumerate() {
            if left == 0 {
                left = phases.next().unwrap_or(0);
            }
            if windows == 0 || windows > left {
                return wrong("one lies in two phases, or has no windows");
            }
            left -= windows;
            let counts = &line.counts[at..at + windows as usize];
            at += windows as usize;
            let told = groups.ops.iter().try_fold(0u64, |sum, ops| sum.checked_add(ops.requests[g]));
            if told.is_none_or(|told| told > counts.iter().sum()) {
                return wrong("one has more requests than its windows");
            }
        }
        if at != line.counts.len() { wrong("they do not cover the windows") } else { Ok(()) }
    }

    fn check_tables(&self) -> Result<()> {
        let wrong = |what: &str| {
            Err(Error::new(ErrorKind::Damaged, format!("the model's tables are damaged: {what}")))
        };
        let role = |d: &usize| self.dimensions[*d].role;
        let mut placed = vec![false; self.dimensions.len()];
        let mut drawn = 0;
        for table in &self.tables {
            if table.dimensions.is_empty() || table.dimensions.iter().any(|&d| d >= placed.len()) {
                return wrong("a table has no dimensions, or unknown ones");
            }
            for &d in &table.dimensions {
                if std::mem::replace(&mut placed[d], true) {
                    return wrong("a dimension is there twice");
                }
            }
            let observed = table.dimensions.iter().filter(|d| role(d) == Role::Observed).count();
            if observed != 0 && observed != table.dimensions.len() {
                return wrong("an observed dimension must not share a table with others");
            }
            drawn += usize::from(observed == 0);
            let given = table.dimensions.iter().filter(|d| role(d) == Role::Given);
            let mut told: Vec<usize> = table.given.clone();
            told.sort_unstable();
            if !given.copied().collect::<std::collections::BTreeSet<_>>().into_iter().eq(told) {
                return wrong("what a table is given must be its dimensions with that role");
            }
        }
        if placed.contains(&false) {
            return wrong("a dimension is in no table");
        }
        if drawn != 1 {
            return wrong("requests must be drawn from one table");
        }
        self.chain.as_ref().map_or(Ok(()), |chain| chain.check(self))
    }
}

/// Largest number of objects; ids beyond are a sign that they are not dense.
pub(crate) const MAX_OBJECTS: u32 = 1 << 22;

/// One past the largest id of so many objects. Some of a trace are left out, but tables by id must not be far larger
/// than the file.
fn most_ids(objects: usize) -> u32 {
    objects.saturating_mul(256).saturating_add(4096).min(MAX_OBJECTS as usize) as u32
}

/// Largest number of ops that groups count; op codes fit a byte.
const MAX_OPS: usize = 255;

fn power_of_two(n: i64) -> bool {
    n > 0 && n & (n - 1) == 0
}

impl Chain {
    /// Refuses links that cannot be drawn from one after the other.
    fn check(&self, header: &Header) -> Result<()> {
        let wrong =
            |what: &str| Err(Error::new(ErrorKind::Damaged, format!("the model's chain is damaged: {what}")));
        let drawn = &header.tables[header.drawn_table()].dimensions;
        let mut set: Vec<usize> = Vec::new();
        for link in &self.links {
            let mut given = link.given.clone();
            given.sort_unstable();
            given.dedup();
            if given.len() != link.given.len() || !given.iter().all(|d| set.contains(d)) {
                return wrong("a link is given a dimension twice, or one that no link before it sets");
            }
            if set.contains(&link.dimension) || !drawn.contains(&link.dimension) {
                return wrong("a dimension is set twice, or is not drawn");
            }
            if let Some(tie) = &link.tie
                && (!set.contains(&tie.dimension) || !tie.odds.is_finite() || tie.odds <= 0.0)
            {
                return wrong(
                    "a link is tied to a dimension that no link before it sets, or its odds are not above 0",
                );
            }
            if !link.continues.is_empty() && link.by_matrix {
                return wrong("a link has shares by matrix beside tables by matrix");
            }
            set.push(link.dimension);
            let numbers = |formula: &Formula| formula.parameters.iter().all(|p| p.is_finite());
            if !link.formulas.iter().all(numbers) {
                return wrong("a formula's parameter is not a finite number");
            }
        }
        if set.len() != drawn.len() {
            return wrong("it does not set every dimension that is drawn");
        }
        // Groups of windows count the requests of each op, so this table must be exact.
        let first = &self.links[0];
        let op = header.dimensions[first.dimension].feature.kind().field == Field::Op;
        if !op || header.dimensions[first.dimension].role != Role::Sets || !first.by_matrix {
            return wrong("its first link is not the op by matrix");
        }
        Ok(())
    }
}
