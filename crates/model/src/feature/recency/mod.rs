//! Features of how long ago, and how often, a place was used.

pub(crate) mod distances;
mod popularity;

use crate::feature::recency::distances::{Counts, Distances};
use crate::feature::recent::{Back, Recent};
use crate::feature::{Feature, Field, Kind, Rows, each};
use loadstone_trace::lru::blocks;
use loadstone_trace::{NONE, Recency, Run};
pub(crate) use popularity::POPULARITY;
use rustc_hash::FxHashMap;

/// Requests since the last one that began at the same offset of the same object, counting those that
/// have an offset; none where that was not among the last 65,535. Known as reuse time or inter-reference
/// gap. Without it places are popular only by region, and a drawn stream touches far more of them: a quarter
/// of the requests of cloudPhysicsIO come back so and do not just go on, nearly half of loop0. Where a close
/// jump leads to a place that was used long ago, the number is taken as 0: used, whenever that was. Source: inter-reference
/// intervals, Denning, CACM 11 (5), 1968, in requests.
pub(crate) const REUSE: Kind =
    Kind::new("reuse", Field::Reuse, "request", "log2:1", |_| Box::new(Reuse::default()));

#[derive(Default)]
struct Reuse(Recent);

impl Feature for Reuse {
    fn values(&mut self, rows: &Rows<'_>, out: &mut Vec<i64>) {
        let places = rows.object.iter().zip(rows.offset);
        self.0.steps(places.map(|(&object, &offset)| (object, offset, offset)), out);
    }
}

/// Time since the last request that began at the same offset of the same object: `reuse` by the clock. None where
/// that was not among the last 65,535 requests that have an offset. Source: as of `reuse`.
pub(crate) const REUSE_TIME: Kind = Kind::new("reuse_time", Field::Derived, "ns", "log2:1", |_| {
    Box::new(Back::new(Reuse::default(), |rows, i, before| {
        (before.map_or(NONE, |before| rows.time[i] - before), rows.time[i])
    }))
});

/// LRU stack distance of the last 4 KiB block of a request: how many other blocks, of all objects, were read or
/// written since it was. None for a block that is new, and for requests that move no data. A cache of more
/// blocks hits, a smaller one misses. It is the last block that says whether a run goes on over what was used: the
/// first one is often that in which the request before it ended. Source: Mattson et al., IBM Systems Journal 9, 1970.
pub(crate) const REUSE_DISTANCE: Kind =
    Kind::new("reuse_distance", Field::Distance, "block", "log2:2", |_| Box::new(ReuseDistance::default()));

/// Requests that blocks are asked for before they are needed.
const AHEAD: usize = 8;

#[derive(Default)]
pub(crate) struct ReuseDistance {
    blocks: Recency,
    counts: Counts,
    /// Memory for the runs of a request.
    runs: Vec<Run>,
}

impl Feature for ReuseDistance {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let of = |i: usize| (batch.object[i], blocks(batch.op[i], batch.offset[i], batch.size[i]));
        let requests = batch.object.len();
        out.extend((0..requests).map(|i| {
            if i + AHEAD < requests {
                let (object, blocks) = of(i + AHEAD);
                self.blocks.ask(object, &blocks);
            }
            let (object, blocks) = of(i);
            self.blocks.touch_all(object, blocks, &mut self.runs);
            self.runs.iter().for_each(|run| self.counts.add(run.distance, run.blocks));
            self.runs.last().and_then(|run| run.distance).map_or(NONE, |distance| distance as i64)
        }));
    }

    fn distances(&self) -> Option<Distances> {
        Some(self.counts.distances())
    }
}

/// Requests since the first 4 KiB block of this one was first read or written: the age of its part of the footprint. 0
/// where it is new, none for requests that move no data. It tells files that are written once and read for long from
/// those that come and go, whatever was used last. Remembers every block, 24 bytes each. Source: ours, after the
/// lifetimes of data in Baker et al., SOSP 1991, which end where it is written over.
pub(crate) const AGE: Kind = Kind::new("age", Field::Derived, "request", "log2:1", |_| {
    let (mut first, mut requests): (FxHashMap<(u32, u64), u64>, _) = (FxHashMap::default(), 0);
    each(move |rows, i| {
        let now = requests;
        requests += 1;
        let mut age = NONE;
        for (n, block) in blocks(rows.op[i], rows.offset[i], rows.size[i]).enumerate() {
            let first = *first.entry((rows.object[i], block)).or_insert(now);
            if n == 0 {
                age = (now - first) as i64;
            }
        }
        age
    })
});
