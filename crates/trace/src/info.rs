//! What is known of a trace besides its requests; stored as JSON in the Parquet metadata.

use serde::{Deserialize, Serialize};

/// Where a trace came from and what reading it found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Format it was read from, by the name in `formats`.
    pub format: String,
    /// Layer of capture: `block`, `file` or `nfs`.
    pub layer: String,
    /// Resolution of the source's clock in nanoseconds, as it shows in the times.
    pub clock_ns: i64,
    /// Wall-clock time of `time == 0`, nanoseconds since 1970, where the source tells.
    pub start_unix_ns: Option<i64>,
    /// The objects by their dense id.
    pub objects: Vec<Object>,
    /// The actors by their dense id, where the source names them.
    pub actors: Vec<Object>,
    /// Records counted while reading.
    pub counts: Counts,
    /// What was done to it since, such as a selection, each in plain words.
    pub history: Vec<String>,
    /// Anything a person should know, each once, in plain words.
    pub warnings: Vec<String>,
}

/// One device, file or handle of a trace, or one actor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Object {
    /// Dense id, as in the `object` or `actor` column.
    pub id: u32,
    /// Its name in the source, such as `usr.0` or `7,0`.
    pub name: String,
}

/// Nothing is lost silently: every record that did not become a request unchanged is counted here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Requests delivered.
    pub requests: u64,
    /// Records put back into time order.
    pub reordered: u64,
    /// Records understood but not requests (messages, process names, other stages).
    pub other: u64,
    /// Records repaired (a timestamp without its dot, ...).
    pub repaired: u64,
    /// Events the capture itself lost, by its sequence numbers.
    pub lost: u64,
    /// Requests whose completion was not seen although the source records completions.
    pub unfinished: u64,
    /// Records passed over because they are damaged; only with leave (`--max-damaged`).
    pub damaged: u64,
    /// Requests that completed with an error in the source.
    pub failed: u64,
}
