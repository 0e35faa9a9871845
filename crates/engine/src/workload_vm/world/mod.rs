//! What the threads of all programs share: sets, events, semaphores, gates and counts.

mod content_map;
mod verify;

use crate::clock::{Clock, sleep_until};
use crate::fileset::{Set, SetPath, refuse_larger};
use crate::host::descriptors::{parents, raise};
use crate::host::target::Open;
use crate::issue::context::SLICE;
use crate::metrics::progress::Progress;
use crate::payload::{PayloadPlan, of_set, of_target};
use crate::replay_tree::Filling;
use crate::source::variables::Variables;
use crate::workload_vm::aio::writes::available;
use crate::workload_vm::code::{Code, Names};
use crate::workload_vm::span::Span;
use crate::workload_vm::tally::Tally;
use crate::{Error, Result};
use content_map::ContentMap;
use loadstone_content::seed::derive;
use loadstone_files::Dir;
use loadstone_plan::{Act, Backend, FileSet, Plan, Source, Step, TargetKind, Until};
use loadstone_trace::Op;
use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Parts of a nanosecond in which events are spaced.
const FINE: i64 = 1 << 10;
/// Events that nobody came for are kept this long, ns (Filebench's generator keeps as many).
const KEPT: i64 = 5_000_000_000;
/// Longest wait before looking whether the run is over.
const PATIENCE: Duration = Duration::from_millis(20);

/// Events at a steady rate, of which each is had by one thread.
struct Events {
    /// Start of the run on the clock, ns. The parts of a nanosecond since a host was booted do not fit into a number.
    start: AtomicI64,
    /// When the next one is, in parts of a nanosecond from the start.
    next: AtomicI64,
    /// Between two of them; 0: nobody waits.
    gap: f64,
}

impl Events {
    /// Takes `count` events; when the last of them is on the clock.
    fn take(&self, count: f64, now: i64) -> i64 {
        let (step, start) = ((count * self.gap) as i64, self.start.load(Relaxed));
        let mut next = self.next.load(Relaxed);
        loop {
            let first = next.max((now - start - KEPT).saturating_mul(FINE));
            let after = first.saturating_add(step);
            match self.next.compare_exchange_weak(next, after, Relaxed, Relaxed) {
                Ok(_) => {
                    let last = first.saturating_add((step - self.gap as i64).max(0));
                    return (last / FINE).saturating_add(start);
                }
                Err(other) => next = other,
            }
        }
    }
}

/// One side of a producer and a consumer: what was posted, and how much more may be.
#[derive(Default)]
struct Semaphore {
    /// Posted, and room for more; the room may be overdrawn by posts that do not wait for it.
    state: Mutex<(u64, i64)>,
    changed: Condvar,
}

/// Where ops wait to be woken up.
#[derive(Default)]
struct Gate {
    calls: Mutex<u64>,
    called: Condvar,
}

/// Where all threads that have not ended wait for each other.
struct Barrier {
    /// Threads that go on, those of them that wait, and how often all have met.
    state: Mutex<(usize, usize, u64)>,
    met: Condvar,
}

