//! Directories as they stand.

use super::listed::Listed;
use super::seen::{Inode, Stamp};
use super::threads::take;
use super::{Report, Scan, Watch, read};
use crate::tree::{Entry, Kind, Mark, State, Tree, tag};
use crate::write::{UNFINISHED, refuse_unfinished};
use crate::{Error, Result};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

/// What a directory has.
struct Item {
    name: OsString,
    kind: ItemKind,
}

enum ItemKind {
    Dir,
    File(fs::Metadata),
    Symlink(Vec<u8>),
    Other,
    Lost(io::Error),
}

/// A snapshot of a directory; nothing where `watch` ends it.
pub fn scan(scan: &mut Scan, root: &Path, report: &mut Report, watch: Watch<'_>) -> Result<Option<Tree>> {
    refuse_unfinished(root)?;
    let mut tree = Tree::new(root.to_string_lossy());
    let device = fs::metadata(root).map_err(|e| Error::io("cannot be looked at", root, e))?.dev();
    if let Some(seen) = &mut scan.seen {
        seen.enter(root, device, scan.series.trees.len() as u32);
    }
    let listed = walk(scan, root, &mut tree, report)?;
    if read::files(scan, root, &mut tree, &listed, report, watch)? { Ok(Some(tree)) } else { Ok(None) }
}

/// Lists everything, level by level.
fn walk(scan: &mut Scan, root: &Path, tree: &mut Tree, report: &mut Report) -> Result<Listed> {
    let (mut level, mut listed) = (vec![(0, root.to_path_buf())], Listed::default());
    while !level.is_empty() {
        let mut next = Vec::new();
        for ((dir, path), items) in level.iter().zip(list_all(&level, scan.threads)) {
            let items = match items {
                Ok(items) => items,
                Err(cause) if *dir == 0 => return Err(Error::io("cannot be listed", path, cause)),
                Err(cause) => {
                    report.lost(path, &cause);
                    continue;
                }
            };
            for Item { name, kind } in items {
                if name == UNFINISHED {
                    report.unfinished(path);
                }
                enter(scan, tree, (*dir, path), name, kind, (&mut next, &mut listed), report)?;
            }
        }
        level = next;
    }
    Ok(listed)
}

fn enter(
    scan: &mut Scan,
    tree: &mut Tree,
    (dir, path): (u32, &Path),
    name: OsString,
    kind: ItemKind,
    (next, listed): (&mut Vec<(u32, PathBuf)>, &mut Listed),
    report: &mut Report,
) -> Result<()> {
    let names = &mut scan.series.names;
    let number = scan.interner.name(names, name.as_bytes())?;
    let mut entry = Entry {
        dir,
        name: number,
        extension: scan.interner.extension(names, name.as_bytes()),
        mark: Mark::new(Kind::File, State::New),
        size: 0,
        private: &[],
    };
    let (first, target);
    let record: [(u16, &[u8]); 1];
    match kind {
        ItemKind::Dir => {
            next.push((tree.add_dir(dir, number), path.join(name)));
            return Ok(());
        }
        ItemKind::Lost(cause) => {
            report.lost(&path.join(name), &cause);
            entry.mark = Mark::new(Kind::Unreadable, State::New);
        }
        ItemKind::Other => entry.mark = Mark::new(Kind::Other, State::New),
        ItemKind::Symlink(to) => {
            target = to;
            entry.size = target.len() as u64;
            entry.mark = Mark::new(Kind::Symlink, State::New);
            record = [(tag::LINK, &target)];
            entry.private = &record;
        }
        ItemKind::File(meta) => {
            entry.size = meta.size();
            let inode = (meta.dev(), meta.ino());
            if let Some(known) = (meta.nlink() > 1).then(|| listed.linked.get(&inode)).flatten() {
                first = known.to_le_bytes();
                entry.mark = Mark::new(Kind::Hard, State::New);
                record = [(tag::HARD, &first)];
                entry.private = &record;
            } else {
                if meta.mode() & 0o111 != 0 {
                    entry.private = &[(tag::EXECUTABLE, &[])];
                }
                listed.add(scan, tree.len() as u32, &meta);
            }
        }
    }
    tree.add_file(&entry, &[])?;
    Ok(())
}

fn find<T: Copy>(of: &[(u32, T)], file: u32) -> Option<T> {
    of.binary_search_by_key(&file, |(file, _)| *file).ok().map(|at| of[at].1)
}

impl Listed {
    fn add(&mut self, scan: &mut Scan, file: u32, meta: &fs::Metadata) {
        if meta.nlink() > 1 {
            self.linked.insert((meta.dev(), meta.ino()), file);
        }
        if meta.blocks() * 512 < meta.size() {
            self.sparse.push(file);
        }
        let Some(seen) = &mut scan.seen else { return };
        let Some(inode) = seen.inode(meta) else { return };
        self.inodes.push((file, inode));
        let stamp = Stamp::of(meta);
        if let Some(known) = seen.find(inode, stamp) {
            self.known.push((file, known));
            seen.add(inode, stamp, file);
        }
    }

    /// Which file that is, if it may be met in another snapshot.
    pub fn inode(&self, file: u32) -> Option<Inode> {
        find(&self.inodes, file)
    }

    /// Where a file was read in an earlier snapshot.
    pub fn known(&self, file: u32) -> Option<(u32, u32)> {
        find(&self.known, file)
    }
}

/// Lists directories by several threads, in their order.
fn list_all(level: &[(u32, PathBuf)], threads: usize) -> Vec<io::Result<Vec<Item>>> {
    let (next, lists) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let some = || {
        let mut own = Vec::new();
        while let Some((i, (_, path))) = take(&next, level) {
            own.push((i, list(path)));
        }
        lists.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(own);
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(level.len()) {
            let thread = std::thread::Builder::new().name("loadstone-scan".into());
            if thread.spawn_scoped(scope, some).is_err() {
                // No more threads are to be had: this one does its share.
                some();
                break;
            }
        }
    });
    let mut lists = lists.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    lists.sort_unstable_by_key(|(i, _)| *i);
    lists.into_iter().map(|(_, list)| list).collect()
}

fn list(path: &Path) -> io::Result<Vec<Item>> {
    let mut items = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = kind_of(&entry).unwrap_or_else(ItemKind::Lost);
        items.push(Item { name: entry.file_name(), kind });
    }
    items.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(items)
}

/// What an entry is. Only of files more is asked than the directory tells, and without a walk along their path.
fn kind_of(entry: &fs::DirEntry) -> io::Result<ItemKind> {
    let kind = entry.file_type()?;
    Ok(if kind.is_dir() {
        ItemKind::Dir
    } else if kind.is_file() {
        ItemKind::File(entry.metadata()?)
    } else if kind.is_symlink() {
        ItemKind::Symlink(fs::read_link(entry.path())?.into_os_string().into_vec())
    } else {
        debug_assert!(kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device());
        ItemKind::Other
    })
}
