use super::*;
use crate::tree::{Kind, tag};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

fn go(paths: &[&Path], options: &Options) -> (Series, Vec<Report>) {
    let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
    scan(&paths, options, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap()
}

/// Path to kind, size and sizes of chunks.
fn told(series: &Series, tree: usize) -> BTreeMap<PathBuf, (Kind, u64, Vec<u32>)> {
    let tree = &series.trees[tree];
    (0..tree.len() as u32)
        .map(|file| {
            let entry = tree.file(file);
            let sizes = tree.chunks_of(file).iter().map(|chunk| series.chunks.size(*chunk)).collect();
            (tree.path(&series.names, file), (entry.mark.kind(), entry.size, sizes))
        })
        .collect()
}

#[test]
fn the_linked_chunker_is_the_one_that_is_told() {
    let lock = include_str!("../../../../Cargo.lock");
    let version = CHUNKER.split([' ', ',']).nth(1).unwrap();
    assert!(lock.contains(&format!("name = \"fastcdc\"\nversion = \"{version}\"")));
}

#[test]
fn everything_in_a_directory_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/one.TXT"), random(1, 100_000)).unwrap();
    fs::write(root.join("a/b/two.txt"), random(1, 100_000)).unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    fs::hard_link(root.join("a/one.TXT"), root.join("again")).unwrap();
    symlink("a/nowhere", root.join("link")).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"n\xff\xfe")), b"x").unwrap();
    let mut sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all(&random(2, 65536)).unwrap();
    sparse.seek(SeekFrom::Start(1 << 20)).unwrap();
    sparse.write_all(&random(3, 65536)).unwrap();
    sparse.set_len(4 << 20).unwrap();

    let options = Options { chunking: Chunking::Fixed { size: 65536 }, ..Options::default() };
    let (series, reports) = go(&[root], &options);
    let files = told(&series, 0);
    let file = |path: &str| files[Path::new(path)].clone();
    assert_eq!(file("a/b/two.txt"), (Kind::File, 100_000, vec![65536, 34464]));
    assert_eq!(file("sparse"), (Kind::File, 4 << 20, vec![65536, 65536]));
    assert_eq!(file("empty"), (Kind::File, 0, vec![]));
    assert_eq!(files[Path::new(std::ffi::OsStr::from_bytes(b"n\xff\xfe"))].1, 1);
    // Of the two names of a file the one nearer the root is met first.
    assert_eq!(file("a/one.TXT").0, Kind::Hard);
    let report = &reports[0];
    let counts = (report.directories, report.files, report.symlinks, report.hard_links, report.sparse);
    assert_eq!(counts, (3, 5, 1, 1, 1));
    assert_eq!(report.hole_bytes, (4 << 20) - 2 * 65536);
    assert!(report.is_whole());
    let tree = &series.trees[0];
    let named = |name: &str| (0..).find(|f| tree.path(&series.names, *f) == Path::new(name)).unwrap();
    assert_eq!(tree.private_of(named("link")).next(), Some((tag::LINK, &b"a/nowhere"[..])));
    assert_eq!(tree.linked(named("a/one.TXT")), Some(named("again")));
    assert_eq!(series.names.extensions[usize::from(tree.file(named("a/one.TXT")).extension)], b"txt");
    // 2 + 2 chunks of sparse and shared content, and the one byte.
    assert_eq!(series.chunks.len(), 5);
}

#[test]
fn threads_find_what_one_finds() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..200u64 {
        let dir = folder.path().join(format!("{}", i % 7));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("{i}")), random(i % 90, 1000 * i as usize)).unwrap();
    }
    let mut numbers = Vec::new();
    for threads in [1, 3] {
        let (series, _) = go(&[folder.path()], &Options { threads, ..Options::default() });
        let tree = &series.trees[0];
        numbers.push((tree.refs.clone(), tree.files.start.clone(), series.chunks.packed));
    }
    assert!(numbers[0] == numbers[1]);
}

