//! Chunks in which finding matches and coding entropy save what each of them does in real data.
//!
//! lz4 only finds matches, Zstandard and zlib also code literals by their frequency. So a chunk of two sizes, of lz4 and of
//! Zstandard, has so many literals and matches that lz4 makes the first of it, and literals of such an entropy that
//! Zstandard makes the second. How long runs of literals are decides what zlib makes of it: the shorter, the less, as it looks
//! longest for matches.
//!
//! Costs were measured with lz4 1.10.0 and zstd 1.5.7 at level 1 on chunks of 3,000 and 16,384 bytes.

use crate::Shape;
use std::sync::LazyLock;

/// Smallest chunk that has matches and literals apart, bytes.
const LEAST: usize = 128;
/// Lowest ratio of lz4 by which a chunk has matches.
const LEAST_RATIO: f64 = 1.02;
/// Shortest mean length of a match, bytes.
const LEAST_MATCH: f64 = 6.0;
/// Literals of a chunk, at least.
const LEAST_LITERALS: f64 = 16.0;
/// What lz4 writes for a block besides, bytes.
const LZ4_HEAD: f64 = 8.0;
/// How far back matches lead at most, bytes. What a chunk takes over of others, and what a reader cuts apart, keeps most of them.
const REACH: usize = 1 << 10;
/// Rounds after which lengths and costs of matches fit each other.
const ROUNDS: usize = 20;

/// What a match costs lz4 and Zstandard by its mean length, bytes.
const COST: [(f64, [f64; 2]); 10] = [
    (6.0, [3.85, 2.42]),
    (9.0, [3.9, 2.65]),
    (13.0, [4.2, 3.0]),
    (20.0, [5.0, 3.45]),
    (30.0, [5.9, 4.0]),
    (45.0, [6.85, 4.7]),
    (70.0, [7.95, 5.7]),
    (110.0, [9.25, 7.0]),
    (200.0, [10.95, 8.6]),
    (500.0, [12.95, 11.3]),
];
/// What Zstandard writes for a block besides, by the entropy of literals in bits: its table of codes is most of it.
const ZSTD_HEAD: [(f64, f64); 8] =
    [(2.0, 5.0), (3.0, 11.0), (4.0, 45.0), (5.0, 68.0), (6.0, 84.0), (7.0, 89.0), (7.8, 90.0), (8.0, 18.0)];
/// Mean length of a run of literals by the ratio of lz4, such that zlib makes 0.91 to 1 of what Zstandard does at level 1, as of
/// source text, programs and compiled code.
const RUN: [(f64, f64); 6] = [(1.3, 7.0), (1.65, 8.0), (2.0, 12.0), (2.3, 16.0), (2.9, 26.0), (3.5, 32.0)];

/// Of what runs that are found again save so much is seen in series like real ones: some runs are cut apart or out of reach, and chunks
/// of several ratios follow each other. Chosen on five series, judged on others (docs/notes/ablation-datasets.md).
const FOUND: f64 = 0.5;
/// Entropy of literals that chunks have in common, bits: one for all, so that chunks of any ratios have the same bytes.
const COMMON: f64 = 5.25;
/// Entropies for each bit.
const LEVELS: usize = 16;

/// How the bytes of a chunk are laid out, and what its literals are drawn from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Texture {
    pub shape: Shape,
    /// Of literals, bits.
    pub entropy: f64,
    /// Mean run of literals, bytes.
    run: f64,
    /// What Zstandard makes of all, bytes.
    zstd: f64,
}

impl Texture {
    /// For a chunk of which lz4 and Zstandard make so many bytes; nothing where neither saves anything.
    pub fn of(size: usize, lz4: f64, zstd: f64) -> Option<Texture> {
        let whole = size as f64;
        let lz4 = lz4.max(LEAST_LITERALS + LZ4_HEAD + COST[0].1[0]);
        let share = (lz4 - LZ4_HEAD) / whole;
        if size < LEAST || zstd.min(lz4) * LEAST_RATIO > whole {
            return None;
        }
        if share * LEAST_RATIO > 1.0 {
            return Some(Texture::coded(size, (0.0, whole), zstd));
        }
        let (mut run, mut length) = (between(&RUN, 1.0 / share), COST[3].0);
        for _ in 0..ROUNDS {
            length = ((run + cost(length)[0]) / share - run).max(LEAST_MATCH);
        }
        if length <= LEAST_MATCH {
            run = ((LEAST_MATCH * share - cost(length)[0]) / (1.0 - share)).max(1.0);
        }
        let matches = (whole / (run + length)).round().max(1.0);
        let literals = (lz4 - LZ4_HEAD - matches * cost(length)[0]).clamp(LEAST_LITERALS, whole);
        Some(Texture::coded(size, (matches, literals), zstd))
    }

