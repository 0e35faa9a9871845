//! How long its actor thought before asking.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;
use loadstone_trace::depend::{Causes, WITHIN_NS};

/// Nanoseconds from the completion that a request waited for to its submission: the last completion of its actor's
/// requests, if that was at most 1 s before, unless the trace says it itself; none for others, and where latencies are
/// not known. Source: "think time", MDH thesis section 2.6: what an application does between an answer and the next
/// request.
struct Think(Causes);

pub(crate) const KIND: Kind = Kind {
    name: "think",
    field: Field::Think,
    unit: "ns",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| Box::new(Think(Causes::new(WITHIN_NS))),
};

impl Feature for Think {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        if !batch.think.is_empty() {
            return out.extend_from_slice(batch.think);
        }
        let rows = batch.time.iter().zip(batch.latency).zip(batch.actor);
        out.extend(rows.map(|((&time, &latency), &actor)| {
            self.0.next(time, latency, actor).map_or(NONE, |cause| cause.think)
        }));
    }
}
