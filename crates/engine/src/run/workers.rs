//! The workers of a run: assembled, started together, joined, and merged into one outcome.

use crate::backend::map_all;
use crate::clock::{self, Clock};
use crate::host::target::Open;
use crate::issue::context::SLICE;
use crate::issue::flow;
use crate::metrics::in_flight::Level;
use crate::metrics::live::Board;
use crate::metrics::log;
use crate::metrics::log_file::LogFile;
use crate::metrics::progress::{Phase, Progress};
use crate::payload::PayloadPlan;
use crate::replay_tree::{self, Files};
use crate::run::outcome::{Outcome, Summary, WorkerLevel};
use crate::run::schedule::Schedules;
use crate::run::steady::Watch;
use crate::run::threads::{Job, ThreadSetup, Threads, WorkerThreads, jobs_of, spin_of, threads};
use crate::source::fetch::{Feed, FetchOptions, Fetched, First, fetch};
use crate::source::open::{self, Opened, Passed};
use crate::source::placement::Placer;
use crate::source::plain::Plain;
use crate::verification::{Unread, Verified};
use crate::workload_vm::{Code, World};
use crate::{Error, Result};
use loadstone_content::seed::derive;
use loadstone_plan::{Backend, Pace, Plan, Source, Steady, SyncMode, TargetKind};
use loadstone_trace::Requests;
use loadstone_trace::tree::Tree;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock, PoisonError};

/// The requests of a worker.
enum OpenSource {
    /// Rows, and where they lie.
    Rows(Box<dyn Requests>, Placer),
    /// Made by the one thread that issues them.
    Inline(Box<Plain>),
}

/// A worker whose source is open.
struct Assembled {
    /// Its requests and where they lie; a program has none, nor has what takes CPU time.
    source: Option<OpenSource>,
    /// What its threads do, where that is a program.
    code: Option<Arc<Code>>,
    /// Requests it will deliver, where that is known.
    total: Option<u64>,
    /// The tree its requests go to, before and after that has a place.
    tree: Option<Tree>,
    files: Option<Arc<Files>>,
    /// What is passed over of its trace, once that was read.
    passed: Option<Arc<OnceLock<Passed>>>,
}

/// How long a run is measured, and how long it goes on before, ns; a duration of 0 has no end.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    pub ramp: i64,
    pub duration: i64,
    pub steady: Option<Steady>,
}

/// All workers of a plan, with their sources open.
pub struct Workers {
    members: Vec<Assembled>,
    /// What the programs share, if there are any.
    world: Option<World>,
    log: Option<Box<dyn log::Sink>>,
}

impl Workers {
    /// Opens the sources and everything else that can fail before a target is touched.
    ///
    /// # Errors
    /// When a worker cannot be put together.
    pub fn assemble(plan: &Plan) -> Result<Workers> {
        let mut members = Vec::new();
        let alone =
            |code| Assembled { source: None, code, total: None, tree: None, files: None, passed: None };
        if plan.workers.iter().any(|worker| matches!(worker.source, Source::Program { .. })) {
            let (world, codes) = World::new(plan)?;
            let members = codes.into_iter().map(|code| alone(Some(code))).collect();
            return Ok(Workers { members, world: Some(world), log: None });
        }
        for (i, worker) in plan.workers.iter().enumerate() {
            if matches!(worker.source, Source::Cpu { .. }) {
                members.push(alone(None));
                continue;
            }
            let mut placer = Placer::new(plan, i)?;
            let Opened { requests, total, model, passed } = open::open(plan, i)?;
            let limit = (worker.requests > 0).then_some(worker.requests);
            let total = match (limit, total) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let tree = match (&worker.source, worker.backend, model) {
                (Source::Trace { artefact }, Backend::Files, _) => {
                    let found = open::named(plan, artefact);
                    Some(replay_tree::of_trace(&found.path, &open::options(&found.reading)?)?)
                }
                (_, Backend::Files, Some(model)) => Some(replay_tree::of_model(&model, open::seed(plan, i))?),
                _ => None,
            };
            if let Some(tree) = &tree {
                placer.lacking(&tree.lacks);
            }
            let plain = match open::plain(plan, i) {
                Some(source) if threads(worker) == 1 => Plain::new(worker, source, &placer),
                _ => None,
            };
            let source = Some(plain.map_or_else(
                || OpenSource::Rows(requests, placer),
                |plain| OpenSource::Inline(Box::new(plain)),
            ));
            members.push(Assembled { source, code: None, total, tree, files: None, passed });
        }
        let log = match &plan.log {
            Some(path) => Some(Box::new(LogFile::create(path, plan)?) as Box<dyn log::Sink>),
            None => None,
        };
        Ok(Workers { members, world: None, log })
    }

