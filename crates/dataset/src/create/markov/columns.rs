//! Changes that somebody else decides on, as columns: FS-MUTATE's plugins (Tarasov, section 4.3.3).

use crate::chunks::{MOST_CHUNK, Ratio};
use crate::create::Generation;
use crate::create::change::{GONE, KEPT};
use crate::create::draw::Draw;
use crate::create::maker::Maker;
use crate::create::place::arrive::Left;
use crate::create::place::directories::come_again;
use crate::tree::{Entry, Kind, Mark, Series, State, Tree};
use crate::{Error, Result};

/// Decides what becomes of a tree.
pub trait Mutator {
    /// Changes of a tree, whose chunks and names the series has; the seed is for whatever is drawn.
    ///
    /// # Errors
    /// Whatever keeps it from deciding.
    fn changes(&mut self, tree: &Tree, series: &Series, seed: u64) -> Result<Changes>;
}

/// A tree by columns, with what it refers to. The k-th of what is of files, directories or chunks is of number k.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// [`Kind`] of each file: 0 is regular.
    pub kind: Vec<u8>,
    /// [`State`] of each file.
    pub state: Vec<u8>,
    /// Directory of each file.
    pub dir: Vec<u32>,
    /// Extension of each file.
    pub extension: Vec<u16>,
    /// Bytes of each file.
    pub size: Vec<u64>,
    /// Where the chunks of each file begin in `chunks`, and one more: the end.
    pub start: Vec<u64>,
    /// Chunks of all files.
    pub chunks: Vec<u32>,
    /// The directory that each directory is in; the root is in itself.
    pub parent: Vec<u32>,
    /// Directories that each directory is in, the root not counted.
    pub depth: Vec<u16>,
    /// Bytes of each chunk of the series.
    pub chunk_size: Vec<u32>,
    /// How many times smaller codecs make it.
    pub chunk_ratio: Vec<f64>,
}

impl Columns {
    /// Of a tree of a series.
    pub fn of(tree: &Tree, series: &Series) -> Columns {
        let marks = || tree.files.mark.iter().map(|mark| Mark(*mark));
        let chunks = 0..series.chunks.len() as u32;
        Columns {
            kind: marks().map(|mark| mark.kind() as u8).collect(),
            state: marks().map(|mark| mark.state() as u8).collect(),
            dir: tree.files.dir.clone(),
            extension: tree.files.extension.clone(),
            size: tree.files.size.clone(),
            start: tree.files.start.iter().map(|at| u64::from(*at)).collect(),
            chunks: tree.refs.clone(),
            parent: tree.dirs.parent.clone(),
            depth: tree.depths(),
            chunk_size: chunks.clone().map(|chunk| series.chunks.size(chunk)).collect(),
            chunk_ratio: chunks.map(|chunk| series.chunks.ratio(chunk).value()).collect(),
        }
    }
}

/// What becomes of a tree. Chunks are numbers of the series; from its end on they are new ones, in the order of `sizes`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Files to be deleted.
    pub deleted: Vec<u32>,
    /// Files to be modified.
    pub modified: Vec<u32>,
    /// Where the chunks of each begin in `modified_chunks`, and one more: the end.
    pub modified_start: Vec<u64>,
    /// Chunks that modified files have then.
    pub modified_chunks: Vec<u32>,
    /// Directories of new files.
    pub new_dir: Vec<u32>,
    /// Extensions of new files, by number.
    pub new_extension: Vec<u16>,
    /// Where the chunks of each begin in `new_chunks`, and one more: the end.
    pub new_start: Vec<u64>,
    /// Chunks of new files.
    pub new_chunks: Vec<u32>,
    /// Sizes of new chunks, bytes.
    pub sizes: Vec<u32>,
    /// How many times smaller codecs make them.
    pub ratios: Vec<f64>,
}

/// Stops at the first thing that is wrong.
fn need(fine: bool, what: impl FnOnce() -> String) -> Result<()> {
    if fine { Ok(()) } else { Err(Error::Option(format!("the mutator's changes: {}", what()))) }
}

