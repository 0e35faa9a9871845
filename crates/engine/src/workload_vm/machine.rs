//! One thread of a program: its steps in order, over and over, until the run is over or it has come to its end.

use super::aio::writes::Writes;
use super::code::{Code, OTHER, Step};
use super::span::Span;
use super::stdio::stream::Stream;
use super::tally::Tally;
use super::world::World;
use crate::backend::mapped::Mapping;
use crate::fileset::LONGEST;
use crate::issue::context::{Context, SLICE};
use crate::metrics::recorder::Recorder;
use crate::payload::Payload;
use crate::payload::buffer::Pair;
use crate::request::SHORT;
use crate::source::variables::{Draws, Number};
use crate::{
    Error,
    clock::{sleep_until, thread_cpu_time},
};
use loadstone_files::Parents;
use loadstone_plan::{Act, Until};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::Ordering::Relaxed;

/// Stands for a transfer of fewer bytes than asked for, among negative errnos.
pub const FEWER: i64 = i64::MIN;

/// A descriptor of the thread.
#[derive(Clone, Copy)]
pub struct Slot {
    /// -1: none, and there the run's target is `null`.
    pub fd: RawFd,
    pub open: bool,
    /// Whether `set` and `file` say what is open, or was before it was closed.
    pub known: bool,
    pub set: usize,
    pub file: u32,
    /// Where the next sequential transfer begins.
    pub at: u64,
    /// Where the last transfer began.
    pub began: u64,
    /// errno of the last open if that failed, else 0.
    pub refused: i32,
}

impl Slot {
    /// What is open in it; nothing on `null`.
    #[inline(always)]
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: it is closed with its slot alone, and no slot is used meanwhile.
        (self.fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(self.fd) })
    }
}

/// Why a thread goes on no longer.
pub enum End {
    /// Time is up, or somebody stopped the run.
    Over,
    /// It has done what it should.
    Finished,
    /// No file was left for an op of this name.
    NoFile(String),
    /// It cannot go on.
    Failed(String),
}

/// A thread.
pub struct Machine<'a> {
    pub code: &'a Code,
    pub world: &'a World,
    /// Its number among all threads.
    pub thread: usize,
    pub draws: Draws<'a>,
    pub random: Xoshiro256PlusPlus,
    pub slots: Vec<Slot>,
    /// The files of descriptors that are mapped.
    pub maps: Vec<Option<Box<Mapping>>>,
    /// Streams of the C library on descriptors.
    pub streams: Vec<Option<Stream>>,
    /// Writes under way, once there was one.
    pub writes: Option<Box<Writes<'a>>>,
    /// What it writes.
    pub payload: Payload,
    /// Descriptor that was used last in turn.
    pub turn: usize,
    /// Next file of each set, in turn.
    pub cursors: Vec<usize>,
    pub buffers: Pair,
    /// When the next request was to go out, if an event said so.
    pub intended: Option<i64>,
    pub context: &'a mut Context,
    pub recorder: &'a mut Recorder,
    /// Directories of sets that names lie in.
    pub parents: Parents,
    /// Room for two paths.
    pub rooms: Box<[[u8; LONGEST]; 2]>,
    memory: Vec<u64>,
    /// Of values that are told.
    tallies: Vec<Tally>,
    /// Of groups whose times are told.
    spans: Vec<Span>,
    /// Requests that succeeded so far, and bytes they moved.
    moved: (u64, u64),
}

