//! Several loads at once: applications that come to share one store.

use crate::dimension::{Role, Spec};
use crate::feature::Field;
use crate::fit::{FitOptions, Fitter};
use crate::model::Model;
use crate::rule::{Rule, RuleSpec};
use crate::sample::Sampler;
use loadstone_trace::depend::MOST_BACK;
use loadstone_trace::{Batch, Error, Info, NONE, Object, Requests, Result};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Requests handed on at once.
const BATCH: usize = 1 << 14;

/// A drawn stream on its way into the common one.
struct Part {
    sampler: Sampler,
    batch: Batch,
    at: usize,
    shift_ns: i64,
    /// What is added to ids of its objects.
    objects: u32,
    /// Its actors in the common stream.
    actors: FxHashMap<u32, u32>,
    /// Rows of its last requests in the common stream, where they depend on each other.
    rows: VecDeque<u64>,
}

/// What all parts together count.
#[derive(Default)]
struct Common {
    /// Requests so far.
    rows: u64,
    actors: u32,
    /// Requests that wait for one too far back in the common stream, and so for none.
    forgotten: u64,
}

impl Part {
    /// Time of its next request.
    fn time(&mut self) -> Result<Option<i64>> {
        if self.at == self.batch.len() {
            self.at = 0;
            if !self.sampler.next(&mut self.batch)? {
                self.batch.clear();
                return Ok(None);
            }
        }
        Ok(Some(self.batch.time[self.at].saturating_add(self.shift_ns)))
    }

    /// Moves its next request.
    fn take(&mut self, time: i64, to: &mut Batch, common: &mut Common) {
        let (from, i) = (&self.batch, self.at);
        let mut actor = from.actor[i];
        if let (Some(&after), Some(&think)) = (from.after.get(i), from.think.get(i)) {
            // Between a request and what it waits for are now those of the others.
            let own = self.rows.len().checked_sub(after as usize).filter(|_| after > 0);
            let back = own.and_then(|at| self.rows.get(at)).map(|row| common.rows - row);
            let back = back.filter(|back| *back <= MOST_BACK).and_then(|back| u32::try_from(back).ok());
            common.forgotten += u64::from(after > 0 && back.is_none());
            to.after.push(back.unwrap_or(0));
            to.think.push(if back.is_some() { think } else { NONE });
            self.rows.push_back(common.rows);
            if self.rows.len() as u64 > MOST_BACK {
                self.rows.pop_front();
            }
            // Whoever asks has nothing to do with the other's first, second, ...
            actor = *self.actors.entry(actor).or_insert_with(|| {
                common.actors += 1;
                common.actors - 1
            });
        }
        common.rows += 1;
        to.time.push(time);
        to.op.push(from.op[i]);
        to.object.push(from.object[i] + self.objects);
        to.offset.push(from.offset[i]);
        to.size.push(from.size[i]);
        to.latency.push(from.latency[i]);
        to.flags.push(from.flags[i]);
        to.actor.push(actor);
        self.at += 1;
    }
}

