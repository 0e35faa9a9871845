//! Archives unpacked: uncompressing and the system calls of tar(1), file by file.
//!
//! Nothing an archive says leads out of its directory: names are taken apart, links are left out, and nothing is
//! opened through one.

pub mod packed;

use crate::backend::again;
use crate::clock::monotonic;
use crate::host::names::call;
use crate::workload_vm::code::Step;
use crate::workload_vm::machine::{End, Machine};
use loadstone_archive::{Archive, Kind, Member};
use loadstone_files::Dir;
use packed::opened;
use rustix::fs::{ftruncate, seek};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes written to a file at once.
const PIECE: usize = 128 << 10;
/// Bytes of the tar stream after which the end of the run is looked for.
const LOOK: usize = 1 << 20;
/// Longest path, bytes: the kernel takes no longer one, and nobody else is asked for one either.
const MOST_PATH: usize = libc::PATH_MAX as usize;

/// A stream that fails once the run is over, however large the file is that is being read or passed over.
struct Watched<R, F> {
    stream: R,
    is_over: F,
    /// Bytes until the next look.
    left: usize,
}

impl<R: Read, F: Fn() -> bool> Read for Watched<R, F> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            if (self.is_over)() {
                return Err(std::io::Error::other("the run is over"));
            }
            self.left = LOOK;
        }
        let read = self.stream.read(room)?;
        self.left = self.left.saturating_sub(read);
        Ok(read)
    }
}

/// The name below a directory, or nothing for one that leads elsewhere or is that directory.
fn inside(name: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!clean.as_os_str().is_empty()).then_some(clean)
}

/// What the system refused, as a negative errno.
fn refused(e: &std::io::Error) -> i64 {
    -i64::from(e.raw_os_error().unwrap_or(libc::EINVAL))
}

/// Bytes of paths that are kept to save system calls.
const MOST_KNOWN: usize = 1 << 22;

/// Directories below a root that are known to be there.
struct Made {
    root: Dir,
    known: HashSet<PathBuf>,
    /// Bytes of their paths.
    bytes: usize,
}

impl Made {
    /// Makes a directory and those that it lies in: 0, or a negative errno.
    fn directory(&mut self, path: &Path) -> i64 {
        if path.as_os_str().is_empty() || self.known.contains(path) {
            return 0;
        }
        if path.as_os_str().len() >= MOST_PATH {
            return -i64::from(libc::ENAMETOOLONG);
        }
        // From the first that is not known on, as many as a path has room for.
        let mut missing: Vec<_> = path.ancestors().take_while(|above| !self.known.contains(*above)).collect();
        missing.retain(|above| !above.as_os_str().is_empty());
        missing.iter().rev().map(|above| self.one(above)).find(|done| *done < 0).unwrap_or(0)
    }

    /// Makes a directory in one that is there.
    fn one(&mut self, path: &Path) -> i64 {
        match self.root.mkdir_below(path.as_os_str().as_bytes(), 0o755) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return refused(&e),
            _ => {}
        }
        if self.bytes > MOST_KNOWN {
            (self.known, self.bytes) = (HashSet::new(), 0);
        }
        self.bytes += path.as_os_str().len();
        self.known.insert(path.to_path_buf());
        0
    }
}

