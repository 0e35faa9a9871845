//! A model of several loads at once: applications that come to share one store.

use super::common_stream::Together;
use crate::error::{Error, ErrorKind, Result};
use crate::feature::Field;
use crate::feature::files::catalog::Catalog;
use crate::fit::{FitOptions, Fitter};
use crate::model::Model;
use crate::schema::dimension::{Role, Spec};
use crate::schema::rule::{Rule, RuleSpec};
use loadstone_trace::depend::MOST_BACK;
use loadstone_trace::{Batch, Info, Requests};
use std::sync::Arc;

/// A model of several loads at once, each on objects of its own, from `shifts_ns` on: requests are drawn of each and
/// fitted together, as those of one follow those of another now and what a request goes on from lies farther back.
///
/// Where they draw think times each part's requests go on waiting for its own, and actors are those of one part.
///
/// Files of each load are in a directory of its own, as if the applications ran side by side.
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
    progress: &mut dyn FnMut(u64) -> loadstone_trace::Result<()>,
) -> Result<Model> {
    let Some(first) = models.first() else {
        return Err(Error::new(ErrorKind::Asked, "there is no model to merge"));
    };
    for (i, other) in models.iter().enumerate().skip(1) {
        alike(first, other).map_err(|e| {
            Error::new(ErrorKind::Asked, format!("models 1 and {} cannot be merged: {e}", i + 1))
        })?;
    }
    // What is in which directory is known once all was drawn.
    let total = models.iter().map(|model| model.requests()).sum::<u64>();
    let mut catalog = Arc::default();
    if first.header.is_of_files() {
        let mut drawn = Together::new(models, shifts_ns, seed)?;
        catalog = Arc::new(Catalog::of(&mut drawn, Together::objects, |drawn| progress(drawn.rows() / 2))?);
    }
    let mut options = options(models, shifts_ns);
    let (mut model, drawn) = loop {
        let mut drawn = Together::new(models, shifts_ns, seed)?;
        match fitted(&mut drawn, &options, &catalog, total, progress) {
            Err(error) if options.spare(&error, &[]) => {}
            model => break (model?, drawn),
        }
    };
    let (layer, objects) = (first.header.layer().into(), drawn.objects());
    model.set_source(&Info { format: "models".into(), layer, objects, ..Info::default() });
    model.header.source.counts.requests = drawn.rows();
    model.header.source.warnings.extend(options.spared());
    let shifted =
        |i: usize| shifts_ns.get(i).filter(|s| **s != 0).map(|s| format!(" after {} s", *s as f64 / 1e9));
    let parts = (0..models.len())
        .map(|i| format!("{} requests{}", models[i].requests(), shifted(i).unwrap_or_default()));
    model.header.source.changes = vec![format!("merged: {}", parts.collect::<Vec<_>>().join(", "))];
    if drawn.forgotten() > 0 {
        model.header.source.changes.push(format!(
            "merged: {} requests wait for nothing now, as what they waited for is more than {MOST_BACK} requests back",
            drawn.forgotten()
        ));
    }
    Ok(model)
}

/// A model of the common stream; `catalog` says what is known of its files.
fn fitted(
    drawn: &mut Together,
    options: &FitOptions,
    catalog: &Arc<Catalog>,
    total: u64,
    progress: &mut dyn FnMut(u64) -> loadstone_trace::Result<()>,
) -> Result<Model> {
    let mut fitter = Fitter::new(options)?;
    fitter.set_catalog(Arc::clone(catalog));
    let mut batch = Batch::default();
    while drawn.next(&mut batch)? {
        fitter.push(&batch)?;
        progress(if options.files { (total + drawn.rows()) / 2 } else { drawn.rows() })?;
    }
    fitter.finish()
}

/// Whether two models have the same dimensions with the same kinds of buckets.
fn alike(a: &Model, b: &Model) -> Result<()> {
    let (layer, other) = (a.header.layer(), b.header.layer());
    if layer != other {
        return Err(Error::new(
            ErrorKind::Asked,
            format!("one model draws requests of the layer {layer}, the other of {other}"),
        )
        .help("merge models of blocks with models of blocks, and models of files with models of files"));
    }
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
        Some(what) => Err(Error::new(ErrorKind::Asked, what).help("fit both with the same dimensions")),
        None if a.header.offset_rule != b.header.offset_rule => {
            Err(Error::new(ErrorKind::Asked, "their offset rules differ")
                .help("fit both with the same offset rule"))
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
    let group = first.merging.group;
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
        group: Some(group),
        files: first.is_of_files(),
        ..FitOptions::default()
    }
}
