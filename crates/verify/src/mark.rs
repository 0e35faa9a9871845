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
//!
//! Data comes from a small pool, sector behind sector. So a write whose blocks are of one generation can be made in a
//! *strip*, which holds the pool already: only marks are written.

use loadstone_content::seed::mix;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Bytes of data in it.
const DATA: usize = SECTOR - 32;
/// Data there is to choose from, bytes: blocks written one after the other share none within so far. More of it takes more of
/// the caches: writes of 128 KiB from 512 KiB were a tenth slower than from 128 KiB, marked or not.
const POOL: usize = 256 << 10;
/// Sectors of it.
const SECTORS_OF_POOL: usize = POOL / SECTOR;
/// Sectors of a page. The data of files is shifted by pages, so what is aligned in a file is aligned as well in a strip.
const PAGE: usize = 8;
/// Sectors by which the data of every second generation is shifted: half of the pool, so that nothing is there twice within
/// half of the pool, of whatever generations it is.
const TURN: usize = SECTORS_OF_POOL / 2;
/// Bytes of the largest write that is made in a strip.
pub const LARGEST_IN_STRIP: usize = 128 << 10;
/// Bytes of a strip.
pub const STRIP: usize = POOL + LARGEST_IN_STRIP + PAGE * SECTOR;
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
    fn head(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
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

/// Bytes of a mark before its checksum.
const HEAD: usize = 28;

/// Makes sectors with marks.
///
/// Checksums are put together rather than computed: the register of a CRC is linear over the bits of messages of one length,
/// so that of a sector is the exclusive or of that of its data with zeros for a head, of what the head adds without the
/// last byte of the sector's number, and of what this byte adds.
pub struct Marks {
    key: u64,
    pool: Box<[u8]>,
    /// Checksum of the data of each of its sectors, with zeros for a head.
    sums: Box<[u32; SECTORS_OF_POOL]>,
    /// What the last byte of a sector's number adds.
    lows: Box<[u32; 256]>,
}

/// What a head adds to the checksum of data with zeros in its place: the register of the CRC, begun with zeros and not
/// inverted at the end.
#[inline(always)]
fn added(head: &[u8; HEAD]) -> u32 {
    !crc32c::crc32c_append(!0, head)
}

impl Marks {
    /// Of a run with this key.
    pub fn new(key: u64) -> Marks {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(key);
        let mut pool = vec![0; POOL];
        pool.chunks_exact_mut(8).for_each(|eight| eight.copy_from_slice(&random.next_u64().to_le_bytes()));
        let sums = std::array::from_fn(|piece| {
            crc32c::crc32c_append(crc32c::crc32c(&pool[piece * SECTOR..][..DATA]), &[0; HEAD])
        });
        let lows = std::array::from_fn(|low| {
            let mut head = [0; HEAD];
            head[16] = low as u8;
            added(&head)
        });
        Marks { key, pool: pool.into(), sums: Box::new(sums), lows: Box::new(lows) }
    }

    /// Makes a strip ready, of [`STRIP`] bytes.
    pub fn prepare(&self, strip: &mut [u8]) {
        strip.chunks_mut(POOL).for_each(|part| part.copy_from_slice(&self.pool[..part.len()]));
    }

    /// The key.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// What sectors of a generation of a file have in common, from one of them on.
    #[inline(always)]
    pub fn of(&self, file: u64, generation: u32, sector: u64) -> Making<'_> {
        let shift =
            (mix(file ^ self.key) as usize).wrapping_mul(PAGE).wrapping_add(generation as usize % 2 * TURN);
        let mark = Mark { key: self.key, file, sector, generation };
        let mut making = Making { marks: self, mark, high: 0, shift };
        making.go_to(sector);
        making
    }
}

/// Makes the sectors of one generation of a file, one after the other.
pub struct Making<'a> {
    marks: &'a Marks,
    /// Of the next sector.
    mark: Mark,
    /// What its head adds but for the last byte of the sector's number.
    high: u32,
    shift: usize,
}