/// What one op of one thread has done.
#[derive(Default)]
pub struct Count {
    ops: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// Adds a completion; only the owning thread does.
    #[inline(always)]
    pub fn add(&self, bytes: u64) {
        self.ops.store(self.ops.load(Relaxed) + 1, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
    }
}

/// A sum of counts that limits take the growth of.
struct Bucket {
    /// Threads and classes it sums.
    of: Vec<(usize, usize)>,
    bytes: bool,
    /// The sum when it was last looked at; `u64::MAX` before.
    last: AtomicU64,
}

/// Shared by all threads of a run of programs.
pub struct World {
    /// The sets of the plan.
    pub sets: Vec<Set>,
    /// Root of each set, or -1 on `null`.
    pub roots: Vec<RawFd>,
    places: Mutex<Vec<Option<SetPath>>>,
    /// The directory of each set's target, if the set is that one file or device.
    alone: Vec<Option<Dir>>,
    /// Directories that a thread keeps open for the names in them.
    pub parents: usize,
    /// Number of the content of each set's first file.
    numbers: Vec<u64>,
    /// The plan's variables.
    pub variables: Variables,
    /// Names of ops.
    pub names: Vec<String>,
    /// Of each thread, by class.
    pub counts: Vec<Box<[Count]>>,
    /// Whether counts are looked at by anybody.
    pub counted: bool,
    events: Events,
    semaphores: Vec<Vec<(usize, Semaphore)>>,
    gates: Vec<Gate>,
    buckets: Vec<Bucket>,
    /// Names under which values are told, and what the threads that have ended drew.
    pub records: Vec<String>,
    tallies: Mutex<Vec<Tally>>,
    /// Names of groups whose times are told, and those of the threads that have ended, by worker and group.
    pub spans: Vec<String>,
    times: Mutex<Vec<Vec<Span>>>,
    /// First thread of each worker.
    first: Vec<usize>,
    barrier: Barrier,
    /// Entries of archives that were neither files nor directories, or whose names lead elsewhere.
    pub left_out: AtomicU64,
    /// What else is to be said of them, once each.
    pub remarks: Mutex<BTreeSet<String>>,
    /// What files hold, where that is verified.
    pub contents: Option<ContentMap>,
    /// What ends the run.
    pub until: Until,
    /// The run has come to its end.
    pub over: AtomicBool,
}

/// Number of the content of a set's first file; a set that is one target has that of the target.
fn first_number(plan: &Plan, set: usize, of: &FileSet) -> u64 {
    let target = plan.targets.iter().position(|target| target.id == of.target);
    match target.filter(|target| plan.targets[*target].kind != TargetKind::Tree) {
        Some(target) => of_target(target),
        None => of_set(set, 0),
    }
}

/// Whether a program does this anywhere.
fn has(ops: &[loadstone_plan::Op], act: Act) -> bool {
    ops.iter().any(|op| op.act == act || has(&op.ops, act))
}

impl World {
    /// Makes the programs of a checked plan ready, and draws their sets.
    ///
    /// # Errors
    /// When a program cannot be run.
    pub fn new(plan: &Plan) -> Result<(World, Vec<Arc<Code>>)> {
        let until = plan.steps.iter().find_map(|step| match step {
            Step::Run { until, .. } => Some(*until),
            _ => None,
        });
        let mut names = Names::collect(plan);
        let (mut codes, mut first, mut threads) = (Vec::new(), Vec::new(), 0);
        for (i, worker) in plan.workers.iter().enumerate() {
            let code = Code::new(plan, i, &mut names);
            let code = code.map_err(|what| Error::Request { worker: i, row: 0, what })?;
            if worker.backend == Backend::Posix && code.has(Act::AioWrite) {
                available().map_err(Error::Program)?;
            }
            codes.push(Arc::new(code));
            first.push(threads);
            threads += worker.depth as usize;
        }
        let counts = plan.workers.iter().zip(&codes).flat_map(|(worker, code)| {
            (0..worker.depth).map(|_| code.labels.iter().map(|_| Count::default()).collect())
        });
        let variables = Variables::new(&plan.variables).map_err(|id| {
            let what = format!("the variable {id:?} cannot be drawn from; check its parameters");
            Error::Request { worker: 0, row: 0, what }
        })?;
        let sets = plan.sets.iter().enumerate();
        let sets = sets.map(|(i, set)| Set::draw(set, plan, &variables, i)).collect();
        let semaphores = names.semaphores.iter().map(|(_, workers)| {
            let threads = workers.iter().flat_map(|(worker, depth)| (0..*depth).map(|t| first[*worker] + t));
            threads.map(|thread| (thread, Semaphore::default())).collect()
        });
        let world = World {
            sets,
            roots: Vec::new(),
            places: Mutex::default(),
            alone: Vec::new(),
            parents: parents(raise(), threads),
            numbers: plan.sets.iter().enumerate().map(|(i, set)| first_number(plan, i, set)).collect(),
            variables,
            semaphores: semaphores.collect(),
            gates: names.gates.iter().map(|_| Gate::default()).collect(),
            buckets: names
                .counts
                .iter()
                .map(|(act, target)| bucket(*act, target, plan, &codes, &names, &first))
                .collect(),
            counted: !names.counts.is_empty(),
            names: names.ops,
            tallies: Mutex::new(vec![Tally::default(); names.records.len()]),
            records: names.records,
            times: Mutex::new(vec![vec![Span::default(); names.spans.len()]; plan.workers.len()]),
            spans: names.spans,
            barrier: Barrier { state: Mutex::new((threads, 0, 0)), met: Condvar::new() },
            counts: counts.collect(),
            events: Events {
                start: AtomicI64::new(0),
                next: AtomicI64::new(0),
                gap: if plan.events_per_s > 0.0 { 1e9 * FINE as f64 / plan.events_per_s } else { 0.0 },
            },
            left_out: AtomicU64::new(0),
            remarks: Mutex::default(),
            contents: None,
            until: until.unwrap_or_default(),
            over: AtomicBool::new(false),
            first,
        };
        Ok((world, codes))
    }

