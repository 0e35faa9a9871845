#![no_main]

/// Whole files, whose numbers are changed.
const SEEDS: &[&[u8]] = &[
    include_bytes!("../seeds/profile/ages-runs.json"),
    include_bytes!("../seeds/profile/ages.json"),
    include_bytes!("../seeds/profile/lz4.json"),
    include_bytes!("../seeds/profile/moved.json"),
    include_bytes!("../seeds/profile/one.json"),
    include_bytes!("../seeds/profile/runs.json"),
    include_bytes!("../seeds/profile/stays.json"),
    include_bytes!("../seeds/profile/two.json"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    loadstone_dataset::exercise::profile_numbers(SEEDS, bytes);
});
