//! Whether a plan would start, found out before anything is made.

use crate::Result;
use crate::host::remount::Remount;
use crate::host::scheduling;
use crate::host::target;
use crate::payload::dataset;
use crate::run::needs;
use crate::run::own_files;
use crate::run::workers::Workers;
use crate::verification;
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
    own_files::check(plan)?;
    if plan.workers.iter().any(|w| w.backend == Backend::IoUring) {
        crate::backend::uring::available()?;
    }
    scheduling::permitted(plan)?;
    // Uniform sources need nothing from outside, and may need much memory.
    if plan.workers.iter().any(|w| !matches!(w.source, Source::Uniform { .. } | Source::Cpu { .. })) {
        Workers::assemble(&Plan { log: None, ..plan.clone() })?;
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