impl<'a> Machine<'a> {
    /// Thread number `thread` of all, whose draws follow from the seed of its payload.
    pub fn new(
        code: &'a Code,
        world: &'a World,
        thread: usize,
        payload: Payload,
        context: &'a mut Context,
        recorder: &'a mut Recorder,
    ) -> Machine<'a> {
        let seed = payload.seed;
        let none = Slot { fd: -1, open: false, known: false, set: 0, file: 0, at: 0, began: 0, refused: 0 };
        // Threads that take files in turn begin at different ones.
        let cursors = world.sets.iter().map(|set| (thread * 7919) % set.files.len().max(1));
        Machine {
            draws: Draws::new(&world.variables, seed, thread as u64),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            slots: vec![none; code.slots],
            maps: (0..code.slots).map(|_| None).collect(),
            streams: (0..code.slots).map(|_| None).collect(),
            writes: None,
            turn: 0,
            cursors: cursors.collect(),
            buffers: Pair::new(&payload),
            payload,
            intended: None,
            parents: Parents::new(world.parents),
            rooms: Box::new([[0; LONGEST]; 2]),
            memory: vec![0; code.memory],
            tallies: vec![Tally::default(); world.records.len()],
            spans: vec![Span::default(); world.spans.len()],
            moved: (0, 0),
            code,
            world,
            thread,
            context,
            recorder,
        }
    }

    /// Runs until the end; what went wrong, if anything.
    pub fn run(&mut self) -> Option<Error> {
        self.ready(&self.code.steps);
        let end = loop {
            if let Err(end) = self.steps(&self.code.steps) {
                break end;
            }
        };
        self.settle_writes();
        self.close_all();
        self.world.tell(self.thread, &self.tallies, &self.spans);
        let until = self.world.until;
        let failure = match end {
            End::Over => None,
            End::Finished => {
                self.finish(until);
                None
            }
            End::NoFile(_) if until != Until::Time => {
                self.finish(until);
                None
            }
            End::NoFile(name) => Some(format!(
                "the op {name:?} found no file that it could use; give its set more entries, fewer threads, or let the run \
                 end there (mode quit firstdone)"
            )),
            End::Failed(what) => Some(what),
        };
        failure.map(|what| {
            self.world.over.store(true, Relaxed);
            Error::Program(what)
        })
    }

    fn finish(&self, until: Until) {
        if until == Until::FirstDone {
            self.world.over.store(true, Relaxed);
        }
    }

    /// Gives the thread's own semaphores their room.
    fn ready(&self, steps: &[Step]) {
        for step in steps {
            if step.act == Act::SemBlock {
                self.world.open_up(step.tie, self.thread, step.high_water);
            }
            self.ready(&step.inner);
        }
    }

    fn steps(&mut self, steps: &'a [Step]) -> Result<(), End> {
        for step in steps {
            let times = self.number(step.times);
            let mut left = times.round();
            while left >= 1.0 {
                self.step(step)?;
                left -= 1.0;
            }
        }
        // A program whose every step is done zero times must see the end, too.
        self.begin().map(|_| ())
    }

    /// Whether the run is over.
    #[inline(always)]
    pub fn look(&mut self) -> Result<(), End> {
        if self.world.is_over(&self.context.stop) { Err(End::Over) } else { Ok(()) }
    }

    /// A value, drawn if it is to be.
    #[inline(always)]
    pub fn number(&mut self, of: Number) -> f64 {
        let (clock, start) = (&mut self.context.clock, self.context.start);
        self.draws.value(of, || clock.now() - start)
    }

    /// The moment before a step; an error when the run is over.
    #[inline(always)]
    pub fn begin(&mut self) -> Result<i64, End> {
        let now = self.context.clock.now();
        if now >= self.context.deadline || self.world.is_over(&self.context.stop) {
            return Err(End::Over);
        }
        Ok(now)
    }

    /// Counts a step: the bytes it moved, or a negative errno.
    #[inline(always)]
    pub fn done(&mut self, step: &Step, issued: i64, result: i64) {
        let intended = self.intended.take();
        self.completed(step, issued, result, intended);
    }

    /// Counts a step that was to begin at `intended`, if anybody said so.
    #[inline(always)]
    pub fn completed(&mut self, step: &Step, issued: i64, result: i64, intended: Option<i64>) {
        let now = self.context.clock.now();
        let (errno, bytes) = match result {
            0.. => (0, result as u64),
            FEWER => (SHORT, 0),
            _ => (-result as i32, 0),
        };
        self.recorder.count(step.class, errno, bytes, [issued, now], intended, &mut self.context.clock);
        if errno == 0 && self.code.labels[step.class].op != OTHER {
            self.moved = (self.moved.0 + 1, self.moved.1 + bytes);
        }
        if errno == 0 {
            self.tell(step, bytes);
        }
    }

    /// Lets limits and ends know that a step was done.
    #[inline(always)]
    fn tell(&self, step: &Step, bytes: u64) {
        if self.world.counted {
            self.world.counts[self.thread][step.class].add(bytes);
        }
    }

    #[inline]
    fn step(&mut self, step: &'a Step) -> Result<(), End> {
        match step.act {
            Act::Group if step.timed => self.timed(step),
            Act::Group => self.steps(&step.inner),
            Act::Extract => self.extract(step),
            Act::Barrier => self.waiting(step, |world, stop, late| world.gather(stop, late)),
            Act::Fread | Act::Fwrite | Act::Getc | Act::Putc => self.streamed(step),
            Act::Record => {
                let value = self.number(step.value);
                self.tallies[step.tie].add(value);
                self.tell(step, 0);
                self.look()
            }
            Act::Hog => self.hog(step),
            Act::Delay => self.delay(step),
            Act::EventLimit => self.limit(step, 1.0),
            Act::IopsLimit | Act::OpsLimit => {
                let growth = self.world.growth(step.tie);
                self.limit(step, growth as f64)
            }
            Act::BandwidthLimit => {
                let growth = self.world.growth(step.tie);
                self.limit(step, growth as f64 / f64::from(1 << 20))
            }
            Act::FinishOnCount | Act::FinishOnBytes => {
                let most = self.number(step.value);
                self.tell(step, 0);
                let total = self.world.total(step.tie) as f64;
                let enough = if step.act == Act::FinishOnCount { total >= most } else { total > most };
                if enough { Err(End::Finished) } else { self.look() }
            }
            Act::Block => self.waiting(step, |world, stop, late| world.block(step.tie, stop, late)),
            Act::Wakeup => {
                self.world.wake(step.tie);
                self.tell(step, 0);
                self.look()
            }
            Act::SemBlock => {
                let (count, thread) = (self.number(step.value).max(0.0) as u64, self.thread);
                self.waiting(step, |world, stop, late| world.take_posts(step.tie, thread, count, stop, late))
            }
            Act::SemPost => {
                let (count, within) = (self.number(step.value).max(0.0) as u64, step.blocking);
                self.waiting(step, |world, stop, late| world.post(step.tie, count, within, stop, late))
            }
            Act::AioWrite => self.begin_write(step),
            Act::AioWait => self.await_writes(step),
            Act::MmapRead | Act::MmapWrite => self.mapped(step),
            _ => self.act(step),
        }
    }

    /// A group whose time is told; one that the end of the run cuts off is not.
    fn timed(&mut self, step: &'a Step) -> Result<(), End> {
        let (cpu, from, before) = (thread_cpu_time(), self.begin()?, self.moved);
        self.steps(&step.inner)?;
        let (to, start) = (self.context.clock.now(), self.context.start);
        let cpu = thread_cpu_time() - cpu;
        let since = |at: i64| (at - start).max(0) as u64;
        let (requests, bytes) = (self.moved.0 - before.0, self.moved.1 - before.1);
        self.spans[step.tie].merge(&Span::once(since(from), since(to), cpu, requests, bytes));
        Ok(())
    }

    /// A wait for other threads, which is counted.
    fn waiting(
        &mut self,
        step: &Step,
        wait: impl FnOnce(&World, &std::sync::atomic::AtomicBool, &dyn Fn() -> bool) -> bool,
    ) -> Result<(), End> {
        let issued = self.begin()?;
        let deadline = self.context.deadline;
        let late = || crate::clock::monotonic() >= deadline;
        if !wait(self.world, &self.context.stop, &late) {
            return Err(End::Over);
        }
        self.done(step, issued, 0);
        Ok(())
    }

    fn limit(&mut self, step: &Step, count: f64) -> Result<(), End> {
        let issued = self.begin()?;
        self.recorder.idle(issued, &mut self.context.clock);
        let (stop, deadline) = (&self.context.stop, self.context.deadline);
        let due = self.world.events(count, &mut self.context.clock, stop, deadline).ok_or(End::Over)?;
        self.done(step, issued, 0);
        self.intended = due;
        Ok(())
    }

    fn hog(&mut self, step: &Step) -> Result<(), End> {
        let stores = self.number(step.value);
        let issued = self.begin()?;
        let (mut left, len) = (stores as u64, self.memory.len() as u64);
        while left > 0 {
            // In pieces, so that a long one sees the end of the run.
            for i in 0..left.min(1 << 20) {
                let at = (i % len) as usize;
                // SAFETY: below the length; volatile, or the compiler would leave the stores out.
                unsafe { self.memory.as_mut_ptr().add(at).write_volatile(i) };
            }
            left = left.saturating_sub(1 << 20);
            if left > 0 {
                self.begin()?;
            }
        }
        self.done(step, issued, 0);
        Ok(())
    }

    fn delay(&mut self, step: &Step) -> Result<(), End> {
        let seconds = self.number(step.value).max(0.0);
        let issued = self.begin()?;
        let due = issued.saturating_add((seconds * 1e9) as i64);
        let mut now = issued;
        while now < due {
            sleep_until(due.min(now + SLICE).min(self.context.deadline));
            now = self.begin()?;
            self.recorder.idle(now, &mut self.context.clock);
        }
        self.done(step, issued, 0);
        Ok(())
    }
}
