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
    /// Length of the shortest windows, nanoseconds; all others are so many of these.
    pub length_ns: i64,
    /// Longest windows, in shortest ones.
    pub join: i64,
    /// Requests of each ended window.
    counts: Vec<u64>,
    /// (windows, length of each), where windows may be joined.
    lengths: Vec<(u64, u64)>,
    /// Where the last ended window ends.
    end: i64,
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
    /// Without windows; up to `join` of this length may be one.
    pub fn new(length_ns: i64, join: i64) -> Timeline {
        Timeline {
            length_ns,
            join,
            counts: Vec::new(),
            lengths: Vec::new(),
            end: 0,
            matrices: Vec::new(),
            groups: Vec::new(),
            index: 0,
            in_window: 0,
            covered: 0,
        }
    }

    /// Ends the open window, which is so long.
    pub fn end_window(&mut self, length: i64) {
        self.push(self.in_window, length);
        self.in_window = 0;
    }

    fn push(&mut self, requests: u64, length: i64) {
        self.counts.push(requests);
        self.end = self.index + length;
        if self.join > 1 {
            match self.lengths.last_mut() {
                Some((run, last)) if *last == length as u64 => *run += 1,
                _ => self.lengths.push((1, length as u64)),
            }
        }
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

    /// Opens the window that begins there. Empty ones before it, or a single one where they may be joined, are part of
    /// the last phase, which goes on until another begins.
    pub fn skip_to(&mut self, index: i64) {
        let (before, empty) = (self.counts.len() as u64, index - self.end);
        if empty > 0 && self.join > 1 {
            self.index = self.end;
            self.push(0, empty);
        } else {
            self.counts.resize(before as usize + empty as usize, 0);
            self.end = index;
        }
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
        let joined = self.lengths.iter().any(|run| run.1 > 1);
        Windows {
            length_ns: self.length_ns,
            lengths: if joined { self.lengths } else { Vec::new() },
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
        let made = |join| {
            let mut line = Timeline::new(10, join);
            line.in_window = 4;
            line.end_window(1);
            line.cover(0, ops([1, 3]));
            line.skip_to(6);
            line.in_window = 2;
            line.end_window(join);
            line.cover(1, ops([2, 0]));
            line.into_windows()
        };
        let line = made(1);
        assert_eq!((&line.counts[..], line.lengths.len()), (&[4, 0, 0, 0, 0, 0, 2][..], 0));
        assert_eq!(line.matrices, [(6, 0), (1, 1)]);
        assert_eq!(line.span_ns(), 70);
        // The first of two equally common ops is told; the other has the rest.
        assert_eq!(line.groups.windows, [6, 1]);
        assert_eq!(line.groups.ops, [OpCounts { code: 1, requests: vec![1, 2] }]);
        let line = made(3);
        assert_eq!(line.counts, [4, 0, 2]);
        assert_eq!(line.lengths, [(1, 1), (1, 5), (1, 3)]);
        assert_eq!(line.starts(), [0, 10, 60, 90]);
        assert_eq!((line.matrices, line.groups.windows), (vec![(2, 0), (1, 1)], vec![2, 1]));
    }
}
