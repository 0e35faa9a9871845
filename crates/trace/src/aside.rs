//! Files that are written aside and get their name when they are whole.

use crate::{Error, Result};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What to do where a file cannot be written.
pub const ROOM: &str = "make room or write elsewhere; nothing was left behind";

/// Links followed from one to the next, as many as Linux does (path_resolution(7)).
const LINKS: usize = 40;

/// A name that a file is to get; dropping it leaves nothing behind.
pub struct Aside {
    path: PathBuf,
    aside: PathBuf,
    force: bool,
}

impl Aside {
    /// Creates a file beside `path`, which it replaces only when `force` is set. Where `path` is a link, what it leads to
    /// is replaced.
    ///
    /// # Errors
    /// When the file exists and `force` is not set, is no regular file, or cannot be created.
    pub fn create(path: &Path, force: bool) -> Result<(Aside, File)> {
        let path = &led_to(path)?;
        let name = path.file_name().ok_or_else(|| Error::new("is no file name").path(path))?;
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => {
                return Err(Error::new("is a directory").path(path).help("name a file in it"));
            }
            Ok(there) if !there.is_file() => {
                return Err(Error::new(
                    "is a device, a pipe or a socket, which a file would take the place of",
                )
                .path(path)
                .help("name a file"));
            }
            Ok(_) if !force => return Err(exists(path)),
            _ => {}
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

/// Where a name leads to in the end; itself, if it is no link. What a link leads to need not be there.
fn led_to(path: &Path) -> Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::read_link(&at) {
            Ok(to) => at = at.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(at),
        }
    }
    Err(Error::new("leads to no file: it is one of a circle of links").path(path))
}

fn exists(path: &Path) -> Error {
    Error::new("exists").path(path).help("choose another name or overwrite it with --force")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, symlink};

    fn write(path: &Path, force: bool) -> Result<()> {
        let (aside, mut file) = Aside::create(path, force)?;
        file.write_all(b"new").unwrap();
        aside.keep(&file)
    }

    #[test]
    fn only_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for force in [false, true] {
            let error = write(&pipe, force).unwrap_err().to_string();
            assert!(error.contains("pipe") && error.contains("name a file"), "{error}");
            assert!(write(folder.path(), force).unwrap_err().to_string().contains("directory"));
        }
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert!(write(Path::new("/dev/null"), true).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
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
        assert!(write(&at("first"), false).unwrap_err().to_string().contains("--force"));
        fs::write(at("there/file"), b"old").unwrap();
        write(&at("first"), true).unwrap();
        assert_eq!(fs::read(at("there/file")).unwrap(), b"new");
        assert!(at("first").is_symlink() && at("middle").is_symlink());
        symlink("b", at("a")).unwrap();
        symlink("a", at("b")).unwrap();
        assert!(write(&at("a"), true).unwrap_err().to_string().contains("circle"));
    }
}
