//! Every seed of the fuzzer is read to its end: no panic, no broken promise.

use loadstone_trace::exercise::exercise;
use std::path::Path;

#[test]
fn every_seed_is_read_or_refused() {
    let seeds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds"));
    let targets = ["spc", "msr", "vscsi", "blktrace", "delimited", "parquet", "compressed"];
    for target in targets {
        let files: Vec<_> =
            std::fs::read_dir(seeds.join(target)).unwrap().map(|e| e.unwrap().path()).collect();
        let read: Vec<_> = files.iter().map(|f| exercise(target, &std::fs::read(f).unwrap())).collect();
        assert!(read.iter().any(Result::is_ok), "no seed of {target} is a whole trace");
    }
}
