//! How the request lies relative to pages.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;

/// Bytes of a page.
pub(crate) const PAGE: i64 = 4096;

/// Offset modulo 4 KiB. Partitions and files keep most requests at one remainder, and storage that
/// must read, change and write pages feels the difference, which buckets of jumps and regions lose. Source: the
/// alignment that `blockalign` of fio(1) sets.
struct Align;

pub(crate) const KIND: Kind = Kind {
    name: "align",
    field: Field::Align,
    unit: "byte",
    signed: false,
    rule: "exact+linear:4096",
    make: |_: &Context| Box::new(Align),
};

impl Feature for Align {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.offset.iter().map(|&offset| if offset == NONE { NONE } else { offset % PAGE }));
    }
}
