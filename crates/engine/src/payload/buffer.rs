//! Memory for transfers: page-aligned, one per request in flight, grown when a larger request comes.

use crate::payload::{Generator, Payload};
use loadstone_verify::{Checker, LARGEST_IN_STRIP, Ledger, STRIP};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::sync::Arc;

/// Alignment and granularity, bytes; enough for direct I/O on any device.
pub const ALIGN: usize = 4096;
/// From this size on it is asked whether there is so much memory: what is populated is taken, or the process is ended.
const LARGE: usize = 16 << 20;
/// Smallest buffer, so that the usual requests never make it grow.
const LEAST: usize = 64 << 10;

/// A page-aligned piece of memory.
pub struct Buffer {
    at: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to the buffer alone.
unsafe impl Send for Buffer {}

impl Buffer {
    /// No memory yet.
    pub const fn empty() -> Buffer {
        Buffer { at: std::ptr::null_mut(), len: 0 }
    }

    /// `len` bytes, rounded up, resident at once; `None` when there is not so much memory.
    pub fn new(len: usize) -> Option<Buffer> {
        let len = len.next_multiple_of(ALIGN).max(LEAST);
        if len >= LARGE && len as u64 > loadstone_files::available_memory() {
            return None;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a fresh anonymous mapping touches no other memory.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        (at != libc::MAP_FAILED).then(|| Buffer { at: at.cast(), len })
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.at.is_null() {
            return &mut [];
        }
        // SAFETY: mapped for reading and writing, `len` bytes, owned by `self`.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.at.is_null() {
            // SAFETY: mapped by `new` with this length, and not used after.
            unsafe { libc::munmap(self.at.cast(), self.len) };
        }
    }
}

/// Bytes of a cell: requests up to this size use memory that is shared out beforehand.
pub const CELL: usize = 16 << 10;

/// Two cells for each of `depth` requests in flight, in one piece; `None` without memory.
pub fn cells(depth: usize, payload: &Payload) -> Option<(Buffer, Vec<Pair>)> {
    let mut memory = Buffer::new(2 * depth * CELL)?;
    fill_random(memory.bytes(), payload.seed);
    let pair = |i| {
        // SAFETY: the memory holds `2 * depth` cells.
        let at = |n: usize| unsafe { memory.at.add(n * CELL) };
        Pair { cells: Some((at(2 * i), at(2 * i + 1))), ..Pair::new(&payload.part(i)) }
    };
    let pairs = (0..depth).map(pair).collect();
    Some((memory, pairs))
}

/// The buffers of one request in flight: one to read into, one with data to write.
///
/// Written data is random, thus incompressible, and the first 16 bytes of each 4 KiB are the place
/// and a running number, so that no two blocks written are alike; or it is the content that the plan asks for.
pub struct Pair {
    read: Buffer,
    write: Buffer,
    /// Never written to.
    zeros: Buffer,
    /// A cell to read into and one to write from; whoever made them keeps their memory.
    cells: Option<(*mut u8, *mut u8)>,
    /// What verified writes are made in that are larger than a cell, empty until there is one; nothing where they are not.
    strip: Option<Buffer>,
    seed: u64,
    written: u64,
    maker: Generator,
}

impl Pair {
    /// Buffers of its own.
    pub fn new(payload: &Payload) -> Pair {
        Pair {
            read: Buffer::empty(),
            write: Buffer::empty(),
            zeros: Buffer::empty(),
            cells: None,
            strip: payload.strips().then(Buffer::empty),
            seed: payload.seed,
            written: 0,
            maker: payload.generator(),
        }
    }

    /// Room to read `size` bytes at `offset` of the content number `file`, and whether it is a cell. [`Pair::ended`] must
    /// follow when the read has ended.
    #[inline(always)]
    pub fn for_read_of(&mut self, size: usize, file: u64, offset: u64) -> (*mut u8, bool) {
        if let Generator::Verified(checker, _) = &mut self.maker {
            checker.read(file, offset, size as u64);
        }
        self.for_read(size)
    }

    /// The same where the bytes may come from what was read ahead some time ago.
    pub fn for_late_read(&mut self, size: usize, file: u64, offset: u64) -> *mut u8 {
        if let Generator::Verified(checker, _) = &mut self.maker {
            checker.read_late(file, offset, size as u64);
        }
        self.for_read(size).0
    }

    /// What was read last from `offset` of the content number `file`, `size` bytes, to be written again there;
    /// [`Pair::ended`] follows.
    pub fn for_echo(&mut self, size: usize, file: u64, offset: u64) -> *const u8 {
        if let Generator::Verified(checker, _) = &mut self.maker {
            checker.echo(file, offset, size as u64);
        }
        self.for_read(size).0
    }

