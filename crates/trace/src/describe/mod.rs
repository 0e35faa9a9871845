//! What a trace looks like, found in one pass with bounded memory.

mod dist;
mod footprint;
mod popularity;
mod rate;

pub use dist::{Dist, Shown as DistShown, bounds, bucket};
pub use footprint::Shown as FootprintShown;
pub use popularity::Shown as PopularityShown;
pub use rate::Shown as RateShown;

use crate::{Batch, Info, NONE, Op, flag};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Most distinct sizes counted exactly.
const MOST_SIZES: usize = 1 << 16;

/// Objects and sizes listed.
const LISTED: usize = 20;

/// Collects what [`Description`] tells.
#[derive(Debug, Default)]
pub struct Describe {
    requests: u64,
    first: i64,
    last: i64,
    ops: [OpStats; 4],
    other_ops: FxHashMap<u8, OpStats>,
    size: Dist,
    sizes: FxHashMap<i64, u64>,
    gap: Dist,
    forward: Dist,
    backward: Dist,
    sequential: u64,
    jumps: u64,
    latency: Dist,
    footprint: footprint::Footprint,
    popularity: popularity::Popularity,
    rate: rate::Rate,
    objects: Vec<ObjectStats>,
    flags: [u64; 8],
}

#[derive(Debug, Default, Clone)]
struct OpStats {
    requests: u64,
    bytes: u64,
    size: Dist,
    latency: Dist,
}

#[derive(Debug, Default, Clone)]
struct ObjectStats {
    requests: u64,
    reads: u64,
    bytes: u64,
    /// One past the last byte of the request before.
    end: Option<i64>,
    low: Option<i64>,
    high: i64,
    sequential: u64,
}

/// What a trace looks like. Times in nanoseconds, sizes and distances in bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// Requests.
    pub requests: u64,
    /// Time from the first request to the last.
    pub span_ns: i64,
    /// Requests per second over the span; 0 when all come at once.
    pub requests_per_s: f64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Share of the reads and writes that are reads, by number; `null` when there are neither.
    pub read_share: Option<f64>,
    /// The same by bytes.
    pub read_bytes_share: Option<f64>,
    /// By op.
    pub ops: Vec<OpShown>,
    /// Sizes.
    pub size: Option<DistShown>,
    /// The most frequent sizes: bytes, requests.
    pub common_sizes: Vec<(i64, u64)>,
    /// Time since the request before, whatever its object.
    pub interarrival_ns: Option<DistShown>,
    /// Distance from the end of the request before on the same object.
    pub jump: Jump,
    /// Latencies where they are known.
    pub latency_ns: Option<DistShown>,
    /// Distinct blocks touched.
    pub footprint: FootprintShown,
    /// How requests concentrate.
    pub popularity: Option<PopularityShown>,
    /// Number of objects that were touched.
    pub objects: u64,
    /// The busiest of them.
    pub busiest: Vec<ObjectShown>,
    /// Requests by flag.
    pub flags: Vec<(&'static str, u64)>,
    /// Activity over time.
    pub rate: RateShown,
    /// Where it came from, losses and everything else that was counted, warnings.
    pub info: Info,
}

/// Jump distances.
#[derive(Debug, Clone, Serialize)]
pub struct Jump {
    /// Requests that have a predecessor on their object.
    pub count: u64,
    /// Share of them that begin where it ended.
    pub sequential_share: f64,
    /// Jumps ahead.
    pub forward: Option<DistShown>,
    /// Jumps back, as positive numbers.
    pub backward: Option<DistShown>,
}

/// One op.
#[derive(Debug, Clone, Serialize)]
pub struct OpShown {
    /// Its name.
    pub op: &'static str,
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Sizes.
    pub size: Option<DistShown>,
    /// Latencies.
    pub latency_ns: Option<DistShown>,
}

/// One object.
#[derive(Debug, Clone, Serialize)]
pub struct ObjectShown {
    /// Dense id.
    pub id: u32,
    /// Name in the source.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Bytes read, written and discarded.
    pub bytes: u64,
    /// First byte touched.
    pub start: i64,
    /// One past the last byte touched.
    pub end: i64,
    /// Share of its requests that begin where the one before ended.
    pub sequential_share: f64,
}

impl Describe {
    /// Takes requests in time order.
    pub fn add(&mut self, batch: &Batch) {
        for row in 0..batch.len() {
            self.add_row(batch, row);
        }
    }

