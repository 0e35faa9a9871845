//! Who asked.

use crate::feature::{Context, Feature, Field, Kind, Rows};

/// Dense id of the process, thread or client; 0 where the trace has none. Source: "process identifier", MDH thesis
/// section 3.2.
struct Actor;

pub(crate) const KIND: Kind = Kind {
    name: "actor",
    field: Field::Actor,
    unit: "actor id",
    signed: false,
    rule: "category",
    make: |_: &Context| Box::new(Actor),
};

impl Feature for Actor {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.actor.iter().map(|&v| i64::from(v)));
    }
}
