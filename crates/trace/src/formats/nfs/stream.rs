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

/// Nanoseconds that segments wait for a missing one: less than requests may be out of order.
pub const LONGEST_GAP: i64 = 800_000_000;

/// Bytes that tell the start of a record for certain.
const SURE: usize = 28;

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

/// A segment that came before its turn.
struct Early {
    time: i64,
    bytes: Vec<u8>,
    length: usize,
}

/// Segments in order of their numbers.
#[derive(Default)]
pub struct Stream {
    /// Place of the next byte, once it is known: its number, and how often numbers began anew.
    next: Option<u64>,
    early: BTreeMap<u64, Early>,
    waiting: usize,
    /// Whether the next byte is of the record, or the first of one; else a record is still to be found.
    in_step: bool,
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

/// Where in bytes a record begins: one that is at their start, or one whose head is certain to be of NFS or its kin.
fn find_record(bytes: &[u8]) -> Option<usize> {
    if starts_record(bytes) {
        return Some(0);
    }
    let is_sure = |head: &[u8]| {
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let call = word(8) == 0 && word(12) == 2 && (100_000..100_300).contains(&word(16));
        // A reply that is accepted: its verifier, and how it came out.
        let reply = word(8) == 1 && word(12) == 0 && word(16) <= 6 && word(20) == 0 && word(24) <= 5;
        head[0] & 0x80 != 0 && (call || reply)
    };
    let mut heads = bytes.windows(SURE).enumerate().filter(|(_, head)| starts_record(head) && is_sure(head));
    heads.next().map(|(at, _)| at)
}

impl Stream {
    /// Stretches that the capture does not have, one that segments still wait for among them.
    pub fn lost(&self) -> u64 {
        self.lost + u64::from(self.waiting > 0)
    }

    /// Whether segments wait for one that is missing.
    pub fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// When the first segment came that waits for one that is missing.
    pub fn gap_since(&self) -> Option<i64> {
        self.early.first_key_value().map(|(_, first)| first.time)
    }

    /// Place of a number near the next byte.
    fn place(next: u64, number: u32) -> Option<u64> {
        next.checked_add_signed(number.wrapping_sub(next as u32).cast_signed().into())
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
        let near = |next: u64| number.wrapping_sub(next as u32).cast_signed().unsigned_abs() < WAITING as u32;
        if syn && !self.next.is_some_and(near) {
            self.give_up_all(record);
            let next = Some((1 << 32) + u64::from(number.wrapping_add(1)));
            *self = Stream { next, in_step: true, lost: self.lost, ..Stream::default() };
            return;
        }
        if length == 0 {
            return;
        }
        // In the middle of a connection, a record may begin anywhere; it mostly does with a segment.
        let next = *self.next.get_or_insert((1 << 32) + u64::from(number));
        let Some(place) = Stream::place(next, number) else { return };
        if place > next {
            self.waiting += length;
            let again = self.early.insert(place, Early { time, bytes: bytes.to_vec(), length });
            self.waiting -= again.map_or(0, |again| again.length);
            while self.waiting > WAITING {
                self.give_up(record);
            }
            return;
        }
        self.take(time, bytes, length, (next - place) as usize, record);
        self.catch_up(record);
    }

    /// The other side has all bytes before a number: what of them is missing here is not sent again, and what it answers
    /// lies behind it.
    pub fn acknowledge(&mut self, number: u32, record: &mut dyn FnMut(i64, &[u8])) {
        while let Some(next) = self.next.filter(|_| self.has_gap())
            && Stream::place(next, number).is_some_and(|place| place > next)
        {
            self.give_up(record);
        }
    }

    /// Takes the segments whose turn has come.
    fn catch_up(&mut self, record: &mut dyn FnMut(i64, &[u8])) {
        while let (Some(next), Some(first)) = (self.next, self.early.first_entry()) {
            if *first.key() > next {
                return;
            }
            let (place, Early { time, bytes, length }) = first.remove_entry();
            self.waiting -= length;
            self.take(time, &bytes, length, (next - place) as usize, record);
        }
    }

    /// Goes on behind every segment that never came.
    pub fn give_up_all(&mut self, record: &mut dyn FnMut(i64, &[u8])) {
        while self.has_gap() {
            self.give_up(record);
        }
    }

    /// Goes on behind a segment that never came: within the record whose middle it was, or at the next that is found.
    fn give_up(&mut self, record: &mut dyn FnMut(i64, &[u8])) {
        let (Some(next), Some((&place, first))) = (self.next, self.early.first_key_value()) else { return };
        let (time, mut gap) = (first.time, (place - next) as usize);
        self.lost += 1;
        while self.in_step && gap > 0 {
            // What of the record is missing may be data, which is passed over anyway.
            let Some(inside) = self.record.left.map(|left| left.min(gap)) else { break };
            self.take(time, &[], inside, 0, record);
            gap -= inside;
        }
        if gap > 0 {
            (self.record, self.in_step) = (Record::default(), false);
        }
        self.next = Some(place);
        self.catch_up(record);
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
        self.next = self.next.map(|next| next + (length - behind) as u64);
        let mut rest = bytes.get(behind..).unwrap_or_default();
        let mut left = length - behind;
        while left > 0 {
            if !self.in_step {
                let Some(at) = find_record(rest) else { return };
                (rest, left, self.in_step) = (&rest[at..], left - at, true);
            }
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
                        self.astray();
                        continue;
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
            // A transaction id, then 0 for a call or 1 for a reply: else this is no record.
            if self.record.bytes.get(4..8).is_some_and(|kind| kind[..3] != [0; 3] || kind[3] > 1) {
                self.astray();
                continue;
            }
            rest = rest.get(n..).unwrap_or_default();
            left -= n;
            self.record.left = Some(inside - n);
            self.end(record);
        }
    }

    /// Forgets where records begin, until one is found again.
    fn astray(&mut self) {
        self.lost += 1;
        (self.record, self.in_step) = (Record::default(), false);
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
