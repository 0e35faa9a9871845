//! Reads bytes as a file and uses all of what is in it; for fuzzing and its seeds.

use crate::file::Damage;
use crate::measure;
use crate::tree::Series;

/// Reads a series. A fuzzer cannot find checksums, so they are put right first; tells how many files there are.
///
/// # Errors
/// When the file is found wrong.
///
/// # Panics
/// When what was read breaks a promise.
pub fn fstree(bytes: &[u8]) -> std::result::Result<usize, Damage> {
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
    for one in measure(&series) {
        assert!(one.together.unique + one.together.dup1 + one.together.dup2 <= one.together.distinct);
    }
    Ok(files)
}
