//! The threads of a run: how each gets its requests, and what it does from its start to its end.

use crate::backend::{Mapped, Mmap, Null, Perform, Space, Sync, uring};
use crate::clock::{self, Clock};
use crate::host::descriptors::Descriptors;
use crate::host::scheduling;
use crate::issue::completion_order::{Gate, Ordered};
use crate::issue::context::{Context, PATIENCE};
use crate::issue::dependencies::{Depended, Depending};
use crate::issue::depth_search::DepthSearch;
use crate::issue::flow::{Flowing, Share, Shared};
use crate::issue::path_locks::PathLocks;
use crate::issue::pausing::Pausing;
use crate::issue::priorities::Priorities;
use crate::issue::spin::Spin;
use crate::issue::sync_loop::one_by_one;
use crate::issue::take::{Alone, Dependent, InOrder, Take, Together};
use crate::issue::uring_loop::{self, Waits};
use crate::metrics::live::Board;
use crate::metrics::log::Logger;
use crate::metrics::progress::{Phase, Progress};
use crate::metrics::recorder::{Recorded, Recorder};
use crate::payload::{Payload, PayloadPlan};
use crate::replay_tree::{Files, Named};
use crate::run::cpu_load::take_time;
use crate::run::schedule::{Schedules, Span};
use crate::source::fetch::{Feed, Fetcher, Pooled};
use crate::source::open::Passed;
use crate::workload_vm::{Code, Machine, World};
use crate::{Error, Result};
use loadstone_content::seed::derive;
use loadstone_plan::{Backend, Order, Pace, Source, Worker};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// Time before a request is due for which a thread spins where a CPU is to spare, ns: longer than
/// a timer's wake-up takes on a quiet machine.
const SPIN: i64 = 25_000;
/// The same where wake-ups are late, as in virtual machines, at most.
const MOST_SPIN: i64 = 200_000;

/// The threads of one worker.
pub struct WorkerThreads {
    pub handles: Vec<JoinHandle<(Recorded, Option<Error>)>>,
    pub fetcher: Option<Fetcher>,
    /// The source they share, if they are several.
    pub pooled: Option<Arc<Pooled>>,
    pub passed: Option<Arc<OnceLock<Passed>>>,
}

/// Threads that were started: told to go home when dropped early, so that none is left behind.
pub struct Threads {
    pub progress: Arc<Progress>,
    pub workers: Vec<WorkerThreads>,
    pub go: Vec<Sender<i64>>,
}

