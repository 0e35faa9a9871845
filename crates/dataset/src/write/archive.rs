//! A tar archive, written as one stream (GNU format, for names of any length).

use super::stream::Stream;
use super::{Options, Watch, Written, is_wanted, wanted};
use crate::tree::{Kind, Series, Tree, tag};
use crate::{Error, Result};
use loadstone_fstree::Content;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tar::{EntryType, Header};

pub(super) fn write(
    series: &Series,
    tree: &Tree,
    content: &Content<'_>,
    options: &Options,
    to: &mut dyn Write,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let failed = |e| Error::io("cannot be written", Path::new("the archive"), e);
    let (_, total) = wanted(tree, options);
    let (mut archive, mut written, mut buffer) = (tar::Builder::new(to), Written::default(), Vec::new());
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
                let stream = Stream::new(content, tree, file, &mut buffer);
                archive
                    .append_data(&mut head(EntryType::Regular, 0o644, entry.size), path, stream)
                    .map_err(failed)?;
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
