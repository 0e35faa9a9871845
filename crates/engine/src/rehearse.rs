//! Whether a plan would start, found out before anything is made.

use crate::remount::Remount;
use crate::target;
use crate::team::Team;
use crate::verification;
use crate::{Result, dataset, needs, own, priority};
use loadstone_plan::{Backend, Plan, Source};
use std::path::{Path, PathBuf};

/// Checks all that [`crate::start`] does without making, reserving or writing anything.
///
/// `made`: files that plans before this one make, whose size and content nobody knows yet. Trees are not looked at.
///
/// # Errors
/// Those of [`crate::start`].
pub fn rehearse(plan: &Plan, made: &[PathBuf]) -> Result<()> {
    plan.check()?;
    needs::check(plan)?;
    own::check(plan)?;
    if plan.workers.iter().any(|w| w.backend == Backend::IoUring) {
        crate::backend::uring::available()?;
    }
    priority::permitted(plan)?;
    // Uniform sources need nothing from outside, and may need much memory.
    if plan.workers.iter().any(|w| !matches!(w.source, Source::Uniform { .. })) {
        Team::assemble(&Plan { log: None, ..plan.clone() })?;
    }
    dataset::of_plan(plan)?;
    Remount::rehearse(plan)?;
    let made = |path: &Path| made.iter().any(|one| one == path);
    for target in &plan.targets {
        if !made(&target.path) {
            target::look(plan, target)?;
        }
    }
    verification::rehearse(plan, made)
}
