//! Counts every completion: histograms per op and errno, per interval; in flight; lateness; live figures.
//!
//! A completion touches a few dense counters. About every millisecond the counters anyone may be
//! watching are published; a few times per second the dense histograms are folded; at the end of an
//! interval they become rows. Nothing is shared between the threads of a worker while they run.

use crate::clock::Clock;
use crate::issue::depth_search::Depths;
use crate::metrics::histogram::{Dense, Sparse, Sum};
use crate::metrics::live::Board;
use crate::metrics::log::{Logger, Row as LogRow};
use crate::request::{Request, SHORT, op};
use crate::workload_vm::{Label, OTHER};
use loadstone_plan::MOST_INTERVALS;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Requests that were due before the end of the run and did not go out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Unissued {
    /// How many were found.
    pub requests: u64,
    /// There are more: they were counted for a second only.
    pub more: bool,
}

impl Unissued {
    /// Adds what another thread found.
    pub fn add(&mut self, other: Unissued) {
        self.requests += other.requests;
        self.more |= other.more;
    }
}

/// How often the progress counter is published, ns.
const PUBLISH: i64 = 1_000_000;
/// Number of the last interval: all that comes later counts to it, as each takes memory.
const LAST: i64 = MOST_INTERVALS as i64 - 1;
/// How often histograms are folded and the live figures published, ns.
const FOLD: i64 = 250_000_000;

/// Counts of one op and errno during one interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Frozen op code.
    pub op: u8,
    /// Of a step of a program: position of its name in the outcome's names, plus one; 0: none.
    pub name: u16,
    /// 0: success; [`SHORT`]: fewer bytes than asked for; else the errno.
    pub errno: i32,
    /// Number of the interval, by completion.
    pub interval: u32,
    /// Requests.
    pub count: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Completion minus intended time; empty where the pace is closed.
    pub response: Sparse,
    /// Completion minus issue.
    pub service: Sparse,
}

/// Lateness of the requests completed in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// Number of the interval.
    pub interval: u32,
    /// Issue minus intended time.
    pub histogram: Sparse,
    /// Sum, ns.
    pub sum: i128,
    /// Largest, ns.
    pub max: i64,
}

/// Sums of a straight line fitted to lateness over time, by least squares.
#[derive(Debug, Clone, Copy, Default)]
pub struct Line {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    /// A point: `x` in seconds, `y` in nanoseconds.
    #[inline(always)]
    pub fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// Adds another line's points.
    pub fn merge(&mut self, o: &Line) {
        *self = Line {
            n: self.n + o.n,
            x: self.x + o.x,
            y: self.y + o.y,
            xx: self.xx + o.xx,
            xy: self.xy + o.xy,
        };
    }

    /// The slope, ns per second; 0 for fewer than two moments.
    pub fn slope(&self) -> f64 {
        let spread = self.n * self.xx - self.x * self.x;
        if spread <= f64::EPSILON * self.n * self.xx {
            0.0
        } else {
            (self.n * self.xy - self.x * self.y) / spread
        }
    }
}

/// Everything one thread recorded.
#[derive(Debug, Default)]
pub struct Recorded {
    /// One per op, errno and interval that occurred.
    pub rows: Vec<Row>,
    /// One per interval; open loop only.
    pub late: Vec<Late>,
    /// Lateness over time.
    pub line: Line,
    /// Nanoseconds times requests in flight, by interval.
    pub busy: Vec<i64>,
    /// Most in flight, by interval.
    pub most: Vec<u32>,
    /// Rows of the full log that were dropped.
    pub log_dropped: u64,
    /// What was due before the end and did not go out.
    pub unissued: Unissued,
    /// Last completion, ns from the start; 0 without any.
    pub last: i64,
    /// Completions before the start, which are not counted elsewhere.
    pub ramp: u64,
    /// When its thread began, ns from the start; below 0 before it.
    pub begun: i64,
    /// What came of the search of a depth.
    pub depths: Option<Depths>,
}

