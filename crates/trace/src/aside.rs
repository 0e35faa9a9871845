//! Files that are written aside and get their name when they are whole.

use crate::{Error, Result};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What to do where a file cannot be written.
pub const ROOM: &str = "make room or write elsewhere; nothing was left behind";

/// A name that a file is to get; dropping it leaves nothing behind.
pub struct Aside {
    path: PathBuf,
    aside: PathBuf,
    force: bool,
}

impl Aside {
    /// Creates a file beside `path`, which it replaces only when `force` is set.
    ///
    /// # Errors
    /// When the file exists and `force` is not set, or it cannot be created.
    pub fn create(path: &Path, force: bool) -> Result<(Aside, File)> {
        let name = path.file_name().ok_or_else(|| Error::new("is no file name").path(path))?;
        if path.is_dir() {
            return Err(Error::new("is a directory").path(path).help("name a file in it"));
        }
        if !force && path.exists() {
            return Err(exists(path));
        }
        let aside = path.with_file_name(format!(".{}.tmp-{}", name.to_string_lossy(), std::process::id()));
        let file = File::create(&aside).map_err(|e| Error::io("cannot create", path, e))?;
        Ok((Aside { path: path.into(), aside, force }, file))
    }

    /// The name it is to get.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error met while writing it.
    pub fn failed(&self, cause: io::Error) -> Error {
        Error::io("cannot write", &self.path, cause).help(ROOM)
    }

    /// Gives the whole file its name.
    ///
    /// # Errors
    /// When it cannot be written or, without `force`, a file of that name has appeared meanwhile.
    pub fn keep(self, file: &File) -> Result<()> {
        file.sync_all().map_err(|e| self.failed(e))?;
        if self.force {
            return fs::rename(&self.aside, &self.path).map_err(|e| self.failed(e));
        }
        // A link fails where a rename would silently replace a file that has appeared meanwhile.
        fs::hard_link(&self.aside, &self.path).or_else(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Err(exists(&self.path)),
            _ => fs::rename(&self.aside, &self.path).map_err(|e| self.failed(e)),
        })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.aside);
    }
}

fn exists(path: &Path) -> Error {
    Error::new("exists").path(path).help("choose another name or overwrite it with --force")
}
