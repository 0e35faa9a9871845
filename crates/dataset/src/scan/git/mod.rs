//! The history of a git repository: every commit that is chosen is one snapshot.
//!
//! Objects come from git's own `cat-file --batch`, one process for each thread. gix would bring 129 crates, where all
//! else that a scan needs has 65; libgit2 is C under the GPL with an exception. And git knows all that repositories can
//! be: packs, alternates, worktrees, SHA-256, promisors. Nothing is checked out, and content that was seen is not cut
//! again, as its id tells it.

mod objects;

use super::cut::{Chunker, Found};
use super::threads::together;
use super::{Report, Scan, Watch};
use crate::names::{MOST_PATH, is_component};
use crate::tree::{Entry, Kind, Mark, State, Tree, is_target, tag};
use crate::write::UNFINISHED;
use crate::{Error, Result};
use objects::{Id, Item, Object, Objects};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Blobs below which one thread reads them all.
const FEW: usize = 64;
/// Blobs between two looks at whether the scan is to end.
const PART: usize = 4096;
/// Largest tree object that is read, bytes: a directory of a million files has less.
const MOST_OBJECT: u64 = 1 << 26;
/// Most files and directories of a commit. A tree may name another one many times, and that one a third: a few objects
/// make as many directories as nobody has memory for. Ten times the largest repositories that are known are fewer.
const MOST_ENTRIES: usize = if cfg!(test) { 1 << 16 } else { 1 << 25 };
/// Digits of a commit that label its snapshot.
const DIGITS: usize = 12;

/// Which commits of a repository are scanned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commits {
    /// Revisions as gitrevisions(7) has them, like `v1..main`; without, everything before HEAD. Of merges the first
    /// parent is followed, so that each snapshot is a change of the one before.
    pub revisions: Option<String>,
    /// In place of revisions the commits of tags that match this pattern of glob(7), in the order of their versions.
    pub tags: Option<String>,
    /// Every how manyth of those, counted back from the last; 0 and 1: all.
    pub every: usize,
}

/// A commit by a name that git knows, and the label of its snapshot.
struct Chosen {
    name: String,
    label: String,
}

/// Adds the snapshots of a repository; false where `watch` ends it.
pub fn scan(
    scan: &mut Scan,
    repo: &Path,
    commits: &Commits,
    reports: &mut Vec<Report>,
    watch: Watch<'_>,
) -> Result<bool> {
    let format = objects::ask(repo, &["rev-parse", "--is-shallow-repository", "--show-object-format"])?;
    let length = if format.contains("sha256") { 32 } else { 20 };
    let mut history = History {
        repo,
        length,
        workers: (0..scan.threads).map(|_| Worker::new(scan, repo)).collect::<Result<_>>()?,
        trees: FxHashMap::default(),
        blobs: FxHashMap::default(),
        links: FxHashMap::default(),
        done: AtomicU64::new(0),
    };
    for (i, commit) in choose(repo, commits)?.iter().enumerate() {
        let mut report = Report { path: commit.label.clone(), ..Report::default() };
        if i == 0 && format.starts_with("true") {
            report.notes.push(format!("{}: is a shallow clone; older commits are not there", repo.display()));
        }
        let Some(tree) = history.snapshot(scan, commit, &mut report, watch)? else { return Ok(false) };
        report.count(&tree);
        scan.series.trees.push(tree);
        reports.push(report);
    }
    if let Some(last) = reports.last_mut() {
        let said = history.workers.iter_mut().filter_map(|worker| worker.objects.finish());
        last.notes.extend(said.map(|said| format!("{}: git says: {said}", repo.display())));
    }
    Ok(true)
}

