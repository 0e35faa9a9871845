//! The files of a tree while it is used: names by object, and what each actor has open.

use super::Filling;
use crate::host::descriptors::{self, raise};
use crate::host::names::relative;
use crate::payload::{PayloadPlan, of_object};
use crate::{Error, Result};
use loadstone_files::{Links, Place, open_at, parent, split};
use loadstone_trace::claims::Claims;
use loadstone_trace::tree::{Entry, Tree};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks that descriptors are spread over.
const SHARDS: usize = 64;

/// Most descriptors of files that no request opened, kept under each lock.
const KEPT: u64 = 64;

/// What an actor has open of an object, the last opened last.
type Held = FxHashMap<u32, Vec<Arc<OwnedFd>>>;

/// Descriptors under one lock.
#[derive(Default)]
struct Shard {
    /// By object: what each actor has open.
    held: FxHashMap<u32, Held>,
    /// By object: a descriptor that was opened for want of one, and when it was used last.
    kept: FxHashMap<u32, (Arc<OwnedFd>, u64)>,
    /// Counts uses.
    now: u64,
    /// By number: directories that names lie in, and how many changes had come before they were opened.
    homes: FxHashMap<u32, (Arc<OwnedFd>, u64)>,
}

impl Shard {
    fn kept(&mut self, object: u32) -> Option<Arc<OwnedFd>> {
        self.now += 1;
        let (file, used) = self.kept.get_mut(&object)?;
        *used = self.now;
        Some(Arc::clone(file))
    }

    /// Keeps a descriptor, in place of the one that was not used for longest if there are `most`.
    fn keep(&mut self, object: u32, file: &Arc<OwnedFd>, most: usize) {
        if self.kept.len() >= most && !self.kept.contains_key(&object) {
            let oldest = self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(object, _)| *object);
            oldest.map(|object| self.kept.remove(&object));
        }
        self.now += 1;
        self.kept.insert(object, (Arc::clone(file), self.now));
    }
}

/// Shared by all threads that work on a tree.
pub struct Files {
    root: File,
    path: PathBuf,
    /// Whether what is in the directory may be removed.
    given_up: bool,
    /// Path of each object below the root.
    names: Vec<Option<CString>>,
    /// First object with the same path as each: they share descriptors.
    same: Vec<u32>,
    /// Whether the path of each object leads to others.
    above: Vec<bool>,
    /// Number of the directory that each object is in.
    homes: Vec<u32>,
    /// Whether the trace has a link at each object's path or on the way to it.
    led: Vec<bool>,
    /// Counts changes after which a path may lead through other directories.
    moved: AtomicU64,
    /// Most directories kept under one lock.
    most_homes: usize,
    tree: Tree,
    shards: Vec<Mutex<Shard>>,
    /// Most descriptors kept under one lock.
    most: usize,
    /// Requests that failed in the trace and did not now.
    pub succeeded: AtomicU64,
    /// Names that were made or taken away before a request, as nothing in the trace did so.
    pub made_up: AtomicU64,
    /// Counts names that the trace does not tell.
    untold: AtomicU64,
}

impl Files {
    /// Of the tree that a trace found.
    ///
    /// # Errors
    /// When its directory cannot be opened again.
    pub fn new(path: &Path, root: &File, given_up: bool, tree: Tree) -> Result<Files> {
        let names = tree.paths.iter().map(|p| p.as_ref().and_then(|p| CString::new(p.as_bytes()).ok()));
        let root = root.try_clone().map_err(|e| Error::target_io(path, "cannot be opened", &e))?;
        let (mut first, mut parents) = (FxHashMap::default(), FxHashSet::default());
        for path in tree.paths.iter().flatten() {
            parents.extend(path.match_indices('/').map(|(at, _)| &path[..at]));
        }
        let above = tree.paths.iter().map(|path| path.as_deref().is_some_and(|path| parents.contains(path)));
        let same = (0..).zip(&tree.paths).map(|(object, path)| match path {
            Some(path) => *first.entry(path).or_insert(object),
            None => object,
        });
        let ends =
            |path: &str| path.match_indices('/').map(|(at, _)| at).chain([path.len()]).collect::<Vec<_>>();
        let is_link = |path: &str| ends(path).into_iter().any(|end| tree.links.contains(&path[..end]));
        let led =
            tree.paths.iter().map(|path| !tree.links.is_empty() && path.as_deref().is_some_and(is_link));
        let mut directories = FxHashMap::default();
        let homes = tree.paths.iter().map(|path| {
            let (home, next) =
                (path.as_deref().and_then(|path| path.rsplit_once('/')), directories.len() as u32);
            home.map_or(u32::MAX, |(home, _)| *directories.entry(home).or_insert(next))
        });
        // The rest is for what requests open.
        let limit = raise();
        let most = (limit / 2 / SHARDS as u64).clamp(1, KEPT) as usize;
        Ok(Files {
            names: names.collect(),
            same: same.collect(),
            above: above.collect(),
            homes: homes.collect(),
            led: led.collect(),
            moved: AtomicU64::new(0),
            most_homes: (descriptors::parents(limit, 1) / SHARDS).max(1),
            most,
            root,
            path: path.into(),
            given_up,
            tree,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            succeeded: AtomicU64::new(0),
            made_up: AtomicU64::new(0),
            untold: AtomicU64::new(0),
        })
    }