    /// What is known of the content number `file`, where it is verified.
    pub fn ledger(&self, file: u64) -> Option<Arc<Ledger>> {
        match &self.maker {
            Generator::Verified(checker, _) => checker.ledger(file),
            _ => None,
        }
    }

    /// A sync of the content number `file` is about to begin; [`Pair::ended`] follows.
    #[inline(always)]
    pub fn for_sync(&mut self, file: u64) {
        if let Generator::Verified(checker, _) = &mut self.maker {
            checker.sync(file);
        }
    }

    /// `size` bytes at `offset` of the content number `file` are about to be given back; [`Pair::ended`] follows.
    #[inline(always)]
    pub fn for_discard(&mut self, size: usize, file: u64, offset: u64) {
        if let Generator::Verified(checker, _) = &mut self.maker {
            checker.discard(file, offset, size as u64);
        }
    }

    /// What was about to begin has ended, with the result of its system call; `stable`: what it wrote was to be stable.
    #[inline(always)]
    pub fn ended(&mut self, result: i64, stable: bool) {
        if matches!(self.maker, Generator::Verified(..)) {
            self.verify(result, stable);
        }
    }

    fn verify(&mut self, result: i64, stable: bool) {
        let Pair { maker: Generator::Verified(checker, _), cells, read, .. } = self else { return };
        checker.ended(result, stable, |asked, got| {
            let at = match cells {
                Some((cell, _)) if asked <= CELL => *cell,
                _ => read.at,
            };
            // SAFETY: so many bytes were read to where `for_read` had said for as many as were asked for.
            unsafe { std::slice::from_raw_parts(at, got) }
        });
    }

    /// Room to read `size` bytes, and whether it is a cell. Without memory it is null, and the
    /// request fails with EFAULT like any other that cannot be performed.
    #[inline(always)]
    pub fn for_read(&mut self, size: usize) -> (*mut u8, bool) {
        if let Some((read, _)) = self.cells
            && size <= CELL
        {
            return (read, true);
        }
        if size > self.read.len {
            self.grow_read(size);
        }
        (self.read.at, false)
    }

    /// `size` zeros.
    #[inline]
    pub fn zeros(&mut self, size: usize) -> *const u8 {
        if size > self.zeros.len {
            self.zeros = Buffer::empty();
            self.zeros = Buffer::new(size).unwrap_or(Buffer::empty());
        }
        self.zeros.at
    }

    #[cold]
    fn grow_read(&mut self, size: usize) {
        self.read = Buffer::empty();
        self.read = Buffer::new(size).unwrap_or(Buffer::empty());
    }

    /// `size` bytes to be written at `offset` of the content number `file`, and whether they are a cell. [`Pair::ended`]
    /// must follow when the write has ended.
    #[inline(always)]
    pub fn for_write(&mut self, size: usize, file: u64, offset: u64) -> (*const u8, bool) {
        if let Generator::Verified(checker, counter) = &mut self.maker {
            if let Some(counter) = counter {
                counter.count(offset, size as u64);
            }
            checker.write(file, offset, size as u64);
            if let Some(at) = in_strip(checker, &mut self.strip, size) {
                return (at, false);
            }
        }
        let (at, cell) = self.room(size);
        if at.is_null() {
            return (at, false);
        }
        if !matches!(self.maker, Generator::Stamp) {
            // SAFETY: the memory holds `size` bytes, and nobody else uses it.
            let bytes = unsafe { std::slice::from_raw_parts_mut(at, size) };
            match &mut self.maker {
                Generator::Content(contents) => contents.make(file, offset, bytes),
                Generator::Chunks(chunks) => chunks.make(file, offset, bytes),
                Generator::Verified(checker, _) => checker.fill(bytes),
                Generator::Stamp => {}
            }
            return (at, cell);
        }
        let mut place = 0;
        while place + 16 <= size {
            // SAFETY: 16 bytes at `place` lie inside the memory, which is aligned to 4096.
            unsafe {
                let stamp = at.add(place).cast::<u64>();
                stamp.write((offset + place as u64) ^ self.seed);
                stamp.add(1).write(self.written);
            }
            place += ALIGN;
        }
        self.written += 1;
        (at, cell)
    }

    /// `size` bytes of any content, for what is no block of a file.
    pub fn any(&mut self, size: usize) -> *const u8 {
        self.room(size).0
    }

    /// Memory to write `size` bytes from, and whether it is a cell.
    #[inline(always)]
    fn room(&mut self, size: usize) -> (*mut u8, bool) {
        match self.cells {
            Some((_, write)) if size <= CELL => (write, true),
            _ => {
                if size > self.write.len {
                    self.grow_write(size);
                }
                (self.write.at, false)
            }
        }
    }

