//! The synthetic source: aligned requests of one size, random or ascending, without end.

use crate::arrival::Arrivals;
use loadstone_plan::Extent;
use loadstone_trace::{Batch, NONE, Requests, Result};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Rows per batch, as many as a block of the engine.
const ROWS: usize = 1024;

/// A stream of requests spread evenly over all extents of a worker's map.
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
    issued: u64,
}

impl Uniform {
    /// `extents` must hold at least one block of `size` bytes each; smaller ones are left out.
    pub fn new(
        seed: u64,
        extents: &[Extent],
        size: u64,
        reads: f64,
        sequential: bool,
        arrivals: Arrivals,
    ) -> Uniform {
        let extents: Vec<_> = extents.iter().map(|e| (e.object, e.size / size)).filter(|e| e.1 > 0).collect();
        Uniform {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            size,
            reads: (reads * 4_294_967_296.0) as u64,
            sequential,
            arrivals,
            blocks: extents.iter().map(|e| e.1).sum(),
            extents,
            issued: 0,
        }
    }

    /// Blocks there are to choose from.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }
}

impl Requests for Uniform {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        if self.blocks == 0 {
            return Ok(false);
        }
        for _ in 0..ROWS {
            let mut block = if self.sequential {
                self.issued % self.blocks
            } else {
                // Multiply and shift (Lemire 2019): the bias is below blocks / 2^64.
                ((u128::from(self.random.next_u64()) * u128::from(self.blocks)) >> 64) as u64
            };
            let mut object = 0;
            for (id, blocks) in &self.extents {
                object = *id;
                if block < *blocks {
                    break;
                }
                block -= blocks;
            }
            let read = self.reads > u64::from(u32::MAX)
                || (self.reads > 0 && self.random.next_u64() >> 32 < self.reads);
            batch.time.push(self.arrivals.next());
            batch.op.push(u8::from(!read));
            batch.object.push(object);
            batch.offset.push((block * self.size) as i64);
            self.issued += 1;
        }
        batch.size.resize(ROWS, self.size as i64);
        batch.latency.resize(ROWS, NONE);
        batch.flags.resize(ROWS, 0);
        batch.actor.resize(ROWS, 0);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents() -> Vec<Extent> {
        [(0, 40960), (7, 4096), (9, 100)]
            .map(|(object, size)| Extent { object, target: "t".into(), base: 0, size })
            .to_vec()
    }

    fn evenly(rate: f64) -> Arrivals {
        Arrivals::new(rate, &loadstone_plan::Arrival::Constant, 1)
    }

    #[test]
    fn covers_every_block_of_every_extent_alike() {
        let mut source = Uniform::new(3, &extents(), 4096, 0.7, false, evenly(0.0));
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
        let mut source = Uniform::new(3, &extents(), 4096, 1.0, true, evenly(1000.0));
        let mut batch = Batch::default();
        source.next(&mut batch).unwrap();
        source.next(&mut batch).unwrap();
        assert_eq!(batch.time[4], (ROWS as i64 + 4) * 1_000_000);
        let first = ROWS as i64 % 11;
        let expected = if first == 10 { (7, 0) } else { (0, first * 4096) };
        assert_eq!((batch.object[0], batch.offset[0]), expected);
        assert!(batch.op.iter().all(|op| *op == 0));
    }
}