    /// With so many matches and literals.
    fn coded(size: usize, (matches, literals): (f64, f64), zstd: f64) -> Texture {
        let by_zstd = cost((size as f64 - literals) / matches.max(1.0))[1];
        let mut entropy = 6.0;
        for _ in 0..ROUNDS / 4 {
            let coded = zstd - matches * by_zstd - between(&ZSTD_HEAD, entropy);
            entropy = (8.0 * coded / literals).clamp(1.0, 8.0);
        }
        let shape = Shape::of_matches(size, matches as usize, literals as usize, REACH);
        Texture { shape, entropy, run: literals / (matches + 1.0), zstd }
    }

    /// The share of runs that chunks have in common so that Zstandard makes so much less of a piece, as a share. It writes one table
    /// of codes for a piece, but that suits chunks of other ratios less, so neither counts.
    pub fn common(&self, saved: f64) -> f64 {
        let literals = self.shape.random() as f64;
        // A run that is found again is one more match.
        let each = FOUND * (COMMON / 8.0 - cost(self.run)[1] / self.run).max(0.05);
        saved * self.zstd / (literals * each)
    }

    /// The literals that random bytes become in this chunk. The chunk shares a part `common` of its literals with others.
    /// All its literals together have its entropy.
    pub fn table(&self, common: f64) -> &'static [u8; 256] {
        table((self.entropy - common * COMMON) / (1.0 - common))
    }
}

/// What random bytes stand for as literals that chunks have in common.
pub(crate) fn common_table() -> &'static [u8; 256] {
    table(COMMON)
}

/// What a match of a mean length costs.
fn cost(length: f64) -> [f64; 2] {
    [0, 1].map(|codec| between(&COST.map(|(length, costs)| (length, costs[codec])), length))
}

/// A value between those of a table; beyond its ends that of the end.
fn between(table: &[(f64, f64)], at: f64) -> f64 {
    let above = table.partition_point(|(known, _)| *known < at).clamp(1, table.len() - 1);
    let ((x0, y0), (x1, y1)) = (table[above - 1], table[above]);
    y0 + (at.clamp(x0, x1) - x0) / (x1 - x0) * (y1 - y0)
}

/// The table of an entropy, bits.
fn table(entropy: f64) -> &'static [u8; 256] {
    static TABLES: LazyLock<Vec<[u8; 256]>> =
        LazyLock::new(|| (1..=8 * LEVELS).map(|level| drawn_by(level as f64 / LEVELS as f64)).collect());
    &TABLES[((entropy * LEVELS as f64).round() as usize).clamp(1, 8 * LEVELS) - 1]
}

/// Byte values whose frequencies fall by one factor each and have an entropy: what each value of a random byte stands for.
fn drawn_by(entropy: f64) -> [u8; 256] {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let factor = f64::midpoint(low, high);
        if entropy_of(&falling(factor)) < entropy { low = factor } else { high = factor }
    }
    // Frequent values are not neighbours.
    falling(high).map(|rank| rank.wrapping_mul(0x4d).wrapping_add(0x20))
}

/// For each 256th of all draws the rank of the value that it stands for.
fn falling(factor: f64) -> [u8; 256] {
    let (mut sums, mut weight, mut sum) = ([0.0; 256], 1.0, 0.0);
    for one in &mut sums {
        sum += weight;
        *one = sum;
        weight *= factor;
    }
    let mut rank = 0;
    std::array::from_fn(|draw| {
        while rank < 255 && sums[rank] * 256.0 < (draw as f64 + 0.5) * sum {
            rank += 1;
        }
        rank as u8
    })
}

fn entropy_of(ranks: &[u8; 256]) -> f64 {
    let mut counts = [0.0; 256];
    ranks.iter().for_each(|rank| counts[usize::from(*rank)] += 1.0 / 256.0);
    counts.iter().filter(|share| **share > 0.0).map(|share: &f64| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_their_entropy() {
        for level in 1..=8 * LEVELS {
            let entropy = level as f64 / LEVELS as f64;
            let found = entropy_of(table(entropy));
            assert!((found - entropy).abs() < 0.05, "{entropy} {found}");
        }
        let mut all = *table(8.0);
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(at, byte)| at == usize::from(*byte)));
    }

    #[test]
    fn what_lz4_does_not_save_has_no_matches() {
        assert_eq!(Texture::of(8192, 8190.0, 8190.0), None);
        assert_eq!(Texture::of(8192, 8192.0, 7000.0).unwrap().shape.random(), 8192);
        assert_eq!(Texture::of(100, 50.0, 40.0), None);
        assert_eq!(Texture::of(8192, 4096.0, 8000.0).unwrap().entropy, 8.0);
        assert_eq!(Texture::of(8192, 4096.0, 1.0).unwrap().entropy, 1.0);
    }
}
