//! Finds the completion of every queued request by the sectors it covers.
//!
//! Merging, splitting and partial completion all come down to one rule: a completion of some sectors
//! counts for the oldest queued request of the same device and direction that still waits for them,
//! and a request is complete when all its sectors are. Requests that go through the kernel's flush
//! machinery (`block/blk-flush.c`) end with a further completion of no sectors.

use super::event::{Category, Event};
use crate::{Batch, NONE, Op, flag};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// A request is given up after so many nanoseconds without its completion.
const PATIENCE: i64 = 60_000_000_000;

/// Most requests held back for their completions.
const MOST_WAITING: usize = 1 << 19;

/// What a request still waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Completions of so many sectors.
    Sectors(u64),
    /// The closing completion of the flush machinery; the latency so far stands if it never comes.
    Closing,
    /// Nothing.
    Done,
}

#[derive(Debug)]
struct Waiting {
    time: i64,
    op: Op,
    object: u32,
    sector: u64,
    bytes: u32,
    flags: u32,
    actor: u32,
    latency: i64,
    state: State,
}

/// Waiting sectors of one device and direction: start and request, to end.
#[derive(Debug, Default)]
struct Lane {
    parts: BTreeMap<(u64, u64), u64>,
    longest: u64,
}

/// Queued requests in order, with what is known of their completions.
#[derive(Debug, Default)]
pub struct Join {
    queue: VecDeque<Waiting>,
    /// Number of the queue's first request.
    base: u64,
    lanes: FxHashMap<(u32, u8), Lane>,
    closing: FxHashMap<(u32, u64), VecDeque<u64>>,
    flushes: FxHashMap<u32, VecDeque<u64>>,
    /// Devices whose driver is given flushes of its own, so that their completions are not ours.
    flushing: FxHashMap<u32, ()>,
    latest: i64,
    /// Requests given up.
    pub unfinished: u64,
    /// Requests that completed with an error.
    pub failed: u64,
    /// Completions of sectors that nobody waited for.
    pub orphans: u64,
}

fn lane(category: Category) -> u8 {
    if category.contains(Category::DISCARD) { 2 } else { u8::from(category.contains(Category::WRITE)) }
}

fn sectors(event: &Event) -> (u64, u64) {
    let end = event.sector.saturating_add(u64::from(event.bytes).div_ceil(512));
    (event.sector, end)
}

/// The oldest number that is still in the queue.
fn current(list: &mut VecDeque<u64>, base: u64) -> Option<u64> {
    std::iter::from_fn(|| list.pop_front()).find(|&number| number >= base)
}

impl Join {
    /// Takes a Q event.
    pub fn queue(&mut self, event: &Event, object: u32, actor: u32) {
        let number = self.base + self.queue.len() as u64;
        let has = |bit| event.category.contains(bit);
        let data = event.bytes > 0;
        let op = match () {
            () if has(Category::DISCARD) => Op::Discard,
            () if has(Category::FLUSH) && !data => Op::Flush,
            () if has(Category::WRITE) => Op::Write,
            () => Op::Read,
        };
        let mut flags = 0;
        for (bit, value) in [
            (Category::SYNC, flag::SYNC),
            (Category::FUA, flag::FUA),
            (Category::META, flag::META),
            (Category::AHEAD, flag::READAHEAD),
        ] {
            flags |= if has(bit) { value } else { 0 };
        }
        if has(Category::FLUSH) && data {
            flags |= flag::PREFLUSH;
        }
        let (start, end) = sectors(event);
        if data {
            let lane = self.lanes.entry((event.device, lane(event.category))).or_default();
            lane.longest = lane.longest.max(end - start);
            lane.parts.insert((start, number), end);
        } else {
            self.flushes.entry(event.device).or_default().push_back(number);
        }
        self.queue.push_back(Waiting {
            time: event.time.cast_signed(),
            op,
            object,
            sector: start,
            bytes: event.bytes,
            flags,
            actor,
            latency: NONE,
            state: State::Sectors(end - start),
        });
        self.latest = self.latest.max(event.time.cast_signed());
    }

    /// Takes a D event: only flushes of the driver matter.
    pub fn issue(&mut self, event: &Event) {
        if event.category.contains(Category::FLUSH) && event.bytes == 0 {
            self.flushing.insert(event.device, ());
        }
    }

    /// Takes a C event.
    pub fn complete(&mut self, event: &Event) {
        self.latest = self.latest.max(event.time.cast_signed());
        if event.bytes == 0 {
            self.complete_nothing(event);
        } else {
            self.complete_sectors(event);
        }
    }

