//! How far chunks compress.
//!
//! Giving every chunk to zstd costs four times what cutting and hashing do. So after the first some only one in several
//! is measured ([`Sampling`]), drawn by its fingerprint. The others get the ratio of one that was measured: the last
//! in the same file if the two are [`ALIKE`], otherwise the last anywhere of about the same size and entropy (hot deck
//! imputation: Andridge and Little, International Statistical Review 78, 2010). So the ratios of a series are ratios
//! that were seen, in about their true shares. `docs/explanation/datasets.md` has the errors.

use crate::chunks::Ratio;
use std::io;

/// New chunks that are all measured before some are left out, where it is known how many there will be.
const FIRST: u64 = 256;
/// The same where it is not.
const FIRST_OF_ANY: u64 = 2048;
/// Of later ones about so many are measured: how far off all are together depends on that, not on how many there are.
pub(super) const ENOUGH: u64 = 640;
/// Of so many at least one is.
const ONE_IN: u64 = 16;
/// Largest difference of the entropies of two chunks of a file that are taken for one kind of content, bits a byte. Their
/// sizes may be a doubling apart, as FastCDC finds few cuts where content repeats itself.
const ALIKE: f32 = 0.3;
/// Entropy below which every chunk is measured: there are few, and their ratios are far apart.
const LOW: f32 = 1.0;
/// Entropy is told from so many pieces of a chunk of so many bytes.
const PIECES: usize = 32;
const PIECE: usize = 16;
const SKETCH: usize = PIECES * PIECE;

/// How the compressibility of new chunks is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// Not at all.
    None,
    /// A sample is measured by zstd at level 1, and tells of the others.
    Sample,
    /// Every chunk is measured by zstd at level 1.
    Whole,
}

impl Compress {
    /// As a series tells it.
    pub(super) fn codec(self) -> Option<String> {
        match self {
            Compress::None => None,
            Compress::Sample => Some("zstd level 1, a sample of the chunks".into()),
            Compress::Whole => Some("zstd level 1, chunk by chunk".into()),
        }
    }
}

/// What is to be found out of a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// Nothing: it is known.
    Nothing,
    /// Its entropy, and its ratio only where nothing else could tell it.
    Entropy,
    /// Its ratio.
    Ratio,
}

/// Which new chunks are measured.
pub(super) struct Sampling {
    first: u64,
    one_in: u64,
}

impl Sampling {
    /// For a snapshot of about so many chunks, if that is known.
    pub fn of(chunks: Option<u64>) -> Sampling {
        match chunks {
            Some(chunks) => Sampling { first: FIRST, one_in: (chunks / ENOUGH).clamp(1, ONE_IN) },
            None => Sampling { first: FIRST_OF_ANY, one_in: ONE_IN },
        }
    }

    /// Whether all are measured when so many were.
    pub fn is_learning(&self, measured: u64) -> bool {
        measured < self.first
    }

    /// What a new chunk is asked for; `print` is its whole fingerprint.
    pub fn ask(&self, how: Compress, measured: u64, print: &[u8; 32]) -> Ask {
        let tail = print.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let all = how == Compress::Whole || self.is_learning(measured);
        if all || tail.is_multiple_of(self.one_in) { Ask::Ratio } else { Ask::Entropy }
    }
}

/// Measures chunks.
pub(super) struct Meter {
    zstd: zstd::bulk::Compressor<'static>,
    /// At the level of those who compress large pieces.
    usual: zstd::bulk::Compressor<'static>,
    compressed: Vec<u8>,
    /// n log2(n)
    terms: Vec<f32>,
}

impl Meter {
    /// For chunks of up to `most` bytes.
    pub fn new(most: usize) -> io::Result<Meter> {
        let terms = (0..=SKETCH).map(|n| n as f32 * (n.max(1) as f32).log2()).collect();
        let room = zstd::zstd_safe::compress_bound(most).max(lz4::block::compress_bound(most)?);
        let compressed = vec![0; room];
        let [zstd, usual] = [zstd::bulk::Compressor::new(1)?, zstd::bulk::Compressor::new(3)?];
        Ok(Meter { zstd, usual, compressed, terms })
    }

