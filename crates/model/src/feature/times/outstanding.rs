//! How many requests were under way.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests submitted before this one that had not completed when it was submitted, whatever they touched, of
/// those whose latency the trace tells; none before the first of them. The queue depth that the applications
/// kept. Source: "outstanding I/Os", Ahmad, IISWC 2007.
#[derive(Default)]
struct Outstanding {
    /// When those under way complete.
    ends: BinaryHeap<Reverse<i64>>,
    told: bool,
}

pub(crate) const KIND: Kind = Kind {
    name: "outstanding",
    field: Field::Seen,
    unit: "request",
    signed: false,
    rule: "log2:2",
    make: |_: &Context| Box::new(Outstanding::default()),
};

impl Feature for Outstanding {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.extend(batch.time.iter().zip(batch.latency).map(|(&time, &latency)| {
            while self.ends.peek().is_some_and(|Reverse(end)| *end <= time) {
                self.ends.pop();
            }
            self.told |= latency != NONE;
            let outstanding = if self.told { self.ends.len() as i64 } else { NONE };
            if latency != NONE {
                self.ends.push(Reverse(time.saturating_add(latency)));
            }
            outstanding
        }));
    }
}
