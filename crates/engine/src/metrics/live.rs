//! What can be seen while a run is going: counters by kind of request, which threads add to when they fold.

use crate::metrics::histogram::{self, BUCKETS, Sparse};
use crate::workload_vm::{Code, Label, OTHER};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Counters of one kind of request; each is exact, together they may be a moment apart.
struct Kind {
    op: u8,
    /// Position of a step's name plus one; 0: none.
    name: u16,
    done: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    /// Made when the first latency is counted: most ops of a trace never occur.
    latency: OnceLock<Box<[AtomicU64]>>,
}

impl Kind {
    fn new(op: u8, name: u16) -> Kind {
        let zero = || AtomicU64::new(0);
        Kind { op, name, done: zero(), bytes: zero(), errors: zero(), latency: OnceLock::new() }
    }

    fn counts(&self) -> Counts {
        let buckets = self.latency.get().map_or(&[][..], |b| b);
        let read = buckets.iter().map(|n| n.load(Relaxed)).enumerate();
        Counts {
            requests: self.done.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            errors: self.errors.load(Relaxed),
            latency: read.filter(|b| b.1 > 0).map(|(b, n)| (b as u16, n)).collect(),
        }
    }
}

/// Sums over all requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Requests whose latency was counted.
    pub timed: u64,
    /// Sum of their latencies, ns.
    pub latency: f64,
}

/// The counters of a run, shared by its threads: each adds what is new a few times per second.
pub struct Board {
    kinds: Vec<Kind>,
    names: Vec<String>,
}

impl Board {
    /// Of requests: a kind for each op code.
    pub fn of_ops() -> Board {
        Board { kinds: (0..=u8::MAX).map(|op| Kind::new(op, 0)).collect(), names: Vec::new() }
    }

    /// Of programs: a kind for each label, in the order of the names.
    pub fn of_programs<'a>(codes: impl Iterator<Item = &'a Arc<Code>>, names: &[String]) -> Board {
        let mut labels: Vec<Label> = codes.flat_map(|code| code.labels.iter().cloned()).collect();
        labels.sort_by_key(|label| (label.name, label.op));
        labels.dedup();
        let kinds = labels.iter().map(|label| Kind::new(label.op, label.name + 1)).collect();
        Board { kinds, names: names.to_vec() }
    }

    /// Which kind each of a program's labels is.
    pub fn kinds(&self, labels: &[Label]) -> Vec<usize> {
        let at = |label: &Label| {
            self.kinds.iter().position(|kind| (kind.op, kind.name) == (label.op, label.name + 1))
        };
        labels.iter().map(|label| at(label).unwrap_or(0)).collect()
    }

    /// Adds to a bucket of a kind's latencies.
    pub fn latency(&self, kind: usize, bucket: usize, n: u32) {
        let buckets = &self.kinds[kind].latency;
        let buckets = buckets.get_or_init(|| (0..BUCKETS).map(|_| AtomicU64::new(0)).collect());
        buckets[bucket].fetch_add(u64::from(n), Relaxed);
    }

    /// Adds requests, bytes and failed requests of a kind.
    pub fn add(&self, kind: usize, done: u64, bytes: u64, errors: u64) {
        let kind = &self.kinds[kind];
        kind.done.fetch_add(done, Relaxed);
        kind.bytes.fetch_add(bytes, Relaxed);
        kind.errors.fetch_add(errors, Relaxed);
    }

    /// All requests since the start; without steps that are none.
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for counts in self.kinds.iter().filter(|kind| kind.op != OTHER).map(Kind::counts) {
            sum.requests += counts.requests;
            sum.bytes += counts.bytes;
            for (bucket, n) in counts.latency {
                let (low, high) = histogram::bounds(usize::from(bucket));
                sum.timed += n;
                sum.latency += n as f64 * (low + (high - 1 - low) / 2) as f64;
            }
        }
        sum
    }
}

/// What was counted of a kind, or of all requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Completed, failed ones included.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Failed and short ones among the requests.
    pub errors: u64,
    /// Response where the pace is open, else service; waiting has service only.
    pub latency: Sparse,
}

impl Counts {
    /// What came since `base`.
    fn since(&self, base: &Counts) -> Counts {
        let mut old = base.latency.iter().peekable();
        let mut latency = Sparse::new();
        for &(bucket, n) in &self.latency {
            // Counts only grow, so no bucket of the base is missing here.
            let before = old.next_if(|b| b.0 == bucket).map_or(0, |b| b.1);
            if n > before {
                latency.push((bucket, n - before));
            }
        }
        Counts {
            requests: self.requests - base.requests,
            bytes: self.bytes - base.bytes,
            errors: self.errors - base.errors,
            latency,
        }
    }

    fn merge(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.errors += other.errors;
        histogram::merge(&mut self.latency, &other.latency);
    }
}

/// What is known of one kind of request at the moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveKind {
    /// Frozen op code; 255: a step that is no request.
    pub op: u8,
    /// Name of the step, of a program.
    pub name: Option<String>,
    /// Since the start; latencies are of about the last second only.
    pub counts: Counts,
    /// Requests per second that succeeded, over about the last second.
    pub ops_per_s: f64,
    /// Bytes per second, likewise.
    pub bytes_per_s: f64,
}

