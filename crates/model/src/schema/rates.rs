//! How much is moved when: requests and bytes of reads and writes by interval of time.

use loadstone_trace::{Batch, Op};

/// Intervals that the time of a stream is divided into.
pub const INTERVALS: usize = 100;

/// Requests and bytes by interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates {
    /// Length of an interval, nanoseconds.
    pub length_ns: i64,
    /// Reads in each.
    pub reads: Vec<u64>,
    /// Writes in each.
    pub writes: Vec<u64>,
    /// Bytes read in each.
    pub bytes_read: Vec<u64>,
    /// Bytes written in each.
    pub bytes_written: Vec<u64>,
}

impl Rates {
    /// Of a stream of this length; what comes later counts in the last interval.
    pub fn new(span_ns: i64) -> Rates {
        let none = || vec![0; INTERVALS];
        let length_ns = (span_ns / INTERVALS as i64 + 1).max(1);
        Rates { length_ns, reads: none(), writes: none(), bytes_read: none(), bytes_written: none() }
    }

    /// Takes the next requests.
    pub fn add(&mut self, batch: &Batch) {
        for ((&time, &op), &size) in batch.time.iter().zip(&batch.op).zip(&batch.size) {
            let i = ((time / self.length_ns).max(0) as usize).min(INTERVALS - 1);
            let (requests, bytes) = match op {
                _ if op == Op::Read as u8 => (&mut self.reads, &mut self.bytes_read),
                _ if op == Op::Write as u8 => (&mut self.writes, &mut self.bytes_written),
                _ => continue,
            };
            requests[i] += 1;
            bytes[i] = bytes[i].saturating_add(size.max(0) as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_trace::NONE;

    #[test]
    fn everything_is_in_some_interval() {
        let mut rates = Rates::new(1000);
        let batch = Batch {
            time: vec![0, 12, 500, 5000],
            op: vec![0, 1, 2, 0],
            size: vec![512, 4096, NONE, 1024],
            ..Batch::default()
        };
        rates.add(&batch);
        assert_eq!((rates.length_ns, rates.reads[0], rates.reads[INTERVALS - 1]), (11, 1, 1));
        assert_eq!((rates.writes[1], rates.bytes_written[1], rates.bytes_read[99]), (1, 4096, 1024));
        assert_eq!(rates.reads.iter().chain(&rates.writes).sum::<u64>(), 3);
    }
}