    /// Finds the places of the sets; nothing is changed yet.
    ///
    /// # Errors
    /// When one is taken.
    pub fn plant(&mut self, plan: &Plan, targets: &[Open]) -> Result<()> {
        let mut places = Vec::new();
        for (i, set) in plan.sets.iter().enumerate() {
            let at = plan.targets.iter().position(|target| target.id == set.target);
            let at = at.expect("checked by the plan");
            let (place, alone) = match plan.targets[at].kind {
                TargetKind::Null => (None, None),
                TargetKind::File | TargetKind::Device => (None, Some(targets[at].place()?)),
                TargetKind::Tree => {
                    (Some(SetPath::find(&targets[at], set, plan.targets[at].allow_destroy)?), None)
                }
            };
            places.push(place);
            self.alone.push(alone.map(|(dir, name)| {
                self.sets[i].call_alone(name);
                dir
            }));
        }
        self.places = Mutex::new(places);
        Ok(())
    }

    /// Makes all sets; `false` when stopped on the way.
    ///
    /// # Errors
    /// When something cannot be made.
    pub fn build(&self, progress: &Progress, seed: u64, payload_plan: &PayloadPlan) -> Result<bool> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let built = self.build_all(&mut places, progress, seed, payload_plan);
        if !matches!(built, Ok(true)) {
            places.iter().zip(&self.sets).for_each(|(place, set)| {
                place.iter().for_each(|place| place.undo(set));
            });
        }
        built
    }

