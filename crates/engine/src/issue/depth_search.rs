//! Searches the greatest depth at which enough requests keep a latency: doubles until one fails, then halves what is left.

use loadstone_plan::LatencyTarget;

/// Windows in a row that a depth just below one that failed must pass before that one is tried again.
const STABLE: u32 = 3;

/// What a search has come to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Depths {
    /// The greatest depth found, or the last one tried.
    pub depth: u32,
    /// The search has ended with that depth.
    pub found: bool,
    /// Whether requests keep the latency at it; nothing where no window has ended.
    pub kept: Option<bool>,
    /// Requests of the last window that ended, those that kept the latency, and its length, ns.
    pub window: (u64, u64, i64),
}

/// A search by one worker that issues all of its requests itself.
#[derive(Debug, Clone)]
pub struct DepthSearch {
    target: LatencyTarget,
    most: u32,
    /// Greatest depth that passed, and least that failed, if any has.
    low: u32,
    high: Option<u32>,
    stable: u32,
    since: i64,
    requests: u64,
    slow: u64,
    /// What is in flight must come back before anything more goes out.
    drains: bool,
    /// Tries the depth that was found once more, and only that.
    last: bool,
    over: bool,
    told: Depths,
}

impl DepthSearch {
    /// Up to a depth, beginning with 1 at `now`.
    pub fn new(target: LatencyTarget, most: u32, now: i64) -> DepthSearch {
        DepthSearch {
            target,
            most,
            low: 1,
            high: None,
            stable: 0,
            since: now,
            requests: 0,
            slow: 0,
            drains: false,
            last: false,
            over: false,
            told: Depths { depth: 1, ..Depths::default() },
        }
    }

    /// Whether another request may go out.
    pub fn admits(&mut self, in_flight: usize) -> bool {
        self.drains &= in_flight > 0;
        !self.drains && in_flight < self.told.depth as usize
    }

    /// Whether the search, and with it the load, is over.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What it has come to.
    pub fn told(&self) -> Depths {
        self.told
    }

    /// Counts a completion of a latency; failed requests count as slow.
    pub fn count(&mut self, ns: i64, failed: bool) {
        self.requests += 1;
        self.slow += u64::from(failed || ns > self.target.ns as i64);
    }

    /// Judges the depth where its window has passed, or at once where every request must be fast and one was not.
    pub fn look(&mut self, now: i64) {
        let strict = self.target.share >= 1.0;
        let passed = now - self.since >= self.target.window_ns as i64 && self.requests > 0;
        if self.over || !(passed || (strict && self.slow > 0)) {
            return;
        }
        let fast = self.requests - self.slow;
        let kept = fast as f64 >= self.target.share * self.requests as f64;
        self.told.window = (self.requests, fast, now - self.since);
        self.told.kept = Some(kept);
        if kept {
            self.raise()
        } else {
            self.lower(strict)
        }
        (self.since, self.requests, self.slow) = (now, 0, 0);
    }

    fn raise(&mut self) {
        let depth = self.told.depth;
        self.low = depth;
        if self.high == Some(depth + 1) {
            self.stable += 1;
            if self.stable >= STABLE {
                (self.high, self.stable) = (Some(depth + 2), 0);
            }
        }
        let next = self.high.map_or(depth.saturating_mul(2), |high| (depth + high) / 2);
        self.told.depth = next.min(self.most);
        if self.told.depth == depth && !self.target.follow {
            (self.over, self.told.found) = (self.last, self.last);
            self.drains = !self.last;
            self.last = true;
        }
    }

    fn lower(&mut self, strict: bool) {
        self.stable = 0;
        if self.told.depth == 1 {
            // Nothing lower is left; a share may still be reached later.
            self.over = strict;
            return;
        }
        self.high = Some(self.told.depth);
        self.low -= u32::from(self.low == self.told.depth);
        self.told.depth = (self.told.depth + self.low) / 2;
        self.drains = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depths that a device goes through whose requests take a microsecond for each one in flight.
    fn depths(target: LatencyTarget, most: u32) -> (Vec<u32>, Depths) {
        let mut search = DepthSearch::new(target, most, 0);
        let (mut tried, mut now) = (vec![1], 0);
        for _ in 0..100_000 {
            let depth = search.told().depth;
            let mut in_flight = 0;
            while search.admits(in_flight) {
                in_flight += 1;
            }
            (0..in_flight).for_each(|_| search.count(i64::from(depth) * 1000, false));
            now += i64::from(depth) * 1000;
            search.look(now);
            if tried.last() != Some(&search.told().depth) {
                tried.push(search.told().depth);
            }
            if search.is_over() {
                break;
            }
        }
        (tried, search.told())
    }

    fn target(ns: u64, share: f64) -> LatencyTarget {
        LatencyTarget { ns, share, window_ns: 100_000, follow: false }
    }

    #[test]
    fn the_greatest_depth_is_found_between_one_that_passes_and_one_that_fails() {
        for share in [1.0, 0.999] {
            let (tried, told) = depths(target(20_000, share), 128);
            assert_eq!(&tried[..6], [1, 2, 4, 8, 16, 32], "doubles until one fails");
            assert!(told.found && told.depth == 20 && told.kept == Some(true), "{told:?}");
        }
        // All pass.
        let (tried, told) = depths(target(1_000_000, 1.0), 48);
        assert_eq!((tried.as_slice(), told.depth, told.found), (&[1, 2, 4, 8, 16, 32, 48][..], 48, true));
    }

    #[test]
    fn a_latency_that_one_request_cannot_keep_is_not_found() {
        let (tried, told) = depths(target(500, 1.0), 64);
        assert_eq!((tried.as_slice(), told.found, told.kept), (&[1][..], false, Some(false)));
        // A share is waited for.
        let mut search = DepthSearch::new(target(500, 0.5), 64, 0);
        search.count(1000, false);
        search.look(200_000);
        assert!(!search.is_over() && search.told().kept == Some(false));
    }

    #[test]
    fn what_is_in_flight_comes_back_before_a_lower_depth_is_judged() {
        let mut search = DepthSearch::new(target(1000, 1.0), 8, 0);
        search.count(500, false);
        search.look(100_000);
        assert!(search.admits(1) && !search.admits(2));
        search.count(1500, false);
        search.look(100_001);
        assert_eq!(search.told().depth, 1);
        assert!(!search.admits(1) && search.admits(0));
        // One that failed is as good as slow.
        search.count(1, true);
        search.look(100_002);
        assert_eq!(search.told().window, (1, 0, 1));
    }
}
