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
