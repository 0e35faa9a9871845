//! What every user of a series relies on, checked of one that was read and before one is kept or written.

use super::{Kind, Mark, Series, Tree, tag};
use crate::chunks::{Chunks, MOST_CHUNK};
use crate::names::{MOST_NAME, MOST_PATH, Name, Names};
use std::path::PathBuf;

/// Largest file, bytes: Linux counts with signed numbers.
const MOST_FILE: u64 = i64::MAX as u64;

type Check = std::result::Result<(), String>;

/// Whether a symbolic link can lead there. Where that is does not matter: nothing is read or written through it.
#[must_use]
pub fn is_target(bytes: &[u8]) -> bool {
    bytes.len() <= MOST_PATH && !bytes.contains(&0)
}

impl Series {
    /// Whether all that is promised of a series holds: what is wrong, if anything is.
    ///
    /// # Errors
    /// When a reference leads nowhere, a name leads elsewhere, or a number is beyond what can be.
    pub fn check(&self) -> Check {
        self.check_shared()?;
        (0..self.trees.len()).try_for_each(|i| self.check_tree(i))
    }

    /// The same of one snapshot.
    ///
    /// # Errors
    /// As [`Series::check`].
    pub fn check_snapshot(&self, i: usize) -> Check {
        self.check_shared()?;
        self.check_tree(i)
    }

    fn check_tree(&self, i: usize) -> Check {
        let tree = self.trees.get(i).ok_or_else(|| format!("snapshot {i} is not there"))?;
        tree.check(&self.names, &self.chunks).map_err(|what| format!("snapshot {i}: {what}"))
    }

    fn check_shared(&self) -> Check {
        if self.names.bytes.first() != Some(&0) || self.names.extensions.first().is_none_or(|e| !e.is_empty())
        {
            return Err("section \"name\" or \"exts\" is missing".into());
        }
        self.names.check()?;
        if self.chunks.packed.iter().any(|packed| packed & MOST_CHUNK == 0) {
            return Err("a chunk is empty".into());
        }
        Ok(())
    }
}

impl Tree {
    fn check(&self, names: &Names, chunks: &Chunks) -> Check {
        let (dirs, files) = (&self.dirs, &self.files);
        let count = dirs.parent.len();
        if count == 0 || dirs.name.len() != count || dirs.private.len() != count {
            return Err("columns of directories differ in length".into());
        }
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
        if files.dir.iter().any(|dir| *dir as usize >= self.dirs()) {
            return Err("a file is in a directory that is not there".into());
        }
        if files.extension.iter().any(|extension| usize::from(*extension) >= names.extensions.len()) {
            return Err("an extension is not there".into());
        }
        self.check_names(names)?;
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
        if let Some(i) = files.size.iter().position(|size| *size > MOST_FILE) {
            return Err(format!("file {i} has {} bytes, beyond 2^63", files.size[i]));
        }
        (0..count as u32).filter(|file| files.private[*file as usize] != 0).try_for_each(|file| {
            self.check_records(file).map_err(|what| {
                format!("file {file} (byte {} of the private sections): {what}", files.private[file as usize])
            })
        })
    }

    /// No name leads elsewhere, and none is deeper than can be.
    fn check_names(&self, names: &Names) -> Check {
        let (dirs, files) = (&self.dirs, &self.files);
        if dirs.name[0] != 0 {
            return Err("the root has a name".into());
        }
        let long = |length: usize, above: u32| match above as usize + 1 + length {
            _ if length > MOST_NAME => Err(format!("a name of {length} bytes, where {MOST_NAME} can be")),
            path if path > MOST_PATH => Err(format!("a path of {path} bytes, where {MOST_PATH} can be")),
            path => Ok(path as u32),
        };
        let mut lengths = vec![0u32; dirs.name.len()];
        for dir in 1..lengths.len() {
            let length = names.length(Name(dirs.name[dir]), 0);
            let length = length.and_then(|length| long(length, lengths[dirs.parent[dir] as usize]));
            lengths[dir] = length.map_err(|what| format!("directory {dir} has {what}"))?;
        }
        for file in 0..files.name.len() {
            let length = names.length(Name(files.name[file]), files.extension[file]);
            let length = length.and_then(|length| long(length, lengths[files.dir[file] as usize]));
            length.map_err(|what| format!("file {file} has {what}"))?;
        }
        Ok(())
    }

    /// Holes lie one behind the other in the file, and a link leads somewhere.
    fn check_records(&self, file: u32) -> Check {
        let entry = self.file(file);
        for (tag, bytes) in self.private_of(file) {
            match tag {
                tag::HOLES => {
                    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
                    let mut at = 0;
                    for pair in bytes.chunks(16) {
                        let (offset, length) = pair.split_at(pair.len().min(8));
                        let (offset, length) = (number(offset), number(length));
                        let end = offset.checked_add(length).filter(|end| *end <= entry.size);
                        at = end.filter(|_| pair.len() == 16 && offset >= at).ok_or_else(|| {
                            format!(
                                "a hole of {length} bytes at {offset}, where holes ascend in {} bytes",
                                entry.size
                            )
                        })?;
                    }
                }
                tag::LINK if entry.mark.kind() == Kind::Symlink && !is_target(bytes) => {
                    let begin = bytes[..bytes.len().min(64)].escape_ascii();
                    return Err(format!("a link to \"{begin}\", which cannot be"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Where an entry is that has the name of another one in its directory, so that no tool can make both.
    #[must_use]
    pub fn twice(&self, names: &Names) -> Option<PathBuf> {
        let (dirs, files) = self.entry_hashes(names);
        let mut all: Vec<u64> = dirs[1..].iter().chain(&files).copied().collect();
        all.sort_unstable();
        let again = all.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])?;
        let file = files.iter().position(|hash| *hash == again);
        let dir = dirs.iter().position(|hash| *hash == again).unwrap_or(0);
        Some(file.map_or_else(|| self.dir_path(names, dir as u32), |file| self.path(names, file as u32)))
    }
}