    #[cold]
    fn grow_write(&mut self, size: usize) {
        self.write = Buffer::empty();
        self.write = Buffer::new(size).unwrap_or(Buffer::empty());
        fill_random(self.write.bytes(), self.seed);
    }
}

/// Makes a write of `size` bytes that `checker` was told of in the strip, where that can be.
#[inline(always)]
fn in_strip(checker: &mut Checker, strip: &mut Option<Buffer>, size: usize) -> Option<*const u8> {
    if size <= CELL || size > LARGEST_IN_STRIP {
        return None;
    }
    if strip.as_ref()?.len == 0 {
        *strip = new_strip(checker);
    }
    let strip = strip.as_mut()?;
    let first = checker.fill_strip(strip.bytes())?;
    // SAFETY: `first` lies in the strip.
    Some(unsafe { strip.at.add(first) })
}

#[cold]
fn new_strip(checker: &Checker) -> Option<Buffer> {
    let mut strip = Buffer::new(STRIP)?;
    checker.prepare(strip.bytes()).then_some(strip)
}

/// Overwrites `bytes` with random data.
pub fn fill_random(bytes: &mut [u8], seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for eight in bytes.chunks_exact_mut(8) {
        eight.copy_from_slice(&random.next_u64().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::PayloadPlan;
    use loadstone_verify::{About, Before, Block, Blocks, Verifier};
    use std::collections::HashSet;

    #[test]
    fn no_two_written_blocks_are_alike_and_none_compresses() {
        let (_memory, mut pairs) = cells(2, &Payload::new(11, PayloadPlan::default(), 0)).unwrap();
        let (mut pair, mut seen) = (pairs.swap_remove(1), HashSet::new());
        for (size, offset) in [(8192, 0), (8192, 0), (200_000, 1 << 30), (4096, 4096)] {
            let (at, cell) = pair.for_write(size, 0, offset);
            assert_eq!((at as usize % ALIGN, cell), (0, size <= CELL));
            // SAFETY: the pair promises `size` bytes.
            let bytes = unsafe { std::slice::from_raw_parts(at, size) };
            for block in bytes.chunks_exact(ALIGN) {
                assert!(seen.insert(block.to_vec()));
                let mut counts = [0u32; 256];
                block.iter().for_each(|b| counts[usize::from(*b)] += 1);
                // Random bytes: 16 of each expected; 60 would be eleven standard deviations off.
                assert!(counts.iter().all(|n| *n < 60));
            }
        }
    }

    #[test]
    fn verified_writes_hold_their_blocks_wherever_they_are_made() {
        const UNIT: u64 = 4096;
        let about = About {
            path: "f".into(),
            size: 1 << 20,
            before: Before::Filled,
            stable: false,
            discards: false,
            mapped: false,
        };
        let verifier = Arc::new(Verifier::new(
            Blocks::marked(7, UNIT as usize),
            vec![Ledger::new(about, UNIT as usize)],
        ));
        let payload_plan = PayloadPlan::Verified(verifier.clone(), None);
        let (_memory, mut pairs) = cells(2, &Payload::new(11, payload_plan, 0)).unwrap();
        let mut pair = pairs.swap_remove(1);
        let mut generations = [0; 256];
        let (mut in_strip, mut scratch) = (0, Vec::new());
        // Whole blocks, of one generation and of two, parts of blocks, and more than a strip has room for.
        for (offset, size) in [
            (0, 128 << 10),
            (128 << 10, 128 << 10),
            (64 << 10, 128 << 10),
            (512, 40_000),
            (64 << 10, 32 << 10),
            (100_000, 128 << 10),
            (700_001, 30_003),
            (200 * UNIT, 4096),
            (200 * UNIT + 1000, 6 * 4096 - 1000),
            (0, 128 << 10),
            (0, 1 << 20),
            (4096, 4096),
        ] {
            let (at, cell) = pair.for_write(size, 0, offset);
            assert_eq!(cell, size <= CELL);
            // SAFETY: the pair promises `size` bytes.
            let bytes = unsafe { std::slice::from_raw_parts(at, size) };
            let strip = pair.strip.as_mut().unwrap().bytes().as_ptr_range();
            if strip.contains(&at) {
                in_strip += 1;
                assert_eq!(at as usize % ALIGN, offset as usize % ALIGN);
            } else {
                assert_eq!(at as usize % ALIGN, 0);
            }
            let end = offset + size as u64;
            for block in offset / UNIT..end.div_ceil(UNIT) {
                let (from, to) = (offset.max(block * UNIT), end.min((block + 1) * UNIT));
                generations[block as usize] += u32::from(to - from == UNIT);
                let mut right = vec![0; (to - from) as usize];
                let (place, inside) = (Block { file: 0, block }, (from % UNIT) as usize);
                verifier.blocks.fill(place, generations[block as usize], inside, &mut right, &mut scratch);
                assert!(bytes[(from - offset) as usize..(to - offset) as usize] == right, "block {block}");
            }
            pair.ended(size as i64, false);
        }
        assert_eq!(in_strip, 5);
    }
}
