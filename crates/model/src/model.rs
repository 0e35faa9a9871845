//! The model in memory, its laws, and what can be asked of it.

use crate::error::{Error, ErrorKind, Result};
use crate::feature::Field;
use crate::schema::cells::{Cells, Layout, Marginal, TOO_WIDE, bits_for};
use crate::schema::chain::LinkCells;
use crate::schema::dimension::{Dimension, Role};
use crate::schema::header::Header;
use std::borrow::Cow;
use std::ops::Range;

/// A histogram shared by all windows of its phases: one set of cells for each table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matrix {
    /// Cells of each table of the header.
    pub tables: Vec<Cells>,
}

impl Matrix {
    /// Requests counted.
    pub fn requests(&self) -> u64 {
        self.tables.first().map_or(0, Cells::total)
    }
}

/// A run of windows with the same matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// The windows.
    pub windows: Range<u64>,
    /// Position of their matrix in [`Model::matrices`].
    pub matrix: u32,
    /// Requests of all of them.
    pub requests: u64,
}

/// Multi-dimensional histograms of a request stream, by phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Everything but the cells.
    pub header: Header,
    /// How the keys of each table are packed.
    pub layouts: Vec<Layout>,
    /// The distinct matrices.
    pub matrices: Vec<Matrix>,
    /// The tables that stand for the joint ones in the file, for each link of the header's chain, where it has one.
    pub links: Vec<LinkCells>,
}

/// Cells as the file has them.
pub(crate) struct Stored<'a> {
    /// -1: shared by all.
    pub matrix: i64,
    /// Number of the link of the chain or the table.
    pub table: i64,
    /// In the order of the packed key.
    pub dimensions: Cow<'a, [usize]>,
    pub layout: &'a Layout,
    pub cells: &'a Cells,
}

impl Model {
    /// Requests of the whole stream.
    pub fn requests(&self) -> u64 {
        self.header.windows.counts.iter().sum()
    }

    /// Non-empty cells of all matrices.
    pub fn cells(&self) -> u64 {
        self.matrices.iter().flat_map(|m| &m.tables).map(|t| t.len() as u64).sum()
    }

    /// Length of the whole stream, nanoseconds.
    pub fn span_ns(&self) -> i64 {
        self.header.windows.span_ns()
    }

    /// The phases in order of time; they cover all windows.
    pub fn phases(&self) -> Vec<Phase> {
        let mut first = 0;
        let line = &self.header.windows;
        (line.matrices.iter())
            .map(|&(run, matrix)| {
                let range = first..first + run;
                first += run;
                let requests = line.counts[range.start as usize..range.end as usize].iter().sum();
                Phase { windows: range, matrix, requests }
            })
            .collect()
    }

    /// The matrix of every window.
    pub fn matrix_of_window(&self) -> impl Iterator<Item = u32> + '_ {
        self.header
            .windows
            .matrices
            .iter()
            .flat_map(|&(run, matrix)| std::iter::repeat_n(matrix, run as usize))
    }

    /// Requests by code of one dimension, of one matrix or of all.
    ///
    /// # Errors
    /// [`ErrorKind::Asked`] where there is no such dimension or matrix.
    pub fn marginal(&self, dimension: usize, matrix: Option<usize>) -> Result<Marginal> {
        let (table, at) = (self.header.tables.iter().enumerate())
            .find_map(|(t, table)| Some((t, table.dimensions.iter().position(|d| *d == dimension)?)))
            .ok_or_else(|| Error::new(ErrorKind::Asked, format!("there is no dimension {dimension}")))?;
        let mut sum = Marginal::default();
        match matrix {
            Some(m) => {
                let matrix = self.matrices.get(m).ok_or_else(|| {
                    Error::new(ErrorKind::Asked, format!("there is no matrix {m}")).help(format!(
                        "the model has matrices 0 to {}",
                        self.matrices.len().saturating_sub(1)
                    ))
                })?;
                sum = matrix.tables[table].marginal(&self.layouts[table], at);
            }
            None => {
                for matrix in &self.matrices {
                    sum.add(&matrix.tables[table].marginal(&self.layouts[table], at));
                }
            }
        }
        Ok(sum)
    }

    /// All cells: matrix, table, code of each dimension (-1 where a table does not have it), count.
    pub fn columns(&self) -> Vec<(String, Vec<i64>)> {
        self.as_columns(&self.tables())
    }

    /// The same as the file has them: links of a chain in place of joint tables, -1 for the matrix of shared ones.
    pub fn stored_columns(&self) -> Vec<(String, Vec<i64>)> {
        self.as_columns(&self.stored())
    }

    /// Cells that the file has.
    pub fn stored_cells(&self) -> u64 {
        self.stored().iter().map(|part| part.cells.len() as u64).sum()
    }

    fn as_columns(&self, parts: &[Stored<'_>]) -> Vec<(String, Vec<i64>)> {
        let mut columns: Vec<(String, Vec<i64>)> =
            ["matrix", "table"].map(|n| (n.to_string(), Vec::new())).into();
        columns.extend(self.header.dimensions.iter().map(|d| (d.feature.to_string(), Vec::new())));
        columns.push(("count".into(), Vec::new()));
        let last = columns.len() - 1;
        for part in parts {
            columns[0].1.extend(std::iter::repeat_n(part.matrix, part.cells.len()));
            columns[1].1.extend(std::iter::repeat_n(part.table, part.cells.len()));
            for d in 0..self.header.dimensions.len() {
                let at = part.dimensions.iter().position(|x| *x == d);
                let code = |&key| at.map_or(-1, |at| i64::from(part.layout.code(key, at)));
                columns[d + 2].1.extend(part.cells.keys.iter().map(code));
            }
            columns[last].1.extend(part.cells.counts.iter().map(|&n| n as i64));
        }
        columns
    }

    fn tables(&self) -> Vec<Stored<'_>> {
        let mut parts = Vec::new();
        for (m, matrix) in self.matrices.iter().enumerate() {
            for (t, (table, layout)) in self.header.tables.iter().zip(&self.layouts).enumerate() {
                let dimensions = Cow::Borrowed(&*table.dimensions);
                let cells = &matrix.tables[t];
                parts.push(Stored { matrix: m as i64, table: t as i64, dimensions, layout, cells });
            }
        }
        parts
    }

    /// The parts of the file, in the order of its rows.
    pub(crate) fn stored(&self) -> Vec<Stored<'_>> {
        let Some(chain) = &self.header.chain else { return self.tables() };
        let mut parts = Vec::new();
        for (t, (link, own)) in chain.links.iter().zip(&self.links).enumerate() {
            for (m, cells) in own.cells.iter().enumerate() {
                let matrix = if link.by_matrix { m as i64 } else { -1 };
                let dimensions = Cow::Owned(link.dimensions());
                parts.push(Stored { matrix, table: t as i64, dimensions, layout: &own.layout, cells });
            }
        }
        // Tables of observed dimensions follow the links, which stand for the drawn one.
        let (drawn, links) = (self.header.drawn_table(), chain.links.len());
        for mut part in self.tables() {
            let t = part.table as usize;
            if t != drawn {
                part.table = (links + t - usize::from(t > drawn)) as i64;
                parts.push(part);
            }
        }
        parts
    }

    /// Position of a dimension by the name of its feature.
    ///
    /// # Errors
    /// [`ErrorKind::Asked`] for a name that the model does not have.
    pub fn dimension(&self, name: &str) -> Result<usize> {
        let names: Vec<String> = self.header.dimensions.iter().map(|d| d.feature.to_string()).collect();
        names.iter().position(|n| n == name).ok_or_else(|| {
            Error::new(ErrorKind::Asked, format!("the model has no dimension {name:?}"))
                .help(format!("it has {}", names.join(", ")))
        })
    }

    /// Whether its requests say what they wait for and for how long.
    pub fn draws_think(&self) -> bool {
        let sets = |d: &Dimension| d.role == Role::Sets && d.feature.kind().field == Field::Think;
        self.header.dimensions.iter().any(sets)
    }

    /// Smallest layouts that hold the largest code of each dimension.
    pub(crate) fn tight_layouts(header: &Header, largest: &[u32]) -> Result<Vec<Layout>> {
        (header.tables.iter())
            .map(|table| {
                let bits: Vec<u8> = table.dimensions.iter().map(|&d| bits_for(largest[d])).collect();
                Layout::new(&bits).ok_or_else(|| too_wide(header, table.dimensions.iter().copied(), &bits))
            })
            .collect()
    }
}