impl Making<'_> {
    #[inline(always)]
    fn go_to(&mut self, sector: u64) {
        self.mark.sector = sector;
        self.high = added(&Mark { sector: sector & !255, ..self.mark }.head());
    }

    /// Number of the next sector's data.
    #[inline(always)]
    fn piece(&self) -> usize {
        (self.mark.sector as usize).wrapping_add(self.shift) % SECTORS_OF_POOL
    }

    /// The mark of the next sector, whose data is `piece`; then it is the turn of the one behind it.
    #[inline(always)]
    fn tail(&mut self, piece: usize) -> [u8; SECTOR - DATA] {
        let mut tail = [0; SECTOR - DATA];
        tail[..HEAD].copy_from_slice(&self.mark.head());
        let sector = self.mark.sector;
        let sum =
            self.marks.sums[piece % SECTORS_OF_POOL] ^ self.high ^ self.marks.lows[(sector & 255) as usize];
        tail[HEAD..].copy_from_slice(&sum.to_le_bytes());
        if sector & 255 == 255 {
            self.go_to(sector.wrapping_add(1));
        } else {
            self.mark.sector = sector + 1;
        }
        tail
    }

    /// Makes sectors, from byte `inside` of the next one on.
    #[inline(always)]
    pub fn fill(&mut self, inside: usize, bytes: &mut [u8]) {
        let (head, bytes) = bytes.split_at_mut(before_whole(inside, bytes.len()));
        if !head.is_empty() {
            self.part(inside, head.len(), |at, right| head[at] = right);
        }
        let (mut whole, rest) = bytes.split_at_mut(bytes.len() / SECTOR * SECTOR);
        while !whole.is_empty() {
            // Data of sectors that follow each other does so in the pool, up to its end.
            let piece = self.piece();
            let run = (SECTORS_OF_POOL - piece).min(whole.len() / SECTOR);
            let (now, later) = whole.split_at_mut(run * SECTOR);
            now.copy_from_slice(&self.marks.pool[piece * SECTOR..][..run * SECTOR]);
            self.mark(piece, now);
            whole = later;
        }
        if !rest.is_empty() {
            self.part(0, rest.len(), |at, right| rest[at] = right);
        }
    }

    /// Marks sectors that hold their data, that of the first being `piece`.
    #[inline(always)]
    fn mark(&mut self, piece: usize, sectors: &mut [u8]) {
        for (i, sector) in sectors.as_chunks_mut::<SECTOR>().0.iter_mut().enumerate() {
            sector[DATA..].copy_from_slice(&self.tail(piece + i));
        }
    }

    /// Makes `size` bytes, at most [`LARGEST_IN_STRIP`], from byte `inside` of the next sector on in a strip, and says
    /// where in it they begin: as far from the beginning of a page as in the file. Nothing where there is no strip.
    #[inline(always)]
    pub fn fill_strip(&mut self, inside: usize, size: usize, strip: &mut [u8]) -> Option<usize> {
        let piece = self.piece();
        let first = piece * SECTOR;
        let sectors = strip.get_mut(first..first + (inside + size).next_multiple_of(SECTOR))?;
        self.mark(piece, sectors);
        Some(first + inside)
    }

    /// Whether these are the bytes of sectors, from byte `inside` of the next one on.
    #[inline(always)]
    pub fn holds(&mut self, inside: usize, bytes: &[u8]) -> bool {
        let (head, bytes) = bytes.split_at(before_whole(inside, bytes.len()));
        let mut same = true;
        if !head.is_empty() {
            self.part(inside, head.len(), |at, right| same &= head[at] == right);
        }
        let (mut whole, rest) = bytes.as_chunks::<SECTOR>();
        while let (true, [_, ..]) = (same, whole) {
            // Up to the end of the pool, and as far as only the last byte of the sector's number changes.
            let (piece, sector) = (self.piece(), self.mark.sector);
            let run = (SECTORS_OF_POOL - piece).min(256 - (sector & 255) as usize).min(whole.len());
            let (now, later) = whole.split_at(run);
            let (sums, lows) = (&self.marks.sums[piece..], &self.marks.lows[(sector & 255) as usize..]);
            let data = self.marks.pool[piece * SECTOR..].as_chunks::<SECTOR>().0;
            same = alike(now, data, Tails { first: self.mark, high: self.high, sums, lows });
            self.go_to(sector.wrapping_add(run as u64));
            whole = later;
        }
        if !rest.is_empty() && same {
            self.part(0, rest.len(), |at, right| same &= rest[at] == right);
        }
        same
    }

    /// Tells `length` bytes of the next sector, from byte `inside` of it on.
    fn part(&mut self, inside: usize, length: usize, mut tell: impl FnMut(usize, u8)) {
        let piece = self.piece();
        let (data, tail) = (&self.marks.pool[piece * SECTOR..][..DATA], self.tail(piece));
        for at in 0..length {
            let byte = inside + at;
            tell(at, if byte < DATA { data[byte] } else { tail[byte - DATA] });
        }
    }
}

