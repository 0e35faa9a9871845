//! The next request: decoded, placed and queued by a thread of its own, so that neither delays issue.

use crate::host::scheduling::in_background;
use crate::metrics::in_flight::Sweep;
use crate::request::{NEVER, Request};
use crate::source::placement::Placer;
use crate::source::plain::Plain;
use crate::{Error, Result};
use loadstone_trace::{Batch, Requests};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Requests per block: all blocks on their way together stay well inside a second-level cache.
const BLOCK: usize = 1024;
/// Blocks fetched ahead.
const AHEAD: usize = 8;
/// Blocks given back together, fewer than there are: waking the fetching thread costs as much as
/// several requests, and what it reads and writes stays in the caches from one block to the next.
const GROUP: usize = 4;

type Message = Result<Vec<Request>>;

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
}

/// Where a feed has its blocks from.
enum BlockSource {
    /// A thread that decodes.
    Fetched {
        blocks: Receiver<Message>,
        spent: SyncSender<[Vec<Request>; GROUP]>,
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
pub fn fetch(
    mut source: Box<dyn Requests>,
    mut placer: Placer,
    options: FetchOptions,
) -> Result<(Feed, JoinHandle<Fetched>)> {
    let (to_feed, blocks) = sync_channel::<Message>(AHEAD);
    let (spent, returned) = sync_channel::<[Vec<Request>; GROUP]>(AHEAD);
    let run = move || {
        in_background();
        let mut fetched = Fetched::default();
        let mut sweep = options.sweep.map(|(interval, speed)| Sweep::new(interval, speed));
        let mut left = if options.limit == 0 { u64::MAX } else { options.limit };
        let mut batch = Batch::default();
        let mut needs = options.needs_latency;
        let mut free: Vec<Vec<Request>> = vec![Vec::new(); AHEAD];
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
                if free.is_empty() {
                    match returned.recv() {
                        Ok(blocks) => free.extend(blocks),
                        Err(_) => break 'fetching,
                    }
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
    Ok((Feed::new(BlockSource::Fetched { blocks, spent, used }), handle))
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