/// Dense counters of one op and errno.
struct Class {
    count: u64,
    bytes: u64,
    /// Of these, what the board was told.
    told: (u64, u64),
    service: Dense,
    response: Dense,
    service_sum: Sum,
    response_sum: Sum,
}

impl Class {
    fn new() -> Class {
        Class {
            count: 0,
            bytes: 0,
            told: (0, 0),
            service: Dense::new(),
            response: Dense::new(),
            service_sum: Sum::new(),
            response_sum: Sum::new(),
        }
    }
}

/// A thread's recorder.
pub struct Recorder {
    start: i64,
    interval_ns: i64,
    interval: u32,
    /// Where it begins and ends on the clock.
    begin: i64,
    interval_end: i64,
    publish_at: i64,
    fold_at: i64,
    open: bool,
    /// Of a program: what its classes are; of requests a class is an op code.
    labels: Vec<Label>,
    good: Vec<Class>,
    /// What failed, and ops on names: class and errno.
    others: Vec<(usize, i32, Box<Class>)>,
    late: Dense,
    late_sum: Sum,
    late_total: i128,
    late_max: i64,
    busy: i64,
    most: u32,
    unpublished: u64,
    out: Recorded,
    board: Arc<Board>,
    /// Of a program: which kind of the board each class is; of requests that is the op code.
    kinds: Vec<usize>,
    progress: Arc<AtomicU64>,
    log: Option<Logger>,
}

impl Recorder {
    /// Counts requests that complete from `start` on. With `open` it keeps response times and lateness.
    pub fn new(
        start: i64,
        interval_ns: i64,
        open: bool,
        board: Arc<Board>,
        progress: Arc<AtomicU64>,
        log: Option<Logger>,
    ) -> Recorder {
        Recorder {
            start,
            interval_ns,
            interval: 0,
            begin: start,
            interval_end: start.saturating_add(interval_ns),
            // Until the start all calls end up in `tick`, so that no other request has to ask for it.
            publish_at: i64::MIN,
            fold_at: start + FOLD,
            open,
            labels: Vec::new(),
            good: (0..op::COUNT).map(|_| Class::new()).collect(),
            others: Vec::new(),
            late: Dense::new(),
            late_sum: Sum::new(),
            late_total: 0,
            late_max: 0,
            busy: 0,
            most: 0,
            unpublished: 0,
            out: Recorded::default(),
            board,
            kinds: Vec::new(),
            progress,
            log,
        }
    }

    /// Of a program, whose classes are these.
    pub fn with_labels(mut self, labels: &[Label]) -> Recorder {
        self.labels = labels.to_vec();
        self.kinds = self.board.kinds(labels);
        self.good = labels.iter().map(|_| Class::new()).collect();
        self
    }

    /// Notes how many are in flight just after issuing at `now`.
    #[inline(always)]
    pub fn issued(&mut self, now: i64, in_flight: u32, clock: &mut Clock) {
        if now >= self.publish_at {
            self.tick(now, clock);
        }
        self.most = self.most.max(in_flight);
    }

    /// Notes how many are in flight.
    #[inline(always)]
    pub fn in_flight(&mut self, n: u32) {
        self.most = self.most.max(n);
    }

    /// Keeps the published figures fresh while there is nothing to do.
    #[inline]
    pub fn idle(&mut self, now: i64, clock: &mut Clock) {
        if now >= self.publish_at {
            self.tick(now, clock);
        }
    }

    /// Says when the load of its thread begins, on the clock.
    pub fn begins(&mut self, at: i64) {
        self.out.begun = at - self.start;
    }

    /// Says what came of the search of a depth.
    pub fn searched(&mut self, depths: Depths) {
        self.out.depths = Some(depths);
    }

    /// Tells the log that requests issued at `time` on the clock are still in flight.
    pub fn outstanding_since(&mut self, time: i64) {
        if let Some(log) = &mut self.log {
            log.outstanding_since(time - self.start);
        }
    }

