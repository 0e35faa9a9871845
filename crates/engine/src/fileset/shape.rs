//! The shape of a set: which directories there are, and which files lie in which.

use crate::source::random::{below, unit};
use crate::source::variables::{Draws, Number};
use loadstone_plan::{FileSet, Layout};
use rand_distr::{Distribution, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Deeper directories would make paths that the kernel refuses.
const DEEPEST: u32 = 256;

/// A directory below the root of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directory {
    /// Position of the one it lies in; [`ROOT`] for those of the root.
    pub parent: u32,
    /// Its number there, from 1.
    pub number: u32,
    /// First file in it; files of a directory follow each other.
    pub first: u32,
}

/// Stands for the root of the set.
pub const ROOT: u32 = u32::MAX;

/// Directories, files and leaf directories.
#[derive(Debug, Default)]
pub struct Shape {
    /// Parents come before what lies in them.
    pub directories: Vec<Directory>,
    /// Directory of each file.
    pub homes: Vec<u32>,
    /// Directory and number of each leaf directory.
    pub leaves: Vec<(u32, u32)>,
}

/// What is still to be placed, and how.
struct Growing<'a, 'b> {
    shape: Shape,
    files: u64,
    leaves: u64,
    /// Mean width and depth, and the shape of their distributions.
    means: (f64, f64),
    gamma: f64,
    depth: Option<Number>,
    draws: &'a mut Draws<'b>,
    random: &'a mut Xoshiro256PlusPlus,
}

impl Shape {
    /// Draws the shape of a set, whose mean depth is ln(files and leaf directories) / ln(width).
    pub fn draw(
        set: &FileSet,
        depth: Option<Number>,
        draws: &mut Draws<'_>,
        random: &mut Xoshiro256PlusPlus,
    ) -> Shape {
        let all = (set.entries + set.leaf_directories) as f64;
        let deep = if set.width > 1.0 { (all.ln() / set.width.ln()).max(1.0) } else { 1.0 };
        let mut growing = Growing {
            shape: Shape::default(),
            files: set.entries,
            leaves: set.leaf_directories,
            means: (set.width, deep),
            gamma: set.shape,
            depth,
            draws,
            random,
        };
        if set.layout == Layout::Flat {
            (growing.means.1, growing.gamma) = (1.0, 0.0);
        }
        let mut number = 0;
        while growing.files + growing.leaves > 0 {
            number += 1;
            growing.grow(ROOT, number, 1);
        }
        growing.shape
    }
}

impl Growing<'_, '_> {
    /// A whole number around a mean, at least 1.
    fn around(&mut self, mean: f64) -> u64 {
        let drawn = match Gamma::new(self.gamma, mean / self.gamma) {
            Ok(law) if self.gamma > 0.0 => law.sample(self.random),
            _ => mean,
        };
        (drawn as u64).max(1)
    }

    fn grow(&mut self, parent: u32, number: u32, depth: u32) {
        let at = self.shape.directories.len() as u32;
        let first = self.shape.homes.len() as u32;
        self.shape.directories.push(Directory { parent, number, first });
        let deepest = match self.depth {
            Some(law) => (self.draws.value(law, || 0) as u64).max(1),
            None => self.around(self.means.1),
        };
        let width = self.around(self.means.0);
        if u64::from(depth) < deepest.min(DEEPEST.into()) {
            for number in 1..=width.min(u32::MAX.into()) {
                if self.files + self.leaves == 0 {
                    return;
                }
                self.grow(at, number as u32, depth + 1);
            }
            return;
        }
        // Each place is a file's or a leaf directory's in proportion to what is left of them; files come first.
        let width = width.min(self.files + self.leaves);
        let mut leaves = 0;
        for _ in 0..width {
            let left = self.files + self.leaves;
            if below(self.random, left) < self.leaves {
                self.leaves -= 1;
                leaves += 1;
            } else {
                self.files -= 1;
                self.shape.homes.push(at);
            }
        }
        let files = self.shape.homes.len() as u32 - first;
        self.shape.leaves.extend((1..=leaves).map(|leaf| (at, files + leaf)));
    }
}

