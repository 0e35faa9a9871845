//! The time line: requests by step, and the matrix of each.
//!
//! Steps are short, so that bursts keep their place; windows, which are compared and merged, are one
//! or more whole steps.

/// Most steps a model may have; more is a sign of a wrong window or a damaged time.
pub(crate) const MAX_STEPS: i64 = 1 << 22;

/// Most steps a window is cut into.
pub(crate) const STEPS: u32 = 64;

/// Requests a step should hold on average: few, to keep bursts, yet enough for small files.
const IN_STEP: f64 = 8.0;

/// Steps to cut a window of this length into: a power of two that divides it.
///
/// `in_window` is the number of requests to expect in it, `windows` how many windows, where known.
pub(crate) fn steps(window_ns: i64, in_window: f64, windows: Option<i64>, asked: Option<u32>) -> u32 {
    let most = asked.unwrap_or(STEPS).min(1 << window_ns.trailing_zeros().min(6));
    let mut steps = most;
    while steps > 1 && asked.is_none() && in_window < IN_STEP * f64::from(steps) {
        steps /= 2;
    }
    while steps > 1 && windows.is_some_and(|n| n.saturating_mul(i64::from(steps)) > MAX_STEPS) {
        steps /= 2;
    }
    steps
}

/// Requests by step, with the runs of steps that have one matrix.
pub(crate) struct Timeline {
    /// Length of a step, nanoseconds.
    pub step_ns: i64,
    /// Requests of each ended step.
    pub counts: Vec<u64>,
    /// (steps, matrix).
    pub matrices: Vec<(u64, u32)>,
    /// The open step and its requests.
    pub step: i64,
    pub in_step: u64,
    covered: u64,
}

impl Timeline {
    pub fn new(step_ns: i64) -> Timeline {
        Timeline { step_ns, counts: Vec::new(), matrices: Vec::new(), step: 0, in_step: 0, covered: 0 }
    }

    /// Ends the open step.
    pub fn end_step(&mut self) {
        self.counts.resize(self.step as usize, 0);
        self.counts.push(self.in_step);
        self.in_step = 0;
    }

    /// Gives all ended steps that have none yet this matrix.
    pub fn cover(&mut self, matrix: u32) {
        let steps = self.counts.len() as u64 - self.covered;
        self.covered += steps;
        match self.matrices.last_mut() {
            Some((run, last)) if *last == matrix => *run += steps,
            _ => self.matrices.push((steps, matrix)),
        }
    }

    /// Makes empty steps, up to the next request's, part of the last phase, which goes on until another begins.
    pub fn skip_to(&mut self, step: i64) {
        if self.covered == self.counts.len() as u64
            && let Some((run, _)) = self.matrices.last_mut()
        {
            *run += step as u64 - self.covered;
            self.covered = step as u64;
        }
        self.counts.resize(step as usize, 0);
        self.step = step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_suit_the_number_of_requests() {
        assert_eq!(steps(20_000_000_000, 85.0, Some(1500), None), 8);
        assert_eq!(steps(1_000_000_000, 1e6, Some(28), None), 64);
        assert_eq!(steps(1_000_000_000, 1e6, Some(1 << 20), None), 4);
        assert_eq!(steps(1_000_000_001, 1e6, None, None), 1);
        assert_eq!(steps(20_000_000_000, 1.0, None, Some(16)), 16);
    }

    #[test]
    fn runs_cover_all_steps() {
        let mut line = Timeline::new(10);
        line.in_step = 4;
        line.end_step();
        line.cover(0);
        line.skip_to(5);
        line.in_step = 2;
        line.end_step();
        line.cover(1);
        assert_eq!(line.counts, [4, 0, 0, 0, 0, 2]);
        assert_eq!(line.matrices, [(5, 0), (1, 1)]);
    }
}