    /// Builds the tree; `false` when stopped on the way.
    ///
    /// # Errors
    /// When something cannot be made, or the directory holds files that were not given up.
    pub fn build(
        &self,
        progress: &crate::metrics::progress::Progress,
        seed: u64,
        payload_plan: &PayloadPlan,
    ) -> Result<bool> {
        let filling = Filling { seed, payload_plan, first: of_object(0) };
        super::build::build(&self.path, &self.root, self.given_up, &self.tree, progress, filling)
    }

    /// Files that are there at the start: numbers of their contents and bytes.
    pub fn made(&self) -> Vec<(u64, u64)> {
        let size = |entry: &Entry| match entry {
            Entry::File(size) | Entry::Link(Some(size)) => Some(*size),
            _ => None,
        };
        let files = super::build::entries(&self.tree);
        files.filter_map(|(object, _, entry)| Some((of_object(object), size(entry)?))).collect()
    }

    /// Blocks of `unit` bytes that are there at the start or when all was done, whichever are more.
    pub fn blocks(&self, unit: u64) -> u64 {
        let blocks = |entry: &Entry| match entry {
            Entry::File(size) | Entry::Link(Some(size)) => size.div_ceil(unit),
            _ => 0,
        };
        let before = self.tree.entries.values().map(blocks).fold(0, u64::saturating_add);
        let after = self.tree.left.iter().map(|size| size.div_ceil(unit)).fold(0, u64::saturating_add);
        before.max(after)
    }

    /// What calls on the tree claim.
    pub fn claims(&self) -> Claims {
        Claims::new(&self.tree)
    }

    /// A new name in the root, for what was renamed or linked to one that the trace does not tell.
    ///
    /// # Errors
    /// Never in practice: the name has no zero byte.
    pub fn untold(&self) -> io::Result<CString> {
        Ok(CString::new(format!(".untold.{}", self.untold.fetch_add(1, Relaxed)))?)
    }

    /// The first object with the same path: they are one file.
    pub fn first(&self, object: u32) -> u32 {
        self.same.get(object as usize).copied().unwrap_or(object)
    }

