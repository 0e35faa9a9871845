//! Latency histograms: log-linear, 64 buckets per octave, frozen in `docs/reference/formats/bundle.md`.
//!
//! A value `v` (ns) below 128 has bucket `v`. Otherwise, with `shift = floor(log2 v) - 6`, its
//! bucket is `(shift << 6) + (v >> shift)`: narrower than 1/64 of its values, so its middle is off by
//! less than 1/128. Larger values than [`MAX`] count as [`MAX`].

/// Largest value told apart, 2^42 ns (73 minutes).
pub const MAX: u64 = 1 << 42;
/// Number of buckets.
pub const BUCKETS: usize = 37 * 64 + 1;
/// Counters allocated: a multiple of the eight that are looked at together.
const LEN: usize = BUCKETS.next_multiple_of(8);

/// The bucket of a value in nanoseconds.
#[inline(always)]
pub fn bucket(ns: u64) -> usize {
    let v = ns.min(MAX);
    // For values below 64 the octave is taken as 6, which makes the shift 0.
    let shift = (v | 64).ilog2() - 6;
    ((shift as usize) << 6) + (v >> shift) as usize
}

/// The smallest value of a bucket and the first value beyond it.
pub fn bounds(bucket: usize) -> (u64, u64) {
    if bucket < 128 {
        return (bucket as u64, bucket as u64 + 1);
    }
    let shift = (bucket >> 6) - 1;
    let low = ((bucket - (shift << 6)) as u64) << shift;
    (low, low + (1 << shift))
}

/// The non-empty buckets in ascending order: bucket and count.
pub type Sparse = Vec<(u16, u64)>;

/// Adds one sparse histogram to another.
pub fn merge(into: &mut Sparse, from: &Sparse) {
    if from.is_empty() {
        return;
    }
    let (mut out, mut a, mut b) = (Sparse::with_capacity(into.len() + from.len()), 0, 0);
    while a < into.len() || b < from.len() {
        let left = into.get(a).map_or(u32::MAX, |x| u32::from(x.0));
        let right = from.get(b).map_or(u32::MAX, |x| u32::from(x.0));
        let count = if left <= right { into[a].1 } else { 0 } + if right <= left { from[b].1 } else { 0 };
        out.push((left.min(right) as u16, count));
        a += usize::from(left <= right);
        b += usize::from(right <= left);
    }
    *into = out;
}

/// The value below which the share `q` of all counts lies, as the middle of its bucket; 0 when empty.
pub fn quantile(of: impl Iterator<Item = (usize, u64)> + Clone, q: f64) -> u64 {
    let total: u64 = of.clone().map(|(_, n)| n).sum();
    let rank = ((total as f64 * q).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0;
    for (bucket, count) in of {
        seen += count;
        if seen >= rank {
            let (low, high) = bounds(bucket);
            return low + (high - low) / 2;
        }
    }
    0
}

/// Counts of the current moment: small, dense, and folded into [`Sum`] often.
pub(crate) struct Dense(Box<[u32; LEN]>);

impl Dense {
    /// An empty histogram.
    pub fn new() -> Dense {
        Dense(vec![0; LEN].into_boxed_slice().try_into().expect("the length is right"))
    }

    /// Counts one value; values below 0 (clocks of two cores) count as 0.
    #[inline(always)]
    pub fn add(&mut self, ns: i64) {
        let bucket = bucket(ns.max(0) as u64);
        // SAFETY: `bucket` is below BUCKETS for every value (property-tested below).
        unsafe { *self.0.get_unchecked_mut(bucket) += 1 };
    }

    /// Hands every non-empty bucket to `each` and empties it.
    pub fn drain(&mut self, mut each: impl FnMut(usize, u32)) {
        for (start, eight) in self.0.chunks_exact_mut(8).enumerate() {
            // Most of the 2368 buckets are empty: skip eight at a time.
            if eight.iter().all(|n| *n == 0) {
                continue;
            }
            for (i, count) in eight.iter_mut().enumerate().filter(|(_, n)| **n != 0) {
                each(start * 8 + i, std::mem::take(count));
            }
        }
    }
}

/// Counts of one interval or of the whole run.
pub(crate) struct Sum(Box<[u64; LEN]>);

impl Sum {
    /// An empty histogram.
    pub fn new() -> Sum {
        Sum(vec![0; LEN].into_boxed_slice().try_into().expect("the length is right"))
    }

    /// Adds counts to a bucket.
    pub fn add(&mut self, bucket: usize, count: u64) {
        self.0[bucket] += count;
    }

    /// The non-empty buckets, emptied.
    pub fn take(&mut self) -> Sparse {
        let mut out = Sparse::new();
        for (i, n) in self.0.iter_mut().enumerate() {
            if *n != 0 {
                out.push((i as u16, std::mem::take(n)));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_bucket_begins_where_the_last_one_ended() {
        let mut next = 0;
        for b in 0..BUCKETS {
            let (low, high) = bounds(b);
            assert_eq!(low, next);
            assert_eq!((bucket(low), bucket(high - 1)), (b, b));
            next = high;
        }
        assert!(next > MAX);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    fn sparse(values: &[u64]) -> Sparse {
        let mut sum = Sum::new();
        values.iter().for_each(|v| sum.add(bucket(*v), 1));
        sum.take()
    }

    fn union(a: &Sparse, b: &Sparse) -> Sparse {
        let mut out = a.clone();
        merge(&mut out, b);
        out
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(v in 0u64..1 << 45) {
            let b = bucket(v);
            prop_assert!(b < BUCKETS);
            let (low, high) = bounds(b);
            prop_assert!(v > MAX || (low <= v && v < high));
            prop_assert!(low < 128 || (high - low) * 64 <= low);
        }

        #[test]
        fn merging_is_counting_together(
            a in prop::collection::vec(0u64..1 << 43, 0..50),
            b in prop::collection::vec(0u64..1 << 20, 0..50),
            c in prop::collection::vec(0u64..1 << 30, 0..50),
        ) {
            let (x, y, z) = (sparse(&a), sparse(&b), sparse(&c));
            prop_assert_eq!(union(&union(&x, &y), &z), union(&x, &union(&y, &z)));
            prop_assert_eq!(union(&x, &y), union(&y, &x));
            prop_assert_eq!(union(&x, &y), sparse(&[a, b].concat()));
            prop_assert_eq!(union(&x, &Sparse::new()), x);
        }

        #[test]
        fn dense_counts_drain_once(a in prop::collection::vec(0i64..1 << 43, 0..200)) {
            let (mut dense, mut sum) = (Dense::new(), Sum::new());
            a.iter().for_each(|v| dense.add(*v));
            dense.drain(|b, n| sum.add(b, n.into()));
            dense.drain(|_, _| panic!("drained twice"));
            prop_assert_eq!(sum.take(), sparse(&a.iter().map(|v| *v as u64).collect::<Vec<_>>()));
        }

        #[test]
        fn a_quantile_is_within_a_bucket_of_the_sorted_value(
            mut a in prop::collection::vec(0u64..1 << 40, 1..200), q in 0.0f64..1.0,
        ) {
            a.sort_unstable();
            let exact = a[((a.len() as f64 * q).ceil() as usize).clamp(1, a.len()) - 1];
            let s = sparse(&a);
            let found = quantile(s.iter().map(|(b, n)| (usize::from(*b), *n)), q);
            prop_assert_eq!(bucket(found), bucket(exact));
        }
    }
}
