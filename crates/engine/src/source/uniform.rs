//! The synthetic source: aligned requests, random or ascending, without end.

use crate::issue::arrival::Arrivals;
use crate::request::op;
use crate::source::random::{below, unit};
use crate::source::random_map::Free;
use crate::source::skew::Blocks;
use loadstone_plan::{Extent, Fit, Row, Skew, Source};
use loadstone_trace::{Batch, NONE, Requests, Result};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Rows per batch, as many as a block of the engine.
const ROWS: usize = 1024;

/// How often a size is drawn again before the least one is taken.
const AGAIN: usize = 1000;

/// A stream of requests spread over all extents of a worker's map.
pub struct Uniform {
    random: Xoshiro256PlusPlus,
    size: u64,
    /// Reads below this 32-bit number, writes from it on.
    reads: u64,
    sequential: bool,
    arrivals: Arrivals,
    /// Object and number of blocks of each extent.
    extents: Vec<(u32, u64)>,
    blocks: u64,
    /// Next block where they ascend.
    issued: u64,
    /// What is no read.
    rest: u8,
    /// What is more than requests of one size, all alike or in order.
    varied: Option<Varied>,
}

/// Several sizes, hot blocks, runs, or blocks that come once.
struct Varied {
    /// Of reads, and of what is none.
    sizes: [Sizes; 2],
    /// Blocks that random offsets of each are multiples of.
    steps: [u64; 2],
    /// Whether these differ.
    split: bool,
    skew: Blocks,
    /// Share of the requests that begin where the one before them ended.
    follow: f64,
    /// Bytes of each extent.
    bytes: Vec<u64>,
    /// Extent and offset at which the last request ended; of reads and of writes where these go apart.
    ends: [(usize, u64); 2],
    /// Bytes from there to the begin of the next one that ascends.
    skip: i64,
    apart: bool,
    redrawn: bool,
    /// Blocks that are still to come, where each comes once.
    free: Option<Free>,
    /// Bytes until the end.
    left: u64,
    /// Bytes per second, where these are what requests are paced by, and those so far.
    pace: Option<f64>,
    made: u64,
}

impl Uniform {
    /// Extents into which not even the largest request fits are left out; `None` where none is left. `place_seed` says
    /// which blocks are hot.
    pub fn new(
        source: &Source,
        seed: u64,
        place_seed: u64,
        extents: &[Extent],
        arrivals: Arrivals,
    ) -> Option<Uniform> {
        let Source::Uniform {
            reads,
            size,
            sizes,
            write_sizes,
            sequential,
            follow,
            skew,
            once,
            fit,
            apart,
            bytes,
            byte_rate,
            skip,
            discards,
            ..
        } = source
        else {
            return None;
        };
        let redrawn = *fit == Fit::Redraw;
        let split = !write_sizes.is_empty();
        let rows = [sizes, if split { write_sizes } else { sizes }];
        let least = rows.map(|rows| rows.iter().map(|row| row.low as u64).min().unwrap_or(*size));
        let highs = sizes.iter().chain(write_sizes).map(|row| row.high as u64);
        // One that does not fit is drawn again: only the least must.
        let most = if redrawn { least.iter().copied().max() } else { highs.max() };
        let most = most.unwrap_or(*size).max(*size);
        let used: Vec<_> = extents.iter().filter(|e| e.size >= most).collect();
        let extents: Vec<_> = used.iter().map(|e| (e.object, e.size / size)).collect();
        let blocks = extents.iter().map(|e| e.1).sum();
        if blocks == 0 {
            return None;
        }
        let apart = *apart && *sequential && *reads > 0.0 && *reads < 1.0;
        let once = *once && !*sequential;
        let plain = sizes.is_empty() && *follow == 0.0 && matches!(skew, Skew::Uniform);
        let varied = if plain && !apart && !once && *bytes == 0 && *byte_rate == 0.0 && *skip == 0 {
            None
        } else {
            Some(Varied {
                sizes: rows.map(|rows| Sizes::new(rows, *size)),
                steps: least.map(|least| if split { (least / size).max(1) } else { 1 }),
                split,
                skew: Blocks::new(skew, blocks, place_seed)?,
                follow: if *sequential { 1.0 } else { *follow },
                bytes: used.iter().map(|e| e.size).collect(),
                ends: [(0, 0); 2],
                skip: *skip,
                apart,
                redrawn,
                free: if once { Some(Free::new(blocks)?) } else { None },
                left: if *bytes == 0 { u64::MAX } else { *bytes },
                pace: (*byte_rate > 0.0).then_some(*byte_rate),
                made: 0,
            })
        };
        Some(Uniform {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            size: *size,
            reads: (reads * 4_294_967_296.0) as u64,
            sequential: *sequential,
            arrivals,
            extents,
            blocks,
            issued: 0,
            rest: if *discards { op::DISCARD } else { op::WRITE },
            varied,
        })
    }