impl Machine<'_> {
    /// Unpacks an archive into a directory of this op's own, each file a request: from reading its header to closing it.
    pub fn extract(&mut self, step: &Step) -> Result<(), End> {
        let path = step.archive.clone().unwrap_or_default();
        let (world, stop, deadline) = (self.world, self.context.stop.clone(), self.context.deadline);
        let is_over = || monotonic() >= deadline || world.is_over(&stop);
        let damaged = |e: &std::io::Error| match is_over() {
            true => End::Over,
            // What is wrong is told with the bytes that are.
            false => End::Failed(format!("the archive {}: {}", path.display(), e.to_string().escape_debug())),
        };
        let stream = opened(&path).map_err(|e| damaged(&e))?;
        let mut archive = Archive::new(Watched { stream, is_over: &is_over, left: LOOK });
        let root = self.world.root(step.set);
        let number = step.index.map_or(0.0, |index| self.number(index)).max(0.0) as u64;
        let below = PathBuf::from(format!("{number:08}"));
        let mut made = opened_again(root).map_err(|e| End::Failed(format!("the set's directory: {e}")))?;
        let mut room = vec![0u8; PIECE];
        let mut issued = self.begin()?;
        while let Some(member) = archive.member().map_err(|e| damaged(&e))? {
            let told = Path::new(OsStr::from_bytes(&member.path));
            let is_file = matches!(member.kind, Kind::File | Kind::Sparse);
            let is_dir = member.kind == Kind::Directory;
            // The very directory that is packed is made with what is in it.
            if is_dir && told.components().all(|part| part == Component::CurDir) {
                continue;
            }
            let name = inside(told).map(|name| below.join(name));
            let Some(name) = name.filter(|_| is_file || is_dir) else {
                self.world.left_out.fetch_add(1, Relaxed);
                continue;
            };
            let done = match &mut made {
                None => poured(&mut archive, None, &mut room).map_err(|e| damaged(&e))?,
                Some(made) if is_dir => made.directory(&name),
                Some(made) => match made.directory(name.parent().unwrap_or(&below)) {
                    0 => unpacked(&mut archive, &member, (&made.root, &name), &mut room)
                        .map_err(|e| damaged(&e))?,
                    failed => failed,
                },
            };
            // A directory is made on the way to the next file.
            if is_file || done < 0 {
                self.done(step, issued, done);
                issued = self.begin()?;
            }
        }
        // Only at its end a compressed stream tells whether it was whole.
        let remark = if !archive.is_ended() {
            "ends without the blocks that end an archive; it may be cut short"
        } else if archive.goes_on().map_err(|e| damaged(&e))? {
            "goes on behind the blocks that end it, perhaps with another archive, which is not unpacked"
        } else {
            return Ok(());
        };
        let mut remarks = self.world.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        remarks.insert(format!("{}: {remark}", path.display()));
        Ok(())
    }
}

/// Directories below one that a set has open; nothing where nothing is written.
fn opened_again(root: Option<BorrowedFd<'_>>) -> std::io::Result<Option<Made>> {
    let Some(root) = root else { return Ok(None) };
    let root = root.try_clone_to_owned()?;
    Ok(Some(Made { root: Dir::of(root, Path::new("the set's directory")), known: HashSet::new(), bytes: 0 }))
}

/// Makes a file of what an entry holds: its bytes, or a negative errno; an error is one of the archive.
fn unpacked(
    entry: &mut impl Read,
    member: &Member,
    (root, name): (&Dir, &Path),
    room: &mut [u8],
) -> std::io::Result<i64> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
    let file = match root.open_below(name.as_os_str().as_bytes(), flags, 0o644) {
        Ok(file) => file,
        Err(e) => return Ok(refused(&e)),
    };
    let moved = match member.kind {
        Kind::Sparse => scattered(entry, member, &file, room),
        _ => poured(entry, Some(&file), room),
    };
    let fd = file.into_raw_fd();
    // SAFETY: no pointers; opened above, and nobody else's. Dropping it would not tell what failed.
    let closed = again(|| i64::from(unsafe { libc::close(fd) }));
    Ok(match moved? {
        moved if moved >= 0 && closed < 0 => closed,
        moved => moved,
    })
}

/// Writes the data of a sparse file where it lies, and leaves its holes.
fn scattered(entry: &mut impl Read, member: &Member, file: &File, room: &mut [u8]) -> std::io::Result<i64> {
    let mut moved = 0;
    for (offset, length) in &member.pieces {
        let there = call(|| Ok(seek(file, rustix::fs::SeekFrom::Start(*offset))? as i64));
        if there < 0 {
            return Ok(there);
        }
        match poured(&mut (&mut *entry).take(*length), Some(file), room)? {
            failed @ ..0 => return Ok(failed),
            written => moved += written,
        }
    }
    let sized = call(|| Ok(ftruncate(file, member.size).map(|()| 0)?));
    Ok(if sized < 0 { sized } else { moved })
}

