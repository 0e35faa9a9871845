//! How many bytes the request touches.

use crate::feature::{Context, Feature, Field, Kind, Rows};

/// Bytes touched. Source: "I/O size", MDH thesis section 3.2.
struct Size;

pub(crate) const KIND: Kind = Kind {
    name: "size",
    field: Field::Size,
    unit: "byte",
    signed: false,
    rule: "exact+log2:2",
    make: |_: &Context| Box::new(Size),
};

impl Feature for Size {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend_from_slice(batch.size);
    }
}
