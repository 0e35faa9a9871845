use super::*;
use crate::file::Damage;
use std::io::Cursor;

const VARIABLE: Method = Method::Variable { algorithm: 3, rule: [0; 32], min: 2048, max: 16384 };

fn chunk(seed: u64, size: u64, bits: u32, ratio: u8) -> Chunk {
    let mut hash = [0; MOST_HASH];
    let length = bits as usize / 8;
    hash[..length].copy_from_slice(&blake3::hash(&seed.to_le_bytes()).as_bytes()[..length]);
    Chunk { size, hash, ratio }
}

/// A file of a version, as it should be read.
fn example(version: u32, method: Method, bits: u32) -> HashFile {
    let since = |from: u32, value: u64| if version >= from { value } else { 0 };
    let head = Head {
        version,
        files: 3,
        root: b"/data/a".to_vec(),
        chunks: 5,
        method,
        hashing: 1,
        bits,
        system: if version >= 3 { b"Linux 3.2".to_vec() } else { Vec::new() },
        start: since(3, 1_331_251_200),
        end: since(3, 1_331_251_300),
        bytes: since(5, 3 * 4096 + 100 + 4096),
    };
    let told = version >= 3 || matches!(method, Method::Fixed { .. });
    let size = |size: u64| if told { size } else { 0 };
    let ratio = |ratio: u8| if version >= 6 { ratio } else { 0 };
    let file = |path: &[u8], size: u64, chunks: u64, mode: u64| FileHead {
        size,
        blocks: since(5, size.div_ceil(512)),
        uid: since(4, 1000) as u32,
        gid: since(4, 100) as u32,
        mode: since(4, mode),
        atime: since(4, 1),
        mtime: since(4, 2),
        ctime: since(4, 3),
        links: since(4, 1),
        device: since(4, 4),
        inode: since(4, 5 + size),
        chunks,
        path: path.to_vec(),
        target: Vec::new(),
    };
    let mut link = file(b"/data/a/link", 5, 0, 0o120777);
    link.target = if version >= 4 { b"b/one".to_vec() } else { Vec::new() };
    let four: Vec<_> = (0..3).map(|i| chunk(i, size(4096), bits, ratio(10 + i as u8))).collect();
    let last = chunk(9, size(100), bits, ratio(255));
    let files = vec![
        (file(b"/data/a/b/one", 3 * 4096 + 100, 4, 0o100755), [&four[..], &[last]].concat()),
        (link, Vec::new()),
        // The tail was left out, as scanners of fixed chunks can.
        (file(b"/data/a/n\xff", 5000, 1, 0o100644), vec![four[1]]),
    ];
    HashFile { head, files }
}

