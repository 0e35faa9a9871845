//! Values that a program drew only to be told: how many, their mean and deviation.

/// Values kept as they were drawn, from the first on.
const FIRST: usize = 8;

/// What is known of values; kept by each thread for itself and merged at the end.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squares of differences from the mean (Welford 1962).
    squares: f64,
    /// Smallest.
    pub least: f64,
    /// Largest.
    pub most: f64,
    first: [f64; FIRST],
}

impl Tally {
    /// Takes a value in.
    #[inline]
    pub fn add(&mut self, value: f64) {
        if let Some(place) = self.first.get_mut(self.count as usize) {
            *place = value;
        }
        (self.least, self.most) = match self.count {
            0 => (value, value),
            _ => (self.least.min(value), self.most.max(value)),
        };
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }

    /// Takes in what another thread has drawn (Chan, Golub and LeVeque 1983).
    pub fn merge(&mut self, other: &Tally) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (own, its) = (self.count as f64, other.count as f64);
        let off = other.mean - self.mean;
        self.mean += off * its / (own + its);
        self.squares += other.squares + off * off * own * its / (own + its);
        (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
        let kept = self.first().len();
        for (place, value) in self.first[kept..].iter_mut().zip(other.first()) {
            *place = *value;
        }
        self.count += other.count;
    }

    /// Standard deviation of a sample; 0 of fewer than two values.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }

    /// The first values.
    pub fn first(&self) -> &[f64] {
        &self.first[..FIRST.min(self.count as usize)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole() {
        let values: Vec<f64> = (0..1000).map(|i| 1e6 + f64::from(i * i % 37)).collect();
        let of = |values: &[f64]| {
            let mut tally = Tally::default();
            values.iter().for_each(|value| tally.add(*value));
            tally
        };
        let whole = of(&values);
        let mean = values.iter().sum::<f64>() / 1000.0;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        assert!((whole.mean - mean).abs() < 1e-6);
        assert!((whole.deviation() - (squares / 999.0).sqrt()).abs() < 1e-6);
        assert_eq!(whole.first(), &values[..8]);
        for cut in [0, 1, 5, 300, 1000] {
            let mut parts = of(&values[..cut]);
            parts.merge(&of(&values[cut..]));
            assert_eq!((parts.count, parts.least, parts.most), (1000, 1e6, 1e6 + 36.0));
            assert!((parts.mean - mean).abs() < 1e-6);
            assert!((parts.deviation() - whole.deviation()).abs() < 1e-6);
            assert_eq!(parts.first(), &values[..8]);
        }
        assert_eq!((of(&[]).deviation(), of(&[5.0]).deviation()), (0.0, 0.0));
    }
}
