//! Which answer its actor waited for.

use crate::feature::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;
use loadstone_trace::depend::{Causes, MOST_BACK, WITHIN_NS};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Requests of its actor from the one whose completion it waited for to this one: 1 where every request waits for the one
/// before, 4 where four are kept in flight. That completion is the last one of the actor, as for `think`; none where
/// there is none. With `think` it tells the load without telling times (MDH thesis, sections 2.5 and 2.6).
struct After {
    causes: Causes,
    /// Requests of each actor so far.
    counts: FxHashMap<u32, i64>,
    /// Of the last rows, their number among those of their actor.
    numbers: VecDeque<i64>,
}

pub(crate) const KIND: Kind = Kind {
    name: "after",
    field: Field::After,
    unit: "request",
    signed: false,
    rule: "log2:2",
    make: |_: &Context| {
        Box::new(After {
            causes: Causes::new(WITHIN_NS),
            counts: FxHashMap::default(),
            numbers: VecDeque::new(),
        })
    },
};

impl Feature for After {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        for i in 0..batch.len() {
            let (time, latency, actor) = (batch.time[i], batch.latency[i], batch.actor[i]);
            let back = match batch.after.get(i) {
                Some(&after) => after,
                None => self.causes.next(time, latency, actor).map_or(0, |cause| cause.after),
            };
            let count = self.counts.entry(actor).or_default();
            let number = *count;
            *count += 1;
            let cause = self.numbers.len().checked_sub(back as usize).filter(|_| back > 0);
            // A damaged trace may name a request of another actor.
            out.push(cause.map_or(NONE, |at| (number - self.numbers[at]).max(1)));
            self.numbers.push_back(number);
            if self.numbers.len() as u64 > MOST_BACK {
                self.numbers.pop_front();
            }
        }
    }
}
