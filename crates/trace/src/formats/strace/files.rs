//! What descriptors stand for: followed through opens, duplicates, forks and execs.

use rustc_hash::{FxHashMap, FxHashSet};

/// Most descriptors that are followed at once; more is no trace.
const MOST: usize = 1 << 20;

/// An open file: descriptors made from one another share it, its position too.
#[derive(Debug)]
pub struct Open {
    /// Its path.
    pub path: Vec<u8>,
    /// The path that its descriptor is shown with, if it is.
    pub shown: Vec<u8>,
    /// Where the next read or write begins, bytes.
    pub position: u64,
    /// Whether writes go to its end.
    pub append: bool,
    /// Whether it was opened for synchronous or direct writes: bits of [`crate::flag`].
    pub flags: u32,
}

/// A descriptor of a process.
#[derive(Debug, Clone, Copy)]
struct Slot {
    open: u32,
    close_on_exec: bool,
}

/// Descriptors and directory of a process; threads share one.
#[derive(Debug, Clone, Default)]
struct Table {
    slots: FxHashMap<i64, Slot>,
    directory: Vec<u8>,
    /// Processes and threads that have it.
    users: u32,
}

/// The files of all processes.
#[derive(Debug, Default)]
pub struct Files {
    open: Vec<Open>,
    tables: Vec<Table>,
    /// Tables that no process has.
    free: Vec<u32>,
    /// Table of each process that has spoken or was made, and has not ended.
    of: FxHashMap<u32, u32>,
    /// Sizes as far as the trace tells, by path: where appends go.
    sizes: FxHashMap<Vec<u8>, u64>,
    /// Names that files and directories were given by renames and links.
    given: FxHashSet<Vec<u8>>,
    /// Descriptors that processes were made with.
    inherited: usize,
}

impl Files {
    fn table(&mut self, pid: u32) -> &mut Table {
        let at = match self.of.get(&pid) {
            Some(at) => *at,
            None => self.give(pid, Table::default()),
        };
        &mut self.tables[at as usize]
    }

    /// Gives a process a table of its own.
    fn give(&mut self, pid: u32, table: Table) -> u32 {
        let table = Table { users: 1, ..table };
        let at = match self.free.pop() {
            Some(at) => {
                self.tables[at as usize] = table;
                at
            }
            None => {
                self.tables.push(table);
                self.tables.len() as u32 - 1
            }
        };
        self.of.insert(pid, at);
        at
    }

    /// Whether a process has spoken or was made, and has not ended.
    pub fn knows(&self, pid: u32) -> bool {
        self.of.contains_key(&pid)
    }

    /// A process speaks.
    pub fn meet(&mut self, pid: u32) {
        self.table(pid);
    }

    /// The process, where only one is left.
    pub fn only(&self) -> Option<u32> {
        self.of.keys().next().copied().filter(|_| self.of.len() == 1)
    }

    /// A process or thread is made by another; a thread `shares` its descriptors.
    pub fn fork(&mut self, parent: u32, child: u32, shares: bool) {
        if parent == child {
            return;
        }
        self.end(child);
        let descriptors = self.table(parent).slots.len();
        let at = self.of[&parent];
        // Many processes made by one with many descriptors would be far more than lines.
        let few = self.inherited + descriptors < MOST;
        let table = if shares || !few { Table::default() } else { self.tables[at as usize].clone() };
        if shares {
            self.tables[at as usize].users += 1;
            self.of.insert(child, at);
        } else if self.tables.len() < MOST || !self.free.is_empty() {
            self.inherited += table.slots.len();
            self.give(child, table);
        }
    }

    /// A process ends; its number may be another's from now on.
    pub fn end(&mut self, pid: u32) {
        let Some(at) = self.of.remove(&pid) else { return };
        let table = &mut self.tables[at as usize];
        table.users -= 1;
        if table.users == 0 {
            self.inherited = self.inherited.saturating_sub(table.slots.len());
            *table = Table::default();
            self.free.push(at);
        }
    }

    /// A process becomes another program.
    pub fn exec(&mut self, pid: u32) {
        self.table(pid).slots.retain(|_, slot| !slot.close_on_exec);
    }

    /// A process enters a directory.
    pub fn enter(&mut self, pid: u32, path: Vec<u8>) {
        self.table(pid).directory = path;
    }

    /// A path as a process names it, from a directory's descriptor or its own directory.
    pub fn path(&mut self, pid: u32, from: Option<i64>, name: &[u8]) -> Vec<u8> {
        if name.starts_with(b"/") {
            return plain(name);
        }
        let base = match from {
            Some(descriptor) => self.get(pid, descriptor).map(|open| open.path.clone()).unwrap_or_default(),
            None => self.table(pid).directory.clone(),
        };
        if base.is_empty() {
            return plain(name);
        }
        plain(&[&base, &b"/"[..], name].concat())
    }

    /// A file was opened.
    pub fn insert(&mut self, pid: u32, descriptor: i64, open: Open, close_on_exec: bool) {
        if self.open.len() >= MOST {
            self.compact();
        }
        self.open.push(open);
        let open = self.open.len() as u32 - 1;
        self.table(pid).slots.insert(descriptor, Slot { open, close_on_exec });
    }

