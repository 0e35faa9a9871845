//! Counting requests by parts of windows, so that bursts keep their place in a window.

/// Most windows a model may have; more is a sign of a wrong window or a damaged time.
pub(crate) const MAX_WINDOWS: i64 = 1 << 22;

/// Parts of a window that are counted at first.
pub(crate) const PARTS: u32 = 64;

/// Most parts kept; longer streams get coarser ones.
const MAX_PARTS: usize = 1 << 22;

/// Requests a part should hold on average: few, to keep bursts, yet enough for small files.
const IN_PART: u64 = 8;

/// Requests by parts of windows.
pub(crate) struct Parts {
    length_ns: i64,
    per_window: u32,
    pub counts: Vec<u64>,
    index: usize,
}

impl Parts {
    pub fn new(window_ns: i64, asked: Option<u32>) -> Parts {
        let most = asked.unwrap_or(PARTS);
        // Parts must divide the window evenly.
        let per_window = most.min(1 << window_ns.trailing_zeros().min(6));
        Parts { length_ns: window_ns / i64::from(per_window), per_window, counts: vec![0], index: 0 }
    }

    pub fn count(&mut self, times: &[i64]) {
        let mut end = (self.index as i64 + 1).saturating_mul(self.length_ns);
        let mut n = 0;
        for &time in times {
            if time >= end {
                self.counts[self.index] += n;
                n = 0;
                let mut index = (time / self.length_ns) as usize;
                while index >= MAX_PARTS && self.per_window > 1 {
                    self.coarsen();
                    index = (time / self.length_ns) as usize;
                }
                // With one part per window the number of windows is limited by the caller.
                self.index = index.min(MAX_WINDOWS as usize);
                self.counts.resize(self.index + 1, 0);
                end = (self.index as i64 + 1).saturating_mul(self.length_ns);
            }
            n += 1;
        }
        self.counts[self.index] += n;
    }

    /// Makes one part of every two.
    fn coarsen(&mut self) {
        self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.per_window /= 2;
        self.length_ns *= 2;
        self.index = self.counts.len() - 1;
    }

    /// Completes the last window and answers how many parts each has.
    pub fn finish(&mut self, windows: u64, requests: u64, choose: bool) -> u32 {
        while choose && self.per_window > 1 && requests < IN_PART * windows * u64::from(self.per_window) {
            self.coarsen();
        }
        self.counts.resize(windows as usize * self.per_window as usize, 0);
        self.per_window
    }
}
