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
    let meta = Meta::new(Chunking::default(), "one of a test");
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
    assert!(exists.contains("`force`"), "{exists}");
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
    let cases: [(Break, &str); 8] = [
        (|s| s.trees[0].refs[0] = 5, "a chunk is not there"),
        (|s| s.trees[1].files.dir[1] = 9, "directory that is not there"),
        (|s| s.trees[0].dirs.parent[1] = 1, "before its parent"),
        (|s| s.trees[0].files.name[0] = 1 << 20, "file 0 has a name at byte 1048576 of the names"),
        (|s| s.trees[0].files.start[1] = 7, "overlap"),
        (|s| s.trees[0].files.mark[0] = 15, "unknown kind"),
        (|s| s.trees[0].files.extension[0] = 2, "extension is not there"),
        (|s| s.trees[0].files.private[0] = 1 << 30, "private section is not there"),
    ];
    for (break_it, what) in cases {
        let mut series = example();
        break_it(&mut series);
        let told = read(&bytes_of(&series)).err().unwrap();
        assert!(told.contains(what), "{told}, not {what}");
    }
}

/// A series whose entries have names that were put in by hand.
fn named(names: &[&[u8]], change: impl FnOnce(&mut Series)) -> Series {
    let mut series = example();
    for name in names {
        series.names.bytes.push(name.len() as u8);
        series.names.bytes.extend_from_slice(name);
    }
    change(&mut series);
    series
}

#[test]
fn names_that_lead_elsewhere_are_refused_when_read_and_when_kept() {
    // Behind the empty name of the root and "one.txt".
    const FIRST: u32 = 9;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.fst");
    let refused = |series: &Series, what: &str| {
        let told = read(&bytes_of(series)).err().expect("refused");
        assert!(told.contains(what), "{told}, not {what}");
        let kept = series.save(&path, false).unwrap_err().to_string();
        assert!(kept.contains(what) && !path.exists(), "{kept}, not {what}");
    };
    for name in [&b".."[..], b".", b"", b"a/b", b"/etc/passwd", b"../x", b"a\0b", b"/"] {
        let what = format!("1 has the name \"{}\" (byte 9 of the names)", name.escape_ascii());
        refused(&named(&[name], |s| s.trees[0].files.name[1] = FIRST), &format!("snapshot 0: file {what}"));
        refused(
            &named(&[name], |s| s.trees[1].dirs.name[1] = FIRST),
            &format!("snapshot 1: directory {what}"),
        );
    }
    refused(&named(&[], |s| s.trees[0].dirs.name[1] = 0), "directory 1 has the name \"\"");
    refused(&named(&[], |s| s.trees[0].dirs.name[0] = Name::made(1).0), "the root has a name");
    // Made names end with extensions.
    for extension in [&b"/../../../etc/x"[..], b"..", b"a/b", b"a\0", b"/", b"a.b", b"abcdefghijklm", b" "] {
        let series = named(&[], |s| s.names.extensions[1] = extension.to_vec());
        refused(&series, &format!("extension 1 is \"{}\"", extension.escape_ascii()));
    }
    // What reads back has been left alone.
    let fine = named(&[b"...", b"a b\n", &[b'x'; 255]], |s| {
        s.trees[0].files.name[1] = FIRST;
        s.trees[1].files.name[1] = FIRST + 4;
        s.trees[1].dirs.name[1] = FIRST + 9;
    });
    assert!(read(&bytes_of(&fine)).unwrap().trees == fine.trees);
}

#[test]
fn paths_holes_sizes_and_targets_that_cannot_be_are_refused() {
    let refused = |change: &dyn Fn(&mut Series), what: &str| {
        let mut series = example();
        change(&mut series);
        let told = read(&bytes_of(&series)).err().expect("refused");
        assert!(told.contains(what), "{told}, not {what}");
    };
    refused(&|s| s.trees[0].files.size[0] = u64::MAX, "file 0 has 18446744073709551615 bytes");
    let deep = |s: &mut Series| {
        for _ in 0..40_000 {
            let last = s.trees[0].dirs() as u32 - 1;
            s.trees[0].add_dir(last, Name::made(1));
        }
    };
    refused(&deep, "a path of 65538 bytes");
    let holes = |pairs: &[u64]| -> Vec<u8> { pairs.iter().flat_map(|one| one.to_le_bytes()).collect() };
    for pairs in
        [&[0, u64::MAX][..], &[u64::MAX, 2], &[0, 3007], &[100, 10, 105, 10], &[100, 10, 50, 10], &[1]]
    {
        let bytes = holes(pairs);
        refused(&|s| s.trees[0].set_private(0, &[(tag::HOLES, &bytes)]).unwrap(), "a hole of");
    }
    let mark = Mark::new(Kind::Symlink, State::New).0;
    for target in [&b"a\0b"[..], &[b'x'; 70_000]] {
        let link = |s: &mut Series| {
            s.trees[1].files.mark[1] = mark;
            s.trees[1].set_private(1, &[(tag::LINK, target)]).unwrap();
        };
        refused(&link, "snapshot 1: file 1 (byte");
    }
    // Where a link leads is its own: what is scanned has such.
    let mut series = example();
    series.trees[1].files.mark[1] = mark;
    series.trees[1].set_private(1, &[(tag::LINK, b"/../../etc/passwd")]).unwrap();
    assert!(read(&bytes_of(&series)).is_ok());
}

#[test]
fn entries_that_have_one_name_are_found() {
    let mut series = named(&[b"f7", b"one.txt"], |_| {});
    assert_eq!(series.trees[0].twice(&series.names), None);
    // The same name kept twice, one made and one kept, a file and a directory.
    type Change = fn(&mut Series);
    let same: [(Change, &str); 3] = [
        (|s| (s.trees[0].files.dir[1], s.trees[0].files.name[1]) = (1, 12), "d3/one.txt"),
        (
            |s| {
                s.trees[0].files.dir = vec![0, 0];
                s.trees[0].files.name = vec![9, Name::made(7).0];
                s.trees[0].files.extension = vec![0, 0];
            },
            "f7",
        ),
        (|s| (s.trees[0].dirs.name[1], s.trees[0].files.name[1]) = (9, 9), "f7"),
    ];
    let before = series.trees[0].clone();
    for (change, path) in same {
        series.trees[0] = before.clone();
        change(&mut series);
        assert_eq!(series.trees[0].twice(&series.names), Some(path.into()));
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
