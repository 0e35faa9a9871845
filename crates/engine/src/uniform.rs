//! The synthetic source: aligned requests, random or ascending, without end.

use crate::arrival::Arrivals;
use crate::draw::{below, unit};
use crate::skew::Blocks;
use loadstone_plan::{Extent, Row, Skew, Source};
use loadstone_trace::{Batch, NONE, Requests, Result};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Rows per batch, as many as a block of the engine.
const ROWS: usize = 1024;

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
    /// What is more than requests of one size, all alike or in order.
    varied: Option<Varied>,
}

/// Several sizes, hot blocks, or runs.
struct Varied {
    sizes: Sizes,
    skew: Blocks,
    /// Share of the requests that begin where the one before them ended.
    follow: f64,
    /// Bytes of each extent.
    bytes: Vec<u64>,
    /// Extent and offset at which the last request ended.
    end: (usize, u64),
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
        let Source::Uniform { reads, size, sizes, sequential, follow, skew, .. } = source else {
            return None;
        };
        let most = sizes.iter().map(|row| row.high as u64).max().unwrap_or(*size).max(*size);
        let used: Vec<_> = extents.iter().filter(|e| e.size >= most).collect();
        let extents: Vec<_> = used.iter().map(|e| (e.object, e.size / size)).collect();
        let blocks = extents.iter().map(|e| e.1).sum();
        if blocks == 0 {
            return None;
        }
        let plain = sizes.is_empty() && *follow == 0.0 && matches!(skew, Skew::Uniform);
        let varied = if plain {
            None
        } else {
            Some(Varied {
                sizes: Sizes::new(sizes, *size),
                skew: Blocks::new(skew, blocks, place_seed)?,
                follow: if *sequential { 1.0 } else { *follow },
                bytes: used.iter().map(|e| e.size).collect(),
                end: (0, 0),
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
            varied,
        })
    }

    #[inline(always)]
    fn is_read(&mut self) -> bool {
        self.reads > u64::from(u32::MAX) || (self.reads > 0 && self.random.next_u64() >> 32 < self.reads)
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
        let mut block = if self.sequential {
            let block = self.issued;
            self.issued = if block + 1 < self.blocks { block + 1 } else { 0 };
            block
        } else {
            below(&mut self.random, self.blocks)
        };
        let mut extent = 0;
        while extent + 1 < self.extents.len() && block >= self.extents[extent].1 {
            block -= self.extents[extent].1;
            extent += 1;
        }
        (extent, block, self.is_read())
    }

    /// A batch of requests of one size.
    fn alike(&mut self, batch: &mut Batch) {
        for _ in 0..ROWS {
            let (extent, block, read) = self.pick();
            batch.op.push(u8::from(!read));
            batch.object.push(self.extents[extent].0);
            batch.offset.push((block * self.size) as i64);
        }
        batch.size.resize(ROWS, self.size as i64);
    }

    /// A batch of all others.
    fn varied(&mut self, batch: &mut Batch, varied: &mut Varied) {
        for _ in 0..ROWS {
            let size = varied.sizes.draw(&mut self.random);
            let follows =
                varied.follow >= 1.0 || (varied.follow > 0.0 && unit(&mut self.random) < varied.follow);
            let (extent, offset) = if follows {
                let (mut extent, mut offset) = varied.end;
                if offset + size > varied.bytes[extent] {
                    (extent, offset) = ((extent + 1) % varied.bytes.len(), 0);
                }
                (extent, offset)
            } else {
                let mut block = varied.skew.draw(&mut self.random);
                let mut extent = 0;
                while block >= self.extents[extent].1 && extent + 1 < self.extents.len() {
                    block -= self.extents[extent].1;
                    extent += 1;
                }
                // One that would cross the end is moved back.
                let last = (varied.bytes[extent] - size) / self.size;
                (extent, block.min(last) * self.size)
            };
            varied.end = (extent, offset + size);
            let read = self.is_read();
            batch.op.push(u8::from(!read));
            batch.object.push(self.extents[extent].0);
            batch.offset.push(offset as i64);
            batch.size.push(size as i64);
        }
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
        self.arrivals.fill(&mut batch.time, ROWS)?;
        match self.varied.take() {
            None => self.alike(batch),
            Some(mut varied) => {
                self.varied(batch, &mut varied);
                self.varied = Some(varied);
            }
        }
        batch.latency.resize(ROWS, NONE);
        batch.flags.resize(ROWS, 0);
        batch.actor.resize(ROWS, 0);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::tests::fits;
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
