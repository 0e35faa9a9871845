//! Opening the files of a tree, directory after directory.

use crate::names::Names;
use crate::tree::Tree;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A link that has taken a file's place is not followed, and a pipe not waited for.
const FLAGS: libc::c_int = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Opens files to read: the first of a directory by its path, and others from the directory, so that nothing has to walk
/// along that path again.
pub(super) struct Opener<'a> {
    root: &'a Path,
    names: &'a Names,
    tree: &'a Tree,
    /// The directory of the last file, and itself once a second one of it was opened.
    dir: Option<u32>,
    handle: Option<File>,
    name: Vec<u8>,
}

impl<'a> Opener<'a> {
    pub fn new(root: &'a Path, names: &'a Names, tree: &'a Tree) -> Opener<'a> {
        Opener { root, names, tree, dir: None, handle: None, name: Vec::new() }
    }

    pub fn open(&mut self, file: u32) -> io::Result<File> {
        let entry = self.tree.file(file);
        if self.dir != Some(entry.dir) {
            (self.dir, self.handle) = (Some(entry.dir), None);
            let path = self.root.join(self.tree.path(self.names, file));
            match File::options().read(true).custom_flags(FLAGS).open(path) {
                // Without its name the path may be short enough, and others of the directory are opened so.
                Err(cause) if cause.raw_os_error() == Some(libc::ENAMETOOLONG) => {}
                opened => return opened,
            }
        }
        let handle = match self.handle.take() {
            Some(handle) => handle,
            None => {
                let path = self.root.join(self.tree.dir_path(self.names, entry.dir));
                File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)?
            }
        };
        self.name.clear();
        self.names.write(entry.name, b'f', entry.extension, &mut self.name);
        self.name.push(0);
        let name = CStr::from_bytes_with_nul(&self.name).map_err(io::Error::other)?;
        let opened = open_at(&handle, name);
        self.handle = Some(handle);
        opened
    }
}

fn open_at(dir: &File, name: &CStr) -> io::Result<File> {
    loop {
        // SAFETY: the directory is open and the name ends in a zero; openat(2) only reads it.
        let opened =
            unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | FLAGS) };
        if opened >= 0 {
            // SAFETY: it was just opened, and nobody else has it.
            return Ok(unsafe { File::from_raw_fd(opened) });
        }
        let cause = io::Error::last_os_error();
        if cause.kind() != io::ErrorKind::Interrupted {
            return Err(cause);
        }
    }
}