/// Whether each thing is there at the start, by chance and the same for one seed.
pub fn present(share: f64, random: &mut Xoshiro256PlusPlus) -> bool {
    share >= 1.0 || unit(random) < share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::variables::Variables;
    use loadstone_plan::Value;
    use rand_xoshiro::rand_core::SeedableRng;

    fn set(entries: u64, leaf_directories: u64, width: f64, shape: f64) -> FileSet {
        serde_json::from_value(serde_json::json!({
            "id": "s", "target": "t", "path": "s", "entries": entries, "leaf_directories": leaf_directories,
            "width": width, "shape": shape,
        }))
        .unwrap()
    }

    fn drawn(set: &FileSet, seed: u64) -> Shape {
        let variables = Variables::new(&[]).unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Shape::draw(set, None, &mut Draws::new(&variables, seed, 0), &mut random)
    }

    fn depth(shape: &Shape, mut directory: u32) -> u32 {
        let mut depth = 0;
        while directory != ROOT {
            directory = shape.directories[directory as usize].parent;
            depth += 1;
        }
        depth
    }

    #[test]
    fn without_chance_every_branch_is_alike() {
        let shape = drawn(&set(1000, 0, 10.0, 0.0), 1);
        assert_eq!(shape.homes.len(), 1000);
        // ln 1000 / ln 10 is a little below 3 in floating point or 3 itself; both make whole trees.
        let bottom: Vec<u32> = shape.homes.iter().map(|home| depth(&shape, *home)).collect();
        assert!(bottom.iter().all(|d| *d == bottom[0]) && (2..=3).contains(&bottom[0]));
        let mut inside = vec![0; shape.directories.len()];
        shape.homes.iter().for_each(|home| inside[*home as usize] += 1);
        assert!(inside.iter().all(|n| *n == 10 || *n == 0));
        let flat = drawn(&set(5000, 0, 1e6, 0.0), 1);
        assert_eq!((flat.directories.len(), flat.homes.len()), (1, 5000));
    }

    #[test]
    fn counts_are_exact_and_means_are_met() {
        let shape = drawn(&set(100_000, 5_000, 20.0, 1.5), 3);
        assert_eq!((shape.homes.len(), shape.leaves.len()), (100_000, 5_000));
        // Widths are cut off to whole numbers, which takes half an entry from their mean of 20.
        let mut inside = vec![0.0; shape.directories.len()];
        shape.homes.iter().for_each(|home| inside[*home as usize] += 1.0);
        shape.leaves.iter().for_each(|(home, _)| inside[*home as usize] += 1.0);
        let bottom: Vec<f64> = inside.into_iter().filter(|n| *n > 0.0).collect();
        let mean = bottom.iter().sum::<f64>() / bottom.len() as f64;
        assert!((18.5..20.5).contains(&mean), "{mean}");
        // Each directory draws anew, so files, most of which lie in what has grown deep, lie deeper than that.
        let deep = shape.homes.iter().map(|home| f64::from(depth(&shape, *home))).sum::<f64>() / 1e5;
        assert!(deep > 105_000f64.ln() / 20f64.ln(), "{deep}");
        for (i, directory) in shape.directories.iter().enumerate() {
            assert!(directory.parent == ROOT || (directory.parent as usize) < i);
        }
        for (file, home) in shape.homes.iter().enumerate() {
            assert!(shape.directories[*home as usize].first as usize <= file);
        }
        let again = drawn(&set(100_000, 5_000, 20.0, 1.5), 3);
        assert_eq!(shape.directories, again.directories);
        assert_ne!(shape.directories, drawn(&set(100_000, 5_000, 20.0, 1.5), 4).directories);
    }

    #[test]
    fn flat_sets_have_one_level_of_full_directories() {
        let flat = FileSet { layout: Layout::Flat, ..set(1001, 4, 100.0, 1.5) };
        let shape = drawn(&flat, 7);
        assert!(shape.directories.iter().all(|directory| directory.parent == ROOT));
        let mut inside = vec![0; shape.directories.len()];
        shape.homes.iter().for_each(|home| inside[*home as usize] += 1);
        shape.leaves.iter().for_each(|(home, _)| inside[*home as usize] += 1);
        let mut wanted = vec![100; 10];
        wanted.push(5);
        assert_eq!(inside, wanted);
    }

    #[test]
    fn odd_sets_end() {
        for (entries, leaves, width, gamma) in
            [(1, 0, 1.0, 1.5), (100, 0, 1.0, 0.0), (0, 7, 2.0, 1.5), (9, 9, 1.01, 0.1)]
        {
            let shape = drawn(&set(entries, leaves, width, gamma), 5);
            assert_eq!((shape.homes.len() as u64, shape.leaves.len() as u64), (entries, leaves));
        }
        let unused = Value::Number(0.0);
        assert_eq!(set(1, 0, 2.0, 0.0).size, unused);
    }
}
