//! FS-POPULATE: chunks for files that have sizes, from a distribution of duplicates (Tarasov, section 4.3.3).

use crate::Result;
use crate::chunks::{Chunks, Ratio};
use crate::create::content::law::{FileSizes, Laws, Shares};
use crate::create::draw::Draw;
use crate::tree::Chunking;

/// Smallest chunk that is made, bytes: so that its number fits, and no two are alike.
pub(crate) const LEAST: u32 = 5;
/// Chunks that follow each other and are repeated together, on average.
const RUN: f64 = 8.0;
/// Files whose cutting tells what to expect.
const SAMPLE: u64 = 4096;

/// Sizes of chunks as a chunker cuts random content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Smallest that another can follow, and largest.
    least: u32,
    most: u32,
    /// From where, and how often, content says cut: strictly first, loosely from the middle on.
    from: f64,
    middle: f64,
    strict: f64,
    loose: f64,
}

impl Cut {
    /// FastCDC at normalisation level 1 (Xia et al., USENIX ATC 2016, section 4): from the smallest size on one byte in
    /// twice the average says cut, and from the middle on one in half of it.
    pub fn new(chunking: Chunking, (least, most): (u32, u32)) -> Cut {
        match chunking {
            Chunking::Fixed { .. } => Cut { least, most, from: 0.0, middle: 0.0, strict: 0.0, loose: 0.0 },
            Chunking::Fastcdc { min, average, .. } => {
                let (from, average) = (f64::from(min), f64::from(average));
                let bits = average.log2().round();
                let middle = from.max(average - (1.5 * from).min(average));
                Cut { least, most, from, middle, strict: (-bits - 1.0).exp2(), loose: (1.0 - bits).exp2() }
            }
        }
    }

    /// Bytes of a chunk that another follows.
    pub fn draw(&self, draw: &mut Draw) -> u32 {
        if self.least == self.most {
            return self.most;
        }
        // Exponential, at two rates one after the other.
        let left = -(1.0 - draw.uniform()).ln();
        let first = (self.middle - self.from) * self.strict;
        let size = if left < first {
            self.from + left / self.strict
        } else {
            self.middle + (left - first) / self.loose
        };
        (size as u32).clamp(self.least, self.most)
    }

    /// The next chunk of a file that has so many bytes left.
    pub fn next(&self, left: u64, draw: &mut Draw) -> u32 {
        let size = self.draw(draw);
        let rest = left.saturating_sub(u64::from(size));
        if rest == 0 {
            // No more than the largest chunk, so it fits.
            return left as u32;
        }
        if rest >= u64::from(LEAST) || self.least == self.most {
            return size;
        }
        if left <= u64::from(self.most) { left as u32 } else { size - LEAST }
    }
}

/// Chunks that are to be there again, so many times.
struct Owed {
    chunks: Vec<u32>,
    left: u32,
}

/// Repeats of one kind of chunks: those that are alone in their file, or those that others follow.
struct Repeats {
    open: Vec<Owed>,
    /// Chunks that are still to be placed.
    owed: u64,
    /// Chunks to be owed before repeats are about as likely as fresh chunks.
    level: f64,
}

impl Repeats {
    fn are_due(&self, draw: &mut Draw) -> bool {
        !self.open.is_empty() && draw.happens(self.owed as f64 / (self.owed as f64 + self.level))
    }

    /// Chunks that are to be there so many times in all, twice and more.
    fn owe(&mut self, chunks: Vec<u32>, times: u32) {
        self.owed += chunks.len() as u64 * u64::from(times - 1);
        self.open.push(Owed { chunks, left: times - 1 });
    }

    /// Takes one from what is owed and puts what was not placed of it back.
    fn place(&mut self, at: usize, count: usize) {
        let one = &mut self.open[at];
        self.owed -= count as u64;
        let rest = one.chunks.split_off(count);
        let left = one.left;
        one.left -= 1;
        if one.left == 0 {
            self.open.swap_remove(at);
        }
        if !rest.is_empty() {
            self.open.push(Owed { chunks: rest, left });
        }
    }
}

/// Draws files by laws.
pub(crate) struct Populate<'a> {
    laws: &'a Laws,
    sizes: FileSizes<'a>,
    depths: Shares,
    extensions: Shares,
    numbers: Vec<u16>,
    cut: Cut,
    times: Shares,
    only: Repeats,
    inner: Repeats,
    mean: f64,
    ratio: Ratio,
}

