//! Marks: the last 32 bytes of every 512 say whose, where, and when they were written, and their checksum.
//!
//! | bytes of a sector | hold |
//! |---|---|
//! | 0 to 479 | random data, which of it by file, sector and generation |
//! | 480 to 487 | the key of the run |
//! | 488 to 495 | the file's number |
//! | 496 to 501 | the sector's number in the file |
//! | 502 to 503 | `LS` |
//! | 504 to 507 | the generation |
//! | 508 to 511 | CRC-32C (RFC 3720, appendix B.4) of all before |
//!
//! Numbers are little-endian. A sector is the least that a device writes as a whole, so a block of which a part was not
//! written shows sectors of two generations.

use crate::hash::mix;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Bytes of data in it.
const DATA: usize = SECTOR - 32;
/// Data there is to choose from, bytes: blocks written one after the other share none within so far.
const POOL: usize = 256 << 10;
/// Bytes from one piece of data to the next.
const STEP: usize = 64;
const MAGIC: u64 = u64::from_le_bytes(*b"\0\0\0\0\0\0LS");
/// Largest number of a sector, exclusive.
const SECTORS: u64 = 1 << 48;

/// What a mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Of the run.
    pub key: u64,
    /// Number of the file.
    pub file: u64,
    /// Number of the sector in it.
    pub sector: u64,
    /// How often it had been written.
    pub generation: u32,
}

impl Mark {
    /// All of a mark but its checksum.
    #[inline(always)]
    fn head(&self) -> [u8; 28] {
        let mut bytes = [0; 28];
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.file.to_le_bytes());
        bytes[16..24].copy_from_slice(&((self.sector % SECTORS) | MAGIC).to_le_bytes());
        bytes[24..].copy_from_slice(&self.generation.to_le_bytes());
        bytes
    }

    /// The mark of a sector, if its checksum is right.
    pub fn parse(sector: &[u8]) -> Option<Mark> {
        if sector.len() != SECTOR {
            return None;
        }
        let (before, sum) = sector.split_at(SECTOR - 4);
        let eight = |at: usize| Some(u64::from_le_bytes(before.get(at..at + 8)?.try_into().ok()?));
        let place = eight(DATA + 16)?;
        let generation = u32::from_le_bytes(before.get(DATA + 24..)?.try_into().ok()?);
        let right = place & !(SECTORS - 1) == MAGIC && crc32c::crc32c(before).to_le_bytes() == *sum;
        right.then_some(Mark {
            key: eight(DATA)?,
            file: eight(DATA + 8)?,
            sector: place % SECTORS,
            generation,
        })
    }
}

/// Makes sectors with marks.
pub struct Marks {
    key: u64,
    pool: Box<[u8]>,
    /// Checksum of the data of each piece.
    sums: Box<[u32]>,
}

impl Marks {
    /// Of a run with this key.
    pub fn new(key: u64) -> Marks {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(key);
        let mut pool = vec![0; POOL + SECTOR];
        pool.chunks_exact_mut(8).for_each(|eight| eight.copy_from_slice(&random.next_u64().to_le_bytes()));
        let sums = (0..POOL / STEP).map(|piece| crc32c::crc32c(&pool[piece * STEP..][..DATA])).collect();
        Marks { key, pool: pool.into(), sums }
    }

    /// The key.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// What sectors of a generation of a file have in common.
    #[inline(always)]
    pub fn of(&self, file: u64, generation: u32) -> Making<'_> {
        let shift = mix(file ^ u64::from(generation).rotate_left(40) ^ self.key) as usize;
        Making { marks: self, file, generation, shift }
    }
}

/// Makes the sectors of one generation of a file.
#[derive(Clone, Copy)]
pub struct Making<'a> {
    marks: &'a Marks,
    file: u64,
    generation: u32,
    shift: usize,
}

