//! Requests in flight over time: the trace's own, swept from submissions and completions in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests in flight during one interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Number of the interval from the start of the run.
    pub interval: u32,
    /// Mean over the interval's time.
    pub mean: f64,
    /// Largest number at any moment.
    pub max: u32,
}

/// Intervals that are told at most: a trace's times and latencies may be any numbers.
pub const MOST: i64 = 1 << 20;

/// Follows a trace in order of submission and integrates its requests in flight.
pub struct Sweep {
    interval: i64,
    stretch: f64,
    /// Completion times of what is in flight.
    open: BinaryHeap<Reverse<i64>>,
    now: i64,
    area: i128,
    max: u32,
    out: Vec<Level>,
    cut: bool,
}

impl Sweep {
    /// Intervals of `interval` ns on a timeline on which the trace runs `speed` times as fast.
    pub fn new(interval: i64, speed: f64) -> Sweep {
        Sweep {
            interval,
            stretch: 1.0 / speed,
            open: BinaryHeap::new(),
            now: 0,
            area: 0,
            max: 0,
            out: Vec::new(),
            cut: false,
        }
    }

    /// The next request: its submission and completion in the trace's own time.
    pub fn request(&mut self, submitted: i64, completed: i64) {
        let at = (submitted as f64 * self.stretch) as i64;
        self.complete_until(at);
        self.move_to(at);
        self.open.push(Reverse((completed as f64 * self.stretch) as i64));
        self.max = self.max.max(self.open.len() as u32);
    }

    fn complete_until(&mut self, at: i64) {
        while let Some(&Reverse(done)) = self.open.peek() {
            if done > at {
                break;
            }
            self.move_to(done);
            self.open.pop();
        }
    }

    fn move_to(&mut self, at: i64) {
        let at = at.max(self.now);
        while at > self.now {
            if self.now / self.interval >= MOST {
                self.cut |= !self.open.is_empty();
                self.now = at;
                return;
            }
            let end = (self.now / self.interval + 1).saturating_mul(self.interval);
            self.pass(at.min(end));
            if at < end {
                return;
            }
            self.close(end / self.interval - 1);
            // An idle stretch has nothing to say: go straight to its last interval.
            self.now = if self.open.is_empty() { at / self.interval * self.interval } else { end };
        }
    }

    /// Lets time pass inside an interval.
    fn pass(&mut self, until: i64) {
        if until > self.now {
            self.area += i128::from(until - self.now) * self.open.len() as i128;
            self.max = self.max.max(self.open.len() as u32);
            self.now = until;
        }
    }

    fn close(&mut self, interval: i64) {
        if interval >= MOST {
            self.cut |= self.area > 0 || self.max > 0;
        } else if self.area > 0 || self.max > 0 {
            let mean = self.area as f64 / self.interval as f64;
            self.out.push(Level { interval: interval as u32, mean, max: self.max });
        }
        self.area = 0;
        self.max = 0;
    }

    /// Completes everything; intervals with nothing in flight are left out. Also whether there were more than [`MOST`].
    pub fn finish(mut self) -> (Vec<Level>, bool) {
        self.complete_until(i64::MAX - 1);
        self.close(self.now / self.interval);
        (self.out, self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_overlaps_and_skips_idle_time() {
        let mut sweep = Sweep::new(100, 1.0);
        sweep.request(10, 60);
        sweep.request(20, 120);
        sweep.request(1000, 1010);
        let (levels, cut) = sweep.finish();
        assert!(!cut);
        assert_eq!(
            levels,
            [
                Level { interval: 0, mean: 1.3, max: 2 },
                Level { interval: 1, mean: 0.2, max: 1 },
                Level { interval: 10, mean: 0.1, max: 1 }
            ]
        );
    }

    #[test]
    fn twice_the_speed_halves_the_timeline() {
        let mut sweep = Sweep::new(100, 2.0);
        sweep.request(0, 100);
        sweep.request(300, 400);
        assert_eq!(
            sweep.finish().0,
            [Level { interval: 0, mean: 0.5, max: 1 }, Level { interval: 1, mean: 0.5, max: 1 }]
        );
    }

    #[test]
    fn absurd_times_and_latencies_cost_no_more_than_the_intervals_that_are_told() {
        let mut sweep = Sweep::new(1000, 1.0);
        sweep.request(10, 1 << 61);
        sweep.request(1 << 62, i64::MAX);
        let (levels, cut) = sweep.finish();
        assert!(cut);
        assert_eq!(levels.len() as i64, MOST);
        assert_eq!(levels.last().map(|l| (i64::from(l.interval), l.mean, l.max)), Some((MOST - 1, 1.0, 1)));
        // What lies behind an idle stretch is left out, too: rows are by interval.
        let mut sweep = Sweep::new(1, 1.0);
        sweep.request(0, 1);
        sweep.request(i64::MAX - 5, i64::MAX);
        assert_eq!(sweep.finish(), (vec![Level { interval: 0, mean: 1.0, max: 1 }], true));
    }
}
