//! Reads bytes as a file and uses all of what is in it; for fuzzing and its seeds.

mod numbers;

use crate::create::{By, Options as CreateOptions, Start, create};
use crate::file::Damage;
use crate::fsl::{HashFile, Writer};
use crate::measure;
use crate::profile::{Profile, Step};
use crate::tree::{Chunking, Series};
use crate::write::{Options as WriteOptions, write_hashes_to, write_tar};
use loadstone_fstree::{Piece, Tape};
pub use numbers::{fstree_numbers, hash_file_numbers, profile_numbers, tar_numbers};
use std::io::Cursor;
use std::ops::ControlFlow;

/// Chunks, links and directories that are made at most.
const MOST: u64 = 100_000;
/// Bytes of files that are written at most, to memory.
const MOST_WRITTEN: u64 = 1 << 22;

/// Reads a series. A fuzzer cannot find checksums, so they are put right first; tells how many files there are.
///
/// # Errors
/// When the file is found wrong.
///
/// # Panics
/// When what was read breaks a promise.
pub fn fstree(bytes: &[u8]) -> std::result::Result<usize, Damage> {
    let bytes = checked(bytes);
    let series = Series::read_from(&mut &bytes[..])?;
    let mut files = 0;
    for tree in &series.trees {
        let depths = tree.depths();
        for file in 0..tree.len() as u32 {
            files += 1;
            let entry = tree.file(file);
            assert!(tree.path(&series.names, file).is_relative());
            assert!(usize::from(depths[entry.dir as usize]) <= tree.dirs());
            assert!(tree.linked(file).is_none_or(|first| first < file));
            tree.private_of(file).for_each(drop);
        }
        (0..tree.dirs() as u32).for_each(|dir| tree.private_of_dir(dir).for_each(drop));
    }
    if ends_soon(&series) {
        write(&series);
    }
    let profile = Profile::with_runs(&series);
    assert!(profile.is_ok() || series.trees.is_empty());
    for one in measure(&series) {
        assert!(one.together.unique + one.together.dup1 + one.together.dup2 <= one.together.distinct);
    }
    if ends_soon(&series)
        && let Ok(tape) = Tape::new(series, None, 1)
    {
        let mut bytes = [0; 64];
        for position in [0, tape.bytes() - 1, tape.bytes()] {
            tape.fill(position, &mut bytes, &mut Piece::default());
        }
        assert!(tape.share(tape.bytes()).dedupe() >= 1.0);
    }
    Ok(files)
}

/// Whether its content is soon made. What ends chunks of variable size is sought first, for a second: of these a fuzzer
/// could try a thousand in its time.
fn ends_soon(series: &Series) -> bool {
    matches!(series.meta.chunking, Chunking::Fixed { .. })
}

/// An `.fst` file with the checksums that its sections should have.
fn checked(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 16;
    while let Some(head) = bytes.get(at..at + 24) {
        let length = head[8..16].try_into().map_or(0, u64::from_le_bytes) as usize;
        let Some(content) =
            at.checked_add(24 + length.min(bytes.len())).and_then(|end| bytes.get(at + 24..end))
        else {
            break;
        };
        let check = blake3::Hasher::new().update(&bytes[at..at + 16]).update(content).finalize();
        bytes[at + 16..at + 24].copy_from_slice(&check.as_bytes()[..8]);
        at += 24 + length;
    }
    bytes
}

/// Writes each snapshot, if it is small, as an archive that has what the snapshot has, and as a hash file.
fn write(series: &Series) {
    for (snapshot, tree) in series.trees.iter().enumerate() {
        let bytes: u64 = tree.refs.iter().map(|chunk| u64::from(series.chunks.size(*chunk))).sum();
        if bytes > MOST_WRITTEN {
            continue;
        }
        let options = WriteOptions { snapshot, only_changed: false, seed: 1, threads: 1 };
        let watch = &mut |_, _| ControlFlow::Continue(());
        let mut archive = Vec::new();
        // Some have a name twice, or cannot be cut.
        let Ok(Some(written)) = write_tar(series, &options, &mut archive, watch) else { continue };
        match crate::scan::archive_file(&archive) {
            Ok(again) => {
                let links = again.trees[0].len() as u64;
                assert_eq!(links, written.files + written.links, "what is written is what is there");
            }
            Err(e) => panic!("what is written is read: {e}"),
        }
        let _ = write_hashes_to(series, &options, Cursor::new(Vec::new()), watch);
    }
}