/// What a run is doing at the moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Live {
    /// `starting`, `filling`, `dropping caches`, `remounting`, `running`, `writing back`, `ending` or `done`.
    pub phase: &'static str,
    /// Nanoseconds since the current phase began.
    pub elapsed_ns: i64,
    /// Share of the phase that is done, where that is known.
    pub fraction: Option<f64>,
    /// All requests; without steps that are none.
    pub all: LiveKind,
    /// What occurred so far, by kind.
    pub kinds: Vec<LiveKind>,
}

/// Remembers the last second of the counters to tell rates and recent latencies.
#[derive(Default)]
pub struct History(VecDeque<(i64, Vec<Counts>)>);

impl History {
    /// Fills in the figures of `live` from the board, as of `now` (ns).
    pub fn observe(&mut self, now: i64, board: &Board, live: &mut Live) {
        let latest: Vec<Counts> = board.kinds.iter().map(Kind::counts).collect();
        // The newest moment that is at least a second ago is the base; older ones are of no more use.
        while self.0.get(1).is_some_and(|s| now - s.0 >= 1_000_000_000) {
            self.0.pop_front();
        }
        let nothing = Counts::default();
        for (i, (kind, counts)) in board.kinds.iter().zip(&latest).enumerate() {
            if counts.requests == 0 {
                continue;
            }
            let (mut ops_per_s, mut bytes_per_s, mut recent) = (0.0, 0.0, Sparse::new());
            if let Some((at, base)) = self.0.front() {
                let seconds = (now - at).max(1) as f64 * 1e-9;
                let new = counts.since(base.get(i).unwrap_or(&nothing));
                ops_per_s = (new.requests - new.errors) as f64 / seconds;
                bytes_per_s = new.bytes as f64 / seconds;
                recent = new.latency;
            }
            let name = kind.name.checked_sub(1).and_then(|n| board.names.get(usize::from(n))).cloned();
            let counts = Counts { latency: recent, ..counts.clone() };
            if kind.op != OTHER {
                live.all.counts.merge(&counts);
                live.all.ops_per_s += ops_per_s;
                live.all.bytes_per_s += bytes_per_s;
            }
            live.kinds.push(LiveKind { op: kind.op, name, counts, ops_per_s, bytes_per_s });
        }
        if self.0.back().is_none_or(|s| now - s.0 >= 50_000_000) {
            self.0.push_back((now, latest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_latencies_are_of_the_last_second_and_totals_of_all() {
        let (board, mut history) = (Board::of_ops(), History::default());
        let second = 1_000_000_000;
        let mut look = |now| {
            let mut live = Live::default();
            history.observe(now, &board, &mut live);
            live
        };
        board.add(0, 100, 1000, 0);
        board.latency(0, 7, 100);
        look(second);
        board.add(0, 10, 100, 0);
        board.latency(0, 7, 4);
        board.latency(0, 9, 6);
        board.add(1, 20, 0, 20);
        board.latency(1, 9, 20);
        let live = look(2 * second);
        let seen: Vec<_> = live.kinds.iter().map(|k| (k.op, k.counts.requests, k.ops_per_s)).collect();
        assert_eq!(seen, [(0, 110, 10.0), (1, 20, 0.0)]);
        assert_eq!(live.kinds[0].counts.latency, [(7, 4), (9, 6)]);
        assert_eq!(
            live.all.counts,
            Counts { requests: 130, bytes: 1100, errors: 20, latency: vec![(7, 4), (9, 26)] }
        );
        assert_eq!((live.all.ops_per_s, live.all.bytes_per_s), (10.0, 100.0));
    }

    #[test]
    fn steps_have_kinds_of_their_own_and_waiting_is_no_request() {
        let code = |labels: &[(u8, u16)]| {
            let labels = labels.iter().map(|(op, name)| Label { op: *op, name: *name }).collect();
            Arc::new(Code { steps: Vec::new(), labels, slots: 1, memory: 1 })
        };
        let codes = [code(&[(OTHER, 2), (0, 1)]), code(&[(0, 1), (0, 0)])];
        let names = ["first", "second", "wait"].map(String::from);
        let board = Board::of_programs(codes.iter(), &names);
        assert_eq!(board.kinds(&codes[0].labels), [2, 1]);
        assert_eq!(board.kinds(&codes[1].labels), [1, 0]);
        board.add(1, 3, 30, 0);
        board.add(2, 5, 0, 0);
        let mut live = Live::default();
        History::default().observe(1, &board, &mut live);
        let seen: Vec<_> = live.kinds.iter().map(|k| (k.name.as_deref(), k.counts.requests)).collect();
        assert_eq!(seen, [(Some("second"), 3), (Some("wait"), 5)]);
        assert_eq!(live.all.counts.requests, 3);
        assert_eq!(board.totals(), Totals { requests: 3, bytes: 30, ..Totals::default() });
    }
}
