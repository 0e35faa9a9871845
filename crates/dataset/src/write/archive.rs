//! A tar archive, written as one stream: directories, files, further names, and symbolic links last, so that whatever unpacks it
//! writes nothing through a link of it. The format is GNU's, for names of any length and of any bytes; of sparse files it
//! has the data and where it lies (GNU tar's manual, "Storing Sparse Files", the old format), which its readers understand.

use super::made::{Made, Repeats};
use super::stream::{Stream, holes};
use super::{Options, Watch, Written, first, is_wanted, target, wanted};
use crate::chunks::Chunks;
use crate::tree::{Kind, Series, Tree, tag};
use crate::{Error, Result};
use loadstone_fstree::Content;
use std::ffi::OsStr;
use std::io::{self, Cursor, Read, Write};
use std::mem::ManuallyDrop;
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
    // What is dropped ends an archive as if it were whole.
    let (mut archive, mut written) = (ManuallyDrop::new(tar::Builder::new(to)), Written::default());
    // Directories of incremental archives follow from the files in them.
    for dir in (1..tree.dirs() as u32).filter(|_| !options.only_changed) {
        let mut head = head(EntryType::Directory, 0o755, 0);
        archive.append_data(&mut head, tree.dir_path(&series.names, dir), &[][..]).map_err(failed)?;
        written.directories += 1;
    }
    let wanted = |kinds: &'static [Kind]| {
        let marks = (0..tree.len() as u32).map(|file| (file, tree.file(file).mark));
        marks
            .filter(|(_, mark)| is_wanted(*mark, options) && kinds.contains(&mark.kind()))
            .map(|(file, _)| file)
    };
    for file in wanted(&[Kind::File]) {
        let path = tree.path(&series.names, file);
        let is_program = tree.private_of(file).any(|(tag, _)| tag == tag::EXECUTABLE);
        let mode = if is_program { 0o755 } else { 0o644 };
        let (size, bytes) = (tree.file(file).size, bytes(&series.chunks, tree, file));
        let holes = holes(tree, file);
        if holes.is_empty() {
            let stream = Stream::new(&mut made, tree, file, bytes);
            archive.append_data(&mut head(EntryType::Regular, mode, bytes), path, stream).map_err(failed)?;
        } else {
            let map = data(&holes, size, bytes);
            let mut head = head(EntryType::Regular, mode, size);
            let further = sparse(&mut head, &map, size).map_err(failed)?;
            let packed = map.iter().map(|(_, length)| length).sum();
            let stream = Stream::new(&mut made, tree, file, packed);
            archive.append_data(&mut head, path, further.chain(stream)).map_err(failed)?;
        }
        written.files += 1;
        written.bytes = written.bytes.saturating_add(size);
        if watch(written.bytes, total).is_break() {
            cut_short(*archive.get_mut()).map_err(failed)?;
            return Ok(None);
        }
    }
    for file in wanted(&[Kind::Hard]) {
        let Some(first) = first(tree, options, file) else {
            written.broken_links += 1;
            continue;
        };
        let (path, target) = (tree.path(&series.names, file), tree.path(&series.names, first));
        archive.append_link(&mut head(EntryType::Link, 0o644, 0), path, target).map_err(failed)?;
        written.links += 1;
    }
    for file in wanted(&[Kind::Symlink]) {
        let (path, target) = (tree.path(&series.names, file), OsStr::from_bytes(target(tree, file)));
        archive.append_link(&mut head(EntryType::Symlink, 0o777, 0), path, target).map_err(failed)?;
        written.links += 1;
    }
    written.left_out = wanted(&[Kind::Other, Kind::Unreadable]).count() as u64;
    ManuallyDrop::into_inner(archive).into_inner().and_then(|into| into.flush()).map_err(failed)?;
    Ok(Some(written))
}

/// Ends a stream within an entry, so that whoever reads it finds that it is not whole: tar takes an archive for whole that
/// ends behind an entry.
fn cut_short(to: &mut dyn Write) -> io::Result<()> {
    let mut head = head(EntryType::Regular, 0o600, 1 << 20);
    head.set_path("INTERRUPTED")?;
    head.set_cksum();
    to.write_all(head.as_bytes())?;
    to.flush()
}

/// Bytes of the chunks of a file.
fn bytes(chunks: &Chunks, tree: &Tree, file: u32) -> u64 {
    tree.chunks_of(file).iter().map(|chunk| u64::from(chunks.size(*chunk))).sum()
}

/// Where the data of a sparse file lies, offset and length, as far as there is some: `bytes`. An empty piece at the end tells of
/// a hole there.
fn data(holes: &[(u64, u64)], size: u64, bytes: u64) -> Vec<(u64, u64)> {
    let (mut map, mut at, mut left) = (Vec::new(), 0, bytes);
    for (offset, length) in holes.iter().copied().chain([(size, 0)]) {
        let data = offset.saturating_sub(at).min(left);
        if data > 0 {
            map.push((at, data));
        }
        (at, left) = (at.max(offset + length), left - data);
    }
    if map.last().is_none_or(|(offset, length)| offset + length < size) {
        map.push((size, 0));
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
