//! Features of when a request goes out, and after what.

use crate::feature::{Field, Kind, each};
use loadstone_trace::NONE;
use loadstone_trace::depend::{Causes, MOST_BACK, WITHIN_NS};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Nanoseconds since the previous request of the stream, whatever it touched; 0 for the first.
/// Source: "inter-arrival time", MDH thesis section 3.2.
pub(crate) const GAP: Kind = Kind::new("gap", Field::Gap, "ns", "log2:1", |_| {
    let mut last = None;
    each(move |rows, i| {
        let time = rows.time[i];
        time - last.replace(time).unwrap_or(time)
    })
});

/// Requests submitted before this one that had not completed when it was submitted, whatever they touched, of
/// those whose latency the trace tells; none before the first of them. The queue depth that the applications
/// kept. Source: "outstanding I/Os", Ahmad, IISWC 2007.
pub(crate) const OUTSTANDING: Kind = Kind::new("outstanding", Field::Seen, "request", "log2:2", |_| {
    // When those under way complete.
    let (mut ends, mut told) = (BinaryHeap::new(), false);
    each(move |rows, i| {
        let (time, latency) = (rows.time[i], rows.latency[i]);
        while ends.peek().is_some_and(|Reverse(end)| *end <= time) {
            ends.pop();
        }
        told |= latency != NONE;
        let outstanding = if told { ends.len() as i64 } else { NONE };
        if latency != NONE {
            ends.push(Reverse(time.saturating_add(latency)));
        }
        outstanding
    })
});

/// Nanoseconds from the completion that a request waited for to its submission: the last completion of its actor's
/// requests, if that was at most 1 s before, unless the trace says it itself; none for others, and where latencies are
/// not known. Source: "think time", MDH thesis section 2.6: what an application does between an answer and the next
/// request.
pub(crate) const THINK: Kind = Kind::new("think", Field::Think, "ns", "log2:1", |_| {
    let mut causes = Causes::new(WITHIN_NS);
    each(move |rows, i| match rows.think.get(i) {
        Some(&think) => think,
        None => causes.next(rows.time[i], rows.latency[i], rows.actor[i]).map_or(NONE, |cause| cause.think),
    })
});

/// Requests of its actor from the one whose completion it waited for to this one: 1 where every request waits for the one
/// before, 4 where four are kept in flight. That completion is the last one of the actor, as for `think`; none where
/// there is none. With `think` it tells the load without telling times (MDH thesis, sections 2.5 and 2.6).
pub(crate) const AFTER: Kind = Kind::new("after", Field::After, "request", "log2:2", |_| {
    let mut causes = Causes::new(WITHIN_NS);
    // Requests of each actor so far, and of the last rows their number among those of their actor.
    let mut counts: FxHashMap<u32, i64> = FxHashMap::default();
    let mut numbers: VecDeque<i64> = VecDeque::new();
    each(move |rows, i| {
        let (time, latency, actor) = (rows.time[i], rows.latency[i], rows.actor[i]);
        let back = match rows.after.get(i) {
            Some(&after) => after,
            None => causes.next(time, latency, actor).map_or(0, |cause| cause.after),
        };
        let count = counts.entry(actor).or_default();
        let number = *count;
        *count += 1;
        let cause = numbers.len().checked_sub(back as usize).filter(|_| back > 0);
        // A damaged trace may name a request of another actor.
        let after = cause.map_or(NONE, |at| (number - numbers[at]).max(1));
        numbers.push_back(number);
        if numbers.len() as u64 > MOST_BACK {
            numbers.pop_front();
        }
        after
    })
});
