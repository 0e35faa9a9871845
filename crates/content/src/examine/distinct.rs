//! Counting distinct chunks in bounded memory.
//!
//! Fingerprints are the first 64 bits of BLAKE3. When there are too many, those whose last bit is set are forgotten and
//! no longer taken, then those whose last two bits are, and so on: what is kept stands for 2, 4, .. times as
//! many (distinct sampling: Gibbons, VLDB 2001). Until then the count is exact; afterwards its standard deviation is
//! 1 / sqrt(kept), a thousandth.

use rustc_hash::FxHashMap;

/// Most fingerprints that are kept: as many as a table of 2^21 places holds.
const MOST: usize = 1_800_000;

/// Chunks, and how many of them are unique.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Duplicates {
    /// Chunks in all.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks that differ.
    pub unique_chunks: u64,
    /// Their bytes.
    pub unique_bytes: u64,
    /// Standard deviation of the unique ones relative to them; 0: they were counted.
    pub deviation: f64,
}

impl Duplicates {
    /// Bytes for each unique one; 1 of nothing.
    pub fn ratio(&self) -> f64 {
        if self.unique_bytes == 0 { 1.0 } else { self.bytes as f64 / self.unique_bytes as f64 }
    }
}

/// Counts chunks and those that differ.
pub struct Distinct {
    chunks: u64,
    bytes: u64,
    /// Sizes by fingerprint.
    kept: FxHashMap<u64, u32>,
    most: usize,
    /// Fingerprints that end in so many zero bits are kept.
    level: u32,
}

impl Distinct {
    /// Nothing yet.
    pub fn new() -> Distinct {
        Distinct { chunks: 0, bytes: 0, kept: FxHashMap::default(), most: MOST, level: 0 }
    }

    /// One more chunk, of less than 4 GiB.
    pub fn add(&mut self, chunk: &[u8]) {
        self.chunks += 1;
        self.bytes += chunk.len() as u64;
        let mut first = [0; 8];
        first.copy_from_slice(&blake3::hash(chunk).as_bytes()[..8]);
        let fingerprint = u64::from_le_bytes(first);
        if fingerprint.trailing_zeros() < self.level {
            return;
        }
        self.kept.insert(fingerprint, chunk.len() as u32);
        while self.kept.len() > self.most {
            self.level += 1;
            self.kept.retain(|fingerprint, _| fingerprint.trailing_zeros() >= self.level);
        }
    }

    /// What was counted.
    pub fn tell(&self) -> Duplicates {
        let kept = self.kept.len() as u64;
        Duplicates {
            chunks: self.chunks,
            bytes: self.bytes,
            unique_chunks: kept << self.level,
            unique_bytes: self.kept.values().map(|size| u64::from(*size)).sum::<u64>() << self.level,
            deviation: if self.level == 0 { 0.0 } else { 1.0 / (kept.max(1) as f64).sqrt() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_memory_estimates_what_a_large_one_counts() {
        let (mut all, mut few) = (Distinct::new(), Distinct { most: 2000, ..Distinct::new() });
        for n in 0..120_000u32 {
            let chunk = (n % 50_000).to_le_bytes();
            all.add(&chunk);
            few.add(&chunk);
        }
        let (all, few) = (all.tell(), few.tell());
        assert_eq!(
            (all.chunks, all.unique_chunks, all.unique_bytes, all.deviation),
            (120_000, 50_000, 200_000, 0.0)
        );
        assert_eq!((few.chunks, few.bytes), (all.chunks, all.bytes));
        assert!((0.02..0.04).contains(&few.deviation), "{few:?}");
        let off = few.unique_bytes as f64 / all.unique_bytes as f64 - 1.0;
        assert!(off.abs() < 4.0 * few.deviation, "{few:?}");
    }
}
