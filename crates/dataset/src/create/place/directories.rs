//! Where files are: directories, links, and files that come again.

use crate::Result;
use crate::create::change::KEPT;
use crate::create::draw::Draw;
use crate::create::place::arrive::{Arrivals, Left, dirs_by_depth};
use crate::names::Name;
use crate::profile::Step;
use crate::tree::{Entry, Kind, Mark, State, Tree, tag};

/// Numbers of names that were made.
#[derive(Default)]
pub(crate) struct NewNames(pub u32);

impl NewNames {
    pub fn next(&mut self) -> Name {
        self.0 += 1;
        Name::made(self.0)
    }

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
            old.unwrap_or_else(|| Left { dir: arrivals.dir(depth, draw), name: self.next(), extension });
        come_again(&one, size, chunks, tree)
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
                let name = self.next();
                by_depth[depth].push(tree.add_dir(parent, name));
            }
        }
        tree
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
                    let name = self.next();
                    tree.add_file(&Entry { dir, name, extension: 0, mark, size, private: &record }, &[])?;
                }
            }
        }
        Ok(())
    }
}

/// Adds a new file under a name.
pub(crate) fn come_again(one: &Left, size: u64, chunks: &[u32], tree: &mut Tree) -> Result<()> {
    let Left { dir, name, extension } = *one;
    let mark = Mark::new(Kind::File, State::New);
    tree.add_file(&Entry { dir, name, extension, mark, size, private: &[] }, chunks).map(drop)
}
