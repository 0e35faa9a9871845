use super::*;
use proptest::prelude::*;

/// A header with a sum that is right.
fn head(flag: u8, name: &str, size: u64) -> [u8; BLOCK] {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::new(flag));
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    *header.as_bytes()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

/// All members with their content, and whether the end was met.
type Whole = (Vec<(Member, Vec<u8>)>, bool);

fn read(bytes: &[u8]) -> io::Result<Whole> {
    let mut archive = Archive::new(bytes);
    assert!(!archive.is_begun());
    let mut all = Vec::new();
    while let Some(member) = archive.member()? {
        let mut content = Vec::new();
        archive.read_to_end(&mut content)?;
        all.push((member, content));
    }
    Ok((all, archive.is_ended()))
}

fn told(bytes: &[u8]) -> String {
    read(bytes).expect_err("refused").to_string()
}

/// What the library writes, with names of all lengths.
fn written(lengths: &[usize]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (i, length) in lengths.iter().enumerate() {
        let mut head = tar::Header::new_gnu();
        head.set_size(i as u64);
        head.set_mode(0o755);
        let name = format!("{}{i}", "d/".repeat(length / 2));
        tar.append_data(&mut head, &name, &vec![7; i][..]).unwrap();
        let mut head = tar::Header::new_gnu();
        head.set_entry_type(tar::EntryType::Symlink);
        head.set_size(0);
        tar.append_link(&mut head, format!("l{i}"), &name).unwrap();
    }
    tar.into_inner().unwrap()
}

#[test]
fn members_are_those_that_were_written() {
    let lengths = [1, 90, 99, 100, 101, 512, 513, 5000];
    let (all, ended) = read(&written(&lengths)).unwrap();
    assert!(ended && all.len() == 2 * lengths.len());
    for (i, pair) in all.chunks(2).enumerate() {
        let name = format!("{}{i}", "d/".repeat(lengths[i] / 2)).into_bytes();
        let file = Member {
            path: name.clone(),
            link: vec![],
            kind: Kind::File,
            size: i as u64,
            mode: 0o755,
            pieces: vec![],
        };
        assert_eq!(pair[0], (file, vec![7; i]));
        assert_eq!((pair[1].0.kind, &pair[1].0.link), (Kind::Symlink, &name));
    }
}

#[test]
fn pax_records_tell_path_link_and_size() {
    let record = |key: &str, value: &str| {
        let rest = format!(" {key}={value}\n");
        let digits = (1..).find(|digits| (rest.len() + digits).to_string().len() == *digits).unwrap();
        format!("{}{rest}", rest.len() + digits)
    };
    let records =
        [record("path", "a\nb"), record("mtime", "1.5"), record("size", "3"), record("linkpath", "x")];
    let records = records.concat();
    let mut bytes = [&head(b'x', "h", records.len() as u64)[..], &padded(records.as_bytes())].concat();
    bytes.extend_from_slice(&[&head(b'0', "short", 0)[..], &padded(b"abc")].concat());
    let (all, ended) = read(&bytes).unwrap();
    assert_eq!(
        (&all[0].0.path[..], &all[0].0.link[..], &all[0].1[..]),
        (&b"a\nb"[..], &b"x"[..], &b"abc"[..])
    );
    assert!(!ended, "no blocks end it");
    for records in ["5 a=b\n", "99 path=x\n", "path=x\n", "10 pathx=x", "12 size=big\n", "0 a=b\n", "2 \n"] {
        let bytes = [&head(b'x', "h", records.len() as u64)[..], &padded(records.as_bytes())].concat();
        assert!(told(&bytes).starts_with("byte 512: a "), "{records}: {}", told(&bytes));
    }
}

#[test]
fn headers_that_describe_without_end_are_refused_before_they_are_read() {
    // What follows is never asked for.
    struct Never(io::Cursor<Vec<u8>>);
    impl Read for Never {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into) {
                Ok(0) => panic!("read on"),
                read => read,
            }
        }
    }
    for flag in [b'L', b'K', b'x'] {
        let mut archive = Archive::new(Never(io::Cursor::new(head(flag, "h", 6 << 30).to_vec())));
        let told = archive.member().unwrap_err().to_string();
        assert_eq!(
            told,
            "byte 0: a header of 6442450944 bytes that describes a member: at most 1048576 are read"
        );
        let most = [&head(flag, "h", MOST_HEADER)[..], &vec![0; MOST_HEADER as usize]].concat();
        assert!(read(&most).unwrap().0.is_empty());
    }
}