#[test]
fn an_archive_is_what_its_directory_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root-1.0");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/one.txt"), random(1, 100_000)).unwrap();
    fs::write(root.join("a/b/two.c"), random(2, 300)).unwrap();
    symlink("b/two.c", root.join("a/link")).unwrap();
    let pack = |into: &mut dyn Write| {
        let mut tar = tar::Builder::new(into);
        tar.follow_symlinks(false);
        tar.append_dir_all("root-1.0", &root).unwrap();
        tar.finish().unwrap();
    };
    let mut bytes = Vec::new();
    pack(&mut bytes);
    let plain = folder.path().join("x.tar");
    fs::write(&plain, &bytes).unwrap();
    let packed = folder.path().join("x.tar.zst");
    fs::write(&packed, zstd::bulk::compress(&bytes, 1).unwrap()).unwrap();
    let gzip = folder.path().join("x.tgz");
    let mut codec =
        flate2::write::GzEncoder::new(fs::File::create(&gzip).unwrap(), flate2::Compression::fast());
    codec.write_all(&bytes).unwrap();
    codec.finish().unwrap();
    let options = Options { strip: 1, ..Options::default() };
    let (series, _) = go(&[&root, &plain, &packed, &gzip], &options);
    assert_eq!(told(&series, 0).len(), 3);
    for tree in 1..4 {
        assert_eq!(told(&series, tree), told(&series, 0));
        let state = |file| series.trees[tree].file(file).mark.state();
        assert!((0..3).all(|file| state(file) == State::Unmodified));
    }
}

/// An archive of one member. Its header has these fields; `behind` gives what follows.
fn member(kind: tar::EntryType, name: &str, size: u64, link: &[u8], behind: &[u8]) -> Vec<u8> {
    let mut head = tar::Header::new_gnu();
    head.set_entry_type(kind);
    head.set_size(size);
    head.set_mode(0o644);
    let old = head.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..link.len()].copy_from_slice(link);
    head.set_cksum();
    let mut bytes = [head.as_bytes(), behind].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

#[test]
fn archives_that_lead_out_are_scanned_by_what_stays_inside() {
    use tar::EntryType as Type;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar");
    let deep = "d/".repeat(40_000);
    let bytes = [
        member(Type::Regular, "../out", 1, b"", b"x"),
        member(Type::Regular, "/absolute", 1, b"", b"x"),
        member(Type::Regular, "a/../../out", 1, b"", b"x"),
        member(Type::Symlink, "link", 0, b"/etc", b""),
        member(Type::Regular, "link/passwd", 1, b"", b"x"),
        member(Type::Link, "hard", 0, b"../../etc/passwd", b""),
        member(Type::Char, "device", 0, b"", b""),
        member(Type::Fifo, "pipe", 0, b"", b""),
        vec![0; 1024],
    ];
    fs::write(&path, bytes.concat()).unwrap();
    let (series, reports) = go(&[&path], &Options::default());
    let told = told(&series, 0);
    let names: Vec<_> = told.keys().map(|path| path.display().to_string()).collect();
    assert_eq!(names, ["absolute", "device", "link/passwd", "pipe"]);
    let whys: Vec<_> = reports[0].troubles.iter().map(|(_, why)| &why[..]).collect();
    let below = "has a path that leads nowhere below";
    assert_eq!(whys, [below, below, build::TAKEN, "links to what is not before it"]);
    // 40,000 directories below each other are deeper than a series goes.
    let mut tar = tar::Builder::new(fs::File::create(&path).unwrap());
    tar.append_data(&mut tar::Header::new_gnu(), format!("{deep}f"), &b""[..]).unwrap();
    tar.into_inner().unwrap();
    let (series, _) = go(&[&path], &Options::default());
    let told = series.save(&folder.path().join("x.fst"), false).unwrap_err().to_string();
    assert!(told.contains("a path of 65538 bytes"), "{told}");
}

