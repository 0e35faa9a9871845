//! Whether what is written is verified.

use crate::check::invalid;
use crate::content::find;
use crate::{Backend, Error, Plan, Prepare, Source, TargetKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How targets are verified: while the load goes on, and from end to end when it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// Bytes of what is told apart: 512, 1024, 2048 or 4096; with `content` it is the unit of that.
    #[serde(default = "page")]
    pub unit: u32,
    /// Where what is known is kept for later, while the load goes on and at its end; a file that is there is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// What an earlier run kept: targets hold what it says, and the load goes on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
}

fn page() -> u32 {
    4096
}

impl Plan {
    /// What can be known of a verification without looking at targets.
    pub(crate) fn check_verify(&self) -> Result<(), Error> {
        let Some(verify) = &self.verify else { return Ok(()) };
        if ![512, 1024, 2048, 4096].contains(&verify.unit) {
            return invalid("verify.unit", format!("is {}; use 512, 1024, 2048 or 4096", verify.unit));
        }
        if self.dataset().is_some() {
            let what = "needs blocks that follow from their place and generation, and chunks of a dataset follow from \
                        what was written before; leave out the verification, or ask for dedupe and compress ratios";
            return invalid("verify", what);
        }
        for (i, target) in self.targets.iter().enumerate() {
            let place = format!("targets[{i}]");
            match target.kind {
                TargetKind::File | TargetKind::Device => {}
                TargetKind::Null => {
                    return invalid(place, "holds nothing that could be verified; use a file or device");
                }
                TargetKind::Tree if verify.state.is_some() || verify.from.is_some() => {
                    let what = "is a tree, and a state is kept of files and devices only; trees are verified while the \
                                load goes on and at its end";
                    return invalid(place, what);
                }
                TargetKind::Tree => {}
            }
            if verify.from.is_some() && target.prepare != Prepare::None {
                let what = "is to be filled, and the state says what it holds; leave out one or the other";
                return invalid(place, what);
            }
        }
        for (i, set) in self.sets.iter().enumerate() {
            let place = format!("sets[{i}]");
            if set.zeros {
                return invalid(place, "holds zeros, which tell nothing; leave out one or the other");
            }
            if set.reuse {
                return invalid(
                    place,
                    "uses files of an earlier run, of which nothing is known; make them anew",
                );
            }
        }
        for (i, worker) in self.workers.iter().enumerate() {
            if worker.backend == Backend::Files {
                let what =
                    "goes to names of a trace or model, which are not verified; leave out the verification";
                return invalid(format!("workers[{i}]"), what);
            }
            let Source::Program { ops, .. } = &worker.source else { continue };
            if let Some(op) = find(ops, &|op| op.zeros) {
                let what = "writes zeros, which tell nothing; leave out one or the other";
                return invalid(format!("workers[{i}], op {:?}", op.name), what);
            }
        }
        Ok(())
    }
}