    /// Records a completion. `intended` is ignored where the pace is closed; `result` is the number
    /// of bytes or a negative errno.
    #[inline(always)]
    pub fn complete(
        &mut self,
        r: &Request,
        intended: i64,
        issued: i64,
        now: i64,
        result: i64,
        clock: &mut Clock,
    ) {
        if now >= self.publish_at && self.tick(now, clock) {
            (self.out.ramp, self.most) = (self.out.ramp + 1, 0);
            return;
        }
        // What moves no data answers 0, whatever its size says.
        let whole = result == r.size as i64 || (result == 0 && r.op >= op::FLUSH && r.op != op::COPY_RANGE);
        let errno = match result {
            _ if whole => 0,
            _ if result < 0 => -result as i32,
            _ => SHORT,
        };
        let bytes = if result > 0 { result as u64 } else { 0 };
        self.add(usize::from(r.op), errno, bytes, Some(intended), issued, now);
        if let Some(log) = &mut self.log {
            log.push(LogRow::new(r, intended, issued, now, result, self.start, self.open));
        }
    }

    /// Records a step of a program: its class, errno ([`SHORT`] for a short write) and bytes; when it was intended, if an
    /// event said so, issued and completed.
    #[inline(always)]
    pub fn count(
        &mut self,
        class: usize,
        errno: i32,
        bytes: u64,
        [issued, now]: [i64; 2],
        intended: Option<i64>,
        clock: &mut Clock,
    ) {
        if now >= self.publish_at {
            self.tick(now, clock);
        }
        if self.labels[class].op == OTHER {
            let waited = &mut self.good[class];
            waited.count += 1;
            waited.service.add(now - issued);
        } else {
            self.most = 1;
            self.add(class, errno, bytes, intended, issued, now);
        }
    }

    #[inline(always)]
    fn add(&mut self, number: usize, errno: i32, bytes: u64, intended: Option<i64>, issued: i64, now: i64) {
        let usual = errno == 0 && number < self.good.len();
        let class = if usual { &mut self.good[number] } else { self.other(number, errno) };
        class.count += 1;
        class.bytes += bytes;
        class.service.add(now - issued);
        if self.open {
            let class = if usual { &mut self.good[number] } else { self.other(number, errno) };
            class.response.add(now - intended.unwrap_or(issued));
            if let Some(intended) = intended {
                let late = issued - intended;
                self.late.add(late);
                self.late_total += i128::from(late);
                self.late_max = self.late_max.max(late);
                self.out.line.add((intended - self.start) as f64 * 1e-9, late as f64);
            }
        }
        let begin = self.begin;
        if issued >= begin {
            self.busy += now - issued;
        } else {
            self.busy += now - begin;
            self.busy_before(issued, begin);
        }
        self.unpublished += 1;
    }

    #[cold]
    #[inline(never)]
    fn other(&mut self, class: usize, errno: i32) -> &mut Class {
        let at = match self.others.iter().position(|b| b.0 == class && b.1 == errno) {
            Some(at) => at,
            None => {
                self.others.push((class, errno, Box::new(Class::new())));
                self.others.len() - 1
            }
        };
        &mut self.others[at].2
    }

    /// Spreads the time a request was in flight before the current interval over the earlier ones.
    #[cold]
    fn busy_before(&mut self, issued: i64, begin: i64) {
        let mut at = issued.max(self.start);
        while at < begin {
            let interval = self.number_of(at);
            let end = self.end_of(interval).min(begin);
            let i = interval as usize;
            if self.out.busy.len() <= i {
                self.out.busy.resize(i + 1, 0);
            }
            self.out.busy[i] += end - at;
            at = end;
        }
    }

    /// Number of the interval of a time on the clock.
    fn number_of(&self, at: i64) -> i64 {
        ((at - self.start) / self.interval_ns).min(LAST)
    }

    /// End of an interval on the clock.
    fn end_of(&self, interval: i64) -> i64 {
        match interval {
            LAST => i64::MAX,
            _ => self.start.saturating_add((interval + 1).saturating_mul(self.interval_ns)),
        }
    }

