//! Measures how fast content is made on one thread, beside other sources of random bytes; one line of JSON each.
//!
//!     taskset -c 0 cargo run --release -p loadstone-content --example speed -- 64

use loadstone_content::{Content, Wanted};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(256);
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

fn tell(what: &str, unit: usize, megabytes: usize, make: &mut dyn FnMut(u64)) {
    let blocks = ((megabytes << 20) / unit) as u64;
    make(0);
    let begin = Instant::now();
    (0..blocks).for_each(&mut *make);
    let gigabytes = (blocks as usize * unit) as f64 / 1e9;
    println!(
        r#"{{"what": "{what}", "unit": {unit}, "GB/s": {:.3}}}"#,
        gigabytes / begin.elapsed().as_secs_f64()
    );
}
