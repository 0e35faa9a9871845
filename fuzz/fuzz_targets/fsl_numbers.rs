#![no_main]

/// Whole files, whose numbers are changed.
const SEEDS: &[&[u8]] = &[
    include_bytes!("../seeds/fsl/four.hash"),
    include_bytes!("../seeds/fsl/one.hash"),
    include_bytes!("../seeds/fsl/seven.hash"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    loadstone_dataset::exercise::hash_file_numbers(SEEDS, bytes);
});
