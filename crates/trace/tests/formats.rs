//! Small traces of every format and the exact requests they are, and what is wrong with damaged ones.

mod common;

use common::{format, read, read_bytes};
use loadstone_trace::columns::{At, Column, Columns, Zero};
use loadstone_trace::{Batch, NONE, Op, OpenOptions, flag};
use std::io::Write;

const SPC: &str = "0,303567,3584,w,0.000000\n1,55590,3072,R,0.001000\n0,303574,512,r,2 448003\n";

fn seed(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../fuzz/seeds/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn message(bytes: impl Into<Vec<u8>>, options: &OpenOptions) -> String {
    read_bytes(bytes, options).unwrap_err().to_string()
}

#[test]
fn spc_is_read_with_its_units_and_polarity() {
    let (all, info) = read_bytes(SPC, &OpenOptions::default()).unwrap();
    assert_eq!(info.format, "spc");
    assert_eq!(all.time, [0, 1_000_000, 2_448_003_000]);
    assert_eq!(all.op, [Op::Write as u8, Op::Read as u8, Op::Read as u8]);
    assert_eq!(all.object, [0, 1, 0]);
    assert_eq!(all.offset, [303_567 * 512, 55_590 * 512, 303_574 * 512]);
    assert_eq!(all.size, [3584, 3072, 512]);
    assert_eq!(all.latency, [NONE; 3]);
    // The specification's own example has a timestamp without its dot.
    assert_eq!(info.counts.repaired, 1);
}

#[test]
fn msr_is_read_with_its_units_and_polarity() {
    let (all, info) = read_bytes(seed("msr/plain.csv"), &OpenOptions::default()).unwrap();
    assert_eq!(info.format, "msr");
    // A double would lose the last digits of these differences.
    assert_eq!(all.time, [0, 1_332_052_600, 2_332_061_600]);
    assert_eq!(info.start_unix_ns, Some((128_166_372_003_061_629 - 116_444_736_000_000_000) * 100));
    assert_eq!(all.op, [0, 1, 1]);
    assert_eq!(info.objects.iter().map(|o| o.name.as_str()).collect::<Vec<_>>(), ["web.0", "usr.1"]);
    assert_eq!((all.offset[0], all.size[1], all.latency[2]), (1_253_376, 512, 283_300));
}

#[test]
fn vscsi_of_both_versions_is_told_apart() {
    let (all, info) = read_bytes(seed("vscsi/one.vscsi"), &OpenOptions::default()).unwrap();
    assert_eq!(info.format, "vscsi");
    // The last record comes late; the inquiry is no request.
    assert_eq!(all.time, [0, 10_000, 15_000, 20_000]);
    assert_eq!(all.op, [Op::Read, Op::Write, Op::Read, Op::Flush].map(|op| op as u8));
    assert_eq!((all.offset[0], all.size[0], all.offset[3]), (51_200, 4096, NONE));
    assert_eq!((info.counts.reordered, info.counts.other), (1, 1));
    let (all, _) = read_bytes(seed("vscsi/two.vscsi"), &OpenOptions::default()).unwrap();
    assert_eq!(all.latency, [55_000, 90_000, 2_000_000]);
    assert_eq!(all.op, [Op::Read, Op::Write, Op::Flush].map(|op| op as u8));
}

/// One hand-made capture in either byte order: merges, partial completions, flushes, two devices.
fn check_blktrace(name: &str) {
    let (all, info) = read_bytes(seed(name), &OpenOptions::default()).unwrap();
    assert_eq!(info.format, "blktrace");
    let ops = [Op::Write, Op::Write, Op::Flush, Op::Read, Op::Discard, Op::Write].map(|op| op as u8);
    assert_eq!(all.op, ops);
    // Times count from the first event; the two merged writes complete in two parts.
    assert_eq!(all.time, [0, 1, 60, 80, 81, 86]);
    assert_eq!(all.latency, [50, 49, 11, 5, NONE, 24]);
    assert_eq!(all.offset, [51_200, 55_296, NONE, 256_000, 1_024_000, 153_600]);
    assert_eq!(all.flags[0], flag::SYNC);
    assert_eq!(all.flags[3], flag::READAHEAD);
    assert_eq!(all.flags[5], flag::PREFLUSH | flag::FUA | flag::META);
    assert_eq!(all.object, [0, 0, 0, 0, 1, 0]);
    assert_eq!(info.objects[1].name, "8,2");
    assert_eq!(info.actors[0].name, "77 python");
    // Number 11 is missing from the sequence; the discard never completes; the read fails.
    assert_eq!((info.counts.lost, info.counts.unfinished, info.counts.failed), (1, 1, 1));
    assert_eq!(info.start_unix_ns, Some(1_700_000_000_000_000_005 + 5));
}

#[test]
fn blktrace_little_endian() {
    check_blktrace("blktrace/little.blktrace");
}

#[test]
fn blktrace_big_endian() {
    check_blktrace("blktrace/big.blktrace");
}

fn column(at: At, unit: &str) -> Option<Column> {
    Some(Column { at, unit: unit.into() })
}

fn delimited(columns: Columns) -> OpenOptions {
    OpenOptions { columns: Some(columns), ..format("delimited") }
}

/// `time,op,lba,bytes` in microseconds and sectors.
fn plain_columns() -> Columns {
    Columns {
        time: column(At::Position(0), "us"),
        op: column(At::Position(1), ""),
        offset: column(At::Position(2), "sector"),
        size: column(At::Position(3), "byte"),
        values: [("read".to_string(), vec!["0".to_string()]), ("write".to_string(), vec!["1".to_string()])]
            .into(),
        ..Columns::default()
    }
}

#[test]
fn a_column_map_by_position() {
    let (all, info) = read_bytes("100,0,8,4096\n103.5,1,16,512\n", &delimited(plain_columns())).unwrap();
    assert_eq!((all.time.as_slice(), all.op.as_slice()), (&[0, 3500][..], &[0, 1][..]));
    assert_eq!((all.offset.as_slice(), all.size.as_slice()), (&[4096, 8192][..], &[4096, 512][..]));
    assert_eq!(info.objects[0].name, "all");
}

#[test]
fn a_column_map_by_header_names() {
    let columns = Columns {
        separator: "tab".into(),
        time: column(At::Name("Stamp".into()), "s"),
        op: column(At::Name("Kind".into()), ""),
        offset: column(At::Name("Off".into()), "4096"),
        object: column(At::Name("Disk".into()), ""),
        latency: column(At::Name("Took".into()), "ms"),
        origin: Zero::Epoch,
        values: [("read".to_string(), vec!["R".to_string()]), ("write".to_string(), vec!["W".to_string()])]
            .into(),
        ..Columns::default()
    };
    let text = "Kind\tDisk\tStamp\tOff\tTook\nR\tsda\t1700000000.5\t2\t0.25\nW\tsdb\t1700000001\t3\t-1\n";
    let (all, info) = read_bytes(text, &delimited(columns.clone())).unwrap();
    assert_eq!(all.time, [0, 500_000_000]);
    assert_eq!(all.offset, [8192, 12_288]);
    assert_eq!(all.size, [NONE; 2]);
    assert_eq!(all.latency, [250_000, NONE]);
    assert_eq!(info.start_unix_ns, Some(1_700_000_000_500_000_000));
    assert_eq!(info.objects.iter().map(|o| o.name.as_str()).collect::<Vec<_>>(), ["sda", "sdb"]);
    let text = message("A\tB\n1\t2\n", &delimited(columns));
    assert!(text.contains("line 1") && text.contains("\"Stamp\"") && text.contains("A, B"), "{text}");
}

#[test]
fn a_column_map_must_say_units_and_polarity() {
    let mut columns = plain_columns();
    columns.time = column(At::Position(0), "");
    assert!(message("1,0,0,0\n", &delimited(columns)).contains("does not say the unit of time"));
    let mut columns = plain_columns();
    columns.values.remove("write");
    assert!(
        message("1,0,0,0\n", &delimited(columns)).contains("which values are reads and which are writes")
    );
    let mut columns = plain_columns();
    columns.op = None;
    columns.values.clear();
    assert!(message("1,0,0,0\n", &delimited(columns.clone())).contains("names no op column"));
    columns.every = Some("read".into());
    assert_eq!(read_bytes("1,0,0,0\n", &delimited(columns)).unwrap().0.op, [0]);
    assert!(message("1,0,0,0\n", &format("delimited")).contains("needs a column map"));
    let text = message("1,7,0,0\n", &delimited(plain_columns()));
    assert!(text.contains("unknown op code \"7\"") && text.contains("line 1"), "{text}");
}

#[test]
fn compressed_traces_are_read_as_they_are() {
    let plain = read_bytes(SPC, &OpenOptions::default()).unwrap().0;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(SPC.as_bytes()).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip2.write_all(SPC.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 3);
    xz.write_all(SPC.as_bytes()).unwrap();
    let zstd = zstd::encode_all(SPC.as_bytes(), 3).unwrap();
    for bytes in [gzip.finish().unwrap(), bzip2.finish().unwrap(), xz.finish().unwrap(), zstd] {
        let cut = bytes[..bytes.len() - 6].to_vec();
        assert_eq!(read_bytes(bytes, &OpenOptions::default()).unwrap().0, plain);
        let text = message(cut, &OpenOptions::default());
        assert!(text.contains("cannot decompress") && text.contains("cut short"), "{text}");
    }
}

#[test]
fn damage_is_named_with_its_place_and_what_to_do() {
    let spc = format("spc");
    for (text, line, what, help) in [
        ("", "", "is empty", "copy failed"),
        ("0,1,512,R,0.1\n0,1,51", "line 2", "3 of the 5 fields", "cut short"),
        ("Unit,LBA,Bytes,Op,Time\n0,1,512,R,0.1\n", "line 1", "\"Unit\" is not a number", "header line"),
        ("0,1,512,R,0.1\n\n0,-1,512,R,0.2\n", "line 3", "\"-1\" is not a number", "not negative"),
        ("0,8486082789636758048,1404153856,W,0.4\n", "line 1", "beyond any device", "`max_damaged`"),
        ("0,1,512,R,0.1\n0,1,512,X,0.2\n", "line 2", "unknown op code \"X\"", "r, R, w and W"),
        ("0,1,512,R,5\n0,1,512,R,6\n0,1,512,R,2\n", "line 3", "time goes back by 4 s", "`sort`"),
        ("0,1,512,R,-5\n", "line 1", "time \"-5\"", "12.345678"),
    ] {
        let message = message(text, &spc);
        let all = message.contains(line) && message.contains(what) && message.contains(help);
        assert!(all && message.starts_with("trace"), "{text:?} gives {message}");
    }
    let text = message(seed("vscsi/cut.vscsi"), &format("vscsi"));
    assert!(text.contains("byte 64: truncated record: 3 of 32 bytes"), "{text}");
    let text = message(seed("vscsi/op.vscsi"), &format("vscsi"));
    assert!(text.contains("byte 64: unknown op code 0xff"), "{text}");
    let text = message(seed("blktrace/cut.blktrace"), &format("blktrace"));
    assert!(text.contains("truncated record: 35 of 48 bytes"), "{text}");
    let text = message("no trace at all\n", &OpenOptions::default());
    assert!(text.contains("no known format") && text.contains("`columns`"), "{text}");
}

#[test]
fn damaged_records_are_passed_over_only_with_leave() {
    let text = "0,1,512,R,0.1\nrubbish\n0,8486082789636758048,1404153856,W,0.4\n0,1,512,R,0.5\n";
    let options = |n| OpenOptions { max_damaged: n, ..format("spc") };
    assert!(message(text, &options(1)).contains("line 3"));
    let (all, info) = read_bytes(text, &options(2)).unwrap();
    assert_eq!((all.len(), info.counts.damaged), (2, 2));
    assert!(info.warnings[0].contains("line 2"), "{:?}", info.warnings);
    let (_, info) =
        read_bytes(seed("blktrace/cut.blktrace"), &OpenOptions { max_damaged: 1, ..format("blktrace") })
            .unwrap();
    assert_eq!(info.counts.damaged, 1);
}

#[test]
fn lines_are_counted_right_in_a_long_file() {
    // Several blocks of text, so that several threads parse at once; blank lines are counted too.
    let mut text = String::new();
    for i in 0..300_000u32 {
        text += &format!("{},{},512,R,{}.{:06}\n", i % 7, i, i / 1000, i % 1000 * 1000);
        if i % 1000 == 999 {
            text += "\n";
        }
    }
    let options = OpenOptions { threads: 3, ..format("spc") };
    let (all, info) = read_bytes(text.clone(), &options).unwrap();
    assert_eq!(all.len(), 300_000);
    assert_eq!(info.counts.other, 300);
    assert!(all.offset.iter().zip(0i64..).all(|(&offset, i)| offset == i * 512));
    assert!(all.object.iter().zip(0u32..).all(|(&object, i)| object == i % 7));
    text += "oops\n";
    assert!(message(text.clone(), &options).contains("line 300301:"));
    let late = text.replace("oops", "0,1,512,R,0.5");
    assert!(message(late, &options).contains("line 300301: time goes back by"));
}

#[test]
fn disorder_within_the_window_is_put_right_and_counted() {
    let text = "0,1,512,R,5.0\n0,2,512,R,4.5\n0,3,512,R,4.2\n0,4,512,R,6.0\n";
    let (all, info) = read_bytes(text, &format("spc")).unwrap();
    assert_eq!(all.offset, [3 * 512, 2 * 512, 512, 4 * 512]);
    assert_eq!(info.counts.reordered, 2);
    let narrow = OpenOptions { reorder_ns: 600_000_000, ..format("spc") };
    assert!(message(text, &narrow).contains("line 3"));
    let sorted = OpenOptions { sort: true, ..narrow };
    assert_eq!(read_bytes(text, &sorted).unwrap().0, all);
}

#[test]
fn implausible_units_are_warned_of() {
    // Nanoseconds written where microseconds belong make a trace a thousand times too long.
    let mut columns = plain_columns();
    columns.every = Some("read".into());
    columns.op = None;
    columns.values.clear();
    let text: String = (0..2000u64).map(|i| format!("{},x,{},4096\n", i * 1_000_000_000, i)).collect();
    let (_, info) = read_bytes(text, &delimited(columns.clone())).unwrap();
    assert!(info.warnings.iter().any(|w| w.contains("time unit too large")), "{:?}", info.warnings);
    columns.size = column(At::Position(3), "sector");
    columns.time = column(At::Position(0), "s");
    let text: String = (0..2000u64).map(|i| format!("{i},x,{i},262144\n")).collect();
    let (_, info) = read_bytes(text, &delimited(columns)).unwrap();
    assert!(info.warnings.iter().any(|w| w.contains("size unit too large")), "{:?}", info.warnings);
}

#[test]
fn a_misleading_name_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.vscsi");
    std::fs::write(&path, SPC).unwrap();
    let (all, info) = read(&path, &OpenOptions::default()).unwrap();
    assert_eq!((all.len(), info.format.as_str()), (3, "spc"));
    assert!(info.warnings[0].contains("the name says vscsi but the content is spc"));
}

