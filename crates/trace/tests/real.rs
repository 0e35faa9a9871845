//! Real traces beside the project, against what other programs say of them.

mod common;

use common::{read, shared};
use loadstone_trace::{NONE, Op, OpenOptions, flag};
use std::io::Read;

fn text_of(path: &std::path::Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    text
}

/// A queue event of blkparse's text: time, first sector, sectors, rwbs.
fn queued(text: &str) -> Vec<(i64, u64, u64, String)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.len() < 7 || fields[5] != "Q" || !fields[0].contains(',') {
            continue;
        }
        let (seconds, fraction) = fields[3].split_once('.').unwrap();
        let time = seconds.parse::<i64>().unwrap() * 1_000_000_000 + fraction.parse::<i64>().unwrap();
        // A flush has no place: "Q FWS [comm]".
        let place = fields
            .get(8)
            .filter(|plus| **plus == "+")
            .map(|_| (fields[7].parse().unwrap(), fields[9].parse().unwrap()));
        let (sector, sectors) = place.unwrap_or((0, 0));
        found.push((time, sector, sectors, fields[6].to_string()));
    }
    found
}

fn same_as_blkparse(capture: &str, text: &str, expected: usize) {
    let (all, info) = read(&shared(capture), &OpenOptions::default()).unwrap();
    let mut theirs = queued(text);
    theirs.sort_by_key(|row| row.0);
    let mut ours: Vec<_> = (0..all.len())
        .map(|i| {
            let mut rwbs = String::new();
            let flags = all.flags[i];
            let op = Op::from_code(all.op[i]).unwrap();
            if op == Op::Flush || flags & flag::PREFLUSH != 0 {
                rwbs.push('F');
            }
            rwbs.push(match op {
                Op::Read => 'R',
                Op::Discard => 'D',
                _ => 'W',
            });
            for (bit, letter) in
                [(flag::FUA, 'F'), (flag::READAHEAD, 'A'), (flag::SYNC, 'S'), (flag::META, 'M')]
            {
                if flags & bit != 0 {
                    rwbs.push(letter);
                }
            }
            let known = |v: i64| if v == NONE { 0 } else { v as u64 };
            (all.time[i], known(all.offset[i]) / 512, known(all.size[i]) / 512, rwbs)
        })
        .collect();
    // blkparse keeps no order among events of one time on different CPUs.
    ours.sort();
    theirs.sort();
    assert_eq!(ours.len(), expected);
    assert_eq!(ours, theirs);
    assert_eq!((info.counts.lost, info.counts.unfinished), (0, 0));
    assert!(all.latency.iter().all(|&l| l != NONE && l >= 0));
}

#[test]
#[ignore = "needs ../shared/traces"]
fn loop0_is_what_blkparse_says() {
    let path = shared("blktrace/loop0.blkparse.txt.gz");
    same_as_blkparse("blktrace/loop0", &text_of(&path), 106_099);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn a_file_whose_name_says_another_cpu_is_read() {
    let path = shared("blktrace/sample.blkparse.txt");
    same_as_blkparse("blktrace/sample.blktrace.0", &std::fs::read_to_string(path).unwrap(), 963);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn spc_excerpts() {
    let path = shared("spc/dtrs.spc");
    let (all, info) = read(&path, &OpenOptions::default()).unwrap();
    let reads = all.op.iter().filter(|&&op| op == Op::Read as u8).count();
    assert_eq!((all.len(), info.objects.len()), (127_043, 1));
    assert_eq!((100.0 * reads as f64 / all.len() as f64).round(), 89.0);
    let (all, info) = read(&shared("spc/websearch-small.spc"), &OpenOptions::default()).unwrap();
    let writes = all.op.iter().filter(|&&op| op == Op::Write as u8).count();
    assert_eq!((all.len(), writes, info.objects.len()), (24_783, 4, 6));
}

#[test]
#[ignore = "needs ../shared/traces"]
fn msr_excerpt() {
    let path = shared("msr/msr-cambridge1-sample.csv");
    let (all, info) = read(&path, &OpenOptions::default()).unwrap();
    assert_eq!((all.len(), info.format.as_str(), info.objects[0].name.as_str()), (1000, "msr", "hm.0"));
    assert_eq!(all.time.last().copied().unwrap() / 1_000_000_000, 127);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn vscsi_is_its_csv_twin() {
    let path = shared("cloudphysics/cloudPhysicsIO.vscsi");
    let (all, info) = read(&path, &OpenOptions::default()).unwrap();
    let csv = std::fs::read_to_string(shared("cloudphysics/cloudPhysicsIO.csv")).unwrap();
    assert_eq!(all.len(), 113_872);
    assert_eq!(info.counts.reordered, 0);
    let mut zero = None;
    for (row, line) in csv.lines().skip(1).enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        // The twin's time is in whole seconds, truncated; the trace's own origin is unknown.
        let seconds: i64 = fields[1].parse().unwrap();
        let shift = *zero.get_or_insert(seconds);
        assert!((all.time[row] / 1_000_000_000 - (seconds - shift)).abs() <= 1, "line {}", row + 2);
        let read = matches!(fields[2], "28" | "88" | "a8" | "8");
        assert_eq!(all.op[row], u8::from(!read), "line {}", row + 2);
        assert_eq!(all.size[row], fields[3].parse::<i64>().unwrap());
        assert_eq!(all.offset[row], fields[4].parse::<i64>().unwrap() * 512);
    }
}
