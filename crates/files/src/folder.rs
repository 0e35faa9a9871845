//! Folders of ours while they are held: nobody can guess their names, a lock holds them, each has a mark, and the next
//! one removes those whose makers are dead.

use crate::aside::{lacks, rename_new};
use crate::opened::alone;
use crate::remove::remove_opened;
use crate::{Dir, Error, Lock, MARK, Mark, Result, clear_but, lock, random_hex};
use rustix::fs::RenameFlags;
use rustix::process::geteuid;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What its mark says that it is.
const KIND: &str = "aside";
/// Ends the name of a folder that another is about to take the place of.
const OLD: &[u8] = b".old";

/// A folder that is locked and marked; dropping it lets go of the lock, and the next [`sweep_folders`] removes it.
#[derive(Debug)]
pub struct Folder {
    parent: Dir,
    name: Vec<u8>,
    /// Holds the lock.
    dir: Dir,
    mark: Mark,
}

impl Folder {
    /// Makes a folder in `parent` whose name is `before` and 32 random digits, or those that are given. Only its owner
    /// may look into it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(parent: &Path, before: &[u8], digits: Option<&str>) -> Result<Folder> {
        let parent = Dir::open(parent)?;
        loop {
            let id = digits.map_or_else(random_hex, String::from);
            let name = [before, id.as_bytes()].concat();
            let failed = |e| Error::io(&parent.path_of(&name), "cannot be made", e);
            parent.mkdir_below(&name, 0o700).map_err(failed)?;
            let dir = match parent.dir_below(&name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                dir => dir.map_err(failed)?,
            };
            // Without a lock or a mark no later one would remove it.
            let drop = || parent.unlink_below(&name, true);
            let locked = lock(&dir, Lock::Exclusive).inspect_err(|_| _ = drop()).map_err(failed)?;
            // Another process may have taken it for left behind before it was locked; then it is gone, or will be.
            if !locked || !leads(&parent, &name, &dir) {
                continue;
            }
            let mark = Mark::put_as(&dir, KIND, &id).inspect_err(|_| _ = drop())?;
            return Ok(Folder { parent, name, dir, mark });
        }
    }

    /// The directory that it lies in.
    pub fn parent(&self) -> &Dir {
        &self.parent
    }

    /// The folder itself.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.parent.path_of(&self.name)
    }

    /// Whether its name still leads to it.
    pub fn there(&self) -> bool {
        leads(&self.parent, &self.name, &self.dir)
    }

    /// Removes all that is in it but the mark.
    ///
    /// # Errors
    /// As [`crate::clear`].
    pub fn clear(&self) -> Result<()> {
        clear_but(&self.dir, &crate::mark::name(), &mut || true).map(|_| ())
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// As [`crate::clear`].
    pub fn remove(&self) -> Result<()> {
        remove_opened(&self.parent, &self.name, &self.dir, &mut || true).map(|_| ())
    }

    /// Makes it nobody's to remove: what is kept has no mark.
    ///
    /// # Errors
    /// As [`Mark::remove`].
    pub fn unmark(&self) -> Result<()> {
        self.mark.remove(&self.dir)
    }

    /// Gives it another name in the same directory, which is free.
    ///
    /// # Errors
    /// When the name is taken, it cannot be renamed, or its own name leads to something else.
    pub fn rename(&mut self, name: &[u8]) -> Result<()> {
        let failed = |e| Error::io(&self.parent.path_of(name), "cannot be the name of a folder", e);
        if !self.there() {
            return Err(failed(io::Error::from_raw_os_error(libc::ENOENT)));
        }
        rename_new(&self.parent, &self.name, name, true).map_err(failed)?;
        self.name = name.into();
        Ok(())
    }

    /// Takes the place of a folder in the same directory, which is open as `old`, and removes that; `false` where the
    /// name leads to something else. Both are where they were then, and on an error.
    ///
    /// # Errors
    /// When they cannot be renamed.
    pub fn replace(&mut self, name: &[u8], old: OwnedFd) -> Result<bool> {
        let old = Dir::of(old, &self.parent.path_of(name));
        // Without a lock or a mark what a kill leaves of it stays, and that is all.
        let _ = lock(&old, Lock::Exclusive);
        let _ = old.unlink_below(MARK.as_bytes(), false);
        let mark = Mark::put_as(&old, KIND, &self.mark.id);
        let failed = |e| Error::io(&self.parent.path_of(name), "cannot be replaced", e);
        let swapped = self.swap(name, &old).map_err(failed);
        if let (Ok(_), Ok(false) | Err(_)) = (mark, &swapped) {
            // An overlay gave the directory another number with the mark, so that is no mark of it any more.
            let _ = old.unlink_below(MARK.as_bytes(), false);
        }
        if !swapped? {
            return Ok(false);
        }
        let hidden = std::mem::replace(&mut self.name, name.into());
        let _ = remove_opened(&self.parent, &hidden, &old, &mut || true);
        Ok(true)
    }

    /// Exchanges its name and that of `old`.
    fn swap(&self, name: &[u8], old: &Dir) -> io::Result<bool> {
        let exchange = || self.parent.rename_below(&self.name, name, RenameFlags::EXCHANGE);
        match exchange() {
            Ok(()) if leads(&self.parent, &self.name, old) => Ok(true),
            // Somebody was quicker than the look before: theirs goes back to its place.
            Ok(()) => exchange().map(|()| false),
            Err(e) if lacks(&e) => self.swap_in_steps(name, old),
            Err(e) => Err(e),
        }
    }

    /// The same where the file system cannot exchange two.
    fn swap_in_steps(&self, name: &[u8], old: &Dir) -> io::Result<bool> {
        let rename = |from: &[u8], to: &[u8]| rename_new(&self.parent, from, to, true);
        let spare = [&self.name, OLD].concat();
        rename(name, &spare)?;
        if !leads(&self.parent, &spare, old) {
            return rename(&spare, name).map(|()| false);
        }
        if let Err(e) = rename(&self.name, name) {
            rename(&spare, name)?;
            return Err(e);
        }
        // Under the name that is not put back, as it is removed from now on.
        rename(&spare, &self.name).map(|()| true)
    }
}

