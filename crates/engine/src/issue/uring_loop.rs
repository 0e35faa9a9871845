//! The loop of an asynchronous backend: keeps up to `depth` requests in flight from one thread.

use crate::backend::discarded;
use crate::backend::uring::{BATCH, Ring};
use crate::issue::completion_order::Gate;
use crate::issue::context::{Context, PATIENCE, SLICE};
use crate::issue::dependencies::Depending;
use crate::issue::depth_search::DepthSearch;
use crate::issue::flow::Flowing;
use crate::issue::pausing::Pausing;
use crate::issue::priorities::Priorities;
use crate::metrics::recorder::Recorder;
use crate::metrics::recorder::Unissued;
use crate::payload::Payload;
use crate::payload::buffer::{Pair, cells};
use crate::request::{Request, op};
use crate::source::fetch::{Feed, Next};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A request in flight, or room for one.
struct Slot {
    request: Request,
    intended: i64,
    /// When it was issued; `FREE` when nothing is in flight.
    issued: i64,
    buffers: Pair,
}

const FREE: i64 = i64::MIN;

/// Writes are handed over once so many bytes of them were made, fewer than a batch or not: what waits longer is late at a
/// fast device. Measured at 128 KiB: `docs/notes/tried.md`.
const MADE_AT_MOST: u64 = 256 << 10;

/// Why the loop stopped issuing for the moment.
enum Pause {
    /// A full batch waits to be handed over.
    Batch,
    /// `depth` requests are in flight, or a completion must come first.
    Completion,
    /// The next request is due at this time.
    Until(i64),
    /// The source has nothing decoded yet.
    Source,
    /// Nothing more will be issued.
    End,
}

/// What requests wait for besides their time.
pub enum Waits {
    /// Nothing.
    Nothing,
    /// What had completed before in the trace.
    Completions(Gate),
    /// What they depend on.
    Causes(Box<Depending>),
}

/// How the loop runs.
pub struct Settings {
    /// Most requests in flight.
    pub depth: u32,
    /// What requests wait for.
    pub order: Waits,
    /// When it pauses, if it does.
    pub pausing: Option<Pausing>,
    /// The search of the depth, where there is one.
    pub search: Option<DepthSearch>,
    /// The worker's share of the requests of several.
    pub flowing: Option<Flowing>,
    /// The recorder keeps the full log.
    pub logged: bool,
    /// Of the data that is written.
    pub payload: Payload,
    /// Of the requests that have one of their own.
    pub priorities: Option<Priorities>,
}

