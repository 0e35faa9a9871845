//! Where new files go, and under what names.

use crate::create::draw::Draw;
use crate::names::Name;
use crate::tree::{Series, Tree};
use rustc_hash::FxHashMap;

/// Numbers of made names from here on are users'.
pub(crate) const USERS: u32 = (1 << 31) - (1 << 20);

/// A file that was deleted and may come again under its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    pub dir: u32,
    pub name: Name,
    pub extension: u16,
}

/// Where new files go.
pub(crate) struct Arrivals {
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
    pub fn like(&mut self, depth: usize, extension: u16) -> Option<Left> {
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
    pub fn dir(&self, depth: usize, draw: &mut Draw) -> u32 {
        let there = |depth: &usize| self.by_depth.get(*depth).is_some_and(|dirs| !dirs.is_empty());
        let dirs = &self.by_depth[(0..=depth).rev().find(there).unwrap_or(0)];
        dirs[draw.below(dirs.len())]
    }
}

/// Directories of each depth.
pub(crate) fn dirs_by_depth(tree: &Tree) -> Vec<Vec<u32>> {
    let mut dirs: Vec<Vec<u32>> = vec![Vec::new()];
    for (dir, depth) in (0..).zip(tree.depths()) {
        let depth = usize::from(depth);
        dirs.resize_with(dirs.len().max(depth + 1), Vec::new);
        dirs[depth].push(dir);
    }
    dirs
}

/// The largest number from which a name of a series is made, or could be: those beyond it are free.
pub(crate) fn last_name(series: &Series) -> u32 {
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
