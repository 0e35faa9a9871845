//! Requests and bytes over time, in at most 2,048 intervals whatever the span.

use serde::Serialize;

/// Most intervals; when time runs beyond, each pair becomes one.
const MOST: usize = 2048;

/// Activity by interval.
#[derive(Debug)]
pub struct Rate {
    interval: i64,
    requests: Vec<u64>,
    read_bytes: Vec<u64>,
    write_bytes: Vec<u64>,
}

/// Activity as it is shown.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Shown {
    /// Length of an interval, nanoseconds.
    pub interval_ns: i64,
    /// Requests in each.
    pub requests: Vec<u64>,
    /// Bytes read in each.
    pub read_bytes: Vec<u64>,
    /// Bytes written in each.
    pub write_bytes: Vec<u64>,
}

impl Default for Rate {
    fn default() -> Self {
        Rate { interval: 1_000_000, requests: Vec::new(), read_bytes: Vec::new(), write_bytes: Vec::new() }
    }
}

fn halve(values: &mut Vec<u64>) {
    *values = values.chunks(2).map(|pair| pair.iter().copied().fold(0, u64::saturating_add)).collect();
}

impl Rate {
    /// Counts a request.
    #[inline]
    pub fn add(&mut self, time: i64, read: u64, written: u64) {
        let mut index = (time / self.interval).max(0) as usize;
        while index >= MOST {
            self.interval *= 2;
            halve(&mut self.requests);
            halve(&mut self.read_bytes);
            halve(&mut self.write_bytes);
            index = (time / self.interval) as usize;
        }
        if index >= self.requests.len() {
            self.requests.resize(index + 1, 0);
            self.read_bytes.resize(index + 1, 0);
            self.write_bytes.resize(index + 1, 0);
        }
        self.requests[index] += 1;
        self.read_bytes[index] = self.read_bytes[index].saturating_add(read);
        self.write_bytes[index] = self.write_bytes[index].saturating_add(written);
    }

    /// As it is shown.
    pub fn show(&self) -> Shown {
        Shown {
            interval_ns: self.interval,
            requests: self.requests.clone(),
            read_bytes: self.read_bytes.clone(),
            write_bytes: self.write_bytes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_when_intervals_double(mut times in prop::collection::vec(0i64..1 << 50, 1..200)) {
            times.sort_unstable();
            let mut rate = Rate::default();
            times.iter().for_each(|&t| rate.add(t, 1, 2));
            let shown = rate.show();
            prop_assert!(shown.requests.len() <= MOST);
            for (index, &n) in shown.requests.iter().enumerate() {
                let in_it = times.iter().filter(|&&t| t / shown.interval_ns == index as i64).count() as u64;
                prop_assert_eq!(n, in_it);
            }
            prop_assert_eq!(shown.write_bytes.iter().sum::<u64>(), 2 * times.len() as u64);
        }
    }
}