impl Threads {
    /// Waits until all sources are read as far as they are before the run, or the run is to end. `total` requests are
    /// the most there are, where that is known.
    pub fn wait_for_sources(&self, total: Option<u64>) {
        let progress = &self.progress;
        let mut begun = false;
        for fetcher in self.workers.iter().filter_map(|worker| worker.fetcher.as_ref()) {
            let mut before = 0;
            while !progress.stop.load(Relaxed) {
                match fetcher.read.recv_timeout(PATIENCE) {
                    Ok(read) => {
                        if !std::mem::replace(&mut begun, true) {
                            progress.begin(Phase::Drawing, total);
                        }
                        progress.advance(read - before);
                        before = read;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.workers.is_empty() {
            return;
        }
        self.progress.stop.store(true, Relaxed);
        self.go.clear();
        for WorkerThreads { handles, fetcher, pooled, .. } in self.workers.drain(..) {
            for handle in handles {
                let _ = handle.join();
            }
            drop(pooled);
            let _ = fetcher.map(|fetcher| fetcher.handle.join());
        }
    }
}

/// How a thread gets its requests.
pub enum Job {
    Alone(Alone),
    Together(Together),
    InOrder(InOrder),
    /// With the number in flight.
    Dependent(Arc<Depended>, Arc<AtomicU32>),
    Program(Arc<Code>),
    /// Takes CPU time and issues nothing.
    Cpu,
}

/// Everything a worker's thread needs.
#[derive(Clone)]
pub struct ThreadSetup {
    pub plan_worker: Worker,
    pub files: Vec<RawFd>,
    /// Targets in memory, if any worker wants them there.
    pub maps: Arc<[Option<Mapped>]>,
    pub seed: u64,
    pub spin: Spin,
    pub interval: i64,
    /// Time from the start of the run in which nothing is measured, ns.
    pub ramp: i64,
    /// When the run ends, ns from its start.
    pub deadline: i64,
    /// Number of the worker, and when each of them begins and ends.
    pub worker: usize,
    pub schedules: Arc<Schedules>,
    pub progress: Arc<Progress>,
    /// The tree that requests go to.
    pub named: Option<Arc<Files>>,
    /// What programs share.
    pub world: Option<Arc<World>>,
    /// What the plan asks of what is written.
    pub payload_plan: PayloadPlan,
    /// Its share of the requests of several workers.
    pub share: Option<Arc<Share>>,
    /// Number of the worker's first thread among those of all workers.
    pub first: usize,
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

impl ThreadSetup {
    /// Sets the thread up, says so, waits for the start, and works until the end.
    pub fn work(
        self,
        thread: usize,
        job: Job,
        board: Arc<Board>,
        logger: Option<Logger>,
        ready: &Sender<Result<()>>,
        start: &Receiver<i64>,
    ) -> (Recorded, Option<Error>) {
        let _alarm = Alarm(&self.progress.stop);
        clock::tight_timers();
        let seed = derive(self.seed, "thread", thread as u64);
        let payload = Payload::new(seed, self.payload_plan.clone(), self.first + thread);
        let (mut ring, mut sync, mut mapped, mut named, mut table) = (None, None, None, None, None);
        let mut space = None;
        let set_up = scheduling::apply(&self.plan_worker).and_then(|()| {
            match self.plan_worker.backend {
                Backend::IoUring => ring = Some(uring::Ring::new(self.plan_worker.depth, &self.files)?),
                Backend::Sync => sync = Some(Sync::new(self.files.clone(), &payload)),
                Backend::Mmap => mapped = Some(Mmap::new(self.maps.clone(), self.files.clone(), &payload)),
                Backend::Files => named = self.named.clone().map(|files| Named::new(files, &payload)),
                Backend::Posix => table = Some(Descriptors::new(self.files.clone())),
                Backend::Allocate => space = Some(Space::new(self.files.clone(), false)),
                Backend::Truncate => space = Some(Space::new(self.files.clone(), true)),
                Backend::Null => {}
            }
            Ok(())
        });
        let failed = set_up.is_err();
        let _ = ready.send(set_up);
        let mut clock = Clock::new();
        let Ok(start) = start.recv() else { return (Recorded::default(), None) };
        if failed {
            return (Recorded::default(), None);
        }
        // A dependent request has a time at which it should go out, whatever the pace of the others.
        let depends = self.plan_worker.order == Order::Dependency;
        let paced = self.world.as_ref().is_some_and(|world| world.is_paced());
        let open = matches!(self.plan_worker.pace, Pace::Open { .. }) || depends || paced;
        let logged = logger.is_some();
        let run = Span { begin: start, deadline: start.saturating_add(self.deadline) };
        let measured = start + self.ramp;
        let mut recorder =
            Recorder::new(measured, self.interval, open, board, self.progress.requests.clone(), logger);
        let Some(Span { begin, deadline }) =
            self.schedules.begin(self.worker, run, &self.progress, &mut clock)
        else {
            self.schedules.end(self.worker, clock.now());
            return (recorder.finish(measured, &mut clock), None);
        };
        recorder.begins(begin);
        let stop = self.progress.stop.clone();
        let mut context = Context { clock, start: begin, deadline, stop, spin: self.spin };
        if let Job::Program(code) = &job {
            recorder = recorder.with_labels(&code.labels);
        }
        let failure = match (self.plan_worker.backend, job) {
            (_, Job::Program(code)) => {
                let world = self.world.as_ref().expect("programs have a world");
                let thread = self.first + thread;
                let failure = Machine::new(&code, world, thread, payload, &mut context, &mut recorder).run();
                drop(table);
                failure
            }
            (_, Job::Cpu) => {
                let source = &self.plan_worker.source;
                let with_others = matches!(source, Source::Cpu { with_others: true, .. });
                let ended = || with_others && self.schedules.requests_have_ended();
                take_time(source, seed, &mut context, &mut recorder, ended);
                None
            }
            (Backend::IoUring, Job::Alone(mut alone)) => {
                let ring = ring.as_mut().expect("set up above");
                let order = match self.plan_worker.order {
                    Order::None => Waits::Nothing,
                    Order::Completion => Waits::Completions(Gate::default()),
                    Order::Dependency => Waits::Causes(Box::new(Depending::new(at_once(&self.plan_worker)))),
                };
                let pausing = self.plan_worker.pause.map(Pausing::new);
                let depth = self.plan_worker.depth;
                let search = self
                    .plan_worker
                    .latency_target
                    .map(|target| DepthSearch::new(target, depth, context.clock.now()));
                let flowing = self.share.clone().map(Flowing::new);
                let seed = derive(seed, "priorities", 0);
                let priorities = Priorities::new(&self.plan_worker.priorities, seed);
                let settings = uring_loop::Settings {
                    depth,
                    order,
                    pausing,
                    search,
                    flowing,
                    logged,
                    payload,
                    priorities,
                };
                let feed = &mut alone.0;
                let result = if open {
                    uring_loop::many::<true>(&mut context, feed, ring, settings, &mut recorder)
                } else {
                    uring_loop::many::<false>(&mut context, feed, ring, settings, &mut recorder)
                };
                let result = result.map(|unissued| recorder.unissued(unissued));
                result.err().or(alone.0.failure.take())
            }
            (Backend::Null, job) => self.perform(open, job, Null, &mut context, &mut recorder),
            (Backend::Files, job) => {
                let backend = named.expect("set up above");
                self.perform(open, job, backend, &mut context, &mut recorder)
            }
            (Backend::Allocate | Backend::Truncate, job) => {
                let backend = space.expect("set up above");
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
        let now = context.clock.now();
        if self.schedules.end(self.worker, now) || failure.is_some() {
            self.progress.stop.store(true, Relaxed);
        }
        (recorder.finish(now.max(measured), &mut context.clock), failure)
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
            pausing: Option<Pausing>,
        ) {
            let unissued = if open {
                one_by_one::<B, T, true>(c, take, backend, r, None)
            } else {
                one_by_one::<B, T, false>(c, take, backend, r, pausing)
            };
            r.unissued(unissued);
        }
        let pausing = self.plan_worker.pause.map(Pausing::new);
        let flowing = self.share.clone().map(Flowing::new);
        match job {
            Job::Alone(mut take) => {
                match flowing {
                    None => go(open, context, &mut take, &mut backend, recorder, pausing),
                    Some(flowing) => {
                        let mut shared = Shared(&mut take, flowing);
                        go(open, context, &mut shared, &mut backend, recorder, pausing);
                    }
                }
                take.0.failure.take()
            }
            Job::Together(mut take) => {
                match flowing {
                    None => go(open, context, &mut take, &mut backend, recorder, pausing),
                    Some(flowing) => {
                        let mut shared = Shared(&mut take, flowing);
                        go(open, context, &mut shared, &mut backend, recorder, pausing);
                    }
                }
                None
            }
            Job::InOrder(mut take) => {
                go(open, context, &mut take, &mut backend, recorder, pausing);
                None
            }
            // These work by themselves.
            Job::Program(_) | Job::Cpu => None,
            Job::Dependent(depended, in_flight) => {
                let (stop, start, deadline) = (context.stop.clone(), context.start, context.deadline);
                let mut take = Dependent { depended, in_flight, stop, start, deadline };
                go(open, context, &mut take, &mut backend, recorder, pausing);
                None
            }
        }
    }
}

/// Whether requests that depend on none go out as soon as there is room.
fn at_once(worker: &Worker) -> bool {
    worker.pace == Pace::Closed
}

/// How long the threads of a worker spin.
pub fn spin_of(worker: &Worker, spare: bool) -> Spin {
    let most = match &worker.source {
        _ if !spare => return Spin::new(0, 0),
        // Of a pool several would wait for the next request at once; in replays and models the CPU time is compared.
        Source::Uniform { .. } if threads(worker) == 1 => MOST_SPIN,
        _ => SPIN,
    };
    Spin::new(SPIN, most)
}

/// Threads that perform a worker's requests.
pub fn threads(worker: &Worker) -> usize {
    let program = matches!(worker.source, Source::Program { .. });
    let of_requests = matches!(
        worker.backend,
        Backend::Sync | Backend::Mmap | Backend::Files | Backend::Allocate | Backend::Truncate
    );
    if program || of_requests { worker.depth as usize } else { 1 }
}

/// The jobs of threads that share a source, and what they share it by.
pub fn jobs_of(
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
    let locks = || files.map(|files| PathLocks::new(files.claims()));
    let depended = depends.then(|| Arc::new(Depended::new(pool.claim(), at_once(worker), locks())));
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
