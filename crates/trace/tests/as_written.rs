//! Traces as their tools and their users' editors write them: marks, blanks, headers, chatter, decoration, lost packets.

mod common;

use common::{format, read, read_bytes};
use loadstone_trace::{Batch, Info, Op, OpenOptions};
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
    assert!(error.contains("line 1") && error.contains("--columns"), "{error}");
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
    let text: String = lines
        .iter()
        .enumerate()
        .map(|(i, line)| format!("7 17000000{i:02}.000100 {line} <0.000010>\n"))
        .collect();
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
