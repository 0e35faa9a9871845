//! The same trace in several encodings is the same requests, on every field both carry.

mod common;

use common::{format, read, shared};
use loadstone_trace::columns::{At, Column, Columns};
use loadstone_trace::{Batch, NONE, Op, OpenOptions};

fn whole(name: &str, options: &OpenOptions) -> (Batch, loadstone_trace::Info) {
    read(&shared(name), options).unwrap()
}

/// Times on a coarser clock, from the first request.
fn on_clock(all: &Batch, clock: i64) -> Vec<i64> {
    all.time.iter().map(|t| (t - all.time[0]) / clock).collect()
}

#[test]
#[ignore = "needs ../shared/traces"]
fn dtrs_in_spc_mqsim_and_alibaba_form() {
    let (spc, _) = whole("spc/dtrs.spc", &OpenOptions::default());
    let (mqsim, _) = whole("mqsim/DTRS100M.trace", &format("mqsim"));
    let (alibaba, info) = whole("alibaba/dtrs-alibaba.csv", &OpenOptions::default());
    assert_eq!(info.format, "alibaba");
    assert_eq!(info.start_unix_ns, Some(1_577_808_000_000_000_000));
    for (twin, clock) in [(&mqsim, 1), (&alibaba, 1000)] {
        assert_eq!(on_clock(&spc, clock), on_clock(twin, clock));
        assert_eq!(
            (&spc.op, &spc.offset, &spc.size, &spc.object),
            (&twin.op, &twin.offset, &twin.size, &twin.object)
        );
    }
}

