//! Dependencies (MDH thesis, sections 2.5 and 2.6): a request goes out a think time after that has completed again
//! what it waited for in the trace.
//!
//! A request says how many rows back the one is that it waits for (`loadstone_trace::depend`). What waits for nothing is
//! independent and goes out at a time of its own. Requests are read in order and only look back, so none waits for one
//! that was not read. Requests that go to names also wait for their locks at these (`path_locks.rs`).

use crate::issue::path_locks::PathLocks;
use crate::request::{FAILED, Request};
use loadstone_trace::Op;
use loadstone_trace::claims::Call;
use loadstone_trace::depend::MOST_BACK;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Requests read ahead at most: so many may wait at once.
const WINDOW: usize = 1 << 16;

/// A due time that means: as soon as there is room.
const SOON: i64 = i64::MIN;

/// No request.
const NOBODY: u32 = u32::MAX;

/// A request from being read to being completed.
struct Node {
    request: Request,
    row: u64,
    /// The first request that waits for it, and the next one that waits for the same.
    first: u32,
    next: u32,
    /// For how much it still waits: the request it depends on, and locks of paths.
    waits: u32,
}

/// What became of a row that others may wait for.
#[derive(Clone, Copy)]
enum Row {
    /// It is this node.
    Under(u32),
    /// It completed again, ns from the start of the run.
    Done(i64),
}

/// What the graph has to offer.
#[derive(Debug, PartialEq, Eq)]
pub enum Offer {
    /// This request is next; it is due then, ns from the start of the run.
    At(i64),
    /// A completion must come first.
    Blocked,
    /// Nothing waits.
    Nothing,
}

/// Requests that were read, and what they wait for.
pub struct Graph {
    /// Independent requests go out as soon as there is room, not at their times.
    at_once: bool,
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// The last rows read, [`MOST_BACK`] at most, and how many there were before them.
    rows: VecDeque<Row>,
    forgotten: u64,
    /// By due time, then by the order of the trace.
    ready: BinaryHeap<Reverse<(i64, u64, u32)>>,
    /// Requests read and not issued.
    waiting: usize,
    /// PathLocks at names, where requests go to these, and who just got one.
    locks: Option<PathLocks>,
    released: Vec<u32>,
}

impl Graph {
    /// Without requests; `at_once`: independent ones go out as soon as there is room, not at their times. All take
    /// their `locks`, if there are any.
    pub fn new(at_once: bool, locks: Option<PathLocks>) -> Graph {
        Graph {
            at_once,
            nodes: Vec::new(),
            free: Vec::new(),
            rows: VecDeque::new(),
            forgotten: 0,
            ready: BinaryHeap::new(),
            waiting: 0,
            locks,
            released: Vec::new(),
        }
    }

    /// Whether more requests should be read.
    pub fn has_room(&self) -> bool {
        self.waiting < WINDOW
    }

    /// Takes the next request of the source: its `tag` says how many rows back the one is that it waits for, and its
    /// `due` then how long after that.
    pub fn add(&mut self, request: Request) {
        self.waiting += 1;
        let back = request.tag as usize;
        let cause = if back == 0 { None } else { self.rows.len().checked_sub(back).map(|at| self.rows[at]) };
        let node = self.node(request);
        let locks = self.locks.as_mut().map_or(0, |locks| locks.take(node, &call(&request)));
        self.nodes[node as usize].waits = locks + 1;
        match cause {
            Some(Row::Done(done)) => self.release(node, done),
            Some(Row::Under(cause)) => {
                let first = std::mem::replace(&mut self.nodes[cause as usize].first, node);
                self.nodes[node as usize].next = first;
            }
            None if self.at_once => self.waited(node, SOON),
            None => self.waited(node, request.due),
        }
        self.rows.push_back(Row::Under(node));
        if self.rows.len() as u64 > MOST_BACK {
            self.rows.pop_front();
            self.forgotten += 1;
        }
    }

    fn node(&mut self, mut request: Request) -> u32 {
        let at = self.free.pop().unwrap_or(self.nodes.len() as u32);
        request.tag = at;
        let row = self.forgotten + self.rows.len() as u64;
        let node = Node { request, row, first: NOBODY, next: NOBODY, waits: 0 };
        match self.nodes.get_mut(at as usize) {
            Some(free) => *free = node,
            None => self.nodes.push(node),
        }
        at
    }

    /// What a request waited for is done.
    fn release(&mut self, node: u32, done: i64) {
        let think = self.nodes[node as usize].request.due;
        self.waited(node, done.saturating_add(think));
    }

    /// A request waits for one less, and is due then.
    fn waited(&mut self, node: u32, due: i64) {
        let Node { request, row, waits, .. } = &mut self.nodes[node as usize];
        (request.due, *waits) = (due, *waits - 1);
        // Of those due together the one that comes first in the trace goes first.
        if *waits == 0 {
            self.ready.push(Reverse((due, *row, node)));
        }
    }

    /// What comes next.
    pub fn offer(&self) -> Offer {
        match self.ready.peek() {
            Some(Reverse((due, ..))) => Offer::At(*due),
            None if self.waiting > 0 => Offer::Blocked,
            None => Offer::Nothing,
        }
    }

    /// The request that is next at this time, which goes out as soon as it is due.
    pub fn peek(&mut self, now: i64) -> Option<&Request> {
        let Reverse((due, _, node)) = *self.ready.peek()?;
        let request = &mut self.nodes[node as usize].request;
        if due == SOON {
            request.due = now;
        }
        Some(request)
    }

