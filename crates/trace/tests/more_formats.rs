//! The seeds of the formats that other tools write, and the exact requests they are.

mod common;

use common::{format, read_bytes};
use loadstone_trace::{Batch, Info, NONE, Op, OpenOptions, flag};

fn seed(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../fuzz/seeds/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A table's seed without the byte that chooses it.
fn table(name: &str) -> Vec<u8> {
    seed(&format!("tables/{name}")).split_off(1)
}

/// Time, op, object, offset, size and latency of every request.
type Row = (i64, Op, u32, i64, i64, i64);

fn rows(all: &Batch) -> Vec<Row> {
    let op = |i: usize| Op::from_code(all.op[i]).unwrap();
    (0..all.len())
        .map(|i| (all.time[i], op(i), all.object[i], all.offset[i], all.size[i], all.latency[i]))
        .collect()
}

/// Reads bytes whose format their content shows.
fn told(bytes: Vec<u8>, name: &str) -> (Batch, Info) {
    let (all, info) = read_bytes(bytes, &OpenOptions::default()).unwrap();
    assert_eq!(info.format, name);
    (all, info)
}

fn message(bytes: impl Into<Vec<u8>>, options: &OpenOptions) -> String {
    read_bytes(bytes, options).unwrap_err().to_string()
}

#[test]
fn tables_that_their_content_tells() {
    let (all, info) = told(table("systor.csv"), "systor17");
    assert_eq!(
        rows(&all),
        [
            (0, Op::Write, 0, 4096, 512, 1_000_000),
            (10_701_000, Op::Read, 1, 203_468_398_592, 32_768, 6_475_000),
        ]
        .map(|(t, op, _, o, s, l)| (t, op, u32::from(op == Op::Write), o, s, l))
    );
    assert_eq!((info.counts.reordered, info.counts.other), (1, 1));
    let (all, _) = told(table("hfplayer.csv"), "hfplayer");
    assert_eq!(
        rows(&all),
        [(0, Op::Write, 0, 2048 * 512, 8 * 512, 56_910), (99_750, Op::Read, 1, 4096 * 512, 16 * 512, 10_000)]
    );
    let without_host =
        "#ELAPSED_USECS.D,LUN_SSID.I,OP.I,LBA.I,NBLKS.I,LATENCY_USECS.D\n100.5,1,1,2048,8,56.91\n";
    let (all, info) = told(without_host.into(), "hfplayer");
    assert_eq!(rows(&all), [(0, Op::Write, 0, 2048 * 512, 8 * 512, 56_910)]);
    assert!(info.actors.is_empty() && all.actor == [0]);
    let (all, _) = told(table("vscsi.csv"), "vscsi-csv");
    assert_eq!(
        rows(&all),
        [(0, Op::Write, 0, 64 * 512, 512, NONE), (1_000_000_000, Op::Read, 0, 128 * 512, 4096, NONE)]
    );
    let (all, _) = told(table("diskmon.txt"), "diskmon");
    assert_eq!(
        rows(&all),
        [
            (0, Op::Write, 0, 6194 * 512, 32 * 512, 38_000),
            (250_000_000, Op::Read, 1, 8 * 512, 8 * 512, 1_000_000)
        ]
    );
    let (all, info) = told(table("alibaba.csv"), "alibaba");
    assert_eq!(rows(&all), [(0, Op::Read, 0, 1024, 512, NONE), (100_000, Op::Write, 1, 0, 4096, NONE)]);
    assert_eq!((info.objects[0].name.as_str(), info.objects[1].name.as_str()), ("0", "3"));
}

/// Bytes that are no text went to the terminal as they were.
#[test]
fn a_header_that_is_no_text_is_shown_escaped() {
    let junk: Vec<u8> =
        (0..4000u32).map(|i| (i * 7 % 256) as u8).filter(|c| *c != b'\n').chain(*b"\nx\n").collect();
    for name in ["systor17", "hfplayer", "vscsi-csv"] {
        let error = message(junk.clone(), &format(name));
        assert!(
            error.contains("line 1: ") && error.contains("does not have") && error.len() < 700,
            "{error}"
        );
        assert!(!error.contains(char::is_control), "{error:?}");
    }
    let other = message(&b"#A.I,B.D\n1,2\n"[..], &format("hfplayer"));
    assert!(other.contains("A.I, B.D"), "{other}");
}

#[test]
fn tables_of_numbers_are_read_by_their_names() {
    let named = |name: &str, file: &str| {
        assert!(
            message(table(file), &OpenOptions::default()).contains(&format!("`format` {name}")),
            "{name}"
        );
        rows(&read_bytes(table(file), &format(name)).unwrap().0)
    };
    // The clock of whole seconds goes back by one.
    assert_eq!(
        named("tencent", "tencent.csv"),
        [
            (0, Op::Read, 1, 8 * 512, 16 * 512, NONE),
            (1_000_000_000, Op::Write, 0, 4_247_200 * 512, 128 * 512, NONE)
        ]
    );
    assert_eq!(
        named("mqsim", "mqsim.trace"),
        [
            (0, Op::Read, 0, 280_605_840 * 512, 1024, NONE),
            (97_900_000, Op::Write, 1, 8 * 512, 128 * 512, NONE)
        ]
    );
    assert_eq!(
        named("disksim", "disksim.ascii"),
        [
            (579_500_020, Op::Write, 0, 18_399 * 512, 40 * 512, NONE),
            (579_701_006, Op::Read, 0, 223 * 512, 8 * 512, NONE)
        ]
    );
    // Its milliseconds, read as nanoseconds, made a trace of a moment.
    let wrong = message(table("disksim.ascii"), &format("mqsim"));
    assert!(wrong.contains("line 1: ") && wrong.contains("`format` disksim"), "{wrong}");
    assert!(!message(table("disksim.ascii"), &OpenOptions::default()).contains("mqsim"));
}

/// A last line that was cut within its time was read, and even --salvage refused the file as out of order.
#[test]
fn a_last_line_that_is_cut_within_its_time_is_damage() {
    let line = |us: u64| format!("3,R,1024,512,{}\n", 1_577_808_000_000_000 + us);
    let text = line(46) + &line(100) + &line(5_000_000);
    let salvage = OpenOptions { salvage: true, ..OpenOptions::default() };
    for sort in [false, true] {
        let salvage = OpenOptions { sort, ..salvage.clone() };
        for cut in [2, 10] {
            let (all, info) = read_bytes(&text[..text.len() - cut], &salvage).unwrap();
            assert_eq!((all.time, info.counts.damaged), (vec![0, 54_000], 1));
            assert!(info.warnings[0].contains("line 3: the last line is cut"), "{:?}", info.warnings);
        }
        // Whole, without its end.
        let (all, info) = read_bytes(&text[..text.len() - 1], &salvage).unwrap();
        assert_eq!((all.len(), info.counts.damaged), (3, 0));
        assert!(info.warnings[0].contains("the last line has no end"), "{:?}", info.warnings);
        assert!(read_bytes(text.as_str(), &salvage).unwrap().1.warnings.is_empty());
    }
    assert!(message(&text[..text.len() - 2], &OpenOptions::default()).contains("line 3: time goes back"));
}

#[test]
fn blkparse_text() {
    let (all, info) = told(seed("blkparse/plain.txt"), "blkparse");
    assert_eq!(
        rows(&all),
        [
            (0, Op::Write, 0, 51_200, 4096, 4000),
            (3000, Op::Read, 1, 4096 * 512, 8192, 6000),
            (5000, Op::Flush, 0, NONE, NONE, 5000)
        ]
    );
    assert_eq!((all.flags[0], all.flags[1]), (flag::SYNC, flag::READAHEAD));
    assert_eq!((info.actors[0].name.as_str(), info.actors[1].name.as_str()), ("77 my prog", "78"));
    assert_eq!((info.counts.lost, info.counts.failed), (3, 1));
    let cut = message(seed("blkparse/cut.txt"), &format("blkparse"));
    assert!(cut.contains("line 3") && cut.contains("no "), "{cut}");
}

/// Binary captures count from their first event, whatever it is; their text counted from the first request.
#[test]
fn text_counts_from_the_first_event() {
    let blkparse = "\
  8,0    0        0     5.000000000    77  m   N a note
  8,0    0        1     5.000000100    77  A  WS 100 + 8 <- (8,1) 36
  8,0    0        2     5.000000284    77  Q  WS 100 + 8 [dd]
  8,0    0        3     5.000000400    77  G  WS 100 + 8 [dd]
";
    let tracefs = "\
    dd-77    [000] .....   5.000001: sched_switch: prev_comm=x
    dd-77    [000] .....   5.000002: block_bio_remap: 8,0 WS 100 + 8 <- (8,1) 36
    dd-77    [000] .....   5.000004: block_bio_queue: 8,0 WS 100 + 8 [dd]
";
    for (text, name, expected) in [(blkparse, "blkparse", 184), (tracefs, "tracefs", 2000)] {
        let (all, _) = told(text.as_bytes().to_vec(), name);
        assert_eq!(all.time, [expected], "{name}");
    }
}

/// How much of a CPU's file stands behind damage was not told.
#[test]
fn blktrace_tells_the_bytes_that_were_not_read() {
    let mut file = seed("blktrace/little.blktrace");
    let (mut at, mut last) = (0, 0);
    while at < file.len() {
        last = at;
        at += 48 + usize::from(u16::from_le_bytes([file[at + 46], file[at + 47]]));
    }
    file[last] ^= 0xff;
    file[last + 3] ^= 0xff;
    let salvage = OpenOptions { salvage: true, ..OpenOptions::default() };
    let (_, info) = read_bytes(file.clone(), &salvage).unwrap();
    let told = format!("{} bytes were not read", file.len() - last);
    assert!(info.warnings.iter().any(|warning| warning.contains(&told)), "{:?}", info.warnings);
}

/// Requests whose action or event is garbled vanished among what makes none, and a queue event that was cut
/// behind its sector became a write without a place.
#[test]
fn damaged_events_are_reported_to_the_line() {
    let blkparse = |rest: &str| {
        let event = |n: u32, rest: &str| format!("  8,0    0 {n}  0.00000{n}000    77  {rest}\n");
        event(1, "Q  W 100 + 8 [dd]") + &event(2, rest) + &event(3, "C  W 100 + 8 [0]")
    };
    let tracefs = |rest: &str| {
        let event = |n: u32, rest: &str| format!("    dd-77    [000] .....   100.00000{n}: {rest}\n");
        event(1, "block_bio_queue: 8,0 W 100 + 8 [dd]") + &event(2, rest)
    };
    for (text, what) in [
        (blkparse("Q  W 286400"), "no end of action"),
        (blkparse("Q  W 286400 [dd]"), "no sector"),
        (blkparse("q  W 200 + 8 [dd]"), "unknown action \"q\""),
        (tracefs("block_bio_qXeue: 8,0 W 200 + 8 [dd]"), "unknown event \"block_bio_qXeue\""),
        (
            tracefs("block_bio_queue: 8,0 W 200 + 8 [dd]")
                .replace("    dd-77    [000] .....   100.000002: ", "x "),
            "no event",
        ),
        (tracefs("block_bi"), "unknown event"),
    ] {
        let error = message(text.clone(), &OpenOptions::default());
        assert!(error.contains("line 2: ") && error.contains(what), "{error}");
        let lenient = OpenOptions { max_damaged: 1, ..OpenOptions::default() };
        let (all, info) = read_bytes(text, &lenient).unwrap();
        assert_eq!((all.len(), info.counts.damaged), (1, 1));
    }
}

#[test]
fn tracefs_and_perf_text() {
    let (all, info) = told(seed("tracefs/plain.txt"), "tracefs");
    assert_eq!(
        rows(&all),
        [(0, Op::Write, 0, 51_200, 4096, 4000), (3000, Op::Read, 1, 4096 * 512, 8192, 6000)]
    );
    assert_eq!((info.actors[1].name.as_str(), info.objects[1].name.as_str()), ("78 my-odd prog", "8,2"));
    assert_eq!((info.counts.lost, info.counts.failed), (3, 1));
    // perf pads the names of its events to one width; the second begins with one that makes no request.
    for (name, first) in [("perf.txt", 0), ("perf_padded.txt", 1000)] {
        let (all, info) = told(seed(&format!("tracefs/{name}")), "tracefs");
        let latency = 4000 - first;
        assert_eq!(rows(&all), [(first, Op::Write, 0, 51_200, 4096, latency)], "{name}");
        assert_eq!(info.actors[0].name, "77 my prog", "{name}");
    }
}

#[test]
fn iologs_of_both_versions() {
    let (all, info) = told(seed("iolog/three.log"), "iolog");
    assert_eq!(
        rows(&all),
        [
            (2_578_000, Op::Read, 0, 60_088_320, 8192, NONE),
            (2_600_000, Op::Write, 1, 0, 4096, NONE),
            (2_601_000, Op::Sync, 0, NONE, NONE, NONE),
            (2_602_000, Op::Discard, 1, 4096, 4096, NONE)
        ]
    );
    assert_eq!((info.objects[0].name.as_str(), info.counts.other), ("/data/a file", 3));
    let (all, info) = told(seed("iolog/two.log"), "iolog");
    assert_eq!(
        rows(&all),
        [
            (100_000, Op::Write, 0, 0, 512, NONE),
            // What syncs a device flushes it.
            (150_000, Op::Flush, 0, NONE, NONE, NONE),
            (150_000, Op::Read, 0, 512, 512, NONE)
        ]
    );
    assert!(info.warnings.iter().any(|w| w.contains("no times")), "{:?}", info.warnings);
    assert!(message(seed("iolog/one.log"), &OpenOptions::default()).contains("version 2"));
    let bad = message("fio version 3 iolog\n1 /a jump 0 1\n", &OpenOptions::default());
    assert!(bad.contains("line 2") && bad.contains("\"jump\""), "{bad}");
}

#[test]
fn fiu_keeps_the_fingerprint_of_the_content() {
    let (all, info) = told(seed("fiu/plain.txt"), "fiu");
    assert_eq!(
        rows(&all),
        [(0, Op::Write, 0, 904_265_560 * 512, 4096, NONE), (2000, Op::Read, 1, 4096, 8192, NONE)]
    );
    assert_eq!(all.content, [0x531e_7790_03bb_b1a9, 0xff]);
    assert_eq!((info.actors[1].name.as_str(), info.objects[1].name.as_str()), ("77 my prog", "8,2"));
    assert!(message(seed("fiu/cut.txt"), &format("fiu")).contains("MD5"));
}

#[test]
fn fingerprints_survive_sorting_and_parquet() {
    let late = "3000 77 b 8 16 R 8 2 00000000000000ff00112233445566aa\n1000 4 a 8 8 W 6 0 531e779003bbb1a9ba4a8ae8a5ba3d1a\n";
    let sorted = OpenOptions { sort: true, ..OpenOptions::default() };
    let (all, info) = read_bytes(late, &sorted).unwrap();
    assert_eq!(all.content, [0x531e_7790_03bb_b1a9, 0xff]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let mut writer = loadstone_trace::parquet::Writer::create(&path, false).unwrap();
    writer.write(&all).unwrap();
    writer.finish(info).unwrap();
    assert_eq!(common::read(&path, &OpenOptions::default()).unwrap().0, all);
}

#[test]
fn srt_records() {
    let (all, info) = told(seed("srt/plain.srt"), "srt");
    assert_eq!(
        rows(&all),
        [(0, Op::Read, 0, 8192, 4096, 7_487_000), (1_000_000, Op::Write, 1, 0, 512, NONE)]
    );
    assert_eq!((all.flags[0], info.counts.other), (flag::SYNC, 1));
    assert_eq!(info.start_unix_ns, Some(1_053_216_000_001_000_000));
    assert!(message(seed("srt/cut.srt"), &OpenOptions::default()).contains("58 of 88 bytes"));
    assert!(message(seed("srt/old.srt"), &OpenOptions::default()).contains("version 1.7"));
}

#[test]
fn oracle_general_says_what_it_assumes() {
    let (all, info) = read_bytes(seed("oracle_general/plain.bin"), &format("oracle-general")).unwrap();
    let second = 1_000_000_000;
    assert_eq!(
        rows(&all),
        [
            (0, Op::Read, 0, 51_200, 512, NONE),
            (0, Op::Read, 0, 53_248, 4096, NONE),
            (second, Op::Read, 0, 51_200, 512, NONE)
        ]
    );
    assert!(info.warnings[0].contains("taken as a read"));
    let cut = message(seed("oracle_general/cut.bin"), &format("oracle-general"));
    assert!(cut.contains("byte 48") && cut.contains("19 of 24 bytes"), "{cut}");
}

#[test]
fn dataseries_of_block_and_nfs_types() {
    let (all, info) = told(seed("dataseries/srt.ds"), "dataseries");
    assert_eq!(
        rows(&all),
        [(0, Op::Read, 0, 8192, 4096, 7_487_000), (1_000_000, Op::Write, 1, 0, 512, 3000)]
    );
    assert_eq!(
        (all.flags.as_slice(), info.start_unix_ns),
        (&[flag::SYNC, 0][..], Some(1_053_216_000_001_000_000))
    );
    let (all, info) = told(seed("dataseries/nfs.ds"), "dataseries");
    assert_eq!(rows(&all)[0], (0, Op::Read, all.object[0], 65_536, 4096, 4_150_390));
    assert_eq!((all.len(), info.counts.unfinished), (2, 1));
    assert!(message(seed("dataseries/cut.ds"), &OpenOptions::default()).contains("`salvage`"));
    assert!(message(seed("dataseries/damaged.ds"), &OpenOptions::default()).contains("byte "));
}

#[test]
fn nfsdump_lines() {
    let (all, info) = told(seed("nfsdump/plain.txt"), "nfsdump");
    assert_eq!(
        rows(&all).into_iter().map(|(_, op, object, o, s, l)| (op, object, o, s, l)).collect::<Vec<_>>(),
        [
            (Op::Setattr, 0, NONE, NONE, 2_035_000),
            (Op::Lookup, 1, NONE, NONE, 1_305_000),
            (Op::Write, 2, 0x2000, 0x1000, 701_000),
            (Op::Read, 2, 0x4000, 0x100, NONE)
        ]
    );
    assert_eq!(all.flags[2], flag::STABLE);
    assert_eq!(all.result, [0, -2, 0x1000, NONE]);
    let names: Vec<&str> = info.objects.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["/.handles/cfbc", "/.handles/cfbc/a b off", "/.handles/3577"]);
    assert_eq!((info.counts.unfinished, info.counts.failed, info.counts.other), (1, 1, 4));
    let cut = message(seed("nfsdump/cut.txt"), &format("nfsdump"));
    assert!(cut.contains("line 2"), "{cut}");
}

/// Requests wait for their replies, and only the file was named.
#[test]
fn nfsdump_that_goes_back_in_time_is_refused_at_its_line() {
    let call = |time: &str, xid: u32| {
        format!("{time} 31.03f7 30.0801 T C3 {xid:08x} 1 getattr fh cfbc con = XXX len = XXX\n")
    };
    let reply =
        "1006231510.5 30.0801 31.03f7 T R3 00000001 1 getattr OK  status=XXX pl = XXX con = XXX len = XXX\n";
    let text =
        [&call("1006231510.1", 1), reply, "\n", &call("1006231500.1", 2), &call("1006231511.1", 3)].concat();
    let error = message(text, &OpenOptions::default());
    assert!(error.contains("line 4: time goes back"), "{error}");
}

/// A read that was cut within its offset had none, and replies lost what stood behind the cut.
#[test]
fn lines_of_nfsdump_that_are_cut_are_damage() {
    let call = "1006231501.391115 31.03f7 30.0801 T C3 b253f2e4 6 read fh cfbc off 6000 count 2000 con = 82 len = 97";
    let reply = "1006231501.393150 30.0801 31.03f7 T R3 b253f2e4 6 read OK count 1000 status=0 pl = 0 con = XXX len = XXX";
    let whole = |line: &str| format!("{call}\n{reply}\n{line}\n");
    let rows = rows(&told(whole("").into_bytes(), "nfsdump").0);
    assert_eq!(rows, [(0, Op::Read, 0, 0x6000, 0x1000, 2_035_000)]);
    // From where the number of the packet's bytes is no number.
    for line in [call, reply] {
        for to in 1..line.len() - if line == call { 2 } else { 1 } {
            let error = message(whole(&line[..to]), &OpenOptions::default());
            assert!(error.contains("line 3: "), "{error}");
        }
    }
    for (from, to) in [(" off 6000", ""), ("off 6000", "oXf 6000"), ("count 2000", "count 20?0")] {
        let error = message(whole(&call.replace(from, to)), &OpenOptions::default());
        assert!(error.contains("line 3: no offset and count"), "{error}");
    }
    let short = call.replace("fh cfbc off 6000 count 2000 ", "SHORT PACKET");
    assert_eq!(told(whole(&short).into_bytes(), "nfsdump").0.len(), 2);
}

#[test]
fn an_nfs_session_on_names() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/nfs-session.pcap.gz");
    let (all, info) = told(std::fs::read(path).unwrap(), "pcap");
    let name = |id: u32| info.objects.get(id as usize).map_or("", |object| object.name.as_str());
    let ops = &all.op;
    let of = |op: Op| (0..ops.len()).filter(move |&i| ops[i] == op as u8);
    let pairs = |op| of(op).map(|i| (name(all.object[i]), name(all.other[i]))).collect::<Vec<_>>();
    assert_eq!(
        pairs(Op::Rename),
        [
            ("/export/home/new/a", "/export/home/new/c"),
            ("/export/home/old", "/export/home/was"),
            ("/export/home/new/b", "/export/home/was/0")
        ]
    );
    assert_eq!(pairs(Op::Link), [("/export/home/was/2", "/export/home/hard")]);
    assert_eq!(pairs(Op::Symlink), [("/export/home/soft", "/export/home/hard")]);
    // Every handle has its name, that of a file whose directory was renamed too.
    assert!(info.objects.iter().all(|object| object.name.starts_with("/export")), "{:?}", info.objects);
    let late = of(Op::Write).find(|&i| all.offset[i] == 10_000 && all.size[i] == 2000).unwrap();
    assert_eq!((name(all.object[late]), all.result[late]), ("/export/home/was/1", 2000));
    let cut: Vec<_> = of(Op::Truncate).map(|i| (name(all.object[i]), all.size[i])).collect();
    assert_eq!(cut, [("/export/home/notes", 1234)]);
    let failed: Vec<_> =
        (0..all.len()).filter(|&i| all.result[i] < 0).map(|i| (name(all.object[i]), all.result[i])).collect();
    for expected in
        [("/export/home", -17), ("/export/home", -39), ("/export/nothing", -2), ("/export/no", -2)]
    {
        assert!(failed.contains(&expected), "{expected:?} in {failed:?}");
    }
    assert_eq!((info.layer.as_str(), info.counts.unfinished), ("nfs", 0));
}

