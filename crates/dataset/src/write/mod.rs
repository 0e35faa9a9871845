//! FS-CREATE: real files of a series, with content made from the numbers of chunks (Tarasov, section 4.3.3).
//!
//! A chunk's bytes follow from the seed, its number, its size and its ratio, so files are the same whoever writes them, in
//! whichever order.

mod archive;
mod folder;
mod hashes;
mod made;
mod room;
mod stream;
mod unfinished;

use crate::tree::{Kind, Mark, Series, State, Tree, tag};
use crate::{Error, Result};
use loadstone_fstree::Content;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use room::check_room;
use unfinished::Unfinished;
pub use unfinished::{UNFINISHED, refuse_unfinished};

/// As what a snapshot is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Directories and files.
    Files,
    /// A tar archive.
    Tar,
    /// A hash file, without content.
    Hashes,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which snapshot, from 0.
    pub snapshot: usize,
    /// Only files that are new or modified, as an incremental backup has them.
    pub only_changed: bool,
    /// Of the content, where the series has none of its own.
    pub seed: u64,
    /// Threads that write directories.
    pub threads: usize,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Directories.
    pub directories: u64,
    /// Regular files.
    pub files: u64,
    /// Symbolic and hard links.
    pub links: u64,
    /// Bytes of files, holes among them.
    pub bytes: u64,
    /// Devices, pipes and sockets, and files that could not be read when the series was scanned: they are left out.
    pub left_out: u64,
    /// Hard links that became files or were left out, as what they lead to is not written.
    pub broken_links: u64,
}

/// Told of bytes written, of how many; may end it.
pub type Watch<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Writes snapshots, each to a path of its own. Where these are in a directory, that is `within`: it is made if need be and
/// marked as unfinished until the last snapshot is there, as each directory of files is by itself. Nothing is told where `watch`
/// ends it; what was written by then stays, and so does the mark.
///
/// # Errors
/// When there is no such snapshot, no room, another run writes there, or something cannot be written.
pub fn write_snapshots(
    series: &Series,
    (all, form): (&[Options], Form),
    to: &[PathBuf],
    within: Option<&Path>,
    force: bool,
    watch: Watch<'_>,
) -> Result<Option<Vec<Written>>> {
    let within = within.map(folder::made).transpose()?;
    if let Some(first) = to.first().filter(|first| *first != Path::new("-")) {
        check_room(series, all, first, form)?;
    }
    let again = force && form != Form::Files;
    // What is whole stays so: nothing is marked where nothing can be written.
    if within.as_ref().is_some_and(|within| within.stat_below(UNFINISHED.as_bytes()).is_err()) {
        to.iter().try_for_each(|to| check_free(to, form, force))?;
    }
    let mark = within.map(|within| Unfinished::begin(&within, again)).transpose()?;
    let mut told = Vec::new();
    for (options, to) in all.iter().zip(to) {
        let written = match form {
            Form::Files => write_folder(series, options, to, watch)?,
            Form::Tar => write_tar_file(series, options, to, force, watch)?,
            Form::Hashes => write_hashes(series, options, to, force, watch)?,
        };
        let Some(written) = written else { return Ok(None) };
        told.push(written);
    }
    mark.map_or(Ok(()), Unfinished::finish)?;
    Ok(Some(told))
}

/// Refuses a path at which a snapshot cannot be written as there is something.
fn check_free(to: &Path, form: Form, force: bool) -> Result<()> {
    match form {
        Form::Files if to.is_dir() => folder::refuse_others(&folder::made(to)?),
        Form::Tar | Form::Hashes if force => Ok(()),
        _ if std::fs::symlink_metadata(to).is_ok() => {
            Err(Error::file(to, "exists; name another directory, or remove it first"))
        }
        _ => Ok(()),
    }
}

/// Writes a snapshot to a directory, which must be new or empty, and is marked as unfinished meanwhile. Nothing is told where
/// `watch` ends it; what was written by then stays, and so does the mark.
///
/// # Errors
/// When there is no such snapshot, no room, another run writes there, or something cannot be written.
pub fn write_folder(
    series: &Series,
    options: &Options,
    to: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let tree = sound(series, options)?;
    let content = Content::new(series, options.seed)?;
    folder::write(series, tree, &content, options, to, watch)
}

