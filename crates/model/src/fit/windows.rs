//! The time line while it is being counted: requests by window, and the matrix of each.

use crate::schema::cells::Marginal;
use crate::schema::header::{Groups, OpCounts, Windows};

/// Most windows a model may have; more is a sign of a wrong length or a damaged time.
pub(crate) const MAX_WINDOWS: i64 = 1 << 22;

/// Longest window when none is asked for: 20 s, as in the MDH thesis, section 3.5.
const LONGEST_NS: i64 = 20_000_000_000;

/// Windows a short stream has at least when none are asked for.
const AT_LEAST: i64 = 30;

/// How often the default window is halved at most.
const HALVINGS: u32 = 6;

/// Requests a window should hold on average when nothing else is asked for: few, to keep bursts, yet enough for small
/// files.
pub(crate) const IN_WINDOW: f64 = 8.0;

/// Length of a window for a stream of this span, of which some first requests took `time_ns`.
///
/// The smaller of 20 s and a thirtieth of the span, halved as long as windows hold many requests, so
/// that bursts keep their place in time: until they would hold fewer than `in_window` on average.
pub(crate) fn length(span_ns: i64, requests: usize, time_ns: i64, in_window: f64) -> i64 {
    let mut length = (span_ns / AT_LEAST).clamp(1, LONGEST_NS);
    let rate = requests as f64 / time_ns.max(1) as f64;
    for _ in 0..HALVINGS {
        let half = length / 2;
        if half < 1 || rate * (half as f64) < in_window || span_ns / half >= MAX_WINDOWS {
            break;
        }
        length = half;
    }
    length
}

/// Requests by window, with the runs of windows that have one matrix.
pub(crate) struct Timeline {
    /// Length of each window, nanoseconds.
    pub length_ns: i64,
    /// Requests of each ended window.
    counts: Vec<u64>,
    /// (windows, matrix).
    matrices: Vec<(u64, u32)>,
    /// Windows of each group, and its requests by op.
    groups: Vec<(u64, Marginal)>,
    /// Where the open window begins, and its requests.
    pub index: i64,
    pub in_window: u64,
    covered: u64,
}

impl Timeline {
    /// Without windows.
    pub fn new(length_ns: i64) -> Timeline {
        Timeline {
            length_ns,
            counts: Vec::new(),
            matrices: Vec::new(),
            groups: Vec::new(),
            index: 0,
            in_window: 0,
            covered: 0,
        }
    }

    /// Ends the open window.
    pub fn end_window(&mut self) {
        self.counts.push(self.in_window);
        self.in_window = 0;
    }

    /// Gives all ended windows that have none yet this matrix; `ops` are their requests by op.
    pub fn cover(&mut self, matrix: u32, ops: Marginal) {
        let windows = self.counts.len() as u64 - self.covered;
        self.covered += windows;
        self.groups.push((windows, ops));
        match self.matrices.last_mut() {
            Some((run, last)) if *last == matrix => *run += windows,
            _ => self.matrices.push((windows, matrix)),
        }
    }

    /// Opens a window. Empty ones before it are part of the last phase, which goes on until another begins.
    pub fn skip_to(&mut self, index: i64) {
        let before = self.counts.len() as u64;
        self.counts.resize(index as usize, 0);
        if self.covered == before
            && let (Some((run, _)), Some((windows, _))) = (self.matrices.last_mut(), self.groups.last_mut())
        {
            let more = self.counts.len() as u64 - before;
            *run += more;
            *windows += more;
            self.covered += more;
        }
        self.index = index;
    }

    /// The time line as a model has it, once all windows are covered.
    pub fn into_windows(self) -> Windows {
        let mut all = Marginal::default();
        self.groups.iter().for_each(|(_, ops)| all.add(ops));
        let commonest = (0..all.len()).max_by_key(|&i| all.counts[i]);
        let others = (0..all.len()).filter(|i| Some(*i) != commonest).map(|i| all.keys[i]);
        let requests = |code: u64, ops: &Marginal| ops.keys.binary_search(&code).map_or(0, |i| ops.counts[i]);
        let ops: Vec<OpCounts> = others
            .map(|code| OpCounts {
                code: code as u32,
                requests: self.groups.iter().map(|(_, ops)| requests(code, ops)).collect(),
            })
            .collect();
        let windows = if ops.is_empty() { Vec::new() } else { self.groups.iter().map(|g| g.0).collect() };
        Windows {
            length_ns: self.length_ns,
            counts: self.counts,
            matrices: self.matrices,
            groups: Groups { windows, ops },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_suit_the_number_of_requests() {
        let second = 1_000_000_000;
        // 4 requests a second for eight hours; 13,000 a second for 28 seconds; almost nothing.
        assert_eq!(length(30_000 * second, 127_000, 30_000 * second, IN_WINDOW), 20 * second / 8);
        assert_eq!(length(30 * second, 400_000, 30 * second, IN_WINDOW), second / 64);
        assert_eq!(length(30_000 * second, 100, 30_000 * second, IN_WINDOW), 20 * second);
        assert_eq!(length(30_000 * second, 127_000, 30_000 * second, 32.0), 20 * second / 2);
        assert_eq!(length(0, 5, 0, IN_WINDOW), 1);
        // A year at high rate: no more windows than a model may have.
        let year = 365 * 86400 * second;
        assert!(year / length(year, 1_000_000, second, IN_WINDOW) < MAX_WINDOWS);
    }

    #[test]
    fn runs_cover_all_windows() {
        let ops = |counts: [u64; 2]| Marginal { keys: vec![1, 2], counts: counts.into() };
        let mut line = Timeline::new(10);
        line.in_window = 4;
        line.end_window();
        line.cover(0, ops([1, 3]));
        line.skip_to(6);
        line.in_window = 2;
        line.end_window();
        line.cover(1, ops([2, 0]));
        let line = line.into_windows();
        assert_eq!(line.counts, [4, 0, 0, 0, 0, 0, 2]);
        assert_eq!(line.matrices, [(6, 0), (1, 1)]);
        assert_eq!((line.span_ns(), line.starts().last()), (70, Some(&70)));
        // Of two equally common ops the first is counted; the other has the rest.
        assert_eq!(line.groups.windows, [6, 1]);
        assert_eq!(line.groups.ops, [OpCounts { code: 1, requests: vec![1, 2] }]);
    }
}
