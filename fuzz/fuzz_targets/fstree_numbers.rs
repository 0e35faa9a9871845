#![no_main]

/// Whole files, whose numbers are changed.
const SEEDS: &[&[u8]] = &[
    include_bytes!("../seeds/fstree/fixed.fst"),
    include_bytes!("../seeds/fstree/stays.fst"),
    include_bytes!("../seeds/fstree/two.fst"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    loadstone_dataset::exercise::fstree_numbers(SEEDS, bytes);
});
