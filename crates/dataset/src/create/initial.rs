//! FS-IMPRESSIONS: a first tree from distributions alone (Tarasov, section 4.3.3; Agrawal, Arpaci-Dusseau and
//! Arpaci-Dusseau, Generating Realistic Impressions for File-System Benchmarking, FAST 2009).

use super::content::law::Laws;
use crate::tree::Chunking;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A first tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Initial {
    /// How content counts as cut.
    pub chunking: Chunking,
    /// Files.
    pub files: u32,
    /// Directories, the root among them; some more where a depth that files are to have would have none.
    pub directories: u32,
    /// What files are like.
    pub laws: Laws,
}

impl Initial {
    pub(super) fn check(&self) -> Result<()> {
        self.chunking.check()?;
        if self.files == 0 || self.directories == 0 {
            let Initial { files, directories, .. } = self;
            return Err(Error::Option(format!(
                "{files} files in {directories} directories: use 1 or more of both"
            )));
        }
        self.laws.check()
    }

    /// What ratios come from.
    pub(super) fn codec(&self) -> Option<String> {
        (self.laws.ratio > 1.0).then(|| "none: a ratio that was asked for".into())
    }
}
