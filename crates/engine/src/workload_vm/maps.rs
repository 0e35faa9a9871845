//! Transfers of programs by mapped memory: a file is mapped when a step first needs it, and stays so until it is closed.

use super::code::Step;
use super::machine::{End, FEWER, Machine};
use super::transfers::short;
use crate::backend::mapped::{Mapping, length_of};
use loadstone_plan::Act;

impl Machine<'_> {
    /// Copies to or from the mapped file of a descriptor. Mapping it is not part of the time.
    pub fn mapped(&mut self, step: &Step) -> Result<(), End> {
        let size = self.length(step)?;
        let Some(slot) = self.ready_slot(step)? else { return Ok(()) };
        let state = self.slots[slot];
        if state.fd < 0 {
            let issued = self.begin()?;
            self.done(step, issued, size as i64);
            return Ok(());
        }
        let writes = step.act == Act::MmapWrite;
        let length = match &self.maps[slot] {
            Some(map) => map.len(),
            None => length_of(state.fd).unwrap_or(0),
        };
        if length == 0 {
            // Nothing of it can be mapped: reading ends at once, writing does not reach further.
            let issued = self.begin()?;
            self.done(step, issued, if writes && size > 0 { FEWER } else { 0 });
            return Ok(());
        }
        if self.maps[slot].is_none() {
            match Mapping::new(state.fd, length, true) {
                Ok(map) => self.maps[slot] = Some(Box::new(map)),
                Err(errno) => {
                    let issued = self.begin()?;
                    self.done(step, issued, -i64::from(errno));
                    return Ok(());
                }
            }
        }
        let mut at = if step.random { self.by_chance(step, state.file, size).0 } else { state.at };
        if at >= length {
            at = 0;
        }
        let part = size.min(length - at) as usize;
        let map = self.maps[slot].take().expect("mapped above");
        let result = if writes {
            let data = self.data(step, state, part, at);
            let issued = self.begin()?;
            // SAFETY: the buffer holds `part` bytes.
            let done = unsafe { map.write(at, data, part) };
            self.buffers.ended(done, false);
            let flushed = if done > 0 && step.flags & libc::O_SYNC != 0 { map.flush(at, part) } else { 0 };
            let result = if flushed < 0 { flushed } else { done };
            self.done(step, issued, short(result, size));
            result
        } else {
            let (room, _) = self.buffers.for_read_of(part, self.world.number(state.set, state.file), at);
            let issued = self.begin()?;
            // SAFETY: the buffer has room for `part` bytes.
            let done = unsafe { map.read(at, room, part) };
            self.buffers.ended(done, false);
            self.done(step, issued, done);
            done
        };
        self.maps[slot] = Some(map);
        if !step.random {
            self.slots[slot].at = at + result.max(0) as u64;
        }
        Ok(())
    }
}
