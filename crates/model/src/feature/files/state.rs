//! What happened to the file before.

use crate::feature::files::catalog::Catalog;
use crate::feature::node::Node;
use crate::feature::{Context, Feature, Field, Kind, Rows, second};
use loadstone_trace::NONE;
use std::sync::Arc;

/// What the object is and what was done to it: 0 for a file, 1 for a directory, 2 for a symbolic link; 4 more if its
/// name is there, as far as results tell; 8 more if it was the second object of the last request it was in; and 16
/// times the code of that request's op, 255 for an object that was not used before.
///
/// So what is drawn for a file follows what was done to it: it is read when it is open, and made when it is not there.
/// Source: the states that system calls need of a file (ARTC, Weiss et al., SOSP 2013).
struct State {
    catalog: Arc<Catalog>,
    nodes: Vec<Node>,
}

pub(crate) const KIND: Kind = Kind {
    name: "state",
    field: Field::State,
    unit: "",
    signed: false,
    rule: "category",
    make: |context: &Context| Box::new(State { catalog: Arc::clone(&context.catalog), nodes: Vec::new() }),
};

impl State {
    fn node(&mut self, object: u32) -> &mut Node {
        let at = object as usize;
        if at >= self.nodes.len() {
            self.nodes.resize(at + 1, Node::default());
        }
        &mut self.nodes[at]
    }
}

impl Feature for State {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        out.clear();
        for (i, (&op, &object)) in batch.op.iter().zip(batch.object).enumerate() {
            let kind = self.catalog.kind(object);
            let result = batch.result.get(i).copied().unwrap_or(NONE);
            out.push(self.node(object).state(kind));
            self.node(object).take(op, result);
            if let Some(second) = second(batch, i) {
                self.node(second).take_second(op, result);
            }
        }
    }
}