    #[inline(always)]
    fn is_read(&mut self) -> bool {
        self.reads > u64::from(u32::MAX) || (self.reads > 0 && self.random.next_u64() >> 32 < self.reads)
    }

    /// Code of a read, or of what is none.
    #[inline(always)]
    pub fn code(&self, read: bool) -> u8 {
        if read { op::READ } else { self.rest }
    }

    /// Whether all requests are of one size, and at random blocks that are all alike or at ascending ones.
    pub fn is_plain(&self) -> bool {
        self.varied.is_none()
    }

    /// Objects of the extents.
    pub fn objects(&self) -> impl Iterator<Item = u32> {
        self.extents.iter().map(|extent| extent.0)
    }

    /// The next request of a plain source: position of its extent, block in it, and whether it is a read.
    #[inline(always)]
    pub fn pick(&mut self) -> (usize, u64, bool) {
        let block = if self.sequential {
            let block = self.issued;
            self.issued = if block + 1 < self.blocks { block + 1 } else { 0 };
            block
        } else {
            below(&mut self.random, self.blocks)
        };
        let (extent, block) = self.within(block);
        (extent, block, self.is_read())
    }

    /// Which extent a block of all of them lies in, and which one it is there.
    #[inline(always)]
    fn within(&self, mut block: u64) -> (usize, u64) {
        let mut extent = 0;
        while extent + 1 < self.extents.len() && block >= self.extents[extent].1 {
            block -= self.extents[extent].1;
            extent += 1;
        }
        (extent, block)
    }

    /// A batch of requests of one size.
    fn alike(&mut self, batch: &mut Batch) {
        for _ in 0..ROWS {
            let (extent, block, read) = self.pick();
            batch.op.push(self.code(read));
            batch.object.push(self.extents[extent].0);
            batch.offset.push((block * self.size) as i64);
        }
        batch.size.resize(ROWS, self.size as i64);
    }

    /// A batch of all others, shorter where they end.
    fn varied(&mut self, batch: &mut Batch, varied: &mut Varied) {
        while batch.size.len() < ROWS && varied.left > 0 {
            let before = (varied.apart || varied.split).then(|| self.is_read());
            let side = usize::from(before == Some(false));
            let way = if varied.apart { side } else { 0 };
            let mut size = varied.sizes[side].draw(&mut self.random);
            let follows =
                varied.follow >= 1.0 || (varied.follow > 0.0 && unit(&mut self.random) < varied.follow);
            let (extent, offset) = if follows {
                let (mut extent, mut offset) = varied.ends[way];
                offset = varied.skipped(extent, offset, size);
                let mut room = varied.bytes[extent] - offset;
                if room < if varied.redrawn { varied.sizes[side].least() } else { size } {
                    (extent, offset) = ((extent + 1) % varied.bytes.len(), 0);
                    room = varied.bytes[extent];
                }
                size = varied.fitting(side, size, room, &mut self.random);
                (extent, offset)
            } else {
                let drawn = varied.skew.draw(&mut self.random);
                let block = varied.free.as_mut().map_or(drawn, |free| free.from(drawn));
                let (extent, mut inner) = self.within(block);
                if varied.split {
                    inner -= inner % varied.steps[side];
                }
                size = varied.fitting(side, size, varied.bytes[extent] - inner * self.size, &mut self.random);
                if let Some(free) = &mut varied.free {
                    // No further than to the next block that was asked for before, or the end of the extent.
                    let ahead = self.extents[extent].1 - inner;
                    size = size.min(free.take(block, size.div_ceil(self.size).min(ahead)) * self.size);
                }
                // One that would cross the end is moved back.
                let mut last = varied.bytes[extent].saturating_sub(size) / self.size;
                if varied.split {
                    last -= last % varied.steps[side];
                }
                (extent, inner.min(last) * self.size)
            };
            varied.ends[way] = (extent, offset + size);
            varied.left = varied.left.saturating_sub(size);
            if let Some(pace) = varied.pace {
                batch.time.push((varied.made as f64 / pace * 1e9) as i64);
                varied.made = varied.made.saturating_add(size);
            }
            let read = before.unwrap_or_else(|| self.is_read());
            batch.op.push(self.code(read));
            batch.object.push(self.extents[extent].0);
            batch.offset.push(offset as i64);
            batch.size.push(size as i64);
        }
    }
}

