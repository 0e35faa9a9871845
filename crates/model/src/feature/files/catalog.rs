//! What a whole trace says of its files: where each is, what it is, how far it is used.

use crate::error::Result;
use loadstone_trace::{Batch, NO_OBJECT, NONE, Object, Op, Requests, tree};
use rustc_hash::FxHashMap;

/// The directory all others are in, which is in itself.
pub(crate) const ROOT: u32 = 0;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    #[default]
    File,
    Directory,
    Link,
}

impl Kind {
    /// The kind of this number in a state, which has two bits for it.
    pub fn of(state: i64) -> Kind {
        match state & 3 {
            1 => Kind::Directory,
            2 => Kind::Link,
            _ => Kind::File,
        }
    }
}

/// Objects of a trace by dense id. One that is not known is an empty file in the root.
#[derive(Debug, Default)]
pub struct Catalog {
    kinds: Vec<Kind>,
    /// One past the last byte touched.
    lengths: Vec<i64>,
    /// The directory that each is in.
    parents: Vec<u32>,
    /// The directory that each is, or [`NO_OBJECT`].
    own: Vec<u32>,
    /// The directory that each directory is in.
    above: Vec<u32>,
}

impl Catalog {
    /// Of all requests of a stream; `names` tells the names of its objects when it has ended. `progress` is called after
    /// every batch, and an error of it stops the work.
    ///
    /// # Errors
    /// Those of the stream and of `progress`.
    pub fn of<R: Requests>(
        requests: &mut R,
        names: impl FnOnce(&R) -> Vec<Object>,
        mut progress: impl FnMut(&R) -> loadstone_trace::Result<()>,
    ) -> Result<Catalog> {
        let (mut catalog, mut batch) = (Catalog::default(), Batch::default());
        while requests.next(&mut batch)? {
            catalog.add(&batch);
            progress(requests)?;
        }
        catalog.name(&names(requests));
        Ok(catalog)
    }

    fn add(&mut self, batch: &Batch) {
        for i in 0..batch.len() {
            let object = batch.object[i] as usize;
            if object >= self.kinds.len() {
                self.kinds.resize(object + 1, Kind::File);
                self.lengths.resize(object + 1, 0);
            }
            if batch.result.get(i).is_some_and(|result| *result < 0 && *result != NONE) {
                continue;
            }
            match Op::from_code(batch.op[i]) {
                Some(Op::Mkdir | Op::Rmdir | Op::Readdir | Op::Readdirplus) => {
                    self.kinds[object] = Kind::Directory;
                }
                Some(Op::Symlink | Op::Readlink) => self.kinds[object] = Kind::Link,
                _ => {}
            }
            if batch.offset[i] >= 0 {
                let end = batch.offset[i].saturating_add(batch.size[i].max(0));
                self.lengths[object] = self.lengths[object].max(end);
            }
        }
    }

    fn name(&mut self, objects: &[Object]) {
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        numbers.insert(".".into(), ROOT);
        let mut above = vec![ROOT];
        let mut number = |path: &str| {
            let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            ends.fold(ROOT, |parent, end| {
                *numbers.entry(path[..end].into()).or_insert_with(|| {
                    above.push(parent);
                    above.len() as u32 - 1
                })
            })
        };
        let most = objects.iter().map(|object| object.id as usize + 1).max().unwrap_or(0);
        self.kinds.resize(most.max(self.kinds.len()), Kind::File);
        (self.parents, self.own) = (vec![ROOT; most], vec![NO_OBJECT; most]);
        let mut paths = Vec::new();
        for object in objects {
            let Some(path) = tree::inside(&object.name) else { continue };
            if let Some((parent, _)) = path.rsplit_once('/') {
                self.parents[object.id as usize] = number(parent);
            }
            if self.kinds[object.id as usize] == Kind::Directory {
                number(&path);
            }
            paths.push((object.id as usize, path));
        }
        for (object, path) in paths {
            let Some(&own) = numbers.get(&path) else { continue };
            self.own[object] = own;
            // What has something in it is a directory, or leads to one.
            if self.kinds[object] == Kind::File {
                self.kinds[object] = Kind::Directory;
            }
        }
        self.above = above;
    }

    pub(crate) fn kind(&self, object: u32) -> Kind {
        self.kinds.get(object as usize).copied().unwrap_or_default()
    }

    pub(crate) fn length(&self, object: u32) -> i64 {
        self.lengths.get(object as usize).copied().unwrap_or(0)
    }

    pub(crate) fn parent(&self, object: u32) -> u32 {
        self.parents.get(object as usize).copied().unwrap_or(ROOT)
    }

    /// The directory that an object is.
    pub(crate) fn own(&self, object: u32) -> Option<u32> {
        self.own.get(object as usize).copied().filter(|own| *own != NO_OBJECT)
    }

    pub(crate) fn above(&self, directory: u32) -> u32 {
        self.above.get(directory as usize).copied().unwrap_or(ROOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_told_by_what_is_in_them_and_what_is_done_to_them() {
        let mut catalog = Catalog::default();
        let names = ["/a/b/file", "/a/b", "/made", "/link", "/file", "/"];
        let ops = [Op::Read, Op::Stat, Op::Mkdir, Op::Readlink, Op::Readdir, Op::Stat];
        let mut batch = Batch::default();
        for (i, op) in ops.into_iter().enumerate() {
            batch.op.push(op as u8);
            batch.object.push(i as u32);
            batch.offset.push(if op == Op::Read { 4096 } else { NONE });
            batch.size.push(100);
            // The directory that is read is none: it failed.
            batch.result.push(if op == Op::Readdir { -20 } else { 0 });
            batch.time.push(0);
        }
        catalog.add(&batch);
        let object = |(id, name): (usize, &&str)| Object { id: id as u32, name: (*name).into() };
        catalog.name(&names.iter().enumerate().map(object).collect::<Vec<_>>());
        use Kind::{Directory, File, Link};
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|o| catalog.kind(o)),
            [File, Directory, Directory, Link, File, Directory]
        );
        assert_eq!((catalog.length(0), catalog.length(1)), (4196, 0));
        assert_eq!(Some(catalog.parent(0)), catalog.own(1));
        assert_eq!(catalog.above(catalog.parent(0)), catalog.parent(1));
        assert_eq!((catalog.parent(2), catalog.own(4), catalog.own(5)), (ROOT, None, Some(ROOT)));
        assert_eq!((catalog.kind(99), catalog.parent(99), catalog.above(99)), (File, ROOT, ROOT));
    }
}
