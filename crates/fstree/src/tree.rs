//! An fstree: one state of a file system, by columns, so that no file or directory costs an allocation
//! (Tarasov, PhD thesis, Stony Brook University 2013, section 4.3.2).

mod check;
mod lz4;
mod mark;
mod private;
mod series;

use crate::names::{Name, Names};
use crate::{Error, Result};
pub use check::is_target;
pub(crate) use lz4::Shares;
pub use lz4::{Lz4, Lz4Sums};
pub use mark::{Kind, Mark, State, tag};
pub use private::Private;
use private::write_private;
pub(crate) use series::draw;
pub use series::{Chunking, Meta, Resemblance, Series, Stays};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Directories; the first is the root, and parents come before their children.
#[derive(Default, Clone, PartialEq)]
pub struct Dirs {
    /// The directory each is in.
    pub parent: Vec<u32>,
    /// Their names, as [`Name`] has them.
    pub name: Vec<u32>,
    /// Where in [`Tree::private`] the records of each begin; 0: it has none.
    pub private: Vec<u32>,
}

/// Files, and whatever else is in directories.
#[derive(Default, Clone, PartialEq)]
pub struct Files {
    /// The directory each is in.
    pub dir: Vec<u32>,
    /// Their names, as [`Name`] has them.
    pub name: Vec<u32>,
    /// Numbers of their extensions.
    pub extension: Vec<u16>,
    /// Kinds and states, as [`Mark`] has them.
    pub mark: Vec<u8>,
    /// Bytes as stat(2) tells them.
    pub size: Vec<u64>,
    /// Where in `refs` the chunks of each begin, and one more: where those of the last end.
    pub start: Vec<u32>,
    /// Where in [`Tree::private`] the records of each begin; 0: it has none.
    pub private: Vec<u32>,
}

/// One snapshot.
#[derive(Clone, PartialEq)]
pub struct Tree {
    /// Where it came from; empty where it was made up.
    pub label: String,
    /// Its directories.
    pub dirs: Dirs,
    /// Its files.
    pub files: Files,
    /// Chunks of all files, file after file.
    pub refs: Vec<u32>,
    /// Private sections: length of the records, u32, then records of tag, u16, length, u32, and bytes.
    pub private: Vec<u8>,
}

/// A file or directory to be added.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// The directory it is in.
    pub dir: u32,
    /// Its name there.
    pub name: Name,
    /// Its extension.
    pub extension: u16,
    /// Kind and state.
    pub mark: Mark,
    /// Bytes.
    pub size: u64,
    /// Private records.
    pub private: &'a [(u16, &'a [u8])],
}

impl Tree {
    /// One with a root only.
    pub fn new(label: impl Into<String>) -> Tree {
        let mut tree = Tree {
            label: label.into(),
            dirs: Dirs::default(),
            files: Files { start: vec![0], ..Files::default() },
            refs: Vec::new(),
            // 0 says that an object has no section, so none begins there.
            private: vec![0],
        };
        tree.add_dir(0, Name(0));
        tree
    }

    /// Files, links and the like.
    pub fn len(&self) -> usize {
        self.files.name.len()
    }

    /// Whether there are only directories.
    pub fn is_empty(&self) -> bool {
        self.files.name.is_empty()
    }

    /// Directories, the root among them.
    pub fn dirs(&self) -> usize {
        self.dirs.parent.len()
    }

    /// A new directory.
    pub fn add_dir(&mut self, parent: u32, name: Name) -> u32 {
        let number = self.dirs.parent.len() as u32;
        self.dirs.parent.push(parent);
        self.dirs.name.push(name.0);
        self.dirs.private.push(0);
        number
    }

    /// A new file with its chunks.
    ///
    /// # Errors
    /// When there are 2^32 chunks or bytes in private sections.
    pub fn add_file(&mut self, entry: &Entry<'_>, chunks: &[u32]) -> Result<u32> {
        let number = self.files.name.len() as u32;
        let private = self.add_private(entry.private)?;
        self.refs.extend_from_slice(chunks);
        let end = u32::try_from(self.refs.len());
        self.files
            .start
            .push(end.map_err(|_| Error::Option("a snapshot with 2^32 chunks: use larger ones".into()))?);
        self.files.dir.push(entry.dir);
        self.files.name.push(entry.name.0);
        self.files.extension.push(entry.extension);
        self.files.mark.push(entry.mark.0);
        self.files.size.push(entry.size);
        self.files.private.push(private);
        Ok(number)
    }