#[test]
fn per_cpu_files_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let whole = seed("blktrace/little.blktrace");
    // Every other record goes to the other CPU's file.
    let mut files = [Vec::new(), Vec::new()];
    let (mut at, mut n) = (0, 0);
    while at < whole.len() {
        let end = at + 48 + usize::from(u16::from_le_bytes([whole[at + 46], whole[at + 47]]));
        files[n % 2].extend_from_slice(&whole[at..end]);
        (at, n) = (end, n + 1);
    }
    for (cpu, bytes) in files.iter().enumerate() {
        std::fs::write(folder.path().join(format!("sda.blktrace.{cpu}")), bytes).unwrap();
    }
    let expected: Batch = read_bytes(whole, &OpenOptions::default()).unwrap().0;
    for base in ["sda", "sda.blktrace"] {
        assert_eq!(read(&folder.path().join(base), &OpenOptions::default()).unwrap().0, expected);
    }
    let (_, info) = read(&folder.path().join("sda.blktrace.1"), &OpenOptions::default()).unwrap();
    assert!(info.warnings.iter().any(|w| w.contains("sda.blktrace.0")), "{:?}", info.warnings);
}

#[test]
fn the_span_is_known_before_reading_where_the_file_ends_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let span = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut reader = loadstone_trace::open(&[path], &OpenOptions::default()).unwrap();
        let before = reader.span_ns();
        let last = common::drain(&mut reader).unwrap().time.last().copied();
        (before, last)
    };
    let long: String = (0..9000).map(|i| format!("0,{i},512,R,{}.5\n", i + 7)).collect();
    assert_eq!(span("t.spc", long.as_bytes()), (Some(9_006_500_000_000), Some(9_006_500_000_000)));
    let (before, last) = span("t.csv", &seed("msr/plain.csv"));
    assert_eq!((before, last), (last, Some(2_332_061_600)));
    let (before, last) = span("t.vscsi", &seed("vscsi/two.vscsi"));
    assert_eq!((before, last), (last, Some(20_000)));
    let packed = zstd::encode_all(long.as_bytes(), 1).unwrap();
    assert_eq!(span("t.spc.zst", &packed), (None, Some(9_006_500_000_000)));
}
