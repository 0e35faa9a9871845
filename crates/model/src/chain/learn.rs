//! Which dimension needs which: greedy search for a Bayesian network.
//!
//! Every dimension starts without parents. The search then adds one parent at a time: the dimension (or the number of
//! the matrix) that saves most bits. A parent saves the number of requests times the fall of the conditional entropy,
//! and costs a fixed price for every cell that it adds to the table. The search ends when no parent saves more than it
//! costs. This is the K2 search (Cooper and Herskovits, Machine Learning 9, 1992) with a score by description length.
//!
//! All parents of a dimension must already be together in one table. Such a network is decomposable (Lauritzen,
//! Graphical Models, 1996): all its tables can be kept exactly. Other networks keep them in proportion only.

use crate::feature::Field;
use crate::model::Model;
use crate::schema::chain::{Chain, Link};
use crate::schema::dimension::Role;
use rustc_hash::FxHashMap;

/// Most dimensions that one is given.
const GIVEN: usize = 6;

/// Products of numbers of groups and codes up to which pairs of them are looked up in a vector.
const DENSE: usize = 1 << 22;

/// The joint cells of all matrices, with codes numbered without gaps.
struct Joint {
    columns: Vec<Column>,
    counts: Vec<u64>,
}

struct Column {
    /// Position of the dimension; `None`: the matrix.
    dimension: Option<usize>,
    codes: Vec<u32>,
    /// How many codes there are.
    most: usize,
    /// What it is given whatever that costs: 0 is the matrix, 1 the op.
    always: &'static [usize],
}

/// Cells grouped by some columns.
#[derive(Clone, Default)]
struct Groups {
    /// Group of each cell.
    of: Vec<u32>,
    number: usize,
}

impl Groups {
    /// The same, told apart by one more column.
    fn by(&self, column: &Column) -> Groups {
        let mut number = 0u32;
        let mut next = |slot: &mut u32| {
            if *slot == u32::MAX {
                *slot = number;
                number += 1;
            }
            *slot
        };
        let pairs = self.of.iter().zip(&column.codes);
        let of = if self.number.saturating_mul(column.most) <= DENSE {
            let mut slots = vec![u32::MAX; self.number * column.most];
            pairs.map(|(&g, &code)| next(&mut slots[g as usize * column.most + code as usize])).collect()
        } else {
            let mut slots: FxHashMap<u64, u32> = FxHashMap::default();
            let key = |(&g, &code): (&u32, &u32)| u64::from(g) << 32 | u64::from(code);
            pairs.map(|pair| next(slots.entry(key(pair)).or_insert(u32::MAX))).collect()
        };
        Groups { of, number: number as usize }
    }

    /// Sum of c log2 c over the requests c of each group: n log2 n less this are the bits that tell the group of all
    /// n requests.
    fn order(&self, counts: &[u64]) -> f64 {
        let mut sums = vec![0u64; self.number];
        for (&group, &count) in self.of.iter().zip(counts) {
            sums[group as usize] += count;
        }
        sums.into_iter().map(|c| c as f64 * (c as f64).log2()).sum()
    }
}

impl Joint {
    fn of(model: &Model) -> Joint {
        let table = model.header.drawn_table();
        let (layout, dimensions) = (&model.layouts[table], &model.header.tables[table].dimensions);
        let cells = || model.matrices.iter().map(|matrix| &matrix.tables[table]);
        let mut columns = vec![Column {
            dimension: None,
            codes: cells().zip(0..).flat_map(|(c, m)| std::iter::repeat_n(m, c.len())).collect(),
            most: model.matrices.len(),
            always: &[],
        }];
        for at in order(model) {
            let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
            let mut number = |key: u64| {
                let next = numbers.len() as u32;
                *numbers.entry(layout.code(key, at)).or_insert(next)
            };
            let codes = cells().flat_map(|c| &c.keys).map(|&key| number(key)).collect();
            let dimension = &model.header.dimensions[dimensions[at]];
            // Groups of windows tell their ops, so these must be exact. A few large sizes carry most of the bytes
            // written at a time, which shares of requests hardly show.
            let always: &[usize] = match (dimension.role, dimension.feature.kind().field) {
                (Role::Sets, Field::Op) => &[0],
                (Role::Sets, Field::Size) => &[1, 0],
                _ => &[],
            };
            let dimension = Some(dimensions[at]);
            columns.push(Column { dimension, codes, most: numbers.len(), always });
        }
        Joint { columns, counts: cells().flat_map(|c| &c.counts).copied().collect() }
    }

    /// Bits of all requests by the joint tables.
    fn least_bits(&self) -> f64 {
        let by_matrix = self.all().by(&self.columns[0]);
        let whole = self.columns[1..].iter().fold(by_matrix.clone(), |groups, column| groups.by(column));
        by_matrix.order(&self.counts) - whole.order(&self.counts)
    }

