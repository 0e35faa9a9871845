#![no_main]

use loadstone_verify::state::{self, State};

/// What is read can be asked about and written to like any other.
fn used(state: &State) {
    let (mut allowed, mut seen) = (Vec::new(), Vec::new());
    for (file, ledger) in state.verifier.files.iter().enumerate() {
        let size = ledger.about.size;
        let file = file as u64;
        ledger.after_crash(0, size, &mut allowed);
        ledger.begin_read(0, size, &mut seen);
        assert!(allowed.len() == seen.len() && seen.len() as u64 == ledger.blocks());
        let bytes = [7; 4096];
        let some = &bytes[..bytes.len().min(size.try_into().unwrap_or(usize::MAX))];
        state.verifier.judge(file, 0, some, &seen, &mut Default::default());
        ledger.begin_write(0, size, |_, _, _, _| {});
        ledger.end_write(0, size, size / 2, false);
        ledger.begin_discard(0, size);
        ledger.end_discard(0, size);
        ledger.end_sync(ledger.begin_sync());
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(state) = state::read(bytes) {
        used(&state);
    }
    // The same before it is packed, as checksums would stop nearly all else: a header, and entries behind its line.
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (header, entries) = bytes.split_at(end);
    let mut packed = b"LSVERIFY\x02\0\0\0".to_vec();
    packed.extend((header.len() as u32).to_le_bytes());
    packed.extend(header);
    packed.extend(zstd::encode_all(entries.get(1..).unwrap_or_default(), 1).unwrap());
    if let Ok(state) = state::read(&packed[..]) {
        used(&state);
    }
});
