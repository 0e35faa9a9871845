//! Tar archives, plain or compressed: each is one snapshot.

use super::cut::Chunker;
use super::{Report, Scan, Watch};
use crate::names::Name;
use crate::tree::{Entry, Kind, Mark, State, Tree, tag};
use crate::{Error, Result};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};
use tar::EntryType;

/// What is said of a file that is no snapshot.
const FOREIGN: &str = "is no tar archive, plain or compressed, and no hash file, or damaged where it begins; a snapshot is \
                       one of these, or a directory";

/// Counts what is read of a file.
pub(super) struct Counted<'a>(pub File, pub &'a AtomicU64);

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(into)?;
        self.1.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A file of an archive; a later one of the same path takes its place.
pub(super) struct Member {
    pub dir: u32,
    pub name: Name,
    pub extension: u16,
    pub kind: Kind,
    pub size: u64,
    pub record: Option<(u16, Vec<u8>)>,
    pub chunks: Vec<u32>,
}

/// A snapshot of an archive; nothing where `watch` ends it.
pub fn scan(scan: &mut Scan, path: &Path, report: &mut Report, watch: Watch<'_>) -> Result<Option<Tree>> {
    let failed = |e| Error::io("cannot be read as a tar archive", path, e);
    let file = File::open(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let done = AtomicU64::new(0);
    let mut archive =
        tar::Archive::new(plain(BufReader::with_capacity(1 << 16, Counted(file, &done))).map_err(failed)?);
    let mut build = Build::new(path);
    let mut chunker = Chunker::new(scan.cut).map_err(failed)?;
    let (mut found, mut entries) = (Vec::new(), 0);
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(|e| {
            // What is no archive at all fails at its first head, and would be quoted as one.
            let foreign = entries == 0 && e.raw_os_error().is_none();
            if foreign { Error::file(path, FOREIGN) } else { failed(e) }
        })?;
        entries += 1;
        let full = entry.path_bytes().into_owned();
        let Some(parts) = parts(&full, scan.strip) else { continue };
        let kind = entry.header().entry_type();
        let Some((name, above)) = parts.split_last() else { continue };
        if kind == EntryType::Directory {
            build.dir(scan, &parts)?;
            continue;
        }
        let dir = build.dir(scan, above)?;
        let link = entry.link_name_bytes().map(|name| name.into_owned()).unwrap_or_default();
        let names = &mut scan.series.names;
        let mut member = Member {
            dir,
            name: scan.interner.name(names, name)?,
            extension: scan.interner.extension(names, name),
            kind: Kind::File,
            size: entry.size(),
            record: None,
            chunks: Vec::new(),
        };
        match kind {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                found.clear();
                let ask = |print: &_, before| scan.ask(print, before);
                let mut ended = false;
                let mut tell = |_| ended |= watch(done.load(Ordering::Relaxed), total).is_break();
                let read =
                    chunker.stream(&mut entry, u64::MAX, &ask, &mut tell, &mut found).map_err(failed)?;
                if ended {
                    return Ok(None);
                }
                member.size = read;
                report.bytes += read;
                if entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0) {
                    member.record = Some((tag::EXECUTABLE, Vec::new()));
                }
                scan.enter(&found, &mut member.chunks)?;
            }
            EntryType::Symlink => {
                member.kind = Kind::Symlink;
                member.size = link.len() as u64;
                member.record = Some((tag::LINK, link));
            }
            EntryType::Link => {
                member.kind = Kind::Hard;
                let first = self::parts(&link, scan.strip).and_then(|parts| build.find(scan, &parts));
                let Some(first) = first else {
                    report.unreadable(
                        &path.join(std::ffi::OsStr::from_bytes(&full)),
                        "links to what is not before it",
                    );
                    continue;
                };
                member.size = build.members[first as usize].size;
                member.record = Some((tag::HARD, first.to_le_bytes().to_vec()));
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => member.kind = Kind::Other,
            // Headers that only say something of others.
            _ => continue,
        }
        build.put(member);
    }
    if entries == 0 && total > 0 {
        return Err(Error::file(path, "has no file that tar knows; name a directory or a tar archive"));
    }
    build.finish().map(Some)
}

/// The archive without its compression, which its first bytes tell.
pub(super) fn plain<'a>(mut file: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let head = file.fill_buf()?;
    Ok(match head {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(file)?),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(file))
        }
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        _ => Box::new(file),
    })
}

/// Names of a path without the first `strip` ones; nothing where none are left, where it leads upwards, and where it
/// is no path.
pub(super) fn parts(path: &[u8], strip: usize) -> Option<Vec<&[u8]>> {
    if path.contains(&0) {
        return None;
    }
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.as_bytes()),
            Component::ParentDir => return None,
            _ => {}
        }
    }
    (parts.len() > strip).then(|| parts.split_off(strip))
}

/// A tree whose files come in any order.
pub(super) struct Build {
    tree: Tree,
    members: Vec<Member>,
    by_path: FxHashMap<(u32, Name), u32>,
    dirs: FxHashMap<(u32, Name), u32>,
}

impl Build {
    pub fn new(path: &Path) -> Build {
        let tree = Tree::new(path.to_string_lossy());
        Build { tree, members: Vec::new(), by_path: FxHashMap::default(), dirs: FxHashMap::default() }
    }

    pub fn dir(&mut self, scan: &mut Scan, parts: &[&[u8]]) -> Result<u32> {
        let mut dir = 0;
        for part in parts {
            let name = scan.interner.name(&mut scan.series.names, part)?;
            dir = *self.dirs.entry((dir, name)).or_insert_with(|| self.tree.add_dir(dir, name));
        }
        Ok(dir)
    }

    fn find(&self, scan: &mut Scan, parts: &[&[u8]]) -> Option<u32> {
        let (name, above) = parts.split_last()?;
        let mut name_of = |part: &[u8]| scan.interner.name(&mut scan.series.names, part).ok();
        let mut dir = 0;
        for part in above {
            dir = *self.dirs.get(&(dir, name_of(part)?))?;
        }
        self.by_path.get(&(dir, name_of(name)?)).copied()
    }

    /// Tells the member's number.
    pub fn put(&mut self, member: Member) -> u32 {
        let number = self.members.len() as u32;
        match self.by_path.entry((member.dir, member.name)) {
            // A file that others are links to stays where it is.
            std::collections::hash_map::Entry::Occupied(known) => {
                self.members[*known.get() as usize] = member;
                *known.get()
            }
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(number);
                self.members.push(member);
                number
            }
        }
    }

    pub fn finish(mut self) -> Result<Tree> {
        for member in &self.members {
            let record = member.record.as_ref().map(|(tag, bytes)| [(*tag, &bytes[..])]);
            let entry = Entry {
                dir: member.dir,
                name: member.name,
                extension: member.extension,
                mark: Mark::new(member.kind, State::New),
                size: member.size,
                private: record.as_ref().map_or(&[], |record| &record[..]),
            };
            self.tree.add_file(&entry, &member.chunks)?;
        }
        Ok(self.tree)
    }
}