    /// Takes what [`Graph::peek`] showed.
    pub fn issue(&mut self) {
        if self.ready.pop().is_some() {
            self.waiting -= 1;
        }
    }

    /// A request has completed again, `now` ns from the start of the run.
    pub fn done(&mut self, request: &Request, now: i64) {
        let node = &mut self.nodes[request.tag as usize];
        let row = node.row.checked_sub(self.forgotten).and_then(|at| self.rows.get_mut(at as usize));
        if let Some(row) = row {
            *row = Row::Done(now);
        }
        let mut waiter = std::mem::replace(&mut node.first, NOBODY);
        self.free.push(request.tag);
        while waiter != NOBODY {
            let next = std::mem::replace(&mut self.nodes[waiter as usize].next, NOBODY);
            self.release(waiter, now);
            waiter = next;
        }
        if let Some(locks) = &mut self.locks {
            let mut released = std::mem::take(&mut self.released);
            locks.done(request.tag, &mut released);
            for node in released.drain(..) {
                // Only for the last that it waits for is it due when that is done.
                let Node { request, waits, .. } = &self.nodes[node as usize];
                let due = if *waits > 1 || request.due == SOON { request.due } else { request.due.max(now) };
                self.waited(node, due);
            }
            self.released = released;
        }
    }
}

/// What a request does to names.
fn call(request: &Request) -> Call {
    Call {
        op: Op::from_code(request.op).unwrap_or(Op::Stat),
        failed: request.flags & FAILED != 0,
        actor: request.actor,
        object: request.object,
        other: request.other,
        end: request.offset.saturating_add(request.size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A request known by its offset that waits for one so many rows back, `due` after it or at all.
    fn request(offset: u64, after: u32, due: i64) -> Request {
        Request { due, offset, size: 1, tag: after, ..Request::default() }
    }

    fn take(graph: &mut Graph, now: i64) -> Request {
        let next = *graph.peek(now).unwrap();
        graph.issue();
        next
    }

    #[test]
    fn a_chain_goes_as_fast_as_it_is_answered() {
        let mut graph = Graph::new(false, None);
        for r in [request(0, 0, 0), request(1, 0, 5), request(2, 2, 10), request(3, 1, 10)] {
            graph.add(r);
        }
        let first = take(&mut graph, 0);
        assert_eq!((first.offset, first.due), (0, 0));
        assert_eq!((graph.offer(), take(&mut graph, 0).offset), (Offer::At(5), 1));
        assert_eq!(graph.offer(), Offer::Blocked);
        graph.done(&first, 3);
        let second = take(&mut graph, 3);
        assert_eq!((second.offset, second.due), (2, 13));
        graph.done(&second, 14);
        assert_eq!((graph.offer(), take(&mut graph, 14).offset), (Offer::At(24), 3));
        assert_eq!(graph.offer(), Offer::Nothing);
        // One that is read after its cause was answered.
        graph.add(request(4, 2, 1));
        assert_eq!(graph.offer(), Offer::At(15));
    }

    #[test]
    fn one_answer_may_release_several_and_the_independent_need_none() {
        let mut graph = Graph::new(true, None);
        for r in
            [request(0, 0, 0), request(1, 1, 0), request(2, 2, 0), request(3, 0, 500), request(4, 9, 500)]
        {
            graph.add(r);
        }
        let first = take(&mut graph, 7);
        assert_eq!((first.offset, first.due), (0, 7));
        // What waits for rows that never were is independent, too.
        assert_eq!((take(&mut graph, 8).offset, take(&mut graph, 8).offset), (3, 4));
        assert_eq!(graph.offer(), Offer::Blocked);
        graph.done(&first, 9);
        let due = [take(&mut graph, 9), take(&mut graph, 9)].map(|r| (r.offset, r.due));
        assert_eq!(due, [(1, 9), (2, 9)]);
    }

    proptest! {
        #[test]
        fn all_go_out_and_none_before_what_it_waited_for(
            rows in proptest::collection::vec((0u32..40, 0i64..100), 1..300), depth in 1usize..8,
        ) {
            let mut graph = Graph::new(true, None);
            let requests: Vec<Request> =
                (0..).zip(&rows).map(|(i, &(after, think))| request(i, after, think)).collect();
            let (mut out, mut finished) = (Vec::<Request>::new(), vec![None; rows.len()]);
            let (mut next, mut now) = (0, 0);
            while finished.iter().any(Option::is_none) {
                now += 1;
                if next < requests.len() && now % 3 != 0 {
                    graph.add(requests[next]);
                    next += 1;
                }
                while out.len() < depth && let Some(request) = graph.peek(now).copied() {
                    if request.due > now {
                        break;
                    }
                    let (after, think) = rows[request.offset as usize];
                    let cause = (request.offset as usize).checked_sub(after as usize).filter(|_| after > 0);
                    if let Some(cause) = cause {
                        prop_assert!(finished[cause].is_some_and(|at: i64| at + think <= now));
                    }
                    graph.issue();
                    out.push(request);
                }
                if !out.is_empty() && now % 2 == 0 {
                    let request = out.remove(now as usize % out.len());
                    graph.done(&request, now);
                    finished[request.offset as usize] = Some(now);
                }
                prop_assert!(now < 100_000, "{:?}", finished);
            }
            prop_assert_eq!(graph.offer(), Offer::Nothing);
            prop_assert_eq!(graph.nodes.len(), graph.free.len());
        }
    }
}
