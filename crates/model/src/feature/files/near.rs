//! In which directory a new file is.

use crate::feature::files::catalog::{Catalog, ROOT};
use crate::feature::{Field, Kind, each, second};
use loadstone_trace::{NONE, Recency};
use std::sync::Arc;

/// Of an object that was not used before: how many other directories were used since that which it is in, 0: the last
/// one; below 0 so many directories that lead to it are new, too. None for an object that was used before.
///
/// A request uses the directory that its object is in, and then the object, if that is a directory. A search finds
/// file after file in the last directory; a copy works in two trees in turns. Source: stack distance (Mattson et al.,
/// IBM Systems Journal 9, 1970) of directories in place of pages.
pub(crate) const NEAR: Kind = Kind::new("near", Field::Near, "directory", "log2:1", |context| {
    let mut directories = Recency::default();
    directories.touch(0, u64::from(ROOT));
    let mut near = Near { catalog: Arc::clone(&context.catalog), directories, seen: Vec::new() };
    each(move |rows, i| {
        let object = rows.object[i];
        let known = near.seen.get(object as usize).copied().unwrap_or(false);
        let number = if known { NONE } else { near.find(near.catalog.parent(object)) };
        if let Some(second) = second(rows, i) {
            near.touch(second);
        }
        near.touch(object);
        number
    })
})
.signed();

/// Directories in the order in which they were used last, and the objects that were used.
struct Near {
    catalog: Arc<Catalog>,
    directories: Recency,
    seen: Vec<bool>,
}

impl Near {
    /// Uses an object and what is around it.
    fn touch(&mut self, object: u32) {
        let at = object as usize;
        if at >= self.seen.len() {
            self.seen.resize(at + 1, false);
        }
        self.directories.touch(0, u64::from(self.catalog.parent(object)));
        if let Some(own) = self.catalog.own(object) {
            self.directories.touch(0, u64::from(own));
        }
        self.seen[at] = true;
    }

    /// The distance of a directory; where it is new, how many are, which are used then.
    fn find(&mut self, directory: u32) -> i64 {
        let mut new = Vec::new();
        let mut at = directory;
        loop {
            match self.directories.distance(0, u64::from(at)) {
                Some(distance) if new.is_empty() => return distance as i64,
                Some(_) => break,
                None => new.push(at),
            }
            at = self.catalog.above(at);
        }
        for &directory in new.iter().rev() {
            self.directories.touch(0, u64::from(directory));
        }
        -(new.len() as i64)
    }
}
