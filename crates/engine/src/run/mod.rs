//! One run from its first check to its outcome, as a thread that can be watched, stopped and joined.

mod cpu_load;
mod needs;
pub mod outcome;
mod own_files;
pub mod rehearse;
mod schedule;
pub mod steady;
mod threads;
mod workers;

use crate::host::memory_cgroup::Limited;
use crate::host::remount::Remount;
use crate::host::target::{self, Open};
use crate::host::write_back::write_back;
use crate::host::{fill, page_cache, scheduling};
use crate::metrics::live::{History, Live};
use crate::metrics::progress::Progress;
use crate::payload::dataset::{self, Dataset};
use crate::payload::{self, PayloadPlan, of_target};
use crate::run::outcome::Outcome;
use crate::run::workers::{Time, Workers};
use crate::verification::{Unread, Verification};
use crate::{Error, Result};
use loadstone_plan::{Backend, Plan, Prepare, Step};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A run that has begun.
pub struct Run {
    progress: Arc<Progress>,
    history: Mutex<History>,
    thread: Mutex<Option<JoinHandle<Result<Outcome>>>>,
}

/// Checks everything that can be checked, then starts the plan in a thread of its own.
///
/// Nothing is written before every target, artefact and backend of the plan was found usable.
///
/// # Errors
/// When the plan does not hold together, a target, trace or model of it cannot be used, or the system gives no memory or
/// threads. Nothing of the plan was written then.
pub fn start(plan: Plan) -> Result<Run> {
    plan.check()?;
    needs::check(&plan)?;
    own_files::check(&plan)?;
    if plan.workers.iter().any(|w| w.backend == Backend::IoUring) {
        crate::backend::uring::available()?;
    }
    scheduling::permitted(&plan)?;
    let mut workers = Workers::assemble(&plan)?;
    let tape = dataset::of_plan(&plan)?;
    let remount = Remount::rehearse(&plan)?;
    // Before anything is made, so that what the run makes counts.
    let limited = plan.memory_limit.map(Limited::enter).transpose()?;
    let targets = target::open_all(&plan)?;
    let planted = workers.plant(&plan, &targets);
    let made = planted.and_then(|()| payload::of_plan(&plan, &targets, |unit| workers.blocks(unit)));
    let checked = made.and_then(|made| {
        let verification = Verification::new(&plan, &targets, made.as_ref().map(|made| made.blocks))?;
        Ok((made, verification))
    });
    let (made, verification) = checked.inspect_err(|_| target::discard(&targets))?;
    let dataset = tape.map(|tape| Arc::new(Dataset::new(tape, made_before(&targets, &workers))));
    let verifier = verification.as_ref().map(|verification| verification.verifier.clone());
    let payload_plan = PayloadPlan::new(made, dataset, verifier);
    let progress = Arc::new(Progress::default());
    let inner = progress.clone();
    let thread = std::thread::Builder::new()
        .name("loadstone-run".into())
        .spawn(move || {
            let _ended = Ended(&inner);
            let outcome = execute(
                &plan,
                &targets,
                workers,
                &payload_plan,
                verification.as_ref(),
                remount.as_ref(),
                &inner,
            );
            let Some(limited) = limited else { return outcome };
            let note = limited.leave();
            let mut outcome = outcome?;
            // What was measured is not lost to a group that stays.
            outcome.summary.notes.push(note.unwrap_or_else(|e| e.to_string()));
            Ok(outcome)
        })
        .map_err(|e| Error::thread("of the run", e))?;
    Ok(Run { progress, history: Mutex::default(), thread: Mutex::new(Some(thread)) })
}

/// Files that are made before the run: numbers of their contents and bytes.
fn made_before(targets: &[Open], workers: &Workers) -> impl Iterator<Item = (u64, u64)> {
    let filled = targets.iter().enumerate().filter(|(_, target)| target.prepare == Prepare::Fill);
    filled.map(|(number, target)| (of_target(number), target.size)).chain(workers.made())
}

