//! What every user of a tree relies on.

use super::{Mark, Tree};
use crate::chunks::Chunks;
use crate::names::{Name, Names};

impl Tree {
    /// What every user of a tree relies on, checked of one that was read.
    pub(crate) fn check(&self, names: &Names, chunks: &Chunks) -> std::result::Result<(), String> {
        let (dirs, files) = (&self.dirs, &self.files);
        let count = dirs.parent.len();
        if count == 0 || dirs.name.len() != count || dirs.private.len() != count {
            return Err("columns of directories differ in length".into());
        }
        let named = |name: &u32| names.has(Name(*name));
        let parents = dirs.parent.iter().enumerate().skip(1);
        if dirs.parent[0] != 0 || parents.clone().any(|(dir, parent)| *parent as usize >= dir) {
            return Err("a directory comes before its parent".into());
        }
        let count = files.name.len();
        let lengths =
            [files.dir.len(), files.extension.len(), files.mark.len(), files.size.len(), files.private.len()];
        if lengths.iter().any(|length| *length != count) || files.start.len() != count + 1 {
            return Err("columns of files differ in length".into());
        }
        if !dirs.name.iter().chain(&files.name).all(named) {
            return Err("a name is not there, or leads elsewhere".into());
        }
        if files.dir.iter().any(|dir| *dir as usize >= self.dirs()) {
            return Err("a file is in a directory that is not there".into());
        }
        if files.extension.iter().any(|extension| usize::from(*extension) >= names.extensions.len()) {
            return Err("an extension is not there".into());
        }
        if !files.mark.iter().all(|mark| Mark(*mark).is_known()) {
            return Err("a file of an unknown kind or state".into());
        }
        let ends = files.start.last().is_some_and(|end| *end as usize == self.refs.len());
        if files.start[0] != 0 || !ends || !files.start.is_sorted() {
            return Err("chunks of files overlap or are missing".into());
        }
        if self.refs.iter().any(|chunk| *chunk as usize >= chunks.len()) {
            return Err("a chunk is not there".into());
        }
        let private = dirs.private.iter().chain(&files.private);
        if private.clone().any(|at| *at != 0 && *at as usize + 4 > self.private.len()) {
            return Err("a private section is not there".into());
        }
        Ok(())
    }
}
