//! What the request asks for.

use crate::feature::{Context, Feature, Field, Kind, Rows};

/// The frozen op code, `docs/reference/formats/trace.md`. Source: "operation type", MDH thesis section 3.2.
struct Op;

pub(crate) const KIND: Kind = Kind {
    name: "op",
    field: Field::Op,
    unit: "op code",
    signed: false,
    rule: "category",
    make: |_: &Context| Box::new(Op),
};

impl Feature for Op {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.op.iter().map(|&v| i64::from(v)));
    }
}
