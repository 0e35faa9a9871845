//! Transfers of programs by system calls.

use super::acts::ALIGNED;
use super::code::Step;
use super::machine::{End, FEWER, Machine, Slot};
use crate::backend::again;
use crate::host::names::call;
use crate::source::random::below;
use loadstone_plan::{Act, MAX_TRANSFER};
use rustix::fs::{SeekFrom, copy_file_range, seek};

/// Byte beyond which no file reaches, and from which on sums with sizes are still numbers: the system refuses it.
const FARTHEST: f64 = (1u64 << 62) as f64;

impl Machine<'_> {
    /// Bytes of a transfer; the program ends at one that is larger than a request may be.
    #[inline(always)]
    pub fn length(&mut self, step: &Step) -> Result<u64, End> {
        let size = self.number(step.size).max(0.0) as u64;
        if size > MAX_TRANSFER {
            return Err(too_large(step, size));
        }
        Ok(if step.direct { size.next_multiple_of(ALIGNED) } else { size })
    }

    /// A random multiple of `size` within what a step may use of a file, and how many there are.
    #[inline(always)]
    pub fn by_chance(&mut self, step: &Step, file: u32, size: u64) -> (u64, u64) {
        let asked = self.number(step.working_set).max(0.0) as u64;
        let room = if asked > 0 { asked.min(self.set(step).end) } else { self.set(step).size(file) };
        let room = if step.skip_last && room > size { room - 1 } else { room };
        let blocks = room / size.max(1);
        (if blocks > 1 { below(&mut self.random, blocks) * size } else { 0 }, blocks)
    }

    pub fn transfer(&mut self, step: &Step) -> Result<(), End> {
        let mut size = self.length(step)?;
        if step.act == Act::AppendRandom {
            size = below(&mut self.random, size + 1);
            size = if step.direct { size.next_multiple_of(ALIGNED) } else { size };
        }
        let Some(slot) = self.ready_slot(step)? else { return Ok(()) };
        let state = self.slots[slot];
        let append = matches!(step.act, Act::Append | Act::AppendRandom);
        let (mut at, mut blocks) = (state.at, 0);
        let placed = step.random || step.position.is_some() || step.again;
        if step.again {
            at = state.began;
        } else if let Some(position) = step.position {
            let byte = self.number(position).clamp(0.0, FARTHEST) as u64;
            (at, blocks) = (if step.direct { byte - byte % ALIGNED } else { byte }, 1);
        } else if step.random && !append {
            (at, blocks) = self.by_chance(step, state.file, size);
        }
        let issued = self.begin()?;
        if state.fd < 0 {
            self.done(step, issued, size as i64);
            return Ok(());
        }
        let (fd, length) = (state.fd, size as usize);
        if step.act == Act::Read {
            let file = self.world.number(state.set, state.file);
            let mut once = |at: u64| {
                let (data, _) = self.buffers.for_read_of(length, file, at);
                // SAFETY: the buffer holds `length` bytes.
                let result = again(|| unsafe { libc::pread(fd, data.cast(), length, at as i64) } as i64);
                self.buffers.ended(result, false);
                result
            };
            let mut result = once(at);
            // At its end a file is read from the beginning again.
            if result == 0 && at > 0 && !placed {
                at = 0;
                result = once(0);
            }
            // A random read lies within what the file should hold; one of a smaller file is no fault.
            self.done(step, issued, if blocks > 0 { short(result, size) } else { result });
            self.moved_to(slot, at, result, placed);
            return Ok(());
        }
        if at.saturating_add(size) > self.set(step).end && !placed {
            // A device is written from its beginning again; a file grows.
            at = 0;
        }
        if append {
            at = state.file().map_or(0, |file| seek(file, SeekFrom::End(0)).unwrap_or(0));
        }
        let data = self.data(step, state, length, at);
        // SAFETY: the buffer holds `length` bytes.
        let result = again(|| unsafe { libc::pwrite(fd, data.cast(), length, at as i64) } as i64);
        self.buffers.ended(result, false);
        self.done(step, issued, short(result, size));
        self.moved_to(slot, at, result, placed);
        Ok(())
    }

    /// Takes note of where a transfer began, and unless it was placed, where the next one does.
    #[inline(always)]
    fn moved_to(&mut self, slot: usize, at: u64, result: i64, placed: bool) {
        let slot = &mut self.slots[slot];
        slot.began = at;
        if !placed {
            slot.at = at + result.max(0) as u64;
        }
    }

    /// What a step writes to the file of a descriptor.
    #[inline(always)]
    pub fn data(&mut self, step: &Step, state: Slot, size: usize, at: u64) -> *const u8 {
        if step.zeros {
            return self.buffers.zeros(size);
        }
        let file = self.world.number(state.set, state.file);
        if step.echo {
            return self.buffers.for_echo(size, file, at);
        }
        self.buffers.for_write(size, file, at).0
    }

    pub fn whole(&mut self, step: &Step) -> Result<(), End> {
        let piece = self.length(step)?;
        let Some(slot) = self.ready_slot(step)? else { return Ok(()) };
        let state = self.slots[slot];
        let writes = step.act == Act::WriteWhole;
        let source = step.other.map(|other| self.slots[other]).filter(|other| writes && other.open);
        let model = source.unwrap_or(state);
        let total = self.world.sets[model.set].size(model.file);
        let piece = if piece == 0 { total.clamp(1, MAX_TRANSFER) } else { piece };
        let issued = self.begin()?;
        if state.fd < 0 {
            self.done(step, issued, total as i64);
            return Ok(());
        }
        let (mut moved, mut failed) = (0, 0);
        let file = self.world.number(state.set, state.file);
        loop {
            let length = if writes && !step.whole_pieces { piece.min(total - moved) } else { piece };
            let size = if step.direct { length.next_multiple_of(ALIGNED) } else { length } as usize;
            if writes && (length == 0 || moved >= total) {
                break;
            }
            let result = if writes {
                let data = self.data(step, state, size, moved);
                // SAFETY: the buffer holds `size` bytes.
                again(|| unsafe { libc::pwrite(state.fd, data.cast(), size, moved as i64) } as i64)
            } else {
                let (data, _) = self.buffers.for_read_of(size, file, moved);
                // SAFETY: the buffer holds `size` bytes.
                again(|| unsafe { libc::pread(state.fd, data.cast(), size, moved as i64) } as i64)
            };
            self.buffers.ended(result, false);
            if result <= 0 {
                failed = result;
                break;
            }
            moved += result as u64;
            if writes && moved >= total {
                break;
            }
        }
        self.done(step, issued, if failed < 0 { failed } else { moved as i64 });
        Ok(())
    }

    pub fn copy(&mut self, step: &Step) -> Result<(), End> {
        let size = self.length(step)?;
        let source = step.other.map(|other| self.slots[other]).filter(|other| other.open);
        let Some(source) = source else {
            return Err(End::Failed(format!(
                "the op {:?} copies from descriptor {}, in which nothing is open; open a file there first",
                step.name,
                step.other.unwrap_or(0)
            )));
        };
        let Some(slot) = self.ready_slot(step)? else { return Ok(()) };
        let target = self.slots[slot];
        let issued = self.begin()?;
        let (Some(source_file), Some(target_file)) = (source.file(), target.file()) else {
            self.done(step, issued, size as i64);
            return Ok(());
        };
        let file = self.world.number(target.set, target.file);
        let mut copied = |at: u64| {
            let (mut from, mut to) = (at, at);
            // What the other file has there is not what this one should have.
            self.buffers.for_discard(size as usize, file, at);
            let result = call(|| {
                let (from, to) = (Some(&mut from), Some(&mut to));
                Ok(copy_file_range(source_file, from, target_file, to, size as usize)? as i64)
            });
            self.buffers.ended(result, false);
            result
        };
        let mut at = target.at;
        let mut result = copied(at);
        if result == 0 && at > 0 {
            at = 0;
            result = copied(0);
        }
        self.done(step, issued, result);
        self.slots[slot].at = at + result.max(0) as u64;
        Ok(())
    }
}

#[cold]
fn too_large(step: &Step, size: u64) -> End {
    End::Failed(format!(
        "the op {:?} asks for {size} bytes at once, and a request has at most {MAX_TRANSFER}; use a smaller size, and more \
         of them",
        step.name
    ))
}

/// A transfer's result: fewer bytes than asked for are an error of their own.
#[inline(always)]
pub fn short(result: i64, size: u64) -> i64 {
    if result >= 0 && (result as u64) < size { FEWER } else { result }
}
