//! How long the sequential stream is that a request belongs to.

use crate::feature::offsets::op_jump::class;
use crate::feature::recent::{REACH, Recent};
use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;

/// Requests of its stream before this one: 0 for one that goes on from none of the last 65,535 of its op and object,
/// else one more than the request has that it goes on from (`resume`). Unlike `run`, streams may be interleaved: a
/// copy of one file to another is two of them. Which run a request is a member of, and where in it. Source: as of `run`
/// and `resume`.
struct Stream {
    ends: Recent,
    ago: Vec<i64>,
    /// Of the last requests that have an offset, by their number.
    lengths: Vec<u32>,
    next: usize,
}

pub(crate) const KIND: Kind = Kind {
    name: "stream",
    field: Field::Derived,
    unit: "request",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| {
        Box::new(Stream { ends: Recent::default(), ago: Vec::new(), lengths: vec![0; REACH], next: 0 })
    },
};

impl Feature for Stream {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let who = batch.object.iter().zip(batch.op).map(|(&object, &op)| class(object, op));
        let end = |(&offset, &size): (&i64, &i64)| offset.saturating_add(if size == NONE { 0 } else { size });
        let places = batch.offset.iter().zip(batch.size).map(|place| (*place.0, end(place)));
        self.ends.steps(who.zip(places).map(|(who, (offset, end))| (who, offset, end)), &mut self.ago);
        out.extend(batch.offset.iter().zip(&self.ago).map(|(&offset, &ago)| {
            if offset == NONE {
                return NONE;
            }
            let before = (self.next + REACH).wrapping_sub(ago.max(0) as usize) % REACH;
            let length = if ago == NONE { 0 } else { self.lengths[before].saturating_add(1) };
            self.lengths[self.next] = length;
            self.next = (self.next + 1) % REACH;
            i64::from(length)
        }));
    }
}
