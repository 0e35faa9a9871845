//! What the request touches.

use super::{Context, Feature, Field, Kind, Rows};

/// Dense id of the device, file or handle.
struct Object;

pub(super) const KIND: Kind = Kind {
    name: "object",
    field: Field::Object,
    unit: "object id",
    signed: false,
    rule: "category",
    make: |_: &Context| Box::new(Object),
};

impl Feature for Object {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.object.iter().map(|&v| i64::from(v)));
    }
}