    /// Forgets files that no descriptor stands for.
    fn compact(&mut self) {
        let mut kept = FxHashMap::default();
        let old = std::mem::take(&mut self.open);
        let mut old: Vec<Option<Open>> = old.into_iter().map(Some).collect();
        for slot in self.tables.iter_mut().flat_map(|table| table.slots.values_mut()) {
            let next = self.open.len() as u32;
            let at = *kept.entry(slot.open).or_insert(next);
            if at == next {
                self.open.extend(old[slot.open as usize].take());
            }
            slot.open = at;
        }
    }

    /// What a descriptor stands for, where the trace tells.
    pub fn get(&mut self, pid: u32, descriptor: i64) -> Option<&mut Open> {
        let slot = *self.table(pid).slots.get(&descriptor)?;
        self.open.get_mut(slot.open as usize)
    }

    /// Whether a descriptor is of the file that a line shows it to be: the kernel shows what the file is called now.
    pub fn is_shown_as(&mut self, pid: u32, descriptor: i64, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|(at, byte)| *at > 0 && **byte == b'/').map(|(at, _)| at);
        let renamed = ends.chain([path.len()]).any(|end| self.given.contains(&path[..end]));
        let Some(open) = self.get(pid, descriptor) else { return false };
        let same = open.shown.is_empty() || open.shown == path || renamed;
        if same {
            path.clone_into(&mut open.shown);
        }
        same
    }

    /// A file or directory gets another name.
    pub fn give_name(&mut self, name: &[u8]) {
        if self.given.len() < MOST {
            self.given.insert(name.to_vec());
        }
    }

    /// A descriptor is closed; whether it stood for a file.
    pub fn close(&mut self, pid: u32, descriptor: i64) -> Option<Vec<u8>> {
        let slot = self.table(pid).slots.remove(&descriptor)?;
        self.open.get(slot.open as usize).map(|open| open.path.clone())
    }

    /// One descriptor is made of another.
    pub fn duplicate(&mut self, pid: u32, from: i64, to: i64, close_on_exec: bool) {
        let table = self.table(pid);
        match table.slots.get(&from).copied() {
            Some(slot) => drop(table.slots.insert(to, Slot { close_on_exec, ..slot })),
            None => drop(table.slots.remove(&to)),
        }
    }

    /// Whether a descriptor goes when its process becomes another program.
    pub fn close_on_exec(&mut self, pid: u32, descriptor: i64, set: bool) {
        if let Some(slot) = self.table(pid).slots.get_mut(&descriptor) {
            slot.close_on_exec = set;
        }
    }

    /// The size of a file as far as is known.
    pub fn size(&self, path: &[u8]) -> u64 {
        self.sizes.get(path).copied().unwrap_or(0)
    }

    /// Learns a file's size, or that it is at least so large.
    pub fn grow(&mut self, path: &[u8], size: u64, exactly: bool) {
        if self.sizes.len() >= MOST && !self.sizes.contains_key(path) {
            return;
        }
        let known = self.sizes.entry(path.to_vec()).or_default();
        *known = if exactly { size } else { size.max(*known) };
    }
}

/// A path without empty parts and `.`; `..` stays, as what it means depends on links.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut out = if path.starts_with(b"/") { b"/".to_vec() } else { Vec::new() };
    for part in path.split(|c| *c == b'/').filter(|part| !part.is_empty() && *part != b".") {
        if !out.is_empty() && out != b"/" {
            out.push(b'/');
        }
        out.extend_from_slice(part);
    }
    if out.is_empty() { b".".to_vec() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &[u8]) -> Open {
        Open { path: path.to_vec(), shown: Vec::new(), position: 0, append: false, flags: 0 }
    }

    #[test]
    fn descriptors_are_followed() {
        let mut files = Files::default();
        files.enter(1, b"/srv".to_vec());
        assert_eq!(files.path(1, None, b"./a//b"), b"/srv/a/b");
        files.insert(1, 3, open(b"/srv/d"), true);
        assert_eq!(files.path(1, Some(3), b"x"), b"/srv/d/x");
        files.duplicate(1, 3, 7, false);
        files.fork(1, 2, false);
        files.get(2, 7).unwrap().position = 5;
        assert_eq!(files.get(1, 3).unwrap().position, 5, "forks share positions");
        files.exec(2);
        assert!(files.get(2, 3).is_none() && files.get(2, 7).is_some());
        assert_eq!(files.close(1, 3).unwrap(), b"/srv/d");
        assert!(files.close(1, 3).is_none());
        files.fork(2, 3, true);
        files.close(3, 7);
        assert!(files.get(2, 7).is_none(), "threads share descriptors");
        files.compact();
        assert_eq!(files.get(1, 7).unwrap().position, 5);
        assert_eq!(files.path(9, None, b"rel"), b"rel");
        files.end(2);
        files.insert(3, 9, open(b"/srv/thread"), false);
        assert!(files.get(3, 9).is_some(), "a table stays while a thread has it");
        files.end(3);
        let tables = files.tables.len();
        files.fork(1, 2, false);
        assert_eq!((files.tables.len(), files.path(2, None, b"a")), (tables, b"/srv/a".to_vec()));
        assert!(files.get(2, 9).is_none(), "a number that is given again brings nothing with it");
    }
}
