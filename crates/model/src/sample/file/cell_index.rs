//! Draws of files that are left of a matrix, by what they ask for.

use crate::random::{Random, below, unit};
use crate::sample::mix::Budget;
use crate::schema::cells::{Cells, KeyField};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What of a key decides where its draws lie.
pub(crate) struct Sorts<C: Fn(u64) -> usize> {
    /// Bits of the given dimensions.
    pub given: u64,
    /// The class of op, one of so many.
    pub class: C,
    pub classes: usize,
    /// When its file was used, what had happened to that, and how long it is.
    pub file: KeyField,
    pub state: KeyField,
    pub length: KeyField,
}

/// A cell and how many of its draws are left.
#[derive(Debug, Clone, Copy)]
struct Cell {
    key: u64,
    left: u64,
}

/// Cells whose files are in one class, and used as long ago as each other's.
#[derive(Debug, Clone)]
struct FileGroup {
    cells: Range<u32>,
    left: u64,
    op_group: u32,
    age: u32,
    /// Number of the class of their files.
    files: u32,
}

/// What draws of one group, age and class of op have in common.
#[derive(Debug, Clone)]
struct OpGroup {
    file_groups: Range<u32>,
    left: u64,
    class: u32,
}

/// Draws that are left, group by group (those that are given the same), then by age, class of op, and class of files.
#[derive(Debug)]
pub(crate) struct CellIndex {
    cells: Vec<Cell>,
    file_groups: Vec<FileGroup>,
    op_groups: Vec<OpGroup>,
    /// The op groups of each group and age.
    age_groups: Vec<Range<u32>>,
    groups: FxHashMap<u64, Range<u32>>,
    given: u64,
    left: u64,
    /// As many as there were.
    counts: Vec<u64>,
    /// What is to be taken of each class of op, how much there is, and what share of it that is.
    budget: Vec<i64>,
    all: Vec<u64>,
    shares: Vec<f64>,
}

impl CellIndex {
    /// Of all cells of a matrix; `asked` answers the number of the class of files that a draw asks for.
    pub fn new<C: Fn(u64) -> usize>(
        cells: &Cells,
        by: &Sorts<C>,
        mut asked: impl FnMut(u64) -> u32,
    ) -> CellIndex {
        let sort = |key: u64| {
            let of = |place: KeyField| place.code(key);
            ((key & by.given), of(by.file), (by.class)(key) as u32, of(by.state), of(by.length))
        };
        let mut order: Vec<_> = (cells.keys.iter().zip(&cells.counts))
            .map(|(&key, &count)| (sort(key), Cell { key, left: count }))
            .collect();
        order.sort_by_key(|(sort, cell)| (*sort, cell.key));
        let mut index = CellIndex {
            cells: order.iter().map(|(_, cell)| *cell).collect(),
            file_groups: Vec::new(),
            op_groups: Vec::new(),
            age_groups: Vec::new(),
            groups: FxHashMap::default(),
            given: by.given,
            left: 0,
            counts: order.iter().map(|(_, cell)| cell.left).collect(),
            budget: vec![0; by.classes],
            all: vec![0; by.classes],
            shares: vec![0.0; by.classes],
        };
        let (mut group, mut age_group, mut op_group, mut file_group) = (None, None, None, None);
        for (at, ((given, age, class, state, length), cell)) in (0..).zip(&order) {
            if age_group.replace((*given, *age)) != Some((*given, *age)) {
                let begin = index.age_groups.len() as u32;
                if group.replace(*given) != Some(*given) {
                    index.groups.insert(*given, begin..begin);
                }
                index.groups.entry(*given).and_modify(|range| range.end = begin + 1);
                let op_groups = index.op_groups.len() as u32;
                index.age_groups.push(op_groups..op_groups);
                op_group = None;
            }
            if op_group.replace(*class) != Some(*class) {
                let file_groups = index.file_groups.len() as u32;
                index.op_groups.push(OpGroup {
                    file_groups: file_groups..file_groups,
                    left: 0,
                    class: *class,
                });
                index.age_groups.last_mut().expect("one").end += 1;
                file_group = None;
            }
            if file_group.replace((*state, *length)) != Some((*state, *length)) {
                let op_group = index.op_groups.len() as u32 - 1;
                index.file_groups.push(FileGroup {
                    cells: at..at,
                    left: 0,
                    op_group,
                    age: *age,
                    files: asked(cell.key),
                });
                index.op_groups.last_mut().expect("one").file_groups.end += 1;
            }
            let file_group = index.file_groups.last_mut().expect("one");
            file_group.cells.end = at + 1;
            file_group.left += cell.left;
            index.op_groups.last_mut().expect("one").left += cell.left;
            index.all[*class as usize] += cell.left;
            index.left += cell.left;
        }
        index
    }

    /// The cells of a file group.
    pub fn cells(&self, file_group: u32) -> Range<u32> {
        self.file_groups[file_group as usize].cells.clone()
    }