/// A model of several loads at once, each on objects of its own, from `shifts_ns` on: requests are drawn of each and
/// fitted together, as those of one follow those of another now and what a request goes on from lies farther back.
///
/// Where they draw think times each part's requests go on waiting for its own, and actors are those of one part.
///
/// Windows are those of the model with the shortest; how they are merged is the first model's. Observed dimensions
/// that drawn requests do not have, such as the latency, are left out. `progress(requests)` is called after every
/// batch, and an error of it stops the work.
///
/// # Errors
/// When there is none, when dimensions or their rules differ, when a shift is negative, and those of drawing, fitting
/// and `progress`.
pub fn superposed(
    models: &[Arc<Model>],
    shifts_ns: &[i64],
    seed: u64,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Model> {
    let Some(first) = models.first() else { return Err(Error::new("there is no model to merge")) };
    for (i, other) in models.iter().enumerate().skip(1) {
        alike(first, other)
            .map_err(|e| Error::new(format!("models 1 and {} cannot be merged: {e}", i + 1)))?;
    }
    if first.header.is_of_files() {
        return Err(Error::new(
            "models of requests of files cannot be merged: each makes up a tree of its own",
        )
        .help("run them one beside the other, each on a directory"));
    }
    if let Some(shift) = shifts_ns.iter().find(|shift| **shift < 0) {
        return Err(
            Error::new(format!("a shift of {shift} ns is before the start")).help("shift the others instead")
        );
    }
    let mut parts = Vec::new();
    let (mut objects, mut base) = (Vec::<Object>::new(), 0);
    for (i, model) in models.iter().enumerate() {
        let seed = seed.wrapping_add(i as u64);
        let sampler = Sampler::new(Arc::clone(model), seed)?;
        let shift_ns = shifts_ns.get(i).copied().unwrap_or(0);
        parts.push(Part {
            sampler,
            batch: Batch::default(),
            at: 0,
            shift_ns,
            objects: base,
            actors: FxHashMap::default(),
            rows: VecDeque::new(),
        });
        let first = base;
        for object in &model.header.objects {
            let id = first + object.id;
            let taken = objects.iter().any(|other| other.name == object.name && !other.name.is_empty());
            let name = if taken { format!("{} of {}", object.name, i + 1) } else { object.name.clone() };
            objects.push(Object { id, name });
            base = base.max(id + 1);
        }
    }
    let mut fitter = Fitter::new(&options(models, shifts_ns))?;
    let (mut batch, mut common) = (Batch::default(), Common::default());
    loop {
        batch.clear();
        while batch.len() < BATCH {
            let mut soonest: Option<(i64, usize)> = None;
            for (p, part) in parts.iter_mut().enumerate() {
                if let Some(time) = part.time()? {
                    soonest = Some(soonest.map_or((time, p), |least| least.min((time, p))));
                }
            }
            let Some((time, p)) = soonest else { break };
            parts[p].take(time, &mut batch, &mut common);
        }
        if batch.is_empty() {
            break;
        }
        fitter.push(&batch)?;
        progress(common.rows)?;
    }
    let mut model = fitter.finish()?;
    model.set_source(&Info { format: "models".into(), objects, ..Info::default() });
    model.header.source.counts.requests = common.rows;
    let shifted =
        |i: usize| shifts_ns.get(i).filter(|s| **s != 0).map(|s| format!(" after {} s", *s as f64 / 1e9));
    let parts = (0..models.len())
        .map(|i| format!("{} requests{}", models[i].requests(), shifted(i).unwrap_or_default()));
    model.header.source.changes = vec![format!("merged: {}", parts.collect::<Vec<_>>().join(", "))];
    if common.forgotten > 0 {
        model.header.source.changes.push(format!(
            "merged: {} requests wait for nothing now, as what they waited for is more than {MOST_BACK} requests back",
            common.forgotten
        ));
    }
    Ok(model)
}

/// Whether two models have the same dimensions with the same kinds of buckets.
fn alike(a: &Model, b: &Model) -> Result<()> {
    let (mine, theirs) = (specs(a), specs(b));
    let differ = |spec: &Spec, others: &[Spec]| {
        let name = spec.feature.to_string();
        let base = |spec: &Spec| (spec.role, spec.rule.base.clone());
        match others.iter().find(|o| o.feature == spec.feature) {
            None => Some(format!("only one of them has the dimension {name}")),
            // Values that are common in one of them need not be in the other.
            Some(other) if base(other) != base(spec) => Some(format!(
                "{} is {} here and {} there",
                name,
                String::from(spec.clone()),
                String::from(other.clone())
            )),
            Some(_) => None,
        }
    };
    let found =
        mine.iter().find_map(|s| differ(s, &theirs)).or_else(|| theirs.iter().find_map(|s| differ(s, &mine)));
    match found {
        Some(what) => Err(Error::new(what).help("fit both with the same dimensions")),
        None if a.header.offset_rule != b.header.offset_rule => {
            Err(Error::new("their offset rules differ").help("fit both with the same offset rule"))
        }
        None => Ok(()),
    }
}

/// The dimensions of a model that drawn requests have, as they were asked for.
fn specs(model: &Model) -> Vec<Spec> {
    let dimensions = model.header.dimensions.iter();
    let is_seen = |field: Field| field == Field::Seen || Field::WAITS.contains(&field);
    let drawn = dimensions.filter(|d| d.role != Role::Observed || !is_seen(d.feature.kind().field));
    let rule = |rule: &Rule| match rule {
        Rule::Exact { rest, .. } => RuleSpec { exact: true, base: plain(rest) },
        other => RuleSpec { exact: false, base: plain(other) },
    };
    drawn.map(|d| Spec { feature: d.feature, role: d.role, rule: rule(&d.rule) }).collect()
}

/// A rule without what was learned.
fn plain(rule: &Rule) -> Rule {
    match rule {
        Rule::Linear { width, .. } => Rule::Linear { width: *width, signed: false },
        Rule::Log2 { sub, .. } => Rule::Log2 { sub: *sub, signed: false },
        _ => Rule::Category { values: Vec::new() },
    }
}

fn options(models: &[Arc<Model>], shifts_ns: &[i64]) -> FitOptions {
    let first = &models[0].header;
    let end = |(i, model): (usize, &Arc<Model>)| {
        model.span_ns().saturating_add(shifts_ns.get(i).copied().unwrap_or(0))
    };
    let mut dimensions = specs(&models[0]);
    for other in models.iter().flat_map(|model| specs(model)) {
        let mine = dimensions.iter_mut().filter(|d| d.feature == other.feature);
        mine.for_each(|d| d.rule.exact |= other.rule.exact);
    }
    FitOptions {
        window_ns: models.iter().map(|model| model.header.windows.length_ns).min(),
        span_ns: models.iter().enumerate().map(end).max(),
        merge: first.merging.mode,
        distance: first.merging.distance,
        threshold: first.merging.threshold,
        max_matrices: first.merging.max_matrices.try_into().unwrap_or(usize::MAX),
        dimensions,
        only: true,
        offset_rule: first.offset_rule,
        far: first.far,
        group: Some(first.merging.group),
        ..FitOptions::default()
    }
}