/// The commits that are asked for, oldest first.
fn choose(repo: &Path, commits: &Commits) -> Result<Vec<Chosen>> {
    let mut chosen: Vec<Chosen> = if let Some(pattern) = &commits.tags {
        if commits.revisions.is_some() {
            return Err(Error::Option("revisions and tags: give one of them".into()));
        }
        let pattern = format!("refs/tags/{pattern}");
        // 1.0-rc1 comes before 1.0 and not behind it.
        let order = ["-c", "versionsort.suffix=-", "for-each-ref", "--sort=version:refname"];
        let tags = objects::ask(repo, &[&order[..], &["--format=%(refname:strip=2)", &pattern]].concat())?;
        tags.lines().map(|tag| Chosen { name: format!("refs/tags/{tag}"), label: tag.into() }).collect()
    } else {
        let revisions = commits.revisions.as_deref().unwrap_or("HEAD");
        let list = ["rev-list", "--first-parent", "--reverse", "--end-of-options", revisions, "--"];
        let label = |name: &str| name.chars().take(DIGITS).collect();
        objects::ask(repo, &list)?
            .lines()
            .map(|name| Chosen { label: label(name), name: name.into() })
            .collect()
    };
    if chosen.is_empty() {
        return Err(Error::file(repo, "has no commit that was asked for; choose other revisions or tags"));
    }
    let (last, every) = (chosen.len() - 1, commits.every.max(1));
    let mut i = 0..;
    chosen.retain(|_| i.next().is_some_and(|i: usize| (last - i).is_multiple_of(every)));
    Ok(chosen)
}

/// What a thread reads by.
struct Worker {
    objects: Objects,
    chunker: Chunker,
}

impl Worker {
    fn new(scan: &Scan, repo: &Path) -> Result<Worker> {
        let chunker = Chunker::new(scan.cut).map_err(|e| Error::io("cannot be scanned", repo, e))?;
        Ok(Worker { objects: Objects::open(repo)?, chunker })
    }
}

/// What came of a blob: its chunks, and its bytes; nothing where it is missing.
type Blob = Option<(Vec<Found>, u64)>;

/// A file that waits for its blob.
struct Waiting {
    file: u32,
    blob: Id,
}

struct History<'a> {
    repo: &'a Path,
    /// Bytes of an id.
    length: usize,
    workers: Vec<Worker>,
    /// Directories of the snapshot before.
    trees: FxHashMap<Id, Rc<Vec<Item>>>,
    /// The first file that had a blob: snapshot and number.
    blobs: FxHashMap<Id, (u32, u32)>,
    /// Where symbolic links lead.
    links: FxHashMap<Id, Rc<Vec<u8>>>,
    /// Bytes read.
    done: AtomicU64,
}

