//! Writes of programs that go on beside their thread: an io_uring of the thread's own, made at its first one.
//!
//! A write is timed from its submission until the thread sees its end, which it looks for at every further write and
//! wait.

use crate::issue::context::SLICE;
use crate::payload::Payload;
use crate::payload::buffer::Pair;
use crate::workload_vm::code::Step;
use crate::workload_vm::machine::{End, Machine};
use crate::workload_vm::transfers::short;
use io_uring::{IoUring, opcode, types};
use std::os::fd::RawFd;

/// Most writes of a thread under way; one more waits for the end of another.
const MOST: usize = 4096;
/// Longest wait of one step, ns.
const PATIENCE: i64 = 1_000_000_000;

/// A write under way, or room for one.
struct Flight<'a> {
    step: Option<&'a Step>,
    data: Pair,
    size: u64,
    issued: i64,
    intended: Option<i64>,
}

/// The writes of a thread.
pub struct Writes<'a> {
    ring: IoUring,
    flights: Vec<Flight<'a>>,
    free: Vec<u32>,
    payload: Payload,
}

/// A ring that threads may leave alone: completions come without being asked for.
fn ring(entries: u32, completions: u32) -> std::io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.dontfork().setup_cqsize(completions);
    builder.build(entries)
}

/// Whether writes can go on beside a thread here at all.
pub fn available() -> Result<(), String> {
    ring(1, 2).map(drop).map_err(|cause| {
        format!(
            "aio_write needs io_uring, which this kernel or container refuses ({cause}); permit it \
             (kernel.io_uring_disabled, seccomp), or use write with more threads"
        )
    })
}

impl<'a> Writes<'a> {
    fn new(payload: &Payload) -> Result<Writes<'a>, String> {
        let ring = ring(8, 2 * MOST as u32)
            .map_err(|cause| format!("setting up io_uring for aio_write: {cause}"))?;
        Ok(Writes { ring, flights: Vec::new(), free: Vec::new(), payload: payload.clone() })
    }

    fn under_way(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// A place for one more write.
    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let data = Pair::new(&self.payload.part(self.flights.len()));
            self.flights.push(Flight { step: None, data, size: 0, issued: 0, intended: None });
            self.flights.len() as u32 - 1
        })
    }

    /// Whether the kernel still has writes to end.
    fn is_busy(&mut self) -> bool {
        // What could not be handed over will never end.
        self.under_way() > self.ring.submission().len()
    }

    /// Hands a write to the kernel.
    fn submit(&mut self, place: u32, fd: RawFd, file: u64, at: u64) -> std::io::Result<()> {
        let flight = &mut self.flights[place as usize];
        let size = flight.size as usize;
        let zeros = flight.step.is_some_and(|step| step.zeros);
        let data = if zeros { flight.data.zeros(size) } else { flight.data.for_write(size, file, at).0 };
        let entry = opcode::Write::new(types::Fd(fd), data, flight.size as u32).offset(at).build();
        // SAFETY: the memory is the flight's own until its completion was seen; nobody drops it before.
        if unsafe { self.ring.submission().push(&entry.user_data(u64::from(place))) }.is_err() {
            return Err(std::io::Error::from_raw_os_error(libc::EBUSY));
        }
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                // The entry stays queued, and goes out with a later call.
                Err(e) if matches!(e.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN)) => return Ok(()),
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Waits for a completion, `ns` at most.
    fn wait(&mut self, ns: i64) {
        let time = types::Timespec::new().nsec(ns.clamp(0, 999_999_999) as u32);
        // Whatever ended it, the completions are looked at next.
        let _ = self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time));
    }
}

impl Drop for Writes<'_> {
    fn drop(&mut self) {
        // The kernel reads from the flights' memory until the last of them has ended.
        while self.is_busy() {
            self.wait(SLICE);
            let Writes { ring, free, .. } = self;
            free.extend(ring.completion().map(|done| done.user_data() as u32));
        }
    }
}

impl<'a> Machine<'a> {
    /// Begins a write at random.
    pub fn begin_write(&mut self, step: &'a Step) -> Result<(), End> {
        let size = self.length(step)?;
        let Some(slot) = self.ready_slot(step)? else { return Ok(()) };
        let state = self.slots[slot];
        let at = self.by_chance(step, state.file, size).0;
        if state.fd < 0 {
            let issued = self.begin()?;
            self.done(step, issued, size as i64);
            return Ok(());
        }
        let mut writes = match self.writes.take() {
            Some(writes) => writes,
            None => Box::new(Writes::new(&self.payload).map_err(End::Failed)?),
        };
        while writes.under_way() >= MOST && self.reap(&mut writes, MOST) == 0 {
            writes.wait(SLICE);
        }
        let issued = self.begin()?;
        let place = writes.place();
        let flight = &mut writes.flights[place as usize];
        (flight.step, flight.size, flight.issued) = (Some(step), size, issued);
        flight.intended = self.intended.take();
        let file = self.world.number(state.set, state.file);
        let handed = writes.submit(place, state.fd, file, at);
        self.reap(&mut writes, MOST);
        self.writes = Some(writes);
        handed
            .map_err(|cause| End::Failed(format!("the op {:?} could not begin a write: {cause}", step.name)))
    }

    /// Waits for half of the writes under way, or looks for them.
    pub fn await_writes(&mut self, step: &Step) -> Result<(), End> {
        let issued = self.begin()?;
        if let Some(mut writes) = self.writes.take() {
            let wanted = (writes.under_way() / 2).max(1);
            let mut seen = self.reap(&mut writes, if step.blocking { MOST } else { wanted });
            let mut now = issued;
            let due = issued.saturating_add(PATIENCE).min(self.context.deadline);
            while step.blocking && seen < wanted && writes.under_way() > 0 && now < due && self.look().is_ok()
            {
                writes.wait(SLICE.min(due - now));
                seen += self.reap(&mut writes, MOST);
                now = self.context.clock.now();
            }
            self.writes = Some(writes);
        }
        self.done(step, issued, 0);
        Ok(())
    }

    /// Waits for all writes under way, and counts them.
    pub fn settle_writes(&mut self) {
        if let Some(mut writes) = self.writes.take() {
            while writes.is_busy() {
                if self.reap(&mut writes, MOST) == 0 {
                    writes.wait(SLICE);
                }
            }
        }
    }

    /// Counts writes that have ended, `most` at most: how many.
    fn reap(&mut self, writes: &mut Writes<'a>, most: usize) -> usize {
        let mut seen = 0;
        while seen < most {
            let Some(done) = writes.ring.completion().next() else { break };
            let place = done.user_data() as u32;
            let flight = &mut writes.flights[place as usize];
            flight.data.ended(i64::from(done.result()), false);
            if let Some(step) = flight.step {
                let result = i64::from(done.result());
                self.completed(step, flight.issued, short(result, flight.size), flight.intended);
            }
            writes.free.push(place);
            seen += 1;
        }
        seen
    }
}
