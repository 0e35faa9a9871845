#![no_main]

use std::sync::Once;

static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Loading turns panics of the Parquet library into errors; the fuzzer's hook would abort on
    // them. Our own still end the run, when they leave this function.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let _ = loadstone_model::exercise::file(bytes);
});
