//! Whether there is room for what is to be written, asked before anything is.

use super::stream::holes;
use super::{Form, Options, is_wanted, snapshot, wanted};
use crate::tree::{Kind, Series, Tree};
use crate::{Error, Result};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a block of the file system, to reckon what small files take.
const BLOCK: u64 = 4096;
/// Bytes of a block of an archive, as of a head in it.
const RECORD: u64 = 512;
/// Bytes of an entry of a hash file but its path, and of a chunk but its fingerprint.
const ENTRY: u64 = 100;
const CHUNK: u64 = 5;

/// What is needed of a file system.
#[derive(Default)]
struct Need {
    bytes: u64,
    inodes: u64,
}

/// Refuses snapshots that there is no room for where they are to go; each may go below its own path, on one file system.
///
/// # Errors
/// When there is no such snapshot, too few bytes or inodes are free, or the file system cannot be asked.
pub fn check_room(series: &Series, all: &[Options], to: &Path, form: Form) -> Result<()> {
    let mut need = Need::default();
    for options in all {
        add(&mut need, series, snapshot(series, options)?, options, form);
    }
    // What is to be made is not there yet, and what it is made in may be a file, which is told when it is made.
    let there = to.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("."));
    let path = CString::new(there.as_os_str().as_bytes())
        .map_err(|_| Error::file(there, "has a zero byte in its name"))?;
    // SAFETY: statvfs is plain numbers, for which zeros are valid.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte, and `stat` lives during the call.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0 {
        return Err(Error::io("cannot be asked for its room", there, io::Error::last_os_error()));
    }
    let free = stat.f_bavail as u64 * stat.f_frsize as u64;
    // A file system without a table of inodes says that it has none.
    let limited = stat.f_files > 0 && need.inodes > stat.f_favail as u64;
    if need.bytes <= free && !limited {
        return Ok(());
    }
    let (has, wants, unit) =
        if limited { (stat.f_favail as u64, need.inodes, "inodes") } else { (free, need.bytes, "bytes") };
    let what = format!("has room for {has} {unit}, {wants} are needed; free some or write elsewhere");
    Err(Error::file(to, what))
}

fn add(need: &mut Need, series: &Series, tree: &Tree, options: &Options, form: Form) {
    let (files, _) = wanted(tree, options);
    let data = |file: u32| {
        let empty: u64 = holes(tree, file).iter().map(|(_, length)| length).sum();
        tree.file(file).size.saturating_sub(empty)
    };
    let sum = |one: &dyn Fn(u32) -> u64| files.iter().fold(0u64, |sum, file| sum.saturating_add(one(*file)));
    let others = || {
        (0..tree.len() as u32).filter(|file| {
            let mark = tree.file(*file).mark;
            is_wanted(mark, options) && mark.kind() != Kind::File
        })
    };
    let dirs = if options.only_changed { 0 } else { tree.dirs() as u64 };
    need.bytes = need.bytes.saturating_add(match form {
        Form::Files => sum(&|file| data(file).saturating_add(BLOCK - 1) / BLOCK * BLOCK),
        Form::Tar => {
            let heads = RECORD * (dirs + others().count() as u64);
            sum(&|file| data(file).saturating_add(2 * RECORD - 1) / RECORD * RECORD).saturating_add(heads)
        }
        Form::Hashes => {
            let width = series.chunks.width().max(super::hashes::WIDTH) as u64;
            sum(&|file| ENTRY + (CHUNK + width) * tree.chunks_of(file).len() as u64)
        }
    });
    need.inodes += match form {
        Form::Files => {
            let links = others().filter(|file| tree.file(*file).mark.kind() == Kind::Symlink).count();
            files.len() as u64 + dirs + links as u64
        }
        Form::Tar | Form::Hashes => 1,
    };
}