impl History<'_> {
    fn snapshot(
        &mut self,
        scan: &mut Scan,
        commit: &Chosen,
        report: &mut Report,
        watch: Watch<'_>,
    ) -> Result<Option<Tree>> {
        let mut tree = Tree::new(commit.label.clone());
        let (files, links) = self.walk(scan, commit, &mut tree, report)?;
        self.lead(scan, &links, &mut tree, report)?;
        // A blob is read once, for the first file that has it.
        let mut new = Vec::new();
        let mut first = rustc_hash::FxHashSet::default();
        new.extend(
            files
                .iter()
                .map(|one| one.blob)
                .filter(|blob| !self.blobs.contains_key(blob) && first.insert(*blob)),
        );
        let Some(mut read) = self.read(scan, &new, watch)? else { return Ok(None) };
        self.settle(scan, &files, &mut read, &mut tree, report)?;
        Ok(Some(tree))
    }

    /// Lists everything, level by level: files, and symbolic links.
    fn walk(
        &mut self,
        scan: &mut Scan,
        commit: &Chosen,
        tree: &mut Tree,
        report: &mut Report,
    ) -> Result<(Vec<Waiting>, Vec<Waiting>)> {
        let root = self.list(&[format!("{}^{{tree}}", commit.name)])?.pop().flatten();
        let root = root.ok_or_else(|| {
            let what = format!("{} is no commit with its tree; choose other revisions or tags", commit.label);
            Error::file(self.repo, what)
        })?;
        let (mut files, mut links, mut used) = (Vec::new(), Vec::new(), FxHashMap::default());
        let mut level = vec![(0, root)];
        while !level.is_empty() {
            let mut below: Vec<(u32, Id)> = Vec::new();
            for (dir, items) in &level {
                if tree.len() + tree.dirs() + items.len() > MOST_ENTRIES {
                    let what = format!(
                        "{} has more than {MOST_ENTRIES} files and directories, as where a directory contains \
                         another one many times over; choose other revisions or tags",
                        commit.label
                    );
                    return Err(Error::file(self.repo, what));
                }
                for item in items.iter() {
                    if item.name == UNFINISHED.as_bytes() {
                        report.unfinished(&tree.dir_path(&scan.series.names, *dir));
                    }
                    enter(scan, tree, (*dir, item), (&mut below, &mut files, &mut links), report)?;
                }
            }
            let known = |id: &Id| used.contains_key(id) || self.trees.contains_key(id);
            let mut new: Vec<Id> = below.iter().map(|(_, id)| *id).filter(|id| !known(id)).collect();
            let mut once = rustc_hash::FxHashSet::default();
            new.retain(|id| once.insert(*id));
            for (id, items) in new.iter().zip(self.list(&new)?) {
                items.map(|items| used.insert(*id, items));
            }
            level.clear();
            for (dir, id) in below {
                match used.get(&id).or_else(|| self.trees.get(&id)).cloned() {
                    Some(items) => {
                        used.insert(id, Rc::clone(&items));
                        level.push((dir, items));
                    }
                    None => {
                        report.unreadable(&tree.dir_path(&scan.series.names, dir), "is not in the repository")
                    }
                }
            }
        }
        self.trees = used;
        Ok((files, links))
    }

    /// Entries of directories; nothing of those that the repository has not got.
    fn list<A: std::fmt::Display>(&mut self, names: &[A]) -> Result<Vec<Option<Rc<Vec<Item>>>>> {
        let (repo, length) = (self.repo, self.length);
        let mut lists = Vec::with_capacity(names.len());
        self.workers[0].objects.each(names, &mut |i, object| {
            let object = object.filter(|object| object.kind == "tree" && object.size <= MOST_OBJECT);
            let Some(Object { content, .. }) = object else {
                lists.push(None);
                return Ok(());
            };
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes).map_err(|e| Error::io("cannot be read", repo, e))?;
            let items = objects::items(&bytes, length).map_err(|at| {
                Error::file(repo, format!("tree {} is damaged at byte {at}; git fsck tells more", names[i]))
            })?;
            lists.push(Some(Rc::new(items)));
            Ok(())
        })?;
        Ok(lists)
    }

    /// Says where symbolic links lead.
    fn lead(&mut self, scan: &Scan, links: &[Waiting], tree: &mut Tree, report: &mut Report) -> Result<()> {
        let mut new: Vec<Id> = links.iter().map(|link| link.blob).collect();
        new.retain(|id| !self.links.contains_key(id));
        let (known, repo) = (&mut self.links, self.repo);
        self.workers[0].objects.each(&new, &mut |i, object| {
            if let Some(Object { content, .. }) = object.filter(|object| object.size <= MOST_PATH as u64) {
                let mut target = Vec::new();
                content.read_to_end(&mut target).map_err(|e| Error::io("cannot be read", repo, e))?;
                if is_target(&target) {
                    known.insert(new[i], Rc::new(target));
                }
            }
            Ok(())
        })?;
        for link in links {
            match self.links.get(&link.blob) {
                Some(target) => {
                    tree.set_private(link.file, &[(tag::LINK, target)])?;
                    tree.files.size[link.file as usize] = target.len() as u64;
                }
                None => missing(scan, tree, link.file, report),
            }
        }
        Ok(())
    }

    /// Reads blobs that were not seen; nothing where `watch` ends it.
    fn read(&mut self, scan: &Scan, new: &[Id], watch: Watch<'_>) -> Result<Option<Vec<Blob>>> {
        let hands = if new.len() < FEW { 1 } else { self.workers.len() };
        let parts = new.chunks(new.len().div_ceil(hands).max(1));
        let (done, stop) = (&self.done, AtomicBool::new(false));
        let work = |(worker, part): (&mut Worker, &[Id])| worker.read(scan, part, done, &stop);
        let jobs: Vec<_> = self.workers.iter_mut().zip(parts).collect();
        let told = || (done.load(Ordering::Relaxed), 0);
        let (read, flow) = together(jobs, &stop, &told, watch, work);
        if flow.is_break() {
            return Ok(None);
        }
        let read: Vec<Vec<Blob>> = read.into_iter().collect::<Result<_>>()?;
        Ok(Some(read.into_iter().flatten().collect()))
    }

    /// Gives files their chunks, in their order.
    fn settle(
        &mut self,
        scan: &mut Scan,
        files: &[Waiting],
        read: &mut [Blob],
        tree: &mut Tree,
        report: &mut Report,
    ) -> Result<()> {
        let (mut read, mut entered) = (read.iter_mut(), 0);
        let now = scan.series.trees.len() as u32;
        let mut lost = rustc_hash::FxHashSet::default();
        for Waiting { file, blob } in files {
            tree.fill_starts(&mut entered, *file);
            if let Some((snapshot, first)) = self.blobs.get(blob) {
                let known = scan.series.trees.get(*snapshot as usize).unwrap_or(&*tree);
                let (size, chunks) = (known.file(*first).size, known.chunks_of(*first).to_vec());
                tree.files.size[*file as usize] = size;
                tree.refs.extend(chunks);
                report.reused += 1;
                continue;
            }
            match if lost.contains(blob) { None } else { read.next().and_then(Option::take) } {
                Some((found, size)) => {
                    scan.enter(&found, &mut tree.refs)?;
                    tree.files.size[*file as usize] = size;
                    report.bytes += size;
                    self.blobs.insert(*blob, (now, *file));
                }
                None => {
                    lost.insert(*blob);
                    missing(scan, tree, *file, report);
                }
            }
        }
        let all = tree.len() as u32;
        tree.fill_starts(&mut entered, all);
        Ok(())
    }
}

