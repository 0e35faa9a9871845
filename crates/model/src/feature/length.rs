//! How long a new file is.

use super::{Context, Feature, Field, Kind, Rows};
use crate::catalog::Catalog;
use loadstone_trace::NONE;
use std::sync::Arc;

/// Of an object that was not used before as the first of a request: one past the last byte that any request of the
/// trace touches. None for one that was. What is drawn for a file stays below it; how much of it is there at the
/// start follows from what is read before it is written.
struct Length {
    catalog: Arc<Catalog>,
    seen: Vec<bool>,
}

pub(super) const KIND: Kind = Kind {
    name: "length",
    field: Field::Length,
    unit: "byte",
    signed: false,
    rule: "log2:1",
    make: |context: &Context| Box::new(Length { catalog: Arc::clone(&context.catalog), seen: Vec::new() }),
};

impl Feature for Length {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.object.iter().map(|&object| {
            let at = object as usize;
            if at >= self.seen.len() {
                self.seen.resize(at + 1, false);
            }
            if std::mem::replace(&mut self.seen[at], true) { NONE } else { self.catalog.length(object) }
        }));
    }
}
