//! Draws of files that are left of a matrix, by what they ask for.

use super::decode::{below, unit};
use super::mix::Budget;
use crate::cells::{Cells, Place};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What of a key decides where its draws lie.
pub(super) struct Sorts<C: Fn(u64) -> usize> {
    /// Bits of the given dimensions.
    pub given: u64,
    /// The class of op, one of so many.
    pub class: C,
    pub classes: usize,
    pub op: Place,
    /// When its file was used, what had happened to that, and how long it is.
    pub file: Place,
    pub state: Place,
    pub length: Place,
}

/// A cell and how many of its draws are left.
#[derive(Debug, Clone, Copy)]
struct Cell {
    key: u64,
    left: u64,
    /// Number of the class of files that it leaves its file in.
    to: u32,
}

/// Cells whose files are in one class, and used as long ago as each other's.
#[derive(Debug, Clone)]
struct Lot {
    cells: Range<u32>,
    left: u64,
    shelf: u32,
    age: u32,
    /// Number of the class of their files.
    files: u32,
    /// Number of what they leave.
    leaves: u32,
}

/// Lots of one group, age and class of op.
#[derive(Debug, Clone)]
struct Shelf {
    lots: Range<u32>,
    left: u64,
    class: u32,
}

/// Shelves of one group and age.
#[derive(Debug, Clone)]
pub(super) struct Aisle {
    shelves: Range<u32>,
    /// Code of the age.
    pub age: u32,
}

/// Draws that are left, group by group (those that are given the same), then by age, class of op, and class of files.
#[derive(Debug)]
pub(super) struct Stock {
    cells: Vec<Cell>,
    lots: Vec<Lot>,
    shelves: Vec<Shelf>,
    aisles: Vec<Aisle>,
    groups: FxHashMap<u64, Range<u32>>,
    given: u64,
    /// Numbers of what draws leave: codes of their op, of what had happened to their file, and of its length; and how
    /// many of the draws that are left do so.
    leaves: FxHashMap<(u32, u32, u32), u32>,
    leaving: Vec<u64>,
    /// How many draws ask for files of each class, and how many move files to it from another.
    asks: Vec<u64>,
    brings: Vec<u64>,
    left: u64,
    /// As many as there were.
    counts: Vec<u64>,
    /// What is to be taken of each class of op, how much there is, and what share of it that is.
    budget: Vec<i64>,
    all: Vec<u64>,
    shares: Vec<f64>,
}

