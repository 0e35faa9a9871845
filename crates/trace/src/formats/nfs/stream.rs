//! One direction of a TCP connection put back together, and the RPC records in it (RFC 5531, section 11).

use std::collections::BTreeMap;

/// Bytes of a call that are kept: heads and arguments come first, data is passed over.
const KEPT: usize = 8192;

/// Bytes of a reply that are kept: the entries of a directory are in it.
const KEPT_REPLY: usize = 1 << 16;

/// Longest fragment of a record.
const LONGEST: u32 = 1 << 24;

/// Bytes that wait for a missing segment before it is given up.
const WAITING: usize = 1 << 20;

/// A record as far as it has come.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    /// Bytes of the fragment that are still to come; `None`: its mark is.
    left: Option<usize>,
    mark: Vec<u8>,
    last: bool,
    /// The capture does not have what follows the bytes.
    cut: bool,
    time: i64,
}

/// Segments in order of their numbers.
#[derive(Default)]
pub struct Stream {
    /// Number of the next byte, once it is known.
    next: Option<u32>,
    early: BTreeMap<u32, (i64, Vec<u8>, usize)>,
    waiting: usize,
    record: Record,
    /// Stretches that the capture does not have.
    lost: u64,
}

/// Whether bytes look like the start of a record: a mark of plausible length, then a call or a reply.
fn starts_record(bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(at..at + 4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
    let length = word(0).map_or(0, |mark| mark & 0x7fff_ffff);
    (16..1 << 22).contains(&length)
        && matches!((word(8), word(12)), (Some(0), Some(2)) | (Some(1), Some(0 | 1)))
}

impl Stream {
    /// Stretches that the capture does not have, one that segments still wait for among them.
    pub fn lost(&self) -> u64 {
        self.lost + u64::from(self.waiting > 0)
    }

    /// Takes a segment of `length` bytes of which the capture has some; `record(time, bytes)` is called with the
    /// start of every record that ends in it.
    pub fn segment(
        &mut self,
        (time, number, syn): (i64, u32, bool),
        bytes: &[u8],
        length: usize,
        record: &mut dyn FnMut(i64, &[u8]),
    ) {
        // Damaged packets have been seen with it in the middle of a connection, which goes on.
        let near = |next: u32| number.wrapping_sub(next).cast_signed().unsigned_abs() < WAITING as u32;
        if syn && !self.next.is_some_and(near) {
            *self = Stream { next: Some(number.wrapping_add(1)), lost: self.lost, ..Stream::default() };
            return;
        }
        if length == 0 {
            return;
        }
        let next = match self.next {
            Some(next) => next,
            // In the middle of a connection, a record may begin anywhere; it mostly does with a segment.
            None if starts_record(bytes) => number,
            None => return,
        };
        self.next = Some(next);
        let ahead = number.wrapping_sub(next).cast_signed();
        if ahead > 0 {
            self.waiting += length;
            let again = self.early.insert(number, (time, bytes.to_vec(), length));
            self.waiting -= again.map_or(0, |(_, _, length)| length);
            if self.waiting > WAITING {
                self.give_up(record);
            }
            return;
        }
        self.take(time, bytes, length, ahead.unsigned_abs() as usize, record);
        self.catch_up(record);
    }

    /// Takes the segments whose turn has come.
    fn catch_up(&mut self, record: &mut dyn FnMut(i64, &[u8])) {
        while let Some(next) = self.next {
            let found = self.early.iter().find(|(number, _)| number.wrapping_sub(next).cast_signed() <= 0);
            let Some((&number, _)) = found else { return };
            let Some((time, bytes, length)) = self.early.remove(&number) else { return };
            self.waiting -= length;
            let behind = next.wrapping_sub(number) as usize;
            self.take(time, &bytes, length, behind, record);
        }
    }

    /// Goes on behind a segment that never came, at one where a record begins.
    fn give_up(&mut self, record: &mut dyn FnMut(i64, &[u8])) {
        self.lost += 1;
        self.record = Record::default();
        let next = self.next.unwrap_or(0);
        let ahead = |number: &u32| number.wrapping_sub(next);
        let start = self
            .early
            .iter()
            .filter(|(_, (_, bytes, _))| starts_record(bytes))
            .map(|(n, _)| *n)
            .min_by_key(ahead);
        match start {
            Some(start) => {
                self.early.retain(|number, _| ahead(number) >= ahead(&start));
                self.waiting = self.early.values().map(|(_, _, length)| length).sum();
                self.next = Some(start);
                self.catch_up(record);
            }
            None => (self.next, self.early, self.waiting) = (None, BTreeMap::new(), 0),
        }
    }

    /// Takes the bytes of a segment behind those that came before.
    fn take(
        &mut self,
        time: i64,
        bytes: &[u8],
        length: usize,
        behind: usize,
        record: &mut dyn FnMut(i64, &[u8]),
    ) {
        if behind >= length {
            return;
        }
        self.next = self.next.map(|next| next.wrapping_add((length - behind) as u32));
        let mut rest = bytes.get(behind..).unwrap_or_default();
        let mut left = length - behind;
        while left > 0 {
            let Some(inside) = self.record.left else {
                // A mark that the capture cut off cannot be known.
                let Some((&byte, after)) = rest.split_first() else { return self.astray() };
                if self.record.mark.is_empty() && self.record.bytes.is_empty() {
                    self.record.time = time;
                }
                self.record.mark.push(byte);
                (rest, left) = (after, left - 1);
                if let [a, b, c, d] = self.record.mark[..] {
                    let mark = u32::from_be_bytes([a, b, c, d]);
                    self.record.last = mark >> 31 == 1;
                    if mark & 0x7fff_ffff > LONGEST {
                        return self.astray();
                    }
                    self.record.left = Some((mark & 0x7fff_ffff) as usize);
                    self.record.mark.clear();
                    self.end(record);
                }
                continue;
            };
            let n = inside.min(left);
            let here = &rest[..n.min(rest.len())];
            let Record { bytes, cut, .. } = &mut self.record;
            let kind = bytes.get(7).or_else(|| here.get(7usize.checked_sub(bytes.len())?));
            let most = if kind == Some(&1) { KEPT_REPLY } else { KEPT };
            let room = if *cut { 0 } else { most.saturating_sub(bytes.len()) };
            bytes.extend_from_slice(&here[..here.len().min(room)]);
            *cut |= here.len() < n;
            rest = rest.get(n..).unwrap_or_default();
            left -= n;
            self.record.left = Some(inside - n);
            // A transaction id, then 0 for a call or 1 for a reply: else this is no record.
            if self.record.bytes.get(4..8).is_some_and(|kind| kind[..3] != [0; 3] || kind[3] > 1) {
                return self.astray();
            }
            self.end(record);
        }
    }

    /// Forgets where records begin; the next segment that begins with one goes on.
    fn astray(&mut self) {
        *self = Stream { lost: self.lost + 1, ..Stream::default() };
    }

    /// Hands a record on whose last fragment is over.
    fn end(&mut self, record: &mut dyn FnMut(i64, &[u8])) {
        if self.record.left != Some(0) {
            return;
        }
        self.record.left = None;
        if self.record.last {
            record(self.record.time, &self.record.bytes);
            self.record = Record::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marked(fragments: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, fragment) in fragments.iter().enumerate() {
            let last = if i + 1 == fragments.len() { 1 << 31 } else { 0 };
            out.extend((fragment.len() as u32 | last).to_be_bytes());
            out.extend_from_slice(fragment);
        }
        out
    }

    proptest! {
        #[test]
        fn records_come_whole_however_they_are_cut_and_ordered(
            sizes in prop::collection::vec(1usize..60, 1..12), cut in 1usize..50, start in any::<u32>(), swap in any::<bool>(),
        ) {
            let records: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(i, n)| {
                let mut record = vec![i as u8; *n];
                record.iter_mut().skip(4).take(4).for_each(|byte| *byte = 0);
                record
            }).collect();
            let bytes: Vec<u8> = records.iter().flat_map(|r| marked(&[&r[..r.len() / 2], &r[r.len() / 2..]])).collect();
            let mut segments: Vec<(u32, &[u8])> = bytes.chunks(cut).enumerate()
                .map(|(i, part)| (start.wrapping_add(1 + (i * cut) as u32), part)).collect();
            if swap {
                segments.chunks_mut(2).for_each(|pair| pair.reverse());
            }
            let (mut stream, mut found) = (Stream::default(), Vec::new());
            stream.segment((0, start, true), &[], 0, &mut |_, _| {});
            for (number, part) in &segments {
                // Sent twice, as it happens.
                for _ in 0..2 {
                    stream.segment((5, *number, false), part, part.len(), &mut |_, r: &[u8]| found.push(r.to_vec()));
                }
            }
            prop_assert_eq!(found, records);
            prop_assert_eq!(stream.lost(), 0);
        }
    }

    #[test]
    fn data_is_passed_over_and_a_gap_is_given_up() {
        let mut found = Vec::new();
        let mut stream = Stream::default();
        stream.segment((0, 99, true), &[], 0, &mut |_, _| {});
        // A record of 5,000 bytes of which the capture has 100.
        let mut bytes = (5000u32 | 1 << 31).to_be_bytes().to_vec();
        bytes.resize(12, 0);
        bytes.resize(100, 7);
        stream.segment((1, 100, false), &bytes, 5004, &mut |_, r: &[u8]| found.push(r.len()));
        assert_eq!(found, [96]);
        let mut call = 40u32.to_be_bytes().to_vec();
        call[0] = 0x80;
        call.extend([0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2]);
        call.resize(44, 0);
        let far = 100 + 5004 + 1000;
        for i in 0..30_000u32 {
            stream.segment((2, far + i * 44, false), &call, 44, &mut |_, r: &[u8]| found.push(r.len()));
        }
        assert_eq!(stream.lost(), 1);
        assert_eq!(found.len(), 30_001);
    }
}
