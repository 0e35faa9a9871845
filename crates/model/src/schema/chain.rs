//! A factored model: the joint table as a chain of small conditional ones.

use crate::schema::cells::{Cells, Layout};
use serde::{Deserialize, Serialize};

/// What a chain is and what it lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// Bits that each cell of a table had to save.
    pub cell_bits: f64,
    /// Cells of the joint tables it stands for.
    pub joint_cells: u64,
    /// How many more bits it takes to tell a request by the chain than by the joint tables, on average. Part of it is
    /// chance: a joint table of few requests knows them by heart.
    pub lost_bits: f64,
    /// The links, in the order in which they are drawn from.
    pub links: Vec<Link>,
}

/// A conditional table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Position of the dimension that it sets.
    pub dimension: usize,
    /// Those it is given, which links before it set; where a slice is empty, the last is dropped first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<usize>,
    /// Whether every matrix has its own; else all share one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_matrix: bool,
    /// What stands for the cells of slices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formulas: Vec<Formula>,
    /// What it keeps of a dimension that it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<Tie>,
    /// How many of 256 requests of each matrix continue the one before. Only of a link that sets `resume` and is shared
    /// by all matrices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continues: Vec<u8>,
}

impl Link {
    /// Its dimensions in the order of the packed key: given ones first, so that each slice is a range of cells.
    pub fn dimensions(&self) -> Vec<usize> {
        self.given.iter().copied().chain([self.dimension]).collect()
    }
}

/// The cells of a link, without those that formulas stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkCells {
    /// How keys are packed.
    pub layout: Layout,
    /// Of every matrix, or of all together.
    pub cells: Vec<Cells>,
}

/// How a link's small codes go with one code of a dimension that links before it set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tie {
    /// Position of that dimension.
    pub dimension: usize,
    /// Its code.
    pub code: u32,
    /// Codes of the link's own dimension below this one are small.
    pub below: u32,
    /// Odds of a small code with that code over odds without, in every slice (the common odds ratio of Mantel and
    /// Haenszel, Journal of the National Cancer Institute 22, 1959).
    pub odds: f64,
}

/// A distribution over the buckets of a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Formula {
    /// The matrix, where the link has a table for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<u32>,
    /// Codes of what the link is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<u32>,
    /// Name of the family.
    pub family: String,
    /// Its parameters.
    pub parameters: Vec<f64>,
    /// First and last code that it covers.
    pub codes: (u32, u32),
    /// Requests in all its buckets.
    pub requests: u64,
}
