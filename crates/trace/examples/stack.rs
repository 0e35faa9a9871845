//! How fast LRU stacks are followed, without reading.
//!
//!     cargo run --release -p loadstone-trace --example stack -- TRACE [ROUNDS]

use loadstone_trace::lru::{Stack, blocks};
use loadstone_trace::{Batch, OpenOptions, Requests, Result};
use std::path::PathBuf;
use std::time::Instant;

/// Blocks kept by a sampled stack, as `model check` keeps them.
const KEPT: usize = 1 << 18;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().unwrap_or_else(|| "examples/loop0.parquet".into()));
    let rounds: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(10);
    let mut reader = loadstone_trace::open(&[path], &OpenOptions::default())?;
    let (mut batches, mut batch) = (Vec::new(), Batch::default());
    while reader.next(&mut batch)? {
        batches.push(batch.clone());
    }
    let requests: u64 = batches.iter().map(|b| b.len() as u64).sum::<u64>() * rounds;
    let rows = |b: &Batch| -> u64 {
        (0..b.len()).map(|i| blocks(b.op[i], b.offset[i], b.size[i]).count() as u64).sum()
    };
    let updates: u64 = batches.iter().map(rows).sum::<u64>() * rounds;
    for (name, mut stack) in [("exact", Stack::exact()), ("sampled", Stack::sampled(KEPT))] {
        let begun = Instant::now();
        for _ in 0..rounds {
            batches.iter().for_each(|batch| stack.add(batch));
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{name}: {updates} block updates of {requests} requests, {:.2} million updates/s, {:.2} million requests/s",
            updates as f64 / seconds / 1e6,
            requests as f64 / seconds / 1e6
        );
    }
    Ok(())
}
