//! FS-PROFILE: what a series is like, without a name or a byte of it (Tarasov, sections 4.3.3 and 4.5.2).
//!
//! A profile has a step for each snapshot; the first is from an empty tree. A step is what the thesis has: the histograms of
//! new, deleted and modified files with change descriptors, and sizes and compressibility of new chunks. Added are: how
//! often new chunks occur within the snapshot, how many chunks of new files were in files that went (a file that was
//! moved), how many chunks a modified file keeps, the size in bytes of files that go or change, and what became of
//! the chunks there were, by how often they had been there. Without them the copies within a snapshot and the moves
//! between two are lost, and with them the counts of unique and duplicate chunks.

mod collect;
mod pattern;
mod places;
mod size_class;
mod step;

use crate::measure::{Measured, measure};
use crate::tree::{Chunking, Lz4, Resemblance, Series, Stays};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::Path;

pub(crate) use collect::{file_of, occurrences, regular, see};
pub use pattern::Pattern;
pub(crate) use size_class::{CLASSES, class, sizes_of_class};
pub use step::{Again, Carried, Changed, File, Gone, Material, New, Sizes, Step};
pub(crate) use step::{ratios, sizes_of};

/// Of the layout.
const VERSION: u32 = 6;
/// The first that has four classes of sizes for each doubling.
const CLASSES_FROM: u32 = 4;
/// The oldest that is read: what it lacks is left out.
const OLDEST: u32 = 1;
/// Most bytes of a profile without its compression.
const MOST: u64 = 1 << 28;
/// Largest number of chunks of a file.
const MOST_SIZE: u32 = 1 << 26;

/// How files go from one state to another, in percent of those that were in the first (table 4.2 of the thesis).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Markov {
    /// New files, of all before.
    pub n: f64,
    pub nm: f64,
    pub nu: f64,
    pub nd: f64,
    pub mu: f64,
    pub md: f64,
    pub mm: f64,
    pub um: f64,
    pub ud: f64,
    pub uu: f64,
    /// Deleted files that are there again one snapshot later.
    pub dn: f64,
    /// Deleted files, of all before.
    pub d: f64,
}

/// What a series is like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Of the layout.
    pub version: u32,
    /// How content was cut: counts hold for this only.
    pub chunking: Chunking,
    /// The library that cut.
    pub chunker: String,
    /// What compressibility was measured by.
    pub codec: Option<String>,
    /// How far chunks resemble their neighbours; nothing where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resemblance: Option<Resemblance>,
    /// What lz4 makes of chunks beside Zstandard; nothing where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lz4: Option<Lz4>,
    /// How much stays of chunks that change; nothing where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<Stays>,
    /// Extensions; those that are not widely known are numbered instead.
    pub extensions: Vec<String>,
    /// Snapshots, each as a change of the one before; the first of an empty tree.
    pub steps: Vec<Step>,
    /// Transitions of files, over all windows of three snapshots; nothing of a single one.
    pub markov: Option<Markov>,
    /// How often files were modified in each [`Pattern`] (table 4.3), in percent; nothing where none was.
    pub patterns: Option<[f64; 7]>,
    /// Counts to compare with.
    pub measured: Vec<Measured>,
}

impl Profile {
    /// Of a series, which should be one that was scanned.
    ///
    /// # Errors
    /// When it has no snapshot.
    pub fn of(series: &Series) -> Result<Profile> {
        Profile::collect(series, false)
    }

    /// Of a series, with the lengths of runs of new chunks and of others (section 4.5.1): the profile is larger, and what is
    /// made by it has runs of these lengths.
    ///
    /// # Errors
    /// When it has no snapshot.
    pub fn with_runs(series: &Series) -> Result<Profile> {
        Profile::collect(series, true)
    }