    fn add_row(&mut self, batch: &Batch, row: usize) {
        let (time, op, object) = (batch.time[row], batch.op[row], batch.object[row]);
        let (offset, size, latency) = (batch.offset[row], batch.size[row], batch.latency[row]);
        if self.requests == 0 {
            self.first = time;
        } else {
            self.gap.add(time.saturating_sub(self.last).cast_unsigned());
        }
        (self.requests, self.last) = (self.requests + 1, time);
        let bytes = if size == NONE { 0 } else { size.cast_unsigned() };
        let (read, write) = (op == Op::Read as u8, op == Op::Write as u8);
        self.rate.add(time - self.first, if read { bytes } else { 0 }, if write { bytes } else { 0 });
        let stats = match self.ops.get_mut(usize::from(op)) {
            Some(stats) => stats,
            None => self.other_ops.entry(op).or_default(),
        };
        stats.requests += 1;
        stats.bytes = stats.bytes.saturating_add(bytes);
        if size != NONE {
            stats.size.add(bytes);
            self.size.add(bytes);
            // A size that is new after so many others is hardly among the most frequent.
            if self.sizes.len() < MOST_SIZES || self.sizes.contains_key(&size) {
                *self.sizes.entry(size).or_default() += 1;
            }
        }
        if latency != NONE {
            stats.latency.add(latency.cast_unsigned());
            self.latency.add(latency.cast_unsigned());
        }
        let flags = batch.flags[row];
        if flags != 0 {
            for (bit, n) in self.flags.iter_mut().enumerate() {
                *n += u64::from(flags >> bit & 1);
            }
        }
        if offset != NONE && (read || write) {
            self.footprint.add(object, offset.cast_unsigned(), bytes);
            self.popularity.add(object, offset.cast_unsigned());
        }
        self.add_to_object(object, read, offset, bytes);
    }

    fn add_to_object(&mut self, object: u32, read: bool, offset: i64, bytes: u64) {
        let index = object as usize;
        if index >= self.objects.len() {
            self.objects.resize(index + 1, ObjectStats::default());
        }
        let stats = &mut self.objects[index];
        stats.requests += 1;
        stats.reads += u64::from(read);
        stats.bytes = stats.bytes.saturating_add(bytes);
        if offset == NONE {
            return;
        }
        let end = offset.saturating_add(bytes.cast_signed());
        if let Some(before) = stats.end {
            self.jumps += 1;
            match offset.saturating_sub(before) {
                0 => {
                    self.sequential += 1;
                    stats.sequential += 1;
                }
                ahead @ 1.. => self.forward.add(ahead.cast_unsigned()),
                back => self.backward.add(back.unsigned_abs()),
            }
        }
        stats.end = Some(end);
        stats.low = Some(stats.low.map_or(offset, |low| low.min(offset)));
        stats.high = stats.high.max(end);
    }

    /// What was found; `info` is the reader's after the end.
    pub fn finish(self, info: Info) -> Description {
        let span = self.last.saturating_sub(self.first);
        let [reads, writes] = [&self.ops[0], &self.ops[1]];
        let share = |a: u64, b: u64| (a > 0 || b > 0).then(|| a as f64 / (a as f64 + b as f64));
        let mut ops: Vec<OpShown> = Vec::new();
        let mut others: Vec<_> = self.other_ops.iter().collect();
        others.sort_by_key(|(op, _)| **op);
        let all = self
            .ops
            .iter()
            .enumerate()
            .map(|(op, stats)| (op as u8, stats))
            .chain(others.into_iter().map(|(op, s)| (*op, s)));
        for (op, stats) in all.filter(|(_, stats)| stats.requests > 0) {
            ops.push(OpShown {
                op: Op::from_code(op).map_or("?", Op::name),
                requests: stats.requests,
                bytes: stats.bytes,
                size: stats.size.show(),
                latency_ns: stats.latency.show(),
            });
        }
        let mut common_sizes: Vec<(i64, u64)> = self.sizes.iter().map(|(&s, &n)| (s, n)).collect();
        common_sizes.sort_by_key(|&(size, n)| (std::cmp::Reverse(n), size));
        common_sizes.truncate(LISTED);
        let of = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Description {
            requests: self.requests,
            span_ns: span,
            requests_per_s: if span > 0 { self.requests as f64 / (span as f64 / 1e9) } else { 0.0 },
            bytes: reads.bytes.saturating_add(writes.bytes),
            read_share: share(reads.requests, writes.requests),
            read_bytes_share: share(reads.bytes, writes.bytes),
            ops,
            size: self.size.show(),
            common_sizes,
            interarrival_ns: self.gap.show(),
            jump: Jump {
                count: self.jumps,
                sequential_share: of(self.sequential, self.jumps),
                forward: self.forward.show(),
                backward: self.backward.show(),
            },
            latency_ns: self.latency.show(),
            footprint: self.footprint.show(),
            popularity: self.popularity.show(),
            objects: self.objects.iter().filter(|o| o.requests > 0).count() as u64,
            busiest: busiest(&self.objects, &info),
            flags: flag::NAMES.iter().copied().zip(self.flags).filter(|&(_, n)| n > 0).collect(),
            rate: self.rate.show(),
            info,
        }
    }
}

fn busiest(objects: &[ObjectStats], info: &Info) -> Vec<ObjectShown> {
    let mut order: Vec<usize> = (0..objects.len()).filter(|&i| objects[i].requests > 0).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(objects[i].requests), i));
    order.truncate(LISTED);
    let shown = |index: usize| {
        let stats = &objects[index];
        ObjectShown {
            id: index as u32,
            name: info.objects.get(index).map_or_else(|| index.to_string(), |o| o.name.clone()),
            requests: stats.requests,
            reads: stats.reads,
            bytes: stats.bytes,
            start: stats.low.unwrap_or(0),
            end: stats.high,
            sequential_share: stats.sequential as f64 / stats.requests as f64,
        }
    };
    order.into_iter().map(shown).collect()
}
