//! Distributions that trees are made of: sizes, depths, extensions, duplicates.

use crate::chunks::Ratio;
use crate::create::draw::Draw;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Largest file that is drawn, bytes: tails of a shape below 1 have no mean.
pub(crate) const MOST_FILE: f64 = (1u64 << 40) as f64;

/// Sizes of files, bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SizeLaw {
    /// The logarithm is normal; some files are of a tail.
    Lognormal {
        /// Mean of the natural logarithm.
        mu: f64,
        /// Its standard deviation.
        sigma: f64,
        /// Large files apart.
        tail: Option<Tail>,
    },
    /// Counts of files by ranges of sizes.
    Table {
        /// The ranges.
        cells: Vec<Cell>,
        /// Mean place of a file in its range, from 0 to 1 (not included): 0.5 is uniform.
        mean: f64,
    },
}

/// A Pareto tail (Agrawal et al., Generating Realistic Impressions for File-System Benchmarking, FAST 2009, table 2).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Share of all files.
    pub share: f64,
    /// Smallest size, bytes.
    pub least: f64,
    /// Exponent: a file is larger than x with a chance of (least / x)^shape.
    pub shape: f64,
}

/// Files of a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Bytes that all are larger than.
    pub above: u64,
    /// Bytes that none is larger than.
    pub to: u64,
    /// How many, in proportion.
    pub files: f64,
}

/// What files are like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Laws {
    /// Sizes.
    pub sizes: SizeLaw,
    /// Shares of files by depth, from the root on.
    pub depths: Vec<f64>,
    /// Shares of files by extension; the empty one is of files that have none.
    pub extensions: Vec<(String, f64)>,
    /// Shares of distinct chunks by how often they are in a tree.
    pub duplicates: Vec<(u32, f64)>,
    /// How many times smaller codecs make chunks.
    pub ratio: f64,
}

impl Laws {
    /// Refuses what cannot be drawn from.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |text: &str| Err(Error::Option(text.into()));
        let sizes = match &self.sizes {
            SizeLaw::Lognormal { mu, sigma, tail } => {
                (-10.0..=40.0).contains(mu)
                    && (0.0..=10.0).contains(sigma)
                    && tail.is_none_or(|tail| {
                        (0.0..=1.0).contains(&tail.share)
                            && (1.0..MOST_FILE).contains(&tail.least)
                            && (0.01..=100.0).contains(&tail.shape)
                    })
            }
            SizeLaw::Table { cells, mean } => {
                *mean > 0.0
                    && *mean < 1.0
                    && cells.iter().all(|cell| cell.above <= cell.to && cell.to <= MOST_FILE as u64)
                    && shares(cells.iter().map(|cell| cell.files))
            }
        };
        if !sizes {
            return refuse(
                "the law of file sizes: use a mean of the logarithm of -10 to 40 and a deviation of up to 10, or ranges up \
                 to 1 TiB with a mean place between 0 and 1 and some files",
            );
        }
        if self.depths.len() > 4097 || !shares(self.depths.iter().copied()) {
            return refuse(
                "shares of depths: use numbers from 0 on, not all of them 0, for up to 4,097 depths",
            );
        }
        let plain = |text: &str| text.len() <= 12 && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if !shares(self.extensions.iter().map(|one| one.1))
            || !self.extensions.iter().all(|one| plain(&one.0))
        {
            return refuse(
                "extensions: use up to 12 letters and digits, each with a share, not all of them 0",
            );
        }
        let times = |one: &(u32, f64)| (1..=1_000_000).contains(&one.0);
        if !shares(self.duplicates.iter().map(|one| one.1)) || !self.duplicates.iter().all(times) {
            return refuse("duplicates: use 1 to 1,000,000 times, each with a share, not all of them 0");
        }
        if !(1.0..=250.0).contains(&self.ratio) {
            return refuse("a compress ratio: use 1 to 250");
        }
        Ok(())
    }

    /// The ratio of its chunks; unknown of those that are not to compress.
    pub(crate) fn ratio(&self) -> Ratio {
        if self.ratio > 1.0 { Ratio::nearest(self.ratio) } else { Ratio::UNKNOWN }
    }
}