/// Whether a name leads to an open directory.
fn leads(parent: &Dir, name: &[u8], dir: &Dir) -> bool {
    let found = parent.stat_below(name);
    found.is_ok_and(|found| dir.stat().is_ok_and(|mine| mine.same(&found)))
}

/// Removes the folders whose names [`Folder::create`] made of `before` and whose makers are dead; returns their names.
///
/// A folder goes only if it is this user's, nobody holds its lock, and it is empty or has the mark of that very folder. One
/// that was about to be replaced gets its name `back` where that is free, and stays otherwise. Where a file system knows no
/// locks all stay. What cannot be looked at or removed is left.
pub fn sweep_folders(parent: &Dir, before: &[u8], back: Option<&[u8]>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let _ = parent.each(|entry| {
        if entry.directory && entry.name.to_bytes().starts_with(before) {
            found.push(entry.name.into_bytes());
        }
        Ok(true)
    });
    found.sort();
    found.retain(|name| remove_dead(parent, name, before.len(), back).unwrap_or(false));
    found
}

/// Takes a folder that [`sweep_folders`] would remove, as its maker is dead: gives it another name in the same directory,
/// which is free, and no mark; `false` where it is none.
///
/// # Errors
/// When it cannot be looked at or renamed, or the name is taken.
pub fn keep_folder(parent: &Dir, name: &[u8], before: &[u8], to: &[u8]) -> Result<bool> {
    let failed = |e| Error::io(&parent.path_of(name), "cannot be kept", e);
    let Some(id) = name.strip_prefix(before) else { return Ok(false) };
    let dir = parent.dir_below(name).map_err(failed)?;
    let Some(mark) = dead(parent, name, &dir)? else { return Ok(false) };
    if mark.kind != KIND || mark.id.as_bytes() != id {
        return Ok(false);
    }
    rename_new(parent, name, to, true).map_err(failed)?;
    mark.remove(&dir)?;
    Ok(true)
}

/// The mark of a folder of this user whose maker is dead.
fn dead(parent: &Dir, name: &[u8], dir: &Dir) -> Result<Option<Mark>> {
    let failed = |e| Error::io(&parent.path_of(name), "cannot be looked at", e);
    let mine = dir.stat().map_err(failed)?.owner == geteuid().as_raw();
    if mine && alone(dir) && leads(parent, name, dir) { Mark::read(dir) } else { Ok(None) }
}

