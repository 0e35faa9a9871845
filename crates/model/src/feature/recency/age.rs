//! How long a place has been part of the footprint.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;
use loadstone_trace::lru::blocks;
use rustc_hash::FxHashMap;

/// Requests since the first 4 KiB block of this one was first read or written: the age of its part of the footprint. 0
/// where it is new, none for requests that move no data. It tells files that are written once and read for long from
/// those that come and go, whatever was used last. Remembers every block, 24 bytes each. Source: ours, after the
/// lifetimes of data in Baker et al., SOSP 1991, which end where it is written over.
struct Age {
    first: FxHashMap<(u32, u64), u64>,
    requests: u64,
}

pub(crate) const KIND: Kind = Kind {
    name: "age",
    field: Field::Derived,
    unit: "request",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| Box::new(Age { first: FxHashMap::default(), requests: 0 }),
};

impl Feature for Age {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        for i in 0..batch.len() {
            let now = self.requests;
            self.requests += 1;
            let mut age = NONE;
            for (n, block) in blocks(batch.op[i], batch.offset[i], batch.size[i]).enumerate() {
                let first = *self.first.entry((batch.object[i], block)).or_insert(now);
                if n == 0 {
                    age = (now - first) as i64;
                }
            }
            out.push(age);
        }
    }
}