    /// The directory all is in.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The name of an object below the root.
    ///
    /// # Errors
    /// ENAMETOOLONG where the trace has no name that a file may have.
    pub fn name(&self, object: u32) -> io::Result<&CString> {
        let name = self.names.get(object as usize).and_then(Option::as_ref);
        name.ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))
    }

    /// What a symbolic link at an object's name says to lead to another.
    ///
    /// # Errors
    /// As [`Files::name`].
    pub fn leads(&self, link: u32, to: u32) -> io::Result<CString> {
        Ok(relative(self.name(to)?, self.name(link)?))
    }

    /// Whether the trace has a link at an object's name or on the way to it.
    pub fn is_led(&self, object: u32) -> bool {
        self.led.get(object as usize).copied().unwrap_or_default()
    }

    /// What becomes of links in an object's name: the trace's own are followed to what is in the tree.
    fn links(&self, object: u32) -> Links {
        if self.is_led(object) { Links::Below } else { Links::Refused }
    }

    /// The directory that an object's name lies in, and the name's last component.
    ///
    /// # Errors
    /// As [`Files::name`], and when the directory cannot be opened.
    pub fn place(&self, object: u32) -> io::Result<(Place<'_>, &CStr)> {
        let name = self.name(object)?;
        let (Some(_), last) = split(name) else { return Ok((Place::Root(self.root()), name)) };
        let home = self.homes.get(object as usize).copied().unwrap_or(u32::MAX);
        let shard = || self.shards[home as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner);
        let age = self.moved.load(Acquire);
        if let Some((dir, _)) = shard().homes.get(&home).filter(|(_, of)| *of == age) {
            return Ok((Place::Below(Arc::clone(dir)), last));
        }
        let (dir, _) = parent(self.root(), name, self.links(object))?;
        let mut shard = shard();
        if shard.homes.len() >= self.most_homes && !shard.homes.contains_key(&home) {
            let one = shard.homes.keys().next().copied();
            one.map(|one| shard.homes.remove(&one));
        }
        if let Place::Below(dir) = &dir {
            shard.homes.insert(home, (Arc::clone(dir), age));
        }
        Ok((dir, last))
    }

    /// The object that stands for a path, and the lock over its descriptors.
    fn shard(&self, object: u32) -> (u32, MutexGuard<'_, Shard>) {
        let object = self.first(object);
        let shard = &self.shards[object as usize % SHARDS];
        (object, shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens an object for an actor; what nobody will close is only kept as long as there is room.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self, object: u32, actor: u32, flags: libc::c_int) -> io::Result<()> {
        let file = Arc::new(self.descriptor(object, flags)?);
        let (object, mut shard) = self.shard(object);
        if self.tree.opened {
            shard.held.entry(object).or_default().entry(actor).or_default().push(file);
        } else {
            shard.keep(object, &file, self.most);
        }
        Ok(())
    }

    /// Closes what an actor opened last of an object; a file that was open before the trace began was never opened.
    pub fn close(&self, object: u32, actor: u32) {
        let (object, mut shard) = self.shard(object);
        let Some(held) = shard.held.get_mut(&object) else {
            shard.kept.remove(&object);
            return;
        };
        let own = held.get_mut(&actor).and_then(Vec::pop);
        // What a process opened may be closed by its child.
        if own.is_none()
            && let Some(other) = held.values_mut().find(|files| !files.is_empty())
        {
            other.pop();
        }
        held.retain(|_, files| !files.is_empty());
        if held.is_empty() {
            shard.held.remove(&object);
        }
    }

    /// What an actor has open of an object: its own, else another's, else opened now and kept for a while.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn held(&self, object: u32, actor: u32) -> io::Result<Arc<OwnedFd>> {
        {
            let (object, mut shard) = self.shard(object);
            if let Some(held) = shard.held.get(&object) {
                let own = held.get(&actor).and_then(|files| files.last());
                if let Some(file) = own.or_else(|| held.values().find_map(|files| files.last())) {
                    return Ok(Arc::clone(file));
                }
            }
            if let Some(file) = shard.kept(object) {
                return Ok(file);
            }
        }
        let file = Arc::new(self.descriptor(object, libc::O_RDWR)?);
        let (object, mut shard) = self.shard(object);
        shard.keep(object, &file, self.most);
        Ok(file)
    }

    /// A name is another file's now, or nobody's: no descriptor is kept that was opened by it. A process that opened a
    /// file uses it on.
    pub fn renewed(&self, object: u32) {
        let above = self.above.get(object as usize).copied().unwrap_or(true);
        if above {
            self.moved.fetch_add(1, Release);
        }
        if self.tree.opened {
            return;
        }
        if above {
            for shard in &self.shards {
                shard.lock().unwrap_or_else(PoisonError::into_inner).kept.clear();
            }
            return;
        }
        let (object, mut shard) = self.shard(object);
        shard.kept.remove(&object);
    }

    /// A descriptor of an object. A directory, or what must not be written, is opened for reading.
    fn descriptor(&self, object: u32, flags: libc::c_int) -> io::Result<OwnedFd> {
        let name = self.name(object)?;
        let links = self.links(object);
        let open = |flags: libc::c_int| open_at(self.root(), name, flags, 0o644, links);
        let refused =
            |e: &io::Error| matches!(e.raw_os_error(), Some(libc::EISDIR | libc::EACCES | libc::ETXTBSY));
        match open(flags) {
            Err(e) if refused(&e) => open(libc::O_RDONLY),
            other => other,
        }
    }

    /// Counts a name that was made or taken away before a request.
    pub fn note_made_up(&self) {
        self.made_up.fetch_add(1, Relaxed);
    }

    /// Counts a request that failed in the trace and did not now.
    pub fn note_success(&self) {
        self.succeeded.fetch_add(1, Relaxed);
    }
}
