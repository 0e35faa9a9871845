//! Sets of files: a tree of numbered directories and files that programs work on.

use crate::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Files that are made before a run and used, made and removed during it.
///
/// The shape is that of Filebench: the root has as many branches as it takes to hold all entries; every directory draws
/// how deep it lies and how wide it is; the bottom ones hold the files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSet {
    /// Name used by the rest of the plan.
    pub id: String,
    /// Id of the target it lies on: a tree, or a file or device that is its one and only entry, or `null`.
    pub target: String,
    /// Directory below the target's.
    #[serde(default)]
    pub path: PathBuf,
    /// Files there may be.
    #[serde(default)]
    pub entries: u64,
    /// Bytes of a file.
    #[serde(default)]
    pub size: Value,
    /// What the tree looks like.
    #[serde(default, skip_serializing_if = "Layout::is_gamma")]
    pub layout: Layout,
    /// Mean number of entries of a directory.
    #[serde(default = "default_width")]
    pub width: f64,
    /// Shape of the gamma distribution of widths and depths; 0: all are alike.
    #[serde(default = "default_shape")]
    pub shape: f64,
    /// Depth of each branch, where it is not to follow from width and entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<Value>,
    /// Directories without files, which programs make and remove.
    #[serde(default)]
    pub leaf_directories: u64,
    /// Digits of the names of files, fewest and most, from 8 to 255: each file has one more than that before it.
    #[serde(default = "default_digits", skip_serializing_if = "is_default_digits")]
    pub digits: [u8; 2],
    /// Share of the files that are there at the start, 0 to 1, each decided by chance.
    #[serde(default)]
    pub present: f64,
    /// Keeps what is there and fits, in place of making all anew.
    #[serde(default)]
    pub reuse: bool,
    /// Drops the pages of its files once they are made.
    #[serde(default)]
    pub uncached: bool,
    /// Its files and directories are taken in the order of their numbers by all threads together, not by chance.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_turn: bool,
    /// Programs put files of any names into it, which are removed when it is made anew.
    #[serde(default, skip_serializing_if = "is_false")]
    pub any_names: bool,
    /// Its files are made of zeros, not of random data.
    #[serde(default, skip_serializing_if = "is_false")]
    pub zeros: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Shapes of the tree of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Directories in directories, whose widths and depths are drawn.
    #[default]
    Gamma,
    /// All files in directories of `width` entries each, right below the root.
    Flat,
}

impl Layout {
    fn is_gamma(&self) -> bool {
        *self == Layout::Gamma
    }
}

fn default_digits() -> [u8; 2] {
    [8, 8]
}

fn is_default_digits(digits: &[u8; 2]) -> bool {
    *digits == default_digits()
}

fn default_width() -> f64 {
    20.0
}

fn default_shape() -> f64 {
    1.5
}
