//! Files that are written aside and get their name when they are whole.
//!
//! The name aside is hidden and random, and its writer holds a lock on it. What a killed writer left has no lock, and the
//! next writer of the same name removes it.

use crate::denied::denied;
use crate::dir::stat_of;
use crate::opened::alone;
use crate::{Dir, Error, Lock, Result, Stat, lock, random_hex};
use rustix::fs::{Gid, Mode, RenameFlags, Uid, fchmod, fchown};
use rustix::process::geteuid;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What to do where a file cannot be written.
pub const ROOM: &str = "make room or write elsewhere; nothing was left behind";

/// Links followed from one to the next, as many as Linux does (path_resolution(7)).
const LINKS: usize = 40;
/// Bytes of a name that the name aside has of it: with what is added, no more than a name may have.
const MOST_NAME: usize = 200;
/// Names beside one that is taken that are tried.
const MOST_BESIDE: u32 = 1000;
/// What stands between a name and the random digits.
const PART: &[u8] = b".loadstone-";

/// Whether standard input, output or error is that file.
fn is_stream(there: &Stat) -> bool {
    let mut streams = (0..3).filter_map(|number| fs::metadata(format!("/proc/self/fd/{number}")).ok());
    let device = libc::makedev(there.device.0, there.device.1);
    streams.any(|stream| stream.is_file() && (stream.dev(), stream.ino()) == (device, there.inode))
}

/// A name that a file is to get; dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Aside {
    path: PathBuf,
    parent: Dir,
    name: Vec<u8>,
    hidden: Vec<u8>,
    force: bool,
    /// A second descriptor of the file, which keeps its lock.
    held: File,
    /// What had the name when it was made.
    replaced: Option<Stat>,
    kept: bool,
}