    fn get(&mut self, number: u64) -> Option<&mut Waiting> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.queue.get_mut(index)
    }

    fn done(&mut self, number: u64, event: &Event, state: State) {
        let failed = u64::from(event.failed);
        let Some(waiting) = self.get(number) else { return };
        waiting.latency = event.time.cast_signed().saturating_sub(waiting.time).max(0);
        waiting.state = state;
        if state == State::Done {
            self.failed += failed;
        }
    }

    /// The end of a flush, or of a request that the flush machinery took apart.
    fn complete_nothing(&mut self, event: &Event) {
        let device = event.device;
        if let Some(list) = self.closing.get_mut(&(device, event.sector)) {
            let number = current(list, self.base);
            if list.is_empty() {
                self.closing.remove(&(device, event.sector));
            }
            if let Some(number) = number {
                return self.done(number, event, State::Done);
            }
        }
        if event.category.contains(Category::FLUSH) && self.flushing.contains_key(&device) {
            return;
        }
        let base = self.base;
        if let Some(number) = self.flushes.get_mut(&device).and_then(|list| current(list, base)) {
            self.done(number, event, State::Done);
        }
    }

    fn complete_sectors(&mut self, event: &Event) {
        let (start, end) = sectors(event);
        let Some(lane) = self.lanes.get_mut(&(event.device, lane(event.category))) else {
            self.orphans += 1;
            return;
        };
        let from = start.saturating_sub(lane.longest);
        let mut found: Vec<(u64, u64, u64)> = lane
            .parts
            .range((from, 0)..(end, 0))
            .filter(|&(_, &e)| e > start)
            .map(|(&(s, n), &e)| (n, s, e))
            .collect();
        // Requests given up must not take what belongs to later ones.
        found.retain(|&(number, s, _)| number >= self.base || lane.parts.remove(&(s, number)).is_none());
        found.sort_unstable();
        let mut open = vec![(start, end)];
        let mut covered = Vec::with_capacity(found.len());
        for (number, s, e) in found {
            let mut taken = 0;
            let mut still = Vec::with_capacity(open.len() + 1);
            let mut left = vec![(s, e)];
            for &(a, b) in &open {
                let (x, y) = (a.max(s), b.min(e));
                if x >= y {
                    still.push((a, b));
                    continue;
                }
                taken += y - x;
                still.extend([(a, x), (y, b)].into_iter().filter(|(p, q)| p < q));
                left = left
                    .iter()
                    .flat_map(|&(p, q)| [(p, q.min(x)), (p.max(y), q)])
                    .filter(|(p, q)| p < q)
                    .collect();
            }
            if taken == 0 {
                continue;
            }
            open = still;
            lane.parts.remove(&(s, number));
            for (p, q) in left {
                lane.parts.insert((p, number), q);
            }
            covered.push((number, taken));
        }
        if covered.is_empty() {
            self.orphans += 1;
        }
        for (number, taken) in covered {
            self.cover(number, taken, event);
        }
    }

    fn cover(&mut self, number: u64, taken: u64, event: &Event) {
        let Some(waiting) = self.get(number) else { return };
        let State::Sectors(left) = waiting.state else { return };
        let left = left.saturating_sub(taken);
        if left > 0 {
            waiting.state = State::Sectors(left);
            return;
        }
        // The flush machinery strips what it does itself from the data's own completion.
        let stripped = |bit| !event.category.contains(bit);
        let closing = waiting.flags & flag::PREFLUSH != 0 && stripped(Category::FLUSH)
            || waiting.flags & flag::FUA != 0 && stripped(Category::FUA);
        if closing {
            let sector = waiting.sector;
            self.closing.entry((event.device, sector)).or_default().push_back(number);
            self.done(number, event, State::Closing);
        } else {
            self.done(number, event, State::Done);
        }
    }

    /// Moves the requests whose fate is known to a batch, in order; all of them at the end.
    pub fn deliver(&mut self, batch: &mut Batch, ended: bool) {
        while let Some(front) = self.queue.front() {
            let patience =
                self.latest.saturating_sub(front.time) > PATIENCE || self.queue.len() > MOST_WAITING;
            if front.state != State::Done && !ended && !patience {
                break;
            }
            let Some(front) = self.queue.pop_front() else { break };
            self.base += 1;
            self.unfinished += u64::from(matches!(front.state, State::Sectors(_)));
            let place = front.bytes > 0;
            batch.time.push(front.time);
            batch.op.push(front.op as u8);
            batch.object.push(front.object);
            batch.offset.push(if place { (front.sector * 512).cast_signed() } else { NONE });
            batch.size.push(if place { i64::from(front.bytes) } else { NONE });
            batch.latency.push(front.latency);
            batch.flags.push(front.flags);
            batch.actor.push(front.actor);
        }
        if self.queue.is_empty() {
            self.forget();
        }
    }

    /// Drops what only refers to requests that are gone.
    fn forget(&mut self) {
        for lane in self.lanes.values_mut() {
            lane.parts.clear();
        }
        self.closing.clear();
        self.flushes.clear();
    }
}
