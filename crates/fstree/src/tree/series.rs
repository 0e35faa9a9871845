//! A series: snapshots, and what they share.

use super::{Lz4, Tree};
use crate::chunks::Chunks;
use crate::names::Names;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How content was cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Chunking {
    /// Chunks of one size; the last of a file may be smaller.
    Fixed {
        /// Bytes.
        size: u32,
    },
    /// Cut where the content says (FastCDC: Xia et al., USENIX ATC 2016; the version of 2020).
    Fastcdc {
        /// Smallest, bytes.
        min: u32,
        /// On average, bytes.
        average: u32,
        /// Largest, bytes.
        max: u32,
    },
}

impl Default for Chunking {
    fn default() -> Chunking {
        Chunking::Fastcdc { min: 2 << 10, average: 8 << 10, max: 64 << 10 }
    }
}

impl Chunking {
    /// Bytes of a chunk, about and on average.
    pub fn average(self) -> u32 {
        match self {
            Chunking::Fixed { size: average } | Chunking::Fastcdc { average, .. } => average,
        }
    }

    /// Largest chunk, bytes.
    pub fn most(self) -> u32 {
        match self {
            Chunking::Fixed { size } => size,
            Chunking::Fastcdc { max, .. } => max,
        }
    }

    /// Refuses sizes that cannot be used.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check(self) -> Result<()> {
        let even = |size: u32| size.is_multiple_of(2);
        let text = match self {
            Chunking::Fixed { size } if !(512..=8 << 20).contains(&size) => {
                format!("chunks of {size} bytes: use 512 to {}", 8 << 20)
            }
            Chunking::Fastcdc { min, average, max }
                if !(256..=1 << 20).contains(&min)
                    || !(min..=4 << 20).contains(&average)
                    || !(average..=8 << 20).contains(&max)
                    || ![min, average, max].into_iter().all(even) =>
            {
                format!(
                    "FastCDC with {min}, {average} and {max} bytes: use even sizes, ascending, from 256, to {}, {} \
                     and {} at most",
                    1 << 20,
                    4 << 20,
                    8 << 20
                )
            }
            _ => return Ok(()),
        };
        Err(Error::Option(text))
    }
}

/// What holds for all snapshots of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// How content was cut.
    pub chunking: Chunking,
    /// The library that cut it, with its version.
    pub chunker: String,
    /// What ratios were measured by; nothing: they were not.
    pub codec: Option<String>,
    /// Seed of the content; nothing where the chunks are those of real files.
    pub seed: Option<u64>,
    /// How far chunks resemble each other; nothing where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resemblance: Option<Resemblance>,
    /// What lz4 makes of chunks beside Zstandard; nothing where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lz4: Option<Lz4>,
    /// How much stays of chunks that change; nothing where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<Stays>,
}

impl Meta {
    /// Of chunks that were cut so, of which nothing more is known.
    #[must_use]
    pub fn new(chunking: Chunking, chunker: &str) -> Meta {
        let chunker = chunker.into();
        Meta { chunking, chunker, codec: None, seed: None, resemblance: None, lz4: None, stays: None }
    }
}

/// How much less codecs make of larger pieces of files than of their chunks one by one, the first of each piece left out: shares
/// of what they make of these, from 0 (nothing less) to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resemblance {
    /// Of pieces of 128 KiB, by zstd at level 1.
    pub near: f64,
    /// Of 1 MiB, by zstd at level 3, as who compresses such pieces usually does.
    pub far: f64,
}

impl Resemblance {
    /// Bytes of the pieces.
    pub const PIECES: [usize; 2] = [128 << 10, 1 << 20];

    /// Whether both are shares.
    #[must_use]
    pub fn is_sound(self) -> bool {
        [self.near, self.far].iter().all(|share| (0.0..=1.0).contains(share))
    }
}