#[test]
fn archives_take_no_memory_by_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar");
    let say = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        scan(std::slice::from_ref(&path), &Options::default(), &mut |_, _| ControlFlow::Continue(()))
            .err()
            .unwrap()
            .to_string()
    };
    let first = member(tar::EntryType::Regular, "a", 1, b"", b"x");
    for kind in [tar::EntryType::GNULongName, tar::EntryType::GNULongLink, tar::EntryType::XHeader] {
        let told = say(&[&first[..], &member(kind, "h", 6 << 30, b"", b"")].concat());
        assert!(told.contains("byte 1024: a header of 6442450944 bytes"), "{told}");
    }
    // Eight exbibytes of hole are a hole, not zeros to read.
    let mut head = tar::Header::new_gnu();
    head.set_entry_type(tar::EntryType::GNUSparse);
    head.set_size(1);
    head.set_mode(0o755);
    head.set_path("sparse").unwrap();
    let gnu = head.as_gnu_mut().unwrap();
    gnu.set_real_size(1 << 62);
    gnu.sparse[0].set_offset(1 << 61);
    gnu.sparse[0].set_length(1);
    head.set_cksum();
    let mut bytes = [head.as_bytes(), &b"x"[..]].concat();
    bytes.resize(1024, 0);
    fs::write(&path, [&bytes[..], &[0; 1024]].concat()).unwrap();
    let (series, reports) = go(&[&path], &Options::default());
    assert_eq!((series.trees[0].file(0).size, series.trees[0].chunks_of(0).len()), (1 << 62, 1));
    assert_eq!((reports[0].sparse, reports[0].hole_bytes, reports[0].executables), (1, (1 << 62) - 1, 1));
    assert!(reports[0].notes.is_empty());
    // One that lacks its end may lack more.
    fs::write(&path, &bytes).unwrap();
    assert!(go(&[&path], &Options::default()).1[0].notes[0].contains("may be cut short"));
}

#[test]
fn states_tell_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    for (snapshot, files) in [("0", ["a", "b", "c"]), ("1", ["a", "b", "d"])] {
        let dir = folder.path().join(snapshot);
        fs::create_dir(&dir).unwrap();
        for name in files {
            let content = if name == "b" { format!("{name}{snapshot}") } else { name.to_string() };
            fs::write(dir.join(name), content).unwrap();
        }
    }
    let (series, _) = go(&[&folder.path().join("0"), &folder.path().join("1")], &Options::default());
    let states: Vec<_> = (0..3).map(|file| series.trees[1].file(file).mark.state()).collect();
    assert_eq!(states, [State::Unmodified, State::Modified, State::New]);
}

#[test]
fn compressibility_is_that_of_the_codec() {
    let whole = Options { compress: Compress::Whole, ..Options::default() };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("random"), random(1, 5000)).unwrap();
    let text = "all work and no play makes Jack a dull boy\n".repeat(100);
    fs::write(folder.path().join("text"), &text).unwrap();
    let (series, _) = go(&[folder.path()], &whole);
    let text = text.len() as f64 / zstd::bulk::compress(text.as_bytes(), 1).unwrap().len() as f64;
    assert_eq!(series.chunks.ratio(0), Ratio::nearest(1.0));
    assert_eq!(series.chunks.ratio(1), Ratio::nearest(text));
    let (series, _) = go(&[folder.path()], &Options { compress: Compress::None, ..Options::default() });
    assert_eq!(series.chunks.ratio(1), Ratio::UNKNOWN);
}

#[test]
fn what_cannot_be_scanned_is_refused_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let say = |path: &Path, options: &Options| {
        scan(&[path.to_path_buf()], options, &mut |_, _| ControlFlow::Continue(())).err().unwrap().to_string()
    };
    let options = Options::default();
    assert!(say(&folder.path().join("no"), &options).contains("cannot be looked at"));
    assert!(say(Path::new("/dev/null"), &options).contains("neither a directory nor a file"));
    let other = folder.path().join("other");
    fs::write(&other, random(5, 5000)).unwrap();
    assert!(say(&other, &options).contains("tar"));
    assert!(say(folder.path(), &Options { bits: 47, ..options.clone() }).contains("47 bits"));
    let stopped = scan(&[folder.path().into()], &options, &mut |_, _| ControlFlow::Break(())).unwrap();
    assert!(stopped.is_none());
}

/// Lines of words, more or less alike.
fn text(seed: u64, length: usize) -> Vec<u8> {
    let words: Vec<String> =
        (0i32..2000).map(|i| format!("{:x}", (i * i).wrapping_mul(7919) % 100_003)).collect();
    let mut bytes = Vec::new();
    for pair in random(seed, 2 * length).chunks(2) {
        let most = 1 + (seed as usize * 131) % words.len();
        bytes.extend_from_slice(words[usize::from(u16::from_le_bytes([pair[0], pair[1]])) % most].as_bytes());
        bytes.push(b' ');
        if bytes.len() >= length {
            break;
        }
    }
    bytes
}

