use super::super::{Options, scan_git};
use super::*;
use crate::tree::Series;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;

/// A repository whose history the tests know.
struct Repo {
    folder: tempfile::TempDir,
}

impl Repo {
    fn new() -> Repo {
        let repo = Repo { folder: tempfile::tempdir().unwrap() };
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
        let mut command = Command::new("git");
        command.current_dir(self.path()).env("GIT_CONFIG_GLOBAL", "/dev/null").args(own).args(arguments);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().into()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    fn scan(&self, commits: &Commits) -> (Series, Vec<Report>) {
        go(self.path(), commits, &Options::default()).unwrap()
    }
}

fn go(repo: &Path, commits: &Commits, options: &Options) -> Result<(Series, Vec<Report>)> {
    Ok(scan_git(repo, commits, options, &mut |_, _| ControlFlow::Continue(()))?.unwrap())
}

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Kind, size, chunks' sizes and private records of a file.
type Told = (Kind, u64, Vec<u32>, Vec<(u16, Vec<u8>)>);

/// What is told of all files, by path.
fn told(series: &Series, tree: usize) -> BTreeMap<PathBuf, Told> {
    let tree = &series.trees[tree];
    let one = |file| {
        let entry = tree.file(file);
        let sizes = tree.chunks_of(file).iter().map(|chunk| series.chunks.size(*chunk)).collect();
        let records = tree.private_of(file).map(|(tag, bytes)| (tag, bytes.to_vec())).collect();
        (tree.path(&series.names, file), (entry.mark.kind(), entry.size, sizes, records))
    };
    (0..tree.len() as u32).map(one).collect()
}

/// Three commits with what a tree can have.
fn history() -> Repo {
    let repo = Repo::new();
    repo.write("a/one", &random(1, 100_000));
    repo.write("a/copy", &random(1, 100_000));
    repo.write("a/b/run.sh", b"#!/bin/sh\n");
    repo.write("empty", b"");
    fs::set_permissions(repo.path().join("a/b/run.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    std::os::unix::fs::symlink("a/one", repo.path().join("link")).unwrap();
    repo.commit();
    let mut more = random(1, 100_000);
    more.extend(random(2, 20_000));
    repo.write("a/one", &more);
    repo.commit();
    fs::remove_file(repo.path().join("a/copy")).unwrap();
    repo.write("new", b"new");
    repo.commit();
    repo
}

#[test]
fn a_commit_is_what_its_checkout_is() {
    let repo = history();
    let (series, reports) = repo.scan(&Commits::default());
    assert_eq!(series.trees.len(), 3);
    for (i, commit) in repo.git(&["rev-list", "--reverse", "HEAD"]).lines().enumerate() {
        assert!(commit.starts_with(&series.trees[i].label) && series.trees[i].label.len() == DIGITS);
        let checkout = tempfile::tempdir().unwrap();
        let out = checkout.path().display().to_string();
        repo.git(&["--work-tree", &out, "checkout", "-q", "-f", commit, "--", "."]);
        let paths = [checkout.path().to_path_buf()];
        let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
        let (live, found) = super::super::scan(&paths, &Options::default(), watch).unwrap().unwrap();
        assert_eq!(told(&series, i), told(&live, 0), "commit {i}");
        let counts = |report: &Report| {
            (report.directories, report.files, report.executables, report.symlinks, report.chunks)
        };
        assert_eq!(counts(&reports[i]), counts(&found[0]));
    }
    // Only what is new is read: of the first the copy is the same blob, of the third all but one file.
    let reused: Vec<_> = reports.iter().map(|report| (report.reused, report.bytes)).collect();
    assert_eq!(reused, [(1, 100_010), (3, 120_000), (3, 3)]);
    let state = |file| series.trees[1].file(file).mark.state();
    let changed = (0..series.trees[1].len() as u32).filter(|file| state(*file) == State::Modified).count();
    assert_eq!(changed, 1);
}

#[test]
fn threads_and_bare_repositories_make_no_difference() {
    let repo = history();
    for i in 0..300u64 {
        repo.write(&format!("many/{i}"), &random(100 + i % 200, 3000 + i as usize));
    }
    repo.commit();
    let bare = tempfile::tempdir().unwrap();
    repo.git(&["clone", "-q", "--bare", ".", &bare.path().display().to_string()]);
    let one = go(repo.path(), &Commits::default(), &Options::default()).unwrap().0;
    let other =
        go(bare.path(), &Commits::default(), &Options { threads: 3, ..Options::default() }).unwrap().0;
    assert_eq!(one.chunks.packed, other.chunks.packed);
    for (one, other) in one.trees.iter().zip(&other.trees) {
        assert!(one == other);
    }
}

#[test]
fn commits_are_chosen() {
    let repo = Repo::new();
    let labels = |commits: &Commits| -> Vec<String> {
        repo.scan(commits).0.trees.iter().map(|tree| tree.label.clone()).collect()
    };
    for i in 0..5 {
        repo.write("file", &[i; 100]);
        repo.commit();
        repo.git(&["tag", "-a", "-m", "x", ["v1.2", "v1.10-rc1", "v1.10", "v1.9", "other"][i as usize]]);
    }
    let all = labels(&Commits::default());
    assert_eq!(all.len(), 5);
    assert_eq!(labels(&Commits { every: 2, ..Commits::default() }), [&all[0][..], &all[2], &all[4]]);
    assert_eq!(labels(&Commits { every: 3, ..Commits::default() }), [&all[1][..], &all[4]]);
    let tags = Commits { tags: Some("v*".into()), ..Commits::default() };
    assert_eq!(labels(&tags), ["v1.2", "v1.9", "v1.10-rc1", "v1.10"]);
    let range = Commits { revisions: Some("v1.2..v1.9".into()), ..Commits::default() };
    assert_eq!(labels(&range), all[1..4]);
    // Of merges the first parent is followed.
    repo.git(&["checkout", "-q", "-b", "side", "v1.2"]);
    repo.write("side", b"side");
    repo.commit();
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "side", "-m", "x"]);
    assert_eq!(labels(&Commits::default()).len(), 6);
}

#[test]
fn submodules_shallow_clones_and_lost_objects_are_told() {
    let (repo, other) = (history(), Repo::new());
    other.write("x", b"x");
    other.commit();
    repo.git(&["submodule", "add", "-q", &other.path().display().to_string(), "sub"]);
    repo.commit();
    let (series, reports) = repo.scan(&Commits::default());
    assert_eq!((reports[2].submodules, reports[3].submodules), (0, 1));
    assert!(!told(&series, 3).contains_key(Path::new("sub")));
    assert!(reports.iter().all(|report| report.is_whole() && report.notes.is_empty()));

    let shallow = tempfile::tempdir().unwrap();
    let (from, to) = (format!("file://{}", repo.path().display()), shallow.path().display().to_string());
    repo.git(&["clone", "-q", "--depth", "2", &from, &to]);
    let (series, reports) = go(shallow.path(), &Commits::default(), &Options::default()).unwrap();
    assert_eq!(series.trees.len(), 2);
    assert!(reports[0].notes[0].contains("shallow"), "{:?}", reports[0].notes);

    let blob = repo.git(&["rev-parse", "HEAD:a/one"]);
    fs::remove_file(repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    let (series, reports) = repo.scan(&Commits { every: 100, ..Commits::default() });
    assert_eq!(told(&series, 0)[Path::new("a/one")].0, Kind::Unreadable);
    assert_eq!(reports[0].unreadable, 1);
    assert_eq!(reports[0].troubles, [("a/one".to_string(), "is not in the repository".to_string())]);
}

#[test]
fn objects_that_are_damaged_by_the_thousand_are_told() {
    // Git complains of each, and waits where nobody reads that.
    let repo = Repo::new();
    for i in 0..3000u32 {
        repo.write(&format!("{}/{i}", i % 40), &i.to_le_bytes());
    }
    repo.commit();
    let objects = repo.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
    let blobs: Vec<_> = objects.lines().filter_map(|line| line.split_once(" blob ")).collect();
    assert_eq!(blobs.len(), 3000);
    for (blob, _) in &blobs {
        let path = repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
        fs::remove_file(&path).unwrap();
        fs::write(&path, b"x").unwrap();
    }
    let (series, reports) = repo.scan(&Commits::default());
    assert_eq!((reports[0].unreadable, series.trees[0].len()), (3000, 3000));
    let [note] = &reports[0].notes[..] else { panic!("{:?}", reports[0].notes) };
    assert!(note.contains("git says: error: ") && note.len() < 3000, "{note}");
}

#[test]
fn what_cannot_be_scanned_is_refused() {
    let repo = Repo::new();
    let say =
        |path: &Path, commits: &Commits| go(path, commits, &Options::default()).err().unwrap().to_string();
    // An empty repository has no HEAD yet.
    assert!(say(repo.path(), &Commits::default()).contains("git refuses"));
    repo.write("sub/file", b"x");
    repo.commit();
    repo.git(&["tag", "blob", "HEAD:sub/file"]);
    let tags = |pattern: &str| Commits { tags: Some(pattern.into()), ..Commits::default() };
    assert!(say(repo.path(), &tags("blob")).contains("blob is no commit"));
    assert!(say(repo.path(), &tags("none*")).contains("has no commit"));
    let odd = Commits { revisions: Some("--all".into()), ..Commits::default() };
    assert!(say(repo.path(), &odd).contains("git refuses"));
    // A directory below a repository is none.
    assert!(say(&repo.path().join("sub"), &Commits::default()).contains("not a git repository"));
    let both = Commits { revisions: Some("HEAD".into()), ..tags("blob") };
    assert!(say(repo.path(), &both).contains("give one of them"));
    let commits = Commits::default();
    let stopped = scan_git(repo.path(), &commits, &Options::default(), &mut |_, _| ControlFlow::Break(()));
    assert!(stopped.unwrap().is_none());
}

#[test]
fn a_tree_that_names_itself_over_and_over_is_refused() {
    let repo = Repo::new();
    let file = repo.path().join("object");
    let id = |digits: &str| -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
    };
    fs::write(&file, b"x").unwrap();
    let mut above = repo.git(&["hash-object", "-w", "-t", "blob", "object"]);
    // Each level has the one below twice: 2^levels files, of as many objects as there are levels.
    let mut grow = |levels: usize| {
        for _ in 0..levels {
            let mode = if repo.git(&["cat-file", "-t", &above]) == "blob" { "100644" } else { "40000" };
            let entry = |name: &str| [format!("{mode} {name}\0").into_bytes(), id(&above)].concat();
            fs::write(&file, [entry("a"), entry("b")].concat()).unwrap();
            above = repo.git(&["hash-object", "-w", "-t", "tree", "object"]);
        }
        let commit = repo.git(&["commit-tree", "-m", "x", &above]);
        repo.git(&["update-ref", "refs/heads/main", &commit]);
        go(repo.path(), &Commits::default(), &Options::default())
    };
    let (series, _) = grow(10).unwrap();
    assert_eq!((series.trees[0].len(), series.trees[0].dirs()), (1 << 10, (1 << 10) - 1));
    let said = grow(30).err().unwrap().to_string();
    assert!(said.contains("more than 65536 files and directories"), "{said}");
}
