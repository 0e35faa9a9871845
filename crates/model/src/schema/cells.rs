//! Sparse histograms: packed keys and their counts.

use crate::schema::rule::MAX_CODE;

/// Bits of the largest code.
const MAX_BITS: u8 = (u32::BITS - MAX_CODE.leading_zeros()) as u8;

/// What errors say where keys have no room for all dimensions.
pub(crate) const TOO_WIDE: &str = "the dimensions need more than 64 bits together";

/// Where each dimension's code lies in a packed 64-bit key; the first dimension is most significant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    places: Vec<KeyField>,
}

/// The bits of one dimension; by default none, and the code is always 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeyField {
    bits: u8,
    shift: u8,
    /// As many ones as there are bits.
    mask: u32,
}

impl KeyField {
    /// The code in a key.
    #[inline]
    pub fn code(self, key: u64) -> u32 {
        (key >> self.shift) as u32 & self.mask
    }

    /// The part of a key that a code is; `None` if it has too many bits, as what no rule gives has.
    #[inline]
    pub fn part(self, code: u32) -> Option<u64> {
        (code & !self.mask == 0).then_some(self.key(code))
    }

    /// The same of a code that is known to fit.
    #[inline(always)]
    pub fn key(self, code: u32) -> u64 {
        u64::from(code) << self.shift
    }

    /// The bits of a key that the code has.
    pub fn bits(self) -> u64 {
        u64::from(self.mask) << self.shift
    }
}

impl Layout {
    /// A layout with this many bits for each dimension; `None` if a key would need more than 64.
    pub fn new(bits: &[u8]) -> Option<Layout> {
        let total: u32 = bits.iter().map(|&b| u32::from(b)).sum();
        if total > 64 || bits.iter().any(|&b| b == 0 || b > MAX_BITS) {
            return None;
        }
        let mut shift = total as u8;
        let place = |&bits: &u8| {
            shift -= bits;
            KeyField { bits, shift, mask: u32::MAX >> (32 - bits) }
        };
        Some(Layout { places: bits.iter().map(place).collect() })
    }

    /// Number of dimensions.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no dimension.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bits of a dimension.
    pub fn bits(&self, d: usize) -> u8 {
        self.places[d].bits
    }

    /// Where the code of a dimension lies.
    pub(crate) fn place(&self, d: usize) -> KeyField {
        self.places[d]
    }

    /// The code of dimension `d` in a key.
    #[inline]
    pub fn code(&self, key: u64, d: usize) -> u32 {
        self.places[d].code(key)
    }

    /// The key of some codes, one for each dimension, each fitting its bits.
    pub fn pack(&self, codes: impl IntoIterator<Item = u32>) -> u64 {
        codes.into_iter().zip(&self.places).fold(0, |key, (code, place)| key | place.key(code))
    }

    /// The same key in a layout with more bits; keeps the order of keys.
    pub fn rekey(&self, wider: &Layout, key: u64) -> u64 {
        wider.pack((0..self.len()).map(|d| self.code(key, d)))
    }
}

/// The bits a code needs, at least one.
pub(crate) fn bits_for(code: u32) -> u8 {
    (32 - code.leading_zeros()).max(1) as u8
}

/// A sparse histogram: keys ascending, each with its count above zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cells {
    /// Packed codes.
    pub keys: Vec<u64>,
    /// Requests of each key.
    pub counts: Vec<u64>,
}

impl Cells {
    /// Sorts unordered cells; equal keys are added up.
    pub fn from_pairs(mut pairs: Vec<(u64, u64)>) -> Cells {
        pairs.sort_unstable();
        let mut cells = Cells::default();
        for (key, count) in pairs {
            match cells.keys.last() {
                Some(&last) if last == key => *cells.counts.last_mut().expect("as many counts") += count,
                _ => {
                    cells.keys.push(key);
                    cells.counts.push(count);
                }
            }
        }
        cells
    }

