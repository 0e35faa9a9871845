#![no_main]

/// Whole files, whose numbers are changed.
const SEEDS: &[&[u8]] = &[
    include_bytes!("../seeds/tar/links.tar"),
    include_bytes!("../seeds/tar/pax.tar"),
    include_bytes!("../seeds/tar/sparse.tar"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    loadstone_dataset::exercise::tar_numbers(SEEDS, bytes);
});