/// Reads all of an entry, and writes it if there is a file: bytes, or the negative errno of a write.
fn poured(entry: &mut impl Read, file: Option<&File>, room: &mut [u8]) -> std::io::Result<i64> {
    let mut moved = 0;
    loop {
        let read = entry.read(room)?;
        if read == 0 {
            return Ok(moved);
        }
        let mut written = 0;
        while let Some(mut file) = file.filter(|_| written < read) {
            let done = call(|| Ok(file.write(&room[written..read])? as i64));
            if done < 0 {
                return Ok(done);
            }
            written += done as usize;
        }
        moved += read as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_stream_fails_within_a_mebibyte_of_the_end_of_the_run() {
        let over = Cell::new(false);
        let mut stream = Watched { stream: std::io::repeat(0), is_over: || over.get(), left: LOOK };
        let mut room = vec![0; 100_000];
        for _ in 0..25 {
            assert_eq!(stream.read(&mut room).unwrap(), room.len());
        }
        over.set(true);
        let more = (0..100).take_while(|_| stream.read(&mut room).is_ok()).count();
        assert!(more * room.len() <= LOOK, "{more} more reads");
    }

    #[test]
    fn directories_are_made_however_deep_and_no_deeper_than_the_kernel_takes() {
        let folder = tempfile::tempdir().unwrap();
        let mut made = Made { root: Dir::open(folder.path()).unwrap(), known: HashSet::new(), bytes: 0 };
        let deep = |levels: usize| PathBuf::from(vec!["a"; levels].join("/"));
        assert_eq!(made.directory(&deep(2000)), 0);
        assert!(folder.path().join(deep(1000)).is_dir());
        // Each level took a frame of the stack.
        for levels in [2049, 40_000, 4_000_000] {
            assert_eq!(made.directory(&deep(levels)), -i64::from(libc::ENAMETOOLONG), "{levels}");
        }
    }

    #[test]
    fn paths_that_are_known_take_no_more_memory_than_there_is_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut made = Made { root: Dir::open(folder.path()).unwrap(), known: HashSet::new(), bytes: 0 };
        for number in 0..3 {
            let deep = PathBuf::from(format!("{number}/{}", vec!["a"; 2000].join("/")));
            assert_eq!(made.directory(&deep), 0);
            let bytes: usize = made.known.iter().map(|path| path.as_os_str().len()).sum();
            assert!(bytes == made.bytes && bytes < MOST_KNOWN + MOST_PATH, "{bytes}");
        }
        assert!(folder.path().join("2").join(vec!["a"; 1000].join("/")).is_dir());
    }

    #[test]
    fn nothing_is_unpacked_through_a_link() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let mut made = Made { root: Dir::open(folder.path()).unwrap(), known: HashSet::new(), bytes: 0 };
        let refused = [libc::ELOOP, libc::ENOTDIR].map(|errno| -i64::from(errno));
        assert!(refused.contains(&made.directory(Path::new("link/below"))));
        let unpacked = |member: &Member, name: &str, mut bytes: &[u8]| {
            super::unpacked(&mut bytes, member, (&made.root, Path::new(name)), &mut [0; 10]).unwrap()
        };
        let of_kind = |kind, size, pieces: &[(u64, u64)]| Member {
            path: Vec::new(),
            link: Vec::new(),
            kind,
            size,
            mode: 0,
            pieces: pieces.to_vec(),
        };
        let file = of_kind(Kind::File, 1, &[]);
        for name in ["link/file", "link"] {
            let done = unpacked(&file, name, b"x");
            assert!(refused.contains(&done), "{name}: {done}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        assert_eq!(unpacked(&file, "file", b"x"), 1);
        // Pieces lie where they were, and the hole behind the last is there, too.
        let sparse = of_kind(Kind::Sparse, 5000, &[(100, 3), (3000, 20)]);
        assert_eq!(unpacked(&sparse, "sparse", b"abcdefghijklmnopqrstuvw"), 23);
        let mut wanted = vec![0; 5000];
        wanted[100..103].copy_from_slice(b"abc");
        wanted[3000..3020].copy_from_slice(b"defghijklmnopqrstuvw");
        assert_eq!(std::fs::read(folder.path().join("sparse")).unwrap(), wanted);
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        assert_eq!(inside(Path::new("./a/b")), Some(PathBuf::from("a/b")));
        for name in ["/etc/passwd", "../a", "a/../../b", ".", ""] {
            assert_eq!(inside(Path::new(name)), None, "{name}");
        }
    }
}