    /// Files from `entered` to `file` have all their chunks, where files are added first and chunks in their order.
    ///
    /// # Panics
    /// When a file has no such number.
    pub fn fill_starts(&mut self, entered: &mut u32, file: u32) {
        let end = self.refs.len() as u32;
        self.files.start[*entered as usize + 1..=file as usize].fill(end);
        *entered = file;
    }

    /// Chunks of a file, in order.
    pub fn chunks_of(&self, file: u32) -> &[u32] {
        let file = file as usize;
        &self.refs[self.files.start[file] as usize..self.files.start[file + 1] as usize]
    }

    /// Everything about a file but its chunks and private records.
    pub fn file(&self, file: u32) -> Entry<'static> {
        let i = file as usize;
        Entry {
            dir: self.files.dir[i],
            name: Name(self.files.name[i]),
            extension: self.files.extension[i],
            mark: Mark(self.files.mark[i]),
            size: self.files.size[i],
            private: &[],
        }
    }

    /// The private records of a file.
    pub fn private_of(&self, file: u32) -> Private<'_> {
        self.records(self.files.private[file as usize])
    }

    /// The private records of a directory.
    pub fn private_of_dir(&self, dir: u32) -> Private<'_> {
        self.records(self.dirs.private[dir as usize])
    }

    /// Gives a directory private records.
    ///
    /// # Errors
    /// When there are 2^32 bytes of them.
    pub fn set_private_of_dir(&mut self, dir: u32, records: &[(u16, &[u8])]) -> Result<()> {
        self.dirs.private[dir as usize] = self.add_private(records)?;
        Ok(())
    }

    /// Gives a file private records in place of those it has.
    ///
    /// # Errors
    /// When there are 2^32 bytes of them.
    pub fn set_private(&mut self, file: u32, records: &[(u16, &[u8])]) -> Result<()> {
        self.files.private[file as usize] = self.add_private(records)?;
        Ok(())
    }

    fn add_private(&mut self, records: &[(u16, &[u8])]) -> Result<u32> {
        if records.is_empty() {
            return Ok(0);
        }
        write_private(&mut self.private, records)
            .ok_or_else(|| Error::Option("2^32 bytes of private sections in a snapshot: use fewer".into()))
    }

    fn records(&self, at: u32) -> Private<'_> {
        if at == 0 {
            return Private { rest: &[] };
        }
        let rest = &self.private[at as usize..];
        let length = rest.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        Private { rest: rest.get(4..4 + length).unwrap_or(&[]) }
    }

    /// The file that a hard link is a further name of.
    pub fn linked(&self, file: u32) -> Option<u32> {
        let record = self.private_of(file).find(|(tag, _)| *tag == tag::HARD)?.1;
        record.try_into().ok().map(u32::from_le_bytes).filter(|first| *first < file)
    }

    /// Depths of all directories; the root's is 0.
    pub fn depths(&self) -> Vec<u16> {
        let mut depths = vec![0u16; self.dirs()];
        for dir in 1..depths.len() {
            depths[dir] = depths[self.dirs.parent[dir] as usize].saturating_add(1);
        }
        depths
    }

    /// Bytes of the paths of all directories and files below the root, each with a slash.
    pub fn path_bytes(&self, names: &Names) -> u64 {
        let mut name = Vec::new();
        let mut length = |number: u32, kind: u8, extension: u16| {
            name.clear();
            names.write(Name(number), kind, extension, &mut name);
            name.len() as u64 + 1
        };
        let mut dirs = vec![0u64; self.dirs()];
        for dir in 1..dirs.len() {
            dirs[dir] =
                dirs[self.dirs.parent[dir] as usize].saturating_add(length(self.dirs.name[dir], b'd', 0));
        }
        let files = (0..self.files.dir.len() as u32).map(|file| {
            let entry = self.file(file);
            let above = dirs.get(entry.dir as usize).copied().unwrap_or(0);
            above.saturating_add(length(entry.name.0, b'f', entry.extension))
        });
        files.chain(dirs.iter().copied()).fold(0, u64::saturating_add)
    }

    /// Path of a directory below the root.
    pub fn dir_path(&self, names: &Names, dir: u32) -> PathBuf {
        let mut above = Vec::new();
        let mut at = dir;
        while at != 0 {
            above.push(at);
            at = self.dirs.parent[at as usize];
        }
        let mut path = PathBuf::new();
        for dir in above.into_iter().rev() {
            let mut name = Vec::new();
            names.write(Name(self.dirs.name[dir as usize]), b'd', 0, &mut name);
            path.push(OsString::from_vec(name));
        }
        path
    }

    /// Path of a file below the root.
    pub fn path(&self, names: &Names, file: u32) -> PathBuf {
        let entry = self.file(file);
        let mut name = Vec::new();
        names.write(entry.name, b'f', entry.extension, &mut name);
        let mut path = self.dir_path(names, entry.dir);
        path.push(OsString::from_vec(name));
        path
    }

    /// Numbers that stand for the full paths of all files.
    pub fn path_hashes(&self, names: &Names) -> Vec<u64> {
        self.entry_hashes(names).1
    }

    /// Numbers that stand for the full paths of all directories, and of all files.
    fn entry_hashes(&self, names: &Names) -> (Vec<u64>, Vec<u64>) {
        let mut name = Vec::new();
        let mut hash_of = |above: u64, one: Name, kind: u8, extension: u16| {
            name.clear();
            name.extend_from_slice(&above.to_le_bytes());
            names.write(one, kind, extension, &mut name);
            let mut first = [0; 8];
            first.copy_from_slice(&blake3::hash(&name).as_bytes()[..8]);
            u64::from_le_bytes(first)
        };
        let mut dirs = vec![0; self.dirs()];
        for dir in 1..dirs.len() {
            let above = dirs[self.dirs.parent[dir] as usize];
            dirs[dir] = hash_of(above, Name(self.dirs.name[dir]), b'd', 0);
        }
        let of_file = |file| {
            let entry = self.file(file);
            hash_of(dirs[entry.dir as usize], entry.name, b'f', entry.extension)
        };
        let files = (0..self.len() as u32).map(of_file).collect();
        (dirs, files)
    }

    /// Bytes that the columns take, by directories, files, chunks of files and private sections.
    pub fn memory(&self) -> [usize; 4] {
        let files = &self.files;
        [
            4 * (self.dirs.parent.len() + self.dirs.name.len() + self.dirs.private.len()),
            4 * (files.dir.len() + files.name.len() + files.start.len() + files.private.len())
                + 8 * files.size.len()
                + 2 * files.extension.len()
                + files.mark.len(),
            4 * self.refs.len(),
            self.private.len(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::Chunks;

    fn entry(dir: u32, name: u32) -> Entry<'static> {
        let mark = Mark::new(Kind::File, State::New);
        Entry { dir, name: Name::made(name), extension: 0, mark, size: 9, private: &[] }
    }

    #[test]
    fn objects_take_no_more_than_the_papers() {
        let (mut tree, mut chunks) = (Tree::new(""), Chunks::new(12));
        for i in 0..1000 {
            tree.add_dir(i / 3, Name::made(i));
            chunks.add(crate::chunks::Packed::new(8192, Ratio(1)), &[i as u8; 12]).unwrap();
        }
        use crate::chunks::Ratio;
        for i in 0..10_000 {
            tree.add_file(&entry(i % 1000, i), &[i % 1000, (i + 1) % 1000]).unwrap();
        }
        let [dirs, files, refs, _] = tree.memory();
        // Section 4.3.2: 36, 29 and 20 bytes.
        assert!(dirs as f64 / tree.dirs() as f64 <= 36.0, "{dirs}");
        assert!(files as f64 / tree.len() as f64 <= 29.0, "{files}");
        // Even if no two chunks are alike.
        let own = 4.0 * chunks.packed.len() as f64 + chunks.prints.len() as f64;
        let chunk = refs as f64 / tree.refs.len() as f64 + own / chunks.len() as f64;
        assert!(chunk <= 20.0, "{chunk}");
    }

    #[test]
    fn private_records_come_back() {
        let mut tree = Tree::new("");
        let records: [(u16, &[u8]); 2] = [(tag::LINK, b"../x"), (tag::EXTENSION, b"")];
        tree.add_file(&entry(0, 1), &[]).unwrap();
        tree.add_file(&Entry { private: &records, ..entry(0, 2) }, &[]).unwrap();
        assert_eq!(tree.private_of(0).count(), 0);
        assert_eq!(tree.private_of(1).collect::<Vec<_>>(), records);
        tree.set_private_of_dir(0, &records[..1]).unwrap();
        assert_eq!(tree.private_of_dir(0).collect::<Vec<_>>(), records[..1]);
    }

    #[test]
    fn paths_are_those_of_all_directories_above() {
        let mut tree = Tree::new("");
        let names = Names::new();
        let one = tree.add_dir(0, Name::made(1));
        let two = tree.add_dir(one, Name::made(2));
        let file = tree.add_file(&entry(two, 255), &[]).unwrap();
        assert_eq!(tree.path(&names, file), PathBuf::from("d1/d2/fff"));
        assert_eq!(tree.depths(), [0, 1, 2]);
        let hashes = tree.path_hashes(&names);
        tree.add_file(&entry(one, 255), &[]).unwrap();
        assert_ne!(tree.path_hashes(&names)[1], hashes[0]);
    }
}