    /// Counts keys, which are sorted for it.
    pub fn count(keys: &mut [u64]) -> Cells {
        keys.sort_unstable();
        let mut cells =
            Cells { keys: Vec::with_capacity(keys.len()), counts: Vec::with_capacity(keys.len()) };
        for same in keys.chunk_by(|a, b| a == b) {
            cells.keys.push(same[0]);
            cells.counts.push(same.len() as u64);
        }
        cells
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Requests in all cells.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Adds another histogram of the same layout.
    pub fn add(&mut self, other: &Cells) {
        let mut sum = Cells {
            keys: Vec::with_capacity(self.len() + other.len()),
            counts: Vec::with_capacity(self.len() + other.len()),
        };
        union(&self.keys, &self.counts, &other.keys, &other.counts, |key, a, b| {
            sum.keys.push(key);
            sum.counts.push(a + b);
        });
        *self = sum;
    }

    /// Puts the keys into a layout with more bits.
    pub(crate) fn rekey(&mut self, old: &Layout, new: &Layout) {
        for key in &mut self.keys {
            *key = old.rekey(new, *key);
        }
    }

    /// Counts of one dimension by code, ascending, summed over all others.
    pub fn marginal(&self, layout: &Layout, d: usize) -> Marginal {
        const DENSE: usize = 1 << 12;
        let mut dense = vec![0u64; DENSE.min(1 << layout.bits(d))];
        let mut sparse = Vec::new();
        for (&key, &count) in self.keys.iter().zip(&self.counts) {
            let code = layout.code(key, d);
            match dense.get_mut(code as usize) {
                Some(n) => *n += count,
                None => sparse.push((u64::from(code), count)),
            }
        }
        let rest = Cells::from_pairs(sparse);
        let n = dense.iter().filter(|n| **n > 0).count() + rest.len();
        let mut marginal = Marginal { keys: Vec::with_capacity(n), counts: Vec::with_capacity(n) };
        for (code, &count) in dense.iter().enumerate().filter(|(_, n)| **n > 0) {
            marginal.keys.push(code as u64);
            marginal.counts.push(count);
        }
        marginal.keys.extend(rest.keys);
        marginal.counts.extend(rest.counts);
        marginal
    }
}

/// A histogram of one dimension: its keys are plain codes.
pub type Marginal = Cells;

/// Walks two histograms together: every key of either, with both counts.
pub(crate) fn union(
    a_keys: &[u64],
    a_counts: &[u64],
    b_keys: &[u64],
    b_counts: &[u64],
    mut each: impl FnMut(u64, u64, u64),
) {
    let (mut i, mut j) = (0, 0);
    while i < a_keys.len() && j < b_keys.len() {
        match a_keys[i].cmp(&b_keys[j]) {
            std::cmp::Ordering::Less => {
                each(a_keys[i], a_counts[i], 0);
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                each(b_keys[j], 0, b_counts[j]);
                j += 1;
            }
            std::cmp::Ordering::Equal => {
                each(a_keys[i], a_counts[i], b_counts[j]);
                i += 1;
                j += 1;
            }
        }
    }
    for k in i..a_keys.len() {
        each(a_keys[k], a_counts[k], 0);
    }
    for k in j..b_keys.len() {
        each(b_keys[k], 0, b_counts[k]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells() -> impl Strategy<Value = Cells> {
        proptest::collection::vec((0u64..50, 1u64..1000), 0..60).prop_map(Cells::from_pairs)
    }

    fn sum(a: &Cells, b: &Cells) -> Cells {
        let mut c = a.clone();
        c.add(b);
        c
    }

    proptest! {
        #[test]
        fn adding_is_associative_and_commutative_and_keeps_the_total(a in cells(), b in cells(), c in cells()) {
            prop_assert_eq!(sum(&sum(&a, &b), &c), sum(&a, &sum(&b, &c)));
            prop_assert_eq!(sum(&a, &b), sum(&b, &a));
            prop_assert_eq!(sum(&a, &b).total(), a.total() + b.total());
        }

        #[test]
        fn keys_give_back_their_codes(codes in proptest::collection::vec(0u32..4000, 1..5), extra in 0u8..2) {
            let bits: Vec<u8> = codes.iter().map(|&c| bits_for(c)).collect();
            let layout = Layout::new(&bits).unwrap();
            let key = layout.pack(codes.iter().copied());
            let wide: Vec<u8> = bits.iter().map(|b| b + extra).collect();
            let wider = Layout::new(&wide).unwrap();
            for (d, &code) in codes.iter().enumerate() {
                prop_assert_eq!(layout.code(key, d), code);
                prop_assert_eq!(wider.code(layout.rekey(&wider, key), d), code);
            }
        }

        #[test]
        fn marginals_keep_the_total(pairs in proptest::collection::vec((0u32..3, 0u32..10_000, 1u64..9), 1..50)) {
            let layout = Layout::new(&[2, 14]).unwrap();
            let cells = Cells::from_pairs(pairs.iter().map(|p| (layout.pack([p.0, p.1]), p.2)).collect());
            for d in 0..2 {
                let marginal = cells.marginal(&layout, d);
                prop_assert_eq!(marginal.total(), cells.total());
                prop_assert!(marginal.keys.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }

    #[test]
    fn more_than_64_bits_do_not_fit() {
        assert!(Layout::new(&[31, 31, 2]).is_some());
        assert!(Layout::new(&[31, 31, 3]).is_none());
        assert!(Layout::new(&[32]).is_none());
    }
}