    /// The key of a cell that draws are left of.
    pub fn left_of(&self, cell: u32) -> Option<u64> {
        let cell = &self.cells[cell as usize];
        (cell.left > 0).then_some(cell.key)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Begins anew.
    pub fn refill(&mut self) {
        for at in 0..self.file_groups.len() {
            let file_group = &self.file_groups[at];
            let (cells, op_group) = (file_group.cells.clone(), file_group.op_group as usize);
            for cell in cells {
                let more = self.counts[cell as usize];
                self.cells[cell as usize].left += more;
                self.file_groups[at].left += more;
                self.op_groups[op_group].left += more;
                self.all[self.op_groups[op_group].class as usize] += more;
                self.left += more;
            }
        }
    }

    /// Adds to what is to be taken of each class.
    pub fn grant(&mut self, budget: &Budget) {
        for (class, more) in budget.iter().enumerate() {
            self.budget[class] += more;
            self.share(class);
        }
    }

    fn share(&mut self, class: usize) {
        self.shares[class] = self.budget[class].max(0) as f64 / self.all[class].max(1) as f64;
    }

    /// The age groups of a group.
    pub fn group(&self, given: u64) -> Range<u32> {
        self.groups.get(&given).cloned().unwrap_or_default()
    }

    /// All age groups.
    pub fn all(&self) -> Range<u32> {
        0..self.age_groups.len() as u32
    }

    /// Whether a draw is given what came before.
    pub fn follows(&self, file_group: u32, given: u64) -> bool {
        self.cells[self.file_groups[file_group as usize].cells.start as usize].key & self.given == given
    }

    fn op_groups(&self, age_group: u32) -> &[OpGroup] {
        let Range { start, end } = self.age_groups[age_group as usize].clone();
        &self.op_groups[start as usize..end as usize]
    }

    /// How many draws of an age group are to be taken, as far as the budget has them.
    #[inline]
    pub fn weight(&self, age_group: u32) -> f64 {
        self.op_groups(age_group)
            .iter()
            .map(|op_group| op_group.left as f64 * self.shares[op_group.class as usize])
            .sum()
    }

    /// The file groups of an age group.
    pub fn file_groups(&self, age_group: u32) -> Range<u32> {
        let op_groups = self.op_groups(age_group);
        op_groups.first().map_or(0, |op_group| op_group.file_groups.start)
            ..op_groups.last().map_or(0, |op_group| op_group.file_groups.end)
    }

    /// The file groups of some age groups.
    pub fn lots_of(&self, age_groups: Range<u32>) -> Range<u32> {
        if age_groups.is_empty() {
            0..0
        } else {
            self.file_groups(age_groups.start).start..self.file_groups(age_groups.end - 1).end
        }
    }

    /// How many draws of a file group are left, and how many the budget has of their class of op.
    pub fn left(&self, file_group: u32) -> (u64, i64) {
        let file_group = &self.file_groups[file_group as usize];
        (file_group.left, self.budget[self.op_groups[file_group.op_group as usize].class as usize])
    }

    /// Code of the age of a file group's files.
    #[inline]
    pub fn age(&self, file_group: u32) -> u32 {
        self.file_groups[file_group as usize].age
    }

    /// Number of the class of files that a file group asks for.
    #[inline]
    pub fn files(&self, file_group: u32) -> u32 {
        self.file_groups[file_group as usize].files
    }

    /// One of the file groups of an age group, by how many draws are to be taken.
    #[inline]
    pub fn pick(&self, age_group: u32, rng: &mut Random) -> Option<u32> {
        let mut target = self.weight(age_group) * unit(rng);
        let op_group = self.op_groups(age_group).iter().find(|op_group| {
            target -= op_group.left as f64 * self.shares[op_group.class as usize];
            target < 0.0
        })?;
        let mut target = below(rng, op_group.left);
        op_group.file_groups.clone().find(|&file_group| {
            let left = self.file_groups[file_group as usize].left;
            let here = target < left;
            target = target.saturating_sub(left);
            here
        })
    }

    /// One of the draws of a file group: its cell, and the key of it.
    #[inline]
    pub fn draw(&self, file_group: u32, rng: &mut Random) -> Option<(u32, u64)> {
        let file_group = &self.file_groups[file_group as usize];
        if file_group.left == 0 {
            return None;
        }
        let mut target = below(rng, file_group.left);
        for at in file_group.cells.clone() {
            let cell = &self.cells[at as usize];
            if target < cell.left {
                return Some((at, cell.key));
            }
            target -= cell.left;
        }
        None
    }

    /// Takes a draw away.
    pub fn take(&mut self, file_group: u32, cell: u32) {
        self.cells[cell as usize].left -= 1;
        let file_group = &mut self.file_groups[file_group as usize];
        file_group.left -= 1;
        let op_group = &mut self.op_groups[file_group.op_group as usize];
        op_group.left -= 1;
        let class = op_group.class as usize;
        self.left -= 1;
        self.all[class] -= 1;
        self.budget[class] -= 1;
        self.share(class);
    }
}