impl<'a> Populate<'a> {
    /// For about so many files. `numbers` are those of the laws' extensions.
    pub fn new(laws: &'a Laws, (numbers, cut): (Vec<u16>, Cut), files: u64, draw: &mut Draw) -> Populate<'a> {
        let sizes = FileSizes::new(&laws.sizes);
        let (mut chunks, mut lasts, mut only, mut bytes) = (0u64, 0u64, 0u64, 0u64);
        for _ in 0..SAMPLE {
            let size = sizes.draw(draw);
            // Of a large file the first chunks tell as much as all.
            let (mut left, mut count) = (size.min(1 << 22), 0);
            bytes += left;
            while left > 0 {
                left -= u64::from(cut.next(left, draw));
                count += 1;
            }
            chunks += count;
            (only, lasts) = (only + u64::from(count == 1), lasts + u64::from(count > 1));
        }
        let level = |count: u64| (count as f64 / SAMPLE as f64 * files as f64 / 200.0).max(16.0);
        let repeats = |count| Repeats { open: Vec::new(), owed: 0, level: level(count) };
        Populate {
            laws,
            depths: Shares::new(laws.depths.iter().copied()),
            extensions: Shares::new(laws.extensions.iter().map(|one| one.1)),
            numbers,
            cut,
            times: Shares::new(times(laws, chunks as f64, lasts as f64).into_iter()),
            only: repeats(only),
            inner: repeats(chunks - only - lasts),
            mean: bytes as f64 / chunks.max(1) as f64,
            ratio: laws.ratio(),
            sizes,
        }
    }

    /// Bytes of a chunk, about.
    pub fn mean_chunk(&self) -> f64 {
        self.mean.max(1.0)
    }

    pub fn size(&self, draw: &mut Draw) -> u64 {
        match self.sizes.draw(draw) {
            0 => 0,
            size => size.max(u64::from(LEAST)),
        }
    }

    pub fn depth(&self, draw: &mut Draw) -> usize {
        self.depths.draw(draw)
    }

    pub fn extension(&self, draw: &mut Draw) -> u16 {
        self.numbers[self.extensions.draw(draw)]
    }

    /// Chunks of a file; tells its bytes, which are those asked for unless a file of one chunk is there again.
    pub fn chunks(
        &mut self,
        size: u64,
        all: &mut Chunks,
        into: &mut Vec<u32>,
        draw: &mut Draw,
    ) -> Result<u64> {
        into.clear();
        if size == 0 {
            return Ok(0);
        }
        let first = self.cut.next(size, draw);
        if u64::from(first) == size {
            let chunk = self.alone(first, all, draw)?;
            into.push(chunk);
            return Ok(u64::from(all.size(chunk)));
        }
        let (mut left, mut next) = (size, first);
        while u64::from(next) < left {
            if self.inner.are_due(draw) {
                left -= self.repeat(left, all, into, draw);
            } else {
                let times = self.laws.duplicates[self.times.draw(draw)].0;
                let (begin, end) = (into.len(), 1.0 - 1.0 / RUN);
                loop {
                    into.push(all.push(next, self.ratio)?);
                    left -= u64::from(next);
                    next = self.cut.next(left, draw);
                    if u64::from(next) >= left || !draw.happens(end) {
                        break;
                    }
                }
                if times > 1 {
                    self.inner.owe(into[begin..].to_vec(), times);
                }
                continue;
            }
            next = self.cut.next(left, draw);
        }
        into.push(all.push(next, self.ratio)?);
        Ok(size)
    }

    /// The chunk of a file that has one.
    fn alone(&mut self, size: u32, all: &mut Chunks, draw: &mut Draw) -> Result<u32> {
        if self.only.are_due(draw) {
            let at = draw.below(self.only.open.len());
            let chunk = self.only.open[at].chunks[0];
            self.only.place(at, 1);
            return Ok(chunk);
        }
        let chunk = all.push(size, self.ratio)?;
        let times = self.laws.duplicates[self.times.draw(draw)].0;
        if times > 1 {
            self.only.owe(vec![chunk], times);
        }
        Ok(chunk)
    }

    /// Places chunks that were there before, as far as they fit; tells how many bytes they have.
    fn repeat(&mut self, left: u64, all: &Chunks, into: &mut Vec<u32>, draw: &mut Draw) -> u64 {
        let at = draw.below(self.inner.open.len());
        let (mut bytes, mut count) = (0, 0);
        for chunk in &self.inner.open[at].chunks {
            let size = u64::from(all.size(*chunk));
            if bytes + size + u64::from(LEAST) > left {
                break;
            }
            into.push(*chunk);
            (bytes, count) = (bytes + size, count + 1);
        }
        if count > 0 {
            self.inner.place(at, count);
        }
        bytes
    }
}

/// Shares of how often chunks are to be there, of those that may be repeated. Last chunks of files are not, so the others
/// make up for them.
fn times(laws: &Laws, chunks: f64, lasts: f64) -> Vec<f64> {
    let all: f64 = laws.duplicates.iter().map(|one| one.1).sum();
    let mean: f64 = laws.duplicates.iter().map(|one| f64::from(one.0) * one.1 / all).sum();
    let distinct = chunks.max(1.0) / mean;
    let more = distinct / (distinct - lasts).max(distinct * 1e-3);
    let repeated: f64 = laws.duplicates.iter().filter(|one| one.0 > 1).map(|one| one.1 / all).sum();
    let more = if repeated > 0.0 { more.min(1.0 / repeated) } else { more };
    let once = if repeated < 1.0 { (1.0 - repeated * more) / (1.0 - repeated) } else { 0.0 };
    let share = |one: &(u32, f64)| one.1 / all * if one.0 > 1 { more } else { once.max(0.0) };
    laws.duplicates.iter().map(share).collect()
}
