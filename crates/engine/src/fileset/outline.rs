//! Which names in a set's directory are Loadstone's: the outline of the set, kept in the mark inside the directory.

use super::{DIGITS, Set};
use loadstone_files::{Dir, Error, Mark, Result, is_mark};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the mark of a set's directory says that it is.
pub const KIND: &str = "set";

/// The numbers that name what is in a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outline {
    /// Of each depth, from what lies in the root on: largest number of a directory, and of a file.
    levels: Vec<[u32; 2]>,
    /// Digits of the names of files, fewest and most.
    digits: Vec<[u8; 2]>,
    /// Below the directories in the root names are those of archives.
    pub any_names: bool,
}

impl Outline {
    /// Of a set; below numbered directories in its root programs put files of any names if `any_names`.
    pub fn of(set: &Set, any_names: bool) -> Outline {
        let mut levels: Vec<[u32; 2]> = Vec::new();
        let mut note = |depth: usize, kind: usize, number: u32| {
            if levels.len() <= depth {
                levels.resize(depth + 1, [0; 2]);
            }
            let most = &mut levels[depth][kind];
            *most = number.max(*most);
        };
        let shape = &set.shape;
        // Parents come before what lies in them.
        let mut depths: Vec<u16> = Vec::with_capacity(shape.directories.len());
        for directory in &shape.directories {
            let depth = depths.get(directory.parent as usize).map_or(0, |depth| depth + 1);
            depths.push(depth);
            note(depth.into(), 0, directory.number);
        }
        let below = |home: u32| depths.get(home as usize).map_or(0, |depth| usize::from(*depth) + 1);
        for (file, home) in (0..).zip(&shape.homes) {
            let first = shape.directories.get(*home as usize).map_or(0, |home| home.first);
            note(below(*home), 1, file - first + 1);
        }
        shape.leaves.iter().for_each(|(home, number)| note(below(*home), 0, *number));
        if any_names {
            // Programs number them as the set's directories or files.
            let most = set.files.len().max(set.leaves.len());
            note(0, 0, u32::try_from(most).unwrap_or(u32::MAX));
        }
        Outline { levels, digits: vec![set.digits], any_names }
    }

    /// What is in either of two.
    pub fn and(mut self, other: &Outline) -> Outline {
        let most = self.levels.len().max(other.levels.len());
        self.levels.resize(most, [0; 2]);
        for (own, other) in self.levels.iter_mut().zip(&other.levels) {
            *own = [own[0].max(other[0]), own[1].max(other[1])];
        }
        for digits in &other.digits {
            if !self.digits.contains(digits) {
                self.digits.push(*digits);
            }
        }
        self.any_names |= other.any_names;
        self
    }

    /// The outline in a mark.
    ///
    /// # Errors
    /// When the mark is that of something else.
    pub fn in_mark(dir: &Dir, mark: &Mark) -> Result<Outline> {
        let wrong = || Error::new(dir.path(), "was made by Loadstone for something else than a set of files");
        if mark.kind != KIND {
            return Err(wrong());
        }
        serde_json::from_value(mark.about.clone()).map_err(|_| wrong())
    }

    /// Whether a name is one of the set's, when its last run has ended as it should.
    pub fn has(&self, depth: usize, name: &[u8], directory: bool) -> bool {
        if self.any_names && depth > 0 {
            return true;
        }
        let Some([directories, files]) = self.levels.get(depth) else { return false };
        let written = name.iter().position(|digit| *digit != b'0').unwrap_or(name.len());
        let written = name.len() - written;
        let number = name.iter().try_fold(0u32, |number, digit| {
            let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        });
        let Some(number) = number else { return false };
        let fits = |least: u32| name.len() == written.max(least as usize);
        if directory {
            let first = u32::from(!self.any_names);
            return (first..=*directories).contains(&number) && fits(DIGITS.into());
        }
        let file = |[least, most]: &[u8; 2]| {
            fits(u32::from(*least) + number % (u32::from(most.saturating_sub(*least)) + 1))
        };
        (1..=*files).contains(&number) && self.digits.iter().any(file)
    }
}

