//! The next request: decoded, placed and queued by a thread of its own, so that neither delays issue.

use crate::host::scheduling::in_background;
use crate::metrics::in_flight::Sweep;
use crate::request::{NEVER, Request};
use crate::source::placement::Placer;
use crate::source::plain::Plain;
use crate::{Error, Result};
use loadstone_plan::{Draw, Order, Pace, Source, Worker};
use loadstone_trace::{Batch, Requests};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Requests per block: all blocks on their way together stay well inside a second-level cache.
const BLOCK: usize = 1024;
/// Blocks fetched ahead.
const AHEAD: usize = 8;
/// Blocks given back together, fewer than there are: waking the fetching thread costs as much as
/// several requests, and what it reads and writes stays in the caches from one block to the next.
const GROUP: usize = 4;

type Message = Result<Vec<Request>>;

/// Most requests drawn before a run, all workers together: 1 GiB of them.
const MOST_FIRST: u64 = (1 << 30) / size_of::<Request>() as u64;
/// How many times as fast as requests are due they must be drawn, or they are drawn before the run.
const FASTER: i64 = 4;
/// Requests drawn before it is known how fast that goes.
const TRIED: u64 = 20_000;

/// What the fetching thread found out on its way.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Rows whose completion in the trace is not known.
    pub without_latency: u64,
    /// Rows with one.
    pub with_latency: u64,
    /// Requests of the trace in flight, per interval of the run's own timeline.
    pub flight: Vec<crate::metrics::in_flight::Level>,
    /// Whether these are not all.
    pub flight_cut: bool,
    /// Rows read before the run began.
    pub first: u64,
}

/// How far a source is read before the run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// As far as it is always read ahead.
    Little,
    /// Up to so many requests, or to what is due this long after the start (ns).
    Much {
        /// Number of requests.
        most: u64,
        /// Time, ns.
        due: i64,
        /// Only while reading is not [`FASTER`] than the requests are due.
        if_slow: bool,
    },
}

impl First {
    /// For a worker among `workers` that keep requests in memory, in a run that ends `end` ns after its start. A model
    /// that is drawn from at a closed pace always counts as slow: how fast its requests go out is not known.
    pub fn of(worker: &Worker, workers: usize, end: i64) -> First {
        let Source::Model { draw, .. } = &worker.source else { return First::Little };
        let open = matches!(worker.pace, Pace::Open { .. }) && worker.order != Order::Dependency;
        let room = loadstone_files::available_memory() / 4 / size_of::<Request>() as u64;
        let most = room.min(MOST_FIRST) / workers.max(1) as u64;
        let due = if open { end } else { i64::MAX };
        match draw {
            Draw::Meanwhile => First::Little,
            Draw::First => First::Much { most, due, if_slow: false },
            Draw::Auto => First::Much { most, due, if_slow: open },
        }
    }

    /// Whether to read on before the run. `read` requests took `took` ns; the last one is due at `due` ns.
    fn goes_on(self, read: u64, due: i64, took: i64) -> bool {
        match self {
            First::Little => false,
            First::Much { most, due: end, if_slow } => {
                let fast = read >= TRIED && took.saturating_mul(FASTER) <= due;
                read < most && due < end && !(if_slow && fast)
            }
        }
    }
}

/// What the fetching thread is told.
pub struct FetchOptions {
    /// Number of the worker, for messages.
    pub worker: usize,
    /// Stop after this many requests; 0: no limit.
    pub limit: u64,
    /// What needs latencies, so that a source whose first block has none at all is refused.
    pub needs_latency: Option<&'static str>,
    /// Follow the trace's own requests in flight on intervals of this length (ns) at this speed.
    pub sweep: Option<(i64, f64)>,
    /// How far it reads before the run begins.
    pub first: First,
}

/// A thread that fetches.
pub struct Fetcher {
    /// Ends with what it found out.
    pub handle: JoinHandle<Fetched>,
    /// Sends how many requests it has read, and hangs up once the run may begin.
    pub read: Receiver<u64>,
}

/// Where a feed has its blocks from.
enum BlockSource {
    /// A thread that decodes.
    Fetched {
        blocks: Receiver<Message>,
        spent: Sender<[Vec<Request>; GROUP]>,
        /// Blocks to be given back.
        used: Vec<Vec<Request>>,
    },
    /// Made on the spot.
    Plain(Box<Plain>),
}