    fn build_all(
        &self,
        places: &mut [Option<SetPath>],
        progress: &Progress,
        seed: u64,
        payload_plan: &PayloadPlan,
    ) -> Result<bool> {
        let all = places.iter().zip(&self.sets).filter_map(|(place, set)| Some((place.as_ref()?, set)));
        refuse_larger(&all.collect::<Vec<_>>())?;
        for (i, (place, set)) in places.iter_mut().zip(&self.sets).enumerate() {
            let seed = derive(seed, "files of a set", i as u64);
            let filling = Filling { seed, payload_plan, first: self.numbers[i] };
            if let Some(place) = place
                && !place.build(set, progress, filling)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says in the marks of all sets that nothing is changed any more.
    pub fn end(&self) {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().flatten().for_each(SetPath::end);
    }

    /// Descriptors of the directories that sets lie in.
    pub fn held(&self) -> Vec<RawFd> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let alone = self.alone.iter().flatten().map(AsRawFd::as_raw_fd);
        places.iter().flatten().flat_map(SetPath::held).chain(alone).collect()
    }

    /// Number of the content of a set's file.
    #[inline(always)]
    pub fn number(&self, set: usize, file: u32) -> u64 {
        match &self.contents {
            None => self.numbers[set] + u64::from(file),
            Some(contents) => contents.number(&self.sets[set], set, file).unwrap_or(self.numbers[set]),
        }
    }

    /// Files that are there when the sets are made: numbers of their contents and bytes.
    pub fn made(&self) -> Vec<(u64, u64)> {
        let files = |(set, first): (&Set, &u64)| {
            let there = (0..set.files.len() as u32).filter(|file| set.files.is_present(*file));
            there.map(|file| (first + u64::from(file), set.size(file))).collect::<Vec<_>>()
        };
        self.sets.iter().zip(&self.numbers).filter(|(set, _)| !set.is_alone()).flat_map(files).collect()
    }

    /// Blocks of `unit` bytes that all files there may be have when they are made.
    pub fn blocks(&self, unit: u64) -> u64 {
        let made = self.sets.iter().filter(|set| !set.is_alone());
        made.map(|set| set.blocks(unit)).fold(0, u64::saturating_add)
    }

    /// Takes note of the roots of sets that were made.
    pub fn find_roots(&mut self) {
        let places = self.places.get_mut().unwrap_or_else(PoisonError::into_inner);
        // On `null` there is neither.
        let root = |(place, alone): (&Option<SetPath>, &Option<Dir>)| match place {
            Some(place) => place.directory.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            None => alone.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        };
        self.roots = places.iter().zip(&self.alone).map(root).collect();
    }

    /// The directory that a set lies in; nothing on `null`.
    #[inline(always)]
    pub fn root(&self, set: usize) -> Option<BorrowedFd<'_>> {
        let root = self.roots[set];
        // SAFETY: the places and targets of the sets stay open as long as the world.
        (root >= 0).then(|| unsafe { BorrowedFd::borrow_raw(root) })
    }

    /// Takes note of what files hold from now on, where that is verified.
    pub fn map_contents(&mut self, plan: &Plan, payload_plan: &PayloadPlan) {
        let Some(verifier) = payload_plan.verifier() else { return };
        let mapped = plan
            .workers
            .iter()
            .any(|worker| matches!(&worker.source, Source::Program { ops, .. } if has(ops, Act::MmapWrite)));
        // Files of any names come from archives, and what is written through a link is written to another file.
        let known = |set: usize| !plan.sets[set].any_names && !self.sets[set].has_links();
        self.contents = Some(ContentMap::new(verifier.clone(), &self.sets, known, mapped));
    }

    /// Takes in what a thread has drawn, and its times; nobody waits for it any more.
    pub fn tell(&self, thread: usize, drawn: &[Tally], times: &[Span]) {
        {
            let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
            tallies.iter_mut().zip(drawn).for_each(|(sum, own)| sum.merge(own));
        }
        {
            let worker = self.first.partition_point(|first| *first <= thread) - 1;
            let mut all = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            all[worker].iter_mut().zip(times).for_each(|(sum, own)| sum.merge(own));
        }
        let mut state = self.barrier.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 -= 1;
        self.meet(&mut state);
    }

    /// Lets all go on if none is missing.
    fn meet(&self, state: &mut (usize, usize, u64)) {
        if state.1 >= state.0 {
            *state = (state.0, 0, state.2 + 1);
            self.barrier.met.notify_all();
        }
    }

    /// Waits until all threads wait here or have ended; `false` when the run is over.
    pub fn gather(&self, stop: &AtomicBool, late: impl Fn() -> bool) -> bool {
        let before = {
            let mut state = self.barrier.state.lock().unwrap_or_else(PoisonError::into_inner);
            let before = state.2;
            state.1 += 1;
            self.meet(&mut state);
            before
        };
        self.wait(&self.barrier.state, &self.barrier.met, stop, late, |state| state.2 != before)
    }