#[test]
#[ignore = "needs ../shared/traces"]
fn websearch_in_spc_and_mqsim_form() {
    let (spc, _) = whole("spc/websearch-small.spc", &OpenOptions::default());
    let (mqsim, _) = whole("mqsim/wsrch-small.trace", &format("mqsim"));
    assert_eq!(spc, mqsim);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn cloudphysics_in_its_four_forms() {
    let (vscsi, _) = whole("cloudphysics/cloudPhysicsIO.vscsi", &OpenOptions::default());
    let (csv, info) = whole("cloudphysics/cloudPhysicsIO.csv", &OpenOptions::default());
    assert_eq!(info.format, "vscsi-csv");
    assert_eq!((&vscsi.op, &vscsi.offset, &vscsi.size), (&csv.op, &csv.offset, &csv.size));
    let second = 1_000_000_000;
    // Whole seconds of a clock whose origin is lost: they differ by one at most.
    let near = |twin: &Batch| {
        let pairs = on_clock(&vscsi, second).into_iter().zip(on_clock(twin, second));
        pairs.map(|(a, b)| (a - b).abs()).max() <= Some(1)
    };
    assert!(near(&csv));
    let (oracle, info) = whole("cloudphysics/cloudPhysicsIO.oracleGeneral.bin", &format("oracle-general"));
    assert!(near(&oracle) && info.warnings.iter().any(|w| w.contains("taken as a read")));
    assert_eq!(vscsi.offset, oracle.offset);
    let lines = Columns {
        offset: Some(Column { at: At::Position(0), unit: "sector".into() }),
        every: Some("read".into()),
        rate: Some(16),
        ..Columns::default()
    };
    let options = OpenOptions { columns: Some(lines), ..format("delimited") };
    let (blocks, info) = whole("cloudphysics/cloudPhysicsIO.txt", &options);
    assert_eq!(vscsi.offset, blocks.offset);
    assert_eq!(blocks.time[32], 2 * second);
    assert!(info.warnings.iter().any(|w| w.contains("16 requests per second were assumed")));
}

#[test]
#[ignore = "needs ../shared/traces"]
fn loop0_as_binary_blkparse_and_tracefs() {
    let (binary, of_binary) = whole("blktrace/loop0", &OpenOptions::default());
    for (name, expected) in [("blkparse", "blkparse"), ("tracefs", "tracefs")] {
        let (text, info) = whole(&format!("blktrace/loop0.{name}.txt.gz"), &OpenOptions::default());
        assert_eq!(info.format, expected);
        assert_eq!(info.objects, of_binary.objects);
        assert_eq!((info.counts.lost, info.counts.unfinished), (0, 0));
        // Programs keep no order among events of one time on different CPUs.
        let rows = |all: &Batch, info: &loadstone_trace::Info| {
            let name = |actor: u32| info.actors[actor as usize].name.split(' ').next().unwrap().to_string();
            let mut rows: Vec<_> = (0..all.len())
                .map(|i| {
                    (all.time[i], all.offset[i], all.size[i], all.op[i], all.flags[i], name(all.actor[i]))
                })
                .collect();
            rows.sort();
            rows
        };
        assert_eq!(rows(&binary, &of_binary), rows(&text, &info), "{name}");
        let latencies = |all: &Batch| {
            let mut sum: Vec<_> = all.latency.clone();
            sum.sort_unstable();
            sum
        };
        assert_eq!(latencies(&binary), latencies(&text), "{name}");
    }
}

#[test]
#[ignore = "needs ../shared/traces"]
fn sample_as_binary_and_blkparse() {
    let (binary, _) = whole("blktrace/sample.blktrace.0", &OpenOptions::default());
    let (text, _) = whole("blktrace/sample.blkparse.txt", &OpenOptions::default());
    assert_eq!(binary, text);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn real_samples_of_the_other_tables() {
    for name in ["traces", "additional"] {
        let (all, info) = whole(&format!("systor17/systor17-{name}-sample.csv"), &OpenOptions::default());
        // Nine decimals, of which six mean anything.
        assert_eq!((all.len(), info.format.as_str(), info.clock_ns), (999, "systor17", 1000));
        assert!(info.counts.reordered > 0 && all.latency.iter().all(|l| *l != NONE));
    }
    let (all, info) = whole("tencent/cloud_storage-sample.csv", &format("tencent"));
    assert_eq!((all.len(), info.objects.len()), (50_000, 2_038));
    assert!(info.warnings.iter().any(|w| w.contains("coarse")), "{:?}", info.warnings);
    let spread = OpenOptions { spread_ties: true, ..format("tencent") };
    let (all, info) = whole("tencent/cloud_storage-sample.csv", &spread);
    assert_eq!(all.len(), 50_000);
    // 1,297 requests in the first second and 48,703 in the second, each in even steps.
    let step = |i: usize| all.time[i + 1] - all.time[i];
    assert_eq!((all.time[1297], all.time[49_999] / 1_000_000), (1_000_000_000, 1999));
    assert!((0..1296).all(|i| (step(i) - 1_000_000_000 / 1297).abs() <= 1));
    assert!(info.history.iter().any(|h| h.contains("spread evenly")), "{:?}", info.history);
    assert!(!info.warnings.iter().any(|w| w.contains("coarse")));
    let (all, info) = whole("diskmon/mayun.txt", &OpenOptions::default());
    assert_eq!((all.len(), info.format.as_str()), (24_844, "diskmon"));
    assert_eq!(
        (all.latency[0], all.offset[0], all.size[0], all.op[0]),
        (38_150, 6_194_591 * 512, 32 * 512, 1)
    );
    assert_eq!(info.clock_ns, 15_625_000);
    // Its clock ticks in 1/64 s too, but in whole microseconds.
    let spread = OpenOptions { spread_ties: true, ..OpenOptions::default() };
    let (all, info) = whole("diskmon/sys1.txt", &spread);
    assert_eq!(all.len(), 58_818);
    assert!(info.history.iter().any(|h| h.contains("over 0.015622 s")), "{:?}", info.history);
    let (all, info) = whole("disksim/systemdisk1.ascii", &format("disksim"));
    assert_eq!(
        (all.len(), all.op.iter().filter(|op| **op == 0).count(), info.format.as_str()),
        (27_328, 3_332, "disksim")
    );
    let (all, info) = whole("hfplayer/small-tpch.csv", &OpenOptions::default());
    assert_eq!((all.len(), all.latency[0], info.format.as_str()), (780, 56_910, "hfplayer"));
    let (all, info) = whole("fio-iolog/fio_v3.log", &OpenOptions::default());
    assert_eq!(
        (all.len(), info.format.as_str(), info.objects[0].name.as_str()),
        (41_992, "iolog", "/data/mix.0.0")
    );
    assert_eq!((all.time[0], all.offset[0], all.size[0]), (2_578_000, 60_088_320, 8192));
    let (all, info) = whole("hp-srt/hourly.03126.srt.bz2", &OpenOptions::default());
    assert_eq!((all.len(), info.objects.len(), info.format.as_str()), (43_000, 77, "srt"));
}

#[test]
#[ignore = "needs ../shared/traces"]
fn a_damaged_file_is_reported_to_the_line() {
    let path = shared("diskmon/p2pdownload.trace");
    let message = read(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(message.contains("line 1") && message.contains("beyond any device"), "{message}");
    let lenient = OpenOptions { max_damaged: 10, ..OpenOptions::default() };
    let (all, info) = read(&path, &lenient).unwrap();
    assert_eq!((all.len() as u64 + info.counts.damaged, info.counts.damaged), (11_055, 2));
}

#[test]
#[ignore = "needs ../shared/traces"]
fn tables_of_numbers_alone_must_be_named() {
    let path = shared("mqsim/wsrch-small.trace");
    let message = read(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(message.contains("`format` mqsim") && message.contains("`format` disksim"), "{message}");
}

#[test]
#[ignore = "needs ../shared/traces"]
fn h03126_as_srt_and_as_dataseries() {
    let (srt, of_srt) = whole("hp-srt/hourly.03126.srt.bz2", &OpenOptions::default());
    let (ds, of_ds) = whole("dataseries/h03126.ds-littleend", &OpenOptions::default());
    assert_eq!((of_ds.format.as_str(), ds.len()), ("dataseries", 43_000));
    assert_eq!(srt, ds);
    assert_eq!((of_srt.objects, of_srt.actors), (of_ds.objects, of_ds.actors));
    assert_eq!(of_srt.start_unix_ns, of_ds.start_unix_ns);
}

#[test]
#[ignore = "needs ../shared/traces"]
fn nfs_messages_in_dataseries() {
    for name in ["nfs-2.set-0.20k.ds", "nfs.set6.20k.ds"] {
        let (all, info) = whole(&format!("dataseries/{name}"), &OpenOptions::default());
        // One row says how the file was packed.
        assert_eq!(all.len() as u64 + info.counts.other, 20_001, "{name}");
        let answered = all.latency.iter().filter(|l| **l != NONE).count();
        assert!(answered as f64 > 0.95 * all.len() as f64, "{name}: {answered} of {}", all.len());
        let placed = (0..all.len()).filter(|&i| all.op[i] < 2 && all.offset[i] != NONE).count();
        let data = all.op.iter().filter(|op| **op < 2).count();
        assert!(placed as f64 > 0.95 * data as f64, "{name}: {placed} of {data}");
        // A capture of less than a minute whose replies take milliseconds.
        let span = all.time.last().unwrap();
        assert!((1_000_000..60_000_000_000).contains(span), "{name}: {span}");
        assert_eq!(
            info.start_unix_ns.unwrap() / 1_000_000_000,
            if name.contains("nfs-2") { 1_170_089_647 } else { 1_063_931_188 }
        );
    }
}

#[test]
#[ignore = "needs ../shared/traces"]
fn damaged_dataseries_are_salvaged() {
    // Its type makes no requests; what matters here is that the file is opened and its types and damage are named.
    let message = read(&shared("dataseries/recovery/original.ds"), &OpenOptions::default()).unwrap_err();
    assert!(message.to_string().contains("Trace::Network::IP"), "{message}");
    let message = read(&shared("dataseries/recovery/corrupt-stomp-beginning.ds"), &OpenOptions::default());
    assert!(message.unwrap_err().to_string().contains("byte 40"));
    for name in ["100-zeros-at-50K", "stomp-end", "two-extents"] {
        let path = shared(&format!("dataseries/recovery/corrupt-{name}.ds"));
        let message = read(&path, &OpenOptions::default()).unwrap_err().to_string();
        assert!(message.contains(", byte ") && message.contains("Trace::Network::IP"), "{message}");
        let salvage = OpenOptions { salvage: true, ..OpenOptions::default() };
        let message = read(&path, &salvage).unwrap_err().to_string();
        assert!(message.contains("no requests can be made"), "{message}");
    }
}

#[test]
#[ignore = "needs ../shared/traces"]
fn nfsdump_calls_and_replies() {
    // Lines of several traces one after the other.
    let sorted = OpenOptions { sort: true, ..OpenOptions::default() };
    let (all, info) = whole("nfsdump/ellard-raw-data.txt", &sorted);
    assert_eq!((info.format.as_str(), all.len() as u64 + info.counts.other), ("nfsdump", 176));
    let answered = all.latency.iter().filter(|l| **l != NONE).count();
    assert_eq!((all.len(), answered), (79, 66));
}

#[test]
#[ignore = "needs ../shared/traces"]
fn nfs_in_captures_of_packets() {
    let (all, info) = whole("nfs-pcap/eth-ipv6-tcp-nfsv3-bad_alloc.pcap", &OpenOptions::default());
    // As many calls and replies as another program counted, each with a transaction id of its own.
    assert_eq!((info.format.as_str(), all.len()), ("pcap", 28_181));
    // Two packets are made wrong on purpose; what follows them is found again.
    assert!(info.counts.lost <= 2 && info.counts.unfinished <= 2, "{:?}", info.counts);
    let (all, info) = whole("nfs-pcap/eth-ipv4-udp-nfsv3-dup-retransm.pcap", &OpenOptions::default());
    assert!(all.len() > 10 && info.warnings.iter().any(|w| w.contains("sent again")), "{:?}", info.warnings);
    let v4 = read(&shared("nfs-pcap/eth-ipv4-tcp-nfsv41.pcap"), &OpenOptions::default());
    assert!(v4.unwrap_err().to_string().contains("version 4"));
}

#[test]
#[ignore = "needs ../shared/traces"]
fn strace_follows_descriptors_and_positions() {
    let (all, info) = whole("strace/mixed.strace.gz", &OpenOptions::default());
    let count = |op: Op| all.op.iter().filter(|o| **o == op as u8).count();
    // Lines of each call in the text, those joined from two once.
    let expected = [
        (Op::Datasync, 4804),
        (Op::CopyRange, 2402),
        (Op::Readdir, 319),
        (Op::Setattr, 1203 + 1 + 1),
        (Op::Mkdir, 31),
        (Op::Rmdir, 31),
        (Op::Remove, 1233 + 1206 - 31),
        (Op::Sync, 40),
    ];
    for (op, requests) in expected {
        assert_eq!(count(op), requests, "{}", op.name());
    }
    // All 77,743 and 34,781 at offsets of their own are on files; other reads and writes partly on pipes.
    assert!(count(Op::Write) > 77_743 && count(Op::Write) < 77_743 + 2317);
    assert!(count(Op::Read) > 34_781 && count(Op::Read) < 34_781 + 5821);
    assert_eq!((info.format.as_str(), info.layer.as_str(), info.counts.unfinished), ("strace", "file", 0));
    assert!(
        (0..all.len()).filter(|&i| all.op[i] < 2).all(|i| all.offset[i] != NONE && all.latency[i] != NONE)
    );
    let file = |i: usize| info.objects[all.object[i] as usize].name.as_str();
    // A database synchronises its journals and their directory.
    let mut synced: Vec<_> = (0..all.len()).filter(|&i| all.op[i] == Op::Datasync as u8).map(file).collect();
    synced.sort_unstable();
    synced.dedup();
    assert_eq!(synced, ["/data/w", "/data/w/t.db", "/data/w/t.db-journal"]);
}