/// Runs until the source ends, time is up or it is told to stop, and waits for everything in flight. Returns how many
/// requests were due by then and did not go out.
///
/// # Errors
/// When the ring or its memory cannot be had, or fails.
pub fn many<const OPEN: bool>(
    context: &mut Context,
    feed: &mut Feed,
    ring: &mut Ring,
    settings: Settings,
    recorder: &mut Recorder,
) -> Result<Unissued> {
    let Settings { depth, mut order, mut pausing, mut search, mut flowing, logged, payload, mut priorities } =
        settings;
    let slot = |buffers| Slot { request: Request::default(), intended: 0, issued: FREE, buffers };
    // The kernel may write to the memory of what is in flight. So it is given back only where everything has come back,
    // and neither after an error nor by a panic.
    let enough = cells(depth as usize, &payload);
    let (memory, pairs) = enough.ok_or_else(|| Error::no_memory("lower --depth"))?;
    let mut memory = ManuallyDrop::new(memory);
    // SAFETY: the memory is given back after everything in flight has come back, or never.
    let registered = unsafe { ring.register(memory.bytes()) };
    let makes = payload.makes();
    let plain = |i| Pair::new(&payload.part(i));
    let mut slots: ManuallyDrop<Vec<Slot>> = ManuallyDrop::new(if registered {
        pairs.into_iter().map(slot).collect()
    } else {
        (0..depth as usize).map(plain).map(slot).collect()
    });
    let mut free: Vec<u32> = (0..depth).rev().collect();
    let mut queued: Vec<u32> = Vec::with_capacity(BATCH);
    // Bytes made for those.
    let mut made = 0;
    let mut oldest: VecDeque<(u32, i64)> = VecDeque::new();
    if logged {
        recorder.outstanding_since(context.start);
    }
    let mut queues = ring.queues();
    // End of the last pause.
    let mut resume = i64::MIN;
    let mut ended = false;
    let mut failure = None;
    let mut now = context.clock.now();
    loop {
        let pause = loop {
            if ended || context.stop.load(Relaxed) || now >= context.deadline {
                ended = true;
                break Pause::End;
            }
            if free.is_empty() {
                break Pause::Completion;
            }
            if now < resume {
                break Pause::Until(resume);
            }
            if let Some(pausing) = &mut pausing
                && pausing.is_due()
            {
                if free.len() < slots.len() {
                    break Pause::Completion;
                }
                resume = pausing.begin(now);
                continue;
            }
            if let Some(search) = &mut search {
                if search.is_over() {
                    ended = true;
                    break Pause::End;
                }
                if !search.admits(slots.len() - free.len()) {
                    break Pause::Completion;
                }
            }
            if let Some(flowing) = &mut flowing
                && !flowing.admits(free.len() == slots.len())
            {
                break Pause::Source;
            }
            if queued.len() == BATCH || made >= MADE_AT_MOST {
                break Pause::Batch;
            }
            let patience =
                if queued.is_empty() && free.len() == slots.len() { PATIENCE } else { Duration::ZERO };
            let next = match &mut order {
                Waits::Causes(causes) => causes.peek(feed, patience, now - context.start),
                _ => feed.peek(patience),
            };
            let request = match next {
                Next::Request(r) => *r,
                Next::NotYet => break Pause::Source,
                Next::Blocked => break Pause::Completion,
                Next::End => {
                    ended = true;
                    break Pause::End;
                }
            };
            let mut intended = now;
            if OPEN {
                intended = context.start.saturating_add(request.due);
                if intended > now {
                    break Pause::Until(intended);
                }
            }
            match &mut order {
                Waits::Nothing => feed.advance(),
                Waits::Completions(gate) => {
                    if !gate.admits(request.submitted) {
                        break Pause::Completion;
                    }
                    gate.issue(&request);
                    feed.advance();
                }
                Waits::Causes(causes) => causes.advance(),
            }
            let i = free.pop().expect("checked above");
            let slot = &mut slots[i as usize];
            slot.request = request;
            slot.intended = intended;
            let ioprio = priorities.as_mut().map_or(0, |priorities| priorities.draw(&request));
            // SAFETY: a slot is not freed before its completion, and `slots` never moves or shrinks.
            if !unsafe { queues.push(&request, i, &mut slot.buffers, ioprio) } {
                // Cannot happen: the queue has room for a batch. Count it as refused, never lose it.
                let result = -i64::from(libc::EBUSY);
                slot.buffers.ended(result, false);
                recorder.complete(&request, intended, now, now, result, &mut context.clock);
                free.push(i);
                continue;
            }
            queued.push(i);
            pausing.iter_mut().for_each(Pausing::count);
            flowing.iter_mut().for_each(Flowing::issue);
            if makes && request.op == op::WRITE {
                made += request.size;
            }
        };
        let in_flight = slots.len() - free.len();
        if in_flight == 0 {
            match pause {
                Pause::End => break,
                Pause::Until(due) => {
                    if due - now > context.spin.ns {
                        recorder.idle(now, &mut context.clock);
                        now = context.sleep(due, now);
                    } else {
                        std::hint::spin_loop();
                        now = context.clock.now();
                    }
                }
                _ => {
                    recorder.idle(now, &mut context.clock);
                    now = context.clock.now();
                }
            }
            continue;
        }
        if !queued.is_empty() {
            made = 0;
            let issued = context.clock.now();
            for i in queued.drain(..) {
                let slot = &mut slots[i as usize];
                slot.issued = issued;
                if !OPEN {
                    slot.intended = issued;
                }
                if logged {
                    oldest.push_back((i, issued));
                }
            }
            recorder.issued(issued, in_flight as u32, &mut context.clock);
        }
        let entered = match pause {
            Pause::Batch => queues.enter(0, None),
            Pause::Until(due) if due - now <= context.spin.ns => {
                if queues.pending() {
                    queues.enter(0, None)
                } else {
                    Ok(())
                }
            }
            Pause::Until(due) => queues.enter(1, Some((due - now - context.spin.ns).min(SLICE))),
            // The source may be ready in a moment.
            Pause::Source => queues.enter(1, Some(100_000)),
            Pause::Completion | Pause::End => queues.enter(1, Some(SLICE)),
        };
        now = context.clock.now();
        if let Err(e) = entered {
            // What is in flight can no longer be waited for through this ring.
            failure = Some(e);
            break;
        }
        let clock = &mut context.clock;
        let reaped = queues.reap(|i, result| {
            let slot = &mut slots[i as usize];
            let moved = discarded(&slot.request, result);
            recorder.complete(&slot.request, slot.intended, slot.issued, now, moved, clock);
            match &mut order {
                Waits::Nothing => {}
                Waits::Completions(gate) => gate.done(&slot.request),
                Waits::Causes(causes) => causes.done(&slot.request, now - context.start),
            }
            if let Some(search) = &mut search {
                search.count(now - slot.issued, result < 0);
            }
            slot.buffers.ended(result, slot.request.is_stable());
            slot.issued = FREE;
            free.push(i);
        });
        if reaped == 0 {
            recorder.idle(now, clock);
        }
        if let Some(search) = &mut search {
            search.look(now);
        }
        if logged {
            while oldest.front().is_some_and(|(i, issued)| slots[*i as usize].issued != *issued) {
                oldest.pop_front();
            }
            recorder.outstanding_since(oldest.front().map_or(now, |(_, issued)| *issued));
        }
    }
    if let Some(search) = &search {
        recorder.searched(search.told());
    }
    match failure {
        Some(e) => Err(e),
        None => {
            drop((ManuallyDrop::into_inner(slots), ManuallyDrop::into_inner(memory)));
            // When what depends on others is due nobody knows before these are back.
            if !OPEN || matches!(order, Waits::Causes(_)) {
                return Ok(Unissued::default());
            }
            Ok(context.count_unissued(|| feed.take(PATIENCE)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::issue::spin::Spin;
    use crate::metrics::live::Board;
    use crate::payload::PayloadPlan;
    use crate::source::placement::Placer;
    use crate::source::plain::Plain;
    use loadstone_plan::Plan;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// Larger than a cell, whose pages are pinned anyway.
    const SIZE: usize = 64 << 10;

    #[test]
    fn a_panic_leaves_the_memory_of_what_is_in_flight_to_the_kernel() {
        let plan = serde_json::json!({
            "version": 1,
            "targets": [{"id": "t", "kind": "null", "size": 1 << 20}],
            "workers": [{
                "source": {"kind": "uniform", "reads": 1.0, "size": SIZE},
                "backend": "null",
                "depth": 1,
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 20}]},
            }],
            "steps": [{"step": "run"}],
        });
        let plan = Plan::parse(&plan.to_string()).unwrap();
        let (source, placer) =
            (crate::source::open::plain(&plan, 0).unwrap(), Placer::new(&plan, 0).unwrap());
        let mut feed = Feed::plain(Box::new(Plain::new(&plan.workers[0], source, &placer).unwrap()));
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut ring = Ring::new(1, &[reader.as_raw_fd()]).unwrap();
        let clock = Clock::new();
        let start = clock.now() + 30_000_000;
        let stop = Arc::default();
        let mut context = Context { clock, start, deadline: i64::MAX, stop, spin: Spin::new(0, 0) };
        // Looking which interval it is, some time after the read went out, divides by zero.
        let mut recorder = Recorder::new(start, 0, false, Arc::new(Board::of_ops()), Arc::default(), None);
        let payload = Payload::new(0, PayloadPlan::default(), 0);
        let settings = Settings {
            depth: 1,
            order: Waits::Nothing,
            pausing: None,
            search: None,
            flowing: None,
            logged: false,
            payload,
            priorities: None,
        };
        let run = || many::<false>(&mut context, &mut feed, &mut ring, settings, &mut recorder);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        writer.write_all(&[7; SIZE]).unwrap();
        let (mut queues, mut results) = (ring.queues(), Vec::new());
        queues.enter(1, Some(10_000_000_000)).unwrap();
        queues.reap(|slot, result| results.push((slot, result)));
        assert_eq!(results, [(0, SIZE as i64)], "the kernel finds the memory where it was");
    }
}
