//! How a trace is read, where its content does not say it all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Options of reading, by the names and with the defaults of the reader (`loadstone_trace::OpenOptions`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reading {
    /// Name of the format; nothing: told from the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Column map of delimited text, which the reader checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Map<String, Value>>,
    /// How far back in time a record may go and still be put right, ns; nothing: 1 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_ns: Option<i64>,
    /// Sort the whole trace by time before it is used, in temporary files.
    #[serde(skip_serializing_if = "is_false")]
    pub sort: bool,
    /// Where these go; nothing: the system's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp_dir: Option<PathBuf>,
    /// Damaged records that are passed over and counted before it is an error.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_damaged: u64,
    /// Pass over all damage and count it.
    #[serde(skip_serializing_if = "is_false")]
    pub salvage: bool,
    /// Spread requests of one time evenly over a tick of the source's clock.
    #[serde(skip_serializing_if = "is_false")]
    pub spread_ties: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Reading {
    /// Whether nothing is asked for.
    pub fn is_usual(&self) -> bool {
        *self == Reading::default()
    }
}