impl Varied {
    /// Where a request begins that goes on from `end`: with a skip in between, at the other end of the extent where
    /// that leads out of it.
    #[inline]
    fn skipped(&self, extent: usize, end: u64, size: u64) -> u64 {
        if self.skip == 0 || end == 0 {
            return end;
        }
        let bytes = self.bytes[extent];
        match end.checked_add_signed(self.skip) {
            Some(at) if at.saturating_add(size) <= bytes => at,
            _ if self.skip > 0 => 0,
            _ => bytes.saturating_add_signed(self.skip),
        }
    }

    /// A size, drawn again until it fits into `room` where that is asked for.
    fn fitting(&self, side: usize, size: u64, room: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
        if !self.redrawn || size <= room {
            return size;
        }
        let mut drawn = (0..AGAIN).map(|_| self.sizes[side].draw(random));
        drawn.find(|size| *size <= room).unwrap_or_else(|| self.sizes[side].least())
    }
}

/// Sizes of requests.
enum Sizes {
    One(u64),
    /// Cumulative share, smallest size and number of sizes of each row; they differ by the step.
    Several(Vec<(f64, u64, u64)>, u64),
}

impl Sizes {
    /// `size` where there are no rows, and their step where there are.
    fn new(rows: &[Row], size: u64) -> Sizes {
        if rows.is_empty() {
            return Sizes::One(size);
        }
        let sum: f64 = rows.iter().map(|row| row.share).sum();
        let mut until = 0.0;
        let rows = rows.iter().filter(|row| row.share > 0.0).map(|row| {
            until += row.share / sum;
            (until, row.low as u64, (row.high as u64 - row.low as u64) / size + 1)
        });
        Sizes::Several(rows.collect(), size)
    }

    /// The smallest of all.
    fn least(&self) -> u64 {
        match self {
            Sizes::One(size) => *size,
            Sizes::Several(rows, _) => rows.iter().map(|row| row.1).min().unwrap_or(1),
        }
    }

    #[inline]
    fn draw(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Sizes::One(size) => *size,
            Sizes::Several(rows, step) => {
                let at = unit(random);
                let (_, low, count) = rows[rows.partition_point(|row| row.0 <= at).min(rows.len() - 1)];
                if count == 1 { low } else { low + below(random, count) * step }
            }
        }
    }
}

