//! What is asked for when a trace is opened.

use crate::columns::Columns;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How a trace is opened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenOptions {
    /// Name of the format; `None`: told from the content.
    pub format: Option<String>,
    /// How far back in time a record may go and still be put right, nanoseconds.
    pub reorder_ns: i64,
    /// Sort the whole trace instead (external merge sort in temporary files).
    pub sort: bool,
    /// Where the sort's temporary files go; `None`: the system's place.
    pub temp_dir: Option<PathBuf>,
    /// Damaged records that are passed over and counted before it is an error.
    pub max_damaged: u64,
    /// Whether damaged records are passed over however many there are, and counted.
    pub salvage: bool,
    /// Whether requests of one time are spread evenly over the tick of the source's clock.
    pub spread_ties: bool,
    /// Whether requests are told what they waited for ([`crate::depend`]): a completion at most so many nanoseconds
    /// before; a trace that says so itself is believed.
    pub dependencies_ns: Option<i64>,
    /// Column map of delimited text.
    pub columns: Option<Columns>,
    /// Parsing threads of text formats.
    pub threads: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
        OpenOptions {
            format: None,
            reorder_ns: 1_000_000_000,
            sort: false,
            temp_dir: None,
            max_damaged: 0,
            salvage: false,
            spread_ties: false,
            dependencies_ns: None,
            columns: None,
            threads,
        }
    }
}