impl Stock {
    /// Of all cells of a matrix; `moves` answers the numbers of the class of files that a draw asks for and of that
    /// which it leaves its file in.
    pub fn new<C: Fn(u64) -> usize>(
        cells: &Cells,
        by: &Sorts<C>,
        mut moves: impl FnMut(u64) -> (u32, u32),
    ) -> Stock {
        let sort = |key: u64| {
            let of = |place: Place| place.code(key);
            ((key & by.given), of(by.file), (by.class)(key) as u32, of(by.state), of(by.length))
        };
        let mut order: Vec<_> = (cells.keys.iter().zip(&cells.counts))
            .map(|(&key, &count)| (sort(key), Cell { key, left: count, to: 0 }))
            .collect();
        order.sort_by_key(|(sort, cell)| (*sort, cell.key));
        let mut stock = Stock {
            cells: order.iter().map(|(_, cell)| *cell).collect(),
            lots: Vec::new(),
            shelves: Vec::new(),
            aisles: Vec::new(),
            groups: FxHashMap::default(),
            given: by.given,
            leaves: FxHashMap::default(),
            leaving: Vec::new(),
            asks: Vec::new(),
            brings: Vec::new(),
            left: 0,
            counts: order.iter().map(|(_, cell)| cell.left).collect(),
            budget: vec![0; by.classes],
            all: vec![0; by.classes],
            shares: vec![0.0; by.classes],
        };
        let (mut group, mut aisle, mut shelf, mut lot) = (None, None, None, None);
        for (at, ((given, age, class, state, length), cell)) in (0..).zip(&order) {
            let op = by.op.code(cell.key);
            let next = stock.leaves.len() as u32;
            let leaves = *stock.leaves.entry((op, *state, *length)).or_insert(next);
            if leaves == next {
                stock.leaving.push(0);
            }
            if aisle.replace((*given, *age)) != Some((*given, *age)) {
                let begin = stock.aisles.len() as u32;
                if group.replace(*given) != Some(*given) {
                    stock.groups.insert(*given, begin..begin);
                }
                stock.groups.entry(*given).and_modify(|range| range.end = begin + 1);
                let shelves = stock.shelves.len() as u32;
                stock.aisles.push(Aisle { shelves: shelves..shelves, age: *age });
                shelf = None;
            }
            if shelf.replace(*class) != Some(*class) {
                let lots = stock.lots.len() as u32;
                stock.shelves.push(Shelf { lots: lots..lots, left: 0, class: *class });
                stock.aisles.last_mut().expect("one").shelves.end += 1;
                lot = None;
            }
            let (files, to) = moves(cell.key);
            stock.cells[at as usize].to = to;
            if lot.replace((*state, *length, leaves)) != Some((*state, *length, leaves)) {
                let shelf = stock.shelves.len() as u32 - 1;
                stock.lots.push(Lot { cells: at..at, left: 0, shelf, age: *age, files, leaves });
                stock.shelves.last_mut().expect("one").lots.end += 1;
            }
            let lot = stock.lots.last_mut().expect("one");
            lot.cells.end = at + 1;
            lot.left += cell.left;
            stock.shelves.last_mut().expect("one").left += cell.left;
            stock.all[*class as usize] += cell.left;
            stock.leaving[leaves as usize] += cell.left;
            stock.left += cell.left;
            let most = files.max(to) as usize + 1;
            if stock.asks.len() < most {
                stock.asks.resize(most, 0);
                stock.brings.resize(most, 0);
            }
            stock.asks[files as usize] += cell.left;
            stock.brings[to as usize] += if files == to { 0 } else { cell.left };
        }
        stock
    }

