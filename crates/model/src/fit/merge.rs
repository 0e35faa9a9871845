//! Merging: windows that look alike share a matrix, which gives the phases.

use crate::fit::distance::{self, Measured};
use crate::schema::cells::{Cells, Layout};
use crate::schema::merging::{Distance, Merge};
use crate::schema::rule::Rule;
use loadstone_trace::wide;

/// Slots of a dimension in a [`Profile`].
const SLOTS: usize = 32;

/// Matrices whose distance is measured exactly, of all that a rough look finds near.
const CLOSEST: usize = 3;

/// The shares of each dimension's codes, folded into few slots: quick to compare, and never farther
/// apart than the marginals themselves.
#[derive(Debug, Clone, Default)]
struct Profile(Vec<f32>);

impl Profile {
    fn new(counted: &Counted, compared: &[usize]) -> Profile {
        let mut shares = vec![0f32; compared.len() * SLOTS];
        for (slots, &d) in shares.chunks_exact_mut(SLOTS).zip(compared) {
            let marginal = &counted.marginals[d];
            let scale = 1.0 / marginal.total().max(1) as f32;
            for (&code, &count) in marginal.keys.iter().zip(&marginal.counts) {
                slots[code as usize % SLOTS] += count as f32 * scale;
            }
        }
        Profile(shares)
    }

    fn distance(&self, other: &Profile) -> f32 {
        apart(&self.0, &other.0)
    }
}

wide! {
    fn apart(a: &[f32], b: &[f32]) -> f32 {
        // Several sums side by side, which the compiler turns into vector instructions.
        let mut sums = [0f32; 8];
        for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
            for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum += (x - y).abs();
            }
        }
        sums.iter().sum()
    }
}

/// A joint histogram that much is added to, a little at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    cells: Cells,
    /// Cells that wait to be added in any order: one walk over a large table for many small ones.
    waiting: Vec<(u64, u64)>,
}

impl Table {
    /// Cells that wait at most, where the table has no more.
    const WAITING: usize = 1 << 11;

    fn add(&mut self, other: &Table) {
        let cells = other.cells.keys.iter().copied().zip(other.cells.counts.iter().copied());
        self.waiting.extend(cells.chain(other.waiting.iter().copied()));
        if self.waiting.len() > self.cells.len().max(Table::WAITING) {
            self.settle();
        }
    }

    /// Adds what waits.
    fn settle(&mut self) {
        if !self.waiting.is_empty() {
            self.cells.add(&Cells::from_pairs(std::mem::take(&mut self.waiting)));
        }
    }

    /// All that was added.
    pub fn into_cells(mut self) -> Cells {
        self.settle();
        self.cells
    }

    /// Puts the keys into a layout with more bits.
    pub fn rekey(&mut self, old: &Layout, new: &Layout) {
        self.cells.rekey(old, new);
        self.waiting.iter_mut().for_each(|(key, _)| *key = old.rekey(new, *key));
    }
}

/// A group of windows, or a matrix, being counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    /// Cells of each table.
    pub tables: Vec<Table>,
    /// Marginal of each dimension.
    pub marginals: Vec<Cells>,
    profile: Profile,
}

impl Counted {
    /// With marginals taken from the first table that has the dimension.
    pub fn new(tables: Vec<Cells>, layouts: &[Layout], members: &[Vec<usize>], dimensions: usize) -> Counted {
        let marginals: Vec<Cells> = (0..dimensions)
            .map(|d| {
                let place =
                    members.iter().enumerate().find_map(|(t, m)| Some((t, m.iter().position(|x| *x == d)?)));
                place.map(|(t, at)| tables[t].marginal(&layouts[t], at)).unwrap_or_default()
            })
            .collect();
        let tables = tables.into_iter().map(|cells| Table { cells, waiting: Vec::new() }).collect();
        Counted { tables, marginals, profile: Profile::default() }
    }

    fn add(&mut self, other: &Counted) {
        for (mine, theirs) in self.tables.iter_mut().zip(&other.tables) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.marginals.iter_mut().zip(&other.marginals) {
            mine.add(theirs);
        }
    }
}

/// Takes windows in order and keeps only distinct matrices.
pub(crate) struct Merger {
    /// The matrices so far.
    pub matrices: Vec<Counted>,
    mode: Merge,
    distance: Distance,
    threshold: f64,
    most: usize,
    last: Option<usize>,
    /// The size's dimension and rule.
    size: (usize, Rule),
    /// Dimensions that are compared.
    compared: Vec<usize>,
}

impl Merger {
    /// At most `most` matrices; marginals of the `compared` dimensions are.
    pub fn new(
        (mode, distance, threshold): (Merge, Distance, f64),
        most: usize,
        size: (usize, Rule),
        compared: Vec<usize>,
    ) -> Self {
        let matrices = Vec::new();
        Merger { matrices, mode, distance, threshold, most: most.max(1), last: None, size, compared }
    }

