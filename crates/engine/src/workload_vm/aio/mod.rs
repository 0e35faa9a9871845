//! Writes of programs that go on beside their thread: an io_uring of the thread's own, made at its first one.
//!
//! A write is timed from its submission until the thread sees its end, which it looks for at every further write and
//! wait.

pub mod writes;

use crate::issue::context::SLICE;
use crate::workload_vm::code::Step;
use crate::workload_vm::machine::{End, Machine};
use crate::workload_vm::transfers::short;
use writes::{MOST, Writes};

/// Longest wait of one step, ns.
const PATIENCE: i64 = 1_000_000_000;

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
