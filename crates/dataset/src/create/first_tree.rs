//! Making a first tree of what is known of its files ([`Initial`]).

use super::content::law::Shares;
use super::draw::Draw;
use super::estimate;
use super::initial::Initial;
use super::maker::Maker;
use super::place::arrive::dirs_by_depth;
use super::{Generation, Options};
use crate::Result;
use crate::tree::{Entry, Kind, Mark, State, Tree};

/// What a directory has besides its subdirectories when one is to get another (FAST 2009, table 2: C(d) + 2).
const BESIDES: usize = 2;
/// Offset of the inverse polynomial of degree 2 that numbers of files of directories have (FAST 2009, table 2).
const OFFSET: f64 = 2.36;
/// Files that a directory may get in proportion, at most.
const MOST_WEIGHT: f64 = 1e5;

impl Maker<'_> {
    /// The first tree of a series.
    pub fn begin(
        &mut self,
        initial: &Initial,
        options: &Options,
        draw: &mut Draw,
    ) -> Result<(Tree, Generation)> {
        let mut populate = self.populate(&initial.laws, u64::from(initial.files), draw);
        let sizes: Vec<u64> = (0..initial.files).map(|_| populate.size(draw)).collect();
        estimate::of_files(&sizes, populate.mean_chunk(), options)?;
        let mut tree = self.grow(initial, draw);
        let mut places: Vec<(Vec<u32>, Shares)> = Vec::new();
        for dirs in dirs_by_depth(&tree) {
            // The inverse of the distribution function of (x + offset)^-2.
            let weight = |_| (OFFSET / (1.0 - draw.uniform()) - OFFSET).clamp(1e-6, MOST_WEIGHT);
            let weights: Vec<f64> = dirs.iter().map(weight).collect();
            places.push((dirs, Shares::new(weights.into_iter())));
        }
        let (mut chunks, before) = (Vec::new(), self.series.chunks.len());
        self.pace.begin(sizes.len() as u64);
        for size in sizes {
            if !self.pace.step() {
                break;
            }
            // Deeper than any directory is hardly any file.
            let depth = populate.depth(draw).min(places.len() - 1);
            let (dirs, weights) = &places[depth];
            let extension = populate.extension(draw);
            let size = populate.chunks(size, &mut self.series.chunks, &mut chunks, draw)?;
            let entry = Entry {
                dir: dirs[weights.draw(draw)],
                name: self.names.next(),
                extension,
                mark: Mark::new(Kind::File, State::New),
                size,
                private: &[],
            };
            tree.add_file(&entry, &chunks)?;
        }
        let fresh = (self.series.chunks.len() - before) as u64;
        Ok((tree, Generation { new: u64::from(initial.files), fresh, ..Generation::default() }))
    }

    /// Directories: each new one is in one that has C(d) subdirectories with a chance in proportion to C(d) + 2.
    fn grow(&mut self, initial: &Initial, draw: &mut Draw) -> Tree {
        let mut tree = Tree::new("");
        let mut chances = vec![0u32; BESIDES];
        for _ in 1..initial.directories {
            let parent = chances[draw.below(chances.len())];
            let name = self.names.next();
            let dir = tree.add_dir(parent, name);
            chances.push(parent);
            chances.extend([dir; BESIDES]);
        }
        let all: f64 = initial.laws.depths.iter().sum();
        let expected = |share: &f64| share / all * f64::from(initial.files) >= 0.5;
        let deepest = initial.laws.depths.iter().rposition(expected).unwrap_or(0);
        let mut by_depth = dirs_by_depth(&tree);
        for depth in by_depth.len()..=deepest {
            let above = &by_depth[depth - 1];
            let parent = above[draw.below(above.len())];
            let name = self.names.next();
            by_depth.push(vec![tree.add_dir(parent, name)]);
        }
        tree
    }
}
