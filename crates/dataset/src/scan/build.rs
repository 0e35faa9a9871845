//! A tree whose files come in any order, and more than once.

use super::Scan;
use crate::Result;
use crate::names::Name;
use crate::tree::{Entry, Kind, Mark, State, Tree, tag};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry as Place;
use std::path::Path;

/// Why a file or link is left out that a directory came in the place of.
pub(super) const TAKEN: &str =
    "has a directory in its path that was a file or link before, which is left out";
/// Why a file or link is left out that comes where a directory is.
pub(super) const KEPT: &str = "was a directory before, which is kept";

/// A file; a later one of the same path takes its place.
pub(super) struct Member {
    pub dir: u32,
    pub name: Name,
    pub extension: u16,
    pub kind: Kind,
    pub size: u64,
    pub records: Vec<(u16, Vec<u8>)>,
    pub chunks: Vec<u32>,
}

/// Names of one file: the first of them that is still one has its content.
struct Names {
    all: Vec<u32>,
    first: usize,
}

pub(super) struct Build {
    tree: Tree,
    members: Vec<Member>,
    by_path: FxHashMap<(u32, Name), u32>,
    dirs: FxHashMap<(u32, Name), u32>,
    files: Vec<Names>,
    /// Of members that share a file: its number.
    shared: FxHashMap<u32, usize>,
    /// Members in whose place a directory came.
    gone: FxHashSet<u32>,
}

impl Build {
    pub fn new(path: &Path) -> Build {
        Build {
            tree: Tree::new(path.to_string_lossy()),
            members: Vec::new(),
            by_path: FxHashMap::default(),
            dirs: FxHashMap::default(),
            files: Vec::new(),
            shared: FxHashMap::default(),
            gone: FxHashSet::default(),
        }
    }

    /// The number of a directory; files and links that were in the places of directories on the way are gone.
    pub fn dir(&mut self, scan: &mut Scan, parts: &[&[u8]]) -> Result<u32> {
        let mut dir = 0;
        for part in parts {
            let name = scan.interner.name(&mut scan.series.names, part)?;
            let place = (dir, name);
            dir = match self.dirs.entry(place) {
                Place::Occupied(known) => *known.get(),
                Place::Vacant(free) => *free.insert(self.tree.add_dir(dir, name)),
            };
            if let Some(number) = self.by_path.remove(&place) {
                self.leave(number);
                self.gone.insert(number);
            }
        }
        Ok(dir)
    }

    /// Whether a directory has that name.
    pub fn is_dir(&self, dir: u32, name: Name) -> bool {
        self.dirs.contains_key(&(dir, name))
    }

    /// Whether a directory came in the place of a member.
    pub fn is_gone(&self, number: u32) -> bool {
        self.gone.contains(&number)
    }

    /// How many members are gone, as directories came in their places.
    pub fn gone(&self) -> usize {
        self.gone.len()
    }

    /// How many there are.
    pub fn dirs(&self) -> usize {
        self.dirs.len()
    }

    pub fn find(&self, scan: &mut Scan, parts: &[&[u8]]) -> Option<u32> {
        let (name, above) = parts.split_last()?;
        let mut name_of = |part: &[u8]| scan.interner.name(&mut scan.series.names, part).ok();
        let mut dir = 0;
        for part in above {
            dir = *self.dirs.get(&(dir, name_of(part)?))?;
        }
        self.by_path.get(&(dir, name_of(name)?)).copied()
    }

    /// Tells the member's number.
    pub fn put(&mut self, member: Member) -> u32 {
        match self.by_path.entry((member.dir, member.name)) {
            Place::Occupied(known) => {
                let number = *known.get();
                self.leave(number);
                self.members[number as usize] = member;
                number
            }
            Place::Vacant(free) => {
                let number = self.members.len() as u32;
                free.insert(number);
                self.members.push(member);
                number
            }
        }
    }

    /// Makes a member a further name of another.
    pub fn link(&mut self, member: Member, to: u32) {
        let file = *self.shared.entry(to).or_insert_with(|| {
            self.files.push(Names { all: vec![to], first: 0 });
            self.files.len() - 1
        });
        let known = self.by_path.get(&(member.dir, member.name));
        if known.is_some_and(|known| self.shared.get(known) == Some(&file)) {
            return;
        }
        let size = self.members[to as usize].size;
        let number =
            self.put(Member { kind: Kind::Hard, size, records: Vec::new(), chunks: Vec::new(), ..member });
        self.files[file].all.push(number);
        self.shared.insert(number, file);
    }

    /// Another file comes to have this name. What it stood for stays the content of its further names.
    fn leave(&mut self, number: u32) {
        let Some(file) = self.shared.remove(&number) else { return };
        let Names { all, first } = &mut self.files[file];
        if all[*first] != number {
            return;
        }
        let Some(next) = all[*first..].iter().position(|name| self.shared.get(name) == Some(&file)) else {
            return;
        };
        *first += next;
        let next = all[*first];
        self.give(number, next);
    }

    /// What a member is becomes what another is, which has its content then.
    fn give(&mut self, from: u32, to: u32) {
        let old = &mut self.members[from as usize];
        let (records, chunks) = (std::mem::take(&mut old.records), std::mem::take(&mut old.chunks));
        let (kind, size) = (std::mem::replace(&mut old.kind, Kind::Hard), old.size);
        let new = &mut self.members[to as usize];
        *new = Member { kind, size, records, chunks, ..*new };
    }

    pub fn finish(mut self) -> Result<Tree> {
        // Links come after what they are names of.
        let files = std::mem::take(&mut self.files);
        // Numbers in the tree: those that are gone have none.
        let mut kept = 0;
        let count = |number: u32| {
            let its = kept;
            kept += u32::from(!self.gone.contains(&number));
            its
        };
        let numbers: Vec<u32> = (0..self.members.len() as u32).map(count).collect();
        for (file, Names { all, first }) in files.iter().enumerate() {
            let mut names: Vec<u32> =
                all.iter().copied().filter(|name| self.shared.get(name) == Some(&file)).collect();
            names.sort_unstable();
            names.dedup();
            let [lead, links @ ..] = &names[..] else { continue };
            if *lead != all[*first] {
                self.give(all[*first], *lead);
            }
            for link in links {
                let lead = numbers[*lead as usize];
                self.members[*link as usize].records = vec![(tag::HARD, lead.to_le_bytes().to_vec())];
            }
        }
        for (_, member) in (0..).zip(&self.members).filter(|(number, _)| !self.gone.contains(number)) {
            let records: Vec<_> = member.records.iter().map(|(tag, bytes)| (*tag, &bytes[..])).collect();
            let entry = Entry {
                dir: member.dir,
                name: member.name,
                extension: member.extension,
                mark: Mark::new(member.kind, State::New),
                size: member.size,
                private: &records,
            };
            self.tree.add_file(&entry, &member.chunks)?;
        }
        Ok(self.tree)
    }
}