    /// The cells of a lot.
    pub fn cells(&self, lot: u32) -> Range<u32> {
        self.lots[lot as usize].cells.clone()
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
        for at in 0..self.lots.len() {
            let lot = &self.lots[at];
            let (cells, leaves, shelf) = (lot.cells.clone(), lot.leaves as usize, lot.shelf as usize);
            for cell in cells {
                let more = self.counts[cell as usize];
                self.cells[cell as usize].left += more;
                self.lots[at].left += more;
                self.leaving[leaves] += more;
                self.shelves[shelf].left += more;
                self.all[self.shelves[shelf].class as usize] += more;
                self.left += more;
                let (from, to) = (self.lots[at].files, self.cells[cell as usize].to);
                self.asks[from as usize] += more;
                self.brings[to as usize] += if from == to { 0 } else { more };
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

    /// The aisles of a group.
    pub fn group(&self, given: u64) -> Range<u32> {
        self.groups.get(&given).cloned().unwrap_or_default()
    }

    /// All aisles.
    pub fn all(&self) -> Range<u32> {
        0..self.aisles.len() as u32
    }

    pub fn aisle(&self, aisle: u32) -> &Aisle {
        &self.aisles[aisle as usize]
    }

    /// Whether a draw is given what came before.
    pub fn follows(&self, lot: u32, given: u64) -> bool {
        self.cells[self.lots[lot as usize].cells.start as usize].key & self.given == given
    }

    fn shelves(&self, aisle: u32) -> &[Shelf] {
        let Range { start, end } = self.aisles[aisle as usize].shelves.clone();
        &self.shelves[start as usize..end as usize]
    }

    /// How many draws of an aisle are to be taken, as far as the budget has them.
    #[inline]
    pub fn weight(&self, aisle: u32) -> f64 {
        self.shelves(aisle).iter().map(|shelf| shelf.left as f64 * self.shares[shelf.class as usize]).sum()
    }

    /// How many of the draws of an aisle are of files of a length, by code.
    pub fn of_length(&self, aisle: u32, place: Place, length: u32) -> u64 {
        let lots = self.lots(aisle);
        let of = |lot: &&Lot| place.code(self.cells[lot.cells.start as usize].key) == length;
        self.lots[lots.start as usize..lots.end as usize].iter().filter(of).map(|lot| lot.left).sum()
    }

    /// How many of the draws that are left leave the same: op, what had happened to the file, and its length.
    pub fn leaving(&self, leaves: (u32, u32, u32)) -> u64 {
        self.leaves.get(&leaves).map_or(0, |at| self.leaving[*at as usize])
    }

    /// The lots of an aisle.
    pub fn lots(&self, aisle: u32) -> Range<u32> {
        let shelves = self.shelves(aisle);
        shelves.first().map_or(0, |shelf| shelf.lots.start)..shelves.last().map_or(0, |shelf| shelf.lots.end)
    }

    /// The lots of some aisles.
    pub fn lots_of(&self, aisles: Range<u32>) -> Range<u32> {
        if aisles.is_empty() { 0..0 } else { self.lots(aisles.start).start..self.lots(aisles.end - 1).end }
    }

    /// How many draws of a lot are left, and how many the budget has of their class of op.
    pub fn left(&self, lot: u32) -> (u64, i64) {
        let lot = &self.lots[lot as usize];
        (lot.left, self.budget[self.shelves[lot.shelf as usize].class as usize])
    }

    /// Code of the age of a lot's files.
    #[inline]
    pub fn age(&self, lot: u32) -> u32 {
        self.lots[lot as usize].age
    }

    /// Number of the class of files that a lot asks for.
    #[inline]
    pub fn files(&self, lot: u32) -> u32 {
        self.lots[lot as usize].files
    }

    /// One of the lots of an aisle, by how many draws are to be taken.
    #[inline]
    pub fn pick(&self, aisle: u32, rng: &mut Xoshiro256PlusPlus) -> Option<u32> {
        let mut target = self.weight(aisle) * unit(rng);
        let shelf = self.shelves(aisle).iter().find(|shelf| {
            target -= shelf.left as f64 * self.shares[shelf.class as usize];
            target < 0.0
        })?;
        let mut target = below(rng, shelf.left);
        shelf.lots.clone().find(|&lot| {
            let left = self.lots[lot as usize].left;
            let here = target < left;
            target = target.saturating_sub(left);
            here
        })
    }

    /// One of the draws of a lot: its cell, and the key of it.
    #[inline]
    pub fn draw(&self, lot: u32, rng: &mut Xoshiro256PlusPlus) -> Option<(u32, u64)> {
        let lot = &self.lots[lot as usize];
        if lot.left == 0 {
            return None;
        }
        let mut target = below(rng, lot.left);
        for at in lot.cells.clone() {
            let cell = &self.cells[at as usize];
            if target < cell.left {
                return Some((at, cell.key));
            }
            target -= cell.left;
        }
        None
    }

    /// Whether a draw would take the last file of its class away, which others wait for, and none would bring another.
    pub fn strands(&self, lot: u32, cell: u32, files: impl Fn(u32) -> usize) -> bool {
        let (from, to) = (self.lots[lot as usize].files, self.cells[cell as usize].to);
        from != to && self.asks[from as usize] > 1 && self.brings[from as usize] == 0 && files(from) == 1
    }

    /// Takes a draw away.
    pub fn take(&mut self, lot: u32, cell: u32) {
        self.cells[cell as usize].left -= 1;
        let to = self.cells[cell as usize].to;
        let lot = &mut self.lots[lot as usize];
        lot.left -= 1;
        self.asks[lot.files as usize] -= 1;
        self.brings[to as usize] -= u64::from(to != lot.files);
        self.leaving[lot.leaves as usize] -= 1;
        let shelf = &mut self.shelves[lot.shelf as usize];
        shelf.left -= 1;
        let class = shelf.class as usize;
        self.left -= 1;
        self.all[class] -= 1;
        self.budget[class] -= 1;
        self.share(class);
    }
}
