//! Dependencies (MDH thesis, sections 2.5 and 2.6): a request goes out a think time after that has completed again
//! what it waited for in the trace.
//!
//! Traces do not say what depends on what. Taken is: a request depends on the completion of its actor that came last
//! before it was submitted, if that was not too long before; the time between is think time. What depends on nothing is
//! independent and goes out at a time of its own. Requests are read in the order of the trace and only look back, so none
//! waits for one that was not read.

use crate::request::{NEVER, Request};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Requests read ahead at most: so many may wait at once.
const WINDOW: usize = 1 << 16;

/// A due time that means: as soon as there is room.
const SOON: i64 = i64::MIN;

/// No request.
const NOBODY: u32 = u32::MAX;

/// How dependencies are taken.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Think times are divided by this; 0: there are none.
    pub think: f64,
    /// A completion longer before a submission releases nothing, ns.
    pub within_ns: i64,
    /// Independent requests go out as soon as there is room, not at their times.
    pub at_once: bool,
}

/// A request from being read to being needed no more.
struct Node {
    request: Request,
    /// Time from what releases it to its submission in the trace, ns.
    think: i64,
    /// When it completed again, ns from the start of the run.
    done: Option<i64>,
    /// The first request that waits for it, and the next one that waits for the same.
    first: u32,
    next: u32,
    /// Requests that are not read yet may depend on it.
    needed: bool,
}

/// The requests of an actor that may release others.
#[derive(Default)]
struct Actor {
    /// Completions in the trace that are later than the last submission read.
    ahead: BinaryHeap<Reverse<(i64, u32)>>,
    /// The last one before it.
    last: Option<(i64, u32)>,
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
    settings: Settings,
    nodes: Vec<Node>,
    free: Vec<u32>,
    actors: HashMap<u32, Actor>,
    /// By due time, then by the order of the trace.
    ready: BinaryHeap<Reverse<(i64, u64, u32)>>,
    /// Requests read and not issued.
    waiting: usize,
}

impl Graph {
    /// Without requests.
    pub fn new(settings: Settings) -> Graph {
        Graph {
            settings,
            nodes: Vec::new(),
            free: Vec::new(),
            actors: HashMap::new(),
            ready: BinaryHeap::new(),
            waiting: 0,
        }
    }

    /// Whether more requests should be read.
    pub fn has_room(&self) -> bool {
        self.waiting < WINDOW
    }

    /// Takes the next request of the trace.
    pub fn add(&mut self, request: Request) {
        self.waiting += 1;
        let last = self.look_back(request.actor, request.submitted);
        let within = |completed: i64| request.submitted - completed <= self.settings.within_ns;
        let cause = last.filter(|(completed, _)| within(*completed));
        let node = self.node(request);
        match cause {
            Some((completed, cause)) => {
                self.nodes[node as usize].think = request.submitted - completed;
                match self.nodes[cause as usize].done {
                    Some(done) => self.release(node, done),
                    None => {
                        self.nodes[node as usize].next = self.nodes[cause as usize].first;
                        self.nodes[cause as usize].first = node;
                    }
                }
            }
            None => self.make_ready(node, if self.settings.at_once { SOON } else { request.due }),
        }
        if request.completed != NEVER {
            self.nodes[node as usize].needed = true;
            self.actors.entry(request.actor).or_default().ahead.push(Reverse((request.completed, node)));
        }
    }

    /// An actor's last completion up to a time in the trace, with the request it is of.
    fn look_back(&mut self, actor: u32, submitted: i64) -> Option<(i64, u32)> {
        let actor = self.actors.entry(actor).or_default();
        while let Some(&Reverse((completed, node))) = actor.ahead.peek()
            && completed <= submitted
        {
            actor.ahead.pop();
            if let Some((_, old)) = actor.last.replace((completed, node)) {
                let old_node = &mut self.nodes[old as usize];
                old_node.needed = false;
                if old_node.done.is_some() {
                    self.free.push(old);
                }
            }
        }
        actor.last
    }

    fn node(&mut self, mut request: Request) -> u32 {
        let at = self.free.pop().unwrap_or(self.nodes.len() as u32);
        request.tag = at;
        let node = Node { request, think: 0, done: None, first: NOBODY, next: NOBODY, needed: false };
        match self.nodes.get_mut(at as usize) {
            Some(free) => *free = node,
            None => self.nodes.push(node),
        }
        at
    }

    /// What a request waited for is done.
    fn release(&mut self, node: u32, done: i64) {
        let think = self.nodes[node as usize].think as f64;
        let think = if self.settings.think > 0.0 { (think / self.settings.think) as i64 } else { 0 };
        self.make_ready(node, done.saturating_add(think));
    }

