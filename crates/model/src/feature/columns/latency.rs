//! How long the request took.

use crate::feature::{Context, Feature, Field, Kind, Rows};

/// Nanoseconds from submission to completion; none where the trace does not tell. Source: "response time", a
/// parameter of the system and not of the workload, so it is observed and never drawn.
struct Latency;

pub(crate) const KIND: Kind = Kind {
    name: "latency",
    field: Field::Seen,
    unit: "ns",
    signed: false,
    rule: "log2:2",
    make: |_: &Context| Box::new(Latency),
};

impl Feature for Latency {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend_from_slice(batch.latency);
    }
}
