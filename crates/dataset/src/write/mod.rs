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

use crate::tree::{Kind, Mark, Series, State, Tree};
use crate::{Error, Result};
use loadstone_fstree::Content;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::Path;

pub use room::check_room;

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

/// Writes a snapshot to a directory, which must be new or empty. Nothing is told where `watch` ends it; what was written
/// by then stays.
///
/// # Errors
/// When there is no such snapshot, no room, or something cannot be written.
pub fn write_folder(
    series: &Series,
    options: &Options,
    to: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let tree = snapshot(series, options)?;
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
    to: &mut dyn std::io::Write,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let tree = snapshot(series, options)?;
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
    let tree = snapshot(series, options)?;
    aside(to, force, |file| hashes::write(series, tree, options, file, watch))
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
    let bytes = files.iter().map(|file| tree.file(*file).size).sum();
    (files, bytes)
}

#[cfg(test)]
mod tests;