    /// Times of groups in threads that have ended: worker, name and times, of those that were done at all.
    pub fn timed(&self) -> Vec<(usize, String, Span)> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |(worker, spans): (usize, &Vec<Span>)| {
            let named = self.spans.iter().zip(spans.clone()).filter(|(_, span)| span.count > 0);
            named.map(|(name, span)| (worker, name.clone(), span)).collect::<Vec<_>>()
        };
        times.iter().enumerate().flat_map(of).collect()
    }

    /// What all threads that have ended drew, by name.
    pub fn told(&self) -> Vec<(String, Tally)> {
        let tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        self.records.iter().cloned().zip(tallies.iter().copied()).collect()
    }

    /// Events begin.
    pub fn begin(&self, start: i64) {
        self.events.start.store(start, Relaxed);
    }

    /// Whether there are events to wait for.
    pub fn is_paced(&self) -> bool {
        self.events.gap > 0.0
    }

    /// Whether the run is over, stopped or not.
    #[inline(always)]
    pub fn is_over(&self, stop: &AtomicBool) -> bool {
        stop.load(Relaxed) || self.over.load(Relaxed)
    }

    /// Waits for `count` events; when the last one was, or nothing when the run is over. At no rate nobody waits.
    pub fn events(
        &self,
        count: f64,
        clock: &mut Clock,
        stop: &AtomicBool,
        deadline: i64,
    ) -> Option<Option<i64>> {
        if self.events.gap == 0.0 || count <= 0.0 {
            return Some(None);
        }
        let mut now = clock.now();
        let due = self.events.take(count, now);
        while now < due {
            if self.is_over(stop) || now >= deadline {
                return None;
            }
            sleep_until(due.min(now + SLICE).min(deadline));
            now = clock.now();
        }
        Some(Some(due))
    }

    fn sum(&self, bucket: &Bucket) -> u64 {
        let get = |(thread, class): &(usize, usize)| {
            let count = &self.counts[*thread][*class];
            if bucket.bytes { count.bytes.load(Relaxed) } else { count.ops.load(Relaxed) }
        };
        bucket.of.iter().map(get).sum()
    }

    /// Growth of a bucket since anybody asked last; the first time nothing.
    pub fn growth(&self, bucket: usize) -> u64 {
        let bucket = &self.buckets[bucket];
        let sum = self.sum(bucket);
        let last = bucket.last.load(Relaxed);
        if last == u64::MAX {
            bucket.last.store(sum, Relaxed);
            return 0;
        }
        sum.saturating_sub(bucket.last.fetch_max(sum, Relaxed))
    }

    /// What a bucket holds.
    pub fn total(&self, bucket: usize) -> u64 {
        self.sum(&self.buckets[bucket])
    }

    /// Waits while `ready` says no; `false` when the run is over.
    fn wait<T>(
        &self,
        lock: &Mutex<T>,
        changed: &Condvar,
        stop: &AtomicBool,
        late: impl Fn() -> bool,
        mut ready: impl FnMut(&mut T) -> bool,
    ) -> bool {
        let mut state = lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !ready(&mut state) {
            if self.is_over(stop) || late() {
                return false;
            }
            state = changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits until somebody wakes the gate up; `false` when the run is over.
    pub fn block(&self, gate: usize, stop: &AtomicBool, late: impl Fn() -> bool) -> bool {
        let gate = &self.gates[gate];
        let before = *gate.calls.lock().unwrap_or_else(PoisonError::into_inner);
        self.wait(&gate.calls, &gate.called, stop, late, |calls| *calls != before)
    }

    /// Wakes up all that wait at a gate.
    pub fn wake(&self, gate: usize) {
        let gate = &self.gates[gate];
        *gate.calls.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        gate.called.notify_all();
    }

    /// Makes room for `count` posts at the calling thread's own semaphore, then takes as many; `false` when the run is over.
    ///
    /// Room comes first, as in Filebench: those that post may be ahead by the high-water mark and by what is waited for.
    pub fn take_posts(
        &self,
        name: usize,
        thread: usize,
        count: u64,
        stop: &AtomicBool,
        late: impl Fn() -> bool,
    ) -> bool {
        let Some((_, semaphore)) = self.semaphores[name].iter().find(|one| one.0 == thread) else {
            return true;
        };
        self.open_up(name, thread, count);
        self.wait(&semaphore.state, &semaphore.changed, stop, late, |state| {
            let enough = state.0 >= count;
            state.0 -= if enough { count } else { 0 };
            enough
        })
    }

    /// Posts `count` to each instance, and, when `within` is given, waits for room; `false` when the run is over.
    pub fn post(
        &self,
        name: usize,
        count: u64,
        within: bool,
        stop: &AtomicBool,
        late: impl Fn() -> bool,
    ) -> bool {
        for (_, semaphore) in &self.semaphores[name] {
            let posted = self.wait(&semaphore.state, &semaphore.changed, stop, &late, |state| {
                let taken = i64::try_from(count).unwrap_or(i64::MAX);
                let room = !within || state.1 >= taken;
                if room {
                    *state = (state.0.saturating_add(count), state.1.saturating_sub(taken));
                }
                room
            });
            if !posted {
                return false;
            }
            semaphore.changed.notify_all();
        }
        true
    }

    /// Gives the semaphores of an op their room.
    pub fn open_up(&self, name: usize, thread: usize, room: u64) {
        if let Some((_, semaphore)) = self.semaphores[name].iter().find(|one| one.0 == thread) {
            let room = i64::try_from(room).unwrap_or(i64::MAX);
            let mut state = semaphore.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.1 = state.1.saturating_add(room);
            drop(state);
            semaphore.changed.notify_all();
        }
    }
}

/// What a limit or an end counts: ops of a name in all workers, or all of the kind that its act is about.
fn bucket(
    act: Act,
    target: &Option<String>,
    plan: &Plan,
    codes: &[Arc<Code>],
    names: &Names,
    first: &[usize],
) -> Bucket {
    let bytes = matches!(act, Act::BandwidthLimit | Act::FinishOnBytes);
    let mut of = Vec::new();
    for (i, code) in codes.iter().enumerate() {
        for (class, label) in code.labels.iter().enumerate() {
            let moves = label.op == Op::Read as u8 || label.op == Op::Write as u8;
            let meant = match target {
                Some(target) => names.ops[usize::from(label.name)] == *target,
                // All of them, waits, limits and the ends themselves, too.
                None if matches!(act, Act::OpsLimit | Act::FinishOnCount) => true,
                None => moves,
            };
            if meant && matches!(plan.workers[i].source, Source::Program { .. }) {
                of.extend((0..plan.workers[i].depth as usize).map(|t| (first[i] + t, class)));
            }
        }
    }
    Bucket { of, bytes, last: AtomicU64::new(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_at_their_rate_and_old_ones_are_dropped() {
        // Just booted, up for 105 days, and as far as the clock goes.
        for start in [0, 9_100_000_000_000_000, i64::MAX - 100_000_000_000] {
            let events =
                Events { start: AtomicI64::new(start), next: AtomicI64::new(0), gap: 1000.5 * FINE as f64 };
            let mut due = 0;
            for _ in 0..1000 {
                due = events.take(1.0, start);
            }
            assert_eq!(due - start, 999 * 2001 / 2);
            assert_eq!(events.take(10.0, start) - start, 1_000_500 + 9 * 2001 / 2);
            let late = start + 60_000_000_000;
            assert_eq!(events.take(1.0, late), late - KEPT);
        }
    }

    #[test]
    fn events_that_come_once_in_a_thousand_years_never_come_early() {
        let events = Events { start: AtomicI64::new(7), next: AtomicI64::new(0), gap: 3e19 * FINE as f64 };
        assert_eq!(events.take(1.0, 7), 7);
        assert!(events.take(1.0, 7) > 1 << 50);
        assert!(events.take(1e9, 7) > 1 << 50);
    }
}
