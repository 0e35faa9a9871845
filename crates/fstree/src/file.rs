//! The file of a series, `.fst`: written and read in one pass; `docs/reference/formats/fstree.md` has the layout.

use crate::chunks::Chunks;
use crate::names::Names;
use crate::tree::{Dirs, Files, Lz4, Meta, Resemblance, Series, Tree};
use crate::{Error, Result};
use loadstone_files::{Aside, open_regular};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// What every file begins with.
const MAGIC: [u8; 8] = *b"LSFSTREE";
/// Of the layout.
const VERSION: u32 = 1;
/// In place of a snapshot's number, in heads of sections that belong to all of them.
const SHARED: u32 = u32::MAX;
/// Bytes of a section's head: tag, snapshot, length of the content, and checksum of these and the content.
const HEAD: usize = 24;
/// Numbers that are turned into bytes, or back, at once.
const BATCH: usize = 1 << 14;

/// A number as the file has it.
trait Number: Copy + Default {
    const SIZE: usize;
    fn put(self, into: &mut Vec<u8>);
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Number for $kind {
            const SIZE: usize = size_of::<$kind>();
            fn put(self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> $kind {
                let mut one = [0; size_of::<$kind>()];
                one.copy_from_slice(bytes);
                <$kind>::from_le_bytes(one)
            }
        }
    )*};
}
number!(u8, u16, u32, u64);

/// Writes sections.
struct Sections<W: Write> {
    into: W,
    buffer: Vec<u8>,
}

impl<W: Write> Sections<W> {
    fn column<T: Number>(&mut self, tag: &[u8; 4], tree: u32, numbers: &[T]) -> io::Result<()> {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(tag);
        head[4..8].copy_from_slice(&tree.to_le_bytes());
        head[8..16].copy_from_slice(&((numbers.len() * T::SIZE) as u64).to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head[..16]);
        for batch in numbers.chunks(BATCH) {
            hasher.update(self.bytes(batch));
        }
        head[16..].copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        self.into.write_all(&head)?;
        for batch in numbers.chunks(BATCH) {
            self.bytes(batch);
            self.into.write_all(&self.buffer)?;
        }
        Ok(())
    }

    fn bytes<T: Number>(&mut self, batch: &[T]) -> &[u8] {
        self.buffer.clear();
        batch.iter().for_each(|number| number.put(&mut self.buffer));
        &self.buffer
    }
}

impl Series {
    /// Writes the file, aside first; one that is there is only replaced with `force`.
    ///
    /// # Errors
    /// When it exists or cannot be written, or is none that could be read again.
    pub fn save(&self, path: &Path, force: bool) -> Result<()> {
        self.check().map_err(|what| Error::file(path, format!("is not written: {what}")))?;
        write_aside(path, force, |file| self.write_to(file))
    }

    /// Writes what the file has.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_to(&self, into: &mut dyn Write) -> io::Result<()> {
        into.write_all(&MAGIC)?;
        into.write_all(&VERSION.to_le_bytes())?;
        into.write_all(&(self.trees.len() as u32).to_le_bytes())?;
        let mut sections = Sections { into, buffer: Vec::new() };
        sections.column(b"meta", SHARED, &serde_json::to_vec(&self.meta)?)?;
        sections.column(b"name", SHARED, &self.names.bytes)?;
        let mut extensions = Vec::new();
        for extension in &self.names.extensions {
            extensions.push(extension.len() as u8);
            extensions.extend_from_slice(extension);
        }
        sections.column(b"exts", SHARED, &extensions)?;
        sections.column(b"csiz", SHARED, &self.chunks.packed)?;
        sections.column(b"cprt", SHARED, &self.chunks.prints)?;
        for (i, tree) in (0..).zip(&self.trees) {
            sections.column(b"labl", i, tree.label.as_bytes())?;
            sections.column(b"dpar", i, &tree.dirs.parent)?;
            sections.column(b"dnam", i, &tree.dirs.name)?;
            sections.column(b"dprv", i, &tree.dirs.private)?;
            sections.column(b"fdir", i, &tree.files.dir)?;
            sections.column(b"fnam", i, &tree.files.name)?;
            sections.column(b"fext", i, &tree.files.extension)?;
            sections.column(b"fmrk", i, &tree.files.mark)?;
            sections.column(b"fsiz", i, &tree.files.size)?;
            sections.column(b"fsta", i, &tree.files.start)?;
            sections.column(b"fprv", i, &tree.files.private)?;
            sections.column(b"refs", i, &tree.refs)?;
            sections.column(b"priv", i, &tree.private)?;
        }
        sections.column::<u8>(b"end ", SHARED, &[])
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is not what [`Series::save`] writes.
    pub fn load(path: &Path) -> Result<Series> {
        let file = open_regular(path, true)?;
        Series::read_from(&mut BufReader::with_capacity(1 << 20, file)).map_err(|what| what.of(path))
    }

