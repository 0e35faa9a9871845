//! A tar archive, written as one stream. The format is GNU's, for names of any length and of any bytes; of sparse files it
//! has the data and where it lies (GNU tar's manual, "Storing Sparse Files", the old format), which its readers understand.

use super::made::{Made, Repeats};
use super::stream::{Stream, holes};
use super::{Options, Watch, Written, is_wanted, wanted};
use crate::tree::{Kind, Series, Tree, tag};
use crate::{Error, Result};
use loadstone_fstree::Content;
use std::ffi::OsStr;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tar::{EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};

pub(super) fn write(
    series: &Series,
    tree: &Tree,
    content: &Content<'_>,
    options: &Options,
    to: &mut dyn Write,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let failed = |e| Error::io("cannot be written", Path::new("the archive"), e);
    let (files, total) = wanted(tree, options);
    let repeats = Repeats::of(series, tree, &files);
    let mut made = Made::new(content, &repeats);
    let (mut archive, mut written) = (tar::Builder::new(to), Written::default());
    // Directories of incremental archives follow from the files in them.
    for dir in (1..tree.dirs() as u32).filter(|_| !options.only_changed) {
        let mut head = head(EntryType::Directory, 0o755, 0);
        archive.append_data(&mut head, tree.dir_path(&series.names, dir), &[][..]).map_err(failed)?;
        written.directories += 1;
    }
    for file in 0..tree.len() as u32 {
        let entry = tree.file(file);
        if !is_wanted(entry.mark, options) {
            continue;
        }
        let path = tree.path(&series.names, file);
        match entry.mark.kind() {
            Kind::File => {
                let is_program = tree.private_of(file).any(|(tag, _)| tag == tag::EXECUTABLE);
                let mut head = head(EntryType::Regular, if is_program { 0o755 } else { 0o644 }, entry.size);
                let map = data(&holes(tree, file), entry.size);
                if map.is_empty() {
                    let stream = Stream::new(&mut made, tree, file);
                    archive.append_data(&mut head, path, stream).map_err(failed)?;
                } else {
                    let further = sparse(&mut head, &map, entry.size).map_err(failed)?;
                    let size = map.iter().map(|(_, length)| length).sum();
                    let stream = Stream::packed(&mut made, tree, file, size);
                    archive.append_data(&mut head, path, further.chain(stream)).map_err(failed)?;
                }
                written.files += 1;
                written.bytes += entry.size;
                if watch(written.bytes, total).is_break() {
                    return Ok(None);
                }
            }
            Kind::Symlink => {
                let target = tree.private_of(file).find(|(tag, _)| *tag == tag::LINK);
                let target = OsStr::from_bytes(target.map_or(&b"."[..], |(_, bytes)| bytes));
                archive.append_link(&mut head(EntryType::Symlink, 0o777, 0), path, target).map_err(failed)?;
                written.links += 1;
            }
            Kind::Hard => {
                let first = tree.linked(file).filter(|first| {
                    let mark = tree.file(*first).mark;
                    mark.kind() == Kind::File && is_wanted(mark, options)
                });
                let Some(first) = first else {
                    written.broken_links += 1;
                    continue;
                };
                let target = tree.path(&series.names, first);
                archive.append_link(&mut head(EntryType::Link, 0o644, 0), path, target).map_err(failed)?;
                written.links += 1;
            }
            Kind::Other | Kind::Unreadable => written.left_out += 1,
        }
    }
    archive.into_inner().and_then(|into| into.flush()).map_err(failed)?;
    Ok(Some(written))
}

/// Where the data of a sparse file lies, offset and length; nothing for one without holes. An empty piece at the end tells
/// of a hole there.
fn data(holes: &[(u64, u64)], size: u64) -> Vec<(u64, u64)> {
    let (mut map, mut at) = (Vec::new(), 0);
    for (offset, length) in holes.iter().map(|(offset, length)| (*offset.min(&size), *length)) {
        if offset > at {
            map.push((at, offset - at));
        }
        at = at.max(offset.saturating_add(length).min(size));
    }
    if !holes.is_empty() {
        map.push((at, size - at));
    }
    map
}

/// Makes a head that of a sparse file; tells the blocks that follow it where there is no room for all pieces.
fn sparse(head: &mut Header, map: &[(u64, u64)], size: u64) -> io::Result<Cursor<Vec<u8>>> {
    head.set_entry_type(EntryType::GNUSparse);
    head.set_size(map.iter().map(|(_, length)| length).sum());
    let gnu = head.as_gnu_mut().ok_or(io::ErrorKind::InvalidInput)?;
    gnu.set_real_size(size);
    let fill = |rooms: &mut [GnuSparseHeader], pieces: &[(u64, u64)]| {
        for (room, (offset, length)) in rooms.iter_mut().zip(pieces) {
            room.set_offset(*offset);
            room.set_length(*length);
        }
    };
    let (first, rest) = map.split_at(map.len().min(gnu.sparse.len()));
    fill(&mut gnu.sparse, first);
    gnu.set_is_extended(!rest.is_empty());
    let mut blocks = Vec::new();
    let mut rest = rest;
    while !rest.is_empty() {
        let mut block = GnuExtSparseHeader::new();
        let (pieces, later) = rest.split_at(rest.len().min(block.sparse.len()));
        fill(&mut block.sparse, pieces);
        block.set_is_extended(!later.is_empty());
        blocks.extend_from_slice(block.as_bytes());
        rest = later;
    }
    Ok(Cursor::new(blocks))
}

fn head(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut head = Header::new_gnu();
    head.set_entry_type(kind);
    head.set_mode(mode);
    head.set_size(size);
    head.set_mtime(0);
    head.set_uid(0);
    head.set_gid(0);
    head
}
