//! How far from the end of the previous request on its object this one starts.

use crate::feature::{Context, Ends, Feature, Field, Kind, Rows};

/// Bytes from the end of the previous request on the same object to the start of this one; 0 is
/// sequential, negative is backwards. None for the first request of an object and for requests
/// without offset, which leave the position as it was. Source: "inter-arrival distance", MDH thesis
/// section 3.2, measured from the end so that sequential access is one value whatever its size.
struct Jump {
    ends: Ends,
}

pub(crate) const KIND: Kind = Kind {
    name: "jump",
    field: Field::Jump,
    unit: "byte",
    signed: true,
    rule: "exact+log2:1",
    make: |_: &Context| Box::new(Jump { ends: Ends::default() }),
};

impl Feature for Jump {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.reserve(batch.len());
        for i in 0..batch.len() {
            out.push(self.ends.jump(batch.object[i], batch.offset[i], batch.size[i]));
        }
    }
}