#[test]
fn a_sample_tells_what_the_whole_does() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..400u64 {
        let bytes = if i % 4 == 0 { random(i, 120_000) } else { text(i, 200_000) };
        fs::write(folder.path().join(format!("{i}")), bytes).unwrap();
    }
    let key = folder.path().with_extension("key");
    fs::write(&key, [7; 32]).unwrap();
    let mut found = Vec::new();
    for (compress, threads) in [(Compress::Whole, 1), (Compress::Sample, 1), (Compress::Sample, 3)] {
        let options = Options { compress, threads, key: Some(key.clone()), ..Options::default() };
        found.push(go(&[folder.path()], &options).0);
    }
    fs::remove_file(&key).unwrap();
    assert!(found[0].chunks.len() > 2 * ratio::ENOUGH as usize, "there are enough to leave some out");
    // What was guessed does not depend on the threads.
    assert_eq!(found[1].chunks.packed, found[2].chunks.packed);
    assert!(found[1].meta.lz4.is_some());
    assert_eq!(found[1].meta.lz4, found[2].meta.lz4);
    assert_ne!(found[0].chunks.packed, found[1].chunks.packed);
    let ratio = |series: &Series| crate::measure(series)[0].alone.compress_ratio();
    let off = ratio(&found[1]) / ratio(&found[0]) - 1.0;
    assert!(off.abs() < 0.05, "{off}");
}

#[test]
fn larger_pieces_tell_how_far_chunks_resemble_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().with_extension("key");
    fs::write(&key, [9; 32]).unwrap();
    let scan = |name: &str, of: &dyn Fn(u64) -> Vec<u8>, compress, threads| {
        let dir = folder.path().join(name);
        if !dir.exists() {
            fs::create_dir(&dir).unwrap();
            (0..60).for_each(|i| fs::write(dir.join(i.to_string()), of(i)).unwrap());
        }
        let options = Options { compress, threads, key: Some(key.clone()), ..Options::default() };
        go(&[&dir], &options).0.meta.resemblance
    };
    let words = |i| text(i + 7, 700_000);
    let some = scan("text", &words, Compress::Whole, 1).unwrap();
    assert!(some.near > 0.05 && some.far > some.near, "{some:?}");
    assert_eq!(scan("text", &words, Compress::Whole, 3), Some(some));
    assert_eq!(scan("text", &words, Compress::Sample, 1), None);
    let none = scan("random", &|i| random(i, 700_000), Compress::Whole, 1).unwrap();
    assert!(none.far < 0.01, "{none:?}");
    // Of files of one chunk there are no larger pieces.
    assert_eq!(scan("small", &|i| text(i, 1500), Compress::Whole, 1), None);
    fs::remove_file(&key).unwrap();
}

#[test]
fn what_stays_of_chunks_that_change_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = ["one", "two"].map(|name| folder.path().join(name));
    let mut bytes = random(1, 1 << 20);
    for (i, dir) in (0..).zip(&snapshots) {
        fs::create_dir(dir).unwrap();
        fs::write(dir.join("changes"), &bytes).unwrap();
        fs::write(dir.join("is another"), random(5 + i, 1 << 20)).unwrap();
        fs::write(dir.join("stays"), random(2, 1 << 20)).unwrap();
        fs::write(dir.join(format!("new {i}")), random(9 + i, 1 << 20)).unwrap();
        // One byte of about every fourth chunk is another one.
        bytes.chunks_mut(32 << 10).for_each(|part| part[700] ^= 1);
    }
    let stays = |paths: &[PathBuf], compress| {
        let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
        go(&paths, &Options { compress, ..Options::default() }).0.meta.stays
    };
    let some = stays(&snapshots, Compress::Whole).unwrap();
    // Next to all of those have the same length; the other file has some hundred chunks.
    assert!((25..=32).contains(&some.parts[some.parts.len() - 1]), "{some:?}");
    assert!(some.parts[..some.parts.len() - 1].iter().sum::<u32>() < 8, "{some:?}");
    assert!((80..200).contains(&some.others), "{some:?}");
    assert_eq!(some.edits, some.parts[1..].iter().sum::<u32>(), "one sixteenth of each is another one");
    assert_eq!(stays(&snapshots, Compress::Sample), None);
    assert_eq!(stays(&snapshots[..1], Compress::Whole), None);
    assert_eq!(stays(&[snapshots[0].clone(), snapshots[0].clone()], Compress::Whole), None);
}

