//! The tree of files that a trace found when it began, inferred from what it did to them.
//!
//! Whatever was used before it was made had been there; what was read, unless it was written before, had so many
//! bytes; and directories lead to all of it. TBBT (FAST '05) and ARTC (SOSP '13) do the same before a replay.

use crate::{Batch, NO_OBJECT, NONE, Op, Requests, Result, flag};
use std::collections::{BTreeMap, BTreeSet};

/// Longest path and name, bytes: PATH_MAX and NAME_MAX of Linux, less what leads to the root of a replay.
const PATH: usize = 3072;
const NAME: usize = 255;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory,
    /// A file of so many bytes at least.
    File(u64),
    /// A symbolic link, to a file of so many bytes if it was used as one; where it led is not known.
    Link(Option<u64>),
}

impl Entry {
    /// Bytes of its file, if it is one.
    pub fn bytes(&self) -> u64 {
        match self {
            Entry::File(size) | Entry::Link(Some(size)) => *size,
            _ => 0,
        }
    }
}

/// What a request needs that no call in the trace did: the capture lacks it, or somebody did it who was not traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// A file is at its name.
    File,
    /// A directory is at its name.
    Directory,
    /// Nothing is at the name that it makes.
    Nothing,
}

/// Files and directories as they were at the start, by path from the root: no path begins with `/` or holds `..`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Parents come before what is in them.
    pub entries: BTreeMap<String, Entry>,
    /// Path of each object by its dense id; `None` where it has no name that could be a path.
    pub paths: Vec<Option<String>>,
    /// Bytes of each file that is there when all was done, as far as was read or written.
    pub left: Vec<u64>,
    /// Whether files were opened or closed: where they were not, nobody has to close them.
    pub opened: bool,
    /// Paths that requests made, removed or renamed, or failed to remove or rename.
    pub changed: BTreeSet<String>,
    /// Paths at which there is a symbolic link at any time.
    pub links: BTreeSet<String>,
    /// Rows of requests that could not have come to what they did without something that no row tells.
    pub lacks: Vec<(u64, Lack)>,
}

impl Tree {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.entries.values().map(Entry::bytes).fold(0, u64::saturating_add)
    }
}

/// A path within a root that nothing leads out of: `..` at the root stays there, and the root itself is `.`.
pub fn inside(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part if part.len() > NAME || part.contains('\0') => return None,
            part => parts.push(part),
        }
    }
    let whole = if parts.is_empty() { ".".into() } else { parts.join("/") };
    (!path.is_empty() && whole.len() <= PATH).then_some(whole)
}

/// What is known of a path while a trace is read.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Whether it is there now; `None`: nothing said so yet.
    exists: Option<bool>,
    directory: bool,
    /// Whether it was there at the start.
    initial: bool,
    /// Where it was then, if a directory above it was renamed since.
    origin: Option<String>,
    /// Bytes it had at the start, at least.
    size: u64,
    /// Bytes known to have been written since, from the start of the file on; beyond them it has what it had.
    written: u64,
    /// Where the write since that reached farthest ended.
    end: u64,
    /// Nothing of the start is left in it.
    fresh: bool,
    /// Path under which its content was found first, if that was another: it was renamed or linked.
    content: Option<String>,
    /// It was read as a link, or used as a file.
    link: bool,
    used: bool,
    /// How often it is open: what has lost its name is used on.
    open: u32,
}

/// Follows a trace's requests.
#[derive(Default)]
struct Follow {
    nodes: BTreeMap<String, Node>,
    /// Directories that were renamed, and where they were at the start.
    moved: BTreeMap<String, String>,
    changed: BTreeSet<String>,
    links: BTreeSet<String>,
}

impl Follow {
    /// Where a path was at the start, if a directory above it was renamed.
    fn origin(&self, path: &str) -> Option<String> {
        let mut ends = path.rmatch_indices('/').map(|(at, _)| at);
        ends.find_map(|at| self.moved.get(&path[..at]).map(|from| format!("{from}{}", &path[at..])))
    }

    /// Paths below a directory that are known.
    fn below(&self, directory: &str) -> Vec<String> {
        let first = format!("{directory}/");
        let known = self.nodes.range(first.clone()..).map(|(path, _)| path);
        known.take_while(|path| path.starts_with(&first)).cloned().collect()
    }