impl Changes {
    /// Refuses what cannot be done to a tree.
    fn check(&self, tree: &Tree, series: &Series, (least, most): (u32, u32)) -> Result<()> {
        let lists = [
            ("modified", self.modified.len(), &self.modified_start, &self.modified_chunks),
            ("created", self.new_dir.len(), &self.new_start, &self.new_chunks),
        ];
        let (first, new) = (series.chunks.len() as u64, self.sizes.len() as u64);
        need(self.ratios.len() == self.sizes.len(), || {
            format!("{} ratios of {new} new chunks: give one for each", self.ratios.len())
        })?;
        for (i, size) in self.sizes.iter().enumerate() {
            need((1..=most.min(MOST_CHUNK)).contains(size), || {
                format!("new chunk {i} has {size} bytes: with this chunking use 1 to {most}")
            })?;
        }
        if let Some((i, ratio)) =
            (0..).zip(&self.ratios).find(|one: &(usize, _)| !(1.0..=1e9).contains(one.1))
        {
            need(false, || format!("new chunk {i} has a ratio of {ratio}: use 1 or more"))?;
        }
        need(first + new < u64::from(u32::MAX), || format!("{} chunks in all: 2^32 at most", first + new))?;
        let size = |chunk: u32| match u64::from(chunk).checked_sub(first) {
            Some(new) => self.sizes[new as usize],
            None => series.chunks.size(chunk),
        };
        for (name, files, start, chunks) in lists {
            need(start.len() == files + 1, || {
                format!("{} starts of {files} {name} files: give one for each, and the end", start.len())
            })?;
            need(start[0] == 0 && start.is_sorted() && start[files] == chunks.len() as u64, || {
                format!(
                    "starts of {name} files must ascend from 0 to {}, the number of their chunks",
                    chunks.len()
                )
            })?;
            for chunk in chunks {
                need(u64::from(*chunk) < first + new, || {
                    format!("chunk {chunk} is unknown: there are {first}, and {new} new ones from {first} on")
                })?;
            }
            for range in start.windows(2) {
                let file = &chunks[range[0] as usize..range[1] as usize];
                for chunk in file.split_last().map_or(&[][..], |(_, inner)| inner) {
                    need(size(*chunk) >= least, || {
                        format!(
                            "chunk {chunk} of {} bytes is followed by another in a {name} file: with this chunking such \
                             chunks have {least} bytes and more",
                            size(*chunk)
                        )
                    })?;
                }
            }
        }
        need(self.new_extension.len() == self.new_dir.len(), || {
            format!(
                "{} extensions of {} created files: give one for each",
                self.new_extension.len(),
                self.new_dir.len()
            )
        })?;
        for dir in &self.new_dir {
            need((*dir as usize) < tree.dirs(), || {
                format!("directory {dir} of a created file is unknown: there are {}", tree.dirs())
            })?;
        }
        for extension in &self.new_extension {
            need(usize::from(*extension) < series.names.extensions.len(), || {
                format!("extension {extension} is unknown: there are {}", series.names.extensions.len())
            })?;
        }
        let mut seen = vec![false; tree.len()];
        for file in self.deleted.iter().chain(&self.modified) {
            let known = (*file as usize) < tree.len() && tree.file(*file).mark.kind() == Kind::File;
            need(known, || {
                format!("file {file} is unknown: there are {}, of which only regular ones change", tree.len())
            })?;
            need(!std::mem::replace(&mut seen[*file as usize], true), || {
                format!("file {file} is deleted or modified twice: name it once")
            })?;
        }
        Ok(())
    }
}

impl Maker<'_> {
    /// The next tree as a mutator says.
    pub fn by_mutator(
        &mut self,
        mutator: &mut dyn Mutator,
        before: &Tree,
        draw: &mut Draw,
    ) -> Result<(Tree, Generation)> {
        let changes = mutator.changes(before, &self.series, draw.seed())?;
        changes.check(before, &self.series, self.sizes)?;
        for (size, ratio) in changes.sizes.iter().zip(&changes.ratios) {
            let ratio = if *ratio > 1.0 { Ratio::nearest(*ratio) } else { Ratio::UNKNOWN };
            self.series.chunks.push(*size, ratio)?;
        }
        let mut rows = vec![KEPT; before.len()];
        changes.deleted.iter().for_each(|file| rows[*file as usize] = GONE);
        (0..).zip(&changes.modified).for_each(|(row, file)| rows[*file as usize] = row);
        let mut tree = self.names.directories(before, None, draw);
        let mut numbers = vec![KEPT; before.len()];
        let part =
            |start: &[u64], all: &[u32], i: usize| all[start[i] as usize..start[i + 1] as usize].to_vec();
        self.pace.begin(before.len() as u64);
        for file in crate::profile::regular(before) {
            if !self.pace.step() {
                break;
            }
            let entry = before.file(file);
            numbers[file as usize] = match rows[file as usize] {
                KEPT => {
                    let mark = Mark::new(Kind::File, State::Unmodified);
                    let records: Vec<_> = before.private_of(file).collect();
                    tree.add_file(&Entry { mark, private: &records, ..entry }, before.chunks_of(file))?
                }
                GONE => KEPT,
                row => {
                    let chunks = part(&changes.modified_start, &changes.modified_chunks, row as usize);
                    let same = chunks == before.chunks_of(file);
                    let state = if same { State::Unmodified } else { State::Modified };
                    let mark = Mark::new(Kind::File, state);
                    let size = self.bytes_of(&chunks);
                    tree.add_file(&Entry { mark, size, ..entry }, &chunks)?
                }
            };
        }
        for (i, (dir, extension)) in changes.new_dir.iter().zip(&changes.new_extension).enumerate() {
            let chunks = part(&changes.new_start, &changes.new_chunks, i);
            let one = Left { dir: *dir, name: self.names.next(), extension: *extension };
            let size = self.bytes_of(&chunks);
            come_again(&one, size, &chunks, &mut tree)?;
        }
        self.names.add_links(before, &numbers, None, &mut tree, draw)?;
        let wanted = (changes.deleted.len() + changes.modified.len()) as u64;
        let (new, fresh) = (changes.new_dir.len() as u64, changes.sizes.len() as u64);
        Ok((tree, Generation { new, wanted, fresh, ..Generation::default() }))
    }
}
