//! How different two histograms are, beyond what chance alone explains.
//!
//! Two windows drawn from one distribution differ, the more the fewer requests they hold. Each
//! distance is therefore reduced by its *allowance*: the mean it would have if the two had been split
//! at random from their sum, plus two standard deviations and the share of one request (shares of few requests are coarse). For a bin with `c` requests in the sum,
//! of `N` in all, and sides of `n` and `m` requests, the count on one side is binomial(c, q = n/N)
//! up to the correction (N - c)/(N - 1) for drawing without replacement, and the difference of the
//! two shares is its deviation from the mean times N / (n m). The mean deviation of a binomial has a
//! closed form (de Moivre 1730; Johnson, Biometrika 44, 1957).

use crate::schema::cells::{Cells, union};

/// A distance and what chance alone would make of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measured {
    /// As defined, 0 to 1.
    pub raw: f64,
    /// Expected value, two standard deviations and the share of one request, if both sides came from one distribution.
    pub allowance: f64,
}

impl Measured {
    /// What is left of the distance when chance has had its share, 0 to 1.
    pub fn excess(self) -> f64 {
        (self.raw - self.allowance).max(0.0)
    }
}

/// Mean absolute deviation of a binomial(c, q) from its mean, by de Moivre's formula where few are
/// expected on the rarer side and by the normal limit elsewhere.
fn deviation(c: u64, q: f64) -> f64 {
    let q = q.min(1.0 - q);
    let expected = c as f64 * q;
    if expected > 16.0 {
        return (2.0 * expected * (1.0 - q) / std::f64::consts::PI).sqrt();
    }
    // 2 k C(c, k) q^k (1-q)^(c-k+1) with k = floor(c q) + 1, the binomial built up factor by factor.
    let k = (expected as u64 + 1).min(c);
    let choose: f64 = (1..=k).map(|i| (c - k + i) as f64 / i as f64 * q).product();
    2.0 * k as f64 * choose * (1.0 - q).powf((c - k + 1) as f64)
}

/// Mean and variance of the difference of shares in one bin, if chance made it.
fn chance(c: u64, n: u64, m: u64) -> (f64, f64) {
    let total = n + m;
    let (c_, n_, m_, t) = (c as f64, n as f64, m as f64, total as f64);
    // Of the smaller side, so that rounding cannot tell which histogram came first.
    let q = n.min(m) as f64 / t;
    let without = if total > 1 { (t - c_) / (t - 1.0) } else { 0.0 };
    let scale = t / (n_ * m_);
    let mean = deviation(c, q) * without.sqrt() * scale;
    let square = c_ * q * (1.0 - q) * without * scale * scale;
    (mean, (square - mean * mean).max(0.0))
}

/// The share of one request on the smaller side.
fn one(n: u64, m: u64) -> f64 {
    1.0 / n.min(m) as f64
}

/// Total variation of two histograms with its allowance.
pub fn total_variation(a: &Cells, b: &Cells) -> Measured {
    let (n, m) = (a.total(), b.total());
    if n == 0 || m == 0 {
        return Measured::default();
    }
    let (mut raw, mut mean, mut variance) = (0.0, 0.0, 0.0);
    union(&a.keys, &a.counts, &b.keys, &b.counts, |_, x, y| {
        raw += (x as f64 / n as f64 - y as f64 / m as f64).abs();
        let (bin_mean, bin_variance) = chance(x + y, n, m);
        mean += bin_mean;
        variance += bin_variance;
    });
    // Half the sum, as total variation is. With two bins both deviate together, hence the factor 2
    // in the variance; with more they hardly do, and it only adds to the allowance.
    Measured { raw: raw / 2.0, allowance: mean / 2.0 + (2.0 * variance).sqrt() + one(n, m) }
}

/// Largest difference of a cell's share with its allowance.
pub fn max_cell(a: &Cells, b: &Cells) -> Measured {
    let (n, m) = (a.total(), b.total());
    if n == 0 || m == 0 {
        return Measured::default();
    }
    let mut worst = Measured::default();
    union(&a.keys, &a.counts, &b.keys, &b.counts, |_, x, y| {
        let raw = (x as f64 / n as f64 - y as f64 / m as f64).abs();
        if raw > worst.raw {
            let (mean, variance) = chance(x + y, n, m);
            worst = Measured { raw, allowance: mean + 2.0 * variance.sqrt() + one(n, m) };
        }
    });
    worst
}

/// Difference of the means of two samples, beyond two standard errors, relative to their sum: 0 to 1.
///
/// `number` is what a bin stands for. Few requests may carry most of the bytes, which shares of
/// requests hardly show.
pub fn means(a: &Cells, b: &Cells, number: impl Fn(u64) -> f64) -> Measured {
    let moments = |cells: &Cells| {
        let n = cells.total().max(1) as f64;
        let sum = |power: i32| -> f64 {
            cells.keys.iter().zip(&cells.counts).map(|(&key, &c)| number(key).powi(power) * c as f64).sum()
        };
        let mean = sum(1) / n;
        (mean, (sum(2) / n - mean * mean).max(0.0) / n)
    };
    let ((x, x_error), (y, y_error)) = (moments(a), moments(b));
    let scale = (x + y).max(f64::MIN_POSITIVE);
    Measured { raw: (x - y).abs() / scale, allowance: 2.0 * (x_error + y_error).sqrt() / scale }
}

