//! Where files are: directories, links, and files that come again.

use super::draw::Draw;
use super::maker::{KEPT, Left, Maker};
use super::users::USERS;
use crate::Result;
use crate::names::Name;
use crate::profile::Step;
use crate::tree::{Entry, Kind, Mark, Series, State, Tree, tag};
use rustc_hash::FxHashMap;

/// Where new files go.
pub(super) struct Arrivals {
    by_depth: Vec<Vec<u32>>,
    depths: Vec<u16>,
    /// Files that may come again, in any order.
    left: Vec<Left>,
    /// The same by depth and extension, once somebody asks so.
    alike: FxHashMap<(u16, u16), Vec<Left>>,
    /// How many are still to come.
    wanted: u32,
    /// Files that came again.
    pub again: u64,
}

impl Arrivals {
    /// `wanted` of the files that left come again.
    pub fn new(tree: &Tree, mut left: Vec<Left>, wanted: u32, draw: &mut Draw) -> Arrivals {
        let mut by_depth = dirs_by_depth(tree);
        by_depth.iter_mut().for_each(|dirs| draw.shuffle(dirs));
        draw.shuffle(&mut left);
        let alike = FxHashMap::default();
        Arrivals { by_depth, depths: tree.depths(), left, alike, wanted, again: 0 }
    }

    /// Any file that is still to come again.
    pub fn next(&mut self) -> Option<Left> {
        self.wanted = self.wanted.checked_sub(1)?;
        self.left.pop().inspect(|_| self.again += 1)
    }

    /// One of that depth and extension.
    fn like(&mut self, depth: usize, extension: u16) -> Option<Left> {
        if self.wanted == 0 {
            return None;
        }
        for one in self.left.drain(..) {
            let key = (self.depths[one.dir as usize], one.extension);
            self.alike.entry(key).or_default().push(one);
        }
        let old = self.alike.get_mut(&(u16::try_from(depth).ok()?, extension))?.pop()?;
        self.wanted -= 1;
        self.again += 1;
        Some(old)
    }

    /// A directory of that depth; of the deepest there is where none is so deep.
    fn dir(&self, depth: usize, draw: &mut Draw) -> u32 {
        let there = |depth: &usize| self.by_depth.get(*depth).is_some_and(|dirs| !dirs.is_empty());
        let dirs = &self.by_depth[(0..=depth).rev().find(there).unwrap_or(0)];
        dirs[draw.below(dirs.len())]
    }
}

