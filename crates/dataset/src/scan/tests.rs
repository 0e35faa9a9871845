use super::*;
use crate::tree::tag;
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
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("random"), random(1, 5000)).unwrap();
    let text = "all work and no play makes Jack a dull boy\n".repeat(100);
    fs::write(folder.path().join("text"), &text).unwrap();
    let (series, _) = go(&[folder.path()], &Options::default());
    let text = text.len() as f64 / zstd::bulk::compress(text.as_bytes(), 1).unwrap().len() as f64;
    assert_eq!(series.chunks.ratio(0), Ratio::nearest(1.0));
    assert_eq!(series.chunks.ratio(1), Ratio::nearest(text));
    let (series, _) = go(&[folder.path()], &Options { compress: false, ..Options::default() });
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
    assert!(say(Path::new("/dev/null"), &options).contains("neither a directory nor a tar file"));
    let other = folder.path().join("other");
    fs::write(&other, random(5, 5000)).unwrap();
    assert!(say(&other, &options).contains("tar"));
    assert!(say(folder.path(), &Options { bits: 47, ..options.clone() }).contains("47 bits"));
    let stopped = scan(&[folder.path().into()], &options, &mut |_, _| ControlFlow::Break(())).unwrap();
    assert!(stopped.is_none());
}