#[test]
fn captures_of_both_byte_orders() {
    for name in ["little", "big"] {
        let (all, info) = told(seed(&format!("pcap/{name}.pcap")), "pcap");
        let ms = 1_000_000;
        // Two calls in one segment, whose start comes later in another; a datagram in two fragments.
        assert_eq!(
            rows(&all),
            [
                (0, Op::Read, 0, 0, 100, 3 * ms),
                (ms, Op::Read, 0, 65_536, 4096, ms),
                (5 * ms, Op::Read, 0, 4096, 8192, ms)
            ],
            "{name}"
        );
        assert_eq!((info.counts.lost, info.counts.unfinished), (0, 0));
        assert_eq!(
            (info.actors[0].name.as_str(), info.objects[0].name.as_str()),
            ("10.0.0.1", "/.handles/0000aaaa0000bbbb")
        );
    }
    assert!(message(seed("pcap/cut.pcap"), &OpenOptions::default()).contains("truncated packet"));
}

/// Each took a look at all others and 4 KiB, without end; and nothing told of them.
#[test]
fn datagrams_whose_fragments_are_missing_are_counted_and_bounded() {
    let mut capture = seed("pcap/little.pcap");
    let known = told(capture.clone(), "pcap").0.len();
    let many = 12_000u32;
    for i in 0..many {
        let mut ip = [0x45, 0, 0, 28, 0, 0, 0x3f, 0x40, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip[4..6].copy_from_slice(&((i & 0xffff) as u16).to_be_bytes());
        let sum: u32 = ip.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        let packet = [&[0; 12][..], &[8, 0], &ip, b"12345678"].concat();
        let length = packet.len() as u32;
        for number in [1_700_000_000, 0, length, length] {
            capture.extend_from_slice(&number.to_le_bytes());
        }
        capture.extend_from_slice(&packet);
    }
    let (all, info) = told(capture, "pcap");
    assert_eq!((all.len(), info.counts.lost), (known, u64::from(many)));
    let told = format!("fragments of {many} datagrams are missing");
    assert!(info.warnings.iter().any(|warning| warning.contains(&told)), "{:?}", info.warnings);
}

#[test]
fn children_have_their_makers_directory_and_files_whenever_its_call_returns() {
    let made = |name: &str| {
        let (all, info) = told(seed(name), "strace");
        let made: Vec<_> = rows(&all)
            .into_iter()
            .enumerate()
            .filter(|(_, row)| row.1 == Op::Mkdir)
            .map(|(i, _)| {
                let actor = info.actors[all.actor[i] as usize].name.clone();
                (actor, info.objects[all.object[i] as usize].name.clone())
            })
            .collect();
        (made, all, info)
    };
    let owned = |list: &[(&str, &str)]| -> Vec<_> {
        list.iter().map(|(actor, path)| ((*actor).to_owned(), (*path).to_owned())).collect()
    };
    let (folders, all, info) = made("strace/children.txt");
    let expected = [
        ("78", "/data/below/d"),
        ("79", "/data/below/of 78"),
        ("80", "/data/of 77"),
        ("81", "/data/below/of 79"),
        // The number is another process's by now, which is where its own maker is.
        ("78", "/data/again"),
        ("90", "never told"),
    ];
    assert_eq!(folders, owned(&expected));
    assert_eq!((all.offset[1], all.size[1]), (0, 3), "a descriptor from before the call");
    assert!(all.time.is_sorted());
    assert_eq!((info.counts.unfinished, info.counts.damaged), (1, 0));
    // As strace writes to a terminal: the first process has no number while it is alone.
    let (folders, _, info) = made("strace/terminal.txt");
    let expected = [("78", "/data/a"), ("0", "/data/b"), ("78", "/data/c"), ("78", "/data/d")];
    assert_eq!(folders, owned(&expected));
    assert_eq!((info.counts.unfinished, info.counts.other), (0, 8));
}

/// Times since the line before were taken for times since 1970, so requests came in the order of their pauses.
#[test]
fn strace_times_since_the_line_before_add_up() {
    let (all, info) = told(seed("strace/relative.txt"), "strace");
    assert_eq!(all.time, [0, 30_000, 130_000, 1_151_000, 1_151_500].map(|us: i64| us * 1000));
    assert_eq!((info.start_unix_ns, info.counts.reordered, info.counts.damaged), (None, 0, 0));
}

#[test]
fn calls_on_descriptors_that_nobody_saw_opened_are_told() {
    let open = "7 1.0 openat(AT_FDCWD, \"/a\", O_RDWR|O_CREAT, 0644) = 3 <0.0>\n";
    let told = |rest: &str| {
        let (_, info) = told(format!("{open}{rest}").into_bytes(), "strace");
        info.warnings.join("; ")
    };
    let here = "7 1.1 pwrite64(3, \"x\"..., 4096, 0) = 4096 <0.0>\n";
    assert_eq!(told(here), "");
    let positioned =
        "7 1.1 pwrite64(9, \"x\"..., 4096, 0) = 4096 <0.0>\n7 1.2 read(8, \"x\"..., 9) = 9 <0.0>\n";
    assert!(told(positioned).starts_with("2 reads and writes of descriptors whose open is not in the trace"));
    // Standard output, a socket, both ends of a pipe, and a copy of one are no files.
    let others = "7 1.1 write(1, \"x\", 1) = 1 <0.0>\n7 1.2 socket(AF_INET, SOCK_STREAM, 0) = 4 <0.0>\n7 1.3 write(4, \"x\", 1) = 1 <0.0>\n7 1.4 pipe2([5, 6], 0) = 0 <0.0>\n7 1.5 write(6, \"x\", 1) = 1 <0.0>\n7 1.6 dup(6) = 7 <0.0>\n7 1.7 write(7, \"x\", 1) = 1 <0.0>\n7 1.8 read(9, \"x\", 1) = -1 EBADF (Bad file descriptor) <0.0>\n";
    assert_eq!(told(others), "");
    let far = "7 1.1 pwrite64(3, \"x\"..., 4096, 1152921504606846976) = 4096 <0.0>\n";
    assert_eq!(told(far), "1 reads and writes beyond 2^60 bytes are left out");
}

#[test]
fn system_calls_become_requests_of_files() {
    let (all, info) = told(seed("strace/plain.txt"), "strace");
    let file = |i: usize| info.objects[all.object[i] as usize].name.as_str();
    let found: Vec<_> = rows(&all).into_iter().enumerate().map(|(i, r)| (r.1, file(i), r.3, r.4)).collect();
    let (a, log) = ("/data/a b.txt", "/data/log");
    assert_eq!(
        found,
        [
            (Op::Create, a, NONE, NONE),
            (Op::Write, a, 0, 100),
            (Op::Write, a, 100, 4),
            (Op::Sync, a, NONE, NONE),
            // The child shares the position, which it has set back.
            (Op::Read, a, 2, 3),
            (Op::Read, a, 5, 99),
            (Op::Write, a, 4096, 1),
            (Op::Open, log, NONE, NONE),
            (Op::Stat, log, NONE, NONE),
            // At the end that the call before has told.
            (Op::Write, log, 39_291, 5),
            (Op::Read, a, 104, 10),
            (Op::Write, log, 39_296, 10),
            (Op::Close, log, NONE, NONE),
            (Op::Datasync, log, NONE, NONE),
            (Op::Remove, "/data/../tmp/gone", NONE, NONE),
            (Op::Mmap, a, 4096, 8192),
        ]
    );
    assert_eq!((all.time[3], all.latency[3]), (400_000, 1_000_000));
    assert_eq!((all.flags[9], info.counts.failed), (flag::APPEND, 1));
    assert_eq!(info.actors.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["77", "78"]);
    assert!(info.warnings.iter().any(|w| w.contains("io_uring_enter")), "{:?}", info.warnings);
    assert_eq!(info.start_unix_ns, Some(100_000_200_000));
    let aio = b"1 1.000 openat(AT_FDCWD, \"/t/a\", O_RDWR) = 3 <0.000010>\n\
        1 1.001 io_submit(0x7f, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3, aio_buf=0x1, \
        aio_nbytes=4096, aio_offset=0}]) = 1 <0.000010>\n\
        1 1.002 splice(3, NULL, 5, NULL, 65536, 0) = 65536 <0.000010>\n\
        1 1.003 close(3) = 0 <0.000010>\n";
    let (_, left) = told(aio.to_vec(), "strace");
    assert!(left.warnings.iter().any(|w| w.starts_with("2 calls of io_submit")), "{:?}", left.warnings);
    let cut = message(seed("strace/cut.txt"), &format("strace"));
    assert!(cut.contains("line 5") && cut.contains("without an end"), "{cut}");
    // A clock that starts again at midnight, and paths beside the descriptors.
    let (all, info) = told(seed("strace/day.txt"), "strace");
    assert_eq!(all.time, [0, 1_000_000_000, 1_100_000_000]);
    assert_eq!((info.objects[1].name.as_str(), all.offset[2], info.start_unix_ns), ("/data/g", 8192, None));
}

/// Sizes that older libraries ask for, and ends that are sought, were passed over: appends went to the start.
#[test]
fn strace_appends_go_to_the_end_that_the_trace_tells() {
    let stat = "{st_mode=S_IFREG|0644, st_size=5000, ...}";
    for told in [
        format!("fstat(3, {stat}) = 0"),
        format!("stat(\"/d/log\", {stat}) = 0"),
        format!("newfstatat(3, \"\", {stat}, AT_EMPTY_PATH) = 0"),
        "statx(3, \"\", AT_EMPTY_PATH, STATX_ALL, {stx_mode=S_IFREG|0644, stx_size=5000, ...}) = 0".into(),
        "lseek(3, 0, SEEK_END) = 5000".into(),
        "lseek(3, -100, SEEK_END) = 4900".into(),
    ] {
        let text = format!(
            "100 1000.000000 openat(AT_FDCWD, \"/d/log\", O_WRONLY|O_APPEND) = 3\n\
             100 1000.001000 {told}\n\
             100 1000.001500 lstat(\"/d/log\", {{st_mode=S_IFLNK|0777, st_size=7, ...}}) = 0\n\
             100 1000.002000 write(3, \"a\", 100) = 100\n\
             100 1000.003000 write(3, \"a\", 100) = 100\n"
        );
        let (all, _) = self::told(text.into_bytes(), "strace");
        let writes: Vec<i64> = rows(&all).iter().filter(|row| row.1 == Op::Write).map(|row| row.3).collect();
        assert_eq!(writes, [5000, 5100], "{told}");
    }
}
