//! Arrivals at the times of a trace, over and over.

use loadstone_trace::{Batch, Error, ErrorKind, Requests, Result, Summary};
use std::path::Path;

/// Opens the trace anew.
pub type Reopen = Box<dyn FnMut() -> Result<Box<dyn Requests>> + Send>;

/// Times of a trace's requests from its first one on; after the last one it begins again.
pub struct TraceTimes {
    reopen: Reopen,
    source: Box<dyn Requests>,
    batch: Batch,
    at: usize,
    first: i64,
    /// Length of a round: that of the trace, and a mean gap between its last request and its first.
    period: i64,
    /// Where the round begins.
    base: i64,
    /// What times are multiplied by.
    scale: f64,
}

impl TraceTimes {
    /// At `rate` per second on average; 0: as the trace has them.
    ///
    /// # Errors
    /// When the trace cannot be read, or has no two different times.
    pub fn new(path: &Path, summary: &Summary, rate: f64, mut reopen: Reopen) -> Result<TraceTimes> {
        let length = summary.span_ns.saturating_sub(summary.first_ns);
        if summary.requests < 2 || length <= 0 {
            let error =
                Error::malformed("has no times that requests could arrive at: all of them are the same");
            return Err(error.path(path));
        }
        let gap = length as f64 / (summary.requests - 1) as f64;
        let scale = if rate > 0.0 { 1e9 / rate / gap } else { 1.0 };
        let source = reopen()?;
        let period = length.saturating_add((gap.round() as i64).max(1));
        let (batch, first) = (Batch::default(), summary.first_ns);
        Ok(TraceTimes { reopen, source, batch, at: 0, first, period, base: 0, scale })
    }

    /// The next one, ns.
    ///
    /// # Errors
    /// When the trace cannot be read further.
    pub fn next(&mut self) -> Result<i64> {
        while self.at >= self.batch.len() {
            self.at = 0;
            if self.source.next(&mut self.batch)? {
                continue;
            }
            self.source = (self.reopen)()?;
            self.base = self.base.saturating_add(self.period);
            // A file that has become empty meanwhile would be opened for ever.
            if !self.source.next(&mut self.batch)? {
                return Err(Error::new(ErrorKind::Empty, "the trace of arrivals has become empty"));
            }
        }
        let time = self.base.saturating_add(self.batch.time[self.at].saturating_sub(self.first));
        self.at += 1;
        Ok((time as f64 * self.scale) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Times(Vec<Vec<i64>>);

    impl Requests for Times {
        fn next(&mut self, batch: &mut Batch) -> Result<bool> {
            batch.clear();
            let Some(times) = self.0.pop() else { return Ok(false) };
            let n = times.len();
            batch.time = times;
            batch.op.resize(n, 0);
            batch.object.resize(n, 0);
            batch.offset.resize(n, 0);
            batch.size.resize(n, 0);
            batch.latency.resize(n, 0);
            batch.flags.resize(n, 0);
            batch.actor.resize(n, 0);
            Ok(true)
        }
    }

    fn times(rate: f64, n: usize) -> Vec<i64> {
        let summary = Summary { requests: 4, first_ns: 50, span_ns: 350, ..Summary::default() };
        let reopen: Reopen = Box::new(|| Ok(Box::new(Times(vec![vec![90, 350], vec![50, 60]]))));
        let mut times = TraceTimes::new(Path::new("t"), &summary, rate, reopen).unwrap();
        (0..n).map(|_| times.next().unwrap()).collect()
    }

    #[test]
    fn a_trace_begins_again_a_mean_gap_after_its_end() {
        assert_eq!(times(0.0, 9), [0, 10, 40, 300, 400, 410, 440, 700, 800]);
    }

    #[test]
    fn a_rate_stretches_all_gaps_alike() {
        // A mean gap of 100 ns becomes one of 250.
        assert_eq!(times(4e6, 6), [0, 25, 100, 750, 1000, 1025]);
    }

    #[test]
    fn a_trace_without_times_is_refused() {
        let summary = Summary { requests: 9, ..Summary::default() };
        let reopen: Reopen = Box::new(|| unreachable!("refused before"));
        let refused = TraceTimes::new(Path::new("t"), &summary, 0.0, reopen).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("has no times that requests could arrive at"), "{refused}");
    }
}