fn write(file: &HashFile) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), file.head.clone()).unwrap();
    for (head, chunks) in &file.files {
        writer.file(head, chunks).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn wrong(bytes: &[u8]) -> String {
    match HashFile::read(bytes) {
        Err(Damage::Wrong(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_version_comes_back() {
    for version in 1..=NEWEST {
        for method in [Method::Fixed { size: 4096 }, VARIABLE] {
            for bits in [48, 128, 160, 256] {
                let file = example(version, method, bits);
                let bytes = write(&file);
                assert_eq!(
                    HashFile::read(&bytes[..]).unwrap(),
                    file,
                    "version {version}, {method:?}, {bits} bits"
                );
            }
        }
    }
}

#[test]
fn fields_are_where_the_format_has_them() {
    // Sizes of the head: 4 + 4 + 8 + 4096 + 8 + 4 + 44 + 4 + 4, then 4096 + 8 + 8, then 8.
    let heads = [4176, 4176, 8288, 8288, 8296, 8296, 8296];
    // Of a file without its paths, and of a chunk of variable size with 6 bytes of hash.
    let files = [4112, 20, 20, 88, 96, 96, 96];
    let chunks = [6, 6, 14, 14, 14, 15, 11];
    for version in 1..=NEWEST {
        let file = example(version, VARIABLE, 48);
        let i = version as usize - 1;
        let paths = if version == 1 {
            0
        } else {
            file.files.iter().map(|(file, _)| file.path.len() + file.target.len()).sum()
        };
        let bytes = write(&file);
        assert_eq!(bytes.len(), heads[i] + 3 * files[i] + paths + 5 * chunks[i], "version {version}");
        assert_eq!(bytes[..8], [0xad, 0xde, 0xad, 0xde, version as u8, 0, 0, 0]);
        assert_eq!((bytes[8], bytes[4112], bytes[4120]), (3, 5, 2));
        assert_eq!((bytes[4124], bytes[4168], bytes[4172]), (3, 1, 48));
    }
}

#[test]
fn a_file_that_was_cut_short_is_told() {
    for version in [1, 3, 7] {
        let bytes = write(&example(version, VARIABLE, 48));
        for length in (0..bytes.len()).step_by(13).chain([bytes.len() - 1]) {
            let what = wrong(&bytes[..length]);
            assert!(
                what.contains("cut short") && what.contains("byte"),
                "version {version}, {length}: {what}"
            );
        }
    }
}

#[test]
fn counts_that_lie_are_told_with_their_byte() {
    let file = example(7, Method::Fixed { size: 4096 }, 48);
    let bytes = write(&file);
    let with = |at: usize, value: u64, length: usize| {
        let mut bytes = bytes.clone();
        bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        bytes
    };
    let first = 8296;
    let (chunks, length) = (first + 80, first + 88);
    for (at, value, bytes, say) in [
        (8, 2, 8, "more bytes behind the last of 2 files"),
        (8, 4, 8, "cut short"),
        (4112, 4, 8, "1 chunks, where the head says 4 in all"),
        (4112, 6, 8, "the end after 5 chunks, where the head says 6"),
        (first - 8, 7, 8, "the end after 16484 bytes"),
        (chunks, 5, 8, ""),
        (chunks, 6, 8, "at byte 8296 6 chunks, where the head says 5 in all"),
        (chunks, u64::MAX, 8, "18446744073709551615 chunks"),
        (chunks, 3, 8, ""),
        (length, 5000, 4, "at byte 8384 a path of 5000 bytes"),
        (length + 4, u64::from(u32::MAX), 4, "at byte 8388 a target of 4294967295 bytes"),
        (4, 8, 4, "version 8"),
        (0, 7, 4, "is no FSL hash file"),
        (4120, 3, 4, "at byte 4120 chunking method 3"),
        (4124, 0, 4, "at byte 4124 chunks of 0 bytes"),
        (4172, 47, 4, "at byte 4172 hashes of 47 bits"),
        (4172, 264, 4, "hashes of 264 bits"),
    ] {
        let what = wrong(&with(at, value, bytes));
        assert!(what.contains(say), "{at}: {what}");
    }
    let variable = write(&example(7, VARIABLE, 48));
    let mut empty = variable.clone();
    let chunk = 8296 + 96 + "/data/a/b/one".len();
    empty[chunk..chunk + 4].copy_from_slice(&[0; 4]);
    assert!(wrong(&empty).contains(&format!("at byte {chunk} a chunk of 0 bytes")));
    assert!(wrong(&[&variable[..], b"x"].concat()).contains("more bytes behind"));
}

#[test]
fn a_file_that_grew_has_whole_chunks() {
    let mut file = example(7, Method::Fixed { size: 4096 }, 48);
    file.head.bytes += 4096;
    file.head.chunks += 1;
    // 5000 bytes when it was looked at, two chunks and more when it was read.
    file.files[2].1 = vec![chunk(1, 4096, 48, 10), chunk(2, 904, 48, 10)];
    file.files[2].0.chunks = 2;
    file.head.bytes -= 4096 - 904;
    assert_eq!(HashFile::read(&write(&file)[..]).unwrap(), file);
    file.files[2].0.size = 3000;
    file.files[2].1[1].size = 4096;
    file.head.bytes += 4096 - 904;
    assert_eq!(HashFile::read(&write(&file)[..]).unwrap(), file);
}

#[test]
fn what_cannot_be_told_is_not_written() {
    let file = example(1, VARIABLE, 48);
    let say = |head: Head, path: usize| {
        let long = FileHead { path: vec![b'x'; path], ..FileHead::default() };
        let written =
            Writer::new(Cursor::new(Vec::new()), head).and_then(|mut writer| writer.file(&long, &[]));
        written.unwrap_err().to_string()
    };
    assert!(say(file.head.clone(), 4096).contains("4095 at most"));
    assert!(say(Head { version: 2, ..file.head.clone() }, 4097).contains("4096 at most"));
    assert!(say(Head { version: 8, ..file.head.clone() }, 0).contains("version 8"));
    assert!(say(Head { bits: 12, ..file.head.clone() }, 0).contains("12 bits"));
    assert!(say(Head { root: vec![b'x'; 4096], ..file.head.clone() }, 0).contains("4095 at most"));
}
