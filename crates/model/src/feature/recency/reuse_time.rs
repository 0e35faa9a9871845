//! How long ago the same place was used.

use crate::feature::recent::{REACH, Recent};
use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;

/// Time since the last request that began at the same offset of the same object: `reuse` by the clock. None where
/// that was not among the last 65,535 requests that have an offset. Source: as of `reuse`.
struct ReuseTime {
    places: Recent,
    ago: Vec<i64>,
    /// Of the last requests that have an offset, by their number.
    times: Vec<i64>,
    next: usize,
}

pub(crate) const KIND: Kind = Kind {
    name: "reuse_time",
    field: Field::Derived,
    unit: "ns",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| {
        Box::new(ReuseTime { places: Recent::default(), ago: Vec::new(), times: vec![0; REACH], next: 0 })
    },
};

impl Feature for ReuseTime {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let places = batch.object.iter().zip(batch.offset).map(|(&object, &offset)| (object, offset, offset));
        self.places.steps(places, &mut self.ago);
        let rows = batch.offset.iter().zip(batch.time).zip(&self.ago);
        out.extend(rows.map(|((&offset, &time), &ago)| {
            if offset == NONE {
                return NONE;
            }
            let before = (self.next + REACH).wrapping_sub(ago.max(0) as usize) % REACH;
            let since = if ago == NONE { NONE } else { time - self.times[before] };
            self.times[self.next] = time;
            self.next = (self.next + 1) % REACH;
            since
        }));
    }
}