    /// The node of a path that turned out to be there; at the start, too, unless it was made since.
    fn there(&mut self, path: &str) -> &mut Node {
        let parents = path.match_indices('/').map(|(at, _)| path[..at].to_string()).collect::<Vec<_>>();
        for parent in parents {
            self.found(&parent).directory = true;
        }
        self.found(path)
    }

    fn found(&mut self, path: &str) -> &mut Node {
        // In a directory that was made since, only somebody who was not traced can have put something.
        let parent = path.rsplit_once('/').and_then(|(parent, _)| self.nodes.get(parent));
        let origin = match self.nodes.get(path) {
            Some(node) if node.exists.is_some() => None,
            _ => self.origin(path).filter(|_| parent.is_none_or(|node| !node.fresh)),
        };
        let made = origin.is_none() && parent.is_some_and(|node| node.fresh || !node.initial);
        let node = self.nodes.entry(path.to_string()).or_default();
        if node.exists.is_none() {
            node.initial = !made;
            node.origin = origin;
        }
        // What lost its name while it was open is used without one.
        if node.exists.is_none() || node.open == 0 {
            node.exists = Some(true);
        }
        node
    }

    /// Something is made at a path.
    fn made(&mut self, path: &str, directory: bool) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.there(parent).directory = true;
        }
        let node = self.nodes.entry(path.to_string()).or_default();
        if node.exists != Some(true) {
            node.directory |= directory && !node.initial;
        }
        (node.exists, node.fresh, node.content) = (Some(true), true, None);
        (node.written, node.end) = (0, 0);
    }

    /// A name now has the content that another one had.
    fn filled(&mut self, to: &str, from: &str, old: &Node) {
        if let Some(node) = self.nodes.get_mut(to) {
            (node.fresh, node.written, node.end) = (old.fresh, old.written, old.end);
            node.content = if old.fresh { None } else { old.content.clone().or_else(|| Some(from.into())) };
        }
    }

    /// A file was read up to a byte: what was not written since was there at the start.
    fn reached(&mut self, path: &str, end: u64) {
        let node = self.there(path);
        if node.fresh || end <= node.written {
            return;
        }
        let path = node.content.clone().unwrap_or_else(|| path.into());
        if let Some(node) = self.nodes.get_mut(&path) {
            node.size = node.size.max(end);
        }
    }

    fn gone(&mut self, path: &str, directory: bool) {
        let node = self.there(path);
        node.directory |= directory;
        (node.exists, node.fresh) = (Some(false), true);
        (node.written, node.end) = (0, 0);
    }

    fn renamed(&mut self, from: &str, to: &str) {
        let below = self.below(from);
        let directory = self.there(from).directory || !below.is_empty();
        let old = self.nodes.get(from).cloned().unwrap_or_default();
        if directory {
            self.there(from).directory = true;
            let origin = self.moved.remove(from).or_else(|| self.origin(from));
            // What was made since was nowhere.
            match old.fresh {
                true => drop(self.moved.remove(to)),
                false => drop(self.moved.insert(to.into(), origin.unwrap_or_else(|| from.into()))),
            }
            for path in below {
                let known = self.nodes.get(&path).cloned().unwrap_or_default();
                let moved = format!("{to}{}", &path[from.len()..]);
                self.nodes.entry(moved.clone()).or_default().exists = known.exists;
                self.filled(&moved, &path, &known);
                let node = self.nodes.entry(path).or_default();
                (node.exists, node.fresh) = (Some(false), true);
            }
        }
        self.gone(from, directory);
        self.made(to, directory);
        self.filled(to, from, &old);
    }

    /// A path has the links of another, if that is one or has some below it.
    fn linked(&mut self, from: &str, to: &str) {
        let first = format!("{from}/");
        let below = self.links.range(first.clone()..).take_while(|path| path.starts_with(&first));
        let own = self.links.get(from);
        let moved: Vec<_> = below.chain(own).map(|path| format!("{to}{}", &path[from.len()..])).collect();
        self.links.extend(moved);
    }

    fn take(&mut self, op: Op, path: &str, other: Option<&str>, row: &Row) {
        self.change(op, path, other);
        if row.result < 0 && row.result != NONE {
            return self.refused(op, path, other, row.result);
        }
        let end = if row.offset >= 0 { row.offset.saturating_add(row.size.max(0)).max(0) as u64 } else { 0 };
        match op {
            Op::Create => {
                self.made(path, false);
                self.there(path).open += 1;
            }
            Op::Mknod => self.made(path, false),
            Op::Mkdir => self.made(path, true),
            Op::Symlink => {
                self.made(path, false);
                self.links.insert(path.to_string());
            }
            Op::Remove => self.gone(path, false),
            Op::Rmdir => self.gone(path, true),
            Op::Rename => match other {
                Some(other) => {
                    self.renamed(path, other);
                    self.linked(path, other);
                }
                // Where to is not known.
                None => self.gone(path, false),
            },
            Op::Link => {
                let old = self.there(path).clone();
                if let Some(other) = other {
                    self.made(other, false);
                    self.filled(other, path, &old);
                    self.linked(path, other);
                }
            }
            Op::Readdir | Op::Readdirplus => self.there(path).directory = true,
            Op::Truncate => {
                let node = self.there(path);
                let size = row.size.max(0) as u64;
                (node.fresh, node.written, node.end) = (true, size, size);
            }
            Op::Readlink => {
                self.there(path).link = true;
                self.links.insert(path.to_string());
            }
            Op::Access => self.there(path).used = true,
            Op::Open => {
                let node = self.there(path);
                (node.used, node.exists, node.open) = (true, Some(true), node.open + 1);
            }
            Op::Close => {
                let node = self.there(path);
                node.open = node.open.saturating_sub(1);
            }
            Op::Read | Op::Mmap => {
                self.there(path).used = true;
                self.reached(path, end);
            }
            Op::Write | Op::CopyRange | Op::Fallocate => {
                // An append tells the size, which may be that of earlier writes.
                let start = row.offset.max(0) as u64;
                if row.flags & flag::APPEND != 0 && start > self.there(path).end {
                    self.reached(path, start);
                }
                let node = self.there(path);
                node.end = node.end.max(end);
                if (0..=node.written as i64).contains(&row.offset) {
                    node.written = node.written.max(end);
                }
                // At its source's end nothing is copied, wherever that is.
                if let (Op::CopyRange, Some(source), 1..) = (op, other, row.size) {
                    self.reached(source, end);
                }
            }
            _ => drop(self.there(path)),
        }
    }

    /// Notes which paths a request is about to change.
    fn change(&mut self, op: Op, path: &str, other: Option<&str>) {
        if matches!(
            op,
            Op::Create | Op::Mknod | Op::Mkdir | Op::Symlink | Op::Remove | Op::Rmdir | Op::Rename | Op::Link
        ) {
            for path in std::iter::once(path).chain(other.filter(|_| op != Op::Symlink)) {
                if !self.changed.contains(path) {
                    self.changed.insert(path.to_string());
                }
            }
        }
    }

    /// What a request that did not fail lacks, as far as is known before it.
    fn lack(&self, op: Op, path: &str, other: Option<&str>) -> Option<Lack> {
        let made = match op {
            Op::Mkdir | Op::Mknod | Op::Symlink => Some(path),
            Op::Link => other,
            _ => None,
        };
        let exists = |path: &str| self.nodes.get(path).and_then(|node| node.exists);
        if made.and_then(exists) == Some(true) {
            return Some(Lack::Nothing);
        }
        let makes = matches!(op, Op::Create | Op::Open | Op::Close | Op::Mkdir | Op::Mknod | Op::Symlink);
        let node = self.nodes.get(path).filter(|node| !makes && node.exists == Some(false))?;
        let directory = matches!(op, Op::Rmdir | Op::Readdir | Op::Readdirplus) || node.directory;
        Some(if directory && op != Op::Remove { Lack::Directory } else { Lack::File })
    }

    /// A request that failed tells, too.
    fn refused(&mut self, op: Op, path: &str, other: Option<&str>, result: i64) {
        const ENOENT: i64 = -2;
        const EEXIST: i64 = -17;
        const EISDIR: i64 = -21;
        const ENOTEMPTY: i64 = -39;
        match result {
            ENOENT => {
                let node = self.nodes.entry(path.to_string()).or_default();
                node.exists = node.exists.or(Some(false));
            }
            // Of what has two names the second one is in the way.
            EEXIST if matches!(op, Op::Rename | Op::Link) => {
                self.there(path).used = true;
                if let Some(other) = other {
                    self.there(other).used = true;
                }
            }
            EEXIST => self.there(path).directory |= op == Op::Mkdir,
            EISDIR | ENOTEMPTY => self.there(path).directory = true,
            _ => {}
        }
    }

    /// Bytes of each file that is there now. Links share what they lead to, and are none of their own.
    fn left(&self) -> Vec<u64> {
        let there = |node: &&Node| node.exists == Some(true) && !node.directory && !node.link;
        let found = self.nodes.iter().filter(|(_, node)| there(node));
        let size = |(path, node): (&String, &Node)| {
            let before = self.nodes.get(node.content.as_ref().unwrap_or(path)).map_or(0, |node| node.size);
            if node.fresh { node.end } else { node.end.max(before) }
        };
        found.map(size).collect()
    }

    fn tree(self, paths: Vec<Option<String>>, opened: bool, lacks: Vec<(u64, Lack)>) -> Tree {
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for (path, node) in &self.nodes {
            if !node.initial || path == "." {
                continue;
            }
            let place = node.origin.as_ref().unwrap_or(path);
            for (at, _) in place.match_indices('/') {
                entries.insert(place[..at].to_string(), Entry::Directory);
            }
            let entry = match node {
                Node { directory: true, .. } => Entry::Directory,
                Node { link: true, .. } => Entry::Link(node.used.then_some(node.size)),
                _ => Entry::File(node.size),
            };
            match entries.get(place) {
                Some(Entry::Directory) => {}
                Some(Entry::File(known)) if matches!(entry, Entry::File(size) if size <= *known) => {}
                _ => drop(entries.insert(place.clone(), entry)),
            }
        }
        let left = self.left();
        let mut links = self.links;
        let initial = entries.iter().filter(|(_, entry)| matches!(entry, Entry::Link(_)));
        links.extend(initial.map(|(path, _)| path.clone()));
        Tree { entries, paths, left, opened, changed: self.changed, links, lacks }
    }
}

