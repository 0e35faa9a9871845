use super::*;
use crate::chunks::{Packed, Ratio};
use crate::names::Name;
use crate::tree::{Chunking, Entry, Kind, Mark, State, tag};
use proptest::prelude::*;

/// Two snapshots with something of everything.
fn example() -> Series {
    let (mut names, mut chunks) = (Names::new(), Chunks::new(12));
    let mut interner = crate::names::Interner::new(&names);
    let name = interner.name(&mut names, b"one.txt").unwrap();
    let extension = interner.extension(&mut names, b"one.txt");
    for i in 0..5 {
        chunks.add(Packed::new(1000 + i, Ratio(i as u8 + 1)), &[i as u8; 12]).unwrap();
    }
    let mut trees = Vec::new();
    for label in ["first", "second"] {
        let mut tree = Tree::new(label);
        let dir = tree.add_dir(0, Name::made(3));
        let entry =
            Entry { dir, name, extension, mark: Mark::new(Kind::File, State::New), size: 3006, private: &[] };
        tree.add_file(&entry, &[1, 2, 3]).unwrap();
        let linked = 0u32.to_le_bytes();
        let record: [(u16, &[u8]); 1] = [(tag::HARD, &linked)];
        let mark = Mark::new(Kind::Hard, State::Unmodified);
        tree.add_file(&Entry { dir: 0, mark, private: &record, ..entry }, &[]).unwrap();
        tree.set_private_of_dir(dir, &[(tag::EXTENSION, b"mine")]).unwrap();
        trees.push(tree);
    }
    let meta = Meta {
        chunking: Chunking::default(),
        chunker: "one of a test".into(),
        codec: None,
        seed: None,
        resemblance: None,
        stays: None,
    };
    Series { meta, chunks, names, trees }
}

fn bytes_of(series: &Series) -> Vec<u8> {
    let mut bytes = Vec::new();
    series.write_to(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> std::result::Result<Series, String> {
    Series::read_from(&mut &bytes[..]).map_err(|damage| match damage {
        Damage::Io(cause) => cause.to_string(),
        Damage::Wrong(what) => what,
    })
}

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (path, series) = (folder.path().join("x.fst"), example());
    series.save(&path, false).unwrap();
    let again = Series::load(&path).unwrap();
    assert_eq!(again.meta, series.meta);
    assert!(again.chunks == series.chunks && again.trees == series.trees);
    assert!(again.names.bytes == series.names.bytes && again.names.extensions == series.names.extensions);
    assert_eq!(again.trees[0].linked(1), Some(0));
    assert_eq!(again.trees[1].private_of_dir(1).next(), Some((tag::EXTENSION, &b"mine"[..])));
    let exists = series.save(&path, false).unwrap_err().to_string();
    assert!(exists.contains("--force"), "{exists}");
    series.save(&path, true).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left aside");
}

#[test]
fn shares_that_are_none_are_refused() {
    for (near, far, is_right) in [(0.1, 0.3, true), (0.1, 1.5, false), (-0.1, 0.3, false)] {
        let mut series = example();
        series.meta.resemblance = Some(crate::tree::Resemblance { near, far });
        series.meta.stays =
            Some(crate::tree::Stays { parts: [3; 16], others: 7, last: [1; 17], ..Default::default() });
        match read(&bytes_of(&series)) {
            Ok(again) => assert!(is_right && again.meta == series.meta),
            Err(what) => assert!(!is_right && what.contains("more than whole"), "{what}"),
        }
    }
}

#[test]
fn what_is_no_such_file_is_refused() {
    assert!(read(b"").err().unwrap().contains("no fstree file"));
    assert!(read(&[7; 100]).err().unwrap().contains("no fstree file"));
    let mut later = bytes_of(&example());
    later[8] = 2;
    assert!(read(&later).err().unwrap().contains("version 2"));
}

#[test]
fn every_truncation_is_told() {
    let bytes = bytes_of(&example());
    for length in 0..bytes.len() {
        let what = read(&bytes[..length]).err().unwrap();
        assert!(what.contains("no fstree file") || what.contains("cut short"), "{length}: {what}");
    }
}

#[test]
fn a_length_that_lies_costs_no_memory() {
    let mut bytes = bytes_of(&example());
    bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(read(&bytes).err().unwrap().contains("cut short"));
}

#[test]
fn references_that_lead_nowhere_are_told() {
    type Break = fn(&mut Series);
    let cases: [(Break, &str); 9] = [
        (|s| s.trees[0].refs[0] = 5, "a chunk is not there"),
        (|s| s.trees[1].files.dir[1] = 9, "directory that is not there"),
        (|s| s.trees[0].dirs.parent[1] = 1, "before its parent"),
        (|s| s.trees[0].files.name[0] = 1 << 20, "a name is not there"),
        (|s| s.trees[0].files.start[1] = 7, "overlap"),
        (|s| s.trees[0].files.mark[0] = 15, "unknown kind"),
        (|s| s.trees[0].files.extension[0] = 2, "extension is not there"),
        (|s| s.trees[0].files.private[0] = 1 << 30, "private section is not there"),
        (|s| s.names.bytes[2] = b'/', "leads elsewhere"),
    ];
    for (break_it, what) in cases {
        let mut series = example();
        break_it(&mut series);
        let told = read(&bytes_of(&series)).err().unwrap();
        assert!(told.contains(what), "{told}, not {what}");
    }
}

proptest! {
    #[test]
    fn bits_that_flip_are_told(at: prop::sample::Index, bit in 0u8..8) {
        let mut bytes = bytes_of(&example());
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(read(&bytes).is_err(), "byte {at}");
    }
}
