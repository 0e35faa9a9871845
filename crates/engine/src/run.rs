//! One run from its first check to its outcome, as a thread that can be watched, stopped and joined.

use crate::clock::{self, Clock};
use crate::dataset::{self, Dataset};
use crate::flight::Level;
use crate::live::{Board, History, Live};
use crate::material::{self, Wishes, of_target};
use crate::memory::Limited;
use crate::outcome::{Outcome, WorkerLevel};
use crate::remount::Remount;
use crate::target::{self, Open};
use crate::team::Team;
use crate::verification::{Unread, Verification};
use crate::writeback::write_back;
use crate::{Error, Result, caches, needs, own, prepare, priority};
use loadstone_plan::{Backend, Plan, Prepare, Step};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const PHASES: [&str; 12] = [
    "starting",
    "filling",
    "building the tree",
    "clearing",
    "making files",
    "dropping caches",
    "remounting",
    "running",
    "writing back",
    "verifying",
    "ending",
    "done",
];

/// What the thread of a run shares with whoever watches it.
pub struct Shared {
    /// Set to end the run early.
    pub stop: Arc<AtomicBool>,
    /// Requests completed so far, for the observer.
    pub progress: Arc<AtomicU64>,
    phase: AtomicUsize,
    since: AtomicI64,
    done: AtomicU64,
    total: AtomicU64,
    duration: AtomicI64,
    board: Mutex<Option<Arc<Board>>>,
    ended: (Mutex<bool>, Condvar),
}

impl Shared {
    fn new() -> Shared {
        Shared {
            stop: Arc::new(AtomicBool::new(false)),
            progress: Arc::new(AtomicU64::new(0)),
            phase: AtomicUsize::new(0),
            since: AtomicI64::new(clock::monotonic()),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            duration: AtomicI64::new(0),
            board: Mutex::new(None),
            ended: (Mutex::new(false), Condvar::new()),
        }
    }

    /// Enters a phase of which `total` units are to be done, where that is known.
    pub fn begin(&self, phase: &str, total: Option<u64>) {
        self.done.store(0, Relaxed);
        self.total.store(total.unwrap_or(0), Relaxed);
        self.since.store(clock::monotonic(), Relaxed);
        self.phase.store(PHASES.iter().position(|p| *p == phase).unwrap_or(0), Relaxed);
    }

    /// Says that some units of the phase are done.
    pub fn advance(&self, done: u64) {
        self.done.fetch_add(done, Relaxed);
    }

    /// Units of the phase that are done.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Makes the running phase's counters visible.
    pub fn watch(&self, board: Arc<Board>, duration: i64) {
        self.duration.store(duration, Relaxed);
        *self.board.lock().unwrap_or_else(|e| e.into_inner()) = Some(board);
    }
}

/// A run that has begun.
pub struct Run {
    shared: Arc<Shared>,
    history: Mutex<History>,
    thread: Mutex<Option<JoinHandle<Result<Outcome>>>>,
}

/// Checks everything that can be checked, then starts the plan in a thread of its own.
///
/// Nothing is written before every target, artefact and backend of the plan was found usable.
pub fn start(plan: Plan) -> Result<Run> {
    plan.check()?;
    needs::check(&plan)?;
    own::check(&plan)?;
    if plan.workers.iter().any(|w| w.backend == Backend::IoUring) {
        crate::backend::uring::available()?;
    }
    priority::permitted(&plan)?;
    let mut team = Team::assemble(&plan)?;
    let tape = dataset::of_plan(&plan)?;
    let remount = Remount::rehearse(&plan)?;
    // Before anything is made, so that what the run makes counts.
    let limited = plan.memory_limit.map(Limited::enter).transpose()?;
    let targets = target::open_all(&plan)?;
    let planted = team.plant(&plan, &targets);
    let made = planted.and_then(|()| material::of_plan(&plan, &targets, |unit| team.blocks(unit)));
    let checked = made.and_then(|made| {
        let verification = Verification::new(&plan, &targets, made.as_ref().map(|made| made.blocks))?;
        Ok((made, verification))
    });
    let (made, verification) = checked.inspect_err(|_| target::discard(&targets))?;
    let dataset = tape.map(|tape| Arc::new(Dataset::new(tape, made_before(&targets, &team))));
    let verifier = verification.as_ref().map(|verification| verification.verifier.clone());
    let wishes = Wishes { made, dataset, verifier };
    let shared = Arc::new(Shared::new());
    let inner = shared.clone();
    let thread = std::thread::Builder::new()
        .name("loadstone-run".into())
        .spawn(move || {
            let _ended = Ended(&inner);
            let outcome =
                execute(&plan, &targets, team, &wishes, verification.as_ref(), remount.as_ref(), &inner);
            let Some(limited) = limited else { return outcome };
            let note = limited.leave();
            let mut outcome = outcome?;
            // What was measured is not lost to a group that stays.
            outcome.summary.notes.push(note.unwrap_or_else(|e| e.to_string()));
            Ok(outcome)
        })
        .map_err(|e| Error::thread("of the run", e))?;
    Ok(Run { shared, history: Mutex::default(), thread: Mutex::new(Some(thread)) })
}

