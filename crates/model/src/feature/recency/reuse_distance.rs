//! How many other blocks were used since the request's last one was.

use crate::feature::recency::distances::{Counts, Distances};
use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::lru::blocks;
use loadstone_trace::{NONE, Recency, Run};

/// LRU stack distance of the last 4 KiB block of a request: how many other blocks, of all objects, were read or
/// written since it was. None for a block that is new, and for requests that move no data. A cache of more
/// blocks hits, a smaller one misses. It is the last block that says whether a run goes on over what was used: the
/// first one is often that in which the request before it ended. Source: Mattson et al., IBM Systems Journal 9, 1970.
#[derive(Default)]
struct ReuseDistance {
    blocks: Recency,
    counts: Counts,
    /// Memory for the runs of a request.
    runs: Vec<Run>,
}

pub(crate) const KIND: Kind = Kind {
    name: "reuse_distance",
    field: Field::Distance,
    unit: "block",
    signed: false,
    rule: "log2:2",
    make: |_: &Context| Box::new(ReuseDistance::default()),
};

impl Feature for ReuseDistance {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let who = batch.op.iter().zip(batch.object);
        let places = batch.offset.iter().zip(batch.size);
        out.extend(who.zip(places).map(|((&op, &object), (&offset, &size))| {
            self.blocks.touch_all(object, blocks(op, offset, size), &mut self.runs);
            self.runs.iter().for_each(|run| self.counts.add(run.distance, run.blocks));
            self.runs.last().and_then(|run| run.distance).map_or(NONE, |distance| distance as i64)
        }));
    }

    fn distances(&self) -> Option<Distances> {
        Some(self.counts.distances())
    }
}
