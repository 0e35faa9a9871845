//! Names of files and directories, each kept once, and extensions.

use crate::index::{self, Index};
use crate::{Error, Result};

/// Longest name, bytes (NAME_MAX of Linux).
pub const MOST_NAME: usize = 255;
/// Longest path below the root of a snapshot, bytes. Linux takes 4,096 at once, and archives have deeper trees.
pub const MOST_PATH: usize = 1 << 16;
/// Longest extension, bytes.
const MOST_EXTENSION: usize = 12;
/// Set in numbers of names that are made from their number instead of kept.
const MADE: u32 = 1 << 31;

/// A name: where it is kept, or the number it is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

impl Name {
    /// The name that is made from a number.
    pub fn made(number: u32) -> Name {
        Name(number | MADE)
    }

    /// The number that a name is made from.
    pub fn number(self) -> Option<u32> {
        (self.0 & MADE != 0).then_some(self.0 & !MADE)
    }
}

/// Names and extensions of a series.
#[derive(Default)]
pub struct Names {
    /// Length in one byte, then the name. The first is the empty name of a root.
    pub bytes: Vec<u8>,
    /// Extensions without their dot; the first is that of files that have none.
    pub extensions: Vec<Vec<u8>>,
}

impl Names {
    /// Only what a root needs.
    pub fn new() -> Names {
        Names { bytes: vec![0], extensions: vec![Vec::new()] }
    }

    /// Extensions by their numbers; the first is that of files that have none.
    pub fn extensions(&self) -> impl Iterator<Item = &[u8]> {
        self.extensions.iter().map(Vec::as_slice)
    }

    /// Writes a name; made ones are told by a letter and a number.
    pub fn write(&self, name: Name, kind: u8, extension: u16, into: &mut Vec<u8>) {
        if name.0 & MADE == 0 {
            into.extend_from_slice(self.kept(name));
            return;
        }
        into.push(kind);
        into.extend_from_slice(format!("{:x}", name.0 & !MADE).as_bytes());
        let extension = &self.extensions[usize::from(extension)];
        if !extension.is_empty() {
            into.push(b'.');
            into.extend_from_slice(extension);
        }
    }

    fn kept(&self, name: Name) -> &[u8] {
        let at = name.0 as usize;
        &self.bytes[at + 1..at + 1 + usize::from(self.bytes[at])]
    }

    /// Bytes of a name, or why it is none that a directory can have; only a root has none.
    pub(crate) fn length(&self, name: Name, extension: u16) -> std::result::Result<usize, String> {
        if let Some(number) = name.number() {
            let extension = self.extensions.get(usize::from(extension)).map_or(0, Vec::len);
            let digits = (u32::BITS - number.leading_zeros()).div_ceil(4).max(1) as usize;
            return Ok(1 + digits + extension + usize::from(extension > 0));
        }
        let at = name.0 as usize;
        let kept =
            self.bytes.get(at).and_then(|length| self.bytes.get(at + 1..at + 1 + usize::from(*length)));
        let Some(kept) = kept else {
            return Err(format!("a name at byte {at} of the names, which are {}", self.bytes.len()));
        };
        if is_component(kept) {
            return Ok(kept.len());
        }
        Err(format!("the name \"{}\" (byte {at} of the names), which leads elsewhere", kept.escape_ascii()))
    }

    /// What is wrong with an extension, if anything is: made names end with them.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        let wrong = |extension: &Vec<u8>| !is_extension(extension) && !extension.is_empty();
        match self.extensions.iter().position(wrong) {
            None => Ok(()),
            Some(i) => Err(format!(
                "extension {i} is \"{}\", not up to {MOST_EXTENSION} letters and digits",
                self.extensions[i].escape_ascii()
            )),
        }
    }
}

/// Whether a name leads nowhere but to an entry of the directory it is in.
pub fn is_component(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && name.len() <= MOST_NAME
        && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// Whether an extension may be appended to names.
fn is_extension(extension: &[u8]) -> bool {
    (1..=MOST_EXTENSION).contains(&extension.len()) && extension.iter().all(u8::is_ascii_alphanumeric)
}

/// Gives names and extensions their numbers.
pub struct Interner {
    names: Index,
    extensions: rustc_hash::FxHashMap<Vec<u8>, u16>,
}

impl Interner {
    /// Continues what `names` has of extensions; of names it begins anew, so it is made once for a series.
    pub fn new(names: &Names) -> Interner {
        let extensions =
            names.extensions.iter().zip(0..).map(|(extension, i)| (extension.clone(), i)).collect();
        Interner { names: Index::default(), extensions }
    }

    /// The number of a name, which is kept where it is new.
    ///
    /// # Errors
    /// When it is too long or no name of an entry of a directory, or there are 2 GiB of names.
    pub fn name(&mut self, names: &mut Names, name: &[u8]) -> Result<Name> {
        let Ok(length) = u8::try_from(name.len()) else {
            return Err(Error::Option(format!(
                "a name of {} bytes: at most {MOST_NAME} can be kept",
                name.len()
            )));
        };
        if !is_component(name) {
            return Err(Error::Option(format!(
                "the name \"{}\" leads elsewhere: give files and directories others",
                name.escape_ascii()
            )));
        }
        let hash = index::of_bytes(name);
        if let Some(found) = self.names.find(hash, |at| names.kept(Name(at)) == name) {
            return Ok(Name(found));
        }
        let at = u32::try_from(names.bytes.len()).ok().filter(|at| at & MADE == 0);
        let at = at.ok_or_else(|| Error::Option("2 GiB of names: scan fewer files".into()))?;
        names.bytes.push(length);
        names.bytes.extend_from_slice(name);
        self.names.add(hash, at, |at| index::of_bytes(names.kept(Name(at))));
        Ok(Name(at))
    }

    /// The extension of a name, in lower case: what follows its last dot, of up to 12 letters and digits.
    pub fn extension(&mut self, names: &mut Names, name: &[u8]) -> u16 {
        let dot = name.iter().rposition(|b| *b == b'.').filter(|at| *at > 0);
        let extension = dot.map_or(&[][..], |dot| &name[dot + 1..]);
        self.known(names, extension.to_ascii_lowercase())
    }

    /// The number of an extension; what is none counts as such, and with 65,535 of them known so do further ones.
    pub fn known(&mut self, names: &mut Names, extension: Vec<u8>) -> u16 {
        if !is_extension(&extension) {
            return 0;
        }
        if let Some(number) = self.extensions.get(&extension) {
            return *number;
        }
        let Ok(number) = u16::try_from(names.extensions.len()) else { return 0 };
        names.extensions.push(extension.clone());
        self.extensions.insert(extension, number);
        number
    }
}