impl Making<'_> {
    /// Data of a sector, and the mark behind it.
    #[inline(always)]
    fn parts(&self, sector: u64) -> (&[u8], [u8; 32]) {
        let piece = (sector as usize).wrapping_mul(SECTOR / STEP).wrapping_add(self.shift) % (POOL / STEP);
        let mark = Mark { key: self.marks.key, file: self.file, sector, generation: self.generation };
        let head = mark.head();
        let mut tail = [0; 32];
        tail[..28].copy_from_slice(&head);
        tail[28..].copy_from_slice(&crc32c::crc32c_append(self.marks.sums[piece], &head).to_le_bytes());
        (&self.marks.pool[piece * STEP..piece * STEP + DATA], tail)
    }

    /// Makes a sector, from byte `inside` of it on.
    #[inline(always)]
    pub fn fill(&self, sector: u64, inside: usize, bytes: &mut [u8]) {
        let (data, tail) = self.parts(sector);
        if bytes.len() == SECTOR {
            bytes[..DATA].copy_from_slice(data);
            bytes[DATA..].copy_from_slice(&tail);
            return;
        }
        for (byte, at) in bytes.iter_mut().zip(inside..SECTOR) {
            *byte = if at < DATA { data[at] } else { tail[at - DATA] };
        }
    }

    /// Whether these are the bytes of a sector, from byte `inside` of it on.
    #[inline(always)]
    pub fn holds(&self, sector: u64, inside: usize, bytes: &[u8]) -> bool {
        let (data, tail) = self.parts(sector);
        if bytes.len() == SECTOR {
            return bytes[..DATA] == *data && bytes[DATA..] == tail;
        }
        bytes
            .iter()
            .zip(inside..SECTOR)
            .all(|(byte, at)| *byte == if at < DATA { data[at] } else { tail[at - DATA] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sector_is_as_documented() {
        let mut bytes = [0; SECTOR];
        Marks::new(7).of(5, 9).fill(0x0102_0304_0506, 0, &mut bytes);
        assert_eq!(bytes[480..488], 7u64.to_le_bytes());
        assert_eq!(bytes[488..496], 5u64.to_le_bytes());
        assert_eq!(bytes[496..504], *b"\x06\x05\x04\x03\x02\x01LS");
        assert_eq!(bytes[504..508], 9u32.to_le_bytes());
        // The checksum by its definition, bit by bit (polynomial 0x1EDC6F41, reflected).
        let sum = bytes[..508].iter().fold(!0u32, |sum, byte| {
            (0..8)
                .fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82F6_3B78 & (sum & 1).wrapping_neg()))
        });
        assert_eq!(bytes[508..], (!sum).to_le_bytes());
    }

    proptest! {
        #[test]
        fn marks_are_read_as_written_and_any_change_is_seen(
            key: u64, file: u64, sector in 0..SECTORS, generation: u32, at in 0..SECTOR, bit in 0..8u8,
        ) {
            let marks = Marks::new(key);
            let mut bytes = [0; SECTOR];
            marks.of(file, generation).fill(sector, 0, &mut bytes);
            prop_assert_eq!(Mark::parse(&bytes), Some(Mark { key, file, sector, generation }));
            prop_assert!(marks.of(file, generation).holds(sector, 0, &bytes));
            prop_assert!(!marks.of(file, generation ^ 1).holds(sector, 0, &bytes));
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Mark::parse(&bytes), None);
            prop_assert!(!marks.of(file, generation).holds(sector, 0, &bytes));
        }

        #[test]
        fn parts_are_those_of_the_whole(from in 0..SECTOR, to in 0..SECTOR, sector: u32) {
            let (from, to) = (from.min(to), from.max(to));
            let marks = Marks::new(3);
            let (mut whole, mut part) = ([0; SECTOR], vec![0; to - from]);
            marks.of(1, 2).fill(sector.into(), 0, &mut whole);
            marks.of(1, 2).fill(sector.into(), from, &mut part);
            prop_assert_eq!(&whole[from..to], &part[..]);
            prop_assert!(marks.of(1, 2).holds(sector.into(), from, &part));
        }

        #[test]
        fn anything_may_be_parsed(bytes: Vec<u8>) {
            let _ = Mark::parse(&bytes);
        }
    }
}