/// What tells the marks of sectors whose numbers follow each other and differ in the last byte only.
struct Tails<'a> {
    first: Mark,
    /// What the head of each adds to its checksum but for that byte.
    high: u32,
    /// Checksums of the data, and what that byte adds, of each.
    sums: &'a [u32],
    lows: &'a [u32],
}

/// Whether sectors hold this data, and their marks.
///
/// Nothing is branched on within a sector: all that may differ is gathered in one vector, and looked at in the end.
#[inline(always)]
fn compare(sectors: &[[u8; SECTOR]], data: &[[u8; SECTOR]], tails: Tails<'_>) -> bool {
    let word = |eight: &[u8; 8]| u64::from_le_bytes(*eight);
    let Mark { key, file, sector, generation } = tails.first;
    let (place, mut differs) = ((sector % SECTORS) | MAGIC, [0u64; 4]);
    let known = tails.sums.iter().zip(tails.lows).zip(0u64..);
    for ((sector, data), ((sum, low), number)) in sectors.iter().zip(data).zip(known) {
        let (sector, data) = (sector.as_chunks::<8>().0, data.as_chunks::<8>().0);
        let (found, wanted) = (sector.as_chunks::<4>().0, data.as_chunks::<4>().0);
        for (found, wanted) in found.iter().zip(&wanted[..DATA / 32]) {
            for ((differs, found), wanted) in differs.iter_mut().zip(found).zip(wanted) {
                *differs |= word(found) ^ word(wanted);
            }
        }
        let sum = u64::from(sum ^ low ^ tails.high) << 32 | u64::from(generation);
        let tail = [key, file, place + number, sum];
        for ((differs, found), wanted) in differs.iter_mut().zip(&found[DATA / 32]).zip(tail) {
            *differs |= word(found) ^ wanted;
        }
    }
    differs == [0; 4]
}

/// [`compare`], with the vectors that the processor has.
#[inline]
fn alike(sectors: &[[u8; SECTOR]], data: &[[u8; SECTOR]], tails: Tails<'_>) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wide(sectors: &[[u8; SECTOR]], data: &[[u8; SECTOR]], tails: Tails<'_>) -> bool {
            compare(sectors, data, tails)
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it.
            return unsafe { wide(sectors, data, tails) };
        }
    }
    compare(sectors, data, tails)
}