    fn make_ready(&mut self, node: u32, due: i64) {
        // Of those due together the one that comes first in the trace goes first.
        let order = self.nodes[node as usize].request.submitted as u64;
        self.nodes[node as usize].request.due = due;
        self.ready.push(Reverse((due, order, node)));
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
        node.done = Some(now);
        let mut waiter = std::mem::replace(&mut node.first, NOBODY);
        if !node.needed {
            self.free.push(request.tag);
        }
        while waiter != NOBODY {
            let next = std::mem::replace(&mut self.nodes[waiter as usize].next, NOBODY);
            self.release(waiter, now);
            waiter = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(submitted: i64, latency: i64, actor: u32) -> Request {
        Request {
            due: submitted,
            offset: 0,
            size: 1,
            submitted,
            completed: submitted + latency,
            flags: 0,
            actor,
            tag: 0,
            target: 0,
            op: 0,
            dsync: false,
            object: 0,
            other: 0,
        }
    }

    fn graph(think: f64, within_ns: i64, at_once: bool) -> Graph {
        Graph::new(Settings { think, within_ns, at_once })
    }

    #[test]
    fn a_chain_goes_as_fast_as_it_is_answered() {
        let mut graph = graph(2.0, 1000, false);
        // 10 ns each, thinking 20 ns, by one actor; another one asks meanwhile.
        for r in [request(0, 10, 0), request(5, 100, 1), request(30, 10, 0), request(60, 10, 0)] {
            graph.add(r);
        }
        let take = |graph: &mut Graph, now: i64| {
            let next = *graph.peek(now).unwrap();
            graph.issue();
            (next.submitted, next.due, next)
        };
        let (submitted, due, first) = take(&mut graph, 0);
        assert_eq!((submitted, due), (0, 0));
        assert_eq!(take(&mut graph, 0).0, 5);
        assert_eq!(graph.offer(), Offer::Blocked);
        graph.done(&first, 3);
        // Half the think time after the answer.
        let (submitted, due, second) = take(&mut graph, 3);
        assert_eq!((submitted, due), (30, 13));
        graph.done(&second, 14);
        assert_eq!((graph.offer(), take(&mut graph, 14).0), (Offer::At(24), 60));
        assert_eq!(graph.offer(), Offer::Nothing);
    }

    #[test]
    fn one_answer_may_release_several_and_old_ones_none() {
        let mut graph = graph(0.0, 50, true);
        for r in [request(0, 10, 0), request(10, 5, 0), request(12, 9, 0), request(500, 1, 0)] {
            graph.add(r);
        }
        let first = *graph.peek(7).unwrap();
        assert_eq!((first.submitted, first.due), (0, 7));
        graph.issue();
        // Long after anything: independent, so it goes out at once.
        assert_eq!(graph.peek(8).unwrap().submitted, 500);
        graph.issue();
        assert_eq!(graph.offer(), Offer::Blocked);
        graph.done(&first, 9);
        let due: Vec<(i64, i64)> = (0..2)
            .map(|_| {
                let next = *graph.peek(9).unwrap();
                graph.issue();
                (next.submitted, next.due)
            })
            .collect();
        assert_eq!(due, [(10, 9), (12, 9)]);
    }

    proptest! {
        #[test]
        fn all_go_out_and_none_before_what_it_waited_for(
            rows in proptest::collection::vec((0i64..40, 1i64..100, 0u32..3), 1..300),
            depth in 1usize..8, within in 0i64..200, think in 0u32..3,
        ) {
            let mut graph = graph(f64::from(think), within, true);
            let mut time = 0;
            let requests: Vec<Request> = rows
                .iter()
                .map(|&(gap, latency, actor)| {
                    time += gap;
                    request(time, latency, actor)
                })
                .collect();
            let (mut out, mut finished) = (Vec::<Request>::new(), Vec::<(Request, i64)>::new());
            let (mut next, mut now, mut issued) = (0, 0, 0);
            while finished.len() < requests.len() {
                now += 1;
                if next < requests.len() && now % 3 != 0 {
                    graph.add(requests[next]);
                    next += 1;
                }
                while out.len() < depth && let Some(request) = graph.peek(now).copied() {
                    if request.due > now {
                        break;
                    }
                    // All that its cause allows has happened: the last completion of its actor that is near enough.
                    let before = requests.iter().filter(|r| r.actor == request.actor && r.completed <= request.submitted
                        && r.submitted <= request.submitted);
                    let cause = before.map(|r| r.completed).max().filter(|c| request.submitted - c <= within);
                    if let Some(cause) = cause {
                        prop_assert!(finished.iter().any(|(r, at)| r.actor == request.actor && r.completed == cause && *at <= now));
                    }
                    graph.issue();
                    issued += 1;
                    out.push(request);
                }
                if !out.is_empty() && now % 2 == 0 {
                    let request = out.remove(now as usize % out.len());
                    graph.done(&request, now);
                    finished.push((request, now));
                }
                prop_assert!(now < 100_000, "{} of {} went out", issued, requests.len());
            }
            prop_assert_eq!(graph.offer(), Offer::Nothing);
            // Nothing is kept but what later requests might depend on.
            prop_assert!(graph.nodes.len() - graph.free.len() <= requests.len());
        }
    }
}
