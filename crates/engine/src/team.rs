//! The workers of a run: assembled, started together, joined, and merged into one outcome.

use crate::backend::{Mapped, Mmap, Null, Perform, Sync, map_all, uring};
use crate::clock::{self, Clock};
use crate::depend::{Depended, Depending};
use crate::descriptors::Descriptors;
use crate::live::Board;
use crate::log::{self, Logger};
use crate::logfile::LogFile;
use crate::material::{Material, Wishes};
use crate::open::{Opened, Passed};
use crate::order::{Gate, Ordered};
use crate::outcome::{Outcome, Summary};
use crate::place::Placer;
use crate::plain::Plain;
use crate::program::{Code, Machine, World};
use crate::queue::Waits;
use crate::recorder::{Recorded, Recorder};
use crate::run::{Shared, cpu_time, levels, soon};
use crate::source::{Feed, FetchOptions, Fetched, Pooled, fetch};
use crate::spin::Spin;
use crate::target::Open;
use crate::tree::{self, Files, Named};
use crate::turns::Turns;
use crate::verification::{Unread, Verified};
use crate::worker::{Alone, Context, Dependent, InOrder, Take, Together, one_by_one};
use crate::{Error, Result, open, priority, queue};
use loadstone_content::seed::derive;
use loadstone_plan::{Backend, Order, Pace, Plan, Source, SyncMode, TargetKind, Worker};
use loadstone_trace::Requests;
use loadstone_trace::tree::Tree;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// Time before a request is due for which a thread spins where a CPU is to spare, ns: longer than
/// a timer's wake-up takes on a quiet machine.
const SPIN: i64 = 25_000;
/// The same where wake-ups are late, as in virtual machines, at most.
const MOST_SPIN: i64 = 200_000;

/// The requests of a worker.
enum Supply {
    /// Rows, and where they lie.
    Rows(Box<dyn Requests>, Placer),
    /// Made by the one thread that issues them.
    Plain(Box<Plain>),
}