impl Requests for Uniform {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        match self.varied.take() {
            None => self.alike(batch),
            Some(mut varied) => {
                self.varied(batch, &mut varied);
                self.varied = Some(varied);
            }
        }
        let rows = batch.size.len();
        if batch.time.is_empty() {
            self.arrivals.fill(&mut batch.time, rows)?;
        }
        batch.latency.resize(rows, NONE);
        batch.flags.resize(rows, 0);
        batch.actor.resize(rows, 0);
        Ok(rows > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::variables::tests::fits;
    use serde_json::json;

    fn extents() -> Vec<Extent> {
        [(0, 40960), (7, 4096), (9, 100)]
            .map(|(object, size)| Extent { object, target: "t".into(), base: 0, size })
            .to_vec()
    }

    /// A source of these properties, of which the usual ones can be left out.
    fn source(extents: &[Extent], properties: serde_json::Value, rate: f64) -> Uniform {
        let mut all = json!({"kind": "uniform", "reads": 1.0, "size": 4096});
        properties.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
        let arrivals = Arrivals::new(rate, &loadstone_plan::Arrival::Constant, 1);
        Uniform::new(&serde_json::from_value(all).unwrap(), 3, 5, extents, arrivals).unwrap()
    }

    #[test]
    fn requests_skip_bytes_and_begin_again_at_the_other_end() {
        // The offsets are those of fio 3.33 with rw=read:8k, read:-8k, read:-4k and read:-16k.
        let one = [Extent { object: 0, target: "t".into(), base: 0, size: 65536 }];
        let skips: [(i64, &[u64]); 4] = [
            (8, &[0, 12, 24, 36, 48, 60, 0, 12]),
            (-8, &[0, 56, 52, 48, 44, 40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0, 56]),
            (-4, &[0, 0, 0]),
            (-16, &[0, 48, 36, 24, 12, 0, 48, 36]),
        ];
        for (skip, offsets) in skips {
            let source = source(&one, json!({"sequential": true, "skip": skip << 10}), 0.0);
            let seen: Vec<u64> = rows(source, 1).iter().map(|row| row.1 >> 10).take(offsets.len()).collect();
            assert_eq!(seen, offsets, "{skip}");
        }
    }

    /// Object, offset and size of the first requests.
    fn rows(mut source: Uniform, batches: usize) -> Vec<(u32, u64, u64)> {
        let (mut batch, mut rows) = (Batch::default(), Vec::new());
        for _ in 0..batches {
            assert!(source.next(&mut batch).unwrap());
            rows.extend(
                (0..batch.len()).map(|i| (batch.object[i], batch.offset[i] as u64, batch.size[i] as u64)),
            );
        }
        rows
    }

    fn one(size: u64) -> Vec<Extent> {
        vec![Extent { object: 0, target: "t".into(), base: 0, size }]
    }

    #[test]
    fn covers_every_block_of_every_extent_alike() {
        let mut source = source(&extents(), json!({"reads": 0.7}), 0.0);
        let (mut batch, mut seen, mut reads) = (Batch::default(), [0u64; 11], 0);
        for _ in 0..50 {
            assert!(source.next(&mut batch).unwrap());
            for i in 0..batch.len() {
                seen[batch.offset[i] as usize / 4096 + if batch.object[i] == 7 { 10 } else { 0 }] += 1;
                reads += u64::from(batch.op[i] == 0);
                assert!(batch.object[i] != 9);
            }
        }
        let n = 50.0 * ROWS as f64;
        // Five standard deviations of a binomial.
        assert!(seen.iter().all(|s| (*s as f64 - n / 11.0).abs() < 5.0 * (n / 11.0f64).sqrt()));
        assert!((reads as f64 - 0.7 * n).abs() < 5.0 * (n * 0.21).sqrt());
    }

    #[test]
    fn ascends_and_keeps_to_its_rate() {
        let mut source = source(&extents(), json!({"sequential": true}), 1000.0);
        let mut batch = Batch::default();
        source.next(&mut batch).unwrap();
        source.next(&mut batch).unwrap();
        assert_eq!(batch.time[4], (ROWS as i64 + 4) * 1_000_000);
        let first = ROWS as i64 % 11;
        let expected = if first == 10 { (7, 0) } else { (0, first * 4096) };
        assert_eq!((batch.object[0], batch.offset[0]), expected);
        assert!(batch.op.iter().all(|op| *op == 0));
    }

    #[test]
    fn skewed_requests_reach_the_last_block_of_every_extent() {
        for skew in [
            json!({"kind": "zipf", "exponent": 0.6}),
            json!({"kind": "pareto", "share": 0.3}),
            json!({"kind": "hotcold", "accesses": 0.8, "space": 0.2}),
        ] {
            let mut seen = [0u64; 11];
            for (object, offset, size) in rows(source(&extents(), json!({"skew": skew}), 0.0), 50) {
                assert_eq!((size, offset % 4096), (4096, 0));
                seen[offset as usize / 4096 + if object == 7 { 10 } else { 0 }] += 1;
            }
            assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
            let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
            assert!(most > &(3 * least), "{seen:?}");
        }
    }

    #[test]
    fn sizes_have_their_shares_and_never_cross_the_end() {
        let sizes = json!([
            {"share": 60, "low": 4096, "high": 4096}, {"share": 0, "low": 1, "high": 1},
            {"share": 40, "low": 8192, "high": 20480},
        ]);
        let bytes = 256 << 10;
        let mut counts = [0u64; 5];
        let mut last = false;
        for (_, offset, size) in rows(source(&one(bytes), json!({"sizes": sizes}), 0.0), 60) {
            assert!(offset % 4096 == 0 && offset + size <= bytes);
            last |= offset + size == bytes;
            counts[size as usize / 4096 - 1] += 1;
        }
        assert!(last);
        fits(&counts, &[0.6, 0.1, 0.1, 0.1, 0.1]);
    }

    #[test]
    fn writes_have_sizes_and_alignments_of_their_own() {
        let row = |share, size| json!({"share": share, "low": size, "high": size});
        let source_of = |sequential| {
            let sizes = json!({
                "reads": 0.25, "size": 2048, "sequential": sequential, "apart": sequential,
                "sizes": [row(40, 4096), row(60, 16384)],
                "write_sizes": [row(100, 6144)],
            });
            source(&one(120_000), sizes, 0.0)
        };
        for sequential in [false, true] {
            let (mut source, mut batch, mut ends) = (source_of(sequential), Batch::default(), [0; 2]);
            let mut counts = [0u64; 3];
            for _ in 0..20 {
                source.next(&mut batch).unwrap();
                for i in 0..batch.len() {
                    let (side, size) = (usize::from(batch.op[i]), batch.size[i]);
                    assert!(batch.offset[i] + size <= 120_000);
                    let kind = [4096, 16384, 6144].iter().position(|one| *one == size).unwrap();
                    assert_eq!(kind == 2, side == 1, "{size} is no size of {side}");
                    counts[kind] += 1;
                    if sequential {
                        assert!(batch.offset[i] == ends[side] || batch.offset[i] == 0);
                        ends[side] = batch.offset[i] + size;
                    } else {
                        assert_eq!(batch.offset[i] % [4096, 6144][side], 0);
                    }
                }
            }
            fits(&counts, &[0.1, 0.15, 0.75]);
        }
    }

    #[test]
    fn sequences_of_several_sizes_go_on_where_the_last_request_ended() {
        let sizes = json!([{"share": 1, "low": 4096, "high": 16384}]);
        let found = rows(source(&one(100_000), json!({"sizes": sizes, "sequential": true}), 0.0), 2);
        assert_eq!(found[0].1, 0);
        for pair in found.windows(2) {
            let end = pair[0].1 + pair[0].2;
            assert!(pair[1].1 == end || (pair[1].1 == 0 && end + pair[1].2 > 100_000));
        }
    }

    #[test]
    fn blocks_that_come_once_come_once_in_each_round() {
        let extents = extents();
        let found = rows(source(&extents, json!({"once": true, "bytes": 22 * 4096}), 0.0), 1);
        assert_eq!(found.len(), 22);
        for round in found.chunks(11) {
            let mut seen: Vec<_> = round.iter().map(|row| (row.0, row.1)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 11);
        }
        assert_ne!(found[..11], found[11..]);
    }

    #[test]
    fn requests_of_several_sizes_end_before_a_block_that_came_already() {
        let sizes =
            json!([{"share": 60, "low": 4096, "high": 4096}, {"share": 40, "low": 65536, "high": 65536}]);
        let bytes = 64 << 20;
        let all = json!({"sizes": sizes, "once": true, "fit": "redraw", "bytes": bytes});
        let found = rows(source(&one(bytes), all, 0.0), 5);
        let mut seen = vec![0u8; (bytes / 4096) as usize];
        for (_, offset, size) in &found {
            (offset / 4096..(offset + size) / 4096).for_each(|block| seen[block as usize] += 1);
        }
        assert!(seen.iter().all(|count| *count == 1));
        // fio's own requests have 16,124 bytes on average, and 64 % of them the smallest size.
        let mean = bytes as f64 / found.len() as f64;
        assert!((mean / 16_124.0 - 1.0).abs() < 0.03, "{mean}");
        let small = found.iter().filter(|row| row.2 == 4096).count() as f64 / found.len() as f64;
        assert!((small - 0.64).abs() < 0.02, "{small}");
    }

    #[test]
    fn a_size_that_does_not_fit_is_drawn_again() {
        let sizes =
            json!([{"share": 50, "low": 4096, "high": 4096}, {"share": 50, "low": 65536, "high": 65536}]);
        let all = json!({"sizes": sizes, "fit": "redraw", "bytes": 100 << 20});
        let found = rows(source(&one(70 << 10), all, 0.0), 14);
        assert!(found.iter().all(|(_, offset, size)| offset + size <= 68 << 10));
        // Large ones fit at two places of seventeen, half of the time.
        let large = found.iter().filter(|row| row.2 == 65536).count() as u64;
        fits(&[large, found.len() as u64 - large], &[1.0 / 17.0, 16.0 / 17.0]);
        let small = json!({"sizes": sizes, "fit": "redraw", "sequential": true, "bytes": 300 << 10});
        let found = rows(source(&one(300 << 10), small, 0.0), 1);
        assert_eq!(found.iter().map(|row| row.2).sum::<u64>(), 300 << 10);
        assert!(found.windows(2).all(|pair| pair[1].1 == pair[0].1 + pair[0].2));
    }

    #[test]
    fn reads_and_writes_ascend_apart() {
        let mut source = source(&one(40960), json!({"reads": 0.5, "sequential": true, "apart": true}), 0.0);
        let (mut batch, mut next) = (Batch::default(), [0, 0]);
        source.next(&mut batch).unwrap();
        for i in 0..batch.len() {
            let place = &mut next[batch.op[i] as usize];
            assert_eq!(batch.offset[i], *place);
            *place = (*place + 4096) % 40960;
        }
    }

    #[test]
    fn a_rate_of_bytes_makes_a_request_due_when_those_before_it_are_moved() {
        let sizes =
            json!([{"share": 50, "low": 4096, "high": 4096}, {"share": 50, "low": 65536, "high": 65536}]);
        let mut source = source(&one(1 << 30), json!({"sizes": sizes, "byte_rate": 4_096_000.0}), 0.0);
        let (mut batch, mut moved) = (Batch::default(), 0);
        for _ in 0..2 {
            source.next(&mut batch).unwrap();
            for i in 0..batch.len() {
                // Seconds are fractions, cut off to nanoseconds.
                assert!((batch.time[i] - moved * 1_000_000 / 4096).abs() <= 1);
                moved += batch.size[i];
            }
        }
    }

    #[test]
    fn some_requests_follow_the_one_before() {
        let found = rows(source(&one(1 << 40), json!({"follow": 0.75}), 0.0), 30);
        let follow = found.windows(2).filter(|pair| pair[1].1 == pair[0].1 + pair[0].2).count() as u64;
        fits(&[follow, found.len() as u64 - 1 - follow], &[0.75, 0.25]);
    }

    #[test]
    fn too_small_a_place_is_none() {
        let arrivals = || Arrivals::new(0.0, &loadstone_plan::Arrival::Constant, 1);
        let source = |sizes| {
            let all = json!({"kind": "uniform", "reads": 1.0, "size": 512, "sizes": sizes});
            serde_json::from_value::<Source>(all).unwrap()
        };
        let large = json!([{"share": 1, "low": 512, "high": 512}, {"share": 1, "low": 8192, "high": 8192}]);
        assert!(Uniform::new(&source(large), 1, 1, &one(8191), arrivals()).is_none());
        assert!(Uniform::new(&source(json!([])), 1, 1, &one(8191), arrivals()).is_some());
        assert!(Uniform::new(&source(json!([])), 1, 1, &one(511), arrivals()).is_none());
    }
}
