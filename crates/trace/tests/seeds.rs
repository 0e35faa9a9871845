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

/// Numbers at the ends of their types, in place of some bytes of each seed, whatever they mean there.
#[test]
fn absurd_numbers_in_seeds_are_read_or_refused() {
    const NUMBERS: [u64; 10] = [
        0,
        1,
        (1 << 31) - 1,
        1 << 31,
        u32::MAX as u64 - 1,
        u32::MAX as u64,
        1 << 62,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    let seeds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds"));
    let mut state = 1u64;
    let mut dice = |most: usize| {
        // Marsaglia's xorshift, so that every run does the same.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most as u64) as usize
    };
    for target in ["right", "vscsi", "srt", "pcap", "oracle-general"] {
        let folder = std::fs::read_dir(seeds.join(target.replace('-', "_"))).unwrap();
        let mut files: Vec<_> = folder.map(|e| e.unwrap().path()).collect();
        files.sort();
        for seed in files.iter().map(|f| std::fs::read(f).unwrap()).filter(|seed| seed.len() > 16) {
            for _ in 0..150 {
                let mut bytes = seed.clone();
                for _ in 0..1 + dice(3) {
                    let width = [1, 2, 4, 8][dice(4)];
                    let at = 1 + dice(bytes.len() - 1 - width);
                    let number = NUMBERS[dice(NUMBERS.len())];
                    let number = if dice(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
                    let from = if number[0] == 0 { 8 - width } else { 0 };
                    bytes[at..at + width].copy_from_slice(&number[from..from + width]);
                }
                let _ = exercise(target, &bytes);
            }
        }
    }
}

#[test]
fn every_table_is_read_or_refused() {
    let seeds = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/table"));
    let mut whole = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        let found = loadstone_trace::table::read(std::fs::File::open(&path).unwrap());
        if path.ends_with("long-dictionary.parquet") {
            // Its dictionary of some bytes took gigabytes.
            let told = found.unwrap_err().to_string();
            assert!(told.contains("more values than bytes"), "{told}");
        } else {
            whole += usize::from(found.is_ok_and(|columns| !columns.is_empty()));
        }
    }
    assert_eq!(whole, 4);
}