    /// Publishes, folds, and closes intervals, whichever is due. Whether the run only begins later.
    #[cold]
    #[inline(never)]
    pub fn tick(&mut self, now: i64, clock: &mut Clock) -> bool {
        if now < self.start {
            return true;
        }
        self.progress.fetch_add(std::mem::take(&mut self.unpublished), Relaxed);
        if now >= self.fold_at || now >= self.interval_end {
            self.fold();
            if let Some(log) = &mut self.log {
                log.flush();
            }
            if now >= self.fold_at {
                clock.resync();
                self.fold_at = now + FOLD;
            }
            if now >= self.interval_end {
                self.close_interval();
                let interval = self.number_of(now);
                self.begin = self.start + interval * self.interval_ns;
                (self.interval, self.interval_end) = (interval as u32, self.end_of(interval));
            }
        }
        self.publish_at = (now + PUBLISH).min(self.interval_end);
        false
    }

    fn fold(&mut self) {
        let (board, open, labels, kinds) = (&*self.board, self.open, &self.labels, &self.kinds);
        let good = self.good.iter_mut().enumerate().map(|(class, counts)| (class, 0, counts));
        let others = self.others.iter_mut().map(|b| (b.0, b.1, &mut *b.2));
        for (number, errno, class) in good.chain(others).filter(|c| c.2.count > 0) {
            let kind = kinds.get(number).copied().unwrap_or(number);
            // Nothing is ever due to wait.
            let due = open && labels.get(number).is_none_or(|label| label.op != OTHER);
            class.service.drain(|bucket, n| {
                class.service_sum.add(bucket, n.into());
                if !due {
                    board.latency(kind, bucket, n);
                }
            });
            class.response.drain(|bucket, n| {
                class.response_sum.add(bucket, n.into());
                board.latency(kind, bucket, n);
            });
            let new = class.count - class.told.0;
            board.add(kind, new, class.bytes - class.told.1, if errno == 0 { 0 } else { new });
            class.told = (class.count, class.bytes);
        }
        self.late.drain(|bucket, n| self.late_sum.add(bucket, n.into()));
    }

    /// Turns the folded sums into rows of the current interval.
    fn close_interval(&mut self) {
        let at = self.interval as usize;
        let labels = &self.labels;
        let label = |class: usize| labels.get(class).map_or((class as u8, 0), |l| (l.op, l.name + 1));
        let good = self.good.iter_mut().enumerate().map(|(class, c)| (class, 0, c));
        let others = self.others.iter_mut().map(|b| (b.0, b.1, &mut *b.2));
        for (class, errno, counts) in good.chain(others).filter(|c| c.2.count > 0) {
            let ((op, name), class) = (label(class), counts);
            let count = std::mem::take(&mut class.count);
            let bytes = std::mem::take(&mut class.bytes);
            class.told = (0, 0);
            self.out.rows.push(Row {
                op,
                name,
                errno,
                interval: self.interval,
                count,
                bytes,
                response: class.response_sum.take(),
                service: class.service_sum.take(),
            });
        }
        let histogram = self.late_sum.take();
        if !histogram.is_empty() {
            let (sum, max) = (std::mem::take(&mut self.late_total), std::mem::take(&mut self.late_max));
            self.out.late.push(Late { interval: self.interval, histogram, sum, max });
        }
        if self.busy > 0 || self.most > 0 {
            let len = self.out.busy.len().max(at + 1);
            self.out.busy.resize(len, 0);
            self.out.busy[at] += std::mem::take(&mut self.busy);
            self.out.most.resize(at + 1, 0);
            self.out.most[at] = std::mem::take(&mut self.most);
        }
    }

    /// What was due before the end and did not go out.
    pub fn unissued(&mut self, unissued: Unissued) {
        self.out.unissued = unissued;
    }