/// Files that are made before the run: numbers of their contents and bytes.
fn made_before(targets: &[Open], team: &Team) -> impl Iterator<Item = (u64, u64)> {
    let filled = targets.iter().enumerate().filter(|(_, target)| target.prepare == Prepare::Fill);
    filled.map(|(number, target)| (of_target(number), target.size)).chain(team.made())
}

/// Says that the run is over, also when its thread dies.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.begin("done", None);
        *self.0.ended.0.lock().unwrap_or_else(|e| e.into_inner()) = true;
        self.0.ended.1.notify_all();
    }
}

fn execute(
    plan: &Plan,
    targets: &[Open],
    team: Team,
    wishes: &Wishes,
    verification: Option<&Verification>,
    remount: Option<&Remount>,
    shared: &Arc<Shared>,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut notes = Vec::new();
    let mut team = Some(team);
    let mut ready = false;
    let result = (|| -> Result<()> {
        for step in &plan.steps {
            match step {
                Step::Prepare => {
                    let filled = prepare::fill(targets, shared, plan.seed, wishes)?
                        && team.as_ref().map_or(Ok(true), |team| team.build(shared, plan.seed, wishes))?;
                    if !filled {
                        outcome.summary.partial = true;
                        notes
                            .push("stopped while a target was being made ready; nothing was measured".into());
                        return Ok(());
                    }
                    ready = true;
                }
                Step::DropCaches { host } => notes.push(caches::drop_all(targets, *host, shared)?),
                Step::Remount => {
                    let Some(remount) = remount else { continue };
                    let mut held: Vec<_> = targets.iter().map(Open::fd).collect();
                    held.extend(team.iter().flat_map(Team::held));
                    notes.push(remount.perform(&held, shared)?);
                    target::lock_all(targets)?;
                    target::advise_all(plan, targets)?;
                }
                Step::Run { duration_ns, .. } => {
                    let Some(team) = team.take() else { continue };
                    ready = true;
                    let run = || team.run(plan, targets, wishes, shared, *duration_ns as i64);
                    outcome = match verification {
                        None => run(),
                        Some(verification) => verification.keeping(run),
                    }?;
                    outcome.summary.written_back = write_back(plan, targets, shared);
                    // The load's threads are gone, and have added what they saw.
                    let unread = outcome.summary.verified.take().map_or_else(Unread::default, |sets| {
                        Unread { reason: sets.unread, unreadable: sets.unreadable }
                    });
                    let finish = |verification: &Verification| verification.finish(targets, shared, unread);
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
    notes.extend(wishes.made.as_ref().and_then(|made| made.note()));
    outcome.summary.content_blocks = wishes.made.as_ref().map(|made| made.blocks);
    outcome.summary.notes.splice(0..0, notes);
    outcome.groups = plan.workers.iter().map(|w| w.group.clone()).collect();
    Ok(outcome)
}

/// The levels of one worker.
pub(crate) fn levels(worker: usize, levels: Vec<Level>) -> impl Iterator<Item = WorkerLevel> {
    levels.into_iter().map(move |level| WorkerLevel { worker: worker as u16, level })
}

impl Run {
    /// What the run is doing now.
    pub fn live(&self) -> Live {
        let now = clock::monotonic();
        let s = &self.shared;
        let mut live = Live { phase: PHASES[s.phase.load(Relaxed)], ..Live::default() };
        live.elapsed_ns = now - s.since.load(Relaxed);
        if let Some(board) = &*s.board.lock().unwrap_or_else(|e| e.into_inner()) {
            self.history.lock().unwrap_or_else(|e| e.into_inner()).observe(now, board, &mut live);
        }
        let (mut done, total) = (s.done.load(Relaxed), s.total.load(Relaxed));
        if live.phase == "running" {
            done = live.all.counts.requests;
        }
        let share = (total > 0).then(|| done as f64 / total as f64);
        let duration = s.duration.load(Relaxed);
        let time =
            (live.phase == "running" && duration > 0).then(|| live.elapsed_ns as f64 / duration as f64);
        live.fraction = match (share, time) {
            (Some(a), Some(b)) => Some(a.max(b).min(1.0)),
            (a, b) => a.or(b).map(|f| f.min(1.0)),
        };
        live
    }

    /// Ends issuing; what is in flight is waited for, and the outcome is marked partial.
    pub fn stop(&self) {
        self.shared.stop.store(true, Relaxed);
    }

    /// Requests completed so far, readable while the run goes on.
    pub fn progress(&self) -> Arc<AtomicU64> {
        self.shared.progress.clone()
    }

    /// Waits until the run is over, at most `timeout`; whether it is.
    pub fn wait(&self, timeout: Duration) -> bool {
        let ended = self.shared.ended.0.lock().unwrap_or_else(|e| e.into_inner());
        let wait = self.shared.ended.1.wait_timeout_while(ended, timeout, |e| !*e);
        *wait.unwrap_or_else(|e| e.into_inner()).0
    }

    /// Waits for the end and takes the outcome.
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

/// A clock and the user and system CPU time of this process, ns.
pub(crate) fn cpu_time() -> (i64, i64) {
    // SAFETY: `usage` is plain data the call fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec * 1_000_000_000 + t.tv_usec * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// A moment shortly ahead at which all workers start.
pub(crate) fn soon(clock: &Clock) -> i64 {
    clock.now() + 2_000_000
}
