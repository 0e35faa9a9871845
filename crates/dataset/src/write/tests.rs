use super::*;
use crate::scan::{self, scan};
use crate::{Chunking, measure};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

fn scanned(paths: &[PathBuf], chunking: Chunking) -> Series {
    let options = scan::Options { chunking, strip: 0, ..scan::Options::default() };
    scan(paths, &options, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap().0
}

fn options(snapshot: usize, threads: usize) -> Options {
    Options { snapshot, only_changed: false, seed: 3, threads }
}

fn put(series: &Series, options: &Options, to: &Path) -> Written {
    write_folder(series, options, to, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap()
}

/// Two snapshots with duplicates, holes, links and tiny files.
fn real(folder: &Path) -> [PathBuf; 2] {
    let paths = [folder.join("a"), folder.join("b")];
    for (i, root) in paths.iter().enumerate() {
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        for n in 0..40u64 {
            let changed = if i == 1 && n % 9 == 0 { 100 } else { 0 };
            let text = format!("{n} some text that repeats itself ").repeat(5 * n as usize);
            fs::write(root.join(format!("sub/t{n}.txt")), text).unwrap();
            fs::write(root.join(format!("sub/deep/{n}")), random(n % 30 + changed, 3000 * n as usize))
                .unwrap();
        }
        for n in 0..20u8 {
            fs::write(root.join(format!("tiny{n}")), vec![n; usize::from(n % 6)]).unwrap();
        }
        let mut sparse = fs::File::create(root.join("sparse")).unwrap();
        sparse.write_all(&random(500, 65536)).unwrap();
        sparse.seek(SeekFrom::Start(1 << 20)).unwrap();
        sparse.write_all(&random(501, 131_072)).unwrap();
        sparse.set_len(4 << 20).unwrap();
        fs::hard_link(root.join("sub/t9.txt"), root.join("sub/deep/again")).unwrap();
        symlink("sub/t9.txt", root.join("link")).unwrap();
    }
    paths
}

#[test]
fn what_is_written_has_the_chunks_of_what_was_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let paths = real(folder.path());
    for chunking in [Chunking::default(), Chunking::Fixed { size: 4096 }] {
        let series = scanned(&paths, chunking);
        let out = tempfile::tempdir().unwrap();
        let made: Vec<_> = (0..2)
            .map(|i| {
                let to = out.path().join(format!("{i}"));
                let written = put(&series, &options(i, 2), &to);
                assert_eq!((written.links, written.left_out, written.broken_links), (2, 0, 0));
                to
            })
            .collect();
        let again = scanned(&made, chunking);
        for (asked, found) in measure(&series).iter().zip(measure(&again)) {
            for (asked, found) in [(asked.alone, found.alone), (asked.together, found.together)] {
                let counts =
                    |c: &crate::Counts| (c.files, c.bytes, c.chunks, c.distinct, c.unique, c.dup1, c.dup2);
                assert_eq!(counts(&asked), counts(&found));
                let off = found.compress_ratio() / asked.compress_ratio() - 1.0;
                assert!(off.abs() < 0.05, "{off}");
            }
        }
        // Chunk by chunk, in every file, and all states.
        for (asked, found) in series.trees.iter().zip(&again.trees) {
            assert!(asked.files.mark == found.files.mark && asked.files.size == found.files.size);
            assert!(asked.refs == found.refs && asked.files.start == found.files.start);
        }
        let sparse = fs::metadata(made[0].join("sparse")).unwrap();
        assert!(sparse.len() == 4 << 20 && sparse.blocks() * 512 < 1 << 20);
        let links = fs::metadata(made[1].join("sub/t9.txt")).unwrap().nlink();
        assert_eq!(links, 2);
    }
}

#[test]
fn an_archive_has_the_files_of_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let series = scanned(&real(folder.path()), Chunking::default());
    let to = folder.path().join("out");
    put(&series, &options(1, 1), &to);
    let mut bytes = Vec::new();
    write_tar(&series, &options(1, 1), &mut bytes, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap();
    let mut seen = 0;
    for entry in tar::Archive::new(&bytes[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = to.join(entry.path().unwrap());
        match entry.header().entry_type() {
            tar::EntryType::Regular => {
                let mut data = Vec::new();
                std::io::Read::read_to_end(&mut entry, &mut data).unwrap();
                assert!(data == fs::read(&path).unwrap(), "{}", path.display());
            }
            tar::EntryType::Directory => assert!(path.is_dir()),
            _ => assert!(path.symlink_metadata().is_ok()),
        }
        seen += 1;
    }
    assert_eq!(seen, 2 + 40 + 40 + 20 + 1 + 2);
}

#[test]
fn threads_and_seeds_decide_nothing_and_all() {
    let folder = tempfile::tempdir().unwrap();
    let series = scanned(&real(folder.path())[..1], Chunking::default());
    let content = |name: &str, options: &Options| {
        let to = folder.path().join(name);
        put(&series, options, &to);
        (0..40).map(|n| fs::read(to.join(format!("sub/deep/{n}"))).unwrap()).collect::<Vec<_>>()
    };
    let one = content("1", &options(0, 1));
    assert!(one == content("3", &options(0, 3)));
    assert!(one != content("s", &Options { seed: 4, ..options(0, 1) }));
}

#[test]
fn an_incremental_backup_has_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let series = scanned(&real(folder.path()), Chunking::default());
    let to = folder.path().join("out");
    let written = put(&series, &Options { only_changed: true, ..options(1, 1) }, &to);
    assert_eq!(written.files, 4, "of 0, 9, 18, 27 and 36 the first is empty");
    assert!(to.join("sub/deep/9").exists() && !to.join("sub/deep/8").exists());
}

#[test]
fn what_is_there_stays_there() {
    let folder = tempfile::tempdir().unwrap();
    let series = scanned(&real(folder.path())[..1], Chunking::default());
    let say = |to: &Path, options: &Options| {
        write_folder(&series, options, to, &mut |_, _| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    assert!(say(folder.path(), &options(0, 1)).contains("is not empty"));
    assert!(say(&folder.path().join("x"), &options(1, 1)).contains("there are 1"));
    let mut huge = scanned(&[folder.path().join("a")], Chunking::default());
    huge.trees[0].files.size[3] = 1 << 60;
    let to = folder.path().join("y");
    let told = write_folder(&huge, &options(0, 1), &to, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert!(told.to_string().contains("are needed"), "{told}");
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
}

/// A series with one snapshot of files and links of these paths: what is in them, or where they lead.
fn by_hand(entries: &[(&str, Kind, &[u8])]) -> Series {
    use crate::{Entry, Name};
    let empty = tempfile::tempdir().unwrap();
    let mut series = scanned(&[empty.path().to_path_buf()], Chunking::default());
    let mut interner = loadstone_fstree::names::Interner::new(&series.names);
    let mut tree = Tree::new("");
    let mut dirs: std::collections::HashMap<String, u32> = [(String::new(), 0)].into();
    for (path, kind, told) in entries {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut dir = 0;
        let mut at = String::new();
        for part in above.split('/').filter(|part| !part.is_empty()) {
            at = format!("{at}/{part}");
            let number: Name = interner.name(&mut series.names, part.as_bytes()).unwrap();
            dir = *dirs.entry(at.clone()).or_insert_with(|| tree.add_dir(dir, number));
        }
        let name = interner.name(&mut series.names, name.as_bytes()).unwrap();
        let record = [(if *kind == Kind::Symlink { tag::LINK } else { tag::HARD }, *told)];
        let private = if *kind == Kind::File { &[][..] } else { &record[..] };
        let mark = Mark::new(*kind, State::New);
        tree.add_file(&Entry { dir, name, extension: 0, mark, size: 0, private }, &[]).unwrap();
    }
    series.trees = vec![tree];
    series
}

/// Everything below a directory, links as links.
fn listed(at: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(at).unwrap() {
        let entry = entry.unwrap();
        all.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            all.extend(listed(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn nothing_is_written_through_links_of_the_series() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("there"), "mine").unwrap();
    let lead = outside.as_os_str().as_encoded_bytes();
    let first = 0u32.to_le_bytes();
    // A link out, and a directory of the same name with a file in it; and a further name of a link.
    let twice =
        by_hand(&[("a", Kind::Symlink, lead), ("a/x", Kind::File, b""), ("a/there", Kind::Hard, &first)]);
    let link = by_hand(&[("a", Kind::Symlink, lead), ("b", Kind::Hard, &first), ("c/d", Kind::File, b"")]);
    let say = |series: &Series, to: &Path| {
        let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
        write_folder(series, &options(0, 1), to, watch).unwrap_err().to_string()
    };
    let told = say(&twice, &folder.path().join("one"));
    assert!(told.contains("two entries are named a,") && !folder.path().join("one").exists(), "{told}");
    let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
    assert!(write_tar(&twice, &options(0, 1), &mut Vec::new(), watch).is_err());
    let written = put(&link, &options(0, 1), &folder.path().join("two"));
    assert_eq!((written.links, written.broken_links), (1, 1));
    assert_eq!(fs::read_link(folder.path().join("two/a")).unwrap(), outside);
    assert_eq!(listed(&outside), [outside.join("there")]);
    // In archives, too, nothing follows a link.
    let mut bytes = Vec::new();
    write_tar(&link, &options(0, 1), &mut bytes, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap();
    let mut archive = tar::Archive::new(&bytes[..]);
    let kinds: Vec<_> = archive.entries().unwrap().map(|one| one.unwrap().header().entry_type()).collect();
    assert_eq!(kinds, [tar::EntryType::Directory, tar::EntryType::Regular, tar::EntryType::Symlink]);
}

#[test]
fn names_that_lead_out_are_written_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (to, secret) = (folder.path().join("deep/out"), folder.path().join("secret"));
    for evil in ["/../../../secret", "x/../../../secret", "..", "/secret"] {
        let mut series = by_hand(&[("d/f", Kind::File, b"")]);
        // A made directory whose name an extension leads out of, and a made file.
        series.names.extensions.push(evil.as_bytes().to_vec());
        series.trees[0].files.name[0] = crate::Name::made(0).0;
        series.trees[0].files.extension[0] = 1;
        let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
        let told = write_folder(&series, &options(0, 1), &to, watch).unwrap_err().to_string();
        assert!(told.contains("letters and digits"), "{told}");
        let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
        assert!(write_tar(&series, &options(0, 1), &mut Vec::new(), watch).is_err());
        assert!(write_hashes(&series, &options(0, 1), &secret, false, watch).is_err());
        assert!(!secret.exists() && !to.exists());
    }
}

#[test]
fn paths_beyond_what_the_kernel_takes_are_written() {
    let part = "p".repeat(250);
    let deep = [&part[..]; 60].join("/");
    let series =
        by_hand(&[(&format!("{deep}/f"), Kind::File, b""), (&format!("{deep}/l"), Kind::Hard, &[0; 4])]);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out");
    let written = put(&series, &options(0, 1), &to);
    assert_eq!((written.directories, written.files, written.links), (61, 1, 1));
    // The library that removes the directory goes by descriptors, too.
    drop(folder);
    assert!(!to.exists());
}

#[test]
fn what_is_not_whole_is_marked_as_unfinished() {
    let folder = tempfile::tempdir().unwrap();
    let series = scanned(&real(folder.path()), Chunking::default());
    let to = folder.path().join("out");
    let stop: Watch<'_> = &mut |_, _| ControlFlow::Break(());
    assert_eq!(write_folder(&series, &options(0, 1), &to, stop).unwrap(), None);
    assert!(to.join(UNFINISHED).is_file());
    let scan_it = |path: &Path| {
        let options = scan::Options::default();
        scan(&[path.to_path_buf()], &options, &mut |_, _| ControlFlow::Continue(()))
            .err()
            .unwrap()
            .to_string()
    };
    assert!(scan_it(&to).contains("is unfinished"), "{}", scan_it(&to));
    let say = |to: &Path| {
        let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
        write_folder(&series, &options(0, 1), to, watch).unwrap_err().to_string()
    };
    assert!(say(&to).contains("is not empty"), "{}", say(&to));
    // An empty one that a write was ended in, and one that is being written.
    let early = folder.path().join("early");
    fs::create_dir(&early).unwrap();
    let held = fs::File::create(early.join(UNFINISHED)).unwrap();
    assert!(say(&early).contains("is unfinished"), "{}", say(&early));
    assert!(loadstone_files::lock(&held, loadstone_files::Lock::Exclusive).unwrap());
    assert!(say(&early).contains("is being written by another run"), "{}", say(&early));
    assert!(scan_it(&early).contains("is being written"), "{}", scan_it(&early));
    drop(held);
    // A mark that is a link or a pipe is none of ours, and nothing is written through it.
    fs::remove_file(early.join(UNFINISHED)).unwrap();
    symlink(folder.path().join("elsewhere"), early.join(UNFINISHED)).unwrap();
    assert!(say(&early).contains("cannot be marked"), "{}", say(&early));
    assert!(!folder.path().join("elsewhere").exists());
    // What is whole has no mark.
    put(&series, &options(0, 1), &folder.path().join("whole"));
    assert!(!folder.path().join("whole").join(UNFINISHED).exists());
}

#[test]
fn several_snapshots_are_finished_together() {
    let folder = tempfile::tempdir().unwrap();
    let series = scanned(&real(folder.path()), Chunking::default());
    let within = folder.path().join("out");
    let all = [options(0, 1), options(1, 1)];
    let go = |form: Form, ending: &str, force: bool, watch: Watch<'_>| {
        let to = [0, 1].map(|i| within.join(format!("{i:03}{ending}")));
        write_snapshots(&series, (&all, form), &to, Some(&within), force, watch)
    };
    // It ends in the second.
    let first_is_there = || within.join("001").exists() || within.join("000.tar").exists();
    let mut end =
        |_: u64, _: u64| if first_is_there() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    assert_eq!(go(Form::Files, "", false, &mut end).unwrap(), None);
    assert!(within.join(UNFINISHED).exists() && !within.join("000").join(UNFINISHED).exists());
    assert!(scan::snapshots(&within, scan::Order::Name).unwrap_err().to_string().contains("is unfinished"));
    let mut on = |_: u64, _: u64| ControlFlow::Continue(());
    assert!(go(Form::Files, "", false, &mut on).unwrap_err().to_string().contains("is unfinished"));
    fs::remove_dir_all(&within).unwrap();
    // Archives may be gone on with.
    assert_eq!(go(Form::Tar, ".tar", false, &mut end).unwrap(), None);
    assert!(within.join(UNFINISHED).exists() && !within.join("001.tar").exists());
    assert!(go(Form::Tar, ".tar", false, &mut on).unwrap_err().to_string().contains("is unfinished"));
    assert_eq!(go(Form::Tar, ".tar", true, &mut on).unwrap().unwrap().len(), 2);
    assert_eq!(listed(&within), [within.join("000.tar"), within.join("001.tar")]);
    // Refused, it leaves what is whole as it is.
    assert!(go(Form::Tar, ".tar", false, &mut on).unwrap_err().to_string().contains("000.tar: exists"));
    assert!(go(Form::Files, ".tar", false, &mut on).unwrap_err().to_string().contains("000.tar: exists"));
    fs::create_dir(within.join("001")).unwrap();
    fs::write(within.join("001/mine"), "mine").unwrap();
    assert!(go(Form::Files, "", false, &mut on).unwrap_err().to_string().contains("001: is not empty"));
    assert!(!within.join(UNFINISHED).exists() && !within.join("000").exists());
}

#[test]
fn files_that_differ_from_their_size_make_whole_archives() {
    let folder = tempfile::tempdir().unwrap();
    let paths = real(folder.path());
    let series = |size: i64, holes: &[u64]| {
        let mut series = scanned(&paths[..1], Chunking::default());
        let tree = &mut series.trees[0];
        let file = (0..tree.len() as u32).max_by_key(|file| tree.chunks_of(*file).len()).unwrap();
        let bytes: u64 = tree.chunks_of(file).iter().map(|chunk| u64::from(series.chunks.size(*chunk))).sum();
        tree.files.size[file as usize] = bytes.saturating_add_signed(size);
        let holes: Vec<u8> = holes.iter().flat_map(|one| one.to_le_bytes()).collect();
        let records: &[(u16, &[u8])] = if holes.is_empty() { &[] } else { &[(tag::HOLES, &holes)] };
        tree.set_private(file, records).unwrap();
        series
    };
    for (size, holes) in [(1 << 40, &[][..]), (-5000, &[]), (1 << 40, &[100, 4096]), (-5000, &[100, 4096])] {
        let mut bytes = Vec::new();
        let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
        write_tar(&series(size, holes), &options(0, 1), &mut bytes, watch).unwrap().unwrap();
        let path = folder.path().join("x.tar");
        fs::write(&path, &bytes).unwrap();
        let again = scanned(&[path], Chunking::default());
        assert_eq!(again.trees[0].len(), 103, "{size} {holes:?}");
    }
}
