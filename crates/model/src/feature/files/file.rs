//! How many other files were used since the request's was.

use crate::feature::{Context, Feature, Field, Kind, Rows, second};
use loadstone_trace::{NONE, Recency};

/// LRU stack distance of the object: how many others were used since it was, 0 for that of the request before;
/// none for one that was not used before. Second objects of requests are used just before the first. In place of
/// `object`, where there are too many objects for each to be a value of its own. Source: Mattson et al., IBM Systems
/// Journal 9, 1970, of files in place of pages.
struct File {
    used: Recency,
}

pub(crate) const KIND: Kind = Kind {
    name: "file",
    field: Field::File,
    unit: "object",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| Box::new(File { used: Recency::default() }),
};

impl Feature for File {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.object.iter().enumerate().map(|(i, &object)| {
            let distance = self.used.distance(object, 0);
            if let Some(second) = second(batch, i) {
                self.used.touch(second, 0);
            }
            self.used.touch(object, 0);
            distance.map_or(NONE, |distance| distance as i64)
        }));
    }
}