#[test]
fn sparse_files_are_told_by_their_pieces() {
    let sparse = |pieces: &[(u64, u64)], real: u64, size: u64| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNUSparse);
        header.set_size(size);
        header.set_mode(0o644);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.set_real_size(real);
        for (room, (offset, length)) in gnu.sparse.iter_mut().zip(pieces) {
            room.set_offset(*offset);
            room.set_length(*length);
        }
        gnu.set_is_extended(pieces.len() > 4);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        if let Some(rest) = pieces.get(4..).filter(|rest| !rest.is_empty()) {
            let mut block = tar::GnuExtSparseHeader::new();
            for (room, (offset, length)) in block.sparse.iter_mut().zip(rest) {
                room.set_offset(*offset);
                room.set_length(*length);
            }
            bytes.extend_from_slice(block.as_bytes());
        }
        bytes.extend_from_slice(&padded(&vec![5; size.min(4096) as usize]));
        bytes
    };
    let six: Vec<_> = (0..6).map(|i| (i * 1000, 512)).chain([(6000, 0)]).collect();
    let (all, _) = read(&sparse(&six, 6000, 6 * 512)).unwrap();
    assert_eq!((all[0].0.size, &all[0].0.pieces[..], all[0].1.len()), (6000, &six[..6], 6 * 512));
    // A hole of eight exbibytes costs nothing.
    let (all, _) = read(&sparse(&[(0, 512), (i64::MAX as u64, 0)], i64::MAX as u64, 512)).unwrap();
    assert_eq!((all[0].0.size, all[0].1.len()), (i64::MAX as u64, 512));
    for (pieces, real, size) in [
        (&[(512, 512), (0, 512)][..], 1024, 1024),
        (&[(0, 512)], 100, 512),
        (&[(0, 512)], 512, 511),
        (&[(u64::MAX, 512)], 512, 512),
        (&[(0, u64::MAX), (u64::MAX, 0)], 512, 512),
    ] {
        assert!(told(&sparse(pieces, real, size)).starts_with("byte 0: "), "{pieces:?}");
    }
}

/// A member after a header of pax with these records.
fn pax(records: &[(&str, &str)], content: &[u8]) -> Vec<u8> {
    let mut told = Vec::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let length =
            (1..5).map(|digits| rest.len() + digits).find(|all| all.to_string().len() + rest.len() == *all);
        told.extend_from_slice(format!("{}{rest}", length.unwrap()).as_bytes());
    }
    let size = content.len() as u64;
    let heads = (head(b'x', "h", told.len() as u64), head(b'0', "GNUSparseFile.7/s", size));
    [&heads.0[..], &padded(&told), &heads.1[..], &padded(content), &[0; 2 * BLOCK]].concat()
}

