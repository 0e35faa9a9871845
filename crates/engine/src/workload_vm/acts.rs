//! The system calls of programs.
//!
//! What a step works on is found before its time is taken: its file, its descriptor, its name, what is drawn. Names
//! are looked up from the directory of their set, and nothing leads out of it: files are opened by openat2(2), and other
//! calls on names go to the directory that the name lies in, which a thread keeps open. Opening that for the first time is
//! part of the call's time. A call that fails is counted with its errno, and the program goes on.

use super::code::Step;
use super::machine::{End, Machine, Slot};
use crate::backend::again;
use crate::fileset::Set;
use crate::host::names::{access, access_followed, call, followed, refused, relative};
use loadstone_files::{Links, Parents, open_at};
use loadstone_plan::Act;
use rustix::fs::{self, Access, Advice, AtFlags, FallocateFlags, FileType, Mode, RawDir};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, RawFd};

/// Direct transfers begin and end at multiples of this, which every device takes.
pub const ALIGNED: u64 = 4096;
/// Bytes asked for at once by listings: what the C library does.
const LISTING: usize = 32 << 10;
/// Largest extended attribute.
const LARGEST: u64 = 64 << 10;
/// Room for the name of one.
const NAMED: usize = 40;

/// Name of the attribute of a number, of which 0 has none.
fn attribute(number: u64, room: &mut [u8; NAMED]) -> &CStr {
    if number == 0 {
        return c"user.loadstone";
    }
    // Longer than any number, so that the last byte stays zero.
    let written = write!(&mut room[..NAMED - 1], "user.loadstone.{number}");
    debug_assert!(written.is_ok());
    CStr::from_bytes_until_nul(room).unwrap_or_default()
}

/// The number of a set's directory among those of all sets.
fn directory(set: usize, home: u32) -> u64 {
    (set as u64) << 32 | u64::from(home)
}

