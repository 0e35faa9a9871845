//! Looks at what goes by and warns when a unit cannot be right.

use crate::{Batch, NONE, wide};

const SECOND: f64 = 1e9;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

wide! {
    /// How many times are those of the request before.
    fn ties(times: &[i64]) -> u64 {
        let mut ties = 0;
        for (before, time) in times.iter().zip(times.get(1..).unwrap_or_default()) {
            ties += u64::from(before == time);
        }
        ties
    }
}

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
            self.ties += u64::from(first == self.last);
        }
        self.requests += batch.len() as u64;
        self.last = last;
        self.tick(batch);
        self.ties += ties(&batch.time);
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

    /// Looks at some of the times for what all their distances are multiples of.
    fn tick(&mut self, batch: &Batch) {
        for time in batch.time.iter().step_by(61) {
            if self.clock == 1 {
                return;
            }
            self.clock = gcd(self.clock, time.abs_diff(self.first));
        }
    }

    /// The clock's resolution as it shows in the times, nanoseconds.
    pub fn clock(&self) -> Option<i64> {
        // Two requests would show any distance at all.
        if self.requests < 1000 || self.clock == 0 { None } else { i64::try_from(self.clock).ok() }
    }

    /// Adds what looks wrong.
    pub fn warn(&self, warnings: &mut Vec<String>) {
        if self.requests < 100 {
            return;
        }
        let span = (self.last - self.first) as f64 / SECOND;
        let n = self.requests as f64;
        let rate = n / span;
        if self.ties as f64 > 0.5 * n {
            let share = 100.0 * self.ties as f64 / n;
            warnings.push(format!(
                "{share:.0} % of the requests share their time with the one before: the clock is coarse; --spread-ties spreads them"
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