fn remove_dead(parent: &Dir, name: &[u8], before: usize, back: Option<&[u8]>) -> Result<bool> {
    let failed = |e| Error::io(&parent.path_of(name), "cannot be removed", e);
    let (id, old) = match name[before..].strip_suffix(OLD) {
        Some(id) => (id, true),
        None => (&name[before..], false),
    };
    if id.len() != 32 || !id.iter().all(u8::is_ascii_hexdigit) {
        return Ok(false);
    }
    let dir = parent.dir_below(name).map_err(failed)?;
    let mine = dir.stat().map_err(failed)?.owner == geteuid().as_raw();
    if !mine || !alone(&dir) || !leads(parent, name, &dir) {
        return Ok(false);
    }
    match Mark::read(&dir)? {
        None => {
            // Killed before it was marked: then nothing is in it, and if anything is, this fails.
            Mark::remove_begun(&dir);
            parent.unlink_below(name, true).map_err(failed)?;
            Ok(true)
        }
        Some(mark) if mark.kind != KIND || mark.id.as_bytes() != id => Ok(false),
        Some(mark) if old => {
            if let Some(back) = back {
                rename_new(parent, name, back, true).map_err(failed)?;
                mark.remove(&dir)?;
            }
            Ok(false)
        }
        Some(_) => remove_opened(parent, name, &dir, &mut || true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const BEFORE: &[u8] = b".b.loadstone-";

    fn names(path: &Path) -> Vec<String> {
        let mut all: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        all.sort();
        all
    }

    fn made(parent: &Path, text: &str) -> Folder {
        let made = Folder::create(parent, BEFORE, None).unwrap();
        fs::write(made.path().join("x"), text).unwrap();
        made
    }

    fn swept(parent: &Path) -> usize {
        sweep_folders(&Dir::open(parent).unwrap(), BEFORE, Some(b"b")).len()
    }

    #[test]
    fn a_folder_gets_a_free_name_or_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let mut first = made(folder.path(), "1");
        fs::create_dir(&path).unwrap();
        let told = first.rename(b"b").unwrap_err();
        assert_eq!(told.cause.unwrap().kind(), io::ErrorKind::AlreadyExists);
        first.rename(b"c").unwrap();
        first.unmark().unwrap();
        assert!(first.there() && !first.path().join(MARK).exists());
        assert_eq!(fs::read_to_string(folder.path().join("c/x")).unwrap(), "1");
        let second = made(folder.path(), "2");
        second.clear().unwrap();
        assert_eq!(names(&second.path()), [MARK]);
        second.remove().unwrap();
        assert_eq!(names(folder.path()), ["b", "c"]);
    }

    #[test]
    fn a_folder_takes_the_place_of_another_and_of_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let open = || OwnedFd::from(fs::File::open(&path).unwrap());
        let mut first = made(folder.path(), "1");
        first.rename(b"b").unwrap();
        first.unmark().unwrap();
        let mut second = made(folder.path(), "2");
        assert!(second.replace(b"b", open()).unwrap());
        second.unmark().unwrap();
        assert_eq!((names(folder.path()), names(&path)), (vec!["b".into()], vec!["x".into()]));
        assert_eq!(fs::read_to_string(path.join("x")).unwrap(), "2");
        let other = open();
        fs::rename(&path, folder.path().join("other")).unwrap();
        fs::create_dir(&path).unwrap();
        let mut third = made(folder.path(), "3");
        assert!(!third.replace(b"b", other.try_clone().unwrap()).unwrap());
        assert!(!third.swap_in_steps(b"b", &Dir::of(other, &path)).unwrap());
        assert!(third.there() && names(&path).is_empty());
        assert_eq!(names(&folder.path().join("other")), ["x"]);
        assert!(third.swap_in_steps(b"b", &Dir::of(open(), &path)).unwrap());
        assert_eq!((names(&path).len(), names(folder.path()).len()), (2, 3));
    }

    #[test]
    fn only_folders_of_dead_makers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |digit: &str| folder.path().join(format!(".b.loadstone-{}", digit.repeat(32)));
        let live = made(folder.path(), "1");
        drop(made(folder.path(), "2"));
        fs::create_dir(at("1")).unwrap();
        fs::write(at("1").join("x"), "theirs").unwrap();
        fs::rename(made(folder.path(), "3").path(), at("2")).unwrap();
        assert_eq!(swept(folder.path()), 1);
        // Killed before they were marked.
        fs::create_dir(at("3")).unwrap();
        fs::create_dir(at("4")).unwrap();
        fs::write(at("4").join(MARK), "").unwrap();
        assert_eq!(swept(folder.path()), 2);
        assert!(live.there() && at("1").join("x").exists());
        assert_eq!(names(folder.path()).len(), 3);
    }

    #[test]
    fn what_was_about_to_be_replaced_gets_its_name_back() {
        let folder = tempfile::tempdir().unwrap();
        for free in [true, false] {
            let path = made(folder.path(), "1").path();
            let old = path.with_extension(format!("{}.old", path.extension().unwrap().display()));
            fs::rename(&path, &old).unwrap();
            assert_eq!(swept(folder.path()), 0);
            assert_eq!((old.exists(), folder.path().join("b").exists()), (!free, true));
            assert_eq!(names(&folder.path().join("b")), ["x"]);
        }
    }
}
