//! Dependencies (MDH thesis, sections 2.5 and 2.6): which request waited for which, and how long its actor thought
//! before it asked.
//!
//! Sources do not say what depends on what. Taken is: a request depends on the completion of its actor that came last
//! before its submission, if that was not too long before; the time between is think time.

use crate::{Batch, NONE};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Most rows between a request and what it waits for; whoever follows dependencies has to remember so many.
pub const MOST_BACK: u64 = 1 << 20;

/// A completion longer before a submission than this releases nothing unless the caller says otherwise, ns.
pub const WITHIN_NS: i64 = 1_000_000_000;

/// What a request waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// Rows back to the request that completed: 1 is the one before.
    pub after: u32,
    /// From its completion to the submission, ns.
    pub think: i64,
}

/// The requests of an actor that may release others.
#[derive(Default)]
struct Actor {
    /// Completions that are later than the last submission seen, with their rows.
    ahead: BinaryHeap<Reverse<(i64, u64)>>,
    /// The last one before it.
    last: Option<(i64, u64)>,
}

/// Infers dependencies while requests pass by; it remembers what is under way only.
pub struct Causes {
    /// As given.
    pub within_ns: i64,
    row: u64,
    actors: FxHashMap<u32, Actor>,
    /// Requests so far whose completion is known.
    pub completed: u64,
    /// Requests so far that waited for another.
    pub dependent: u64,
}

impl Causes {
    /// `within_ns`: a completion longer before a submission releases nothing.
    pub fn new(within_ns: i64) -> Causes {
        Causes { within_ns, row: 0, actors: FxHashMap::default(), completed: 0, dependent: 0 }
    }

    /// Takes the next request, times in ns ([`NONE`] for a latency that is not known); what it waited for, if for
    /// anything.
    pub fn next(&mut self, time: i64, latency: i64, actor: u32) -> Option<Cause> {
        let actor = self.actors.entry(actor).or_default();
        while let Some(&Reverse(completed)) = actor.ahead.peek()
            && completed.0 <= time
        {
            actor.ahead.pop();
            actor.last = Some(completed);
        }
        let row = self.row;
        self.row += 1;
        if latency != NONE {
            actor.ahead.push(Reverse((time.saturating_add(latency), row)));
            self.completed += 1;
        }
        let (completed, cause) = actor.last?;
        let (after, think) = (row - cause, time - completed);
        if after > MOST_BACK || think > self.within_ns {
            return None;
        }
        self.dependent += 1;
        Some(Cause { after: after as u32, think })
    }

    /// Tells the requests of the next batch what they waited for, unless it says so itself.
    pub fn fill(&mut self, batch: &mut Batch) {
        if !batch.after.is_empty() {
            self.dependent += batch.after.iter().filter(|&&after| after != 0).count() as u64;
            return;
        }
        for i in 0..batch.len() {
            let cause = self.next(batch.time[i], batch.latency[i], batch.actor[i]);
            batch.after.push(cause.map_or(0, |cause| cause.after));
            batch.think.push(cause.map_or(NONE, |cause| cause.think));
        }
    }
}

/// Keeps dependencies right where rows are left out.
#[derive(Default)]
pub struct Renumber {
    /// The last rows: their number among those kept, if they were.
    rows: VecDeque<Option<u64>>,
    kept: u64,
}

impl Renumber {
    /// Takes the next row and whether it is kept; how many kept rows back that is which was `after` rows back, 0 if it
    /// was left out.
    pub fn next(&mut self, keep: bool, after: u32) -> u32 {
        let cause = self.rows.len().checked_sub(after as usize).filter(|_| after > 0);
        let cause = cause.and_then(|at| self.rows[at]);
        let back = cause.map_or(0, |cause| self.kept - cause);
        self.rows.push_back(keep.then_some(self.kept));
        if self.rows.len() as u64 > MOST_BACK {
            self.rows.pop_front();
        }
        self.kept += u64::from(keep);
        back as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_completion_of_an_actor_releases() {
        let mut causes = Causes::new(100);
        let mut next = |time, latency, actor| causes.next(time, latency, actor).map(|c| (c.after, c.think));
        assert_eq!(next(0, 10, 7), None);
        assert_eq!(next(5, 100, 7), None, "nothing has completed yet");
        assert_eq!(next(6, 1, 8), None);
        assert_eq!(next(30, 3, 7), Some((3, 20)));
        // Two at once wait for the same; what never completed releases nobody.
        assert_eq!(next(40, NONE, 7), Some((1, 7)));
        assert_eq!(next(40, 1, 7), Some((2, 7)));
        assert_eq!(next(60, 1, 8), Some((4, 53)));
        assert_eq!(next(200, 1, 7), Some((6, 95)), "the slow one");
        assert_eq!(next(302, 1, 7), None, "too long ago");
    }

    #[test]
    fn rows_left_out_release_nobody() {
        let mut renumber = Renumber::default();
        let rows = [(true, 0), (false, 1), (true, 2), (true, 2), (false, 1), (true, 2), (true, 6)];
        let back = rows.map(|(keep, after)| renumber.next(keep, after));
        assert_eq!(back, [0, 1, 1, 0, 1, 1, 4]);
    }
}
