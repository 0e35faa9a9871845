//! When requests of an open loop arrive: at a rate on average, spread by a law.

use crate::issue::arrival_trace::TraceTimes;
use crate::source::random::unit;
use loadstone_plan::Arrival;
use rand_distr::{Distribution, Exp1, Gamma, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Ends of the one state within a gap that are drawn one after the other.
const MANY: f64 = 100.0;

/// What lies between two arrivals, as a multiple of the mean.
enum Gaps {
    Constant,
    Exponential,
    Gamma(Gamma<f64>),
    /// Share of the one kind of gap, and the means of both.
    Hyper(f64, f64, f64),
    /// Mean lengths of the two states in mean gaps, the mean gap while on, and what is left of this one.
    OnOff {
        on: f64,
        off: f64,
        within: f64,
        left: f64,
    },
}

/// Times of arrivals, ns from the start, in ascending order.
pub struct Arrivals {
    random: Xoshiro256PlusPlus,
    /// Mean gap, ns; 0: all at once.
    mean: f64,
    gaps: Gaps,
    /// Arrivals so far.
    number: u64,
    /// Where the next one is, in mean gaps.
    at: f64,
    /// Tells the times in place of a law.
    trace: Option<TraceTimes>,
}

impl Arrivals {
    /// At `rate` per second; 0: all at once.
    pub fn new(rate: f64, arrival: &Arrival, seed: u64) -> Arrivals {
        let mean = if rate > 0.0 { 1e9 / rate } else { 0.0 };
        let gaps = match *arrival {
            Arrival::Poisson => Gaps::Exponential,
            Arrival::Gamma { shape } => Gamma::new(shape, 1.0 / shape).map_or(Gaps::Constant, Gaps::Gamma),
            Arrival::Hyper { variation } => {
                // Both kinds take the same time on the whole (balanced means; Allen 1990, section 3.2.9).
                let share = 0.5 * (1.0 + ((variation - 1.0) / (variation + 1.0)).sqrt());
                Gaps::Hyper(share, 0.5 / share, 0.5 / (1.0 - share))
            }
            Arrival::OnOff { on_s, off_s } => {
                let (on, off) = (on_s * rate, off_s * rate);
                Gaps::OnOff { on, off, within: on / (on + off), left: 0.0 }
            }
            // A trace has times of its own.
            Arrival::Constant | Arrival::Trace { .. } => Gaps::Constant,
        };
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut arrivals = Arrivals { random, mean, gaps, number: 0, at: 0.0, trace: None };
        if let Gaps::OnOff { on, left, .. } = &mut arrivals.gaps {
            *left = *on * exponential(&mut arrivals.random);
        }
        // Whoever looks first does not look just when one arrives.
        if !matches!(arrivals.gaps, Gaps::Constant) {
            arrivals.at = arrivals.gap();
        }
        arrivals
    }

    /// At the times of a trace.
    pub fn of_trace(trace: TraceTimes) -> Arrivals {
        Arrivals { trace: Some(trace), ..Arrivals::new(0.0, &Arrival::Constant, 0) }
    }

    /// Adds the next `n` to `times`.
    ///
    /// # Errors
    /// When the trace they come from cannot be read.
    pub fn fill(&mut self, times: &mut Vec<i64>, n: usize) -> loadstone_trace::Result<()> {
        if let Some(trace) = &mut self.trace {
            for _ in 0..n {
                times.push(trace.next()?);
            }
            return Ok(());
        }
        times.extend((0..n).map(|_| self.next()));
        Ok(())
    }

    /// The next one of a law.
    #[inline]
    fn next(&mut self) -> i64 {
        if let Gaps::Constant = self.gaps {
            let time = self.number as f64 * self.mean;
            self.number += 1;
            return time as i64;
        }
        let time = self.at * self.mean;
        self.at += self.gap();
        time as i64
    }

    fn gap(&mut self) -> f64 {
        let random = &mut self.random;
        match &mut self.gaps {
            Gaps::Constant => 1.0,
            Gaps::Exponential => exponential(random),
            Gaps::Gamma(law) => law.sample(random),
            Gaps::Hyper(share, often, seldom) => {
                let mean = if unit(random) < *share { *often } else { *seldom };
                mean * exponential(random)
            }
            Gaps::OnOff { on, off, within, left } => {
                let mut gap = *within * exponential(random);
                let mut silent = 0.0;
                // Where the state is left many times within a gap, how often that is and how long the silences are
                // together is drawn at once: one after the other could take for ever.
                let reach = gap - *left;
                if reach > MANY * *on {
                    let begun = std::mem::replace(left, *on * exponential(random));
                    return begun + reach + *off * together(random, reach / *on);
                }
                // What reaches beyond the state goes on after the silence, as it has no memory.
                while gap > *left {
                    gap -= *left;
                    silent += *left + *off * exponential(random);
                    *left = *on * exponential(random);
                }
                *left -= gap;
                silent + gap
            }
        }
    }
}

/// The sum of one exponential number and of as many more as events of a Poisson process of this mean.
fn together(random: &mut Xoshiro256PlusPlus, mean: f64) -> f64 {
    let more = Poisson::new(mean).map_or(mean, |law| law.sample(random));
    Gamma::new(1.0 + more, 1.0).map_or(mean, |law| law.sample(random))
}

fn exponential(random: &mut Xoshiro256PlusPlus) -> f64 {
    Exp1.sample(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps in mean gaps of 1,000 ns.
    fn gaps(arrival: &Arrival, n: usize) -> Vec<f64> {
        let mut arrivals = Arrivals::new(1e6, arrival, 3);
        let times: Vec<i64> = (0..=n).map(|_| arrivals.next()).collect();
        times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1000.0).collect()
    }

    fn moments(gaps: &[f64]) -> (f64, f64) {
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (mean, variance / (mean * mean))
    }

    #[test]
    fn means_and_variations_are_as_asked() {
        for (arrival, variation, within) in [
            (Arrival::Constant, 0.0, 1e-9),
            (Arrival::Poisson, 1.0, 0.03),
            (Arrival::Gamma { shape: 0.5 }, 2.0, 0.08),
            (Arrival::Gamma { shape: 4.0 }, 0.25, 0.01),
            (Arrival::Hyper { variation: 1.0 }, 1.0, 0.03),
            (Arrival::Hyper { variation: 9.0 }, 9.0, 0.7),
        ] {
            let (mean, found) = moments(&gaps(&arrival, 400_000));
            assert!((mean - 1.0).abs() < 0.02, "{arrival:?}: {mean}");
            assert!((found - variation).abs() <= within, "{arrival:?}: {found}");
        }
    }

    #[test]
    fn poisson_arrivals_have_exponential_gaps() {
        // Kolmogorov-Smirnov, the 99.99 % point.
        let mut found = gaps(&Arrival::Poisson, 50_000);
        found.sort_by(f64::total_cmp);
        let n = found.len() as f64;
        let off = found.iter().enumerate().map(|(i, gap)| {
            let law = 1.0 - (-gap).exp();
            (law - i as f64 / n).abs().max(((i + 1) as f64 / n - law).abs())
        });
        let most = off.fold(0.0, f64::max);
        // Whole nanoseconds of a mean of 1,000 move the law by a thousandth at most.
        assert!(most < 2.225 / n.sqrt() + 0.001, "{most}");
    }

    #[test]
    fn bursts_come_and_go_at_the_rate_on_the_whole() {
        // 10 ms of 4 million/s, then 30 ms of nothing.
        let mut arrivals = Arrivals::new(1e6, &Arrival::OnOff { on_s: 0.01, off_s: 0.03 }, 5);
        let (mut counts, mut time) = (vec![0u32; 40_000], 0);
        while time < 40_000_000_000 {
            counts[(time / 1_000_000) as usize] += 1;
            time = arrivals.next();
        }
        let total: u32 = counts.iter().sum();
        assert!((f64::from(total) / 40e6 - 1.0).abs() < 0.1, "{total}");
        let quiet = counts.iter().filter(|n| **n == 0).count() as f64 / 40_000.0;
        assert!((0.62..0.82).contains(&quiet), "{quiet}");
        let busy = counts.iter().filter(|n| **n > 3_500).count() as f64 / 40_000.0;
        assert!((0.15..0.32).contains(&busy), "{busy}");
    }

    #[test]
    fn states_far_shorter_than_gaps_keep_the_rate() {
        // Mean lengths of 10 ns, 1 fs and 1e-30 s at a mean gap of 1 us: as good as no states at all.
        for on_s in [1e-8, 1e-15, 1e-30] {
            let found = moments(&gaps(&Arrival::OnOff { on_s, off_s: 3.0 * on_s }, 100_000));
            assert!((found.0 - 1.0).abs() < 0.02 && (found.1 - 1.0).abs() < 0.05, "{on_s}: {found:?}");
        }
        assert!(gaps(&Arrival::OnOff { on_s: 1e-30, off_s: 1.0 }, 10).iter().all(|gap| *gap >= 0.0));
    }
}