    /// Reads what the file has, of any length and in any state.
    ///
    /// # Errors
    /// When it is not whole.
    pub fn read_from(from: &mut dyn Read) -> std::result::Result<Series, Damage> {
        let mut head = [0; 16];
        let foreign = || Damage::Wrong("is no fstree file; loadstone dataset scan makes one".into());
        from.read_exact(&mut head).map_err(|e| Damage::short(e, foreign))?;
        if head[..8] != MAGIC {
            return Err(foreign());
        }
        let version = u32::get(&head[8..12]);
        if version != VERSION {
            return Err(Damage::Wrong(format!(
                "is an fstree file of version {version}, this Loadstone reads {VERSION}; scan again, or use the \
                 Loadstone that made it"
            )));
        }
        let (mut shared, mut trees) = (Shared::default(), Vec::new());
        loop {
            let section = Section::read(from)?;
            if section.tag == *b"end " {
                break;
            }
            if section.tree == SHARED {
                shared.take(section)?;
                continue;
            }
            if section.tree as usize == trees.len() && section.tag == *b"labl" {
                trees.push(Tree { private: Vec::new(), ..Tree::new("") });
            }
            match trees.get_mut(section.tree as usize) {
                Some(tree) => take(tree, section)?,
                None => return Err(section.wrong("is out of order")),
            }
        }
        if trees.len() != u32::get(&head[12..]) as usize {
            return Err(Damage::Wrong(format!(
                "has {} snapshots, its head says {}; it was damaged: copy or scan again",
                trees.len(),
                u32::get(&head[12..])
            )));
        }
        shared.series(trees)
    }
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum Damage {
    /// The operating system says so.
    Io(io::Error),
    /// It is not what it should be.
    Wrong(String),
}

impl Damage {
    /// The same, told of a file.
    pub fn of(self, path: &Path) -> Error {
        match self {
            Damage::Io(cause) => Error::io("cannot be read", path, cause),
            Damage::Wrong(what) => Error::file(path, what),
        }
    }

    /// What an error of reading comes to: `end` where the file ended too early.
    pub fn short(cause: io::Error, end: impl FnOnce() -> Damage) -> Damage {
        if cause.kind() == io::ErrorKind::UnexpectedEof { end() } else { Damage::Io(cause) }
    }
}

/// A section as it was read.
struct Section {
    tag: [u8; 4],
    tree: u32,
    bytes: Vec<u8>,
}

impl Section {
    fn read(from: &mut dyn Read) -> std::result::Result<Section, Damage> {
        let cut =
            || Damage::Wrong("ends before its last section; it was cut short: copy or scan again".into());
        let mut head = [0; HEAD];
        from.read_exact(&mut head).map_err(|e| Damage::short(e, cut))?;
        let (mut tag, tree, length) = ([0; 4], u32::get(&head[4..8]), u64::get(&head[8..16]));
        tag.copy_from_slice(&head[..4]);
        // Memory grows with what is there, not with what the head says.
        let mut bytes = Vec::new();
        from.take(length).read_to_end(&mut bytes).map_err(Damage::Io)?;
        if bytes.len() as u64 != length {
            return Err(cut());
        }
        let section = Section { tag, tree, bytes };
        let check = blake3::Hasher::new().update(&head[..16]).update(&section.bytes).finalize();
        if check.as_bytes()[..8] != head[16..] {
            return Err(section.wrong("is damaged: its checksum differs"));
        }
        Ok(section)
    }

    fn wrong(&self, what: &str) -> Damage {
        let name = self.tag.escape_ascii();
        let of = if self.tree == SHARED { String::new() } else { format!(" of snapshot {}", self.tree) };
        Damage::Wrong(format!("section \"{name}\"{of} {what}; copy or scan again"))
    }

