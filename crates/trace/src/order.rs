//! Puts requests into time order: within a window while streaming, or whole by an external sort.

use crate::chunk::Chunk;
use crate::{Batch, Error, ErrorKind, Result};
use std::collections::VecDeque;

/// Most requests held back for the window.
pub const MOST_HELD: usize = 1 << 20;

/// Requests of a delivered batch after batches were merged.
const DELIVER: usize = 1 << 16;

/// Batches whose memory is kept to be used again.
const SPARE: usize = 8;

/// Applies a function to the matching columns of two batches.
macro_rules! columns {
    ($a:expr, $b:expr, $f:expr) => {{
        let (a, b) = ($a, $b);
        $f(&mut a.time, &b.time);
        $f(&mut a.op, &b.op);
        $f(&mut a.object, &b.object);
        $f(&mut a.offset, &b.offset);
        $f(&mut a.size, &b.size);
        $f(&mut a.latency, &b.latency);
        $f(&mut a.flags, &b.flags);
        $f(&mut a.actor, &b.actor);
        $f(&mut a.content, &b.content);
        $f(&mut a.result, &b.result);
        $f(&mut a.other, &b.other);
        $f(&mut a.after, &b.after);
        $f(&mut a.think, &b.think);
    }};
}

trait Column {
    fn append(&mut self, from: &Self, rows: std::ops::Range<usize>);
    fn gather(&mut self, from: &Self, rows: &[u32]);
}

impl<T: Copy> Column for Vec<T> {
    fn append(&mut self, from: &Self, rows: std::ops::Range<usize>) {
        // A column that the source does not have is empty.
        self.extend_from_slice(from.get(rows).unwrap_or_default());
    }

    fn gather(&mut self, from: &Self, rows: &[u32]) {
        if !from.is_empty() {
            self.extend(rows.iter().map(|&row| from[row as usize]));
        }
    }
}

/// Appends some rows of one batch to another.
pub fn append(to: &mut Batch, from: &Batch, rows: std::ops::Range<usize>) {
    columns!(to, from, |a, b| Column::append(a, b, rows.clone()));
}

/// Appends the named rows of one batch to another.
pub fn gather(to: &mut Batch, from: &Batch, rows: &[u32]) {
    columns!(to, from, |a, b| Column::gather(a, b, rows));
}

/// Stable sort by time.
pub fn sort(batch: &mut Batch) {
    if batch.time.is_sorted() {
        return;
    }
    let mut rows: Vec<u32> = (0..batch.len() as u32).collect();
    rows.sort_by_key(|&row| batch.time[row as usize]);
    let mut sorted = Batch::default();
    gather(&mut sorted, batch, &rows);
    *batch = sorted;
}

/// Holds requests back until nothing earlier can come within the window.
#[derive(Debug)]
pub struct Window {
    window_ns: i64,
    /// Sorted batches, each not earlier than the one before.
    held: VecDeque<Batch>,
    /// Empty ones, for their memory: getting it from the system anew for every batch takes a good part of the time.
    spare: Vec<Batch>,
    rows: usize,
    latest: i64,
    released: i64,
    /// Requests that came after a later one.
    pub reordered: u64,
}

impl Window {
    /// A window of so many nanoseconds.
    pub fn new(window_ns: i64) -> Self {
        Window {
            window_ns,
            held: VecDeque::new(),
            spare: Vec::new(),
            rows: 0,
            latest: i64::MIN,
            released: i64::MIN,
            reordered: 0,
        }
    }

    /// Takes the requests of a chunk.
    ///
    /// # Errors
    /// When one goes back in time by more than the window; the place is the request's.
    pub fn push(&mut self, chunk: &mut Chunk) -> Result<()> {
        let batch = &mut chunk.batch;
        let (Some(&first), Some(&last)) = (batch.time.first(), batch.time.last()) else { return Ok(()) };
        self.rows += batch.len();
        if first >= self.latest && batch.time.is_sorted() {
            self.latest = last;
            let memory = self.spare.pop().unwrap_or_default();
            self.held.push_back(std::mem::replace(batch, memory));
            return Ok(());
        }
        for row in 0..chunk.batch.len() {
            let time = chunk.batch.time[row];
            if time >= self.latest {
                self.latest = time;
                continue;
            }
            let back = self.latest.saturating_sub(time);
            if back > self.window_ns || time < self.released {
                return Err(self.too_late(back).at(chunk.place(row)));
            }
            self.reordered += 1;
        }
        self.merge(std::mem::take(&mut chunk.batch));
        Ok(())
    }