impl Worker {
    fn read(&mut self, scan: &Scan, blobs: &[Id], done: &AtomicU64, stop: &AtomicBool) -> Result<Vec<Blob>> {
        let mut read = Vec::with_capacity(blobs.len());
        let Worker { objects, chunker } = self;
        let ask = |print: &_, before| scan.ask(print, before);
        for part in blobs.chunks(PART) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            objects.each(part, &mut |_, object| {
                let Some(Object { size, content, .. }) = object.filter(|object| object.kind == "blob") else {
                    read.push(None);
                    return Ok(());
                };
                let mut found = Vec::new();
                let mut tell = |n| {
                    done.fetch_add(n, Ordering::Relaxed);
                };
                let got = chunker.stream(content, size, &ask, &mut tell, &mut found);
                read.push(got.is_ok_and(|got| got == size).then_some((found, size)));
                Ok(())
            })?;
        }
        Ok(read)
    }
}

type Below<'a> = (&'a mut Vec<(u32, Id)>, &'a mut Vec<Waiting>, &'a mut Vec<Waiting>);

/// Enters what a directory has, without content.
fn enter(
    scan: &mut Scan,
    tree: &mut Tree,
    (dir, item): (u32, &Item),
    (below, files, links): Below<'_>,
    report: &mut Report,
) -> Result<()> {
    if !is_component(&item.name) {
        report.unreadable(
            &tree.dir_path(&scan.series.names, dir).join("..."),
            "has a name that no file can have; git fsck tells more",
        );
        return Ok(());
    }
    let names = &mut scan.series.names;
    let name = scan.interner.name(names, &item.name)?;
    let mut entry = Entry {
        dir,
        name,
        extension: scan.interner.extension(names, &item.name),
        mark: Mark::new(Kind::File, State::New),
        size: 0,
        private: &[],
    };
    match item.mode & 0o170000 {
        0o040000 => below.push((tree.add_dir(dir, name), item.id)),
        0o120000 => {
            entry.mark = Mark::new(Kind::Symlink, State::New);
            links.push(Waiting { file: tree.add_file(&entry, &[])?, blob: item.id });
        }
        // A commit of another repository, whose files this one has not got.
        0o160000 => report.submodules += 1,
        _ => {
            if item.mode & 0o111 != 0 {
                entry.private = &[(tag::EXECUTABLE, &[])];
            }
            files.push(Waiting { file: tree.add_file(&entry, &[])?, blob: item.id });
        }
    }
    Ok(())
}

/// A file whose content the repository has not got, as partial clones have not.
fn missing(scan: &Scan, tree: &mut Tree, file: u32, report: &mut Report) {
    tree.files.mark[file as usize] = Mark::new(Kind::Unreadable, State::New).0;
    report.unreadable(&tree.path(&scan.series.names, file), "is not in the repository");
}

#[cfg(test)]
mod tests;