/// The consumer's end of one worker's source.
pub struct Feed {
    from: BlockSource,
    block: Vec<Request>,
    at: usize,
    ended: bool,
    /// Why the source ended early.
    pub failure: Option<Error>,
}

/// What a feed has to offer.
pub enum Next<'a> {
    /// The next request; taken by [`Feed::advance`].
    Request(&'a Request),
    /// None decoded yet.
    NotYet,
    /// None before a completion.
    Blocked,
    /// None left.
    End,
}

/// Starts fetching from `source`.
///
/// # Errors
/// When its thread cannot be started, or what is read first fails.
pub fn fetch(
    mut source: Box<dyn Requests>,
    mut placer: Placer,
    options: FetchOptions,
) -> Result<(Feed, Fetcher)> {
    // Before the run nobody takes blocks: there is room for all of them, and the fetching thread counts.
    let (to_feed, blocks) = channel::<Message>();
    let (spent, returned) = channel::<[Vec<Request>; GROUP]>();
    let (read, reading) = channel();
    let run = move || {
        in_background();
        let mut fetched = Fetched::default();
        let mut sweep = options.sweep.map(|(interval, speed)| Sweep::new(interval, speed));
        let mut left = if options.limit == 0 { u64::MAX } else { options.limit };
        let mut batch = Batch::default();
        let mut needs = options.needs_latency;
        let mut free: Vec<Vec<Request>> = Vec::new();
        let mut on_their_way = 0;
        let mut before = (options.first != First::Little).then_some((read, Instant::now()));
        'fetching: while left > 0 {
            match source.next(&mut batch) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => {
                    let _ = to_feed.send(Err(e.into()));
                    break;
                }
            }
            if let Some(what) = needs.take()
                && batch.latency.iter().all(|l| *l == loadstone_trace::NONE)
                && batch.after.iter().all(|after| *after == 0)
            {
                let error = Error::Request { worker: options.worker, row: 0, what: what.into() };
                let _ = to_feed.send(Err(error));
                break;
            }
            let rows = batch.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            left -= rows as u64;
            for start in (0..rows).step_by(BLOCK) {
                while before.is_none() && on_their_way >= AHEAD {
                    let Ok(blocks) = returned.recv() else { break 'fetching };
                    on_their_way -= GROUP;
                    free.extend(blocks);
                    free.truncate(AHEAD);
                }
                let mut block = free.pop().unwrap_or_default();
                block.clear();
                block.reserve(BLOCK);
                let placed = placer.place(&batch, start..(start + BLOCK).min(rows), &mut block);
                for request in &block {
                    if request.completed == NEVER {
                        fetched.without_latency += 1;
                        continue;
                    }
                    fetched.with_latency += 1;
                    if let Some(sweep) = &mut sweep {
                        sweep.request(request.submitted, request.completed);
                    }
                }
                if let Some((read, begun)) = &before {
                    fetched.first += block.len() as u64;
                    let due = block.last().map_or(0, |request| request.due);
                    let took = begun.elapsed().as_nanos() as i64;
                    let heard = read.send(fetched.first).is_ok();
                    before = before.filter(|_| heard && options.first.goes_on(fetched.first, due, took));
                }
                on_their_way += 1;
                if to_feed.send(Ok(block)).is_err() {
                    break 'fetching;
                }
                if let Err(e) = placed {
                    let _ = to_feed.send(Err(e));
                    break 'fetching;
                }
            }
        }
        (fetched.flight, fetched.flight_cut) = sweep.map(Sweep::finish).unwrap_or_default();
        fetched
    };
    let handle = std::thread::Builder::new()
        .name("loadstone-fetch".into())
        .spawn(run)
        .map_err(|e| Error::thread("that reads requests ahead", e))?;
    let used = Vec::with_capacity(GROUP);
    let feed = Feed::new(BlockSource::Fetched { blocks, spent, used });
    Ok((feed, Fetcher { handle, read: reading }))
}

impl Feed {
    fn new(from: BlockSource) -> Feed {
        Feed { from, block: Vec::new(), at: 0, ended: false, failure: None }
    }

    /// Of requests that the thread makes that issues them.
    pub fn plain(plain: Box<Plain>) -> Feed {
        Feed::new(BlockSource::Plain(plain))
    }