    fn collect(series: &Series, runs: bool) -> Result<Profile> {
        if series.trees.is_empty() {
            return Err(Error::Option(
                "a series without a snapshot: scan a directory or an archive first".into(),
            ));
        }
        let told = crate::extensions::anonymous(series);
        let mut collector = collect::Collector::new(series, &told.numbers, runs);
        let steps: Vec<_> = (0..series.trees.len()).map(|i| collector.step(i)).collect();
        let mut measured = measure(series);
        measured.iter_mut().for_each(|one| one.label.clear());
        Ok(Profile {
            version: VERSION,
            chunking: series.meta.chunking,
            chunker: series.meta.chunker.clone(),
            codec: series.meta.codec.clone(),
            resemblance: series.meta.resemblance,
            lz4: series.meta.lz4.clone(),
            stays: series.meta.stays,
            extensions: told.names,
            markov: collector.markov(),
            patterns: patterns(&steps),
            steps,
            measured,
        })
    }

    /// Writes the file, aside first; one that is there is only replaced with `force`.
    ///
    /// # Errors
    /// When it exists or cannot be written.
    pub fn save(&self, path: &Path, force: bool) -> Result<()> {
        crate::file::write_aside(path, force, |file| {
            let mut packed = zstd::Encoder::new(file, 19)?;
            packed.write_all(&serde_json::to_vec(self)?)?;
            packed.finish().map(drop)
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is no profile.
    pub fn load(path: &Path) -> Result<Profile> {
        let file = loadstone_files::open_regular(path, true)?;
        Profile::read_from(&mut io::BufReader::new(file)).map_err(|what| Error::file(path, what))
    }

    /// Reads what a file has, whatever state it is in.
    ///
    /// # Errors
    /// When it is no profile: what is wrong, and what to do.
    pub fn read_from(from: &mut dyn Read) -> std::result::Result<Profile, String> {
        let foreign = |what: &dyn std::fmt::Display| {
            format!("is no profile: {what}; loadstone dataset profile makes one")
        };
        let packed = zstd::Decoder::new(from).map_err(|e| foreign(&e))?;
        let mut text = Vec::new();
        packed.take(MOST + 1).read_to_end(&mut text).map_err(|e| foreign(&e))?;
        if text.len() as u64 > MOST {
            return Err(foreign(&"it is larger than 256 MiB"));
        }
        let mut profile: Profile = serde_json::from_slice(&text).map_err(|e| foreign(&e))?;
        if profile.version < CLASSES_FROM {
            profile.steps.iter_mut().for_each(Step::renew);
        }
        profile.check().map(|()| profile).map_err(|what| foreign(&what))
    }

    fn check(&self) -> std::result::Result<(), String> {
        if !(OLDEST..=VERSION).contains(&self.version) {
            return Err(format!(
                "its version is {}, this Loadstone reads {OLDEST} to {VERSION}",
                self.version
            ));
        }
        self.chunking.check().map_err(|e| e.to_string())?;
        if !self.resemblance.is_none_or(Resemblance::is_sound) {
            return Err("its chunks resemble each other by less than nothing, or more than whole".into());
        }
        if !self.lz4.as_ref().is_none_or(Lz4::is_sound) {
            return Err("it says of lz4 what no chunk has".into());
        }
        let plain = |text: &String| text.len() <= 12 && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if self.extensions.first().is_none_or(|first| !first.is_empty()) || !self.extensions.iter().all(plain)
        {
            return Err("an extension is not made of letters and digits".into());
        }
        if self.steps.is_empty() || self.measured.len() != self.steps.len() {
            return Err("it has no snapshot, or other counts than snapshots".into());
        }
        let mut files = 0;
        for (i, step) in self.steps.iter().enumerate() {
            let extensions = self.extensions.len() as u32;
            let after = step.check(extensions, self.chunking).and_then(|()| step.files_after(files));
            files = after.map_err(|what| format!("step {i}: {what}"))?;
        }
        Ok(())
    }
}

fn patterns(steps: &[Step]) -> Option<[f64; 7]> {
    let mut counts = [0.0; 7];
    for row in steps.iter().flat_map(|step| &step.changed) {
        counts[row.pattern as usize] += f64::from(row.count);
    }
    let all: f64 = counts.iter().sum();
    (all > 0.0).then(|| counts.map(|count| 100.0 * count / all))
}

#[cfg(test)]
pub(crate) mod tests;