/// Bytes before the first whole sector, where the first of `length` is byte `inside` of its own.
#[inline(always)]
fn before_whole(inside: usize, length: usize) -> usize {
    match inside {
        0 if length >= SECTOR => 0,
        _ => (SECTOR - inside).min(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sector_is_as_documented() {
        let mut bytes = [0; SECTOR];
        Marks::new(7).of(5, 9, 0x0102_0304_0506).fill(0, &mut bytes);
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
            marks.of(file, generation, sector).fill(0, &mut bytes);
            prop_assert_eq!(Mark::parse(&bytes), Some(Mark { key, file, sector, generation }));
            prop_assert!(marks.of(file, generation, sector).holds(0, &bytes));
            prop_assert!(!marks.of(file, generation ^ 1, sector).holds(0, &bytes));
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Mark::parse(&bytes), None);
            prop_assert!(!marks.of(file, generation, sector).holds(0, &bytes));
        }

        #[test]
        fn stretches_are_their_sectors(
            key: u64, file: u64, generation: u32, first in 0..SECTORS - 2000, count in 1..2000usize,
        ) {
            // More than the pool, and over numbers whose last byte begins anew.
            let marks = Marks::new(key);
            let mut bytes = vec![0; count * SECTOR];
            marks.of(file, generation, first).fill(0, &mut bytes);
            for (sector, bytes) in (first..).zip(bytes.chunks_exact(SECTOR)) {
                prop_assert_eq!(Mark::parse(bytes), Some(Mark { key, file, sector, generation }));
                let mut alone = [0; SECTOR];
                marks.of(file, generation, sector).fill(0, &mut alone);
                prop_assert_eq!(bytes, &alone);
            }
            prop_assert!(marks.of(file, generation, first).holds(0, &bytes));
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            prop_assert!(!marks.of(file, generation, first).holds(0, &bytes));
        }

        #[test]
        fn a_strip_holds_what_would_be_made(
            key: u64, file: u64, generation: u32, first in 0..SECTORS - 2000, inside in 0..SECTOR,
            size in 0..=LARGEST_IN_STRIP, before: u32,
        ) {
            let (marks, mut strip, mut right) = (Marks::new(key), vec![0; STRIP], vec![0; size]);
            marks.prepare(&mut strip);
            // What is left of other writes does no harm.
            marks.of(file, before, first).fill_strip(0, LARGEST_IN_STRIP, &mut strip).unwrap();
            let at = marks.of(file, generation, first).fill_strip(inside, size, &mut strip).unwrap();
            marks.of(file, generation, first).fill(inside, &mut right);
            prop_assert!(strip[at..at + size] == right);
            prop_assert_eq!(at % 4096, (first as usize * SECTOR + inside) % 4096);
            prop_assert_eq!(marks.of(file, generation, first).fill_strip(inside, STRIP, &mut strip), None);
        }

        #[test]
        fn records_of_128_kib_hold_nothing_twice(
            key: u64, file: u64, one: u32, other: u32, sector in 0..SECTORS - 256, apart in 1..256u64,
        ) {
            let (marks, mut here, mut there) = (Marks::new(key), [0; SECTOR], [0; SECTOR]);
            marks.of(file, one, sector).fill(0, &mut here);
            for (generation, sector) in [(other, sector + apart), (one.wrapping_add(1), sector)] {
                marks.of(file, generation, sector).fill(0, &mut there);
                let same = here[..DATA].iter().zip(&there[..DATA]).filter(|(a, b)| a == b).count();
                // Two of 480 random bytes are alike; 30 would be twenty standard deviations off.
                prop_assert!(same < 30, "{} bytes are alike", same);
            }
        }

        #[test]
        fn parts_are_those_of_the_whole(from in 0..4 * SECTOR, to in 0..4 * SECTOR, sector: u32, at: prop::sample::Index) {
            let (from, to) = (from.min(to), from.max(to));
            let marks = Marks::new(3);
            let (mut whole, mut part) = ([0; 4 * SECTOR], vec![0; to - from]);
            marks.of(1, 2, sector.into()).fill(0, &mut whole);
            let first = u64::from(sector) + (from / SECTOR) as u64;
            marks.of(1, 2, first).fill(from % SECTOR, &mut part);
            prop_assert_eq!(&whole[from..to], &part[..]);
            prop_assert!(marks.of(1, 2, first).holds(from % SECTOR, &part));
            if !part.is_empty() {
                let at = at.index(part.len());
                part[at] ^= 4;
                prop_assert!(!marks.of(1, 2, first).holds(from % SECTOR, &part));
            }
        }

        #[test]
        fn anything_may_be_parsed(bytes: Vec<u8>) {
            let _ = Mark::parse(&bytes);
        }
    }
}
