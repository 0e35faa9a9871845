//! How far a run is: its phase, and what of it is done; shared by its threads and whoever watches.

use crate::clock;
use crate::metrics::live::{Board, History, Live};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The phases of a run, in order. A run may skip some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Nothing was begun.
    Starting,
    /// Targets are filled.
    Filling,
    /// Files of a replay are made.
    BuildingTree,
    /// Files of the run before are removed.
    Clearing,
    /// Files of a set are made.
    MakingFiles,
    /// Pages are dropped.
    DroppingCaches,
    /// File systems are mounted again.
    Remounting,
    /// Requests of models are drawn.
    Drawing,
    /// The load is going on, and nothing is measured yet.
    RampingUp,
    /// The load is going on.
    Running,
    /// Dirty pages are written.
    WritingBack,
    /// What was written is read and compared.
    Verifying,
    /// Threads are joined, and what they counted is merged.
    Ending,
    /// Nothing more will happen.
    Done,
}

impl Phase {
    const ALL: [Phase; 14] = [
        Phase::Starting,
        Phase::Filling,
        Phase::BuildingTree,
        Phase::Clearing,
        Phase::MakingFiles,
        Phase::DroppingCaches,
        Phase::Remounting,
        Phase::Drawing,
        Phase::RampingUp,
        Phase::Running,
        Phase::WritingBack,
        Phase::Verifying,
        Phase::Ending,
        Phase::Done,
    ];

    /// The phase in words, as progress bars show it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Filling => "filling",
            Phase::BuildingTree => "building the tree",
            Phase::Clearing => "clearing",
            Phase::MakingFiles => "making files",
            Phase::DroppingCaches => "dropping caches",
            Phase::Remounting => "remounting",
            Phase::Drawing => "drawing requests",
            Phase::RampingUp => "ramping up",
            Phase::Running => "running",
            Phase::WritingBack => "writing back",
            Phase::Verifying => "verifying",
            Phase::Ending => "ending",
            Phase::Done => "done",
        }
    }
}

/// What the thread of a run shares with whoever watches it.
pub struct Progress {
    /// Set to end what goes on now.
    pub stop: Arc<AtomicBool>,
    /// Somebody outside asked for the end of the run.
    asked: AtomicBool,
    /// Requests completed so far, for the observer.
    pub requests: Arc<AtomicU64>,
    phase: AtomicU8,
    since: AtomicI64,
    done: AtomicU64,
    total: AtomicU64,
    duration: AtomicI64,
    board: Mutex<Option<Arc<Board>>>,
    ended: (Mutex<bool>, Condvar),
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            stop: Arc::new(AtomicBool::new(false)),
            asked: AtomicBool::new(false),
            requests: Arc::new(AtomicU64::new(0)),
            phase: AtomicU8::new(Phase::Starting as u8),
            since: AtomicI64::new(clock::monotonic()),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            duration: AtomicI64::new(0),
            board: Mutex::new(None),
            ended: (Mutex::new(false), Condvar::new()),
        }
    }
}

impl Progress {
    /// Enters a phase of which `total` units are to be done, where that is known.
    pub fn begin(&self, phase: Phase, total: Option<u64>) {
        self.done.store(0, Relaxed);
        self.total.store(total.unwrap_or(0), Relaxed);
        self.since.store(clock::monotonic(), Relaxed);
        self.phase.store(phase as u8, Relaxed);
    }

    /// Ends the run early, as somebody asked for it.
    pub fn ask_to_stop(&self) {
        self.asked.store(true, SeqCst);
        self.stop.store(true, SeqCst);
    }

    /// Whether somebody asked for the end. If only the load was to end, what comes after it goes on.
    pub fn after_load(&self, failed: bool) -> bool {
        if !failed {
            self.stop.store(false, SeqCst);
        }
        let asked = self.asked.load(SeqCst);
        if asked {
            self.stop.store(true, SeqCst);
        }
        asked
    }

    /// Says that some units of the phase are done.
    pub fn advance(&self, done: u64) {
        self.done.fetch_add(done, Relaxed);
    }

    /// Units of the phase that are done.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Makes the running phase's counters visible; `duration` in ns, 0 where none is asked for.
    pub fn watch(&self, board: Arc<Board>, duration: i64) {
        self.duration.store(duration, Relaxed);
        *locked(&self.board) = Some(board);
    }

    /// What the run is doing now; `history` holds what was seen of it before.
    pub fn live(&self, history: &Mutex<History>) -> Live {
        let now = clock::monotonic();
        let phase = Phase::ALL[self.phase.load(Relaxed) as usize];
        let mut live = Live { phase: phase.name(), ..Live::default() };
        live.elapsed_ns = now - self.since.load(Relaxed);
        if let Some(board) = &*locked(&self.board) {
            locked(history).observe(now, board, &mut live);
        }
        let (mut done, total) = (self.done.load(Relaxed), self.total.load(Relaxed));
        if phase == Phase::Running {
            done = live.all.counts.requests;
        }
        let share = (total > 0).then(|| done as f64 / total as f64);
        let duration = self.duration.load(Relaxed);
        let time =
            (phase == Phase::Running && duration > 0).then(|| live.elapsed_ns as f64 / duration as f64);
        live.fraction = match (share, time) {
            (Some(a), Some(b)) => Some(a.max(b).min(1.0)),
            (a, b) => a.or(b).map(|f| f.min(1.0)),
        };
        live
    }

    /// Says that the run is over.
    pub fn end(&self) {
        self.begin(Phase::Done, None);
        *locked(&self.ended.0) = true;
        self.ended.1.notify_all();
    }

    /// Waits until the run is over, at most `timeout`; whether it is.
    pub fn wait(&self, timeout: Duration) -> bool {
        let wait = self.ended.1.wait_timeout_while(locked(&self.ended.0), timeout, |ended| !*ended);
        *wait.unwrap_or_else(|e| e.into_inner()).0
    }
}

/// A lock that a thread which panicked does not keep from others.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
