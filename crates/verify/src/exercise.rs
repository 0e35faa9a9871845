//! Reads bytes as a state and uses all of what is in it; for fuzzing and its seeds.

use crate::mark::{LARGEST_IN_STRIP, STRIP};
use crate::state::{self, State};
use crate::{Checker, Room, Verifier};
use std::sync::Arc;

/// Reads a state, or what becomes one once it is packed, as checksums would stop nearly all else: a header, and entries
/// behind its line. Tells how many files there are.
///
/// # Errors
/// When neither is one: what is wrong.
///
/// # Panics
/// When what was read breaks a promise.
pub fn state(bytes: &[u8]) -> std::result::Result<usize, String> {
    let read = state::read(bytes).or_else(|_| state::read(&packed(bytes)?[..]))?;
    let State { verifier, .. } = read;
    let verifier = Arc::new(verifier);
    (0..verifier.files.len() as u64).for_each(|file| use_file(&verifier, file));
    Ok(verifier.files.len())
}

fn packed(bytes: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (header, entries) = bytes.split_at(end);
    let mut packed = state::MAGIC.to_vec();
    packed.extend(state::VERSION.to_le_bytes());
    packed.extend((header.len() as u32).to_le_bytes());
    packed.extend(header);
    let entries = zstd::encode_all(entries.get(1..).unwrap_or_default(), 1);
    packed.extend(entries.map_err(|e| e.to_string())?);
    Ok(packed)
}

/// What is read can be asked about and written to like any other.
fn use_file(verifier: &Arc<Verifier>, file: u64) {
    let ledger = &verifier.files[file as usize];
    let size = ledger.about.size;
    let (mut allowed, mut seen) = (Vec::new(), Vec::new());
    ledger.after_crash(0, size, &mut allowed);
    ledger.begin_read(0, size, &mut seen);
    assert!(allowed.len() == seen.len() && seen.len() as u64 == ledger.blocks());
    let some = size.min(4096) as usize;
    verifier.judge(file, ledger.about.before, 0, &[7; 4096][..some], &seen, &mut Room::default());
    // What a checker makes is what its blocks hold, in a strip and elsewhere.
    let mut checker = Checker::new(verifier.clone());
    let (mut strip, mut bytes) = (vec![0; STRIP], vec![0; size.min(LARGEST_IN_STRIP as u64) as usize]);
    checker.write(file, 0, bytes.len() as u64);
    checker.fill(&mut bytes);
    if checker.prepare(&mut strip)
        && let Some(at) = checker.fill_strip(&mut strip)
    {
        assert!(strip[at..at + bytes.len()] == bytes, "a strip holds what would be made");
    }
    checker.ended(bytes.len() as i64 / 2, false, |_, _| &[]);
    ledger.begin_discard(0, size);
    ledger.end_discard(0, size);
    ledger.end_sync(ledger.begin_sync());
}