    /// Ends recording at `now`.
    pub fn finish(mut self, now: i64, clock: &mut Clock) -> Recorded {
        self.tick(now, clock);
        self.fold();
        self.close_interval();
        if let Some(log) = self.log.take() {
            self.out.log_dropped = log.finish();
        }
        self.out.last = now - self.start;
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: u8) -> Request {
        Request { size: 4096, op, ..Request::default() }
    }

    fn recorder(open: bool) -> (Recorder, Arc<Board>, Arc<AtomicU64>) {
        let (board, progress) = (Arc::new(Board::of_ops()), Arc::new(AtomicU64::new(0)));
        (Recorder::new(1000, 100, open, board.clone(), progress.clone(), None), board, progress)
    }

    #[test]
    fn errors_and_short_transfers_are_rows_of_their_own() {
        let (mut r, board, progress) = recorder(true);
        let mut clock = Clock::new();
        for (result, at) in [(4096, 1010), (512, 1020), (-5, 1030), (-28, 1040), (-5, 1150)] {
            r.complete(&request(op::WRITE), at - 7, at - 5, at, result, &mut clock);
        }
        r.complete(&request(op::FLUSH), 1150, 1160, 1180, 0, &mut clock);
        let out = r.finish(1200, &mut clock);
        let seen: Vec<_> = out.rows.iter().map(|r| (r.interval, r.op, r.errno, r.count, r.bytes)).collect();
        assert_eq!(
            seen,
            [
                (0, 1, 0, 1, 4096),
                (0, 1, SHORT, 1, 512),
                (0, 1, 5, 1, 0),
                (0, 1, 28, 1, 0),
                (1, 2, 0, 1, 0),
                (1, 1, 5, 1, 0)
            ]
        );
        assert_eq!(out.rows[0].service, [(5, 1)]);
        assert_eq!(out.rows[0].response, [(7, 1)]);
        assert_eq!(out.late[0].histogram, [(2, 4)]);
        let told = board.totals();
        assert_eq!((told.requests, told.bytes), (6, 4608));
        assert_eq!(progress.load(Relaxed), 6);
    }

    #[test]
    fn time_in_flight_is_spread_over_the_intervals_it_covers() {
        let (mut r, _, _) = recorder(false);
        let mut clock = Clock::new();
        r.issued(1050, 1, &mut clock);
        r.complete(&request(op::READ), 0, 1050, 1320, 4096, &mut clock);
        let out = r.finish(1320, &mut clock);
        assert_eq!(out.busy, [50, 100, 100, 20]);
        assert_eq!(out.rows.len(), 1);
        assert_eq!((out.rows[0].interval, out.rows[0].response.len()), (3, 0));
        assert!(out.late.is_empty());
    }

    #[test]
    fn a_line_finds_its_slope() {
        let mut line = Line::default();
        (0..1000).for_each(|i| line.add(f64::from(i) * 0.01, 500.0 + 3.0 * f64::from(i) * 0.01));
        assert!((line.slope() - 3.0).abs() < 1e-6);
        assert_eq!(Line::default().slope(), 0.0);
    }

    #[test]
    fn intervals_without_end_are_told_in_bounded_memory() {
        let mut clock = Clock::new();
        let board = || (Arc::new(Board::of_ops()), Arc::new(AtomicU64::new(0)));
        let second = 1_000_000_000;
        for (interval, at, number) in
            [(1_000_000, 200 * 24 * 3600 * second, LAST as u32), (i64::MAX / 2, 24 * 3600 * second, 0)]
        {
            let (board, progress) = board();
            let mut r = Recorder::new(1000, interval, false, board, progress, None);
            for late in [0, 1, second] {
                r.complete(&request(op::READ), 0, at + late - 5, at + late, 4096, &mut clock);
            }
            let out = r.finish(at + 2 * second, &mut clock);
            let seen: Vec<_> = out.rows.iter().map(|row| (row.interval, row.count)).collect();
            assert_eq!(seen, [(number, 3)]);
            assert_eq!((out.busy.len(), out.busy[number as usize]), (number as usize + 1, 15));
        }
    }
}