    /// The next request; waits for it up to `patience`, so that stopping is noticed.
    #[inline(always)]
    pub fn peek(&mut self, patience: Duration) -> Next<'_> {
        if self.at < self.block.len() {
            // SAFETY: just compared.
            return Next::Request(unsafe { self.block.get_unchecked(self.at) });
        }
        self.refill(patience)
    }

    /// Takes the request [`Feed::peek`] showed.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.at += 1;
    }

    /// The next request, taken.
    #[inline(always)]
    pub fn take(&mut self, patience: Duration) -> Claimed {
        match self.peek(patience) {
            Next::Request(r) => {
                let r = *r;
                self.advance();
                Claimed::Request(r)
            }
            Next::NotYet | Next::Blocked => Claimed::NotYet,
            Next::End => Claimed::End,
        }
    }

    #[cold]
    fn refill(&mut self, patience: Duration) -> Next<'_> {
        if !self.ended {
            let (blocks, spent, used) = match &mut self.from {
                BlockSource::Fetched { blocks, spent, used } => (blocks, spent, used),
                BlockSource::Plain(plain) => {
                    plain.fill(&mut self.block);
                    self.at = 0;
                    self.ended = self.block.is_empty();
                    return self.block.first().map_or(Next::End, Next::Request);
                }
            };
            let message = if patience.is_zero() {
                match blocks.try_recv() {
                    Ok(m) => Some(m),
                    Err(TryRecvError::Empty) => return Next::NotYet,
                    Err(TryRecvError::Disconnected) => None,
                }
            } else {
                match blocks.recv_timeout(patience) {
                    Ok(m) => Some(m),
                    Err(RecvTimeoutError::Timeout) => return Next::NotYet,
                    Err(RecvTimeoutError::Disconnected) => None,
                }
            };
            match message {
                Some(Ok(block)) if block.is_empty() => return Next::NotYet,
                Some(Ok(block)) => {
                    let old = std::mem::replace(&mut self.block, block);
                    used.push(old);
                    if used.len() == GROUP {
                        let group = std::array::from_fn(|_| used.pop().unwrap_or_default());
                        let _ = spent.send(group);
                    }
                    self.at = 0;
                    return Next::Request(&self.block[0]);
                }
                Some(Err(e)) => self.failure = Some(e),
                None => {}
            }
            self.ended = true;
        }
        Next::End
    }

    fn block(&mut self, patience: Duration) -> Option<Option<Vec<Request>>> {
        match self.refill(patience) {
            Next::Request(_) => {
                self.at = 0;
                Some(Some(std::mem::take(&mut self.block)))
            }
            Next::NotYet | Next::Blocked => Some(None),
            Next::End => None,
        }
    }
}

/// A block several threads take from.
struct Common {
    requests: Vec<Request>,
    next: AtomicU64,
}

/// One source for the threads of a pool: a request is claimed by one atomic addition.
pub struct Pooled {
    feed: Mutex<(Feed, Arc<Common>)>,
}

/// One pool thread's view of the source.
pub struct Claim {
    pooled: Arc<Pooled>,
    common: Arc<Common>,
}

impl Pooled {
    /// Shares a feed.
    pub fn new(feed: Feed) -> Arc<Pooled> {
        let empty = Common { requests: Vec::new(), next: AtomicU64::new(0) };
        Arc::new(Pooled { feed: Mutex::new((feed, Arc::new(empty))) })
    }

    /// A view for one thread.
    pub fn claim(self: &Arc<Self>) -> Claim {
        let common = self.feed.lock().expect("no thread panics while it holds this").1.clone();
        Claim { pooled: self.clone(), common }
    }

    /// Why the source ended early.
    pub fn failure(&self) -> Option<Error> {
        self.feed.lock().ok().and_then(|mut f| f.0.failure.take())
    }
}

/// What a thread gets.
pub enum Claimed {
    /// A request of its own.
    Request(Request),
    /// None decoded yet.
    NotYet,
    /// None left.
    End,
}

