//! Making drawn gaps fit the time there is: by choosing among draws, and in the end by changing what was drawn.

/// Draws looked at until one is found that may be taken instead of another.
pub(crate) const LOOKS: usize = 8;

/// What the next draws should have: where gaps as they come will not fit the time, of two long ones that is taken
/// which brings it nearer.
///
/// The order of draws without replacement is free, so this changes nothing of their histogram. Without it the time
/// that too few long gaps leave goes into one, and of too many the largest are cut. Short gaps stay as they come:
/// how many there are is not what makes one stretch of a phase slower than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Aim {
    gap: i64,
    /// A long gap has at least this.
    long: i64,
}

impl Aim {
    /// For `requests` draws with gaps of `mean` that should take `time`, nanoseconds; `None` as long as chance alone
    /// takes them as far from it.
    #[inline]
    pub fn of(time: i64, requests: usize, mean: f64) -> Option<Aim> {
        let off = time as f64 - requests as f64 * mean;
        // Half of what the sum of as many exponential gaps varies by.
        let needs = 4.0 * off * off > requests as f64 * mean * mean;
        needs.then(|| Aim { gap: (mean + off) as i64, long: (mean / 2.0) as i64 })
    }

    /// Whether another draw may be taken instead of one with this gap, or one with this gap instead of another.
    #[inline]
    pub fn minds(&self, gap: i64) -> bool {
        gap >= self.long
    }

    /// Whether a gap is better than another.
    #[inline]
    pub fn prefers(&self, gap: i64, other: i64) -> bool {
        gap.abs_diff(self.gap) < other.abs_diff(self.gap)
    }
}

/// Makes gaps fit `available` nanoseconds without touching the small ones.
///
/// Too long together: the largest are cut to one level, the highest at which the sum fits. What is missing is left for
/// the gap that crosses into the next window. The first gap is at least `first`, the time until the window starts.
pub(crate) fn fit(gaps: &mut [i64], first: i64, available: i64) {
    let Some(head) = gaps.first_mut() else { return };
    *head = (*head).max(first);
    let available = available.max(first);
    let sum = match gaps.iter().max() {
        Some(&most) if most <= i64::MAX / gaps.len() as i64 => gaps.iter().sum(),
        _ => gaps.iter().fold(0, |sum: i64, &gap| sum.saturating_add(gap)),
    };
    if sum > available {
        // The first gap never falls below `first`; the level is found for the part above it.
        gaps[0] -= first;
        level(gaps, available - first);
        gaps[0] += first;
    }
}

/// Cuts the largest gaps to the highest level at which their sum is at most `available`, which is less
/// than their sum.
fn level(gaps: &mut [i64], available: i64) {
    let mut level = available / gaps.len() as i64;
    loop {
        // What the gaps below leave is for those above; each round some that were above are below.
        let (mut below, mut above) = (0, 0);
        for &gap in &*gaps {
            below += if gap <= level { gap } else { 0 };
            above += i64::from(gap > level);
        }
        let higher = (available - below) / above.max(1);
        if higher <= level {
            break;
        }
        level = higher;
    }
    for gap in gaps {
        *gap = (*gap).min(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gaps_fit_and_small_ones_are_untouched(
            drawn in proptest::collection::vec(prop_oneof![0i64..100, 0i64..1_000_000_000], 1..200),
            first in 0i64..1_000_000, more in 0i64..2_000_000_000,
        ) {
            let available = first + more;
            let mut gaps = drawn.clone();
            fit(&mut gaps, first, available);
            let sum: i64 = gaps.iter().sum();
            prop_assert!(gaps[0] >= first && sum <= available && gaps.iter().all(|g| *g >= 0));
            let sum_before: i64 = drawn.iter().sum::<i64>() - drawn[0] + drawn[0].max(first);
            if sum_before <= available {
                prop_assert_eq!(sum, sum_before);
            } else {
                // All cut ones have the same length, and nothing shorter was cut.
                let level = gaps[1..].iter().zip(&drawn[1..]).filter(|(a, b)| a != b).map(|(a, _)| *a).max();
                if let Some(level) = level {
                    prop_assert!(gaps[1..].iter().zip(&drawn[1..]).all(|(a, b)| *a == (*b).min(level)));
                }
                prop_assert!(available - sum <= gaps.len() as i64, "{} left of {}", available - sum, available);
            }
        }
    }
}
