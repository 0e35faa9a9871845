//! Pairs calls with replies and hands requests on in the order of their calls.

use super::names::{Asked, Change};
use crate::chunk::{Chunk, Origin};
use crate::{NO_OBJECT, NONE, Op};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A call is given up after so many nanoseconds without its reply.
const PATIENCE: i64 = 60_000_000_000;

/// Most calls held back for their replies.
const MOST_WAITING: usize = 1 << 19;

/// Who called: client, port, transaction id.
pub type Key = (u32, u16, u32);

/// A request as far as it is known.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it was asked for, nanoseconds.
    pub time: i64,
    /// What for.
    pub op: Op,
    /// Dense id of the file or name.
    pub object: u32,
    /// Dense id of the second name, or [`NO_OBJECT`].
    pub other: u32,
    /// First byte, or [`crate::NONE`].
    pub offset: i64,
    /// Bytes, or [`crate::NONE`].
    pub size: i64,
    /// Until the reply in nanoseconds, or [`crate::NONE`].
    pub latency: i64,
    /// Bits of [`crate::flag`].
    pub flags: u32,
    /// Dense id of the client.
    pub actor: u32,
    /// What it came to: bytes, 0 or a negative errno, or [`crate::NONE`].
    pub result: i64,
    /// Version of NFS.
    pub version: u8,
    /// What it changes if it is granted.
    pub change: Change,
}

impl Call {
    /// A call whose reply is to come.
    pub fn new(time: i64, version: u8, actor: u32, asked: &Asked) -> Call {
        let Asked { op, offset, size, flags, .. } = *asked;
        let (object, other, change) = (NO_OBJECT, NO_OBJECT, Change::Nothing);
        Call {
            time,
            op,
            object,
            other,
            offset,
            size,
            latency: NONE,
            flags,
            actor,
            result: NONE,
            version,
            change,
        }
    }
}

struct Waiting {
    call: Call,
    key: Key,
    line: u64,
    /// What it still waits for.
    left: u8,
}

/// Calls in order, with what is known of their replies.
#[derive(Default)]
pub struct Calls {
    queue: VecDeque<Waiting>,
    /// Number of the queue's first call.
    base: u64,
    open: FxHashMap<Key, u64>,
    /// The line that is read, from 1, where the source has lines.
    pub line: u64,
    /// Time of the last message; some files are several captures one after the other.
    latest: i64,
    /// Calls without a reply.
    pub unfinished: u64,
    /// Calls that were answered by an error.
    pub failed: u64,
    /// Calls that were sent again before they were answered.
    pub repeated: u64,
    /// Replies to calls that were not seen.
    pub orphans: u64,
}

impl Calls {
    /// Takes a call that waits for its reply and `more` things besides; its number, or `None` if it was sent
    /// before and is not answered yet.
    pub fn call(&mut self, key: Key, call: Call, more: u8) -> Option<u64> {
        self.latest = call.time;
        if self.open.get(&key).is_some_and(|number| *number >= self.base) {
            self.repeated += 1;
            return None;
        }
        let number = self.base + self.queue.len() as u64;
        self.open.insert(key, number);
        self.queue.push_back(Waiting { call, key, line: self.line, left: 1 + more });
        Some(number)
    }

    /// Takes a reply, which is an error if its result is negative; the call it answers.
    pub fn reply(&mut self, key: Key, time: i64, result: i64) -> Option<&mut Call> {
        self.latest = time;
        let found = self.open.remove(&key).filter(|number| *number >= self.base);
        let Some(number) = found else {
            self.orphans += 1;
            return None;
        };
        self.failed += u64::from(result < 0);
        let waiting = self.queue.get_mut((number - self.base) as usize)?;
        waiting.left = waiting.left.saturating_sub(1);
        waiting.call.latency = time.saturating_sub(waiting.call.time).max(0);
        waiting.call.result = result;
        Some(&mut waiting.call)
    }

    /// The call that waits for a reply.
    pub fn waiting(&self, key: Key) -> Option<&Call> {
        let number = self.open.get(&key)?.checked_sub(self.base)?;
        self.queue.get(usize::try_from(number).ok()?).map(|waiting| &waiting.call)
    }