impl Maker<'_> {
    /// Adds a new file of a depth, an extension and a size in bytes.
    pub fn arrive(
        &mut self,
        arrivals: &mut Arrivals,
        (depth, extension, size): (usize, u16, u64),
        chunks: &[u32],
        tree: &mut Tree,
        draw: &mut Draw,
    ) -> Result<()> {
        let old = arrivals.like(depth, extension);
        let one =
            old.unwrap_or_else(|| Left { dir: arrivals.dir(depth, draw), name: self.name(), extension });
        self.come_again(&one, size, chunks, tree)
    }

    /// Adds a new file under a name.
    pub fn come_again(&mut self, one: &Left, size: u64, chunks: &[u32], tree: &mut Tree) -> Result<()> {
        let Left { dir, name, extension } = *one;
        let mark = Mark::new(Kind::File, State::New);
        tree.add_file(&Entry { dir, name, extension, mark, size, private: &[] }, chunks).map(drop)
    }

    /// A tree with the directories there were, and with as many at each depth as a step has, times a factor.
    pub fn directories(&mut self, before: &Tree, wanted: Option<(&Step, f64)>, draw: &mut Draw) -> Tree {
        let mut tree = Tree::new("");
        for dir in 1..before.dirs() {
            tree.add_dir(before.dirs.parent[dir], Name(before.dirs.name[dir]));
        }
        let Some((step, factor)) = wanted else { return tree };
        let mut by_depth = dirs_by_depth(&tree);
        for (depth, count) in step.directories.iter().enumerate().skip(1) {
            let wanted = draw.scaled(*count, factor) as usize;
            by_depth.resize_with(by_depth.len().max(depth + 1), Vec::new);
            while by_depth[depth].len() < wanted {
                let parents = &by_depth[depth - 1];
                if parents.is_empty() {
                    break;
                }
                let parent = parents[draw.below(parents.len())];
                let name = self.name();
                by_depth[depth].push(tree.add_dir(parent, name));
            }
        }
        tree
    }

    pub fn name(&mut self) -> Name {
        self.next_name += 1;
        Name::made(self.next_name)
    }

    /// What is no regular file: all there was, or of links as many at each depth as wanted, times a factor. `numbers`:
    /// what files have become.
    pub fn add_links(
        &mut self,
        before: &Tree,
        numbers: &[u32],
        wanted: Option<(&Step, f64)>,
        tree: &mut Tree,
        draw: &mut Draw,
    ) -> Result<()> {
        let (by_depth, depths) = (dirs_by_depth(tree), tree.depths());
        let files = tree.len();
        for kind in [Kind::Symlink, Kind::Hard, Kind::Other, Kind::Unreadable] {
            let counts = wanted.and_then(|(step, factor)| match kind {
                Kind::Symlink => Some((&step.symlinks, factor)),
                Kind::Hard => Some((&step.hard_links, factor)),
                _ => None,
            });
            let mut left: Option<Vec<u32>> = counts
                .map(|(counts, factor)| counts.iter().map(|count| draw.scaled(*count, factor)).collect());
            for link in 0..before.len() as u32 {
                let entry = before.file(link);
                if entry.mark.kind() != kind {
                    continue;
                }
                let first =
                    before.linked(link).map(|first| numbers[first as usize]).filter(|first| *first != KEPT);
                let first = first.map(u32::to_le_bytes);
                let records: Vec<(u16, &[u8])> = match (kind, &first) {
                    (Kind::Hard, Some(first)) => vec![(tag::HARD, first)],
                    // The file went, and its further names with it.
                    (Kind::Hard, None) => continue,
                    _ => before.private_of(link).collect(),
                };
                if let Some(left) = &mut left {
                    match left.get_mut(usize::from(depths[entry.dir as usize])) {
                        Some(left) if *left > 0 => *left -= 1,
                        _ => continue,
                    }
                }
                let mark = Mark::new(kind, State::Unmodified);
                tree.add_file(&Entry { mark, private: &records, ..entry }, &[])?;
            }
            for (depth, left) in left.into_iter().flatten().enumerate() {
                let places = by_depth.get(depth).map_or(&[][..], |dirs| dirs);
                let possible = !places.is_empty() && (files > 0 || kind == Kind::Symlink);
                for _ in 0..if possible { left } else { 0 } {
                    let dir = places[draw.below(places.len())];
                    let first = (draw.below(files) as u32).to_le_bytes();
                    let target = format!("f{:x}", draw.below(1 << 20));
                    let (size, record) = match kind {
                        Kind::Hard => (0, [(tag::HARD, &first[..])]),
                        _ => (target.len() as u64, [(tag::LINK, target.as_bytes())]),
                    };
                    let mark = Mark::new(kind, State::New);
                    let name = self.name();
                    tree.add_file(&Entry { dir, name, extension: 0, mark, size, private: &record }, &[])?;
                }
            }
        }
        Ok(())
    }
}

/// Directories of each depth.
pub(super) fn dirs_by_depth(tree: &Tree) -> Vec<Vec<u32>> {
    let mut dirs: Vec<Vec<u32>> = vec![Vec::new()];
    for (dir, depth) in (0..).zip(tree.depths()) {
        let depth = usize::from(depth);
        dirs.resize_with(dirs.len().max(depth + 1), Vec::new);
        dirs[depth].push(dir);
    }
    dirs
}

/// The largest number from which a name of a series is made, or could be: those beyond it are free.
pub(super) fn last_name(series: &Series) -> u32 {
    let mut last = 0;
    let mut see = |number: u32| last = if number < USERS { number.max(last) } else { last };
    for tree in &series.trees {
        let names = tree.dirs.name.iter().chain(&tree.files.name);
        names.filter_map(|name| Name(*name).number()).for_each(&mut see);
    }
    let mut at = 0;
    let bytes = &series.names.bytes;
    while let Some(length) = bytes.get(at) {
        let end = (at + 1 + usize::from(*length)).min(bytes.len());
        if let [b'd' | b'f', digits @ ..] = &bytes[at + 1..end] {
            let digits = digits.split(|byte| *byte == b'.').next().unwrap_or_default();
            let number =
                std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
            number.into_iter().for_each(&mut see);
        }
        at = end;
    }
    last
}