impl<'a> Machine<'a> {
    pub fn set(&self, step: &Step) -> &'a Set {
        &self.world.sets[step.set]
    }

    fn root(&self, step: &Step) -> Option<BorrowedFd<'a>> {
        self.world.root(step.set)
    }

    /// Whether nothing is to be done at all.
    fn is_null(&self, step: &Step) -> bool {
        self.root(step).is_none()
    }

    /// Makes a call in the directory that an entry of a set lies in, on the name's last component: 0, or a negative
    /// errno; nothing is done on `null`.
    fn in_place(
        parents: &mut Parents,
        (root, set): (Option<BorrowedFd<'_>>, usize),
        (name, home): (&CStr, u32),
        links: Links,
        mut once: impl FnMut(BorrowedFd<'_>, &CStr) -> io::Result<()>,
    ) -> i64 {
        let Some(root) = root else { return 0 };
        match parents.place(root, name, directory(set, home), links) {
            Ok((dir, name)) => call(|| once(dir.as_fd(), name).map(|()| 0)),
            Err(e) => refused(&e),
        }
    }

    /// One step that is a request.
    #[inline]
    pub fn act(&mut self, step: &Step) -> Result<(), End> {
        match step.act {
            Act::Read | Act::Write | Act::Append | Act::AppendRandom => self.transfer(step),
            Act::ReadWhole | Act::WriteWhole => self.whole(step),
            Act::Open => self.open(step),
            Act::Create => self.create(step),
            Act::Close => self.close(step),
            Act::Remove => self.remove(step),
            // A set of directories alone has no files to ask about.
            Act::Stat if step.slot == 0 && self.set(step).files.len() == 0 => self.directory(step),
            Act::Stat => self.stat(step),
            Act::Sync | Act::Datasync => self.sync(step),
            Act::SyncSet => self.sync_set(step),
            Act::Mkdir | Act::Rmdir => self.directory(step),
            Act::Readdir | Act::Readdirplus => self.list(step),
            Act::Rename | Act::Link | Act::Symlink => self.second_name(step),
            Act::Readlink | Act::Access => self.named(step),
            Act::Truncate | Act::Fallocate | Act::Setxattr | Act::Getxattr => self.described(step),
            Act::CopyRange => self.copy(step),
            _ => Ok(()),
        }
    }

    /// Holds the file that a step opens or looks at.
    #[inline]
    fn hold(&mut self, step: &Step) -> Result<u32, End> {
        let files = &self.set(step).files;
        let found = if let Some(index) = step.index {
            let at = self.number(index).max(0.0) as u64 as usize % files.len().max(1);
            files.hold_next(at)
        } else if step.next {
            let at = self.cursors[step.set];
            let found = files.hold_next(at);
            self.cursors[step.set] = found.map_or(at, |found| (found as usize + 1) % files.len());
            found
        } else {
            files.hold_any(&mut self.random)
        };
        found.ok_or_else(|| End::NoFile(step.name.clone()))
    }

    /// The descriptor a step uses.
    #[inline(always)]
    fn slot(&mut self, step: &Step) -> usize {
        if !step.next || step.slot > 0 {
            return step.slot;
        }
        self.turn = if self.turn <= 1 { super::code::TURNS - 1 } else { self.turn - 1 };
        self.turn
    }

    /// Opens a held file: the descriptor (0 on `null`), or a negative errno.
    fn opened(&mut self, step: &Step, file: u32, flags: libc::c_int) -> i64 {
        let set = self.set(step);
        let Some(root) = self.root(step) else { return 0 };
        let name = set.file_path(file, &mut self.rooms[0]);
        let flags = set.access | step.flags | flags;
        call(|| {
            let file = open_at(root, name, flags, 0o644, set.links)?;
            if step.no_readahead {
                let _ = fs::fadvise(&file, 0, None, Advice::Random);
            }
            Ok(i64::from(file.into_raw_fd()))
        })
    }

    fn keep(&mut self, step: &Step, slot: usize, file: u32, fd: i64) {
        let fd = if self.is_null(step) { -1 } else { fd as RawFd };
        self.slots[slot] =
            Slot { fd, open: true, known: true, set: step.set, file, at: 0, began: 0, refused: 0 };
    }

    /// Closes a descriptor without counting it.
    fn drop_slot(&mut self, slot: usize) -> i64 {
        let Slot { fd, open, set, file, .. } = self.slots[slot];
        if !open {
            return 0;
        }
        self.slots[slot].open = false;
        self.maps[slot] = None;
        let flushed = self.flush(slot);
        self.streams[slot] = None;
        // SAFETY: no pointers; the descriptor is this thread's own. Dropping one would not tell what failed.
        let done = if fd < 0 { 0 } else { again(|| i64::from(unsafe { libc::close(fd) })) };
        let done = if flushed < 0 { flushed } else { done };
        self.world.sets[set].files.release(file);
        done
    }

    /// Closes everything.
    pub fn close_all(&mut self) {
        for slot in 0..self.slots.len() {
            self.drop_slot(slot);
        }
    }

    /// The descriptor a step uses, with a file opened in it if there is none; nothing when opening failed, which is
    /// counted.
    #[inline(always)]
    pub fn ready_slot(&mut self, step: &Step) -> Result<Option<usize>, End> {
        let slot = self.slot(step);
        let state = self.slots[slot];
        if state.open {
            if state.set != step.set {
                return Err(self.conflict(step, slot));
            }
            return Ok(Some(slot));
        }
        let file = self.hold(step)?;
        let issued = self.begin()?;
        let fd = self.opened(step, file, 0);
        if fd < 0 {
            self.set(step).files.release(file);
            self.done(step, issued, fd);
            return Ok(None);
        }
        self.keep(step, slot, file, fd);
        Ok(Some(slot))
    }

    #[cold]
    fn conflict(&self, step: &Step, slot: usize) -> End {
        let held = &self.world.sets[self.slots[slot].set].id;
        End::Failed(format!(
            "the op {:?} is for files of {:?}, but descriptor {slot} has one of {held:?} open; close that first, or use \
             another descriptor",
            step.name,
            self.set(step).id
        ))
    }

    /// An open descriptor.
    fn open_slot(&mut self, step: &Step) -> Result<usize, End> {
        let slot = self.slot(step);
        if self.slots[slot].open { Ok(slot) } else { Err(self.closed(step, slot)) }
    }

    #[cold]
    fn closed(&self, step: &Step, slot: usize) -> End {
        let why = match self.slots[slot].refused {
            0 => "; open a file there first".to_string(),
            errno => format!(": the last open failed, {}", std::io::Error::from_raw_os_error(errno)),
        };
        End::Failed(format!("the op {:?} uses descriptor {slot}, in which nothing is open{why}", step.name))
    }

    fn open(&mut self, step: &Step) -> Result<(), End> {
        let slot = self.free_slot(step)?;
        let file = self.hold(step)?;
        let issued = self.begin()?;
        let fd = self.opened(step, file, 0);
        self.done(step, issued, fd.min(0));
        if fd < 0 {
            self.set(step).files.release(file);
            self.slots[slot].refused = -fd as i32;
        } else {
            self.keep(step, slot, file, fd);
        }
        Ok(())
    }

    /// The descriptor a step opens a file in; one that is used in turn is closed first.
    fn free_slot(&mut self, step: &Step) -> Result<usize, End> {
        let slot = self.slot(step);
        if self.slots[slot].open {
            if !step.next {
                return Err(End::Failed(format!(
                    "the op {:?} opens a file in descriptor {slot}, which is open; close it first",
                    step.name
                )));
            }
            self.drop_slot(slot);
        }
        Ok(slot)
    }

    fn create(&mut self, step: &Step) -> Result<(), End> {
        let slot = self.free_slot(step)?;
        let file = self.claim(step)?;
        let issued = self.begin().inspect_err(|_| self.set(step).files.settle(file, false, 0))?;
        if let Some(contents) = &self.world.contents {
            contents.created(step.set, file);
        }
        let fd = self.opened(step, file, libc::O_CREAT);
        self.done(step, issued, fd.min(0));
        self.set(step).files.settle(file, fd >= 0, 1);
        if fd >= 0 {
            self.keep(step, slot, file, fd);
        } else {
            self.slots[slot].refused = -fd as i32;
        }
        Ok(())
    }

    /// Claims a file that is not there.
    fn claim(&mut self, step: &Step) -> Result<u32, End> {
        let files = &self.set(step).files;
        let found = match step.index {
            Some(index) => {
                let at = self.number(index).max(0.0) as u64 as usize % files.len().max(1);
                files.claim_next(false, at)
            }
            None => files.claim_any(false, &mut self.random),
        };
        found.ok_or_else(|| End::NoFile(step.name.clone()))
    }

    fn close(&mut self, step: &Step) -> Result<(), End> {
        let slot = self.open_slot(step)?;
        let issued = self.begin()?;
        let done = self.drop_slot(slot);
        self.done(step, issued, done);
        Ok(())
    }

    fn remove(&mut self, step: &Step) -> Result<(), End> {
        // A slot that is closed still names its file, until that is removed.
        let mine = Some(self.slots[step.slot])
            .filter(|slot| step.slot > 0 && (slot.open || slot.known && slot.set == step.set));
        let files = &self.set(step).files;
        let file = match (mine, step.index) {
            (Some(slot), _) => {
                if slot.set != step.set {
                    return Err(self.conflict(step, step.slot));
                }
                self.drop_slot(step.slot);
                self.slots[step.slot].known = false;
                files.claim(slot.file, true).then_some(slot.file)
            }
            (None, Some(index)) => {
                let at = self.number(index).max(0.0) as u64 as usize % files.len().max(1);
                Some(files.claim_next(true, at).ok_or_else(|| End::NoFile(step.name.clone()))?)
            }
            (None, None) => {
                let found = files.claim_any(true, &mut self.random);
                Some(found.ok_or_else(|| End::NoFile(step.name.clone()))?)
            }
        };
        // Somebody else uses it.
        let Some(file) = file else { return self.look() };
        let (set, root) = (self.set(step), self.root(step));
        let issued = self.begin().inspect_err(|_| files.settle(file, true, 0))?;
        let name = (set.file_path(file, &mut self.rooms[0]), set.home(file));
        let result = Self::in_place(&mut self.parents, (root, step.set), name, set.links, |dir, name| {
            Ok(fs::unlinkat(dir, name, AtFlags::empty())?)
        });
        self.done(step, issued, result);
        if let Some(contents) = self.world.contents.as_ref().filter(|_| result >= 0) {
            contents.removed(step.set, file);
        }
        files.settle(file, result < 0 && result != -i64::from(libc::ENOENT), 0);
        Ok(())
    }

    fn stat(&mut self, step: &Step) -> Result<(), End> {
        let slot = self.slots[step.slot];
        if step.slot > 0 && slot.open {
            let issued = self.begin()?;
            let result = slot.file().map_or(0, |file| call(|| Ok(fs::fstat(file).map(|_| 0)?)));
            self.done(step, issued, result);
            return Ok(());
        }
        let file = self.hold(step)?;
        let result = self.on_name(step, file, |(dir, name), (root, whole), links| {
            let found = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if links == Links::Below && FileType::from_raw_mode(found.st_mode).is_symlink() {
                fs::fstat(followed(root, whole)?)?;
            }
            Ok(())
        });
        self.set(step).files.release(file);
        result
    }

    /// A call on the name of a file, which is counted; nothing on `null`. `once` has the directory and the name there, the
    /// root of the set and the name from there, and what becomes of links.
    fn on_name(
        &mut self,
        step: &Step,
        file: u32,
        mut once: impl FnMut((BorrowedFd<'_>, &CStr), (BorrowedFd<'_>, &CStr), Links) -> io::Result<()>,
    ) -> Result<(), End> {
        let (set, root) = (self.set(step), self.root(step));
        let name = set.file_path(file, &mut self.rooms[0]);
        let now = self.context.clock.now();
        let place = (name, set.home(file));
        let result = Self::in_place(&mut self.parents, (root, step.set), place, set.links, |dir, last| {
            root.map_or(Ok(()), |root| once((dir, last), (root, name), set.links))
        });
        self.done(step, now, result);
        self.begin().map(|_| ())
    }

    fn named(&mut self, step: &Step) -> Result<(), End> {
        let asked = self.number(step.value) as libc::c_int;
        let asked = if asked > 0 { Access::from_bits_retain(asked as u32) } else { Access::READ_OK };
        let file = self.hold(step)?;
        let mut content = [0u8; 4096];
        let result = self.on_name(step, file, |(dir, name), (root, whole), links| match (step.act, links) {
            (Act::Access, Links::Below) => access_followed(root, whole, asked),
            (Act::Access, Links::Refused) => access(dir, name, asked),
            _ => Ok(fs::readlinkat_raw(dir, name, &mut content[..]).map(drop)?),
        });
        self.set(step).files.release(file);
        result
    }

    fn sync(&mut self, step: &Step) -> Result<(), End> {
        let slot = self.open_slot(step)?;
        let issued = self.begin()?;
        // What the C library still holds would not be stable.
        let flushed = self.flush(slot);
        let result = if flushed < 0 { flushed } else { self.synced(step, slot) };
        self.done(step, issued, result);
        Ok(())
    }

    fn synced(&mut self, step: &Step, slot: usize) -> i64 {
        let state = self.slots[slot];
        let Some(file) = state.file() else { return 0 };
        self.buffers.for_sync(self.world.number(state.set, state.file));
        let once = || if step.act == Act::Datasync { fs::fdatasync(file) } else { fs::fsync(file) };
        let result = call(|| Ok(once().map(|()| 0)?));
        self.buffers.ended(result, false);
        result
    }

    fn sync_set(&mut self, step: &Step) -> Result<(), End> {
        for slot in 0..self.slots.len() {
            if self.slots[slot].open && self.slots[slot].set == step.set {
                let issued = self.begin()?;
                let result = self.synced(step, slot);
                self.done(step, issued, result);
            }
        }
        self.look()
    }

    fn directory(&mut self, step: &Step) -> Result<(), End> {
        let (set, root) = (self.set(step), self.root(step));
        let (removes, stats) = (step.act == Act::Rmdir, step.act == Act::Stat);
        let found = set.leaves.claim_any(removes || stats, &mut self.random);
        let leaf = found.ok_or_else(|| End::NoFile(step.name.clone()))?;
        let issued = self.begin().inspect_err(|_| set.leaves.settle(leaf, removes || stats, 0))?;
        let name = (set.leaf_path(leaf, &mut self.rooms[0]), set.leaf_home(leaf));
        let result = Self::in_place(&mut self.parents, (root, step.set), name, set.links, |dir, name| {
            Ok(match step.act {
                Act::Rmdir => fs::unlinkat(dir, name, AtFlags::REMOVEDIR),
                Act::Stat => fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(drop),
                _ => fs::mkdirat(dir, name, Mode::from_raw_mode(0o755)),
            }?)
        });
        self.done(step, issued, result);
        set.leaves.settle(leaf, stats || (result >= 0) != removes, 0);
        Ok(())
    }

    fn list(&mut self, step: &Step) -> Result<(), End> {
        let (set, root) = (self.set(step), self.root(step));
        let directory = set.any_directory(&mut self.random);
        let name = set.directory_path(directory, &mut self.rooms[0]);
        let issued = self.context.clock.now();
        let result = root.map_or(0, |root| {
            let (data, _) = self.buffers.for_read(LISTING);
            if data.is_null() {
                return -i64::from(libc::ENOMEM);
            }
            // SAFETY: the buffer holds as many bytes.
            let room = unsafe { std::slice::from_raw_parts_mut(data.cast::<MaybeUninit<u8>>(), LISTING) };
            listed(root, name, room, step.act == Act::Readdirplus).unwrap_or_else(|e| refused(&e))
        });
        self.done(step, issued, result);
        self.begin().map(|_| ())
    }

    fn second_name(&mut self, step: &Step) -> Result<(), End> {
        let (set, root) = (self.set(step), self.root(step));
        let renames = step.act == Act::Rename;
        let from = if renames {
            let found = set.files.claim_any(true, &mut self.random);
            found.ok_or_else(|| End::NoFile(step.name.clone()))?
        } else {
            self.hold(step)?
        };
        let give_back = |there: bool| match renames {
            true => set.files.settle(from, there, 0),
            false => set.files.release(from),
        };
        let to = self.claim(step).inspect_err(|_| give_back(true))?;
        let [room, other_room] = &mut *self.rooms;
        let (name, new) = (set.file_path(from, room), set.file_path(to, other_room));
        let leads = (step.act == Act::Symlink).then(|| relative(name, new));
        let issued = self.context.clock.now();
        // Where a link is made, what it leads to is not looked at.
        let source = match (&leads, root) {
            (None, Some(root)) => {
                let home = directory(step.set, set.home(from));
                self.parents.place(root, name, home, set.links).map(Some)
            }
            _ => Ok(None),
        };
        let result = source.map(|source| {
            let new = (new, set.home(to));
            Self::in_place(&mut self.parents, (root, step.set), new, set.links, |dir, new| {
                Ok(match (&source, &leads) {
                    (Some((old, name)), _) if renames => fs::renameat(old, *name, dir, new),
                    (Some((old, name)), _) => fs::linkat(old, *name, dir, new, AtFlags::empty()),
                    (None, Some(leads)) => fs::symlinkat(leads, dir, new),
                    (None, None) => Ok(()),
                }?)
            })
        });
        let result = result.unwrap_or_else(|e| refused(&e));
        self.done(step, issued, result);
        if let Some(contents) = self.world.contents.as_ref().filter(|_| result >= 0) {
            // In a set with symbolic links nothing is known.
            if leads.is_none() {
                contents.named(step.set, from, to, renames);
            }
        }
        set.files.settle(to, result >= 0, 0);
        give_back(result < 0);
        self.begin().map(|_| ())
    }

    fn described(&mut self, step: &Step) -> Result<(), End> {
        let (size, number) =
            (self.number(step.size).max(0.0) as u64, self.number(step.value).max(0.0) as u64);
        let Some(slot) = self.ready_slot(step)? else { return Ok(()) };
        let (state, file) = (self.slots[slot], self.slots[slot].file);
        let from = match step.act {
            Act::Fallocate if step.random => self.by_chance(step, file, size).0,
            _ => 0,
        };
        let mut room = [0u8; NAMED];
        let attribute = attribute(number, &mut room);
        let length = size.min(LARGEST) as usize;
        let data = self.buffers.any(length.max(1));
        let issued = self.begin()?;
        let ledger = match step.act {
            Act::Truncate => self.buffers.ledger(self.world.number(step.set, file)),
            _ => None,
        };
        if let Some(ledger) = &ledger {
            ledger.begin_cut(size);
        }
        let (fd, none) = (state.fd, FallocateFlags::empty());
        let result = state.file().map_or(0, |file| match step.act {
            Act::Truncate => call(|| Ok(fs::ftruncate(file, size).map(|()| 0)?)),
            Act::Fallocate => call(|| Ok(fs::fallocate(file, none, from, size.max(1)).map(|()| 0)?)),
            // What the kernel says, too.
            Act::Setxattr if size > LARGEST => -i64::from(libc::E2BIG),
            // SAFETY: the buffer holds `length` bytes or is null, which only the kernel can be handed.
            Act::Setxattr => again(|| unsafe {
                i64::from(libc::fsetxattr(fd, attribute.as_ptr(), data.cast(), length, 0))
            }),
            // SAFETY: as above.
            _ => again(|| unsafe {
                (libc::fgetxattr(fd, attribute.as_ptr(), data.cast_mut().cast(), length) as i64).min(0)
            }),
        });
        if let Some(ledger) = &ledger {
            ledger.end_cut(size, result >= 0);
        }
        self.done(step, issued, result);
        Ok(())
    }
}

/// Lists a directory from beginning to end, and asks for the attributes of all in it if wanted: bytes of names.
fn listed(
    root: BorrowedFd<'_>,
    name: &CStr,
    room: &mut [MaybeUninit<u8>],
    attributes: bool,
) -> io::Result<i64> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    let directory = loop {
        match open_at(root, name, flags, 0, Links::Refused) {
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            opened => break opened?,
        }
    };
    let mut bytes = 0;
    let mut entries = RawDir::new(&directory, room);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Err(Errno::INTR) => continue,
            entry => entry?,
        };
        let name = entry.file_name();
        bytes += name.to_bytes().len() as i64;
        if attributes && name != c"." && name != c".." {
            // What has gone since it was listed is no failure.
            let _ = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
        }
    }
    Ok(bytes)
}