    /// A call by its number, one of whose other things has come.
    pub fn more(&mut self, number: u64) -> Option<&mut Call> {
        let waiting = self.queue.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)?;
        waiting.left = waiting.left.saturating_sub(1);
        Some(&mut waiting.call)
    }

    /// Moves the requests whose fate is known to a chunk, in order; all of them at the end.
    pub fn deliver(&mut self, chunk: &mut Chunk, ended: bool) {
        while let Some(front) = self.queue.front() {
            let patience =
                self.latest.saturating_sub(front.call.time) > PATIENCE || self.queue.len() > MOST_WAITING;
            if front.left > 0 && !ended && !patience {
                break;
            }
            let Some(Waiting { call, key, line, .. }) = self.queue.pop_front() else { break };
            if self.open.get(&key) == Some(&self.base) {
                self.open.remove(&key);
                self.unfinished += 1;
            }
            self.base += 1;
            if line > 0 {
                let row = chunk.batch.len();
                chunk.origin = Origin::Line(0);
                chunk.skips.push((row, line.saturating_sub(row as u64)));
            }
            let batch = &mut chunk.batch;
            batch.time.push(call.time);
            batch.op.push(call.op as u8);
            batch.object.push(call.object);
            batch.offset.push(call.offset);
            batch.size.push(call.size);
            batch.latency.push(call.latency);
            batch.flags.push(call.flags);
            batch.actor.push(call.actor);
            batch.result.push(call.result);
            batch.other.push(call.other);
        }
    }

    /// Number of the oldest call that is held back.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Adds what was counted.
    pub fn info(&self, info: &mut crate::Info) {
        info.counts.unfinished += self.unfinished;
        info.counts.failed += self.failed;
        info.counts.other += self.repeated;
        if self.repeated > 0 {
            info.warnings.push(format!("{} calls were sent again before they were answered", self.repeated));
        }
        if self.orphans > 0 {
            info.warnings
                .push(format!("{} replies belong to calls that the capture does not have", self.orphans));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(time: i64) -> Call {
        let (name, second, leads) = (None, None, None);
        let (op, offset, size, flags) = (Op::Read, NONE, NONE, 0);
        Call::new(time, 3, 0, &Asked { op, handle: b"", name, second, leads, offset, size, flags })
    }

    #[test]
    fn calls_come_in_order_with_what_is_known_of_them() {
        let (mut calls, mut chunk) = (Calls::default(), Chunk::default());
        let first = calls.call((1, 2, 3), call(10), 1).unwrap();
        assert_eq!(calls.call((1, 2, 3), call(11), 0), None);
        calls.call((1, 2, 4), call(12), 0).unwrap();
        assert!(calls.reply((9, 9, 9), 13, 0).is_none());
        calls.reply((1, 2, 4), 15, -2).unwrap();
        calls.reply((1, 2, 3), 17, 0).unwrap().offset = 5;
        calls.deliver(&mut chunk, false);
        assert!(chunk.batch.is_empty(), "the first one waits for more");
        calls.more(first).unwrap().size = 6;
        calls.call((1, 2, 3), call(20), 0).unwrap();
        calls.deliver(&mut chunk, false);
        let batch = &chunk.batch;
        assert_eq!((batch.time.as_slice(), batch.latency.as_slice()), (&[10, 12][..], &[7, 3][..]));
        assert_eq!((batch.offset[0], batch.size[0]), (5, 6));
        assert_eq!((batch.result.as_slice(), batch.other[0]), (&[0, -2][..], NO_OBJECT));
        calls.call((1, 2, 5), call(61_000_000_000), 0).unwrap();
        calls.deliver(&mut chunk, false);
        assert_eq!((chunk.batch.len(), calls.unfinished), (3, 1));
        calls.deliver(&mut chunk, true);
        assert_eq!((chunk.batch.len(), calls.unfinished, calls.failed), (4, 2, 1));
        assert_eq!((calls.repeated, calls.orphans), (1, 1));
    }
}