impl Claim {
    /// The next request nobody else has; waits for it up to `patience`.
    #[inline]
    pub fn next(&mut self, patience: Duration) -> Claimed {
        loop {
            let at = self.common.next.fetch_add(1, Ordering::Relaxed) as usize;
            if let Some(request) = self.common.requests.get(at) {
                return Claimed::Request(*request);
            }
            let mut shared = self.pooled.feed.lock().expect("no thread panics while it holds this");
            if Arc::ptr_eq(&shared.1, &self.common) {
                match shared.0.block(patience) {
                    Some(Some(requests)) => shared.1 = Arc::new(Common { requests, next: AtomicU64::new(0) }),
                    Some(None) => return Claimed::NotYet,
                    None => return Claimed::End,
                }
            }
            self.common = shared.1.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_plan::Plan;
    use serde_json::json;

    fn plan(pace: serde_json::Value, draw: &str) -> Plan {
        let plan = json!({
            "version": 1,
            "targets": [{"id": "a", "kind": "null", "size": 1 << 20}],
            "artefacts": [{"id": "m", "kind": "model", "path": "m.mdh"}],
            "workers": [{
                "source": {"kind": "model", "artefact": "m", "draw": draw},
                "backend": "null",
                "pace": pace,
                "map": {"objects": [{"object": 0, "target": "a", "base": 0, "size": 1 << 20}], "offsets": "wrap"},
            }],
            "steps": [{"step": "run"}],
        });
        Plan::parse(&plan.to_string()).unwrap()
    }

    fn first(pace: serde_json::Value, draw: &str) -> First {
        First::of(&plan(pace, draw).workers[0], 1, 1_000_000_000)
    }

    #[test]
    fn what_is_drawn_four_times_as_fast_as_it_is_due_is_drawn_meanwhile() {
        let (open, closed) = (json!({"kind": "open", "speed": 1.0}), json!({"kind": "closed"}));
        let auto = first(open.clone(), "auto");
        // 20,000 requests, the last of them due after 40 ms.
        assert!(auto.goes_on(TRIED, 40_000_000, 11_000_000));
        assert!(!auto.goes_on(TRIED, 40_000_000, 10_000_000));
        assert!(auto.goes_on(TRIED - 1, 40_000_000, 1), "too few to tell");
        assert!(!auto.goes_on(TRIED, 1_000_000_000, i64::MAX), "no more are due in the run");
        assert!(!auto.goes_on(MOST_FIRST, 1, 1), "they fill the memory");
        assert!(first(open.clone(), "first").goes_on(TRIED, 40_000_000, 1));
        assert!(!first(open, "meanwhile").goes_on(0, 0, 0));
        assert!(
            first(closed.clone(), "auto").goes_on(TRIED, i64::MAX - 1, 1),
            "how fast it goes is not known"
        );
        assert!(!first(closed, "meanwhile").goes_on(0, 0, 0));
    }

    /// So many requests of a block each, from the last block to the first.
    struct Descending(u64);

    impl Requests for Descending {
        fn next(&mut self, batch: &mut Batch) -> loadstone_trace::Result<bool> {
            batch.clear();
            let rows = self.0.min(1000) as usize;
            batch.offset.extend((0..rows as u64).map(|row| ((self.0 - row) * 512) as i64));
            batch.size.resize(rows, 512);
            batch.latency.resize(rows, loadstone_trace::NONE);
            batch.time.resize(rows, 0);
            batch.op.resize(rows, 0);
            batch.object.resize(rows, 0);
            batch.flags.resize(rows, 0);
            batch.actor.resize(rows, 0);
            self.0 -= rows as u64;
            Ok(!batch.is_empty())
        }
    }

    #[test]
    fn what_does_not_fit_before_the_run_follows_in_it() {
        let plan = plan(json!({"kind": "closed"}), "first");
        for most in [0, 1, 700, 50_000, u64::MAX] {
            let options = FetchOptions {
                worker: 0,
                limit: 40_500,
                needs_latency: None,
                sweep: None,
                first: First::Much { most, due: i64::MAX, if_slow: false },
            };
            let placer = Placer::new(&plan, 0).unwrap();
            let (mut feed, fetcher) = fetch(Box::new(Descending(60_000)), placer, options).unwrap();
            let read = fetcher.read.iter().last().unwrap();
            assert!(
                read >= most.min(40_500) && read <= most.saturating_add(1024).min(40_500),
                "{read} of {most}"
            );
            let mut taken = 0;
            loop {
                match feed.take(Duration::from_secs(5)) {
                    Claimed::Request(request) => {
                        assert_eq!(request.offset, (60_000 - taken) * 512 % (1 << 20));
                        taken += 1;
                    }
                    Claimed::NotYet => panic!("nothing came"),
                    Claimed::End => break,
                }
            }
            assert_eq!(taken, 40_500);
            assert_eq!(fetcher.handle.join().unwrap().first, read);
        }
    }
}
