//! Distributions of numbers in logarithmic buckets, with the sub-buckets of the run bundle.

use serde::Serialize;

/// Bucket of a value: exact below 128, then 64 buckets an octave (relative width below 1/64).
pub fn bucket(value: u64) -> usize {
    if value < 128 {
        return value as usize;
    }
    let shift = value.ilog2() as usize - 6;
    (shift << 6) + (value >> shift) as usize
}

/// Lowest value and width of a bucket.
pub fn bounds(bucket: usize) -> (u64, u64) {
    if bucket < 128 {
        return (bucket as u64, 1);
    }
    let shift = (bucket >> 6) - 1;
    (((bucket & 63) as u64 + 64) << shift, 1 << shift)
}

/// Counts of values that are not negative.
#[derive(Debug, Clone, Default)]
pub struct Dist {
    /// Count and sum of every bucket.
    buckets: Vec<(u64, f64)>,
    count: u64,
    sum: f64,
    min: u64,
    max: u64,
}

/// A distribution as it is shown; values in the unit of what was counted.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Shown {
    /// Values counted.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Percent and the value below or at which so many lie; within 1/64, exact where values repeat.
    pub quantiles: Vec<(f64, u64)>,
    /// Steps of the cumulative distribution: value, share at or below it; at most 256.
    pub cdf: Vec<(u64, f64)>,
}

impl Dist {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, (0, 0.0));
        }
        let (n, sum) = &mut self.buckets[bucket];
        *n += 1;
        *sum += value as f64;
        if self.count == 0 || value < self.min {
            self.min = value;
        }
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value as f64;
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean of a bucket's values, which is exact where they are all the same.
    fn mean(&self, bucket: usize) -> u64 {
        let (n, sum) = self.buckets[bucket];
        ((sum / n as f64).round() as u64).clamp(self.min, self.max)
    }

    /// Value at a share between 0 and 1.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, &(n, _)) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return self.mean(bucket);
            }
        }
        self.max
    }

    /// As it is shown; `None` when nothing was counted.
    pub fn show(&self) -> Option<Shown> {
        if self.count == 0 {
            return None;
        }
        let filled = self.buckets.iter().filter(|(n, _)| *n > 0).count();
        let step = filled.div_ceil(256).max(1);
        let (mut cdf, mut seen, mut index) = (Vec::new(), 0, 0);
        for (bucket, &(n, _)) in self.buckets.iter().enumerate().filter(|(_, (n, _))| *n > 0) {
            seen += n;
            index += 1;
            if index % step == 0 || seen == self.count {
                cdf.push((self.mean(bucket), seen as f64 / self.count as f64));
            }
        }
        let quantiles =
            [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9].map(|p| (p, self.quantile(p / 100.0))).to_vec();
        Some(Shown {
            count: self.count,
            min: self.min,
            max: self.max,
            mean: self.sum / self.count as f64,
            quantiles,
            cdf,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(value: u64) {
            let (low, width) = bounds(bucket(value));
            prop_assert!(low <= value && value - low < width);
            prop_assert!(width == 1 || width * 64 <= low);
        }

        #[test]
        fn quantiles_are_close(mut values in prop::collection::vec(0u64..1 << 40, 1..300), share in 0.0f64..1.0) {
            let mut dist = Dist::default();
            values.iter().for_each(|&v| dist.add(v));
            values.sort_unstable();
            let exact = values[((share * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
            let found = dist.quantile(share);
            prop_assert!(found.abs_diff(exact) * 64 <= exact + 64, "{found} for {exact}");
        }
    }
}
