//! Looks at what goes by and warns when a unit cannot be right.

use crate::{Batch, NONE, wide};

const SECOND: f64 = 1e9;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The steps from each time to the next.
struct Steps {
    /// How many are none.
    ties: u64,
    /// The smallest of the others.
    smallest: i64,
}

wide! {
    fn steps(times: &[i64]) -> Steps {
        let mut all = Steps { ties: 0, smallest: i64::MAX };
        for (before, time) in times.iter().zip(times.get(1..).unwrap_or_default()) {
            let step = time.wrapping_sub(*before);
            all.ties += u64::from(step == 0);
            all.smallest = all.smallest.min(if step > 0 { step } else { i64::MAX });
        }
        all
    }
}

/// Requests whose times tell the clock: of fewer their distances may be multiples of anything.
const ENOUGH: u64 = 1000;

/// Requests that tell a clock finer than the declared one, which a single one of their times refutes.
const SOME: u64 = 16;

/// Sizes are told up to here, 1 TiB, so that those of a batch can be summed.
const MOST: i64 = 1 << 40;

/// The sizes above zero of some requests.
#[derive(Default)]
struct Sizes {
    largest: i64,
    sized: u64,
    tiny: u64,
    bytes: u64,
}

wide! {
    fn sizes(sizes: &[i64]) -> Sizes {
        let mut all = Sizes::default();
        for &size in sizes {
            all.largest = all.largest.max(size);
            all.sized += u64::from(size > 0);
            all.tiny += u64::from((size > 0) & (size < 512));
            all.bytes += size.clamp(0, MOST) as u64;
        }
        all
    }
}

/// Extremes of a trace, as far as they tell a wrong unit.
#[derive(Debug, Default)]
pub struct Look {
    requests: u64,
    ties: u64,
    /// Smallest step between times that differ; 0 where all are one.
    step: i64,
    first: i64,
    last: i64,
    largest: i64,
    sized: u64,
    tiny: u64,
    bytes: f64,
    latencies: u64,
    latency: f64,
    clock: u64,
}

impl Look {
    /// Takes requests in time order.
    pub fn add(&mut self, batch: &Batch) {
        let (Some(&first), Some(&last)) = (batch.time.first(), batch.time.last()) else { return };
        if self.requests == 0 {
            self.first = first;
        } else {
            self.step(steps(&[self.last, first]));
        }
        self.step(steps(&batch.time));
        self.tick(batch);
        self.requests += batch.len() as u64;
        self.last = last;
        let sizes = sizes(&batch.size);
        self.largest = self.largest.max(sizes.largest);
        self.sized += sizes.sized;
        self.tiny += sizes.tiny;
        self.bytes += sizes.bytes as f64;
        for &latency in batch.latency.iter().filter(|&&l| l != NONE) {
            self.latencies += 1;
            self.latency += latency as f64;
        }
    }

    fn step(&mut self, steps: Steps) {
        self.ties += steps.ties;
        if steps.smallest < i64::MAX && (self.step == 0 || steps.smallest < self.step) {
            self.step = steps.smallest;
        }
    }

    /// Looks at the first times and at some of the others for what all their distances are multiples of.
    fn tick(&mut self, batch: &Batch) {
        let first = ENOUGH.saturating_sub(self.requests).min(batch.len() as u64) as usize;
        let (first, others) = batch.time.split_at(first);
        for time in first.iter().chain(others.iter().step_by(61)) {
            if self.clock == 1 {
                return;
            }
            self.clock = gcd(time.abs_diff(self.first), self.clock);
        }
    }

    /// Whether most requests share their time with the one before.
    fn is_coarse(&self) -> bool {
        self.ties as f64 > 0.5 * self.requests as f64
    }

    /// The clock's resolution as it shows in the times, or else the declared one, nanoseconds.
    pub fn clock(&self, declared: i64) -> i64 {
        // The ticks of a coarse clock may be written rounded, so that they are multiples of nothing.
        let found = if self.is_coarse() { self.step } else { i64::try_from(self.clock).unwrap_or(0) };
        let told = self.requests >= ENOUGH || self.requests >= SOME && found < declared;
        if told && found > 0 { found } else { declared }
    }

    /// Adds what looks wrong.
    pub fn warn(&self, warnings: &mut Vec<String>) {
        if self.requests < 100 {
            return;
        }
        let span = (self.last - self.first) as f64 / SECOND;
        let n = self.requests as f64;
        let rate = n / span;
        if self.is_coarse() {
            let share = 100.0 * self.ties as f64 / n;
            warnings.push(format!(
                "{share:.0} % of the requests share their time with the one before: the clock is coarse; `spread_ties` spreads them"
            ));
        }
        if span > 0.0 && rate > 2e7 {
            warnings
                .push(format!("{rate:.2e} requests per second is implausible: is the time unit too small?"));
        }
        if rate < 1.0 / 600.0 {
            warnings.push(format!(
                "one request in {:.0} s is implausible: is the time unit too large?",
                1.0 / rate
            ));
        }
        if self.sized > 0 && self.bytes / self.sized as f64 > (32 << 20) as f64 {
            let mean = self.bytes / self.sized as f64 / (1 << 20) as f64;
            warnings.push(format!(
                "requests of {mean:.0} MiB on average are implausible: is the size unit too large?"
            ));
        }
        if self.tiny as f64 > 0.9 * self.sized as f64 && self.sized > 0 {
            warnings.push("nearly all requests are below 512 bytes: is the size unit too small?".into());
        }
        if self.latencies > 0 && self.latency / self.latencies as f64 > 600.0 * SECOND {
            warnings.push(
                "latencies of more than 10 minutes on average are implausible: is their unit too large?"
                    .into(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(times: impl Iterator<Item = i64>, declared: i64) -> i64 {
        let mut look = Look::default();
        let times: Vec<i64> = times.collect();
        for part in times.chunks(300) {
            let n = part.len();
            let (time, op, object) = (part.to_vec(), vec![0; n], vec![0; n]);
            let (offset, size, latency) = (vec![0; n], vec![0; n], vec![0; n]);
            let (flags, actor) = (vec![0; n], vec![0; n]);
            look.add(&Batch { time, op, object, offset, size, latency, flags, actor, ..Batch::default() });
        }
        look.clock(declared)
    }

    #[test]
    fn few_times_refute_a_coarse_clock_but_show_none() {
        let times = |n: i64| (0..n).map(|i| i * i * 7000);
        assert_eq!(clock(times(999), 1_000_000_000), 7000);
        assert_eq!(clock(times(999), 1000), 1000);
        assert_eq!(clock(times(1000), 1000), 7000);
        assert_eq!(clock(times(15), 1_000_000_000), 1_000_000_000);
        assert_eq!(clock([5; 2000].into_iter(), 1000), 1000);
    }

    #[test]
    fn ticks_that_were_rounded_are_steps() {
        let times = (0..3000).map(|i| i / 3 * 15_624_600 / 1000 * 1000);
        assert_eq!(clock(times, 1_000_000_000), 15_624_000);
    }
}
