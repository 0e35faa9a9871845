//! Streams that models are fitted to, and what reads them.

// Each test file uses some of it.
#![allow(dead_code)]

use loadstone_model::{FitOptions, Sampler};
use loadstone_trace::{Batch, NONE, Requests, Result};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Requests from memory.
pub struct Memory(pub Vec<Batch>);

impl Requests for Memory {
    fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        match self.0.is_empty() {
            true => Ok(false),
            false => {
                *batch = self.0.remove(0);
                Ok(true)
            }
        }
    }
}

/// A stream with two kinds of phase: sequential large reads, and small random writes with flushes.
pub fn stream(seed: u64, requests: usize) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut batches = Vec::new();
    let (mut time, mut end) = (0i64, [0i64; 2]);
    let mut left = requests;
    while left > 0 {
        let mut b = Batch::default();
        for _ in 0..left.min(1000) {
            let sequential = (time / 10_000_000_000) % 2 == 0;
            let object = u32::from(rng.random_bool(0.3));
            let extent: i64 = if object == 0 { 1 << 34 } else { 1 << 30 };
            let flush = !sequential && rng.random_bool(0.05);
            let size = if sequential { 65536 } else { 512 << rng.random_range(0..6) };
            let slot = &mut end[object as usize];
            if !sequential || *slot + size > extent || rng.random_bool(0.1) {
                *slot = rng.random_range(0..(extent - size) / 512) * 512;
            }
            b.time.push(time);
            b.op.push(if flush { 2 } else { u8::from(!sequential) });
            b.object.push(object);
            b.offset.push(if flush { NONE } else { *slot });
            b.size.push(if flush { NONE } else { size });
            if !flush {
                *slot += size;
            }
            b.latency.push(NONE);
            b.flags.push(0);
            b.actor.push(0);
            let mean = if sequential { 500_000.0 } else { 2_000_000.0 };
            time += (-(1.0 - rng.random::<f64>()).ln() * mean) as i64;
        }
        left -= b.len();
        batches.push(b);
    }
    batches
}

pub fn whole(sampler: &mut Sampler) -> Vec<Batch> {
    let (mut all, mut batch) = (Vec::new(), Batch::default());
    while sampler.next(&mut batch).unwrap() {
        all.push(batch.clone());
    }
    all
}

pub fn options() -> FitOptions {
    FitOptions { window_ns: Some(1_000_000_000), ..FitOptions::default() }
}

/// A copy that reads and writes in fives, a log, and a table whose pages come back.
pub fn copies(requests: usize) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut b = Batch::default();
    let (mut from, mut to, mut log) = (1i64 << 30, 2i64 << 30, 3i64 << 30);
    let pages: Vec<i64> = (0..40).map(|_| rng.random_range(0..1 << 17) * 4096 + 512).collect();
    let mut push = |op, offset, size| {
        let time = b.time.len() as i64 * 1_000_000;
        push(&mut b, time, op, offset, size);
        b.time.len()
    };
    loop {
        for _ in 0..5 {
            push(0, from, 65536);
            from += 65536;
        }
        for _ in 0..5 {
            push(1, to, 65536);
            to += 65536;
        }
        push(1, log, 4096);
        log += 4096;
        if push(1, pages[rng.random_range(0..pages.len())], 4096) >= requests {
            return vec![b];
        }
    }
}

/// A cache of pages that is written back by offset, some of them each time, again and again.
pub fn sweeps(times: usize, pages: i64) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(31);
    let mut b = Batch::default();
    for _ in 0..times {
        let mut page = rng.random_range(0..8);
        while page < pages {
            let time = b.time.len() as i64 * 100_000;
            push(&mut b, time, 1, (1 << 30) + page * 4096, 4096);
            page += rng.random_range(2..9);
        }
    }
    vec![b]
}

/// Reads that come in tens, with pauses of 20 to 160 ms between, and now and then four times as long ones.
pub fn pauses(requests: usize) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(41);
    let (mut b, mut time) = (Batch::default(), 0);
    for i in 0..requests {
        push(&mut b, time, 0, rng.random_range(0..1 << 20) * 4096, 4096);
        let slow = i / 2000 % 2 == 1;
        let pause = if slow { 80e6 } else { 20e6 } * 8f64.powf(rng.random::<f64>());
        time += if i % 10 == 9 { pause as i64 } else { 100_000 };
    }
    vec![b]
}

/// Pages that are written over and over, a copy that is read again, and the pages again: so many requests each.
pub fn interrupted(requests: usize) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(51);
    let pages: Vec<i64> = (0..60).map(|_| rng.random_range(0..1 << 18) * 4096 + 512).collect();
    let (mut b, mut time) = (Batch::default(), 0);
    for part in 0..3 {
        for i in 0..requests as i64 {
            if part == 1 {
                let at = i / 2 % (requests as i64 / 4) * 65536;
                push(&mut b, time, (i % 2) as u8, (2 << 30) + i % 2 * (2 << 30) + at, 65536);
                time += 200_000;
            } else {
                push(&mut b, time, 1, pages[rng.random_range(0..pages.len())], 4096);
                time += 5_000_000;
            }
        }
    }
    vec![b]
}

/// Adds a request of object 0.
pub fn push(b: &mut Batch, time: i64, op: u8, offset: i64, size: i64) {
    b.time.push(time);
    b.op.push(op);
    b.object.push(0);
    b.offset.push(offset);
    b.size.push(size);
    b.latency.push(NONE);
    b.flags.push(0);
    b.actor.push(0);
}

/// Blocks of two seconds, of which every second one writes much more.
pub fn mixed(blocks: i64, requests: i64) -> Vec<Batch> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(21);
    let mut b = Batch::default();
    for i in 0..blocks * requests {
        let writes = if i / requests % 2 == 0 { 0.2 } else { 0.7 };
        let op = u8::from(rng.random_bool(writes));
        push(&mut b, i * 2_000_000_000 / requests, op, rng.random_range(0..1 << 18) * 4096, 4096);
    }
    vec![b]
}
