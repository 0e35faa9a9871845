//! Sources in order of dependencies: one for a loop that has it to itself, one for a pool of threads.

use crate::clock::monotonic;
use crate::issue::context::{PATIENCE, SLICE};
use crate::issue::dependency_graph::{Graph, Offer};
use crate::issue::path_locks::PathLocks;
use crate::request::Request;
use crate::source::fetch::{Claim, Claimed, Feed, Next};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time before it is due at which a request is handed out, ns: its thread waits for the rest of it more exactly than it
/// can for a lock.
const EARLY: i64 = 30_000;

/// A feed whose requests wait for what they depend on.
pub struct Depending {
    graph: Graph,
    ended: bool,
}

impl Depending {
    /// Without requests yet; `at_once` as for [`Graph::new`].
    pub fn new(at_once: bool) -> Depending {
        Depending { graph: Graph::new(at_once, None), ended: false }
    }

    /// Reads ahead, waiting up to `patience` where nothing else is to be done.
    fn read(&mut self, feed: &mut Feed, patience: Duration) {
        let mut patience = if self.graph.offer() == Offer::Nothing { patience } else { Duration::ZERO };
        while !self.ended && self.graph.has_room() {
            match feed.peek(patience) {
                Next::Request(request) => self.graph.add(*request),
                Next::NotYet => break,
                Next::Blocked => break,
                Next::End => {
                    self.ended = true;
                    break;
                }
            }
            feed.advance();
            patience = Duration::ZERO;
        }
    }

    /// What goes out next, `now` ns from the start of the run; taken by [`Depending::advance`].
    pub fn peek(&mut self, feed: &mut Feed, patience: Duration, now: i64) -> Next<'_> {
        self.read(feed, patience);
        match self.graph.offer() {
            Offer::Blocked => Next::Blocked,
            Offer::Nothing if self.ended => Next::End,
            Offer::Nothing => Next::NotYet,
            Offer::At(_) => self.graph.peek(now).map_or(Next::NotYet, Next::Request),
        }
    }

    /// Takes the request that [`Depending::peek`] showed.
    pub fn advance(&mut self) {
        self.graph.issue();
    }

    /// A request has completed again, `now` ns from the start of the run.
    pub fn done(&mut self, request: &Request, now: i64) {
        self.graph.done(request, now);
    }
}

struct State {
    claim: Claim,
    graph: Graph,
    ended: bool,
}

/// A pool's source in order of dependencies.
pub struct Depended {
    state: Mutex<State>,
    changed: Condvar,
}

impl Depended {
    /// Orders what comes from `claim`, which nobody else may use; the others as for [`Graph::new`].
    pub fn new(claim: Claim, at_once: bool, locks: Option<PathLocks>) -> Depended {
        let state = State { claim, graph: Graph::new(at_once, locks), ended: false };
        Depended { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request, shortly before it is due; `start` is that of the run, `deadline` its end, both ns. A thread
    /// that waits takes what becomes due sooner meanwhile.
    pub fn take(&self, stop: &AtomicBool, start: i64, deadline: i64) -> Claimed {
        let mut state = self.lock();
        loop {
            while !state.ended && state.graph.has_room() {
                let alone = state.graph.offer() == Offer::Nothing;
                match state.claim.next(if alone { PATIENCE } else { Duration::ZERO }) {
                    Claimed::Request(request) => state.graph.add(request),
                    Claimed::NotYet => break,
                    Claimed::End => state.ended = true,
                }
            }
            let now = monotonic() - start;
            let patience = match state.graph.offer() {
                Offer::Nothing if state.ended => {
                    self.changed.notify_all();
                    return Claimed::End;
                }
                Offer::At(due) if due.saturating_sub(EARLY) <= now => {
                    let request = state.graph.peek(now).copied();
                    state.graph.issue();
                    // Others may have slept for want of this one's successor.
                    self.changed.notify_one();
                    return request.map_or(Claimed::NotYet, Claimed::Request);
                }
                Offer::At(due) => (due - EARLY - now).min(SLICE),
                Offer::Nothing => return Claimed::NotYet,
                Offer::Blocked => SLICE,
            };
            // After the end of the run nothing becomes due, and what others wait for may never go out.
            if stop.load(Relaxed) || start + now >= deadline {
                return Claimed::NotYet;
            }
            let patience = Duration::from_nanos(patience.min(deadline - start - now) as u64);
            state = self.changed.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
            if stop.load(Relaxed) {
                return Claimed::NotYet;
            }
        }
    }

    /// A request has completed again, `now` ns from the start of the run.
    pub fn done(&self, request: &Request, now: i64) {
        self.lock().graph.done(request, now);
        self.changed.notify_all();
    }
}
