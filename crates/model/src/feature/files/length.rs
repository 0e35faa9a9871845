//! How long the file is.

use crate::feature::files::catalog::Catalog;
use crate::feature::{Context, Feature, Field, Kind, Rows};
use std::sync::Arc;

/// One past the last byte of the object that any request of the trace touches, before or after; 0 where none does. A new
/// file gets its length by it, and of the others it tells those apart that much happens to, such as a database among
/// what is copied. What is drawn for a file stays below it; how much of it is there at the start follows from what
/// is read before it is written. Source: file size, which Impressions draws (Agrawal et al., FAST 2009), as
/// far as a trace tells it.
struct Length {
    catalog: Arc<Catalog>,
}

pub(crate) const KIND: Kind = Kind {
    name: "length",
    field: Field::Length,
    unit: "byte",
    signed: false,
    rule: "log2:1",
    make: |context: &Context| Box::new(Length { catalog: Arc::clone(&context.catalog) }),
};

impl Feature for Length {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.object.iter().map(|&object| self.catalog.length(object)));
    }
}
