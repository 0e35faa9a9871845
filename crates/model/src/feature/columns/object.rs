//! What the request touches.

use crate::feature::{Context, Feature, Field, Kind, Rows};

/// Dense id of the device, file or handle. Source: "offset distribution", MDH thesis section 3.2, whose offsets are of
/// one device; the device number of blkparse(1), the file handle of RFC 1813.
struct Object;

pub(crate) const KIND: Kind = Kind {
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
