//! Tar archives, plain or compressed: each is one snapshot.

use super::build::{Build, KEPT, Member, TAKEN};
use super::cut::Chunker;
use super::{Report, Scan, Watch};
use crate::tree::{Kind, Tree, tag};
use crate::write::UNFINISHED;
use crate::{Error, Result};
use loadstone_archive::{self as archive, Archive};
use loadstone_fstree::tree::is_target;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

/// What is said of a file that is no snapshot.
const FOREIGN: &str = "is no tar archive, plain or compressed, and no hash file, or damaged where it begins; a snapshot is \
                       one of these, or a directory";

/// Most members of an archive. They are counted, since compression makes millions of them of a small file.
const MOST_MEMBERS: usize = 1 << 25;
/// Bytes of the longest name that file systems have.
const LONGEST: usize = 255;
/// Bytes of memory that a decoder may take: xz at its best takes half of that.
const MOST_DECODER: u64 = 128 << 20;

/// Counts what is read of a file.
pub(super) struct Counted<'a>(pub File, pub &'a AtomicU64);

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(into)?;
        self.1.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A snapshot of an archive; nothing where `watch` ends it.
pub fn scan(scan: &mut Scan, path: &Path, report: &mut Report, watch: Watch<'_>) -> Result<Option<Tree>> {
    let failed = |e| Error::io("cannot be read as a tar archive", path, e);
    let file = loadstone_files::open_for_reading(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let done = AtomicU64::new(0);
    let plain = plain(BufReader::with_capacity(1 << 16, Counted(file, &done))).map_err(failed)?;
    let tree = import(scan, path, plain, report, &mut || watch(done.load(Ordering::Relaxed), total))?;
    match tree {
        Some((_, 0)) if total > 0 => {
            Err(Error::file(path, "has no file that tar knows; name a directory or a tar archive"))
        }
        tree => Ok(tree.map(|(tree, _)| tree)),
    }
}

/// The same of one that is open and not compressed; with it the number of its members.
pub fn import(
    scan: &mut Scan,
    path: &Path,
    plain: impl Read,
    report: &mut Report,
    tell: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Option<(Tree, usize)>> {
    let failed = |e| Error::io("cannot be read as a tar archive", path, e);
    let mut archive = Archive::new(plain);
    let mut build = Build::new(path);
    let mut chunker = Chunker::new(scan.cut).map_err(failed)?;
    let (mut found, mut members) = (Vec::new(), 0);
    loop {
        let told = match archive.member() {
            // What is no archive at all would be quoted as one.
            Err(e) if e.raw_os_error().is_none() && !archive.is_begun() => {
                return Err(Error::file(path, FOREIGN));
            }
            told => told.map_err(failed)?,
        };
        let Some(told) = told else { break };
        members += 1;
        if members > MOST_MEMBERS {
            return Err(Error::file(
                path,
                format!("has more than {MOST_MEMBERS} members; scan a smaller archive"),
            ));
        }
        if build.dirs() > MOST_MEMBERS {
            // A long name has many, and compression makes many such names of a small file.
            return Err(Error::file(
                path,
                format!("has more than {MOST_MEMBERS} directories; scan a smaller archive"),
            ));
        }
        if tell().is_break() {
            return Ok(None);
        }
        let full = || path.join(std::ffi::OsStr::from_bytes(&told.path));
        if leads_up(&told.path) {
            report.unreadable(&full(), "has a path that leads nowhere below");
            continue;
        }
        let Some(parts) = parts(&told.path, scan.strip) else {
            if told.kind != archive::Kind::Directory && self::parts(&told.path, 0).is_none() {
                report.unreadable(&full(), "has no name");
            }
            continue;
        };
        if parts.iter().any(|part| part.len() > LONGEST) {
            report.unreadable(&full(), format!("has a name of more than {LONGEST} bytes"));
            continue;
        }
        let Some((name, above)) = parts.split_last() else { continue };
        if *name == UNFINISHED.as_bytes() {
            report.unfinished(full().parent().unwrap_or(path));
        }
        let (is_dir, gone) = (told.kind == archive::Kind::Directory, build.gone());
        let dir = build.dir(scan, if is_dir { &parts } else { above })?;
        for _ in gone..build.gone() {
            report.unreadable(&full(), TAKEN);
        }
        if is_dir {
            continue;
        }
        let names = &mut scan.series.names;
        let interned = scan.interner.name(names, name)?;
        if build.is_dir(dir, interned) {
            report.unreadable(&full(), KEPT);
            continue;
        }
        let mut member = Member {
            dir,
            name: interned,
            extension: scan.interner.extension(names, name),
            kind: Kind::File,
            size: told.size,
            records: Vec::new(),
            chunks: Vec::new(),
        };
        match told.kind {
            archive::Kind::File | archive::Kind::Sparse => {
                found.clear();
                let ask = |print: &_, before| scan.ask(print, before);
                let mut ended = false;
                let mut tell = |_| ended |= tell().is_break();
                let whole = [(0, told.size)];
                let is_sparse = told.kind == archive::Kind::Sparse;
                for (_, length) in if is_sparse { &told.pieces[..] } else { &whole } {
                    report.bytes +=
                        chunker.stream(&mut archive, *length, &ask, &mut tell, &mut found).map_err(failed)?;
                }
                if ended {
                    return Ok(None);
                }
                if is_sparse {
                    member.records.extend(holes(&told, report));
                }
                if told.mode & 0o111 != 0 {
                    member.records.push((tag::EXECUTABLE, Vec::new()));
                }
                scan.enter(&found, &mut member.chunks)?;
            }
            archive::Kind::Symlink => {
                member.kind = Kind::Symlink;
                member.size = told.link.len() as u64;
                if is_target(&told.link) {
                    member.records.push((tag::LINK, told.link));
                } else {
                    member.kind = Kind::Unreadable;
                    report.unreadable(&full(), "leads where no link can");
                }
            }
            archive::Kind::Hard => {
                let first = self::parts(&told.link, scan.strip).and_then(|parts| build.find(scan, &parts));
                let Some(first) = first else {
                    report.unreadable(&full(), "links to what is not before it");
                    continue;
                };
                build.link(member, first);
                continue;
            }
            archive::Kind::Special => member.kind = Kind::Other,
            archive::Kind::Other => {
                report.unreadable(&full(), "is of a type of member that is not known here");
                continue;
            }
            archive::Kind::Directory | archive::Kind::Label => continue,
        }
        build.put(member);
    }
    let name = path.display();
    if !archive.is_ended() {
        report
            .notes
            .push(format!("{name}: ends without the blocks that end an archive; it may be cut short"));
    } else if archive.goes_on().map_err(failed)? {
        let what = "goes on behind the blocks that end it, perhaps with another archive, which is not read";
        report.notes.push(format!("{name}: {what}"));
    }
    build.finish().map(|tree| Some((tree, members)))
}

/// The holes of a sparse file, between its pieces, if it has any.
fn holes(told: &archive::Member, report: &mut Report) -> Option<(u16, Vec<u8>)> {
    let (mut at, mut bytes) = (0, Vec::new());
    for (offset, length) in told.pieces.iter().copied().chain([(told.size, 0)]) {
        if offset > at {
            report.hole_bytes += offset - at;
            bytes.extend([at, offset - at].into_iter().flat_map(u64::to_le_bytes));
        }
        at = offset + length;
    }
    report.sparse += u64::from(!bytes.is_empty());
    (!bytes.is_empty()).then_some((tag::HOLES, bytes))
}

/// The archive without its compression, which its first bytes tell.
pub(super) fn plain<'a>(mut file: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let head = file.fill_buf()?;
    Ok(match head {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        // A frame, or one that is passed over (RFC 8878, section 3.1.2).
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Box::new(zstd::Decoder::with_buffer(file)?)
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            let flags = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(MOST_DECODER, flags)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(file, stream))
        }
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
        _ => Box::new(file),
    })
}

/// Names of a path without the first `strip` ones; nothing where none are left, where it leads upwards, and where it
/// is no path.
pub(super) fn parts(path: &[u8], strip: usize) -> Option<Vec<&[u8]>> {
    if leads_up(path) {
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

/// Whether a path is none, or leads upwards on its way.
fn leads_up(path: &[u8]) -> bool {
    path.contains(&0) || path.split(|byte| *byte == b'/').any(|part| part == b"..")
}