/// Writes a snapshot as a tar archive (GNU format), as one stream.
///
/// # Errors
/// When there is no such snapshot, or something cannot be written.
pub fn write_tar(
    series: &Series,
    options: &Options,
    to: &mut dyn Write,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let tree = sound(series, options)?;
    let content = Content::new(series, options.seed)?;
    archive::write(series, tree, &content, options, to, watch)
}

/// Writes a snapshot as a tar archive in a file, which is whole or not there; `-` is standard output.
///
/// # Errors
/// When there is no such snapshot, the file is there and `force` is not set, or it cannot be written.
pub fn write_tar_file(
    series: &Series,
    options: &Options,
    to: &Path,
    force: bool,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    if to == Path::new("-") {
        return write_tar(series, options, &mut std::io::stdout().lock(), watch);
    }
    aside(to, force, |file| write_tar(series, options, file, watch))
}

/// Writes a snapshot's chunks by their fingerprints, without content: an FSL hash file of version 7, which is whole or
/// not there.
///
/// # Errors
/// When there is no such snapshot, the file is there and `force` is not set, or it cannot be written.
pub fn write_hashes(
    series: &Series,
    options: &Options,
    to: &Path,
    force: bool,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    aside(to, force, |file| write_hashes_to(series, options, file, watch))
}

/// The same to what is open.
pub(crate) fn write_hashes_to(
    series: &Series,
    options: &Options,
    into: impl Write + Seek,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let tree = sound(series, options)?;
    hashes::write(series, tree, options, into, watch)
}

/// Writes a file that is whole or not there; nothing where the work was ended.
fn aside(
    to: &Path,
    force: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<Option<Written>>,
) -> Result<Option<Written>> {
    let mut told = None;
    let written = crate::file::write_aside(to, force, |file| {
        let done = write(file);
        let whole = matches!(done, Ok(Some(_)));
        told = Some(done);
        // What is not whole gets no name; why is told already.
        if whole { Ok(()) } else { Err(std::io::ErrorKind::Interrupted.into()) }
    });
    match told {
        None => written.map(|()| None),
        Some(Ok(Some(told))) => written.map(|()| Some(told)),
        Some(other) => other,
    }
}

fn snapshot<'a>(series: &'a Series, options: &Options) -> Result<&'a Tree> {
    series.trees.get(options.snapshot).ok_or_else(|| {
        let count = series.trees.len();
        Error::Option(format!("snapshot {}: there are {count}, the first is 0", options.snapshot))
    })
}

/// A snapshot of which every entry has a name and a place of its own.
fn sound<'a>(series: &'a Series, options: &Options) -> Result<&'a Tree> {
    let tree = snapshot(series, options)?;
    series
        .check_snapshot(options.snapshot)
        .map_err(|what| Error::Option(format!("the series cannot be written: {what}")))?;
    if let Some(twice) = tree.twice(&series.names) {
        let what = format!("snapshot {}: two entries are named {}", options.snapshot, twice.display());
        return Err(Error::Option(format!("{what}, and a directory has one of each name; scan again")));
    }
    Ok(tree)
}

/// The file that a further name is one of, if it is written, too.
fn first(tree: &Tree, options: &Options, file: u32) -> Option<u32> {
    tree.linked(file).filter(|first| {
        let mark = tree.file(*first).mark;
        mark.kind() == Kind::File && is_wanted(mark, options)
    })
}

/// Where a symbolic link leads.
fn target(tree: &Tree, file: u32) -> &[u8] {
    let target = tree.private_of(file).find(|(tag, bytes)| *tag == tag::LINK && !bytes.is_empty());
    target.map_or(b".", |(_, bytes)| bytes)
}

fn is_wanted(mark: Mark, options: &Options) -> bool {
    !options.only_changed || mark.state() != State::Unmodified
}

/// Numbers of the regular files that are written, and their bytes.
fn wanted(tree: &Tree, options: &Options) -> (Vec<u32>, u64) {
    let is_file = |file: &u32| {
        let mark = tree.file(*file).mark;
        mark.kind() == Kind::File && is_wanted(mark, options)
    };
    let files: Vec<u32> = (0..tree.len() as u32).filter(is_file).collect();
    let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(tree.file(*file).size));
    (files, bytes)
}

#[cfg(test)]
mod tests;
