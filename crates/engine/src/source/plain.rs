//! Requests of one size at random or ascending offsets, made by the thread that issues them.
//!
//! Making one takes two nanoseconds, handing it from one thread to another ten: only sources that decode, draw from laws
//! or keep to times are read ahead by a thread of their own.

use crate::request::Request;
use crate::source::placement::Placer;
use crate::source::uniform::Uniform;
use loadstone_plan::{Extent, Order, Pace, Source, Worker};

/// Requests made at once, few enough for the first-level cache.
const ROWS: u64 = 64;

/// A uniform source whose requests need no looking up.
pub struct Plain {
    source: Uniform,
    /// What the reads of each of the source's extents have in common, from its beginning on.
    first: Vec<Request>,
    size: u64,
    left: u64,
}

impl Plain {
    /// Of a source that is plain, for a worker whose requests wait for nothing; nothing for all others.
    pub fn new(worker: &Worker, source: Uniform, placer: &Placer) -> Option<Plain> {
        let Source::Uniform { size, .. } = &worker.source else { return None };
        if (worker.pace, worker.order) != (Pace::Closed, Order::None) || !source.is_plain() {
            return None;
        }
        let extent = |object: u32| worker.map.objects.iter().find(|extent: &&Extent| extent.object == object);
        let first =
            source.objects().map(|object| placer.first(extent(object)?, *size)).collect::<Option<_>>()?;
        let left = if worker.requests == 0 { u64::MAX } else { worker.requests };
        Some(Plain { source, first, size: *size, left })
    }

    /// Puts the next requests in place of those of a block; none when there are no more.
    pub fn fill(&mut self, block: &mut Vec<Request>) {
        block.clear();
        let count = self.left.min(ROWS);
        self.left -= count;
        block.extend((0..count).map(|_| {
            let (extent, number, read) = self.source.pick();
            let first = &self.first[extent];
            Request { offset: first.offset + number * self.size, op: self.source.code(read), ..*first }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::arrival::Arrivals;
    use loadstone_plan::{Arrival, Plan};
    use loadstone_trace::{Batch, Requests};
    use serde_json::json;

    fn plan(source: serde_json::Value) -> Plan {
        let plan = json!({
            "version": 1,
            "targets": [
                {"id": "a", "kind": "null", "size": 1 << 20},
                {"id": "b", "kind": "null", "size": 1 << 22},
            ],
            "workers": [{
                "source": source,
                "backend": "null",
                "requests": 1000,
                "map": {"objects": [
                    {"object": 0, "target": "b", "base": 8192, "size": 1 << 20},
                    {"object": 1, "target": "a", "base": 0, "size": 1 << 20},
                ]},
            }],
            "steps": [{"step": "run"}],
        });
        Plan::parse(&plan.to_string()).unwrap()
    }

    fn source(plan: &Plan) -> Uniform {
        let arrivals = Arrivals::new(0.0, &Arrival::Constant, 0);
        Uniform::new(&plan.workers[0].source, 7, 7, &plan.workers[0].map.objects, arrivals).unwrap()
    }

    #[test]
    fn they_are_those_that_are_handed_over() {
        for source_of in [
            json!({"kind": "uniform", "reads": 0.5, "size": 4096}),
            json!({"kind": "uniform", "reads": 1.0, "size": 512}),
            json!({"kind": "uniform", "reads": 0.0, "size": 65536, "sequential": true}),
        ] {
            let plan = plan(source_of);
            let mut placer = Placer::new(&plan, 0).unwrap();
            let mut plain = Plain::new(&plan.workers[0], source(&plan), &placer).unwrap();
            let (mut own, mut block) = (Vec::new(), Vec::new());
            loop {
                plain.fill(&mut block);
                if block.is_empty() {
                    break;
                }
                own.extend_from_slice(&block);
            }
            let (mut rows, mut batch, mut other) = (source(&plan), Batch::default(), Vec::new());
            rows.next(&mut batch).unwrap();
            placer.place(&batch, 0..1000, &mut other).unwrap();
            assert_eq!(own, other);
        }
    }

    #[test]
    fn others_are_left_to_a_thread_of_their_own() {
        let not = |source_of: serde_json::Value, change: &dyn Fn(&mut Plan)| {
            let mut plan = plan(source_of);
            change(&mut plan);
            let placer = Placer::new(&plan, 0).unwrap();
            assert!(Plain::new(&plan.workers[0], source(&plan), &placer).is_none());
        };
        not(
            json!({"kind": "uniform", "reads": 1.0, "size": 512, "skew": {"kind": "zipf", "exponent": 1.0}}),
            &|_| {},
        );
        let plain = json!({"kind": "uniform", "reads": 1.0, "size": 512});
        not(plain.clone(), &|plan| plan.workers[0].pace = Pace::Open { speed: 1.0 });
        not(plain.clone(), &|plan| plan.workers[0].map.offsets = loadstone_plan::Offsets::Scale);
        not(plain, &|plan| plan.targets[0].size = 1 << 19);
    }
}
