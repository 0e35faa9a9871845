//! Folders that are made aside and get their name when they are whole.

use crate::aside::{exists, is_aside, lacks, place, prefix, rename_new};
use crate::{Dir, Error, Lock, Mark, Result, lock, random_hex, remove_tree};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// What the mark of a folder aside says that it is.
const KIND: &str = "aside";

/// A name that a folder is to get; dropping it removes what was made aside.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    parent: Dir,
    name: Vec<u8>,
    hidden: Vec<u8>,
    /// Holds the lock.
    dir: Dir,
    mark: Mark,
    kept: bool,
}

impl Folder {
    /// Makes a folder beside `path`, locked and with a mark inside, after removing what killed writers of the same name
    /// left there. Whether `path` is free is looked at when it is kept.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path) -> Result<Folder> {
        let failed = |e| Error::io(path, "cannot create", e);
        let (parent, name) = place(path)?;
        sweep(&parent, &name);
        loop {
            let hidden = [prefix(&name), random_hex().into_bytes()].concat();
            parent.mkdir_below(&hidden, 0o777).map_err(failed)?;
            let dir = parent.dir_below(&hidden).map_err(failed)?;
            if !lock(&dir, Lock::Exclusive).map_err(failed)? {
                // Another writer is about to take it for left behind, but without a mark it stays.
                let _ = parent.unlink_below(&hidden, true);
                continue;
            }
            let mark = Mark::put(&dir, KIND, Value::Null).inspect_err(|_| {
                let _ = parent.unlink_below(&hidden, true);
            })?;
            return Ok(Folder { path: path.into(), parent, name, hidden, dir, mark, kept: false });
        }
    }

    /// Where it is made.
    pub fn hidden(&self) -> PathBuf {
        self.parent.path_of(&self.hidden)
    }

    /// The folder that is made.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Gives it its name, in one step. With `replace` a folder of that name is removed afterwards; what it may be is the
    /// caller's to look at. Otherwise nothing is replaced. On an error what was made stays aside, and the error names it.
    ///
    /// # Errors
    /// When the name is taken, or it cannot be renamed.
    pub fn keep(mut self, replace: bool) -> Result<()> {
        self.kept = true;
        let aside = self.hidden();
        let stranded =
            |e: Error| Error { what: format!("{}; it is kept as {}", e.what, aside.display()), ..e };
        self.named(replace).map_err(stranded)?;
        let _ = self.parent.sync();
        self.mark.remove(&self.dir)
    }

    /// Gives it another name in the same directory, which is free.
    ///
    /// # Errors
    /// As [`Folder::keep`].
    pub fn keep_as(mut self, name: &[u8]) -> Result<()> {
        self.name = name.into();
        self.path = self.parent.path_of(name);
        self.keep(false)
    }

    fn named(&self, replace: bool) -> Result<()> {
        let failed = |e| Error::io(&self.path, "cannot get its name", e);
        match rename_new(&self.parent, &self.hidden, &self.name, true) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
            Err(_) if !replace => return Err(exists(&self.path)),
            Ok(()) => return Ok(()),
            Err(_) => {}
        }
        let old = self.parent.dir_below(&self.name).map_err(failed)?;
        // Under the hidden name it is ours to remove, whoever does it.
        if Mark::read(&old)?.is_none() {
            Mark::put(&old, KIND, Value::Null)?;
        }
        match self.parent.rename_below(&self.hidden, &self.name, libc::RENAME_EXCHANGE) {
            Ok(()) => remove_tree(&self.parent, &self.hidden, &mut || true).map(|_| ()),
            Err(e) if lacks(&e) => self.in_two_steps(),
            Err(e) => Err(failed(e)),
        }
    }

    /// Takes the place of a folder where the file system cannot exchange two; what was there comes back on an error.
    fn in_two_steps(&self) -> Result<()> {
        let failed = |e| Error::io(&self.path, "cannot get its name", e);
        let old = [prefix(&self.name), random_hex().into_bytes()].concat();
        self.parent.rename_below(&self.name, &old, 0).map_err(failed)?;
        if let Err(e) = rename_new(&self.parent, &self.hidden, &self.name, true) {
            let back = rename_new(&self.parent, &old, &self.name, true);
            let where_is = if back.is_ok() {
                String::new()
            } else {
                format!(" (the old one is {})", self.parent.path_of(&old).display())
            };
            return Err(Error::io(&self.path, &format!("cannot get its name{where_is}"), e));
        }
        remove_tree(&self.parent, &old, &mut || true).map(|_| ())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept
            && Mark::read(&self.dir).is_ok_and(|mark| mark.is_some_and(|mark| mark.id == self.mark.id))
        {
            let _ = remove_tree(&self.parent, &self.hidden, &mut || true);
        }
    }
}