#[test]
fn what_stays_of_chunks_that_become_longer_or_shorter_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let snapshots = ["one", "two"].map(|name| folder.path().join(name));
    let bytes = random(1, 1 << 20);
    // Some bytes more in the middle of every 64 KiB, and some less in others.
    let mut changed = Vec::new();
    for (i, part) in bytes.chunks(64 << 10).enumerate() {
        changed.extend_from_slice(&part[..20_000]);
        if i % 2 == 0 {
            changed.extend_from_slice(&random(50 + i as u64, 90));
        }
        changed.extend_from_slice(&part[20_000 + 90 * (i % 2)..]);
    }
    for (dir, bytes) in snapshots.iter().zip([&bytes, &changed]) {
        fs::create_dir(dir).unwrap();
        fs::write(dir.join("file"), bytes).unwrap();
    }
    let paths: Vec<_> = snapshots.iter().map(PathBuf::as_path).collect();
    let stays = go(&paths, &Options { compress: Compress::Whole, ..Options::default() }).0.meta.stays;
    let stays = stays.unwrap();
    let sum = |counts: &[u32]| counts.iter().sum::<u32>();
    // Where no cut was added or lost one chunk takes the place of one, and nearly all of it stays.
    assert!((8..=16).contains(&sum(&stays.alone)), "{stays:?}");
    assert!(sum(&stays.alone[13..]) * 4 >= sum(&stays.alone) * 3, "{stays:?}");
    assert!(sum(&stays.parts) == 0, "{stays:?}");
    // Each has one edit but for a few that a cut was added to or lost from.
    let some = sum(&stays.alone[1..]) + sum(&stays.several[1..]);
    assert!((some..some + 8).contains(&stays.edits), "{stays:?}");
    assert!(stays.share() > 0.6, "{stays:?}");
}

#[test]
fn a_key_makes_scans_comparable() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), random(1, 100_000)).unwrap();
    let key = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).unwrap();
        Options { key: Some(folder.path().join(name)), ..Options::default() }
    };
    let prints = |options: &Options| go(&[&tree], options).0.chunks.prints;
    let (one, other) = (key("one", &[1; 32]), key("other", &[1; 33]));
    assert_eq!(prints(&one), prints(&one));
    assert_ne!(prints(&one), prints(&other));
    assert_ne!(prints(&Options::default()), prints(&Options::default()));
    let say = |options: &Options| {
        scan(std::slice::from_ref(&tree), options, &mut |_, _| ControlFlow::Continue(()))
            .err()
            .unwrap()
            .to_string()
    };
    assert!(say(&key("short", &[1; 15])).contains("has 15 bytes"));
    let none = Options { key: Some(folder.path().join("none")), ..Options::default() };
    assert!(say(&none).contains("cannot be read as a key"));
}

#[test]
fn hard_links_between_snapshots_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("0"), folder.path().join("1"));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    fs::write(first.join("same"), random(1, 50_000)).unwrap();
    let mut sparse = fs::File::create(first.join("sparse")).unwrap();
    sparse.write_all(&random(2, 65536)).unwrap();
    sparse.set_len(1 << 20).unwrap();
    fs::write(first.join("other"), random(3, 50_000)).unwrap();
    for name in ["same", "sparse"] {
        fs::hard_link(first.join(name), second.join(name)).unwrap();
    }
    fs::copy(first.join("other"), second.join("other")).unwrap();
    let scans = |settled| go(&[&first, &second], &Options { settled, ..Options::default() });
    let (read, every) = scans(None);
    assert_eq!(every[1].reused, 0);
    // Written only now, so a minute has not passed.
    assert_eq!(scans(Some(Duration::from_secs(60))).1[1].reused, 0);
    std::thread::sleep(Duration::from_millis(30));
    let (known, some) = scans(Some(Duration::from_millis(20)));
    assert_eq!((some[0].reused, some[1].reused, some[1].bytes), (0, 2, 50_000));
    assert_eq!((some[1].chunks, some[1].files), (every[1].chunks, every[1].files));
    for tree in [0, 1] {
        assert_eq!(told(&known, tree), told(&read, tree));
        let holes = |series: &Series| -> Vec<_> {
            let tree = &series.trees[tree];
            (0..3)
                .map(|file| {
                    tree.private_of(file).map(|(tag, bytes)| (tag, bytes.to_vec())).collect::<Vec<_>>()
                })
                .collect()
        };
        assert_eq!(holes(&known), holes(&read));
    }
}

