#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = loadstone_dataset::exercise::tar(bytes);
});
