//! How long its actor waited before asking.

use super::{Context, Feature, Field, Kind, Rows};
use loadstone_trace::NONE;

/// Nanoseconds from the last completion of its actor's requests to this one's submission; none for an actor's
/// first request, while one of its requests is under way, and where latencies are not known. Source: "think
/// time", MDH thesis section 2.6: what an application does between an answer and the next request.
#[derive(Default)]
struct Think {
    /// When the last of an actor's requests completes, by actor.
    ends: Vec<i64>,
}

pub(super) const KIND: Kind = Kind {
    name: "think",
    field: Field::Seen,
    unit: "ns",
    signed: false,
    rule: "log2:1",
    make: |_: &Context| Box::new(Think::default()),
};

impl Feature for Think {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        out.reserve(batch.len());
        for ((&time, &latency), &actor) in batch.time.iter().zip(batch.latency).zip(batch.actor) {
            let actor = actor as usize;
            if actor >= self.ends.len() {
                self.ends.resize(actor + 1, NONE);
            }
            let end = self.ends[actor];
            out.push(if end == NONE || end > time { NONE } else { time - end });
            if latency != NONE {
                self.ends[actor] = end.max(time.saturating_add(latency));
            }
        }
    }
}