/// What a row says besides op and names.
struct Row {
    offset: i64,
    size: i64,
    flags: u32,
    result: i64,
}

/// The tree of a trace, read from its start: `names` are those of its objects, by dense id.
///
/// # Errors
/// When the trace cannot be read.
pub fn of(requests: &mut dyn Requests, names: &[String]) -> Result<Tree> {
    let paths: Vec<Option<String>> = names.iter().map(|name| inside(name)).collect();
    let path = |object: u32| paths.get(object as usize).and_then(Option::as_deref);
    let (mut follow, mut batch, mut opened) = (Follow::default(), Batch::default(), false);
    let (mut lacks, mut before) = (Vec::new(), 0);
    while requests.next(&mut batch)? {
        for i in 0..batch.len() {
            let (Some(op), Some(name)) = (Op::from_code(batch.op[i]), path(batch.object[i])) else {
                continue;
            };
            opened |= matches!(op, Op::Open | Op::Close);
            let other = batch.other.get(i).copied().filter(|&other| other != NO_OBJECT).and_then(path);
            let row = Row {
                offset: batch.offset[i],
                size: batch.size[i],
                flags: batch.flags[i],
                result: batch.result.get(i).copied().unwrap_or(NONE),
            };
            let failed = row.result < 0 && row.result != NONE;
            let lack = if failed { None } else { follow.lack(op, name, other) };
            let by_name =
                matches!(op, Op::Remove | Op::Rmdir | Op::Rename | Op::Link | Op::Lookup | Op::Access);
            let open = follow.nodes.get(name).is_some_and(|node| node.open > 0);
            let held = open && !by_name && lack != Some(Lack::Nothing);
            lacks.extend(lack.map(|lack| (before + i as u64, lack, held)));
            follow.take(op, name, other, &row);
        }
        before += batch.len() as u64;
    }
    // What is open is used without a name; where nothing is closed, nothing is open.
    lacks.retain(|(_, _, held)| !(opened && *held));
    let lacks = lacks.into_iter().map(|(row, lack, _)| (row, lack)).collect();
    Ok(follow.tree(paths, opened, lacks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tree of requests: op, path, other path, offset, size, result.
    fn tree(rows: &[(Op, &str, &str, i64, i64, i64)]) -> BTreeMap<String, Entry> {
        whole(rows).entries
    }

    fn whole(rows: &[(Op, &str, &str, i64, i64, i64)]) -> Tree {
        flagged(rows, 0)
    }

    fn flagged(rows: &[(Op, &str, &str, i64, i64, i64)], flags: u32) -> Tree {
        struct Rows(Option<Batch>);
        impl Requests for Rows {
            fn next(&mut self, batch: &mut Batch) -> Result<bool> {
                let next = self.0.take();
                *batch = next.clone().unwrap_or_default();
                Ok(next.is_some())
            }
        }
        let mut names: Vec<String> = Vec::new();
        let mut id = |name: &str| {
            let at = names.iter().position(|known| known == name);
            at.unwrap_or_else(|| {
                names.push(name.to_string());
                names.len() - 1
            }) as u32
        };
        let mut batch = Batch::default();
        for (time, (op, path, other, offset, size, result)) in rows.iter().enumerate() {
            batch.time.push(time as i64);
            batch.op.push(*op as u8);
            batch.object.push(id(path));
            batch.offset.push(*offset);
            batch.size.push(*size);
            batch.latency.push(NONE);
            batch.flags.push(flags);
            batch.actor.push(0);
            batch.result.push(*result);
            batch.other.push(if other.is_empty() { NO_OBJECT } else { id(other) });
        }
        of(&mut Rows(Some(batch)), &names).unwrap()
    }

    fn entries(list: &[(&str, Entry)]) -> BTreeMap<String, Entry> {
        list.iter().map(|(path, entry)| (path.to_string(), entry.clone())).collect()
    }

    const D: Entry = Entry::Directory;

    #[test]
    fn what_was_used_before_it_was_made_was_there() {
        let found = tree(&[
            (Op::Stat, "/etc/passwd", "", NONE, NONE, 0),
            (Op::Access, "/etc/none", "", NONE, NONE, -2),
            (Op::Open, "/var/db", "", NONE, NONE, 0),
            (Op::Read, "/var/db", "", 4096, 8192, 8192),
            (Op::Create, "/tmp/new", "", NONE, NONE, 0),
            (Op::Write, "/tmp/new", "", 0, 100, 100),
            (Op::Read, "/tmp/new", "", 0, 100, 100),
            (Op::Readdir, "/srv", "", NONE, NONE, 48),
            (Op::Mkdir, "/tmp/dir", "", NONE, NONE, 0),
            (Op::Mkdir, "/opt", "", NONE, NONE, -17),
            (Op::Remove, "/tmp/dir/late", "", NONE, NONE, 0),
            (Op::Remove, "/tmp/old", "", NONE, NONE, 0),
        ]);
        let file = Entry::File;
        assert_eq!(
            found,
            entries(&[
                ("etc", D),
                ("etc/passwd", file(0)),
                ("opt", D),
                ("srv", D),
                ("tmp", D),
                ("tmp/old", file(0)),
                ("var", D),
                ("var/db", file(12288)),
            ])
        );
    }

    #[test]
    fn links_are_known_wherever_they_are_moved() {
        let found = whole(&[
            (Op::Readlink, "/old", "", NONE, NONE, 4),
            (Op::Symlink, "/d/new", "/f", NONE, NONE, 0),
            (Op::Symlink, "/d/none", "/f", NONE, NONE, -17),
            (Op::Rename, "/d", "/e", NONE, NONE, 0),
            (Op::Rename, "/e/new", "/n", NONE, NONE, 0),
            (Op::Link, "/n", "/m", NONE, NONE, 0),
            (Op::Rename, "/f", "/g", NONE, NONE, 0),
        ]);
        assert_eq!(Vec::from_iter(found.links), ["d/new", "e/new", "m", "n", "old"]);
    }

    #[test]
    fn what_was_written_needs_not_have_been_there() {
        let found = tree(&[
            (Op::Open, "/f", "", NONE, NONE, 0),
            (Op::Write, "/f", "", 0, 1000, 1000),
            (Op::Read, "/f", "", 500, 500, 500),
            (Op::Open, "/g", "", NONE, NONE, 0),
            (Op::Truncate, "/g", "", NONE, 0, 0),
            (Op::Read, "/g", "", 0, 100, 100),
        ]);
        assert_eq!(found, entries(&[("f", Entry::File(0)), ("g", Entry::File(0))]));
    }

    #[test]
    fn renames_are_followed_back() {
        let found = tree(&[
            (Op::Readlink, "/link", "", NONE, NONE, 12),
            (Op::Stat, "/", "", NONE, NONE, 0),
            (Op::Rename, "/a", "/b", NONE, NONE, 0),
            (Op::Readdir, "/dir", "", NONE, NONE, 48),
            (Op::Rename, "/dir", "/moved", NONE, NONE, 0),
            (Op::Read, "/moved/x/y", "", 0, 10, 10),
            // The name is used again: what is there now was elsewhere.
            (Op::Rename, "/moved", "/again", NONE, NONE, 0),
            (Op::Readdir, "/other", "", NONE, NONE, 48),
            (Op::Rename, "/other", "/moved", NONE, NONE, 0),
            (Op::Stat, "/again/x/z", "", NONE, NONE, 0),
            (Op::Stat, "/moved/w", "", NONE, NONE, 0),
        ]);
        assert_eq!(
            found,
            entries(&[
                ("a", Entry::File(0)),
                ("dir", D),
                ("dir/x", D),
                ("dir/x/y", Entry::File(10)),
                ("dir/x/z", Entry::File(0)),
                ("other", D),
                ("other/w", Entry::File(0)),
                ("link", Entry::Link(None))
            ])
        );
    }

    #[test]
    fn what_was_in_the_way_of_a_name_was_there() {
        let found = tree(&[
            (Op::Rename, "/a", "/b", NONE, NONE, -17),
            (Op::Rename, "/a", "/b", NONE, NONE, 0),
            (Op::Link, "/c", "/d", NONE, NONE, -17),
        ]);
        let file = || Entry::File(0);
        assert_eq!(found, entries(&[("a", file()), ("b", file()), ("c", file()), ("d", file())]));
    }

    #[test]
    fn what_was_made_and_renamed_was_not_there() {
        let found = tree(&[
            (Op::Mkdir, "/t", "", NONE, NONE, 0),
            (Op::Rename, "/t", "/u", NONE, NONE, 0),
            (Op::Open, "/u/x", "", NONE, NONE, 0),
            (Op::Readdir, "/dir", "", NONE, NONE, 48),
            (Op::Rename, "/dir", "/moved", NONE, NONE, 0),
            (Op::Stat, "/moved/old", "", NONE, NONE, 0),
            (Op::Mkdir, "/moved/n", "", NONE, NONE, 0),
            (Op::Open, "/moved/n/y", "", NONE, NONE, 0),
            (Op::Rename, "/moved/n", "/k", NONE, NONE, 0),
            (Op::Open, "/k/z", "", NONE, NONE, 0),
        ]);
        assert_eq!(found, entries(&[("dir", D), ("dir/old", Entry::File(0))]));
    }

    #[test]
    fn what_is_read_under_another_name_was_there() {
        let found = tree(&[
            (Op::Lookup, "/dir/f", "", NONE, NONE, 0),
            (Op::Rename, "/dir", "/moved", NONE, NONE, 0),
            (Op::Read, "/moved/f", "", 0, 10, 10),
            (Op::Link, "/a", "/b", NONE, NONE, 0),
            (Op::Remove, "/a", "", NONE, NONE, 0),
            (Op::Rename, "/b", "/c", NONE, NONE, 0),
            (Op::Read, "/c", "", 100, 20, 20),
            (Op::Create, "/a", "", NONE, NONE, 0),
            (Op::Write, "/a", "", 0, 5, 5),
            (Op::Rename, "/a", "/b", NONE, NONE, 0),
            (Op::Read, "/b", "", 0, 500, 5),
        ]);
        let file = Entry::File;
        assert_eq!(found, entries(&[("a", file(120)), ("dir", D), ("dir/f", file(10))]));
    }

    #[test]
    fn what_is_left_is_what_was_there_and_what_was_written() {
        let mut left = whole(&[
            (Op::Read, "/read", "", 0, 1000, 1000),
            (Op::Write, "/read", "", 5000, 10, 10),
            (Op::Read, "/before", "", 0, 300, 300),
            (Op::Rename, "/before", "/after", NONE, NONE, 0),
            (Op::Create, "/new", "", NONE, NONE, 0),
            (Op::Write, "/new", "", 4096, 4096, 4096),
            (Op::Write, "/new", "", 0, 4096, 4096),
            (Op::Rename, "/new", "/dir/new", NONE, NONE, 0),
            (Op::Create, "/gone", "", NONE, NONE, 0),
            (Op::Write, "/gone", "", 0, 777, 777),
            (Op::Remove, "/gone", "", NONE, NONE, 0),
            (Op::Read, "/cut", "", 0, 900, 900),
            (Op::Truncate, "/cut", "", NONE, 100, 0),
            (Op::Create, "/gone", "", NONE, NONE, 0),
            (Op::Write, "/failed", "", 0, 50, -28),
        ])
        .left;
        left.sort_unstable();
        assert_eq!(left, [0, 100, 300, 5010, 8192]);
    }

    /// Each append's offset counted as what the file had at the start, earlier appends and all.
    #[test]
    fn appends_go_where_what_was_there_and_earlier_writes_end() {
        let rows = [
            (Op::Write, "/log", "", 5000, 100, 100),
            (Op::Write, "/log", "", 5100, 100, 100),
            (Op::Write, "/log", "", 5200, 300, 300),
            // Somebody else wrote, which no row tells.
            (Op::Write, "/shared", "", 10, 10, 10),
            (Op::Write, "/shared", "", 70, 10, 10),
            (Op::Create, "/new", "", NONE, NONE, 0),
            (Op::Write, "/new", "", 0, 10, 10),
            (Op::Write, "/new", "", 10, 10, 10),
        ];
        let mut found = flagged(&rows, flag::APPEND);
        assert_eq!(found.entries, entries(&[("log", Entry::File(5000)), ("shared", Entry::File(70))]));
        found.left.sort_unstable();
        assert_eq!(found.left, [20, 80, 5500]);
    }

    #[test]
    fn what_no_row_tells_is_lacking() {
        let lacks = whole(&[
            (Op::Lookup, "/lock", "", NONE, NONE, -2),
            (Op::Remove, "/lock", "", NONE, NONE, 0),
            (Op::Create, "/own", "", NONE, NONE, 0),
            (Op::Close, "/own", "", NONE, NONE, 0),
            (Op::Link, "/own", "/lock", NONE, NONE, 0),
            (Op::Link, "/own", "/lock", NONE, NONE, 0),
            (Op::Rename, "/mail", "/sent", NONE, NONE, 0),
            (Op::Rename, "/mail", "/again", NONE, NONE, 0),
            (Op::Mkdir, "/d", "", NONE, NONE, 0),
            (Op::Rmdir, "/d", "", NONE, NONE, 0),
            (Op::Rmdir, "/d", "", NONE, NONE, 0),
            (Op::Mkdir, "/lock", "", NONE, NONE, -17),
            (Op::Mkdir, "/lock", "", NONE, NONE, 0),
            // What is open is used without a name, and an open makes what is not there.
            (Op::Open, "/own", "", NONE, NONE, 0),
            (Op::Remove, "/own", "", NONE, NONE, 0),
            (Op::Read, "/own", "", 0, 10, 10),
            (Op::Close, "/own", "", NONE, NONE, 0),
            (Op::Open, "/own", "", NONE, NONE, 0),
            (Op::Rename, "/own", "", NONE, NONE, 0),
            (Op::Stat, "/own", "", NONE, NONE, -2),
        ])
        .lacks;
        let rows = [
            (1, Lack::File),
            (5, Lack::Nothing),
            (7, Lack::File),
            (10, Lack::Directory),
            (12, Lack::Nothing),
        ];
        assert_eq!(lacks, rows);
    }

    proptest! {
        #[test]
        fn no_path_leads_out(parts in proptest::collection::vec(prop_oneof![Just(".."), Just("."), Just(""), Just("a"), Just("b")], 0..12)) {
            if let Some(path) = inside(&parts.join("/")) {
                prop_assert!(path == "." || path.split('/').all(|part| part == "a" || part == "b"), "{}", path);
            }
        }
    }
}