#[test]
fn files_that_may_be_executed_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::write(&run, b"#!/bin/sh").unwrap();
    fs::set_permissions(&run, std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
    fs::write(folder.path().join("text"), b"text").unwrap();
    let archive = folder.path().with_extension("tar");
    let mut tar = tar::Builder::new(fs::File::create(&archive).unwrap());
    tar.append_dir_all(".", folder.path()).unwrap();
    tar.finish().unwrap();
    let (series, reports) = go(&[folder.path(), &archive], &Options::default());
    for (tree, report) in series.trees.iter().zip(&reports) {
        assert_eq!((report.files, report.executables), (2, 1));
        let tags = |file| tree.private_of(file).map(|(tag, _)| tag).collect::<Vec<_>>();
        let run = (0..2).find(|file| tree.path(&series.names, *file) == Path::new("run")).unwrap();
        assert_eq!((tags(run), tags(1 - run)), (vec![tag::EXECUTABLE], vec![]));
    }
    fs::remove_file(archive).unwrap();
}

#[test]
fn what_changes_between_listing_and_reading_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["gone", "dir", "pipe", "link", "less", "same"] {
        fs::write(path(name), random(1, 10_000)).unwrap();
    }
    // The first look comes after listing and before reading.
    let mut first = true;
    let mut watch = |_, _| {
        if std::mem::take(&mut first) {
            for name in ["gone", "dir", "pipe", "link"] {
                fs::remove_file(path(name)).unwrap();
            }
            fs::create_dir(path("dir")).unwrap();
            let made = std::process::Command::new("mkfifo").arg(path("pipe")).status();
            assert!(made.unwrap().success());
            symlink("same", path("link")).unwrap();
            fs::write(path("less"), random(1, 500)).unwrap();
        }
        ControlFlow::Continue(())
    };
    let (series, reports) = scan(&[folder.path().into()], &Options::default(), &mut watch).unwrap().unwrap();
    let report = &reports[0];
    assert_eq!((report.files, report.vanished, report.unreadable, report.changed), (6, 1, 3, 0));
    let mut named: Vec<_> =
        report.troubles.iter().map(|(path, why)| (path.rsplit('/').next().unwrap(), &why[..])).collect();
    named.sort();
    assert_eq!(named[0], ("dir", "is no file any more"));
    assert_eq!(named[1], ("gone", "vanished before it was read"));
    assert!(named[2].1.contains("symbolic links"), "{named:?}");
    assert_eq!(named[3], ("pipe", "is no file any more"));
    let files = told(&series, 0);
    // What was there when it was read is what is told.
    assert_eq!(files[Path::new("less")], (Kind::File, 500, vec![500]));
    assert_eq!(files[Path::new("gone")].0, Kind::Unreadable);
    assert!(!report.is_whole());
}

#[test]
fn a_file_that_grows_while_it_is_read_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::write(&log, random(1, 40 << 20)).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().append(true).open(&log).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                file.write_all(b"one more line\n").unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let (_, reports) = go(&[folder.path()], &Options::default());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!((reports[0].changed, reports[0].unreadable), (1, 0));
        assert!(reports[0].troubles[0].1.contains("changed while it was read"));
    });
}

