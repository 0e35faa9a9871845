//! Which second file a request has.

use crate::feature::{Context, Feature, Field, Kind, Rows, second};
use loadstone_trace::{NONE, Recency};

/// As `file`, of the second object of a rename, link, symlink or copy; -1 for one that was not used before, none for
/// a request that has no second object. Source: as of `file`.
struct Other {
    used: Recency,
}

pub(crate) const KIND: Kind = Kind {
    name: "other",
    field: Field::Other,
    unit: "object",
    signed: true,
    rule: "log2:1",
    make: |_: &Context| Box::new(Other { used: Recency::default() }),
};

impl Feature for Other {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.object.iter().enumerate().map(|(i, &object)| {
            let second = second(batch, i);
            let distance = second.map(|second| self.used.touch(second, 0));
            self.used.touch(object, 0);
            distance.map_or(NONE, |distance| distance.map_or(-1, |distance| distance as i64))
        }));
    }
}
