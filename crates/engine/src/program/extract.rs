//! Archives unpacked: uncompressing and the system calls of tar(1), file by file.
//!
//! Nothing an archive says leads out of its directory: names are taken apart, links are left out, and nothing is
//! opened through one.

use super::acts::call;
use super::code::Step;
use super::machine::{End, Machine};
use crate::clock::monotonic;
use loadstone_archive::{Archive, Kind, is_head};
use std::collections::HashSet;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// Bytes read of an archive at once.
const AHEAD: usize = 128 << 10;
/// Bytes written to a file at once.
const PIECE: usize = 128 << 10;
/// Bytes of the tar stream after which the end of the run is looked for.
const LOOK: usize = 1 << 20;
/// Bytes of a header of tar (POSIX.1-2017, pax, ustar format).
const BLOCK: u64 = 512;
/// Longest path, bytes: the kernel takes no longer one, and nobody else is asked for one either.
const MOST_PATH: usize = libc::PATH_MAX as usize;
/// What files of these formats begin with (RFC 1952, section 2.3.1; RFC 8878, section 3.1.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The tar stream of an archive, whatever it is compressed by.
fn opened(path: &Path) -> std::io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut magic = [0u8; 4];
    let known = file.read(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    let file = BufReader::with_capacity(AHEAD, file);
    Ok(match &magic[..known] {
        [a, b, ..] if [*a, *b] == GZIP => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        begin if begin == ZSTD => Box::new(zstd::Decoder::with_buffer(file)?),
        _ => Box::new(file),
    })
}

/// Why a file cannot be unpacked, if it cannot: its first header is looked at, nothing more.
pub fn unfit(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    let read = opened(path).and_then(|stream| stream.take(BLOCK).read_to_end(&mut head));
    let of_system = read.err().filter(|e| e.raw_os_error().is_some());
    match of_system {
        Some(e) => Some(format!("{}: {e}", path.display())),
        None if is_head(&head) => None,
        None => Some(format!("{} is no tar archive (plain, gzip or zstd)", path.display())),
    }
}

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

fn c_name(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// Directories below a root that are known to be there.
struct Made {
    root: RawFd,
    known: HashSet<PathBuf>,
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
        let Some(name) = c_name(path) else { return -i64::from(libc::EINVAL) };
        // SAFETY: the name ends with a zero byte.
        let done = call(|| i64::from(unsafe { libc::mkdirat(self.root, name.as_ptr(), 0o755) }));
        if done < 0 && done != -i64::from(libc::EEXIST) {
            return done;
        }
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
        let root = self.world.roots[step.set];
        let number = step.index.map_or(0.0, |index| self.number(index)).max(0.0) as u64;
        let below = PathBuf::from(format!("{number:08}"));
        let mut made = Made { root, known: HashSet::new() };
        let mut room = vec![0u8; PIECE];
        let mut issued = self.begin()?;
        while let Some(member) = archive.member().map_err(|e| damaged(&e))? {
            let told = Path::new(OsStr::from_bytes(&member.path));
            let (is_file, is_dir) = (member.kind == Kind::File, member.kind == Kind::Directory);
            // The very directory that is packed is made with what is in it.
            if is_dir && told.components().all(|part| part == Component::CurDir) {
                continue;
            }
            let name = inside(told).map(|name| below.join(name));
            let Some(name) = name.filter(|_| is_file || is_dir) else {
                self.world.left_out.fetch_add(1, Relaxed);
                continue;
            };
            let done = if root < 0 {
                poured(&mut archive, None, &mut room).map_err(|e| damaged(&e))?
            } else if is_dir {
                made.directory(&name)
            } else {
                match made.directory(name.parent().unwrap_or(&below)) {
                    0 => unpacked(&mut archive, root, &name, &mut room).map_err(|e| damaged(&e))?,
                    failed => failed,
                }
            };
            // A directory is made on the way to the next file.
            if is_file || done < 0 {
                self.done(step, issued, done);
                issued = self.begin()?;
            }
        }
        Ok(())
    }
}

/// Makes a file of what an entry holds: its bytes, or a negative errno; an error is one of the archive.
fn unpacked(entry: &mut impl Read, root: RawFd, name: &Path, room: &mut [u8]) -> std::io::Result<i64> {
    let Some(name) = c_name(name) else { return Ok(-i64::from(libc::EINVAL)) };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero byte.
    let fd = call(|| i64::from(unsafe { libc::openat(root, name.as_ptr(), flags, 0o644) }));
    if fd < 0 {
        return Ok(fd);
    }
    let moved = poured(entry, Some(fd as RawFd), room);
    // SAFETY: no pointers; opened above.
    let closed = call(|| i64::from(unsafe { libc::close(fd as RawFd) }));
    Ok(match moved? {
        moved if moved >= 0 && closed < 0 => closed,
        moved => moved,
    })
}

/// Reads all of an entry, and writes it if there is a file: bytes, or the negative errno of a write.
fn poured(entry: &mut impl Read, fd: Option<RawFd>, room: &mut [u8]) -> std::io::Result<i64> {
    let mut moved = 0;
    loop {
        let read = entry.read(room)?;
        if read == 0 {
            return Ok(moved);
        }
        let mut written = 0;
        while let Some(fd) = fd.filter(|_| written < read) {
            let rest = &room[written..read];
            // SAFETY: `rest` is as long as is said.
            let done = call(|| unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) } as i64);
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
        let root = File::open(folder.path()).unwrap();
        let mut made = Made { root: std::os::fd::AsRawFd::as_raw_fd(&root), known: HashSet::new() };
        let deep = |levels: usize| PathBuf::from("a/".repeat(levels));
        assert_eq!(made.directory(&deep(2000)), 0);
        assert!(folder.path().join(deep(1000)).is_dir());
        // Each level took a frame of the stack.
        for levels in [2048, 40_000, 4_000_000] {
            assert_eq!(made.directory(&deep(levels)), -i64::from(libc::ENAMETOOLONG), "{levels}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        assert_eq!(inside(Path::new("./a/b")), Some(PathBuf::from("a/b")));
        for name in ["/etc/passwd", "../a", "a/../../b", ".", ""] {
            assert_eq!(inside(Path::new(name)), None, "{name}");
        }
    }
}