#[test]
fn sparse_files_of_pax_are_told_in_each_of_their_versions() {
    let pieces = [(512, 100), (4096, 24)];
    let data = [7; 124];
    let old = [
        ("GNU.sparse.size", "5000"),
        ("GNU.sparse.numblocks", "2"),
        ("GNU.sparse.offset", "512"),
        ("GNU.sparse.numbytes", "100"),
        ("GNU.sparse.offset", "4096"),
        ("GNU.sparse.numbytes", "24"),
    ];
    let newer =
        [("GNU.sparse.name", "d/s"), ("GNU.sparse.size", "5000"), ("GNU.sparse.map", "512,100,4096,24")];
    let newest = [
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", "d/s"),
        ("GNU.sparse.realsize", "5000"),
    ];
    let listed = [&padded(b"2\n512\n100\n4096\n24\n")[..], &data].concat();
    for (bytes, name) in
        [(pax(&old, &data), "GNUSparseFile.7/s"), (pax(&newer, &data), "d/s"), (pax(&newest, &listed), "d/s")]
    {
        let (all, ended) = read(&bytes).unwrap();
        let (member, content) = &all[0];
        assert_eq!((member.kind, member.size, &member.pieces[..]), (Kind::Sparse, 5000, &pieces[..]));
        assert_eq!(
            (String::from_utf8_lossy(&member.path), &content[..], ended),
            (name.into(), &data[..], true)
        );
    }
    // A file that is one hole.
    let hole = pax(&[("GNU.sparse.size", "5000"), ("GNU.sparse.map", "")], &[]);
    assert_eq!((read(&hole).unwrap().0[0].0.size, read(&hole).unwrap().0[0].1.len()), (5000, 0));
    let refused = |records: &[(&str, &str)], content: &[u8]| told(&pax(records, content));
    assert!(refused(&newer, &data[1..]).contains("of which 123 follow"));
    assert!(refused(&[("GNU.sparse.map", "1")], &[]).contains("without its length"));
    assert!(refused(&[("GNU.sparse.map", "1,-1")], &[]).contains("number of a sparse file that is none"));
    assert!(refused(&[("GNU.sparse.numbytes", "1")], &[]).contains("without its offset"));
    assert!(refused(&[("GNU.sparse.major", "2")], &[]).contains("version 2.0"));
    assert!(refused(&[("GNU.sparse.x", "2")], &[]).contains("not known"));
    for list in ["", "9", "18446744073709551615\n", "1\n0\n", "x\n", &"1".repeat(600)] {
        let told = refused(&newest, list.as_bytes());
        assert!(told.contains("sparse file"), "{list:?}: {told}");
    }
}

#[test]
fn damage_is_told_with_its_byte() {
    let mut bytes = written(&[1, 200]);
    assert!(told(&bytes[..100]).starts_with("byte 100: ends within a member"));
    bytes[3] ^= 1;
    assert_eq!(told(&bytes), "byte 0: no header of tar: its checksum differs");
    let huge = head(b'0', "x", u64::MAX >> 1);
    assert!(told(&huge).starts_with("byte 512: ends within"));
    let mut beyond = tar::Header::new_gnu();
    beyond.set_size(u64::MAX);
    beyond.set_cksum();
    assert_eq!(told(beyond.as_bytes()), "byte 0: a member of 18446744073709551615 bytes, beyond 2^63");
}

#[test]
fn headers_are_told_from_what_is_none() {
    let header = head(b'0', "a", 3);
    assert!(is_head(&header) && is_head(&[0; BLOCK]));
    let mut other = header;
    other[0] = b'b';
    assert!(!is_head(&other) && !is_head(&[b'x'; BLOCK]) && !is_head(&header[..BLOCK - 1]));
}

proptest! {
    #[test]
    fn whatever_it_holds_it_is_read_or_refused(
        blocks in prop::collection::vec((prop::sample::select(b"0125LKxgS7Z".to_vec()), any::<u64>(), 0u64..2000), 1..8),
    ) {
        let mut bytes = Vec::new();
        for (flag, huge, small) in blocks {
            let size = if huge % 5 == 0 { huge } else { small };
            bytes.extend_from_slice(&head(flag, "name", size));
            bytes.extend_from_slice(&padded(&vec![b'1'; small as usize]));
        }
        let _ = read(&bytes);
    }
}

#[test]
fn only_files_have_content_whatever_a_size_says() {
    for (flag, name) in
        [(b'5', "d/"), (b'0', "d/"), (b'1', "h"), (b'2', "l"), (b'3', "c"), (b'4', "b"), (b'6', "p")]
    {
        let mut bytes =
            [head(flag, name, 512).to_vec(), head(b'0', "e", 3).to_vec(), padded(b"abc")].concat();
        bytes.extend_from_slice(&[0; 2 * BLOCK]);
        let (all, ended) = read(&bytes).unwrap();
        let found: Vec<_> = all.iter().map(|(member, content)| (&member.path[..], &content[..])).collect();
        assert_eq!(
            (found, ended),
            (vec![(name.as_bytes(), &b""[..]), (b"e", b"abc")], true),
            "{}",
            char::from(flag)
        );
    }
}
