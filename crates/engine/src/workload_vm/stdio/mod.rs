//! Transfers of programs through the streams of the C library (stdio(3)), as classic benchmarks make them.

pub mod stream;

use crate::workload_vm::code::Step;
use crate::workload_vm::machine::{End, Machine};
use crate::workload_vm::transfers::short;
use loadstone_plan::Act;
use stream::Stream;

impl Machine<'_> {
    /// Hands what was written to a descriptor's stream to the kernel; a negative errno when that fails.
    pub fn flush(&mut self, slot: usize) -> i64 {
        let Some(stream) = &mut self.streams[slot] else { return 0 };
        let flushed = stream.flush();
        if std::mem::take(&mut stream.lags) {
            let state = self.slots[slot];
            if let Some(ledger) = self.buffers.ledger(self.world.number(state.set, state.file)) {
                ledger.lag(-1);
                if flushed < 0 {
                    ledger.forget();
                }
            }
        }
        flushed
    }

    /// Says that others may not see what is written until the stream is flushed.
    fn hold_back(&mut self, slot: usize) {
        let state = self.slots[slot];
        if let Some(stream) = self.streams[slot].as_mut().filter(|stream| !stream.lags)
            && let Some(ledger) = self.buffers.ledger(self.world.number(state.set, state.file))
        {
            stream.lags = true;
            ledger.lag(1);
        }
    }

    /// Moves bytes through the stream of a descriptor, which is made when it is first needed; that is no part of the time.
    pub fn streamed(&mut self, step: &Step) -> Result<(), End> {
        let size = self.length(step)?;
        let Some(slot) = self.ready_slot(step)? else { return Ok(()) };
        let state = self.slots[slot];
        let Some(of_slot) = state.file() else {
            let issued = self.begin()?;
            self.done(step, issued, size as i64);
            return Ok(());
        };
        if self.streams[slot].is_none() {
            let room = self.number(step.value).max(0.0) as usize;
            match Stream::new(of_slot, room) {
                Ok(stream) => self.streams[slot] = Some(stream),
                Err(failed) => {
                    let issued = self.begin()?;
                    self.done(step, issued, failed);
                    return Ok(());
                }
            }
        }
        let writes = matches!(step.act, Act::Fwrite | Act::Putc);
        let file = self.world.number(state.set, state.file);
        if self.streams[slot].as_ref().is_some_and(|stream| stream.lags && !writes) {
            self.flush(slot);
        }
        let data = match writes {
            true => self.data(step, state, size as usize, state.at).cast_mut(),
            false => self.buffers.for_late_read(size as usize, file, state.at),
        };
        let issued = self.begin()?;
        if data.is_null() {
            // The kernel would refuse it; the C library would touch it.
            let result = -i64::from(libc::EFAULT);
            self.buffers.ended(result, false);
            self.done(step, issued, result);
            return Ok(());
        }
        let Some(stream) = self.streams[slot].as_mut() else { return Ok(()) };
        stream.turn(writes);
        let mut result = stream.once(step.act, data, size as usize);
        self.buffers.ended(result, false);
        if result == 0 && stream.at > 0 && !writes {
            stream.rewind();
            let data = self.buffers.for_late_read(size as usize, file, 0);
            result = stream.once(step.act, data, size as usize);
            self.buffers.ended(result, false);
        }
        self.slots[slot].at = stream.at;
        if writes {
            self.hold_back(slot);
        }
        self.done(step, issued, if writes { short(result, size) } else { result });
        Ok(())
    }
}