    /// Ratio (unknown where it is not measured), bytes by lz4 (0 where not), and entropy of a chunk.
    pub fn tell(&mut self, chunk: &[u8], ask: Ask) -> io::Result<(Ratio, u32, f32)> {
        if ask == Ask::Nothing {
            return Ok((Ratio::UNKNOWN, 0, 0.0));
        }
        let entropy = self.entropy(chunk);
        if ask == Ask::Entropy && entropy >= LOW {
            return Ok((Ratio::UNKNOWN, 0, entropy));
        }
        let size = self.zstd.compress_to_buffer(chunk, &mut self.compressed[..])?;
        let lz4 = lz4::block::compress_to_buffer(chunk, None, false, &mut self.compressed)? as u32;
        Ok((Ratio::nearest(chunk.len() as f64 / size as f64), lz4, entropy))
    }

    /// Bytes that zstd makes of `bytes`, which are as many as the meter is for, at most: at level 1, or as it usually is.
    pub fn size(&mut self, bytes: &[u8], usual: bool) -> io::Result<u64> {
        let zstd = if usual { &mut self.usual } else { &mut self.zstd };
        Ok(zstd.compress_to_buffer(bytes, &mut self.compressed[..])? as u64)
    }

    /// Entropy of the bytes of some pieces, bits a byte (Shannon, Bell System Technical Journal 27, 1948).
    fn entropy(&self, chunk: &[u8]) -> f32 {
        let mut counts = [0u16; 256];
        let mut count = |bytes: &[u8]| bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        if chunk.len() <= SKETCH {
            count(chunk);
        } else {
            let step = (chunk.len() - PIECE) / (PIECES - 1);
            (0..PIECES).for_each(|i| count(&chunk[i * step..][..PIECE]));
        }
        let sum: f32 = counts.iter().map(|count| self.terms[usize::from(*count)]).sum();
        let length = chunk.len().clamp(1, SKETCH) as f32;
        length.log2() - sum / length
    }
}

/// Entropies that make one cell are a quarter of a bit apart, sizes half a doubling: with a whole one, large chunks, which
/// compress further, take too many ratios from small ones.
const ENTROPIES: usize = 33;
const SIZES: usize = 50;

/// Tells ratios that were not measured from those that were. It is asked in the order of the chunks, whatever thread
/// read them.
pub(super) struct Guess {
    cells: Vec<Ratio>,
    any: Ratio,
    /// The last that was measured in the file, its size and entropy.
    last: Option<(Ratio, u32, f32)>,
}

impl Guess {
    pub fn new() -> Guess {
        Guess { cells: vec![Ratio::UNKNOWN; ENTROPIES * SIZES], any: Ratio::nearest(1.0), last: None }
    }

    /// A file is begun.
    pub fn begin(&mut self) {
        self.last = None;
    }

    /// A chunk was measured.
    pub fn learn(&mut self, size: u32, entropy: f32, ratio: Ratio) {
        let (row, column) = cell(size, entropy);
        self.cells[row * SIZES + column] = ratio;
        self.any = ratio;
        self.last = Some((ratio, size, entropy));
    }

    /// The ratio of one that was not.
    pub fn tell(&self, size: u32, entropy: f32) -> Ratio {
        if let Some((ratio, last, of)) = self.last
            && (entropy - of).abs() <= ALIKE
            && column(last).abs_diff(column(size)) <= 2
        {
            return ratio;
        }
        let (row, column) = cell(size, entropy);
        let beside = [0, 1, usize::MAX, 2, usize::MAX - 1].map(|by| (row, column.wrapping_add(by)));
        let near = beside.into_iter().chain([(row + 1, column), (row.wrapping_sub(1), column)]);
        let known = |(row, column): (usize, usize)| {
            let there = row < ENTROPIES && column < SIZES;
            there.then(|| self.cells[row * SIZES + column]).filter(|ratio| *ratio != Ratio::UNKNOWN)
        };
        near.filter_map(known).next().unwrap_or(self.any)
    }
}

