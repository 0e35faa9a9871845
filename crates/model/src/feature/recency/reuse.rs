//! How many requests ago the same place was used.

use crate::feature::recent::Recent;
use crate::feature::{Context, Feature, Field, Kind, Rows};

/// Requests since the last one that began at the same offset of the same object, counting those that
/// have an offset; none where that was not among the last 65,535. Known as reuse time or inter-reference
/// gap. Without it places are popular only by region, and a drawn stream touches far more of them: a quarter
/// of the requests of cloudPhysicsIO come back so and do not just go on, nearly half of loop0. Where a close
/// jump leads to a place that was used long ago, the number is taken as 0: used, whenever that was. Source: inter-reference
/// intervals, Denning, CACM 11 (5), 1968, in requests.
struct Reuse {
    recent: Recent,
}

pub(crate) const KIND: Kind = Kind {
    name: "reuse",
    field: Field::Reuse,
    unit: "request",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| Box::new(Reuse { recent: Recent::default() }),
};

impl Feature for Reuse {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        let places = batch.object.iter().zip(batch.offset).map(|(&object, &offset)| (object, offset, offset));
        self.recent.steps(places, out);
    }
}