    fn numbers<T: Number>(&self) -> std::result::Result<Vec<T>, Damage> {
        let numbers = self.bytes.chunks_exact(T::SIZE);
        if !numbers.remainder().is_empty() {
            return Err(self.wrong("ends within a number"));
        }
        Ok(numbers.map(T::get).collect())
    }
}

/// Sections that belong to all snapshots.
#[derive(Default)]
struct Shared {
    meta: Option<Meta>,
    names: Names,
    chunks: Chunks,
}

impl Shared {
    fn take(&mut self, section: Section) -> std::result::Result<(), Damage> {
        match &section.tag {
            b"meta" => {
                let meta: Meta = serde_json::from_slice(&section.bytes)
                    .map_err(|e| section.wrong(&format!("is not understood: {e}")))?;
                meta.chunking.check().map_err(|e| section.wrong(&format!("says {e}")))?;
                if !meta.resemblance.is_none_or(Resemblance::is_sound) {
                    return Err(section.wrong(
                        "says that chunks resemble each other by less than nothing, or more than whole",
                    ));
                }
                if !meta.lz4.as_ref().is_none_or(Lz4::is_sound) {
                    return Err(section.wrong("says of lz4 what no chunk has"));
                }
                self.meta = Some(meta);
            }
            b"name" => self.names.bytes = section.bytes,
            b"exts" => {
                let mut rest = &section.bytes[..];
                while let Some((length, more)) = rest.split_first() {
                    let split = more.split_at_checked(usize::from(*length));
                    let (extension, more) = split.ok_or_else(|| section.wrong("ends within an extension"))?;
                    self.names.extensions.push(extension.to_vec());
                    rest = more;
                }
            }
            b"csiz" => self.chunks.packed = section.numbers()?,
            b"cprt" => self.chunks.prints = section.bytes,
            // Sections that later versions add are not needed to read the others.
            _ => {}
        }
        Ok(())
    }

    fn series(mut self, trees: Vec<Tree>) -> std::result::Result<Series, Damage> {
        let wrong = |what: &str| Damage::Wrong(format!("{what}; copy or scan again"));
        let meta = self.meta.take().ok_or_else(|| wrong("section \"meta\" is missing"))?;
        let (count, prints) = (self.chunks.packed.len(), self.chunks.prints.len());
        self.chunks.width = prints.checked_div(count).unwrap_or(0);
        if self.chunks.width * count != prints || self.chunks.width > 32 {
            return Err(wrong("fingerprints and chunks differ in number"));
        }
        let series = Series { meta, chunks: self.chunks, names: self.names, trees };
        series.check().map_err(|what| wrong(&what))?;
        Ok(series)
    }
}

fn take(tree: &mut Tree, section: Section) -> std::result::Result<(), Damage> {
    let Tree { dirs: Dirs { parent, name, private }, files, .. } = tree;
    let Files { dir, name: file_name, extension, mark, size, start, private: file_private } = files;
    match &section.tag {
        b"labl" => tree.label = String::from_utf8_lossy(&section.bytes).into_owned(),
        b"dpar" => *parent = section.numbers()?,
        b"dnam" => *name = section.numbers()?,
        b"dprv" => *private = section.numbers()?,
        b"fdir" => *dir = section.numbers()?,
        b"fnam" => *file_name = section.numbers()?,
        b"fext" => *extension = section.numbers()?,
        b"fmrk" => *mark = section.bytes,
        b"fsiz" => *size = section.numbers()?,
        b"fsta" => *start = section.numbers()?,
        b"fprv" => *file_private = section.numbers()?,
        b"refs" => tree.refs = section.numbers()?,
        b"priv" => tree.private = section.bytes,
        _ => {}
    }
    Ok(())
}

/// Writes a file aside and gives it its name when it is whole.
///
/// # Errors
/// When it is there and `force` is not set, or it cannot be written.
pub fn write_aside(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    may_write(path, force)?;
    let (aside, file) = Aside::create(path, force)?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let failed = |e| Error::io("cannot be written", path, e);
    write(&mut file).map_err(failed)?;
    let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
    Ok(aside.keep(&file)?)
}

/// Whether a file may be written, asked before the work that ends in it.
///
/// # Errors
/// When it is no regular file, or is there and `force` is not set.
pub fn may_write(path: &Path, force: bool) -> Result<()> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(Error::file(path, "is a directory; name a file in it")),
        Ok(there) if !there.is_file() => Err(Error::file(
            path,
            "is a device, a pipe or a socket, which a file would take the place of; name a file",
        )),
        Ok(_) if !force => Err(exists(path)),
        _ => Ok(()),
    }
}

fn exists(path: &Path) -> Error {
    Error::file(path, "exists; choose another name or overwrite it with `force`")
}

#[cfg(test)]
mod tests;
