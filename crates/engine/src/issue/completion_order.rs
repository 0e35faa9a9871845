//! Completion order (MDH thesis, section 2.5): a request goes out only when everything that had
//! completed before its submission in the trace has completed again.
//!
//! Requests go out in the order of the trace, so what has not completed yet and comes earlier is in
//! flight: it is enough to know the smallest trace completion time of the requests in flight.

use crate::request::{NEVER, Request};
use crate::source::fetch::{Claim, Claimed};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};

/// The trace completion times of the requests in flight.
#[derive(Default)]
pub struct Gate {
    out: BinaryHeap<Reverse<i64>>,
    /// Completed, but not yet at the top of `out`.
    gone: BinaryHeap<Reverse<i64>>,
}

impl Gate {
    /// Whether a request submitted at this time in the trace may go out.
    #[inline]
    pub fn admits(&mut self, submitted: i64) -> bool {
        // The same time in both heaps cancels; which request had it does not matter.
        while let (Some(a), Some(b)) = (self.out.peek(), self.gone.peek())
            && a == b
        {
            self.out.pop();
            self.gone.pop();
        }
        self.out.peek().is_none_or(|Reverse(earliest)| *earliest > submitted)
    }

    /// A request goes out; one whose completion is not known holds nobody back.
    #[inline]
    pub fn issue(&mut self, request: &Request) {
        if request.completed != NEVER {
            self.out.push(Reverse(request.completed));
        }
    }

    /// A request has completed again.
    #[inline]
    pub fn done(&mut self, request: &Request) {
        if request.completed != NEVER {
            self.gone.push(Reverse(request.completed));
        }
    }
}

/// A pool's source in completion order.
pub struct Ordered {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    claim: Claim,
    head: Option<Request>,
    gate: Gate,
}

impl Ordered {
    /// Orders what comes from `claim`, which nobody else may use.
    pub fn new(claim: Claim) -> Ordered {
        Ordered {
            state: Mutex::new(State { claim, head: None, gate: Gate::default() }),
            changed: Condvar::new(),
        }
    }

    /// The next request once it may go out.
    pub fn take(&self, stop: &AtomicBool) -> Claimed {
        let mut state = self.state.lock().expect("no thread panics while it holds this");
        loop {
            let head = match state.head.take() {
                Some(head) => head,
                None => match state.claim.next(crate::issue::context::PATIENCE) {
                    Claimed::Request(r) => r,
                    other => return other,
                },
            };
            if state.gate.admits(head.submitted) {
                state.gate.issue(&head);
                return Claimed::Request(head);
            }
            state.head = Some(head);
            if stop.load(Relaxed) {
                return Claimed::NotYet;
            }
            let waited = self.changed.wait_timeout(state, crate::issue::context::PATIENCE);
            let (woken, patience) = waited.expect("no thread panics while it holds this");
            state = woken;
            // What it waits for may never go out: whoever took that has seen the end of the run.
            if patience.timed_out() {
                return Claimed::NotYet;
            }
        }
    }

    /// The next request, whatever it waits for.
    pub fn rest(&self) -> Claimed {
        let mut state = self.state.lock().expect("no thread panics while it holds this");
        match state.head.take() {
            Some(head) => Claimed::Request(head),
            None => state.claim.next(crate::issue::context::PATIENCE),
        }
    }

    /// A request has completed.
    pub fn done(&self, request: &Request) {
        self.state.lock().expect("no thread panics while it holds this").gate.done(request);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(submitted: i64, completed: i64) -> Request {
        Request { size: 1, submitted, completed, ..Request::default() }
    }

    #[test]
    fn holds_back_only_what_came_after_a_completion() {
        let mut gate = Gate::default();
        let (a, b, c) = (request(0, 10), request(5, 20), request(6, NEVER));
        for r in [&a, &b, &c] {
            assert!(gate.admits(r.submitted));
            gate.issue(r);
        }
        assert!(gate.admits(9));
        assert!(!gate.admits(10));
        gate.done(&b);
        assert!(!gate.admits(10), "a is still out");
        gate.done(&a);
        gate.done(&c);
        assert!(gate.admits(1000));
    }
}
