//! How windows are compared and merged.

use serde::{Deserialize, Serialize};

/// Which matrices a window may join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// None: every window has a matrix of its own (until the largest number of matrices is reached).
    None,
    /// The one of the window before.
    Adjacent,
    /// Any, the nearest first.
    #[default]
    All,
}

/// How two windows or phases are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// Total variation between the marginals of the dimension that differs most, or the difference of
    /// the mean sizes if that is larger. A mean over the dimensions would dilute one that differs.
    #[default]
    Marginals,
    /// Total variation between the joint histograms.
    Tv,
    /// Largest difference of a cell's share: the MDH thesis, section 3.2.
    MaxCell,
}

/// How windows were merged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Merging {
    /// Requests that neighbouring windows had to hold together to be compared; 0: each alone.
    pub group: u64,
    /// Which matrices a window could join.
    pub mode: Merge,
    /// How they were compared.
    pub distance: Distance,
    /// Largest distance beyond chance that still merged.
    pub threshold: f64,
    /// Largest number of matrices.
    pub max_matrices: u64,
}