impl Aside {
    /// Creates a file beside `path`, which it replaces only when `force` is set. Where `path` is a link, what it leads to
    /// is replaced.
    ///
    /// # Errors
    /// When the file exists and `force` is not set, is no regular file, or cannot be created.
    pub fn create(path: &Path, force: bool) -> Result<(Aside, File)> {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Error::new(path, "names a directory, as it ends with a slash; name a file"));
        }
        let path = &led_to(path)?;
        let (parent, name) = place(path)?;
        sweep(&parent, &name);
        let there = parent.stat_below(&name);
        match there {
            Ok(there) if there.is(libc::S_IFDIR) => {
                return Err(Error::new(path, "is a directory; name a file in it"));
            }
            Ok(there) if !there.is(libc::S_IFREG) => {
                let what =
                    "is a device, a pipe or a socket, which a file would take the place of; name a file";
                return Err(Error::new(path, what));
            }
            Ok(_) if !force => return Err(exists(path)),
            Ok(there) if is_stream(&there) => {
                let what = "is the file of a standard stream, which goes on writing to the old one; name another file";
                return Err(Error::new(path, what));
            }
            Ok(_) => refuse_planted(path, path.parent().unwrap_or(Path::new("")), "file")?,
            _ => {}
        }
        let (hidden, file) = created(&parent, &name).map_err(|e| Error::io(path, "cannot create", e))?;
        if there.is_ok() {
            // Until it is whole nobody else reads what the one before may have kept to its owner.
            let _ = fchmod(&file, Mode::RUSR | Mode::WUSR);
        }
        let held = file.try_clone().map_err(|e| Error::io(path, "cannot create", e))?;
        let replaced = there.ok();
        Ok((Aside { path: path.into(), parent, name, hidden, force, held, replaced, kept: false }, file))
    }

    /// The name it is to get.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error met while writing it.
    pub fn failed(&self, cause: io::Error) -> Error {
        Error::io(&self.path, "cannot write", cause).help(ROOM)
    }

    /// Gives the whole file its name.
    ///
    /// # Errors
    /// When it cannot be written or, without `force`, a file of that name has appeared meanwhile: then this one gets
    /// another name, which the error tells.
    pub fn keep(mut self, file: &File) -> Result<()> {
        file.sync_all().map_err(|e| self.failed(e))?;
        if !self.is_there() {
            let what = "cannot write: somebody took the file away while it was being written";
            return Err(Error::new(&self.path, what).help("write elsewhere"));
        }
        if let Some(there) = &self.replaced {
            as_private(file, there);
        }
        let renamed = if self.force {
            self.parent.rename_below(&self.hidden, &self.name, RenameFlags::empty())
        } else {
            rename_new(&self.parent, &self.hidden, &self.name, false)
        };
        match renamed {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && !self.force => return Err(self.beside()),
            renamed => renamed.map_err(|e| self.failed(e))?,
        }
        self.kept = true;
        // Some file systems cannot; the file is whole and has its name.
        let _ = self.parent.sync();
        self.reached()
    }

    /// Somebody else took the name meanwhile: the file gets `NAME.2` or so. The error that is returned tells that name.
    fn beside(&mut self) -> Error {
        for number in 2..MOST_BESIDE {
            let name = [&self.name[..], format!(".{number}").as_bytes()].concat();
            match rename_new(&self.parent, &self.hidden, &name, false) {
                Ok(()) => {
                    self.kept = true;
                    let _ = self.parent.sync();
                    let path = self.parent.path_of(&name);
                    let what = "somebody put a file there meanwhile, which stays; what was to be written is";
                    return Error::new(&self.path, format!("{what} {}", path.display()));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return self.failed(e),
            }
        }
        exists(&self.path)
    }

    /// Refuses a file that its path does not lead to: its directory was moved meanwhile, or what it lies on unmounted.
    fn reached(&self) -> Result<()> {
        // Not every file system keeps a file's number when it is renamed.
        let told = |meta: &fs::Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
        let same = |there: fs::Metadata| {
            self.held.metadata().is_ok_and(|mine| {
                (mine.dev(), mine.ino()) == (there.dev(), there.ino()) || told(&mine) == told(&there)
            })
        };
        if fs::metadata(&self.path).is_ok_and(same) {
            return Ok(());
        }
        let now = fs::read_link(format!("/proc/self/fd/{}", self.held.as_raw_fd())).unwrap_or_default();
        let what = if fs::metadata(&now).is_ok_and(same) {
            format!("was whole when its directory was moved; it is {} now", now.display())
        } else {
            "was whole when its directory was removed or its file system unmounted; it is there, if anywhere"
                .into()
        };
        Err(Error::new(&self.path, what))
    }

    /// Whether the name aside still is this file's.
    fn is_there(&self) -> bool {
        let mine = stat_of(&self.held);
        let there = self.parent.stat_below(&self.hidden);
        mine.is_ok_and(|mine| there.is_ok_and(|there| there.same(&mine)))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.kept && self.is_there() {
            let _ = self.parent.unlink_below(&self.hidden, false);
        }
    }
}

/// The directory that a path lies in, and its last name.
fn place(path: &Path) -> Result<(Dir, Vec<u8>)> {
    let name = path.file_name().ok_or_else(|| Error::new(path, "is no file name; name a file"))?;
    let parent = Dir::open(path.parent().unwrap_or(Path::new(""))).map_err(|e| {
        e.cause.map_or_else(|| Error::new(path, "is no file name"), |e| Error::io(path, "cannot create", e))
    })?;
    Ok((parent, name.as_bytes().to_vec()))
}

/// Lets a new file be read by those who may read the one that it will replace.
fn as_private(file: &File, there: &Stat) {
    let mode = there.mode & 0o777 & !denied();
    // Only root can give files away. What the group of another may, that of this one may where all may.
    let (owner, group) = (Uid::from_raw(there.owner), Gid::from_raw(there.group));
    let given = fchown(file, Some(owner), Some(group)).is_ok();
    let mode = if given { mode } else { mode & (0o707 | (mode & 0o007) << 3) };
    let _ = fchmod(file, Mode::from_raw_mode(mode));
}

