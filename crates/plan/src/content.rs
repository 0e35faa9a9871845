//! What written data is like.

use crate::Error;
use crate::check::invalid;
use crate::{Act, Artefact, ArtefactKind, Op, Plan, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Dedupe ratio and compressibility of all that a run writes, before and while it measures; or chunks of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// How many times smaller codecs make it: 1, not at all, or 1.05 to 10.
    #[serde(default = "one")]
    pub compress: f64,
    /// Units for each unique one, over all targets; 1: all differ.
    #[serde(default = "one")]
    pub dedupe: f64,
    /// Bytes of what is deduplicated, and compressible by itself: a multiple of 4096 up to 1 MiB.
    #[serde(default = "page")]
    pub unit: u32,
    /// Id of the artefact whose chunks are written, in their order; nothing: blocks with the ratios above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The one snapshot of the dataset that is written, from 0; nothing: all, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<u32>,
}

fn one() -> f64 {
    1.0
}

fn page() -> u32 {
    4096
}

impl Plan {
    /// The dataset whose chunks are written, where there is one.
    pub fn dataset(&self) -> Option<&Artefact> {
        let id = self.content.as_ref()?.dataset.as_ref()?;
        self.artefacts.iter().find(|a| a.id == *id && a.kind == ArtefactKind::Dataset)
    }

    /// What can be known of content without looking at targets.
    pub(crate) fn check_content(&self) -> Result<(), Error> {
        let Some(content) = &self.content else { return Ok(()) };
        if content.compress != 1.0 && !(1.05..=10.0).contains(&content.compress) {
            let what = format!("is {}; use 1 (incompressible) or 1.05 to 10", content.compress);
            return invalid("content.compress", what);
        }
        if !(content.dedupe >= 1.0 && content.dedupe.is_finite()) {
            return invalid("content.dedupe", format!("is {}; use 1 (all differ) or more", content.dedupe));
        }
        if content.unit == 0 || content.unit % page() != 0 || content.unit > 1 << 20 {
            let what = format!("is {}; use a multiple of 4096 up to 1048576", content.unit);
            return invalid("content.unit", what);
        }
        match &content.dataset {
            Some(_) if (content.compress, content.dedupe, content.unit) != (1.0, 1.0, page()) => {
                let what = "says itself what is alike and compressible; leave out compress, dedupe and unit";
                return invalid("content.dataset", what);
            }
            Some(id) if self.dataset().is_none() => {
                return invalid("content.dataset", format!("no dataset has id {id:?}"));
            }
            None if content.snapshot.is_some() => {
                return invalid("content.snapshot", "is one of a dataset; name that, too");
            }
            _ => {}
        }
        let zeros = "writes zeros, and content says otherwise; leave out one or the other";
        for (i, set) in self.sets.iter().enumerate() {
            if set.zeros {
                return invalid(format!("sets[{i}]"), zeros);
            }
        }
        for (i, worker) in self.workers.iter().enumerate() {
            let Source::Program { ops, .. } = &worker.source else { continue };
            if let Some(op) = find(ops, &|op| op.zeros) {
                return invalid(format!("workers[{i}], op {:?}", op.name), zeros);
            }
        }
        Ok(())
    }
}

/// The first op of a program that is as wanted.
pub(crate) fn find<'a>(ops: &'a [Op], wanted: &dyn Fn(&Op) -> bool) -> Option<&'a Op> {
    ops.iter().find_map(|op| match op.act {
        Act::Group => find(&op.ops, wanted),
        _ => wanted(op).then_some(op),
    })
}