/// A worker whose source is open.
struct Member {
    /// Its requests and where they lie; a program has none.
    source: Option<Supply>,
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

/// All workers of a plan, with their sources open.
pub struct Team {
    members: Vec<Member>,
    /// What the programs share, if there are any.
    world: Option<World>,
    log: Option<Box<dyn log::Sink>>,
}

impl Team {
    /// Opens the sources and everything else that can fail before a target is touched.
    pub fn assemble(plan: &Plan) -> Result<Team> {
        let mut members = Vec::new();
        if plan.workers.iter().any(|worker| matches!(worker.source, Source::Program { .. })) {
            let (world, codes) = World::new(plan)?;
            let member = |code| Member {
                source: None,
                code: Some(code),
                total: None,
                tree: None,
                files: None,
                passed: None,
            };
            let members = codes.into_iter().map(member).collect();
            return Ok(Team { members, world: Some(world), log: None });
        }
        for (i, worker) in plan.workers.iter().enumerate() {
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
                    Some(tree::of_trace(&found.path, &open::options(&found.reading)?)?)
                }
                (_, Backend::Files, Some(model)) => Some(tree::of_model(&model, open::seed(plan, i))?),
                _ => None,
            };
            if let Some(tree) = &tree {
                placer.lacking(&tree.lacks);
            }
            let plain = match open::plain(plan, i) {
                Some(source) if threads(worker) == 1 => Plain::new(worker, source, &placer),
                _ => None,
            };
            let source = Some(
                plain.map_or_else(|| Supply::Rows(requests, placer), |plain| Supply::Plain(Box::new(plain))),
            );
            members.push(Member { source, code: None, total, tree, files: None, passed });
        }
        let log = match &plan.log {
            Some(path) => Some(Box::new(LogFile::create(path, plan)?) as Box<dyn log::Sink>),
            None => None,
        };
        Ok(Team { members, world: None, log })
    }

    /// Gives trees and sets their places.
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
    pub fn build(&self, shared: &Shared, seed: u64, wishes: &Wishes) -> Result<bool> {
        if let Some(world) = &self.world
            && !world.build(shared, seed, wishes)?
        {
            return Ok(false);
        }
        for files in self.members.iter().filter_map(|member| member.files.as_ref()) {
            if !files.build(shared, seed, wishes)? {
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
        let trees = self.members.iter().filter_map(|member| Some(member.files.as_ref()?.root()));
        trees.chain(self.world.iter().flat_map(World::held)).collect()
    }

    /// Lets the workers run and waits for them.
    pub fn run(
        self,
        plan: &Plan,
        targets: &[Open],
        wishes: &Wishes,
        shared: &Arc<Shared>,
        duration: i64,
    ) -> Result<Outcome> {
        let mut files: Vec<RawFd> = targets.iter().map(Open::fd).collect();
        let world = self.world.map(|mut world| {
            world.find_roots();
            files.extend(&world.roots);
            world.keep_books(plan, wishes);
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
        let mut crew = Crew { shared: shared.clone(), workers: Vec::new(), go: Vec::new() };
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
            let options = FetchOptions {
                worker: i,
                limit: worker.requests,
                needs_latency: open::needs_latencies(worker.order),
                sweep: matches!(worker.source, Source::Trace { .. })
                    .then_some((plan.interval_ns as i64, speed)),
            };
            let base = Post {
                plan_worker: worker.clone(),
                files: files.clone(),
                maps: maps.clone(),
                seed: derive(plan.seed, "data of a worker", i as u64),
                spin: spin_of(worker, spare),
                interval: plan.interval_ns as i64,
                deadline: if duration > 0 { duration } else { i64::MAX },
                shared: shared.clone(),
                named: member.files.clone(),
                world: world.clone(),
                wishes: wishes.clone(),
                first,
            };
            first += threads(worker);
            let (jobs, fetcher, pooled) = match (member.source, member.code) {
                (Some(Supply::Plain(plain)), _) => {
                    let (jobs, pooled) = shared_out(worker, Feed::plain(plain), None, &shared.stop);
                    (jobs, None, pooled)
                }
                (Some(Supply::Rows(requests, placer)), _) => {
                    let (feed, fetcher) = fetch(requests, placer, options)?;
                    let (jobs, pooled) = shared_out(worker, feed, member.files.as_deref(), &shared.stop);
                    (jobs, Some(fetcher), pooled)
                }
                (None, Some(code)) => {
                    let jobs = (0..worker.depth).map(|_| Job::Program(Arc::clone(&code)));
                    (jobs.collect(), None, None)
                }
                (None, None) => (Vec::new(), None, None),
            };
            trees.extend(member.files);
            let mut handles = Vec::new();
            for (t, job) in jobs.into_iter().enumerate() {
                let board = board.clone();
                let (go, start) = channel();
                crew.go.push(go);
                let post = base.clone();
                let (ready, logger) = (ready.clone(), loggers.next().flatten());
                let handle = std::thread::Builder::new()
                    .name(format!("loadstone-w{i}.{t}"))
                    .spawn(move || post.work(t, job, board, logger, &ready, &start))
                    .map_err(|e| Error::thread(&format!("number {t} of workers[{i}]"), e))?;
                handles.push(handle);
            }
            crew.workers.push(Squad { handles, fetcher, pooled, passed: member.passed });
        }
        drop(ready);
        // All must be ready, or none starts; dropping the crew sends the others home.
        for _ in 0..total_threads {
            readiness.recv().map_err(|_| Error::Thread("loadstone-w".into()))??;
        }
        let clock = Clock::new();
        let start = soon(&clock);
        let cpu = cpu_time();
        let mut outcome = Outcome {
            summary: Summary {
                started_unix_ns: clock::unix() + (start - clock.now()),
                start_monotonic_ns: start,
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
        shared.begin("running", total);
        shared.watch(board, duration);
        for go in std::mem::take(&mut crew.go) {
            let _ = go.send(start);
        }
        let mut failure = None;
        for (i, squad) in std::mem::take(&mut crew.workers).into_iter().enumerate() {
            let Squad { handles, fetcher, pooled, passed } = squad;
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
                let fetched = fetcher.join().map_err(|_| Error::Thread("loadstone-fetch".into()))?;
                add_fetched(&mut outcome, i, fetched);
                add_passed(&mut outcome, passed.as_ref().and_then(|passed| passed.get()));
            }
        }
        let after = cpu_time();
        let unread = world.as_ref().map(|world| world.sweep(shared));
        if let Some(world) = &world {
            world.end();
        }
        let verified =
            |Unread { reason, unreadable }| Verified { unread: reason, unreadable, ..Verified::default() };
        outcome.summary.verified = unread.map(verified);
        outcome.summary.cpu_ns = (after.0 - cpu.0, after.1 - cpu.1);
        outcome.values = world.as_ref().map_or(Vec::new(), |world| world.told());
        outcome.spans = world.as_ref().map_or(Vec::new(), |world| world.timed());
        outcome.summary.partial = shared.stop.load(Relaxed) || failure.is_some();
        outcome.summary.failure = failure.map(|e| e.to_string());
        let left_out = world.as_ref().map_or(0, |world| world.left_out.load(Relaxed));
        if left_out > 0 {
            let what =
                "entries of archives are no files or directories, or lead elsewhere, and were left out";
            outcome.summary.notes.push(format!("{left_out} {what}"));
            outcome.summary.left_out = left_out;
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
        shared.begin("ending", None);
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
        let most = crate::flight::MOST;
        outcome.summary.notes.push(format!(
            "the trace's requests in flight are told for the first {most} intervals; --interval makes them longer"
        ));
    }
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

/// Whether requests that depend on none go out as soon as there is room.
fn at_once(worker: &Worker) -> bool {
    worker.pace == Pace::Closed
}

/// How long the threads of a worker spin.
fn spin_of(worker: &Worker, spare: bool) -> Spin {
    let most = match &worker.source {
        _ if !spare => return Spin::new(0, 0),
        // Of a pool several would wait for the next request at once; in replays and models the CPU time is compared.
        Source::Uniform { .. } if threads(worker) == 1 => MOST_SPIN,
        _ => SPIN,
    };
    Spin::new(SPIN, most)
}

/// Threads that perform a worker's requests.
fn threads(worker: &Worker) -> usize {
    let program = matches!(worker.source, Source::Program { .. });
    if program || matches!(worker.backend, Backend::Sync | Backend::Mmap | Backend::Files) {
        worker.depth as usize
    } else {
        1
    }
}

/// The jobs of threads that share a source, and what they share it by.
fn shared_out(
    worker: &Worker,
    feed: Feed,
    files: Option<&Files>,
    stop: &Arc<AtomicBool>,
) -> (Vec<Job>, Option<Arc<Pooled>>) {
    let depends = worker.order == Order::Dependency;
    // A ring orders its own requests.
    if threads(worker) == 1 && (!depends || worker.backend == Backend::IoUring) {
        return (vec![Job::Alone(Alone(feed))], None);
    }
    let pool = Pooled::new(feed);
    let in_flight = Arc::new(AtomicU32::new(0));
    let ordered = (worker.order == Order::Completion).then(|| Arc::new(Ordered::new(pool.claim())));
    let turns = || files.map(|files| Turns::new(files.claims()));
    let depended = depends.then(|| Arc::new(Depended::new(pool.claim(), at_once(worker), turns())));
    let job = |_| {
        let (in_flight, stop) = (in_flight.clone(), stop.clone());
        match (&ordered, &depended) {
            (Some(ordered), _) => Job::InOrder(InOrder { ordered: ordered.clone(), in_flight, stop }),
            (None, Some(depended)) => Job::Dependent(depended.clone(), in_flight),
            (None, None) => Job::Together(Together { claim: pool.claim(), in_flight }),
        }
    };
    ((0..threads(worker)).map(job).collect(), Some(pool))
}

/// CPUs this process may use.
fn allowed_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// The threads of one worker.
struct Squad {
    handles: Vec<JoinHandle<(Recorded, Option<Error>)>>,
    fetcher: Option<JoinHandle<Fetched>>,
    /// The source they share, if they are several.
    pooled: Option<Arc<Pooled>>,
    passed: Option<Arc<OnceLock<Passed>>>,
}

/// Threads that were started: told to go home when dropped early, so that none is left behind.
struct Crew {
    shared: Arc<Shared>,
    workers: Vec<Squad>,
    go: Vec<Sender<i64>>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.workers.is_empty() {
            return;
        }
        self.shared.stop.store(true, Relaxed);
        self.go.clear();
        for Squad { handles, fetcher, pooled, .. } in self.workers.drain(..) {
            for handle in handles {
                let _ = handle.join();
            }
            drop(pooled);
            let _ = fetcher.map(JoinHandle::join);
        }
    }
}

/// How a thread gets its requests.
enum Job {
    Alone(Alone),
    Together(Together),
    InOrder(InOrder),
    /// With the number in flight.
    Dependent(Arc<Depended>, Arc<AtomicU32>),
    Program(Arc<Code>),
}

/// Everything a worker's thread needs.
#[derive(Clone)]
struct Post {
    plan_worker: Worker,
    files: Vec<RawFd>,
    /// Targets in memory, if any worker wants them there.
    maps: Arc<[Option<Mapped>]>,
    seed: u64,
    spin: Spin,
    interval: i64,
    deadline: i64,
    shared: Arc<Shared>,
    /// The tree that requests go to.
    named: Option<Arc<Files>>,
    /// What programs share.
    world: Option<Arc<World>>,
    /// What the plan asks of what is written.
    wishes: Wishes,
    /// Number of the worker's first thread among those of all workers.
    first: usize,
}

/// Stops everybody when its thread dies.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

impl Post {
    fn work(
        self,
        thread: usize,
        job: Job,
        board: Arc<Board>,
        logger: Option<Logger>,
        ready: &Sender<Result<()>>,
        start: &Receiver<i64>,
    ) -> (Recorded, Option<Error>) {
        let _alarm = Alarm(&self.shared.stop);
        clock::tight_timers();
        let seed = derive(self.seed, "thread", thread as u64);
        let material = Material::new(seed, self.wishes.clone(), self.first + thread);
        let (mut ring, mut sync, mut mapped, mut named, mut table) = (None, None, None, None, None);
        let set_up = priority::apply(&self.plan_worker).and_then(|()| {
            match self.plan_worker.backend {
                Backend::IoUring => ring = Some(uring::Ring::new(self.plan_worker.depth, &self.files)?),
                Backend::Sync => sync = Some(Sync::new(self.files.clone(), &material)),
                Backend::Mmap => mapped = Some(Mmap::new(self.maps.clone(), self.files.clone(), &material)),
                Backend::Files => named = self.named.clone().map(|files| Named::new(files, &material)),
                Backend::Posix => table = Some(Descriptors::new(self.files.clone())),
                Backend::Null => {}
            }
            Ok(())
        });
        let failed = set_up.is_err();
        let _ = ready.send(set_up);
        let clock = Clock::new();
        let Ok(start) = start.recv() else { return (Recorded::default(), None) };
        if failed {
            return (Recorded::default(), None);
        }
        // A dependent request has a time at which it should go out, whatever the pace of the others.
        let depends = self.plan_worker.order == Order::Dependency;
        let paced = self.world.as_ref().is_some_and(|world| world.is_paced());
        let open = matches!(self.plan_worker.pace, Pace::Open { .. }) || depends || paced;
        let logged = logger.is_some();
        let mut recorder =
            Recorder::new(start, self.interval, open, board, self.shared.progress.clone(), logger);
        let mut context = Context {
            clock,
            start,
            deadline: start.saturating_add(self.deadline),
            stop: self.shared.stop.clone(),
            spin: self.spin,
        };
        if let Job::Program(code) = &job {
            recorder = recorder.with_labels(&code.labels);
        }
        clock::sleep_until(start);
        let failure = match (self.plan_worker.backend, job) {
            (_, Job::Program(code)) => {
                let world = self.world.as_ref().expect("programs have a world");
                let thread = self.first + thread;
                let failure = Machine::new(&code, world, thread, material, &mut context, &mut recorder).run();
                drop(table);
                failure
            }
            (Backend::IoUring, Job::Alone(mut alone)) => {
                let ring = ring.as_mut().expect("set up above");
                let order = match self.plan_worker.order {
                    Order::None => Waits::Nothing,
                    Order::Completion => Waits::Completions(Gate::default()),
                    Order::Dependency => Waits::Causes(Box::new(Depending::new(at_once(&self.plan_worker)))),
                };
                let settings = queue::Settings { depth: self.plan_worker.depth, order, logged, material };
                let feed = &mut alone.0;
                let result = if open {
                    queue::many::<true>(&mut context, feed, ring, settings, &mut recorder)
                } else {
                    queue::many::<false>(&mut context, feed, ring, settings, &mut recorder)
                };
                let result = result.map(|unissued| recorder.unissued(unissued));
                result.err().or(alone.0.failure.take())
            }
            (Backend::Null, job) => self.perform(open, job, Null, &mut context, &mut recorder),
            (Backend::Files, job) => {
                let backend = named.expect("set up above");
                self.perform(open, job, backend, &mut context, &mut recorder)
            }
            (Backend::Mmap, job) => {
                let backend = mapped.expect("set up above");
                self.perform(open, job, backend, &mut context, &mut recorder)
            }
            (_, job) => {
                let backend = sync.expect("set up above");
                self.perform(open, job, backend, &mut context, &mut recorder)
            }
        };
        if failure.is_some() {
            self.shared.stop.store(true, Relaxed);
        }
        let now = context.clock.now();
        (recorder.finish(now.max(start), &mut context.clock), failure)
    }

    fn perform<B: Perform>(
        &self,
        open: bool,
        job: Job,
        mut backend: B,
        context: &mut Context,
        recorder: &mut Recorder,
    ) -> Option<Error> {
        fn go<B: Perform, T: Take>(
            open: bool,
            c: &mut Context,
            take: &mut T,
            backend: &mut B,
            r: &mut Recorder,
        ) {
            let unissued = if open {
                one_by_one::<B, T, true>(c, take, backend, r)
            } else {
                one_by_one::<B, T, false>(c, take, backend, r)
            };
            r.unissued(unissued);
        }
        match job {
            Job::Alone(mut take) => {
                go(open, context, &mut take, &mut backend, recorder);
                take.0.failure.take()
            }
            Job::Together(mut take) => {
                go(open, context, &mut take, &mut backend, recorder);
                None
            }
            Job::InOrder(mut take) => {
                go(open, context, &mut take, &mut backend, recorder);
                None
            }
            // A program performs by itself.
            Job::Program(_) => None,
            Job::Dependent(depended, in_flight) => {
                let (stop, start, deadline) = (context.stop.clone(), context.start, context.deadline);
                let mut take = Dependent { depended, in_flight, stop, start, deadline };
                go(open, context, &mut take, &mut backend, recorder);
                None
            }
        }
    }
}
