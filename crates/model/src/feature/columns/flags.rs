//! How it was asked.

use crate::feature::{Context, Feature, Field, Kind, Rows};

/// The request's flags together as one number, bits as frozen in `docs/reference/formats/trace.md`. Source: the RWBS field of
/// blkparse(1).
struct Flags;

pub(crate) const KIND: Kind = Kind {
    name: "flags",
    field: Field::Seen,
    unit: "flag bits",
    signed: false,
    rule: "category",
    make: |_: &Context| Box::new(Flags),
};

impl Feature for Flags {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.flags.iter().map(|&v| i64::from(v)));
    }
}
