//! FSL hash files as snapshots.

use super::*;
use crate::fsl::{Chunk, FileHead, Head, MOST_HASH, Method, Writer};

const FIXED: Method = Method::Fixed { size: 4096 };

fn chunk(seed: u8, size: u64) -> Chunk {
    let mut hash = [0; MOST_HASH];
    hash[..6].fill(seed);
    Chunk { size, hash, ratio: 25 }
}

fn file(path: &str, size: u64, mode: u64) -> FileHead {
    FileHead { size, mode, path: path.as_bytes().to_vec(), ..FileHead::default() }
}

fn write(path: &Path, version: u32, method: Method, files: &[(FileHead, Vec<Chunk>)]) {
    let head = Head {
        version,
        files: 0,
        root: b"/data".to_vec(),
        chunks: 0,
        method,
        hashing: 3,
        bits: 48,
        system: Vec::new(),
        start: 0,
        end: 0,
        bytes: 0,
    };
    let mut writer = Writer::new(fs::File::create(path).unwrap(), head).unwrap();
    files.iter().for_each(|(file, chunks)| writer.file(file, chunks).unwrap());
    writer.finish().unwrap();
}

#[test]
fn hash_files_are_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("day1.4kb.hash"), folder.path().join("day2.4kb.hash.anon"));
    let linked = FileHead { links: 2, device: 1, inode: 5, ..file("/data/a/linked", 4096, 0o100644) };
    let again = FileHead { path: b"/data/again".to_vec(), ..linked.clone() };
    let link = FileHead { target: b"a/run".to_vec(), ..file("/data/link", 5, 0o120777) };
    let mut files = vec![
        (file("/data/a", 4096, 0o040755), vec![]),
        (file("/data/a/run", 5000, 0o100755), vec![chunk(1, 4096), chunk(2, 904)]),
        (linked, vec![chunk(1, 4096)]),
        (again, vec![chunk(1, 4096)]),
        (link, vec![]),
        (file("/data/pipe", 0, 0o010644), vec![]),
        (file("/database/b.TXT", 4096, 0o100644), vec![chunk(4, 4096)]),
    ];
    write(&one, 7, FIXED, &files);
    files[1].1[1] = chunk(3, 904);
    files.pop();
    write(&two, 7, FIXED, &files);
    // Traces are kept compressed, too.
    let packed = folder.path().join("day2.gz");
    let mut gzip =
        flate2::write::GzEncoder::new(fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    gzip.write_all(&fs::read(&two).unwrap()).unwrap();
    gzip.finish().unwrap();

    let (series, reports) = go(&[&one, &two, &packed], &Options::default());
    assert_eq!(series.meta.chunking, Chunking::Fixed { size: 4096 });
    assert_eq!(series.meta.chunker, "FSL hash file, fixed, MD5 of 48 bits");
    assert_eq!(series.chunks.width(), 6);
    let counts = |report: &Report| {
        (
            report.directories,
            report.files,
            report.executables,
            report.hard_links,
            report.symlinks,
            report.others,
        )
    };
    assert_eq!(counts(&reports[0]), (3, 3, 1, 1, 1, 1));
    let files = told(&series, 0);
    assert_eq!(files[Path::new("a/run")], (Kind::File, 5000, vec![4096, 904]));
    assert_eq!(files[Path::new("again")].0, Kind::Hard);
    assert_eq!(files[Path::new("database/b.TXT")].2, [4096]);
    assert_eq!(series.chunks.len(), 4);
    assert!((series.chunks.ratio(0).value() / 2.5 - 1.0).abs() < 0.02);
    assert_eq!(told(&series, 1), told(&series, 2));
    let state = |tree: usize, path: &str| {
        let tree = &series.trees[tree];
        let found = (0..tree.len() as u32).find(|file| tree.path(&series.names, *file) == Path::new(path));
        tree.file(found.unwrap()).mark.state()
    };
    assert_eq!((state(1, "a/run"), state(1, "a/linked")), (State::Modified, State::Unmodified));
    assert_eq!(state(2, "a/run"), State::Unmodified);
    let mut bytes = Vec::new();
    series.write_to(&mut bytes).unwrap();
    assert!(Series::read_from(&mut &bytes[..]).is_ok());
}

#[test]
fn chunks_without_sizes_share_those_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.hash");
    let mut rule = [0; 32];
    rule[20] = 13;
    let method = Method::Variable { algorithm: 3, rule, min: 2048, max: 16384 };
    let sizes = [(file("/data/x", 9000, 0), vec![chunk(1, 0), chunk(2, 0), chunk(1, 0)])];
    write(&path, 2, method, &sizes);
    let (series, reports) = go(&[&path], &Options::default());
    assert_eq!(series.meta.chunking, Chunking::Fastcdc { min: 2048, average: 8192, max: 16384 });
    assert_eq!(told(&series, 0)[Path::new("x")].2, [3000, 3000, 3000]);
    assert!(reports[0].notes[0].contains("does not tell the sizes"));
    assert_eq!(series.meta.codec, None);
}

#[test]
fn what_cannot_be_imported_is_refused_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let say = |paths: &[PathBuf]| {
        let told = scan(paths, &Options::default(), &mut |_, _| ControlFlow::Continue(()));
        told.err().unwrap().to_string()
    };
    let variable = Method::Variable { algorithm: 2, rule: [0; 32], min: 0, max: 8192 };
    write(&path("fixed"), 7, FIXED, &[(file("/data/x", 4096, 0o100644), vec![chunk(1, 4096)])]);
    write(&path("variable"), 7, variable, &[(file("/data/x", 9000, 0o100644), vec![chunk(1, 9000)])]);
    assert!(say(&[path("variable")]).contains("a chunk of 9000 bytes, its head says 8192 at most"));
    assert!(say(&[path("fixed"), path("variable")]).contains("cannot be compared"));
    fs::create_dir(path("tree")).unwrap();
    assert!(say(&[path("fixed"), path("tree")]).contains("scan hash files by themselves"));
    assert!(say(&[path("tree"), path("fixed")]).contains("cannot be compared"));
    fs::write(path("x.hash"), b"else").unwrap();
    assert!(say(&[path("x.hash")]).contains("does not begin with 0xdeaddead"));
    let cut = fs::read(path("fixed")).unwrap();
    fs::write(path("cut.hash.anon"), &cut[..cut.len() - 3]).unwrap();
    let text = say(&[path("cut.hash.anon")]);
    assert!(text.contains("cut.hash.anon: ends within a chunk, at byte"), "{text}");

    // A name that no file has, one that leads upwards, and a file that grew meanwhile.
    let odd = [
        (file("/data/a\0b", 0, 0o100644), vec![]),
        (file("/data/../x", 0, 0o100644), vec![]),
        (file("/data/log", 100, 0o100644), vec![chunk(1, 4096)]),
    ];
    write(&path("odd"), 7, variable, &odd);
    let (series, reports) = go(&[&path("odd")], &Options::default());
    assert_eq!((reports[0].unreadable, reports[0].changed, reports[0].files), (2, 1, 1));
    assert_eq!(told(&series, 0)[Path::new("log")].2, [4096]);
}