/// The one of several distances that chance explains least: of the dimension that differs most.
pub fn farthest<'a>(
    pairs: impl Iterator<Item = (&'a Cells, &'a Cells)>,
    measure: impl Fn(&Cells, &Cells) -> Measured,
) -> Measured {
    pairs.map(|(a, b)| measure(a, b)).max_by(|a, b| a.excess().total_cmp(&b.excess())).unwrap_or_default()
}

/// Mean of the distances of several pairs: of each dimension, or of each table.
pub fn mean<'a>(
    pairs: impl Iterator<Item = (&'a Cells, &'a Cells)>,
    measure: impl Fn(&Cells, &Cells) -> Measured,
) -> Measured {
    let (mut sum, mut n) = (Measured::default(), 0.0);
    for (a, b) in pairs {
        let one = measure(a, b);
        sum.raw += one.raw;
        sum.allowance += one.allowance;
        n += 1.0;
    }
    if n == 0.0 { sum } else { Measured { raw: sum.raw / n, allowance: sum.allowance / n } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn sample(rng: &mut Xoshiro256PlusPlus, weights: &[f64], n: u64) -> Cells {
        let total: f64 = weights.iter().sum();
        Cells::from_pairs(
            (0..n)
                .map(|_| {
                    let mut r = rng.random::<f64>() * total;
                    let key = weights.iter().position(|w| {
                        r -= w;
                        r < 0.0
                    });
                    (key.unwrap_or(0) as u64, 1)
                })
                .collect(),
        )
    }

    #[test]
    fn chance_alone_leaves_no_excess_at_any_size() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let flat = vec![1.0; 200];
        let skewed: Vec<f64> = (1..=50).map(|i| 1.0 / f64::from(i * i)).collect();
        let coin = vec![0.9, 0.1];
        for weights in [&flat, &skewed, &coin] {
            for (n, m) in [(1, 1), (1, 1000), (5, 7), (30, 30), (100, 20_000), (3000, 3000), (50_000, 60_000)]
            {
                let rounds = 100;
                let over = (0..rounds)
                    .filter(|_| {
                        let (a, b) = (sample(&mut rng, weights, n), sample(&mut rng, weights, m));
                        total_variation(&a, &b).excess() > 0.02
                    })
                    .count();
                // Two standard deviations leave a few in a hundred.
                assert!(over <= 5, "{} bins, {n} and {m}: {over} of {rounds}", weights.len());
            }
        }
    }

    #[test]
    fn the_allowance_is_close_to_what_chance_does() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let flat = vec![1.0; 100];
        let (mut raw, mut mean) = (0.0, 0.0);
        for _ in 0..200 {
            let (a, b) = (sample(&mut rng, &flat, 300), sample(&mut rng, &flat, 500));
            raw += total_variation(&a, &b).raw;
            union(&a.keys, &a.counts, &b.keys, &b.counts, |_, x, y| mean += chance(x + y, 300, 500).0 / 2.0);
        }
        assert!((raw / mean - 1.0).abs() < 0.02, "observed {raw}, expected {mean}");
    }

    #[test]
    fn few_large_requests_are_seen_by_the_mean() {
        let number = |key: u64| if key == 1 { 1e6 } else { 4e3 };
        let cells = |small, large| Cells::from_pairs(vec![(0, small), (1, large)]);
        assert!(total_variation(&cells(250, 1), &cells(240, 16)).excess() < 0.05);
        assert!(means(&cells(250, 1), &cells(240, 16), number).excess() > 0.3);
        assert_eq!(means(&cells(250, 4), &cells(245, 5), number).excess(), 0.0);
    }

    #[test]
    fn a_real_difference_is_seen() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let a = sample(&mut rng, &[0.9, 0.1], 1000);
        let b = sample(&mut rng, &[0.5, 0.5], 1000);
        assert!(total_variation(&a, &b).excess() > 0.3);
        assert!(max_cell(&a, &b).excess() > 0.3);
    }

    proptest! {
        #[test]
        fn the_closed_form_is_the_mean_deviation(c in 1u64..60, q in 0.01f64..0.99) {
            let mut pmf = (1.0 - q).powi(c as i32);
            let mut sum = 0.0;
            for k in 0..=c {
                sum += pmf * (k as f64 - c as f64 * q).abs();
                pmf *= (c - k) as f64 / (k + 1) as f64 * q / (1.0 - q);
            }
            // The normal limit is off by up to one percent where it takes over.
            prop_assert!((deviation(c, q) - sum).abs() < 0.01 * sum, "{} {}", deviation(c, q), sum);
        }

        #[test]
        fn distances_are_symmetric_and_bounded(
            a in proptest::collection::vec((0u64..20, 1u64..50), 1..20),
            b in proptest::collection::vec((0u64..20, 1u64..50), 1..20),
        ) {
            let (a, b) = (Cells::from_pairs(a), Cells::from_pairs(b));
            for measure in [total_variation, max_cell] {
                let (x, y) = (measure(&a, &b), measure(&b, &a));
                prop_assert!((x.raw - y.raw).abs() < 1e-12 && (x.allowance - y.allowance).abs() < 1e-9);
                prop_assert!((0.0..=1.0 + 1e-12).contains(&x.raw));
                prop_assert_eq!(measure(&a, &a).raw, 0.0);
            }
        }
    }
}