    /// Gives trees and sets their places.
    ///
    /// # Errors
    /// When a directory cannot be opened again.
    pub fn plant(&mut self, plan: &Plan, targets: &[Open]) -> Result<()> {
        if let Some(world) = &mut self.world {
            world.plant(plan, targets)?;
        }
        for member in &mut self.members {
            let Some(tree) = member.tree.take() else { continue };
            let at = plan.targets.iter().position(|t| t.kind == TargetKind::Tree);
            let at = at.expect("checked by the plan");
            let target = &targets[at];
            let root = target.file.as_ref().expect("a tree has a directory");
            member.files =
                Some(Arc::new(Files::new(&target.path, root, plan.targets[at].allow_destroy, tree)?));
        }
        Ok(())
    }

    /// Builds all trees and sets; `false` when stopped on the way.
    ///
    /// # Errors
    /// When sets or trees cannot be made.
    pub fn build(&self, progress: &Progress, seed: u64, payload_plan: &PayloadPlan) -> Result<bool> {
        if let Some(world) = &self.world
            && !world.build(progress, seed, payload_plan)?
        {
            return Ok(false);
        }
        for files in self.members.iter().filter_map(|member| member.files.as_ref()) {
            if !files.build(progress, seed, payload_plan)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Files of trees and sets that are made before the run: numbers of their contents and bytes.
    pub fn made(&self) -> Vec<(u64, u64)> {
        let trees = self.members.iter().filter_map(|member| Some(member.files.as_ref()?.made()));
        self.world.iter().map(World::made).chain(trees).flatten().collect()
    }

    /// Blocks of `unit` bytes that trees and sets have when they are made.
    pub fn blocks(&self, unit: u64) -> u64 {
        let trees = self.members.iter().filter_map(|member| Some(member.files.as_ref()?.blocks(unit)));
        trees.chain(self.world.iter().map(|world| world.blocks(unit))).fold(0, u64::saturating_add)
    }

    /// Descriptors of trees and sets.
    pub fn held(&self) -> Vec<RawFd> {
        let trees = self.members.iter().filter_map(|member| Some(member.files.as_ref()?.root().as_raw_fd()));
        trees.chain(self.world.iter().flat_map(World::held)).collect()
    }

    /// Lets the workers run and waits for them.
    ///
    /// # Errors
    /// When a thread cannot be started or fails.
    pub fn run(
        self,
        plan: &Plan,
        targets: &[Open],
        payload_plan: &PayloadPlan,
        progress: &Arc<Progress>,
        time: Time,
    ) -> Result<Outcome> {
        let mut files: Vec<RawFd> = targets.iter().map(Open::fd).collect();
        let world = self.world.map(|mut world| {
            world.find_roots();
            files.extend(&world.roots);
            world.map_contents(plan, payload_plan);
            let world = Arc::new(world);
            world.verify();
            world
        });
        let maps = if plan.workers.iter().any(|worker| worker.backend == Backend::Mmap) {
            let stable =
                |target: &loadstone_plan::Target| matches!(target.sync, SyncMode::Sync | SyncMode::Dsync);
            map_all(targets, &plan.targets.iter().map(stable).collect::<Vec<_>>())?
        } else {
            Arc::new([])
        };
        let schedules = Arc::new(Schedules::new(plan, threads));
        let Time { ramp, duration, steady } = time;
        let shares = flow::of_plan(plan, threads);
        let spare = allowed_cpus() > plan.workers.len();
        let total = self.members.iter().map(|m| m.total).sum::<Option<u64>>();
        let total_threads: usize = plan.workers.iter().map(threads).sum();
        let (log, mut loggers) = match self.log {
            Some(sink) => {
                let (log, loggers) = log::start(sink, total_threads)?;
                (Some(log), loggers.into_iter().map(Some).collect())
            }
            None => (None, Vec::new()),
        };
        loggers.resize_with(total_threads, || None);
        let mut loggers = loggers.into_iter();
        let mut running = Threads { progress: progress.clone(), workers: Vec::new(), go: Vec::new() };
        let (ready, readiness) = channel();
        let codes = self.members.iter().filter_map(|member| member.code.as_ref());
        let board = Arc::new(match &world {
            Some(world) => Board::of_programs(codes, &world.names),
            None => Board::of_ops(),
        });
        let (mut trees, mut first) = (Vec::new(), 0);
        for (i, (member, worker)) in self.members.into_iter().zip(&plan.workers).enumerate() {
            let speed = match worker.pace {
                Pace::Closed => 1.0,
                Pace::Open { speed } => speed,
            };
            let end = if duration > 0 { ramp.saturating_add(duration) } else { i64::MAX };
            let options = FetchOptions {
                worker: i,
                limit: worker.requests,
                needs_latency: open::needs_latencies(worker.order),
                sweep: matches!(worker.source, Source::Trace { .. })
                    .then_some((plan.interval_ns as i64, speed)),
                first: First::of(worker, plan.workers.len(), end),
            };
            let base = ThreadSetup {
                plan_worker: worker.clone(),
                files: files.clone(),
                maps: maps.clone(),
                seed: derive(plan.seed, "data of a worker", i as u64),
                spin: spin_of(worker, spare),
                interval: plan.interval_ns as i64,
                worker: i,
                schedules: schedules.clone(),
                ramp,
                deadline: end,
                progress: progress.clone(),
                named: member.files.clone(),
                world: world.clone(),
                payload_plan: payload_plan.clone(),
                share: shares[i].clone(),
                first,
            };
            first += threads(worker);
            let (jobs, fetcher, pooled) = match (member.source, member.code) {
                (Some(OpenSource::Inline(plain)), _) => {
                    let (jobs, pooled) = jobs_of(worker, Feed::plain(plain), None, &progress.stop);
                    (jobs, None, pooled)
                }
                (Some(OpenSource::Rows(requests, placer)), _) => {
                    let (feed, fetcher) = fetch(requests, placer, options)?;
                    let (jobs, pooled) = jobs_of(worker, feed, member.files.as_deref(), &progress.stop);
                    (jobs, Some(fetcher), pooled)
                }
                (None, Some(code)) => {
                    let jobs = (0..worker.depth).map(|_| Job::Program(Arc::clone(&code)));
                    (jobs.collect(), None, None)
                }
                (None, None) => (vec![Job::Cpu], None, None),
            };
            trees.extend(member.files);
            let mut handles = Vec::new();
            for (t, job) in jobs.into_iter().enumerate() {
                let board = board.clone();
                let (go, start) = channel();
                running.go.push(go);
                let setup = base.clone();
                let (ready, logger) = (ready.clone(), loggers.next().flatten());
                let handle = std::thread::Builder::new()
                    .name(format!("loadstone-w{i}.{t}"))
                    .spawn(move || setup.work(t, job, board, logger, &ready, &start))
                    .map_err(|e| Error::thread(&format!("number {t} of workers[{i}]"), e))?;
                handles.push(handle);
            }
            running.workers.push(WorkerThreads { handles, fetcher, pooled, passed: member.passed });
        }
        drop(ready);
        // All must be ready, or none starts; dropping the running sends the others home.
        for _ in 0..total_threads {
            readiness.recv().map_err(|_| Error::Thread("loadstone-w".into()))??;
        }
        running.wait_for_sources(total);
        let clock = Clock::new();
        let start = soon(&clock);
        let measured = start + ramp;
        let mut cpu = cpu_time();
        let mut outcome = Outcome {
            summary: Summary {
                started_unix_ns: clock::unix() + (measured - clock.now()),
                start_monotonic_ns: measured,
                interval_ns: plan.interval_ns as i64,
                counter_clock: clock.uses_counter(),
                ..Summary::default()
            },
            by_thread: plan.by_thread,
            ..Outcome::default()
        };
        if let Some(world) = &world {
            world.begin(start);
            outcome.names.clone_from(&world.names);
        }
        progress.begin(if ramp > 0 { Phase::RampingUp } else { Phase::Running }, total);
        progress.watch(board.clone(), duration);
        for go in std::mem::take(&mut running.go) {
            let _ = go.send(start);
        }
        if ramp > 0 {
            while clock.now() < measured && !progress.stop.load(Relaxed) {
                clock::sleep_until(measured.min(clock.now() + SLICE));
            }
            cpu = cpu_time();
            progress.begin(Phase::Running, total);
        }
        let watch =
            steady.map(|steady| Watch::start(steady, board, progress.clone(), measured)).transpose()?;
        let mut failure = None;
        for (i, started) in std::mem::take(&mut running.workers).into_iter().enumerate() {
            let WorkerThreads { handles, fetcher, pooled, passed } = started;
            let mut recorded = Vec::new();
            for handle in handles {
                let (record, failed) = handle.join().map_err(|_| Error::Thread(format!("loadstone-w{i}")))?;
                recorded.push(record);
                failure = failure.or(failed);
            }
            failure = failure.or_else(|| pooled.as_ref().and_then(|p| p.failure()));
            // The pool holds the feed; without it the fetcher notices that nobody listens.
            drop(pooled);
            outcome.add(i, recorded, world.is_some());
            if let Some(fetcher) = fetcher {
                let fetched = fetcher.handle.join().map_err(|_| Error::Thread("loadstone-fetch".into()))?;
                add_fetched(&mut outcome, i, fetched);
                add_passed(&mut outcome, passed.as_ref().and_then(|passed| passed.get()));
            }
        }
        let after = cpu_time();
        outcome.summary.steady = watch.map(Watch::finish).transpose()?;
        // What failed or was stopped ends the rest, too; a worker that ended the load does not.
        let asked = progress.after_load(failure.is_some());
        let unread = world.as_ref().map(|world| world.sweep(progress));
        if let Some(world) = &world {
            world.end();
        }
        let verified =
            |Unread { reason, unreadable }| Verified { unread: reason, unreadable, ..Verified::default() };
        outcome.summary.verified = unread.map(verified);
        outcome.summary.cpu_ns = (after.0 - cpu.0, after.1 - cpu.1);
        outcome.values = world.as_ref().map_or(Vec::new(), |world| world.told());
        outcome.spans = world.as_ref().map_or(Vec::new(), |world| world.timed());
        outcome.summary.partial = asked || failure.is_some();
        outcome.summary.failure = failure.map(|e| e.to_string());
        let left_out = world.as_ref().map_or(0, |world| world.left_out.load(Relaxed));
        if left_out > 0 {
            let what =
                "entries of archives are no files or directories, or lead elsewhere, and were left out";
            outcome.summary.notes.push(format!("{left_out} {what}"));
            outcome.summary.left_out = left_out;
        }
        if let Some(world) = &world {
            let remarks = world.remarks.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.summary.notes.extend(remarks.iter().cloned());
        }
        let succeeded: u64 = trees.iter().map(|files| files.succeeded.load(Relaxed)).sum();
        if succeeded > 0 {
            outcome.summary.notes.push(format!("{succeeded} requests that failed in the trace succeeded"));
        }
        let made_up: u64 = trees.iter().map(|files| files.made_up.load(Relaxed)).sum();
        if made_up > 0 {
            let what = "changes that nothing in the trace tells were made, so that requests after them could be made";
            outcome.summary.notes.push(format!("{made_up} {what}"));
        }
        progress.begin(Phase::Ending, None);
        if let Some(log) = log {
            let (logged, failure) = log.finish(outcome.summary.logged.1, outcome.summary.started_unix_ns);
            outcome.summary.logged = logged;
            outcome.summary.unlogged = failure.map(|e| e.to_string());
        }
        Ok(outcome)
    }
}

fn add_fetched(outcome: &mut Outcome, worker: usize, fetched: Fetched) {
    outcome.flight_trace.extend(levels(worker, fetched.flight));
    if fetched.flight_cut {
        let most = crate::metrics::in_flight::MOST;
        outcome.summary.notes.push(format!(
            "the trace's requests in flight are told for the first {most} intervals; `interval` makes them longer"
        ));
    }
    outcome.summary.drawn_first += fetched.first;
    outcome.summary.latencies.0 += fetched.with_latency;
    outcome.summary.latencies.1 += fetched.without_latency;
}

/// What was passed over of a trace; of one that does not end, what was read of it.
fn add_passed(outcome: &mut Outcome, passed: Option<&Passed>) {
    let Some(Passed { records, first }) = passed.filter(|passed| passed.records > 0) else { return };
    outcome.summary.damaged += records;
    let those = if *records == 1 {
        "1 damaged record of the trace:"
    } else {
        &*format!("{records} damaged records of the trace, the first:")
    };
    outcome.summary.notes.push(format!("passed over {those} {first}"));
}

/// CPUs this process may use.
fn allowed_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// The levels of one worker.
fn levels(worker: usize, levels: Vec<Level>) -> impl Iterator<Item = WorkerLevel> {
    levels.into_iter().map(move |level| WorkerLevel { worker: worker as u16, level })
}

/// A clock and the user and system CPU time of this process, ns.
fn cpu_time() -> (i64, i64) {
    // SAFETY: `usage` is plain data the call fills in. Rustix has no getrusage(2).
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec * 1_000_000_000 + t.tv_usec * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// A moment shortly ahead at which all workers start.
fn soon(clock: &Clock) -> i64 {
    clock.now() + 2_000_000
}