/// The error for a table whose keys do not fit 64 bits.
pub(crate) fn too_wide(header: &Header, dimensions: impl Iterator<Item = usize>, bits: &[u8]) -> Error {
    let each: Vec<String> =
        dimensions.zip(bits).map(|(d, b)| format!("{} {b}", header.dimensions[d].feature)).collect();
    Error::new(ErrorKind::TooWide, format!("{TOO_WIDE} ({})", each.join(", ")))
        .help("use coarser buckets or fewer dimensions")
}

impl Model {
    /// Refuses cells that break a law of the format.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |what: String| {
            Err(Error::new(ErrorKind::Damaged, format!("the model's cells are damaged: {what}")))
        };
        let mut used = vec![0u64; self.matrices.len()];
        for (matrix, &count) in self.matrix_of_window().zip(&self.header.windows.counts) {
            match used.get_mut(matrix as usize) {
                Some(sum) => *sum += count,
                None => return wrong(format!("a window uses matrix {matrix}, which is not there")),
            }
        }
        for (m, (matrix, &expected)) in self.matrices.iter().zip(&used).enumerate() {
            for (t, cells) in matrix.tables.iter().enumerate() {
                let total = cells.counts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
                if total != Some(expected) {
                    return wrong(format!(
                        "table {t} of matrix {m} does not hold the {expected} requests of its windows"
                    ));
                }
            }
        }
        self.check_ops()
    }

    /// Refuses groups whose ops are not those of their matrix.
    fn check_ops(&self) -> Result<()> {
        let sets_op = |d: &Dimension| d.role == Role::Sets && d.feature.kind().field == Field::Op;
        let Some(op) = self.header.dimensions.iter().position(sets_op) else { return Ok(()) };
        let (line, matrix_of) = (&self.header.windows, self.matrix_of_window().collect::<Vec<_>>());
        let told = line.groups.ops.iter().map(|ops| {
            let mut told = vec![0u64; self.matrices.len()];
            let mut at = 0;
            for (&windows, &requests) in line.groups.windows.iter().zip(&ops.requests) {
                told[matrix_of[at] as usize] += requests;
                at += windows as usize;
            }
            (ops.code, told)
        });
        let told: Vec<(u32, Vec<u64>)> = told.collect();
        for m in 0..self.matrices.len() {
            let marginal = self.marginal(op, Some(m))?;
            for (code, told) in &told {
                let found = marginal.keys.binary_search(&u64::from(*code)).map_or(0, |i| marginal.counts[i]);
                if told[m] != found {
                    return Err(Error::new(
                        ErrorKind::Damaged,
                        format!(
                            "the model's groups are damaged: matrix {m} has {found} requests of op code {code}, \
                         its groups have {}",
                            told[m]
                        ),
                    ));
                }
            }
        }
        Ok(())
    }
}