#[test]
fn files_are_read_whose_path_is_longer_than_the_kernel_takes() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    fs::create_dir(&made).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(made.join(name.repeat(200)), name.repeat(3000)).unwrap();
    }
    // The directory's own path fits into 4,096 bytes.
    let mut deep = folder.path().join("tree");
    while deep.as_os_str().len() < 3700 {
        deep.push("d".repeat(250));
    }
    fs::create_dir_all(&deep).unwrap();
    fs::rename(made, deep.join("e".repeat(200))).unwrap();
    for threads in [1, 3] {
        let options = Options { threads, ..Options::default() };
        let (_, reports) = go(&[&folder.path().join("tree")], &options);
        assert_eq!((reports[0].files, reports[0].unreadable, reports[0].bytes), (3, 0, 9000));
    }
}

mod hashes;

/// As tar -r and -u append: a name that comes again is another file, and its old further names keep the old one.
#[test]
fn further_names_keep_what_their_first_one_was() {
    use tar::EntryType as Type;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar");
    let link = |name: &str, to: &[u8]| member(Type::Link, name, 0, to, b"");
    let file = |name: &str, size: u64| member(Type::Regular, name, size, b"", &vec![7; size as usize]);
    let of = |parts: &[Vec<u8>]| {
        fs::write(&path, [parts.concat(), vec![0; 1024]].concat()).unwrap();
        let (series, _) = go(&[&path], &Options::default());
        let tree = &series.trees[0];
        let of_link = |file: u32| tree.linked(file).map(|first| tree.path(&series.names, first));
        let all = (0..tree.len() as u32).map(|file| {
            let entry = tree.file(file);
            (tree.path(&series.names, file).display().to_string(), (entry.size, of_link(file)))
        });
        all.collect::<BTreeMap<_, _>>()
    };
    let found = of(&[file("a", 512), link("b", b"a"), link("c", b"a"), file("a", 700)]);
    assert_eq!(found["a"], (700, None));
    assert_eq!(found["b"], (512, None));
    assert_eq!(found["c"], (512, Some("b".into())));
    // The second name comes again, too, and then the first as a name of the third.
    let more =
        [file("a", 512), link("b", b"a"), link("c", b"b"), file("b", 9), file("a", 700), link("a", b"c")];
    let found = of(&more);
    assert_eq!((found["a"].clone(), found["b"].clone()), ((512, None), (9, None)));
    assert_eq!(found["c"], (512, Some("a".into())));
    // A name of itself stays what it is.
    let found = of(&[file("a", 512), link("b", b"a"), link("a", b"b"), link("b", b"b")]);
    assert_eq!((found["a"].clone(), found["b"].clone()), ((512, None), (512, Some("a".into()))));
}

/// Two entries of one name made a series that could not be written.
#[test]
fn of_a_file_and_a_directory_of_one_name_the_directory_is_kept() {
    use tar::EntryType as Type;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar");
    let bytes = [
        member(Type::Regular, "f", 1, b"", b"x"),
        member(Type::Link, "g", 0, b"f", b""),
        member(Type::Regular, "f/below", 1, b"", b"y"),
        member(Type::Regular, "f", 1, b"", b"z"),
        member(Type::Symlink, "l", 0, b"f", b""),
        member(Type::Directory, "l/", 0, b"", b""),
        member(Type::Link, "h", 0, b"g", b""),
        vec![0; 1024],
    ];
    fs::write(&path, bytes.concat()).unwrap();
    let (series, reports) = go(&[&path], &Options::default());
    let found = told(&series, 0);
    let names: Vec<_> = found.iter().map(|(path, entry)| (path.display().to_string(), entry.0)).collect();
    let wanted = [("f/below", Kind::File), ("g", Kind::File), ("h", Kind::Hard)];
    assert_eq!(names, wanted.map(|(name, kind)| (name.to_string(), kind)));
    let whys: Vec<_> = reports[0].troubles.iter().map(|(_, why)| &why[..]).collect();
    assert_eq!(whys, [build::TAKEN, build::KEPT, build::TAKEN]);
    assert!(!reports[0].is_whole() && series.trees[0].twice(&series.names).is_none());
    let loaded = folder.path().join("x.fst");
    series.save(&loaded, false).unwrap();
    assert_eq!(told(&Series::load(&loaded).unwrap(), 0), found);
}
