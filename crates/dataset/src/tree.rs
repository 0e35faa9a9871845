//! An fstree: one state of a file system, by columns, so that no file or directory costs an allocation
//! (Tarasov, PhD thesis, Stony Brook University 2013, section 4.3.2).

use crate::chunks::Chunks;
use crate::names::{Name, Names};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What an entry of a directory is, if not a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A regular file with its chunks.
    File = 0,
    /// A symbolic link; [`tag::LINK`] has where it leads.
    Symlink = 1,
    /// A further name of a file; [`tag::HARD`] has its number.
    Hard = 2,
    /// A device, pipe or socket.
    Other = 3,
    /// A regular file whose content could not be read.
    Unreadable = 4,
}

/// What happened to a file since the snapshot before (section 4.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum State {
    /// It was not there.
    New = 0,
    /// Its chunks are others.
    Modified = 1,
    /// Its chunks are the same.
    Unmodified = 2,
}

/// Kind and state of a file in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub u8);

impl Mark {
    /// Of a kind, in a state.
    pub fn new(kind: Kind, state: State) -> Mark {
        Mark(kind as u8 | (state as u8) << 4)
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        match self.0 & 15 {
            0 => Kind::File,
            1 => Kind::Symlink,
            2 => Kind::Hard,
            3 => Kind::Other,
            _ => Kind::Unreadable,
        }
    }

    /// What happened to it.
    pub fn state(self) -> State {
        match self.0 >> 4 {
            0 => State::New,
            1 => State::Modified,
            _ => State::Unmodified,
        }
    }

    fn is_known(self) -> bool {
        self.0 & 15 <= 4 && self.0 >> 4 <= 2
    }
}

/// Tags of records in private sections. Those from 0x100 on are for extensions.
pub mod tag {
    /// Where a symbolic link leads: bytes.
    pub const LINK: u16 = 1;
    /// The file that a hard link is a further name of: u32, smaller than its own number.
    pub const HARD: u16 = 2;
    /// Holes of a sparse file: pairs of u64, offset and length in bytes, in ascending order.
    pub const HOLES: u16 = 3;
    /// The first tag of extensions.
    pub const EXTENSION: u16 = 0x100;
}

/// Directories; the first is the root, and parents come before their children.
#[derive(Default, Clone, PartialEq)]
pub struct Dirs {
    pub(crate) parent: Vec<u32>,
    pub(crate) name: Vec<u32>,
    pub(crate) private: Vec<u32>,
}

/// Files, and whatever else is in directories.
#[derive(Default, Clone, PartialEq)]
pub struct Files {
    pub(crate) dir: Vec<u32>,
    pub(crate) name: Vec<u32>,
    pub(crate) extension: Vec<u16>,
    pub(crate) mark: Vec<u8>,
    /// Bytes as stat(2) tells them.
    pub(crate) size: Vec<u64>,
    /// Where in `refs` the chunks of each begin, and one more: where those of the last end.
    pub(crate) start: Vec<u32>,
    pub(crate) private: Vec<u32>,
}

/// One snapshot.
#[derive(Clone, PartialEq)]
pub struct Tree {
    /// Where it came from; empty where it was made up.
    pub label: String,
    pub(crate) dirs: Dirs,
    pub(crate) files: Files,
    /// Chunks of all files, file after file.
    pub(crate) refs: Vec<u32>,
    /// Private sections: length of the records, u32, then records of tag, u16, length, u32, and bytes.
    pub(crate) private: Vec<u8>,
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

    /// Numbers that stand for the full paths of all directories and files.
    pub(crate) fn path_hashes(&self, names: &Names) -> Vec<u64> {
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
        (0..self.len() as u32)
            .map(|file| {
                let entry = self.file(file);
                hash_of(dirs[entry.dir as usize], entry.name, b'f', entry.extension)
            })
            .collect()
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

fn write_private(pool: &mut Vec<u8>, records: &[(u16, &[u8])]) -> Option<u32> {
    let at = u32::try_from(pool.len()).ok()?;
    let length: usize = records.iter().map(|(_, bytes)| 6 + bytes.len()).sum();
    pool.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    for (tag, bytes) in records {
        pool.extend_from_slice(&tag.to_le_bytes());
        pool.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        pool.extend_from_slice(bytes);
    }
    Some(at)
}

/// Private records of an object: tag and bytes. What is damaged ends them.
pub struct Private<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Private<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = self.rest.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.rest = rest;
        Some((u16::from_le_bytes(*tag), bytes))
    }
}

/// How content was cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Chunking {
    /// Chunks of one size; the last of a file may be smaller.
    Fixed {
        /// Bytes.
        size: u32,
    },
    /// Cut where the content says (FastCDC: Xia et al., USENIX ATC 2016; the version of 2020).
    Fastcdc {
        /// Smallest, bytes.
        min: u32,
        /// On average, bytes.
        average: u32,
        /// Largest, bytes.
        max: u32,
    },
}

impl Default for Chunking {
    fn default() -> Chunking {
        Chunking::Fastcdc { min: 2 << 10, average: 8 << 10, max: 64 << 10 }
    }
}

impl Chunking {
    /// Refuses sizes that cannot be used.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check(self) -> Result<()> {
        let even = |size: u32| size.is_multiple_of(2);
        let text = match self {
            Chunking::Fixed { size } if !(512..=8 << 20).contains(&size) => {
                format!("chunks of {size} bytes: use 512 to {}", 8 << 20)
            }
            Chunking::Fastcdc { min, average, max }
                if !(256..=1 << 20).contains(&min)
                    || !(min..=4 << 20).contains(&average)
                    || !(average..=8 << 20).contains(&max)
                    || ![min, average, max].into_iter().all(even) =>
            {
                format!(
                    "FastCDC with {min}, {average} and {max} bytes: use even sizes, ascending, from 256, to {}, {} \
                     and {} at most",
                    1 << 20,
                    4 << 20,
                    8 << 20
                )
            }
            _ => return Ok(()),
        };
        Err(Error::Option(text))
    }
}

/// What holds for all snapshots of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// How content was cut.
    pub chunking: Chunking,
    /// The library that cut it, with its version.
    pub chunker: String,
    /// What ratios were measured by; nothing: they were not.
    pub codec: Option<String>,
    /// Seed of the content; nothing where the chunks are those of real files.
    pub seed: Option<u64>,
}

/// Snapshots in order, and the chunks and names that they share.
pub struct Series {
    /// What holds for all.
    pub meta: Meta,
    /// Chunks by their numbers.
    pub chunks: Chunks,
    /// Names and extensions.
    pub names: Names,
    /// The snapshots.
    pub trees: Vec<Tree>,
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn chunkings_that_cannot_be_used_are_refused() {
        assert!(Chunking::default().check().is_ok());
        for odd in [
            Chunking::Fixed { size: 1 },
            Chunking::Fixed { size: 9 << 20 },
            Chunking::Fastcdc { min: 2048, average: 1024, max: 65536 },
            Chunking::Fastcdc { min: 2049, average: 8192, max: 65536 },
        ] {
            assert!(odd.check().unwrap_err().to_string().contains("bytes: use"));
        }
    }
}