/// Whether numbers can be drawn by.
fn shares(all: impl Iterator<Item = f64>) -> bool {
    let mut sum = 0.0;
    for one in all {
        if !(0.0..=1e18).contains(&one) {
            return false;
        }
        sum += one;
    }
    sum > 0.0
}

/// Numbers drawn in proportion to their shares.
pub(crate) struct Shares(Vec<f64>);

impl Shares {
    pub fn new(all: impl Iterator<Item = f64>) -> Shares {
        let mut sum = 0.0;
        let add = |one: f64| {
            sum += one;
            sum
        };
        Shares(all.map(add).collect())
    }

    pub fn draw(&self, draw: &mut Draw) -> usize {
        let all = self.0.last().copied().unwrap_or(0.0);
        let at = draw.uniform() * all;
        self.0.partition_point(|sum| *sum <= at).min(self.0.len().saturating_sub(1))
    }
}

/// Sizes of files, drawn.
pub(crate) struct FileSizes<'a> {
    law: &'a SizeLaw,
    cells: Shares,
}

impl<'a> FileSizes<'a> {
    pub fn new(law: &'a SizeLaw) -> FileSizes<'a> {
        let cells = match law {
            SizeLaw::Table { cells, .. } => cells.as_slice(),
            SizeLaw::Lognormal { .. } => &[],
        };
        FileSizes { law, cells: Shares::new(cells.iter().map(|cell| cell.files)) }
    }

    /// Bytes of a file.
    pub fn draw(&self, draw: &mut Draw) -> u64 {
        match self.law {
            SizeLaw::Lognormal { mu, sigma, tail } => loop {
                let size = match tail {
                    Some(tail) if draw.happens(tail.share) => {
                        tail.least * (1.0 - draw.uniform()).powf(-1.0 / tail.shape)
                    }
                    _ => (mu + sigma * draw.normal()).exp(),
                };
                if size < MOST_FILE {
                    break size.round() as u64;
                }
            },
            SizeLaw::Table { cells, mean } => {
                let cell = &cells[self.cells.draw(draw)];
                // A power of a uniform number has any mean: that of u^a is 1 / (1 + a).
                let place = draw.uniform().powf(1.0 / mean - 1.0);
                cell.above + ((cell.to - cell.above) as f64 * place).ceil() as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_their_counts_and_their_mean() {
        let cells = vec![Cell { above: 0, to: 1000, files: 3.0 }, Cell { above: 1000, to: 5000, files: 1.0 }];
        let law = SizeLaw::Table { cells, mean: 0.7 };
        let (sizes, mut draw) = (FileSizes::new(&law), Draw::new(1, 2, 3));
        let drawn: Vec<u64> = (0..40_000).map(|_| sizes.draw(&mut draw)).collect();
        let first: Vec<_> = drawn.iter().filter(|size| **size <= 1000).collect();
        assert!((29_600..30_400).contains(&first.len()), "{}", first.len());
        let mean = first.iter().copied().sum::<u64>() as f64 / first.len() as f64;
        assert!((mean - 700.0).abs() < 6.0, "{mean}");
    }

    #[test]
    fn laws_that_cannot_be_drawn_from_are_refused() {
        let fine = Laws {
            sizes: SizeLaw::Lognormal { mu: 9.0, sigma: 2.0, tail: None },
            depths: vec![1.0],
            extensions: vec![(String::new(), 1.0)],
            duplicates: vec![(1, 1.0)],
            ratio: 1.0,
        };
        fine.check().unwrap();
        type Break = fn(&mut Laws);
        let cases: [(Break, &str); 6] = [
            (|l| l.sizes = SizeLaw::Lognormal { mu: f64::NAN, sigma: 1.0, tail: None }, "file sizes"),
            (|l| l.sizes = SizeLaw::Table { cells: vec![], mean: 0.5 }, "file sizes"),
            (|l| l.depths = vec![0.0], "depths"),
            (|l| l.extensions = vec![("a/b".into(), 1.0)], "extensions"),
            (|l| l.duplicates = vec![(0, 1.0)], "duplicates"),
            (|l| l.ratio = 0.5, "compress ratio"),
        ];
        for (break_it, what) in cases {
            let mut wrong = fine.clone();
            break_it(&mut wrong);
            assert!(wrong.check().unwrap_err().to_string().contains(what), "{what}");
        }
    }
}
