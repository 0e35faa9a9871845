//! Every seed of the fuzzer is read to its end: no panic, no broken promise.

use loadstone_trace::exercise::exercise;
use std::path::Path;

#[test]
fn every_seed_is_read_or_refused() {
    let seeds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds"));
    let targets = [
        ("spc", "spc"),
        ("msr", "msr"),
        ("vscsi", "vscsi"),
        ("blktrace", "blktrace"),
        ("delimited", "delimited"),
        ("parquet", "parquet"),
        ("compressed", "compressed"),
        ("tables", "tables"),
        ("blkparse", "blkparse"),
        ("tracefs", "tracefs"),
        ("iolog", "iolog"),
        ("fiu", "fiu"),
        ("srt", "srt"),
        ("oracle_general", "oracle-general"),
        ("dataseries", "dataseries"),
        ("nfsdump", "nfsdump"),
        ("pcap", "pcap"),
        ("strace", "strace"),
        ("right", "right"),
    ];
    for (folder, target) in targets {
        let files: Vec<_> =
            std::fs::read_dir(seeds.join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
        let read: Vec<_> = files.iter().map(|f| exercise(target, &std::fs::read(f).unwrap())).collect();
        assert!(read.iter().any(Result::is_ok), "no seed of {target} is a whole trace");
    }
}
