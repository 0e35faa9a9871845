//! Whether the request succeeded.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;

/// 0 for a request that succeeded, else the negative errno; none where the trace does not tell. Most failures in
/// traces of system calls are of names that are looked for and are not there. Source: the result column of strace(1),
/// the status of RFC 1813.
struct Outcome;

pub(crate) const KIND: Kind = Kind {
    name: "result",
    field: Field::Result,
    unit: "errno",
    signed: true,
    rule: "category",
    make: |_: &Context| Box::new(Outcome),
};

impl Feature for Outcome {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend((0..batch.len()).map(|i| match batch.result.get(i) {
            None | Some(&NONE) => NONE,
            Some(&result) => result.min(0),
        }));
    }
}
