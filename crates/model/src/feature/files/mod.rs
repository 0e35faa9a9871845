//! Features of names: which file, what happened to it, where it is new.

pub(crate) mod catalog;
mod near;

use crate::feature::node::Node;
use crate::feature::{Field, Kind, each, second};
use loadstone_trace::{NONE, Recency};
pub(crate) use near::NEAR;
use std::sync::Arc;

/// LRU stack distance of the object: how many others were used since it was, 0 for that of the request before;
/// none for one that was not used before. Second objects of requests are used just before the first. In place of
/// `object`, where there are too many objects for each to be a value of its own. Source: Mattson et al., IBM Systems
/// Journal 9, 1970, of files in place of pages.
pub(crate) const FILE: Kind = Kind::new("file", Field::File, "object", "log2:1", |_| {
    let mut used = Recency::default();
    each(move |rows, i| {
        let distance = used.distance(0, rows.object[i].into());
        if let Some(second) = second(rows, i) {
            used.touch(0, second.into());
        }
        used.touch(0, rows.object[i].into());
        distance.map_or(NONE, |distance| distance as i64)
    })
});

/// As `file`, of the second object of a rename, link, symlink or copy; -1 for one that was not used before, none for
/// a request that has no second object. Source: as of `file`.
pub(crate) const OTHER: Kind = Kind::new("other", Field::Other, "object", "log2:1", |_| {
    let mut used = Recency::default();
    each(move |rows, i| {
        let distance = second(rows, i).map(|second| used.touch(0, second.into()));
        used.touch(0, rows.object[i].into());
        distance.map_or(NONE, |distance| distance.map_or(-1, |distance| distance as i64))
    })
})
.signed();

/// One past the last byte of the object that any request of the trace touches, before or after; 0 where none does. A new
/// file gets its length by it, and of the others it tells those apart that much happens to, such as a database among
/// what is copied. What is drawn for a file stays below it; how much of it is there at the start follows from what
/// is read before it is written. Source: file size, which Impressions draws (Agrawal et al., FAST 2009), as
/// far as a trace tells it.
pub(crate) const LENGTH: Kind = Kind::new("length", Field::Length, "byte", "log2:1", |context| {
    let catalog = Arc::clone(&context.catalog);
    each(move |rows, i| catalog.length(rows.object[i]))
});

/// What the object is and what was done to it: 0 for a file, 1 for a directory, 2 for a symbolic link; 4 more if its
/// name is there, as far as results tell; 8 more if it was the second object of the last request it was in; and 16
/// times the code of that request's op, 255 for an object that was not used before.
///
/// So what is drawn for a file follows what was done to it: it is read when it is open, and made when it is not there.
/// Source: the states that system calls need of a file (ARTC, Weiss et al., SOSP 2013).
pub(crate) const STATE: Kind = Kind::new("state", Field::State, "", "category", |context| {
    let (catalog, mut nodes) = (Arc::clone(&context.catalog), Vec::new());
    each(move |rows, i| {
        let (op, object) = (rows.op[i], rows.object[i]);
        let result = rows.result.get(i).copied().unwrap_or(NONE);
        let node = node(&mut nodes, object);
        let state = node.state(catalog.kind(object));
        node.take(op, result);
        if let Some(second) = second(rows, i) {
            self::node(&mut nodes, second).take_second(op, result);
        }
        state
    })
});

fn node(nodes: &mut Vec<Node>, object: u32) -> &mut Node {
    let at = object as usize;
    if at >= nodes.len() {
        nodes.resize(at + 1, Node::default());
    }
    &mut nodes[at]
}