    fn too_late(&self, back: i64) -> Error {
        let seconds = back as f64 / 1e9;
        let what = if back > self.window_ns {
            let window = self.window_ns as f64 / 1e9;
            format!("time goes back by {seconds} s, more than the window of {window} s")
        } else {
            format!("time goes back by {seconds} s over more than {MOST_HELD} requests")
        };
        Error::new(ErrorKind::OutOfOrder, what)
            .help("sort the whole trace with `sort`, or widen the window with `reorder`")
    }

    /// Merges a batch with the held ones that it overlaps.
    fn merge(&mut self, mut batch: Batch) {
        let first = batch.time.iter().copied().min().unwrap_or(i64::MAX);
        let keep = self.held.partition_point(|held| held.time.last().is_some_and(|&last| last <= first));
        if keep < self.held.len() {
            let mut all = Batch::default();
            for held in self.held.drain(keep..) {
                append(&mut all, &held, 0..held.len());
            }
            append(&mut all, &batch, 0..batch.len());
            batch = all;
        }
        sort(&mut batch);
        let mut at = 0;
        while at < batch.len() {
            let end = (at + DELIVER).min(batch.len());
            let mut part = Batch::default();
            append(&mut part, &batch, at..end);
            self.held.push_back(part);
            at = end;
        }
    }

    /// Takes out the next requests that are certain; `all` when nothing more comes.
    pub fn pop(&mut self, batch: &mut Batch, all: bool) -> bool {
        let Some(front) = self.held.front() else { return false };
        let last = front.time.last().copied().unwrap_or(i64::MIN);
        let certain = self.latest.saturating_sub(self.window_ns) > last;
        if !(all || certain || self.rows > MOST_HELD) {
            return false;
        }
        if let Some(mut front) = self.held.pop_front() {
            self.rows -= front.len();
            self.released = self.released.max(last);
            std::mem::swap(batch, &mut front);
            if self.spare.len() < SPARE {
                front.clear();
                self.spare.push(front);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk(rows: &[(i64, u32)]) -> Chunk {
        let mut chunk = Chunk::default();
        for &(time, number) in rows {
            chunk.push(time, 0, number, 0, 0);
        }
        chunk.fill();
        chunk
    }

    /// Requests as the window lets them out, or the row it refuses.
    fn run(rows: &[(i64, u32)], window_ns: i64, cut: usize) -> std::result::Result<Vec<(i64, u32)>, usize> {
        let mut window = Window::new(window_ns);
        let (mut batch, mut found, mut fed) = (Batch::default(), Vec::new(), 0);
        for part in rows.chunks(cut) {
            let mut chunk = chunk(part);
            chunk.origin = crate::chunk::Origin::Line(fed as u64);
            if let Err(error) = window.push(&mut chunk) {
                let text = error.path(std::path::Path::new("t")).to_string();
                let line = text.trim_start_matches("t, line ").split(':').next().and_then(|n| n.parse().ok());
                return Err(line.unwrap_or(usize::MAX));
            }
            fed += part.len();
            while window.pop(&mut batch, false) {
                found.extend(batch.time.iter().copied().zip(batch.object.iter().copied()));
            }
        }
        while window.pop(&mut batch, true) {
            found.extend(batch.time.iter().copied().zip(batch.object.iter().copied()));
        }
        let late = rows.iter().scan(i64::MIN, |most, &(t, _)| {
            let late = t < *most;
            *most = (*most).max(t);
            Some(u64::from(late))
        });
        assert_eq!(window.reordered, late.sum::<u64>());
        Ok(found)
    }

    proptest! {
        #[test]
        fn disorder_within_the_window_is_the_stable_sort(
            steps in prop::collection::vec((0i64..20, -30i64..=0), 0..300), window in 0i64..40, cut in 1usize..50,
        ) {
            let mut at = 0;
            let rows: Vec<(i64, u32)> = steps.iter().zip(0..).map(|(&(step, back), number)| {
                at += step;
                (at + back, number)
            }).collect();
            let mut most = i64::MIN;
            let refused = rows.iter().position(|&(t, _)| {
                let late = most.saturating_sub(t) > window;
                most = most.max(t);
                late && most > t
            });
            let mut sorted = rows.clone();
            sorted.sort_by_key(|row| row.0);
            match (run(&rows, window, cut), refused) {
                (Ok(found), None) => prop_assert_eq!(found, sorted),
                (Err(row), Some(refused)) => prop_assert_eq!(row, refused),
                (found, refused) => prop_assert!(false, "{:?} but {:?} was to be refused", found, refused),
            }
        }
    }
}