/// Of new chunks in files that changed: what they have of the chunks that they took the place of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stays {
    /// How many of those that are as long as the one they took the place of have so many sixteenths of it, at the same bytes, from
    /// none to all but less than one.
    pub parts: [u32; Stays::PARTS],
    /// How many are not.
    pub others: u32,
    /// Of these, single ones between two that stayed: how many have so many sixteenths of what was there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub alone: [u32; Stays::PARTS + 1],
    /// The same of several between two that stayed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub several: [u32; Stays::PARTS + 1],
    /// Stretches of bytes of their own that chunks have which have some of what was there; nothing in older series.
    #[serde(default, skip_serializing_if = "is_none")]
    pub edits: u32,
    /// How many begin as the first did that was there, of older series.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first: [u32; Stays::PARTS + 1],
    /// How many end as the last did, of older series.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last: [u32; Stays::PARTS + 1],
}

fn is_zero(counts: &[u32; Stays::PARTS + 1]) -> bool {
    *counts == [0; Stays::PARTS + 1]
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Stays {
    /// Parts of a chunk.
    pub const PARTS: usize = 16;

    /// Share of new chunks in files that changed that took the place of one as long.
    #[must_use]
    pub fn replaced(&self) -> f64 {
        total(&self.parts) / (total(&self.parts) + f64::from(self.others)).max(1.0)
    }

    /// How much stays of what changes, as a share of new chunks in files that changed.
    #[must_use]
    pub fn share(&self) -> f64 {
        let parts = self.counts().map(|counts| {
            (0u32..).zip(counts).map(|(part, count)| f64::from(part) * f64::from(*count)).sum::<f64>()
        });
        parts.iter().sum::<f64>()
            / Stays::PARTS as f64
            / (total(&self.parts) + f64::from(self.others)).max(1.0)
    }

    /// Stretches of bytes of its own of a chunk that has some of what was there, on average: at least one.
    pub(crate) fn edits(&self) -> f64 {
        let some: f64 = self.counts().iter().map(|counts| total(&counts[1..])).sum();
        (f64::from(self.edits) / some.max(1.0)).max(1.0)
    }

    /// Of chunks that are neither as long nor alone, how many have so many sixteenths of what was there.
    pub(crate) fn others(&self) -> [u32; Stays::PARTS + 1] {
        let mut others = self.several;
        if is_zero(&others) {
            // Of those that neither begin nor end as others did older series say nothing.
            others = std::array::from_fn(|part| self.first[part].saturating_add(self.last[part]));
            let told = total(&others) + total(&self.alone);
            others[0] += (f64::from(self.others) - told).max(0.0) as u32;
        }
        others
    }

    fn counts(&self) -> [&[u32]; 5] {
        [&self.parts, &self.alone, &self.several, &self.first, &self.last]
    }
}

fn total(counts: &[u32]) -> f64 {
    counts.iter().map(|count| f64::from(*count)).sum()
}

/// How many parts stay of a chunk, as it comes; `drawn` is from 0 to before 1.
pub(crate) fn draw(counts: &[u32], drawn: f64) -> usize {
    let mut left = drawn * total(counts);
    let at = counts.iter().position(|count| {
        left -= f64::from(*count);
        left < 0.0
    });
    at.unwrap_or(0)
}

/// Snapshots in order, and the chunks and names that they share.
pub struct Series {
    /// What holds for all.
    pub meta: Meta,
    /// Chunks by their numbers.
    pub chunks: Chunks,
    /// Names and extensions.
    pub names: Names,
    /// The snapshots.
    pub trees: Vec<Tree>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunkings_that_cannot_be_used_are_refused() {
        assert!(Chunking::default().check().is_ok());
        for odd in [
            Chunking::Fixed { size: 1 },
            Chunking::Fixed { size: 9 << 20 },
            Chunking::Fastcdc { min: 2048, average: 1024, max: 65536 },
            Chunking::Fastcdc { min: 2049, average: 8192, max: 65536 },
        ] {
            assert!(odd.check().unwrap_err().to_string().contains("bytes: use"));
        }
    }
}