    /// Bits of all requests by the tables of a chain.
    fn bits_by(&self, chain: &Chain) -> f64 {
        let column = |dimension: &usize| self.columns.iter().position(|c| c.dimension == Some(*dimension));
        let bits = |link: &Link| {
            let first = if link.by_matrix { Some(0) } else { None };
            let given = first.into_iter().chain(link.given.iter().filter_map(column));
            let groups = given.fold(self.all(), |groups, c| groups.by(&self.columns[c]));
            column(&link.dimension).map_or(0.0, |x| Found::of(self, groups, x).bits)
        };
        chain.links.iter().map(bits).sum()
    }

    fn all(&self) -> Groups {
        Groups { of: vec![0; self.counts.len()], number: 1 }
    }

    /// What column `x` is given, these and as many more as are worth their cells, and what that makes of it.
    fn search(
        &self,
        x: usize,
        mut given: Vec<usize>,
        tables: &[Vec<usize>],
        cell_bits: f64,
    ) -> (Vec<usize>, Found) {
        let groups = given.iter().fold(self.all(), |groups, &c| groups.by(&self.columns[c]));
        let mut found = Found::of(self, groups, x);
        while given.len() < GIVEN {
            let together = |c: usize| {
                let has = |table: &Vec<usize>| table.contains(&c) && given.iter().all(|g| table.contains(g));
                tables.iter().any(has)
            };
            let candidates = (0..x).filter(|c| !given.contains(c) && together(*c));
            let gain = |other: &Found| found.bits - other.bits - cell_bits * (other.cells - found.cells);
            let best = candidates
                .map(|c| (c, Found::of(self, found.groups.by(&self.columns[c]), x)))
                .max_by(|a, b| gain(&a.1).total_cmp(&gain(&b.1)));
            match best {
                Some((c, other)) if gain(&other) > 0.0 => {
                    given.push(c);
                    found = other;
                }
                _ => break,
            }
        }
        (given, found)
    }
}

/// Positions in the joint table in the order of drawing: the op, what is known before a request, the rest as it is.
fn order(model: &Model) -> Vec<usize> {
    let dimensions = &model.header.tables[model.header.drawn_table()].dimensions;
    let rank = |at: &usize| {
        let dimension = &model.header.dimensions[dimensions[*at]];
        match (dimension.role, dimension.feature.kind().field) {
            (Role::Sets, Field::Op) => 0,
            (Role::Given, _) => 1,
            // What says where a request goes says much of its size and gap.
            (_, Field::Size | Field::Gap | Field::Align) => 3,
            _ => 2,
        }
    };
    let mut order: Vec<usize> = (0..dimensions.len()).collect();
    order.sort_by_key(rank);
    order
}

/// The chain in which every cell saves at least so many bits.
pub(super) fn learn(model: &Model, cell_bits: f64) -> Chain {
    let joint = Joint::of(model);
    let mut links: Vec<Link> = Vec::new();
    // Columns of each table.
    let mut tables: Vec<Vec<usize>> = Vec::new();
    let mut bits = 0.0;
    for x in 1..joint.columns.len() {
        let column = &joint.columns[x];
        let (given, found) = joint.search(x, column.always.to_vec(), &tables, cell_bits);
        bits += found.bits;
        tables.push(given.iter().copied().chain([x]).collect());
        links.push(Link {
            dimension: joint.columns[x].dimension.expect("only the first column is the matrix"),
            given: given.iter().filter_map(|&c| joint.columns[c].dimension).collect(),
            by_matrix: given.contains(&0),
            formulas: Vec::new(),
            tie: None,
            continues: Vec::new(),
        });
    }
    // The joint tables of a chain were dealt from it: what it lost itself is not in them.
    let (least, before, cells) = match &model.header.chain {
        Some(chain) => (joint.bits_by(chain), chain.lost_bits, chain.joint_cells),
        None => (joint.least_bits(), 0.0, joint.counts.len() as u64),
    };
    let requests = joint.counts.iter().sum::<u64>().max(1) as f64;
    Chain {
        cell_bits,
        joint_cells: cells,
        lost_bits: ((before + (bits - least) / requests) * 1e3).round().max(0.0) / 1e3,
        links,
    }
}

/// A dimension given some others.
struct Found {
    /// Cells by what is given.
    groups: Groups,
    /// Bits of all requests.
    bits: f64,
    /// Cells of the table.
    cells: f64,
}

impl Found {
    fn of(joint: &Joint, groups: Groups, x: usize) -> Found {
        let with = groups.by(&joint.columns[x]);
        let bits = groups.order(&joint.counts) - with.order(&joint.counts);
        Found { groups, bits, cells: with.number as f64 }
    }
}
