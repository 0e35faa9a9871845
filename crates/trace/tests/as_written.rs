//! Traces as their tools and their users' editors write them: marks, blanks, headers, chatter, decoration, lost packets.

mod common;

use common::{format, read, read_bytes};
use loadstone_trace::columns::{At, Column, Columns, Zero};
use loadstone_trace::{Batch, Info, NONE, Op, OpenOptions, Requests, flag, open};
use std::io::Read;
use std::path::Path;

const ALI: &str = "0,R,126703661056,4096,1577808000000046\n1,W,19496058880,77824,1577808000000426\n";
const MSR: &str =
    "128166372003061629,web,0,Read,1074696192,4096,113\n128166372013061629,web,1,Write,0,8192,500\n";
const SPC: &str = "0,20941264,8192,W,0.551706\n0,20939840,8192,R,0.554041\n";
const TENCENT: &str = "1538323200,12910952,128,0,1063\n1538323201,6160447,8,1,1283\n";
const IOLOG: &str = "fio version 2 iolog\n/a add\n/a open\n/a read 0 4096\n/a close\n";
const BLKPARSE: &str = "  8,0    0        1     0.000000000 31360  Q  WS 18285248 + 8 [fio]\n  \
                        8,0    1        5     0.000912500     0  C  WS 18285248 + 8 [0]\n";
const STRACE: &str = "7 1700000000.000100 openat(AT_FDCWD, \"/w/f\", O_RDWR) = 3 <0.000010>\n";

fn told(text: impl Into<Vec<u8>>) -> (Batch, Info) {
    read_bytes(text, &OpenOptions::default()).unwrap()
}

fn names(info: &Info) -> Vec<&str> {
    info.objects.iter().map(|object| object.name.as_str()).collect()
}

/// Calls of one process as strace writes them, one a second.
fn each_second(calls: &[&str]) -> String {
    let line = |(i, call)| format!("7 17000000{i:02}.000100 {call} <0.000010>\n");
    calls.iter().enumerate().map(line).collect()
}

#[test]
fn a_byte_order_mark_is_no_part_of_any_text() {
    for text in [ALI, MSR, SPC, IOLOG, BLKPARSE, STRACE] {
        let (all, info) = told(text);
        let (marked, of_marked) = told(["\u{feff}", text].concat());
        assert_eq!((all, names(&info)), (marked, names(&of_marked)), "{text}");
    }
    let wide = |text: &str, big: bool| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() });
        units.collect()
    };
    let marked = ["\u{feff}", ALI].concat();
    for bytes in [wide(&marked, false), wide(&marked, true), wide(ALI, false)] {
        let error = read_bytes(bytes, &OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains("UTF-16") && error.contains("iconv"), "{error}");
    }
}

#[test]
fn blanks_around_fields_make_no_other_names() {
    let (all, info) =
        told("128166372003061629,web, 0,Read,1,4096,1\n128166372003061630, web ,0 ,Read,1,4096,1\n");
    assert_eq!((all.object, names(&info)), (vec![0, 0], vec!["web.0"]));
    let line = |process: &str| format!("0 77{process} 8 8 W 6 0 531e{}\n", "0".repeat(28));
    let (all, info) = told([line(" my prog"), line("   my prog  "), line("\tmy prog")].concat());
    assert_eq!(all.actor, [0, 0, 0]);
    assert_eq!(info.actors[0].name, "77 my prog");
    let (all, info) =
        told("fio version 3 iolog\n 0 /d/a b add\n5\t/d/a b  read  0 4096\n6 /d/a b write 0 512 \n");
    assert_eq!((all.object, names(&info)), (vec![0, 0], vec!["/d/a b"]));
}