/// Says that the run is over, also when its thread dies.
struct Ended<'a>(&'a Progress);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn execute(
    plan: &Plan,
    targets: &[Open],
    workers: Workers,
    payload_plan: &PayloadPlan,
    verification: Option<&Verification>,
    remount: Option<&Remount>,
    progress: &Arc<Progress>,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut notes = Vec::new();
    let mut workers = Some(workers);
    let mut ready = false;
    let result = (|| -> Result<()> {
        for step in &plan.steps {
            match step {
                Step::Prepare => {
                    if let Some(verification) = verification
                        && targets.iter().any(|target| target.prepare == Prepare::Fill)
                    {
                        verification.outdate();
                    }
                    let filled = fill::fill(targets, progress, plan.seed, payload_plan)?
                        && workers
                            .as_ref()
                            .map_or(Ok(true), |workers| workers.build(progress, plan.seed, payload_plan))?;
                    if !filled {
                        outcome.summary.partial = true;
                        notes
                            .push("stopped while a target was being made ready; nothing was measured".into());
                        return Ok(());
                    }
                    ready = true;
                }
                Step::DropCaches { host } => notes.push(page_cache::drop_all(targets, *host, progress)?),
                Step::Remount => {
                    let Some(remount) = remount else { continue };
                    let mut held: Vec<_> = targets.iter().map(Open::fd).collect();
                    held.extend(workers.iter().flat_map(Workers::held));
                    notes.push(remount.perform(&held, progress)?);
                    target::lock_all(targets)?;
                    target::advise_all(plan, targets)?;
                }
                Step::Run { duration_ns, ramp_ns, steady, .. } => {
                    let Some(workers) = workers.take() else { continue };
                    ready = true;
                    let time = Time { ramp: *ramp_ns as i64, duration: *duration_ns as i64, steady: *steady };
                    let run = || workers.run(plan, targets, payload_plan, progress, time);
                    outcome = match verification {
                        None => run(),
                        Some(verification) => verification.keeping(run),
                    }?;
                    outcome.summary.written_back = write_back(plan, targets, progress);
                    // The load's threads are gone, and have added what they saw.
                    let unread = outcome.summary.verified.take().map_or_else(Unread::default, |sets| {
                        Unread { reason: sets.unread, unreadable: sets.unreadable }
                    });
                    let finish = |verification: &Verification| verification.finish(targets, progress, unread);
                    outcome.summary.verified = verification.map(finish);
                }
            }
        }
        Ok(())
    })();
    if !ready {
        // A file that was never filled is of no use to anyone.
        target::discard(targets);
    }
    result?;
    notes.extend(payload_plan.content().and_then(|made| made.note()));
    notes.extend(verification.and_then(Verification::note));
    outcome.summary.content_blocks = payload_plan.content().map(|made| made.blocks);
    outcome.summary.notes.splice(0..0, notes);
    outcome.groups = plan.workers.iter().map(|w| w.group.clone()).collect();
    Ok(outcome)
}

impl Run {
    /// What the run is doing now.
    pub fn live(&self) -> Live {
        self.progress.live(&self.history)
    }

    /// Ends issuing; what is in flight is waited for, and the outcome is marked partial.
    pub fn stop(&self) {
        self.progress.ask_to_stop();
    }

    /// Requests completed so far, readable while the run goes on.
    pub fn progress(&self) -> Arc<AtomicU64> {
        self.progress.requests.clone()
    }

    /// Waits until the run is over, at most `timeout`; whether it is.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.progress.wait(timeout)
    }

    /// Waits for the end and takes the outcome.
    ///
    /// # Errors
    /// What ended the run early, such as a request that cannot be performed; [`Error::Thread`] for a defect; and
    /// [`Error::Taken`] the second time.
    pub fn join(&self) -> Result<Outcome> {
        let thread = self.thread.lock().unwrap_or_else(|e| e.into_inner()).take().ok_or(Error::Taken)?;
        thread.join().map_err(|_| Error::Thread("loadstone-run".into()))?
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
        let _ = self.join();
    }
}
