//! A snapshot without its content: the fingerprints, sizes and ratios of its chunks, as an FSL hash file of version 7.
//!
//! Chunks that were made up get a fingerprint of 96 bits of the series' seed and their number, so that those of all snapshots
//! agree. Of hard links the chunks are told once.

use super::stream::holes;
use super::{Options, Watch, Written, is_wanted, wanted};
use crate::fsl::{Chunk, FileHead, Head, MOST_HASH, MOST_PATH, Method, NEWEST, Writer};
use crate::tree::{Chunking, Kind, Series, Tree, tag};
use crate::{Error, Ratio, Result};
use std::io::{Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of the fingerprints of chunks that were made up.
pub(super) const WIDTH: usize = 12;
/// How the head of a hash file says that bits are compared with a pattern.
const PATTERN: i32 = 2;

pub(super) fn write(
    series: &Series,
    tree: &Tree,
    options: &Options,
    into: impl Write + Seek,
    watch: Watch<'_>,
) -> Result<Option<Written>> {
    let failed = |e| Error::io("cannot be written", Path::new("the hash file"), e);
    let prints = Prints::new(series, options.seed);
    let mut writer = Writer::new(into, head(series, prints.width)).map_err(failed)?;
    let (mut written, (_, total)) = (Written::default(), wanted(tree, options));
    // Directories of an incremental backup follow from the files in them.
    for dir in (1..tree.dirs() as u32).filter(|_| !options.only_changed) {
        let mut file = entry(libc::S_IFDIR | 0o755, 0, tree.len() as u64 + u64::from(dir));
        path(&mut file, &tree.dir_path(&series.names, dir))?;
        writer.file(&file, &[]).map_err(failed)?;
        written.directories += 1;
    }
    let links = links(tree, options);
    let mut chunks = Vec::new();
    for number in 0..tree.len() as u32 {
        let told = tree.file(number);
        if !is_wanted(told.mark, options) {
            continue;
        }
        let own = |wanted| tree.private_of(number).find(|(tag, _)| *tag == wanted).map(|(_, bytes)| bytes);
        let mut file = entry(libc::S_IFREG | 0o644, told.size, u64::from(number));
        chunks.clear();
        match told.mark.kind() {
            Kind::File => {
                if own(tag::EXECUTABLE).is_some() {
                    file.mode |= 0o111;
                }
                chunks.extend(tree.chunks_of(number).iter().map(|chunk| prints.chunk(*chunk)));
                let empty: u64 = holes(tree, number).iter().map(|(_, length)| length).sum();
                file.blocks = told.size.saturating_sub(empty).div_ceil(512);
                file.links = 1 + u64::from(links[number as usize]);
                written.files += 1;
                written.bytes += told.size;
            }
            Kind::Symlink => {
                file.mode = u64::from(libc::S_IFLNK) | 0o777;
                file.target = super::target(tree, number).to_vec();
                written.links += 1;
            }
            Kind::Hard => {
                let Some(first) = tree.linked(number).filter(|first| links[*first as usize] > 0) else {
                    written.broken_links += 1;
                    continue;
                };
                file.inode = u64::from(first) + 1;
                file.links = 1 + u64::from(links[first as usize]);
                file.size = tree.file(first).size;
                written.links += 1;
            }
            Kind::Other | Kind::Unreadable => {
                written.left_out += 1;
                continue;
            }
        }
        path(&mut file, &tree.path(&series.names, number))?;
        writer.file(&file, &chunks).map_err(failed)?;
        if watch(written.bytes, total).is_break() {
            return Ok(None);
        }
    }
    writer.finish().map_err(failed)?;
    Ok(Some(written))
}

/// Further names of each file, of those that are written.
fn links(tree: &Tree, options: &Options) -> Vec<u32> {
    let mut links = vec![0; tree.len()];
    for number in 0..tree.len() as u32 {
        let mark = tree.file(number).mark;
        if mark.kind() == Kind::Hard
            && is_wanted(mark, options)
            && let Some(first) = tree.linked(number)
            && tree.file(first).mark.kind() == Kind::File
            && is_wanted(tree.file(first).mark, options)
        {
            links[first as usize] += 1;
        }
    }
    links
}

fn head(series: &Series, width: usize) -> Head {
    let method = match series.meta.chunking {
        Chunking::Fixed { size } => Method::Fixed { size },
        Chunking::Fastcdc { min, average, max } => {
            let mut rule = [0; 32];
            rule[..4].copy_from_slice(&average.ilog2().to_le_bytes());
            Method::Variable { algorithm: PATTERN, rule, min, max }
        }
    };
    Head {
        version: NEWEST,
        files: 0,
        root: b"/".to_vec(),
        chunks: 0,
        method,
        hashing: 0,
        bits: 8 * width as u32,
        system: b"Loadstone".to_vec(),
        start: 0,
        end: 0,
        bytes: 0,
    }
}

/// What all entries have; the inode's number is one more than the entry's.
fn entry(mode: libc::mode_t, size: u64, number: u64) -> FileHead {
    FileHead { mode: u64::from(mode), size, links: 1, device: 1, inode: number + 1, ..FileHead::default() }
}

fn path(file: &mut FileHead, below: &Path) -> Result<()> {
    file.path = [b"/", below.as_os_str().as_bytes()].concat();
    if file.path.len() > MOST_PATH {
        return Err(Error::file(
            below,
            format!("is longer than the {MOST_PATH} bytes that hash files have for a path"),
        ));
    }
    Ok(())
}

/// Fingerprints of a series.
struct Prints<'a> {
    series: &'a Series,
    key: [u8; 32],
    width: usize,
}

impl<'a> Prints<'a> {
    fn new(series: &'a Series, seed: u64) -> Prints<'a> {
        let seed = series.meta.seed.unwrap_or(seed);
        let key = blake3::derive_key("loadstone 2026 fingerprints of made chunks", &seed.to_le_bytes());
        let width = if series.chunks.width() > 0 { series.chunks.width() } else { WIDTH };
        Prints { series, key, width }
    }

    fn chunk(&self, chunk: u32) -> Chunk {
        let chunks = &self.series.chunks;
        let mut hash = [0; MOST_HASH];
        if chunks.width() > 0 {
            hash[..self.width].copy_from_slice(chunks.print(chunk));
        } else {
            let whole = blake3::keyed_hash(&self.key, &chunk.to_le_bytes());
            hash[..self.width].copy_from_slice(&whole.as_bytes()[..self.width]);
        }
        let ratio = match chunks.ratio(chunk) {
            Ratio::UNKNOWN => 0,
            ratio => (10.0 * ratio.value()).round().min(255.0) as u8,
        };
        Chunk { size: u64::from(chunks.size(chunk)), hash, ratio }
    }
}