/// What the names of files aside begin with; random digits follow.
fn prefix(name: &[u8]) -> Vec<u8> {
    [b".", &name[..name.len().min(MOST_NAME)], PART].concat()
}

/// Whether an entry is aside of a name.
fn is_aside(entry: &[u8], prefix: &[u8]) -> bool {
    let digits = entry.strip_prefix(prefix);
    digits.is_some_and(|rest| rest.len() == 32 && rest.iter().all(u8::is_ascii_hexdigit))
}

fn created(parent: &Dir, name: &[u8]) -> io::Result<(Vec<u8>, File)> {
    loop {
        let hidden = [prefix(name), random_hex().into_bytes()].concat();
        let file = parent.create_below(&hidden, 0o666)?;
        // Another writer may have taken it for left behind before it was locked; then it is gone, or will be.
        match lock(&file, Lock::Exclusive).and_then(|locked| Ok(locked && is_named(parent, &hidden)?)) {
            Ok(true) => return Ok((hidden, file)),
            Ok(false) => {}
            Err(e) => {
                let _ = parent.unlink_below(&hidden, false);
                return Err(e);
            }
        }
    }
}

/// Whether a name that was just made is still there.
fn is_named(parent: &Dir, name: &[u8]) -> io::Result<bool> {
    match parent.stat_below(name) {
        Ok(stat) => Ok(stat.links == 1),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes the files aside of a name that nobody is writing.
fn sweep(parent: &Dir, name: &[u8]) {
    let prefix = prefix(name);
    // What cannot be removed, for instance as it is another user's, harms nobody.
    let _ = parent.each(|entry| {
        if !entry.directory && is_aside(entry.name.to_bytes(), &prefix) {
            let _ = remove_left(parent, entry.name.to_bytes());
        }
        Ok(true)
    });
}

fn remove_left(parent: &Dir, name: &[u8]) -> io::Result<()> {
    if !parent.stat_below(name)?.is(libc::S_IFREG) {
        return Ok(());
    }
    let file = parent.open_below(name, libc::O_RDONLY | libc::O_NONBLOCK, 0)?;
    let mine = stat_of(&file)?;
    let ours = mine.owner == geteuid().as_raw();
    if ours && mine.is(libc::S_IFREG) && alone(&file) && parent.stat_below(name)?.same(&mine) {
        parent.unlink_below(name, false)?;
    }
    Ok(())
}

/// Renames a file, or a directory, and replaces nothing.
pub(crate) fn rename_new(parent: &Dir, from: &[u8], to: &[u8], directory: bool) -> io::Result<()> {
    match parent.rename_below(from, to, RenameFlags::NOREPLACE) {
        Err(e) if lacks(&e) => {}
        done => return done,
    }
    if !directory {
        match parent.link_below(from, to) {
            Err(e) if lacks(&e) => {}
            // In a directory that is only appended to the first name stays.
            linked => return linked.inspect(|()| drop(parent.unlink_below(from, false))),
        }
    }
    claim(parent, from, to, directory)
}

/// Whether a file system cannot do what was asked.
pub(crate) fn lacks(e: &io::Error) -> bool {
    let code = e.raw_os_error();
    matches!(code, Some(libc::EINVAL | libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP | libc::EMLINK))
}

/// The same where the file system has no words for it: something empty of our own has the name first, and is replaced.
fn claim(parent: &Dir, from: &[u8], to: &[u8], directory: bool) -> io::Result<()> {
    if directory {
        parent.mkdir_below(to, 0o700)?;
    } else {
        parent.open_below(to, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, 0o600)?;
    }
    parent.rename_below(from, to, RenameFlags::empty()).inspect_err(|_| {
        let _ = parent.unlink_below(to, directory);
    })
}

/// Where a name leads to in the end; itself, if it is no link. What a link leads to need not be there.
fn led_to(path: &Path) -> Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS {
        let Ok(to) = fs::read_link(&at) else { return Ok(at) };
        let parent = at.parent().unwrap_or(Path::new(""));
        refuse_planted(&at, parent, "link")?;
        at = parent.join(to);
    }
    Err(Error::new(path, "leads to no file: it is one of a circle of links"))
}

/// Refuses what somebody else put in a directory like /tmp, as the kernel does (`protected_symlinks`, `protected_regular`,
/// proc(5)). A link would lead elsewhere, and what replaces a file keeps its owner. `what` it is goes into the message.
fn refuse_planted(path: &Path, parent: &Path, what: &str) -> Result<()> {
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let (Ok(is), Ok(parent_is)) = (fs::symlink_metadata(path), fs::metadata(parent)) else {
        return Ok(());
    };
    let me = geteuid().as_raw();
    let shared = parent_is.mode() & libc::S_ISVTX != 0 && parent_is.mode() & libc::S_IWOTH != 0;
    if shared && is.uid() != me && is.uid() != parent_is.uid() {
        let whose = "of another user in a directory that all may write to; name a file elsewhere";
        return Err(Error::new(path, format!("is a {what} {whose}")));
    }
    Ok(())
}

fn exists(path: &Path) -> Error {
    Error::new(path, "exists; choose another name or overwrite it with `force`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::{Command, Stdio};

    fn write(path: &Path, force: bool) -> Result<()> {
        let (aside, mut file) = Aside::create(path, force)?;
        file.write_all(b"new").unwrap();
        aside.keep(&file)
    }

    fn names(folder: &Path) -> Vec<String> {
        let all = fs::read_dir(folder).unwrap();
        let mut all: Vec<_> = all.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        all.sort();
        all
    }

    #[test]
    fn what_somebody_else_put_into_a_shared_directory_is_not_replaced() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let path = folder.path().join("planted");
        fs::write(&path, "x").unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
        let told = write(&path, true).unwrap_err().to_string();
        assert!(told.contains("is a file of another user in a directory that all may write to"), "{told}");
        assert_eq!(fs::read(&path).unwrap(), b"x");
        // Where only the owner may put files, they are those that he wants.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        write(&path, true).unwrap();
    }

    #[test]
    fn what_is_replaced_keeps_its_owner_and_what_that_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("private");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        // Who is root gives it to somebody else.
        let given = std::os::unix::fs::chown(&path, Some(12), Some(13)).is_ok();
        let before = fs::metadata(&path).unwrap();
        let (aside, mut file) = Aside::create(&path, true).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        file.write_all(b"new").unwrap();
        aside.keep(&file).unwrap();
        let after = fs::metadata(&path).unwrap();
        let told = |meta: &fs::Metadata| (meta.mode() & 0o777, meta.uid(), meta.gid());
        assert_eq!(told(&after), (0o600, before.uid(), before.gid()));
        assert_eq!((fs::read_to_string(&path).unwrap(), given && after.uid() != 12), ("new".into(), false));
    }

    #[test]
    fn a_file_that_no_name_leads_to_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, moved) = (folder.path().join("in"), folder.path().join("moved"));
        fs::create_dir(&inner).unwrap();
        let (aside, file) = Aside::create(&inner.join("x"), false).unwrap();
        fs::rename(&inner, &moved).unwrap();
        let told = aside.keep(&file).unwrap_err().to_string();
        assert!(told.contains(&format!("it is {} now", moved.join("x").display())), "{told}");
        assert!(moved.join("x").exists());
    }

    #[test]
    fn only_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for force in [false, true] {
            let error = write(&pipe, force).unwrap_err().to_string();
            assert!(error.contains("pipe") && error.contains("name a file"), "{error}");
            assert!(write(folder.path(), force).unwrap_err().to_string().contains("directory"));
        }
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert!(write(Path::new("/dev/null"), true).is_err());
        assert_eq!(names(folder.path()), ["pipe"]);
        assert!(
            write(&folder.path().join("no/such"), true).unwrap_err().to_string().contains("cannot create")
        );
    }

    #[test]
    fn links_stay_and_what_they_lead_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("there")).unwrap();
        symlink("middle", at("first")).unwrap();
        symlink("there/file", at("middle")).unwrap();
        write(&at("first"), false).unwrap();
        assert_eq!(fs::read(at("there/file")).unwrap(), b"new");
        assert!(write(&at("first"), false).unwrap_err().to_string().contains("`force`"));
        fs::write(at("there/file"), b"old").unwrap();
        write(&at("first"), true).unwrap();
        assert_eq!(fs::read(at("there/file")).unwrap(), b"new");
        assert!(at("first").is_symlink() && at("middle").is_symlink());
        symlink("b", at("a")).unwrap();
        symlink("a", at("b")).unwrap();
        assert!(write(&at("a"), true).unwrap_err().to_string().contains("circle"));
    }

    #[test]
    fn links_of_others_in_shared_directories_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (shared, link) = (folder.path().join("tmp"), folder.path().join("tmp/out"));
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        symlink(folder.path().join("mine"), &link).unwrap();
        // Only root can give links away.
        if std::os::unix::fs::lchown(&link, Some(12345), None).is_ok() {
            assert!(write(&link, true).unwrap_err().to_string().contains("another user"));
            assert!(!folder.path().join("mine").exists());
        }
    }

    #[test]
    fn what_appears_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (aside, file) = Aside::create(&path, false).unwrap();
        fs::write(&path, "theirs").unwrap();
        let told = aside.keep(&file).unwrap_err().to_string();
        assert!(told.contains("what was to be written is") && told.contains("out.2"), "{told}");
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(names(folder.path()), ["out", "out.2"]);
        let parent = Dir::open(folder.path()).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        for rename in [rename_new, claim] {
            for name in [&b"a"[..], b"d"] {
                let told = rename(&parent, name, b"out", name == b"d").unwrap_err();
                assert_eq!(told.kind(), io::ErrorKind::AlreadyExists);
                rename(&parent, name, b"b", name == b"d").unwrap();
                rename(&parent, b"b", name, name == b"d").unwrap();
            }
        }
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        parent.unlink_below(b"d", true).unwrap();
        rename_new(&parent, b"a", b"b", false).unwrap();
        assert_eq!(names(folder.path()), ["b", "out", "out.2"]);
    }

    #[test]
    fn a_name_may_be_as_long_as_names_are() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("n".repeat(255)), false).unwrap();
        assert_eq!(names(folder.path()), ["n".repeat(255)]);
    }

    /// Does the killed writer's part, in a process of its own.
    #[test]
    fn writer_that_is_killed() {
        if let Some(path) = std::env::var_os("LOADSTONE_KILLED_WRITER") {
            let (_aside, mut file) = Aside::create(Path::new(&path), true).unwrap();
            file.write_all(b"half").unwrap();
            println!("ready");
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
    }

    #[test]
    fn what_killed_writers_left_goes_and_what_is_being_written_stays() {
        use std::io::BufRead;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["aside::tests::writer_that_is_killed", "--exact", "--nocapture"])
            .env("LOADSTONE_KILLED_WRITER", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = io::BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("ready")));
        let foreign =
            [".out.loadstone-notes", ".out.tmp-17", ".other.loadstone-0123456789abcdef0123456789abcdef"];
        for name in foreign {
            fs::write(folder.path().join(name), "theirs").unwrap();
        }
        let link = folder.path().join(".out.loadstone-ffffffffffffffffffffffffffffffff");
        symlink(folder.path().join(".out.tmp-17"), &link).unwrap();
        let (second, _file) = Aside::create(&path, true).unwrap();
        assert_eq!(names(folder.path()).len(), 6);
        child.kill().unwrap();
        child.wait().unwrap();
        write(&path, true).unwrap();
        assert_eq!(names(folder.path()).len(), 6, "the killed one's went, the name came");
        drop(second);
        let mut left: Vec<String> = foreign.map(String::from).into();
        left.extend(["out".into(), link.file_name().unwrap().to_string_lossy().into_owned()]);
        left.sort();
        assert_eq!(names(folder.path()), left);
    }
}