/// Something in a set's directory that Loadstone did not make: its name is none of the set's, or it was made or changed
/// after the run had ended.
///
/// # Errors
/// When the directory cannot be read.
pub fn foreign(dir: &Dir, mark: &Mark) -> Result<Option<PathBuf>> {
    let outline = Outline::in_mark(dir, mark)?;
    let failed = |at: &Dir, e: io::Error| Error::io(at.path(), "cannot be read", e);
    let top = dir.try_clone().map_err(|e| failed(dir, e))?;
    // Directories on the way down, and what is still to be looked at in each.
    let mut way: Vec<(Dir, Vec<CString>)> = vec![(top, Vec::new())];
    let (mut other, mut changed) = (None, None);
    let mut read = |at: &Dir, depth: usize, other: &mut Option<PathBuf>| -> io::Result<Vec<CString>> {
        let mut below = Vec::new();
        at.each(|entry| {
            let name = entry.name.to_bytes();
            if depth == 0 && is_mark(name) {
                return Ok(true);
            }
            let named = outline.has(depth, name, entry.directory);
            let later = named && since(at, name, mark)?;
            if later && entry.directory {
                // What lies in it says more, if it is not of the set.
                changed.get_or_insert_with(|| at.path_of(name));
            } else if later || !named {
                *other = Some(at.path_of(name));
            }
            if entry.directory {
                below.push(entry.name);
            }
            Ok(other.is_none())
        })?;
        Ok(below)
    };
    way[0].1 = read(&way[0].0, 0, &mut other).map_err(|e| failed(dir, e))?;
    while let Some((at, below)) = way.last_mut() {
        if other.is_some() {
            return Ok(other);
        }
        let Some(name) = below.pop() else {
            way.pop();
            continue;
        };
        let inner = match at.dir_below(name.to_bytes()) {
            // A run that is going on has removed it; its lock is seen later.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            inner => inner.map_err(|e| failed(at, e))?,
        };
        let below = read(&inner, way.len(), &mut other).map_err(|e| failed(&inner, e))?;
        way.push((inner, below));
    }
    Ok(other.or(changed))
}

/// How far clocks of a host and a file server may be apart, ns.
const SKEW: i64 = 60_000_000_000;

/// The clock of the host, ns since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Whether an entry was made or changed after the run had ended that the mark is of.
fn since(at: &Dir, name: &[u8], mark: &Mark) -> io::Result<bool> {
    let Some(ended) = mark.ended else { return Ok(false) };
    // A clock that was ahead and put right: nobody can tell what came after the end.
    if ended > now().saturating_add(SKEW) {
        return Ok(true);
    }
    // A directory that is moved here brings files that are older; its own time changes.
    match at.stat_below(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        found => Ok(found?.changed > ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_other_numbers_are_not_those_of_a_set() {
        let outline =
            Outline { levels: vec![[3, 0], [0, 20]], digits: vec![[8, 8], [8, 10]], any_names: false };
        assert!(outline.has(0, b"00000003", true) && outline.has(1, b"00000020", false));
        assert!(outline.has(1, b"000000001", false), "of the second kind");
        for (depth, name, directory) in [
            (0, &b"20231127"[..], true),
            (0, b"1700000000", true),
            (0, b"00000004", true),
            (0, b"00000000", true),
            (0, b"3", true),
            (0, b"00000003", false),
            (1, b"00000021", false),
            (1, b"0000000001", false),
            (1, b"00000001", true),
            (1, b"0000000a", false),
            (1, b"99999999999999999999", false),
            (2, b"00000001", false),
        ] {
            assert!(!outline.has(depth, name, directory), "{} at {depth}", name.escape_ascii());
        }
        let archives = Outline { levels: vec![[2, 0]], digits: vec![[8, 8]], any_names: true };
        assert!(archives.has(1, b"usr", true) && archives.has(0, b"00000000", true));
        assert!(!archives.has(0, b"usr", true) && !archives.has(0, b"20231127", true));
        let both = outline.clone().and(&Outline { levels: vec![[9, 9]], ..outline.clone() });
        assert!(both.has(0, b"00000009", false) && both.has(1, b"00000020", false));
    }
}
