//! Measures how fast content is made on one thread, beside other sources of random bytes; one line of JSON each.
//!
//!     taskset -c 0 cargo run --release -p loadstone-content --example speed -- 64

use loadstone_content::{ChunkMaker, Content, Cutter, Wanted};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::hint::black_box;
use std::time::Duration;

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(256);
    let cutter = Cutter { min: 2 << 10, average: 8 << 10, max: 64 << 10 };
    for (what, cutter) in [("FastCDC", Some(cutter)), ("fixed", None)] {
        let maker = ChunkMaker::new(1, cutter).expect("these sizes can be had");
        for ratio in [1.0, 1.5, 2.0, 4.0] {
            let mut bytes = vec![0; 8 << 10];
            tell(&format!("chunks, {what}, compress {ratio}"), bytes.len(), megabytes, &mut |i| {
                maker.fill(i as u32, ratio, &mut bytes);
                black_box(&bytes);
            });
        }
    }
    for unit in [4 << 10, 128 << 10] {
        for (compress, dedupe) in [(1.0, 1.0), (1.0, 2.0), (1.5, 1.0), (2.0, 1.0), (4.0, 1.0)] {
            let content = Content::new(1, &Wanted { dedupe, compress, unit }, 1 << 20);
            let content = content.expect("these ratios can be had");
            let (mut bytes, mut scratch) = (vec![0; unit], Vec::new());
            tell(&format!("content, dedupe {dedupe}, compress {compress}"), unit, megabytes, &mut |i| {
                content.fill(0, 0, i * unit as u64, &mut bytes, &mut scratch);
                black_box(&bytes);
            });
        }
        let mut bytes = vec![0; unit];
        tell("xoshiro256++, seeded for each block", unit, megabytes, &mut |i| {
            Xoshiro256PlusPlus::seed_from_u64(i).fill_bytes(&mut bytes);
            black_box(&bytes);
        });
        tell("getrandom", unit, megabytes / 8, &mut |_| {
            getrandom::fill(&mut bytes).expect("the kernel has random bytes");
            black_box(&bytes);
        });
    }
}

/// Time of this thread on a CPU (`/proc/PID/schedstat`, Linux's Documentation/scheduler/sched-stats.rst), which others do not
/// add to.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
}

fn tell(what: &str, unit: usize, megabytes: usize, make: &mut dyn FnMut(u64)) {
    let blocks = ((megabytes << 20) / unit) as u64;
    make(0);
    let begin = on_cpu();
    (0..blocks).for_each(&mut *make);
    let gigabytes = (blocks as usize * unit) as f64 / 1e9;
    println!(
        r#"{{"what": "{what}", "unit": {unit}, "GB/s": {:.3}}}"#,
        gigabytes / (on_cpu() - begin).as_secs_f64()
    );
}
