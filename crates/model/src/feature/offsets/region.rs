//! In which part of its object the request lies.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;

/// Offset divided by the width of a region of that object (a power of two, in the model's header).
/// Source: "offset distribution", MDH thesis section 3.2.
struct Region {
    context: Context,
}

pub(crate) const KIND: Kind = Kind {
    name: "region",
    field: Field::Region,
    unit: "region",
    signed: false,
    rule: "log2:64",
    make: |context: &Context| Box::new(Region { context: context.clone() }),
};

impl Feature for Region {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.offset.iter().zip(batch.object).map(|(&offset, &object)| {
            if offset == NONE { NONE } else { offset >> self.context.shift(object) }
        }));
    }
}