#[test]
fn a_line_of_the_formats_own_names_is_passed_over() {
    for (name, header, text) in [
        ("alibaba", "device_id,opcode,offset,length,timestamp", ALI),
        ("msr", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", MSR),
        ("spc", "ASU, LBA, Size, Opcode, Timestamp", SPC),
        ("tencent", "\"Timestamp\",\"Offset\",\"Size\",\"IOType\",\"VolumeID\"", TENCENT),
        ("mqsim", "# time device lba size type", "11413000 0 657728 16 1\n"),
    ] {
        let (plain, _) = read_bytes(text, &format(name)).unwrap();
        for options in [OpenOptions::default(), format(name)] {
            let (all, info) = read_bytes([header, "\r\n", text].concat(), &options).unwrap();
            assert_eq!((all, info.format.as_str(), info.counts.other), (plain.clone(), name, 1));
        }
    }
    let other = read_bytes(["offset,device_id,opcode,length,timestamp\n", ALI].concat(), &format("alibaba"));
    let error = other.unwrap_err().to_string();
    assert!(error.contains("line 1") && error.contains("`columns`"), "{error}");
}

#[test]
fn what_blkparse_says_of_itself_is_passed_over() {
    let head = "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n";
    let totals = "fio (31360, ...)\n Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB\n\n\
                  CPU0 (sda):\n Reads Queued:           0,        0KiB\nTotal (sda):\nSkips: 0 forward (0 -   0.0%)\n";
    let (all, info) = told([head, BLKPARSE, totals].concat());
    assert_eq!((all, info.counts.damaged), (told(BLKPARSE).0, 0));
}

#[test]
fn what_strace_shows_of_descriptors_is_used_and_no_part_of_names() {
    let line = |n: u32, call: &str| format!("300<fio> 1700000000.{n:06} {call} <0.000010>\n");
    let calls = [
        r#"openat(AT_FDCWD</w>, "f", O_RDWR|O_CREAT, 0644) = 3</w/f>"#,
        r#"write(3</w/f>, "x"..., 4096) = 4096"#,
        r#"unlink("g") = 0"#,
        r#"sendto(5<TCP:[127.0.0.1:55894->127.0.0.1:41903]>, "hi", 2, 0, NULL, 0) = 2"#,
        r#"write(5<UNIX-STREAM:[9->8,"/run/a]>b"]>, "hi", 2) = 2"#,
        r#"read(6<pipe:[609421]>, "p", 1) = 1"#,
        r#"write(1</dev/pts/0<char 136:0>>, "out", 3) = 3"#,
        r#"openat(AT_FDCWD</w>, "/dev/null", O_WRONLY) = 7</dev/null<char 1:3>>"#,
        r#"write(7, "z", 1) = 1"#,
        r#"read(8</dev/sda<block 8:0>>, "z", 1) = 1"#,
        r#"write(9</w/a-\76b>(deleted), "y", 1) = 1"#,
        r#"write(10</w/c->d>, "y", 1) = 1"#,
        r#"write(11</w/e, f) = 3>, "y", 1) = 1"#,
        r#"fsync(12</w/\303\251\">) = 0"#,
        r#"write(13</memfd:mm>(deleted), "q", 1) = 1"#,
        r#"poll([{fd=5<TCP:[1.2.3.4:5->6.7.8.9:10]>, events=POLLIN}], 1, 0) = 0 (Timeout)"#,
    ];
    let text: String = (1..).zip(calls).map(|(n, call)| line(n, call)).collect();
    let (all, info) = told(text);
    let names = names(&info);
    let seen: Vec<&str> = all.object.iter().map(|&object| names[object as usize]).collect();
    let files = ["/w/f", "/w/f", "/w/g", "/dev/sda", "/w/a->b", "/w/c->d", "/w/e, f) = 3", "/w/\u{e9}\""];
    assert_eq!(seen, files);
    assert_eq!((info.counts.other, info.actors[0].name.as_str()), (8, "300"));
}

#[test]
fn an_iolog_of_devices_is_a_block_trace() {
    let device = "fio version 3 iolog\n0 /dev/sda add\n5 /dev/sda open\n10 /dev/sda write 0 4096\n\
                  30 /dev/sda datasync 0 0\n40 /dev/sda sync 0 0\n60 /dev/sda close\n";
    let (all, info) = told(device);
    assert_eq!(all.op, [Op::Write, Op::Flush, Op::Flush].map(|op| op as u8));
    assert_eq!((info.layer.as_str(), names(&info)), ("block", vec!["/dev/sda"]));
    for other in ["/dev/shm/f", "/w/f"] {
        let (all, info) = told(device.replace("/dev/sda", other));
        assert_eq!((all.op[1], info.layer.as_str()), (Op::Datasync as u8, "file"), "{other}");
    }
}

/// Jobs of fio that name one log append to it, each with a header of its own.
#[test]
fn an_iolog_of_several_jobs_has_several_headers() {
    let one = "fio version 3 iolog\n0 /w/a add\n1 /w/a open\n10 /w/a write 0 4096\n20 /w/a close\n";
    let two = "fio version 3 iolog\n21 /w/b add\n22 /w/b open\n30 /w/b read 0 512\n40 /w/b close\n";
    let (all, info) = told([one, two].concat());
    assert_eq!((all.op, all.time), ([Op::Write, Op::Read].map(|op| op as u8).to_vec(), vec![10_000, 30_000]));
    assert_eq!(names(&info), ["/w/a", "/w/b"]);
    let other = [one, &two.replace("version 3", "version 2")].concat();
    let error = read_bytes(other, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("line 6") && error.contains("version 2"), "{error}");
}

/// A copy has one offset: between two others it is a read and a write, and to a socket or a pipe a read.
#[test]
fn copies_within_the_kernel_read_where_they_read() {
    let lines = [
        "openat(AT_FDCWD, \"/w/a\", O_RDONLY) = 3",
        "openat(AT_FDCWD, \"/w/b\", O_RDONLY) = 4",
        "openat(AT_FDCWD, \"/w/all\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 5",
        "copy_file_range(3, NULL, 5, NULL, 9223372035781033984, 0) = 100",
        "copy_file_range(3, NULL, 5, NULL, 9223372035781033984, 0) = 0",
        "copy_file_range(4, NULL, 5, NULL, 9223372035781033984, 0) = 30",
        "copy_file_range(4, [10], 5, [10], 5, 0) = 5",
        "copy_file_range(4, NULL, 5, NULL, 7, 0) = -1 EIO (Input/output error)",
        "sendfile(5, 3, [0] => [8], 8) = 8",
        "socket(AF_UNIX, SOCK_STREAM, 0) = 6",
        "sendfile(6, 3, NULL, 50) = 50",
        "sendfile(6, 3, [20] => [60], 40) = 40",
    ];
    let text = each_second(&lines);
    let (all, info) = told(text);
    let names = names(&info);
    let name = |object: u32| names.get(object as usize).copied().unwrap_or("");
    let rows: Vec<_> = (0..all.len())
        .filter(|i| all.op[*i] != Op::Open as u8 && all.op[*i] != Op::Create as u8)
        .map(|i| {
            let op = Op::from_code(all.op[i]).unwrap();
            (op, name(all.object[i]), all.offset[i], all.size[i], name(all.other[i]), all.result[i])
        })
        .collect();
    assert_eq!(
        rows,
        [
            (Op::CopyRange, "/w/all", 0, 100, "/w/a", 100),
            (Op::CopyRange, "/w/all", 100, 0, "/w/a", 0),
            (Op::Read, "/w/b", 0, 30, "", 30),
            (Op::Write, "/w/all", 100, 30, "", 30),
            (Op::CopyRange, "/w/all", 10, 5, "/w/b", 5),
            (Op::CopyRange, "/w/all", 130, 0, "/w/b", -5),
            (Op::Read, "/w/a", 0, 8, "", 8),
            (Op::Write, "/w/all", 130, 8, "", 8),
            (Op::Read, "/w/a", 100, 50, "", 50),
            (Op::Read, "/w/a", 20, 40, "", 40),
        ]
    );
    assert_eq!(info.counts.failed, 1);
    let exchanged = "7 1.0 renameat2(AT_FDCWD, \"/a\", AT_FDCWD, \"/b\", RENAME_EXCHANGE) = 0 <0.1>\n\
                     7 2.0 renameat2(AT_FDCWD, \"/a\", AT_FDCWD, \"/b\", RENAME_NOREPLACE) = 0 <0.1>\n";
    let (all, info) = told(exchanged);
    assert_eq!((all.len(), info.counts.other), (1, 1));
}

/// What `fallocate` asks for is in its mode, and a file without a name is no directory.
#[test]
fn modes_of_fallocate_and_files_without_a_name_are_told_apart() {
    let lines = [
        "openat(AT_FDCWD, \"/w/a\", O_RDWR) = 3",
        "fallocate(3, 0, 0, 4096) = 0",
        "fallocate(3, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4096, 8192) = 0",
        "fallocate(3, 0x3, 0, 512) = 0",
        "fallocate(3, FALLOC_FL_ZERO_RANGE, 0, 1024) = 0",
        "fallocate(3, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) = 0",
        "fallocate(3, 0x20, 0, 4096) = 0",
        "openat(AT_FDCWD, \"/w\", O_RDWR|O_TMPFILE, 0600) = 4",
        "openat(AT_FDCWD, \"/w\", O_RDWR|O_TMPFILE, 0600) = 5",
        "openat(AT_FDCWD, \"/w\", O_RDWR|O_TMPFILE, 0600) = 6</w/#77 (deleted)>",
        "openat(AT_FDCWD, \"/w\", O_RDWR|O_TMPFILE, 0600) = -1 EOPNOTSUPP (Operation not supported)",
        "pwrite64(5, \"\"..., 100, 10) = 100",
    ];
    let text = each_second(&lines);
    let (all, info) = told(text);
    let names = names(&info);
    let row = |i: usize| {
        (Op::from_code(all.op[i]).unwrap(), names[all.object[i] as usize], all.offset[i], all.size[i])
    };
    assert_eq!(
        (1..all.len()).map(row).collect::<Vec<_>>(),
        [
            (Op::Fallocate, "/w/a", 0, 4096),
            (Op::Discard, "/w/a", 4096, 8192),
            (Op::Discard, "/w/a", 0, 512),
            (Op::Fallocate, "/w/a", 0, 1024),
            (Op::Create, "/w/#unnamed-1", NONE, NONE),
            (Op::Create, "/w/#unnamed-2", NONE, NONE),
            (Op::Create, "/w/#77", NONE, NONE),
            (Op::Open, "/w", NONE, NONE),
            (Op::Write, "/w/#unnamed-2", 10, 100),
        ]
    );
    assert_eq!(info.counts.other, 2);
}

/// What `-y` shows of a descriptor is believed: a number that is used again needs no line that says so.
#[test]
fn numbers_that_are_used_again_are_told_by_what_is_shown() {
    let lines = [
        "read(3</a>, \"\"..., 100) = 100",
        "read(3</a>, \"\"..., 100) = 50",
        "read(3</b>, \"\"..., 100) = 100",
        "rename(\"/b\", \"/d/c\") = 0",
        "read(3</d/c>, \"\"..., 100) = 100",
        "rename(\"/d\", \"/e\") = 0",
        "read(3</e/c>, \"\"..., 100) = 100",
        "openat(AT_FDCWD, \"/link\", O_RDONLY) = 4</target>",
        "read(4</target>, \"\"..., 10) = 10",
        "read(4</target>, \"\"..., 10) = 10",
        // Of programs of 32 bits.
        "_llseek(4</target>, 5000000000, [5000000000], SEEK_SET) = 0",
        "read(4</target>, \"\"..., 10) = 10",
        "fstat(5</log>, {st_mode=S_IFREG|0644, st_size=1000, ...}) = 0",
        "pwritev2(5</log>, [{iov_base=\"\", iov_len=10}], 1, 0, RWF_APPEND) = 10",
        "pwritev2(5</log>, [{iov_base=\"\", iov_len=10}], 1, 20, RWF_DSYNC) = 10",
    ];
    let text = each_second(&lines);
    let (all, info) = told(text);
    let names = names(&info);
    let moves = |i: &usize| [Op::Read as u8, Op::Write as u8].contains(&all.op[*i]);
    let row = |i: usize| (names[all.object[i] as usize], all.offset[i], all.flags[i] & flag::APPEND != 0);
    assert_eq!(
        (0..all.len()).filter(moves).map(row).collect::<Vec<_>>(),
        [
            ("/a", 0, false),
            ("/a", 100, false),
            ("/b", 0, false),
            ("/b", 100, false),
            ("/b", 200, false),
            ("/link", 0, false),
            ("/link", 10, false),
            ("/link", 5_000_000_000, false),
            ("/log", 1000, true),
            ("/log", 20, false),
        ]
    );
}

/// A clock that is put back is told, as of other formats, and not smoothed over by what is read at once.
#[test]
fn a_clock_of_strace_that_goes_back_is_told() {
    let text = |times: &[&str]| -> String {
        times.iter().map(|time| format!("7 {time} stat(\"/a\", {{}}) = 0 <0.000010>\n")).collect()
    };
    let strict = OpenOptions { reorder_ns: 1_000_000, ..OpenOptions::default() };
    let back = read_bytes(text(&["20.0", "21.0", "1.0", "50.0"]), &strict).unwrap_err().to_string();
    assert!(back.contains("time goes back by 20 s"), "{back}");
    let (all, info) = told(text(&["20.0", "20.5", "20.4", "50.0"]));
    assert_eq!(all.len(), 4);
    assert!(info.counts.reordered > 0);
}

/// A file that is cut, or written over, while it is read is not taken for whole; one that grows is.
#[test]
fn what_changes_while_it_is_read_is_told() {
    let line = |i: u64| format!("0,{},4096,r,{i}.0\n", i * 8);
    let text: String = (0..40_000).map(line).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.spc");
    let told = |change: &dyn Fn(&std::fs::File)| -> Result<usize, String> {
        std::fs::write(&path, &text).unwrap();
        let options = OpenOptions { threads: 1, ..OpenOptions::default() };
        let mut reader = open(std::slice::from_ref(&path), &options).map_err(|e| e.to_string())?;
        change(&std::fs::File::options().read(true).append(true).open(&path).unwrap());
        let mut batch = Batch::default();
        let mut read = 0;
        while reader.next(&mut batch).map_err(|e| e.to_string())? {
            read += batch.len();
        }
        Ok(read)
    };
    assert_eq!(told(&|_| {}), Ok(40_000));
    // On a line's end: the rest is a whole table, too.
    let cut = text[..100_000].rfind('\n').unwrap() as u64 + 1;
    let error = told(&|file| file.set_len(cut).unwrap()).unwrap_err();
    assert!(error.contains(&format!("it was cut from {} to {cut} bytes", text.len())), "{error}");
    let error = told(&|file| {
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    })
    .unwrap_err();
    assert!(error.contains("somebody wrote to it while it was read"), "{error}");
    let more =
        |mut file: &std::fs::File| std::io::Write::write_all(&mut file, line(40_000).as_bytes()).unwrap();
    assert_eq!(told(&more), Ok(40_001));
}

/// What cannot be read behind damage that may be passed over is an error of its own, and not the end of the file.
#[test]
fn a_file_that_cannot_be_read_behind_damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["blktrace/little.blktrace", "pcap/little.pcap", "pcap/next.pcapng"] {
        let path = folder.path().join(Path::new(name).file_name().unwrap());
        let seed = std::fs::read(format!("{}/../../fuzz/seeds/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let told = |cut: Option<u64>| -> Result<u64, String> {
            std::fs::write(&path, [&seed[..], &[0xff; 1 << 20]].concat()).unwrap();
            let options = OpenOptions { max_damaged: 1, threads: 1, ..OpenOptions::default() };
            let mut reader = open(std::slice::from_ref(&path), &options).map_err(|e| e.to_string())?;
            if let Some(cut) = cut {
                std::fs::File::options().write(true).open(&path).unwrap().set_len(cut).unwrap();
            }
            let mut batch = Batch::default();
            while reader.next(&mut batch).map_err(|e| e.to_string())? {}
            Ok(reader.info().counts.damaged)
        };
        assert_eq!(told(None), Ok(1), "{name}");
        let error = told(Some(700_000)).unwrap_err();
        assert!(error.contains("it was cut from") && error.contains("to 700000 bytes"), "{name}: {error}");
    }
}

/// Quotes hold separators together, as spreadsheets write them, and times lie on one side of their start.
#[test]
fn quoted_fields_and_times_of_tables_are_read_as_they_are() {
    let options = |origin| OpenOptions {
        format: Some("delimited".into()),
        columns: Some(Columns {
            time: Some(Column { at: At::Position(0), unit: "ns".into() }),
            object: Some(Column { at: At::Position(1), unit: String::new() }),
            offset: Some(Column { at: At::Position(2), unit: "byte".into() }),
            every: Some("read".into()),
            origin,
            ..Columns::default()
        }),
        ..OpenOptions::default()
    };
    let text = "1,\"vol a, 1\",7\n2, \"vol a, 2\" ,\"8\"\n3,vol b,9\n4,\"say \"\"a, b\"\"\",10\n5,\"\",11\n";
    let (all, info) = read_bytes(text, &options(Zero::First)).unwrap();
    let names = names(&info);
    let row = |i: usize| (names[all.object[i] as usize], all.offset[i]);
    let wanted = [("vol a, 1", 7), ("vol a, 2", 8), ("vol b", 9), ("say \"\"a, b\"\"", 10), ("", 11)];
    assert_eq!((0..all.len()).map(row).collect::<Vec<_>>(), wanted);
    assert!(read_bytes("1,\"vol a, 1,7\n", &options(Zero::First)).is_err());
    let (all, _) = read_bytes("-5,a,0\n10,a,0\n", &options(Zero::First)).unwrap();
    assert_eq!(all.time, [0, 15]);
    let early = read_bytes("-5,a,0\n10,a,0\n", &options(Zero::Start)).unwrap_err().to_string();
    assert!(early.contains("time \"-5\" lies before the start"), "{early}");
    let far = "-9223372036854775807,a,0\n9223372036854775807,a,0\n";
    for origin in [Zero::First, Zero::Start, Zero::Epoch] {
        let far = read_bytes(far, &options(origin)).unwrap_err().to_string();
        assert!(far.contains("is not a number"), "{far}");
    }
}

/// A table that says one thing in two ways is refused.
#[test]
fn tables_that_contradict_themselves_are_refused() {
    let columns = |values: &[(&str, &[&str])]| Columns {
        time: Some(Column { at: At::Name("t".into()), unit: "s".into() }),
        op: Some(Column { at: At::Name("op".into()), unit: String::new() }),
        values: values
            .iter()
            .map(|(op, all)| (op.to_string(), all.iter().map(|v| v.to_string()).collect()))
            .collect(),
        ..Columns::default()
    };
    let refused = |columns: Columns, header: &str| {
        let options = OpenOptions {
            format: Some("delimited".into()),
            columns: Some(columns),
            ..OpenOptions::default()
        };
        read_bytes(format!("{header}\n1,R\n2,W\n"), &options).err().map(|e| e.to_string())
    };
    let good: &[(&str, &[&str])] = &[("read", &["R"]), ("write", &["W"])];
    assert_eq!(refused(columns(good), "t,op"), None);
    let both = refused(columns(&[("read", &["R", "W"]), ("write", &["W"])]), "t,op").unwrap();
    assert!(both.contains("calls the value \"W\" both read and write"), "{both}");
    let both = refused(columns(&[("ignore", &["R"]), ("read", &["R"]), ("write", &["W"])]), "t,op").unwrap();
    assert!(both.contains("both ignore and read"), "{both}");
    let twice = refused(columns(good), "t,op,t").unwrap();
    assert!(twice.contains("\"t\", which the header has twice: use the position, 0 or 2"), "{twice}");
}

/// Where the packets of a pcap file begin, and where it ends.
fn packets(file: &[u8]) -> Vec<usize> {
    let mut places = vec![24];
    while let Some(length) = file.get(places[places.len() - 1] + 8..).and_then(|rest| rest.first_chunk()) {
        places.push(places[places.len() - 1] + 16 + u32::from_le_bytes(*length) as usize);
    }
    places
}

fn without(file: &[u8], places: &[usize], lost: &[usize]) -> Vec<u8> {
    let kept = (0..places.len() - 1).filter(|packet| !lost.contains(packet));
    let kept = kept.flat_map(|packet| &file[places[packet]..places[packet + 1]]);
    file[..24].iter().chain(kept).copied().collect()
}

/// 200 reads over one connection: a packet that the capture lost takes no more with it than what it carried.
#[test]
fn a_lost_packet_takes_only_what_it_carried() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    let mut file = Vec::new();
    let packed = std::fs::File::open(data.join("nfs.pcap.gz")).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut file).unwrap();
    let places = packets(&file);
    let (whole, _) = told(file.clone());
    assert_eq!((whole.len(), places.len()), (200, 1 + places.len() - 1));
    let answered = |all: &Batch| all.latency.iter().filter(|latency| **latency >= 0).count();
    assert_eq!(answered(&whole), 200);
    // Behind the three packets that make the connection.
    for lost in 3..places.len() - 1 {
        let (all, info) = told(without(&file, &places, &[lost]));
        assert!(all.len() >= 199 && answered(&all) >= 199, "{lost}: {} of {}", answered(&all), all.len());
        assert!(info.counts.lost <= 1);
    }
    let several = [10, 11, 50, 97, 98, 99, 160];
    let (all, _) = told(without(&file, &places, &several));
    assert!(answered(&all) >= 200 - several.len(), "{} of {}", answered(&all), all.len());
}

#[test]
fn packets_in_tunnels_are_read_and_cut_ones_named() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    let (all, _) = read(&data.join("mpls.pcap"), &OpenOptions::default()).unwrap();
    assert_eq!(all.op, [Op::Read, Op::Write].map(|op| op as u8));
    let cut = read(&data.join("snap96.pcap"), &OpenOptions::default()).unwrap_err().to_string();
    assert!(cut.contains("2 calls are cut short") && cut.contains("4 of its 6 packets"), "{cut}");
    assert!(cut.contains("tcpdump -s 0"), "{cut}");
    // Bits above the link type say how long a check sum each packet ends with.
    let mut summed = std::fs::read(data.join("mpls.pcap")).unwrap();
    summed[23] = 0x44;
    assert_eq!(told(summed.clone()).0, all);
    // Of another protocol: what there is is said.
    for byte in packets(&summed).iter().rev().skip(1).map(|at| at + 16 + 12) {
        summed[byte..byte + 2].copy_from_slice(&[0x89, 0x15]);
    }
    let error = read_bytes(summed, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("6 RDMA over Ethernet") && error.contains("no"), "{error}");
}
