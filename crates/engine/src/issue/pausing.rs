//! Pauses of a worker between its requests.

use loadstone_plan::Pause;

/// Counts requests up to the next pause.
#[derive(Debug, Clone, Copy)]
pub struct Pausing {
    pause: Pause,
    /// Requests since the last one.
    since: u64,
}

impl Pausing {
    /// From the first request on.
    pub fn new(pause: Pause) -> Pausing {
        Pausing { pause, since: 0 }
    }

    /// Counts a request that went out.
    #[inline(always)]
    pub fn count(&mut self) {
        self.since += 1;
    }

    /// Whether a pause comes before the next request.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        self.since >= self.pause.requests
    }

    /// Begins a pause at `now`; when it ends.
    pub fn begin(&mut self, now: i64) -> i64 {
        self.since = 0;
        now.saturating_add(self.pause.ns as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_comes_after_so_many_requests() {
        let mut pausing = Pausing::new(Pause { requests: 2, ns: 50 });
        let mut seen = Vec::new();
        for now in 0..5 {
            pausing.count();
            seen.push(pausing.is_due().then(|| pausing.begin(now)));
        }
        assert_eq!(seen, [None, Some(51), None, Some(53), None]);
    }
}
