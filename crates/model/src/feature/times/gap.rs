//! How long after the previous request this one comes.

use crate::feature::{Context, Feature, Field, Kind, Rows};

/// Nanoseconds since the previous request of the stream, whatever it touched; 0 for the first.
/// Source: "inter-arrival time", MDH thesis section 3.2.
struct Gap {
    last: Option<i64>,
}

pub(crate) const KIND: Kind = Kind {
    name: "gap",
    field: Field::Gap,
    unit: "ns",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| Box::new(Gap { last: None }),
};

impl Feature for Gap {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        let Some(&first) = batch.time.first() else { return };
        let mut last = self.last.unwrap_or(first);
        out.extend(batch.time.iter().map(|&t| {
            let gap = t - last;
            last = t;
            gap
        }));
        self.last = Some(last);
    }
}
