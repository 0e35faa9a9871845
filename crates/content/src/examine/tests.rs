//! The reader on files whose content is known, and beside what the generator was asked for.

use super::*;
use crate::{Content, Wanted};
use std::path::PathBuf;

fn all(paths: &[PathBuf], options: &Options) -> Found {
    examine(&starts(paths), options, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap()
}

fn starts(paths: &[PathBuf]) -> Vec<Start> {
    paths.iter().cloned().map(Start::from).collect()
}

/// A file of `size` bytes as `wanted`.
fn file(folder: &Path, name: &str, number: u64, size: usize, content: &Content) -> PathBuf {
    let mut bytes = vec![0; size];
    content.fill(number, 0, 0, &mut bytes, &mut Vec::new());
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn duplicates_zeros_and_what_is_not_read_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let content = Content::new(1, &Wanted { dedupe: 1.0, compress: 1.0, unit: 4096 }, 0).unwrap();
    file(folder.path(), "one", 1, 10 * 4096 + 100, &content);
    // The same again, after 3 blocks of zeros: the chunks between cuts are found again, too.
    let again = [vec![0; 3 * 4096], std::fs::read(at("one")).unwrap()].concat();
    std::fs::create_dir(at("inside")).unwrap();
    std::fs::write(at("inside/again"), again).unwrap();
    std::fs::hard_link(at("one"), at("name")).unwrap();
    std::os::unix::fs::symlink("one", at("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("broken")).unwrap();
    let found = all(&[folder.path().into()], &Options::default());
    assert_eq!((found.files, found.others, found.unreadable, found.reason), (2, 3, 0, None));
    assert_eq!((found.bytes, found.read), (23 * 4096 + 200, 23 * 4096 + 200));
    let fixed = found.fixed;
    assert_eq!((fixed.chunks, fixed.unique_chunks, found.zero_blocks), (25, 12, 3));
    assert_eq!((fixed.bytes, fixed.unique_bytes), (23 * 4096 + 200, 11 * 4096 + 100));
    let chunked = found.chunked;
    assert_eq!(chunked.bytes, fixed.bytes);
    assert!(chunked.unique_bytes < 17 * 4096, "{chunked:?}");
    assert_eq!((found.by_unit.bytes, found.by_unit.pieces), (fixed.bytes, 25));
    assert_eq!(found.by_piece.pieces, 2);
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    std::fs::write(&path, vec![1; 4 * READ]).unwrap();
    let cut = |paths: &[PathBuf]| {
        let mut watch = |read, _| {
            if read == READ as u64 {
                File::options().write(true).open(&path).unwrap().set_len(2 * READ as u64).unwrap();
            }
            ControlFlow::Continue(())
        };
        examine(&starts(paths), &Options::default(), &mut watch)
    };
    let found = cut(&[folder.path().into()]).unwrap().unwrap();
    assert_eq!((found.unreadable, found.read), (1, 2 * READ as u64));
    assert!(found.reason.unwrap().contains(&format!("ended at byte {} of {}", 2 * READ, 4 * READ)));
    std::fs::write(&path, vec![1; 4 * READ]).unwrap();
    assert!(cut(std::slice::from_ref(&path)).unwrap_err().to_string().contains("became shorter"));
}

#[test]
fn nothing_is_something() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let found = all(&[folder.path().into()], &Options::default());
    assert_eq!((found.files, found.bytes, found.fixed.ratio(), found.by_unit.ratios()), (1, 0, 1.0, None));
}

#[test]
fn what_is_asked_for_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for (i, (dedupe, compress, unit)) in
        [(1.0, 1.0, 4096), (1.5, 2.0, 4096), (2.0, 4.0, 4096), (3.0, 1.5, 16384)].into_iter().enumerate()
    {
        let size = 24 << 20;
        let content =
            Content::new(i as u64, &Wanted { dedupe, compress, unit }, (size / unit) as u64).unwrap();
        let path = file(folder.path(), "data", 0, size, &content);
        let found = all(&[path], &Options { unit, ..Options::default() });
        let is = found.fixed.ratio();
        assert!((is / dedupe - 1.0).abs() < 0.02, "asked {dedupe}, found {is}");
        for (codec, is) in found.by_unit.ratios().unwrap() {
            assert!((is / compress - 1.0).abs() < 0.02, "asked {compress}, {codec} found {is}");
        }
        // In larger pieces headers are shared, and zlib has one table for many blocks.
        for (codec, is) in found.by_piece.ratios().unwrap() {
            assert!((is / compress - 1.0).abs() < 0.07, "asked {compress}, {codec} found {is} in pieces");
        }
        assert_eq!(found.zero_blocks, 0);
    }
}

#[test]
fn content_defined_chunkers_find_large_duplicates() {
    let folder = tempfile::tempdir().unwrap();
    let content = Content::new(3, &Wanted { dedupe: 2.0, compress: 1.0, unit: 1 << 20 }, 256).unwrap();
    let path = file(folder.path(), "data", 0, 256 << 20, &content);
    let options = Options { unit: 1 << 20, piece: 1 << 20, ..Options::default() };
    let found = all(&[path], &options);
    let (fixed, chunked) = (found.fixed.ratio(), found.chunked.ratio());
    assert!((chunked / fixed - 1.0).abs() < 0.02, "{fixed} and {chunked}");
}

#[test]
fn a_sample_is_spread_over_everything() {
    let folder = tempfile::tempdir().unwrap();
    let content = Content::new(3, &Wanted { dedupe: 1.0, compress: 2.0, unit: 4096 }, 0).unwrap();
    file(folder.path(), "large", 0, 64 << 20, &content);
    for i in 0..64 {
        file(folder.path(), &format!("small{i}"), 1 + i, 100_000, &content);
    }
    let sample = 20 << 20;
    let options = Options { sample: Some(sample), compress: Some(4 << 20), ..Options::default() };
    let found = all(&[folder.path().into()], &options);
    assert_eq!((found.files, found.bytes), (65, (64 << 20) + 6_400_000));
    assert!(found.read.abs_diff(sample) <= STRETCH, "{}", found.read);
    assert!(found.by_piece.bytes.abs_diff(4 << 20) <= 256 << 10, "{}", found.by_piece.bytes);
    // 2,048 blocks of each stretch of the large file, and 25 of each small one.
    let (large, small) = (found.fixed.chunks / 2048, found.fixed.chunks % 2048 / 25);
    assert!((1..4).contains(&large) && (10..50).contains(&small), "{large} stretches, {small} small files");
}

#[test]
fn it_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros");
    File::create(&path).unwrap().set_len(8 << 20).unwrap();
    let mut seen = Vec::new();
    let ended = examine(&starts(std::slice::from_ref(&path)), &Options::default(), &mut |done, of| {
        seen.push((done, of));
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(ended.unwrap(), None);
    assert_eq!(seen, [(1 << 20, 8 << 20), (2 << 20, 8 << 20), (3 << 20, 8 << 20)]);
    let found = all(std::slice::from_ref(&path), &Options::default());
    assert_eq!((found.zero_blocks, found.fixed.unique_chunks), (2048, 1));
    let part = [Start { path, most: Some(12 << 10) }];
    let found = examine(&part, &Options::default(), &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!((found.bytes, found.read, found.zero_blocks), (12 << 10, 12 << 10, 3));
}

#[test]
fn what_cannot_be_examined_says_so() {
    let say = |paths: &[PathBuf], options| {
        examine(&starts(paths), &options, &mut |_, _| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    let usual = Options::default();
    let missing = tempfile::tempdir().unwrap().path().join("missing");
    let told = format!("{}: cannot be looked at", missing.display());
    assert!(say(&[missing], usual).starts_with(&told));
    assert!(say(&["/".into()], Options { unit: 100, ..usual }).contains("unit of 100 bytes"));
    assert!(say(&["/".into()], Options { piece: 1024, ..usual }).contains("piece of 1024 bytes"));
}