/// Reads a tar archive; tells how many files it has.
///
/// # Errors
/// When it is found wrong.
///
/// # Panics
/// When what was made is no series.
pub fn tar(bytes: &[u8]) -> std::result::Result<usize, String> {
    let series = crate::scan::archive_file(bytes).map_err(|e| e.to_string())?;
    if series.check().is_ok() {
        let mut bytes = Vec::new();
        series.write_to(&mut bytes).map_err(|e| e.to_string())?;
        assert!(Series::read_from(&mut &bytes[..]).is_ok(), "what was made is a series");
        // One of 64, as above.
        if bytes.iter().fold(0u8, |all, byte| all.wrapping_add(*byte)) % 64 == 0 {
            write(&series);
        }
    }
    Ok(series.trees.iter().map(crate::Tree::len).sum())
}

/// Reads a profile's JSON, which is compressed first as files have it, and makes what it says if that is not much.
///
/// # Errors
/// When it is found wrong.
///
/// # Panics
/// When what is made breaks a promise.
pub fn profile(json: &[u8]) -> std::result::Result<usize, String> {
    profile_within(json, None)
}

/// The same, with whatever does not take more memory than that.
fn profile_within(json: &[u8], memory: Option<u64>) -> std::result::Result<usize, String> {
    let packed = zstd::bulk::compress(json, 1).map_err(|e| e.to_string())?;
    let profile = Profile::read_from(&mut &packed[..])?;
    let chunks = |step: &Step| {
        let new = step.new.iter().map(|row| u64::from(row.count) * u64::from(row.file.size + 1));
        let gone = step.gone.iter().map(|row| u64::from(row.count));
        let changed = step.changed.iter().map(|row| u64::from(row.count) * u64::from(row.size + 1));
        let links = [&step.directories, &step.symlinks, &step.hard_links];
        let kinds = step.kinds.iter().flat_map(|kind| [&kind.inner, &kind.last]);
        let sizes = kinds.chain([&step.only, &step.inner, &step.last]);
        let sizes = sizes.map(|sizes| sizes.cells.iter().map(|cell| u64::from(cell.2)));
        let shared = [&step.shared.only, &step.shared.inner, &step.shared.last]
            .map(|cells| cells.iter().map(|cell| u64::from(cell.3)));
        new.chain(gone).chain(changed).sum::<u64>()
            + links.iter().flat_map(|counts| counts.iter()).map(|count| u64::from(*count)).sum::<u64>()
            + sizes.flatten().sum::<u64>()
            + shared.into_iter().flatten().sum::<u64>()
    };
    let all = profile.steps.iter().map(chunks).fold(0, u64::saturating_add);
    if memory.is_none() && all > MOST {
        return Ok(0);
    }
    let memory = memory.unwrap_or(u64::MAX);
    let generations = profile.steps.len() as u32;
    let options = CreateOptions { generations, seed: 1, memory, ..CreateOptions::default() };
    let watch = &mut |_, _| ControlFlow::Continue(());
    let made = create(Start::Nothing, By::Profile(&profile), &options, watch).map_err(|e| e.to_string())?;
    let Some((series, _)) = made else { return Ok(0) };
    let mut bytes = Vec::new();
    series.write_to(&mut bytes).map_err(|e| e.to_string())?;
    assert!(Series::read_from(&mut &bytes[..]).is_ok(), "what was made is a series");
    Ok(series.trees.iter().map(crate::Tree::len).sum())
}

/// Reads an FSL hash file, writes it again, and makes a series of it; tells how many files it has.
///
/// # Errors
/// When it is found wrong.
///
/// # Panics
/// When what was written is not what was read, or what was made is no series.
pub fn hash_file(bytes: &[u8]) -> std::result::Result<usize, Damage> {
    let file = HashFile::read(bytes)?;
    let written = Writer::new(Cursor::new(Vec::new()), file.head.clone()).and_then(|mut writer| {
        file.files.iter().try_for_each(|(head, chunks)| writer.file(head, chunks))?;
        writer.finish()
    });
    // Texts that fill their fields have no zero byte behind them and are not written.
    if let Ok(written) = written {
        assert_eq!(HashFile::read(&written.into_inner()[..])?, file, "what is written is what was read");
    }
    if let Ok(series) = crate::scan::hash_file(bytes)
        && series.check().is_ok()
    {
        let mut bytes = Vec::new();
        series.write_to(&mut bytes).map_err(Damage::Io)?;
        assert!(Series::read_from(&mut &bytes[..]).is_ok(), "what was made is a series");
    }
    Ok(file.files.len())
}