fn cell(size: u32, entropy: f32) -> (usize, usize) {
    (((entropy * 4.0) as usize).min(ENTROPIES - 1), column(size))
}

/// The size of a chunk in halves of a doubling: its square has twice the logarithm.
fn column(size: u32) -> usize {
    let size = u64::from(size.max(1));
    ((size * size).ilog2() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_that_of_the_bytes() {
        let mut meter = Meter::new(1 << 16).unwrap();
        let mut of = |bytes: &[u8]| meter.tell(bytes, Ask::Ratio).unwrap().2;
        assert_eq!(of(&[7; 9000]), 0.0);
        assert!((of(&[1, 2, 3, 4].repeat(3000)) - 2.0).abs() < 0.01);
        let mut random = vec![0; 20_000];
        blake3::Hasher::new().finalize_xof().fill(&mut random);
        // 512 random bytes are no sample of all 256 values: about 7.6 bits are seen.
        assert!((7.3..8.0).contains(&of(&random)));
        assert_eq!(of(&[]), 0.0);
    }

    #[test]
    fn what_is_not_measured_is_taken_from_its_like() {
        let mut guess = Guess::new();
        assert_eq!(guess.tell(8000, 5.0), Ratio::nearest(1.0));
        guess.learn(8000, 5.0, Ratio(40));
        guess.learn(8000, 7.9, Ratio(2));
        // The last of the file is another kind of content, so the cell tells.
        assert_eq!(guess.tell(8000, 5.1), Ratio(40));
        assert_eq!(guess.tell(16000, 5.1), Ratio(40));
        assert_eq!(guess.tell(100, 7.7), Ratio(2));
        guess.begin();
        assert_eq!(guess.tell(8000, 7.8), Ratio(2));
        // Nothing is near: whatever was measured last.
        assert_eq!(guess.tell(8000, 3.0), Ratio(2));
    }

    #[test]
    fn a_share_is_drawn_after_the_first() {
        let count = |how, chunks, measured| {
            let prints = (0..12_000u32).map(|i| *blake3::hash(&i.to_le_bytes()).as_bytes());
            prints.filter(|print| Sampling::of(chunks).ask(how, measured, print) == Ask::Ratio).count()
        };
        for (chunks, first) in [(None, FIRST_OF_ANY), (Some(1 << 30), FIRST)] {
            assert_eq!(count(Compress::Sample, chunks, first - 1), 12_000);
            assert_eq!(count(Compress::Whole, chunks, first), 12_000);
            // 750, with a standard deviation of 27.
            assert!((640..860).contains(&count(Compress::Sample, chunks, first)));
        }
        // 12,000 of 12,000 / 640: one in 16 still, then one in 4, and all of few.
        assert!((640..860).contains(&count(Compress::Sample, Some(12_000), FIRST)));
        assert!((2800..3200).contains(&count(Compress::Sample, Some(4 * ENOUGH), FIRST)));
        assert_eq!(count(Compress::Sample, Some(ENOUGH), FIRST), 12_000);
    }

    #[test]
    fn what_has_no_like_is_measured_though_it_was_not_drawn() {
        let mut meter = Meter::new(1 << 16).unwrap();
        let mut measured = |bytes: &[u8]| meter.tell(bytes, Ask::Entropy).unwrap().0 != Ratio::UNKNOWN;
        assert!(measured(&[0; 5000]));
        assert!(!measured(&(0..=255).collect::<Vec<_>>().repeat(20)));
    }
}