    /// What comes next is not to join the matrix of the window before.
    pub fn part(&mut self) {
        self.last = None;
    }

    /// How far two are apart beyond chance, or at least `enough`, from where on it does not matter how far.
    fn excess(&self, a: &Counted, b: &Counted, enough: f64) -> f64 {
        let joint = |measure: fn(&Cells, &Cells) -> Measured| {
            distance::mean(a.tables.iter().map(|t| &t.cells).zip(b.tables.iter().map(|t| &t.cells)), measure)
        };
        match self.distance {
            Distance::Marginals => {
                let (size, rule) = &self.size;
                let number = |code: u64| {
                    rule.range(code as u32).map_or(0.0, |r| (r.first as f64 + r.last as f64) / 2.0)
                };
                let mut most = distance::means(&a.marginals[*size], &b.marginals[*size], number).excess();
                for &d in &self.compared {
                    if most >= enough {
                        break;
                    }
                    most = most.max(distance::total_variation(&a.marginals[d], &b.marginals[d]).excess());
                }
                most
            }
            Distance::Tv => joint(distance::total_variation).excess(),
            Distance::MaxCell => joint(distance::max_cell).excess(),
        }
    }

    /// Adds a window to the matrix it belongs to, or founds one; answers which.
    pub fn add(&mut self, mut window: Counted) -> usize {
        window.profile = Profile::new(&window, &self.compared);
        let full = self.matrices.len() >= self.most;
        let candidates = match self.mode {
            _ if full => 0..self.matrices.len(),
            Merge::None => 0..0,
            Merge::Adjacent => self.last.map_or(0..0, |m| m..m + 1),
            Merge::All => 0..self.matrices.len(),
        };
        let mut candidates: Vec<usize> = candidates.collect();
        if self.distance == Distance::Marginals && candidates.len() > CLOSEST {
            let rough = |i: &usize| self.matrices[*i].profile.distance(&window.profile).to_bits();
            let mut by_look: Vec<(u32, usize)> = candidates.iter().map(|i| (rough(i), *i)).collect();
            // Bits of positive floats are in the order of their values.
            by_look.select_nth_unstable(CLOSEST);
            candidates = by_look[..CLOSEST].iter().map(|(_, i)| *i).collect();
            candidates.sort_unstable();
        }
        let mut best: Option<(f64, usize)> = None;
        for i in candidates {
            let least = best.map_or(f64::INFINITY, |(least, _)| least);
            // Of those that are as near the first is as good as any.
            if least > 0.0 {
                let excess = self.excess(&self.matrices[i], &window, least);
                best = if excess < least { Some((excess, i)) } else { best };
            }
        }
        let index = match best {
            Some((excess, i)) if full || excess <= self.threshold => {
                self.matrices[i].add(&window);
                if self.distance != Distance::Marginals {
                    self.matrices[i].tables.iter_mut().for_each(Table::settle);
                }
                self.matrices[i].profile = Profile::new(&self.matrices[i], &self.compared);
                i
            }
            _ => {
                self.matrices.push(window);
                self.matrices.len() - 1
            }
        };
        self.last = Some(index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log2() -> Rule {
        Rule::Log2 { sub: 1, signed: false }
    }

    fn window(pairs: &[(u64, u64)]) -> Counted {
        let layout = Layout::new(&[8]).unwrap();
        Counted::new(vec![Cells::from_pairs(pairs.to_vec())], &[layout], &[vec![0]], 1)
    }

    #[test]
    fn alike_windows_share_a_matrix_near_or_far() {
        let (quiet, busy) = (window(&[(1, 900), (2, 100)]), window(&[(5, 2000)]));
        for distance in [Distance::Marginals, Distance::Tv, Distance::MaxCell] {
            for (mode, expect) in
                [(Merge::None, [0, 1, 2, 3]), (Merge::Adjacent, [0, 0, 1, 2]), (Merge::All, [0, 0, 1, 0])]
            {
                let mut merger = Merger::new((mode, distance, 0.1), 100, (0, log2()), vec![0]);
                let got = [&quiet, &quiet, &busy, &quiet].map(|w| merger.add(w.clone()));
                assert_eq!(got, expect, "{mode:?} {distance:?}");
                let all: u64 = merger.matrices.iter().map(|m| m.tables[0].clone().into_cells().total()).sum();
                assert_eq!(all, 5000);
            }
        }
    }

    #[test]
    fn the_nearest_wins_when_there_are_enough() {
        let mut merger = Merger::new((Merge::None, Distance::Tv, 0.0), 2, (0, log2()), vec![0]);
        merger.add(window(&[(1, 100)]));
        merger.add(window(&[(9, 100)]));
        assert_eq!(merger.add(window(&[(9, 90), (10, 10)])), 1);
        assert_eq!(merger.matrices.len(), 2);
    }
}