/// Removes the folders aside of a name that nobody is writing.
fn sweep(parent: &Dir, name: &[u8]) {
    let prefix = prefix(name);
    let mut left = Vec::new();
    let _ = parent.each(|entry| {
        if entry.directory && is_aside(entry.name.to_bytes(), &prefix) {
            left.push(entry.name);
        }
        Ok(true)
    });
    for name in left {
        let Ok(dir) = parent.dir_below(name.to_bytes()) else { continue };
        let ours = || Mark::read(&dir).is_ok_and(|mark| mark.is_some_and(|mark| mark.kind == KIND));
        if lock(&dir, Lock::Exclusive).unwrap_or(false) && ours() {
            let _ = remove_tree(parent, name.to_bytes(), &mut || true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MARK;
    use std::fs;

    fn count(path: &Path) -> usize {
        fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn a_folder_is_whole_or_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let made = Folder::create(&path).unwrap();
        fs::write(made.hidden().join("x"), "1").unwrap();
        assert!(!path.exists());
        drop(made);
        assert_eq!(count(folder.path()), 0);
        for (replace, text) in [(false, "1"), (true, "2")] {
            let made = Folder::create(&path).unwrap();
            fs::write(made.hidden().join("x"), text).unwrap();
            made.keep(replace).unwrap();
            assert_eq!(fs::read_to_string(path.join("x")).unwrap(), text);
            assert!(!path.join(MARK).exists());
            assert_eq!((count(folder.path()), count(&path)), (1, 1));
        }
        let made = Folder::create(&path).unwrap();
        fs::write(made.hidden().join("x"), "3").unwrap();
        made.in_two_steps().unwrap();
        assert_eq!(fs::read_to_string(path.join("x")).unwrap(), "3");
        drop(made);
        assert_eq!(count(folder.path()), 1);
    }

    #[test]
    fn what_was_made_stays_where_its_name_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let made = Folder::create(&path).unwrap();
        fs::write(made.hidden().join("x"), "1").unwrap();
        fs::create_dir(&path).unwrap();
        let hidden = made.hidden();
        let told = made.keep(false).unwrap_err().to_string();
        assert!(told.contains("exists") && told.contains(&hidden.display().to_string()), "{told}");
        assert!(hidden.join("x").exists() && path.exists());
    }

    #[test]
    fn only_marked_folders_that_nobody_writes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let live = Folder::create(&path).unwrap();
        let killed = Folder::create(&path).unwrap();
        let (left, foreign) =
            (killed.hidden(), folder.path().join(format!(".b.loadstone-{}", "0".repeat(32))));
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("x"), "theirs").unwrap();
        // As a kill leaves it: without its lock.
        let Folder { dir, .. } = &killed;
        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::flock(std::os::fd::AsRawFd::as_raw_fd(dir), libc::LOCK_UN) }, 0);
        let third = Folder::create(&path).unwrap();
        assert!(!left.exists() && foreign.join("x").exists() && live.hidden().exists());
        drop((live, third, killed));
        assert_eq!(count(folder.path()), 1);
    }
}
