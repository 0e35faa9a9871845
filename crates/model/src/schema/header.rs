//! The model file's header: everything but the cells.

use crate::feature::Field;
use crate::feature::recency::distances::Distances;
use crate::schema::chain::Chain;
use crate::schema::dimension::{Dimension, OffsetRule, Role};
use crate::schema::mean_sizes::MeanSize;
use crate::schema::merging::Merging;
use serde::{Deserialize, Serialize};

/// Version of the file format written by this build.
pub const VERSION: u32 = 1;

/// What is known of a model besides its cells; JSON in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Format version, [`VERSION`].
    pub version: u32,
    /// The dimensions; tables refer to them by position.
    pub dimensions: Vec<Dimension>,
    /// The tables of every matrix.
    pub tables: Vec<Table>,
    /// How the joint table is stored, where not cell by cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<Chain>,
    /// Which dimension decides where a request goes.
    pub offset_rule: OffsetRule,
    /// Longest jump in bytes that counts as near; the object's region width where not given.
    #[serde(default)]
    pub far: Option<i64>,
    /// All offsets were multiples of this power of two.
    pub offset_grain: i64,
    /// Given dimensions in the order they are dropped when a slice is empty.
    #[serde(default)]
    pub back_off: Vec<usize>,
    /// Time: how many requests each window has, and which matrix.
    pub windows: Windows,
    /// The objects.
    pub objects: Vec<Object>,
    /// How many blocks were referenced at which stack distance, where requests are drawn by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distances: Option<Distances>,
    /// Mean sizes of buckets, by op: what is drawn of a bucket has that mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean_sizes: Vec<MeanSize>,
    /// How windows were merged.
    pub merging: Merging,
    /// Where the model comes from.
    pub source: Source,
}

impl Header {
    /// Layer of what is drawn: `block`, `file` or `nfs`.
    pub fn layer(&self) -> &str {
        match (self.is_of_files(), &*self.source.layer) {
            (true, "nfs") => "nfs",
            (true, _) => "file",
            (false, _) => "block",
        }
    }

    /// Whether requests of files are drawn, which have names and results.
    pub fn is_of_files(&self) -> bool {
        let chooses = |d: &Dimension| d.role == Role::Sets && d.feature.kind().field == Field::File;
        self.dimensions.iter().any(chooses)
    }

    /// Position of the table that requests are drawn from.
    pub(crate) fn drawn_table(&self) -> usize {
        let observed = |d: &usize| self.dimensions[*d].role == Role::Observed;
        self.tables.iter().position(|table| !table.dimensions.iter().any(observed)).unwrap_or(0)
    }
}

/// A table of every matrix: a joint histogram of some dimensions.
///
/// One table has all dimensions that set or are given; observed dimensions have tables of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Positions of its dimensions in the header's list, in the order of the packed key.
    pub dimensions: Vec<usize>,
    /// Those of them that are known when the table is drawn from.
    #[serde(default)]
    pub given: Vec<usize>,
}

/// The time line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// Length of each, nanoseconds. One begins where the one before it ends.
    pub length_ns: i64,
    /// Requests of each window.
    pub counts: Vec<u64>,
    /// Matrix of each window, run-length coded: (number of windows, matrix). An empty window
    /// carries on the phase before it.
    pub matrices: Vec<(u64, u32)>,
    /// Ops of the windows that were counted together.
    #[serde(default, skip_serializing_if = "Groups::is_empty")]
    pub groups: Groups,
}

impl Windows {
    /// Where each window begins and, at the end, where the last one ends; nanoseconds.
    pub fn starts(&self) -> Vec<i64> {
        (0..=self.counts.len() as i64).map(|at| at.saturating_mul(self.length_ns)).collect()
    }

    /// Length of all windows, nanoseconds.
    pub fn span_ns(&self) -> i64 {
        (self.counts.len() as i64).saturating_mul(self.length_ns)
    }

    /// Whether all time is enough for them.
    pub(crate) fn have_time(&self) -> bool {
        self.length_ns > 0 && (self.counts.len() as i64).checked_mul(self.length_ns).is_some()
    }
}

/// How many requests of each op every group of windows has; empty where that is not told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Groups {
    /// Windows of each group, in order of time. All windows of a group have one matrix.
    pub windows: Vec<u64>,
    /// All ops but one, usually the commonest, which has the rest.
    pub ops: Vec<OpCounts>,
}

impl Groups {
    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// The requests of an op.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpCounts {
    /// Code of the op in the dimension that sets it.
    pub code: u32,
    /// Requests of each group.
    pub requests: Vec<u64>,
}

/// An object the requests touched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Object {
    /// Dense id, as in the trace.
    pub id: u32,
    /// Its name in the source.
    #[serde(default)]
    pub name: String,
    /// One past the last byte touched.
    pub extent: i64,
    /// log2 of the width of its regions in bytes.
    pub region_shift: u8,
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The program and its version.
    pub tool: String,
    /// Format of the trace.
    pub format: String,
    /// Layer of capture where it is not that of blocks: `file` or `nfs`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub layer: String,
    /// Requests of the trace.
    pub requests: u64,
    /// Time of the last request, nanoseconds.
    pub span_ns: i64,
    /// Wall-clock time of the trace's start, nanoseconds since 1970, where the source tells.
    pub start_unix_ns: Option<i64>,
    /// When the model was fitted, nanoseconds since 1970; 0 where unknown.
    pub fitted_unix_ns: i64,
    /// Records counted while reading the trace: lost, repaired, reordered.
    pub counts: loadstone_trace::Counts,
    /// What reading the trace reported.
    pub warnings: Vec<String>,
    /// What was changed since it was fitted, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}
