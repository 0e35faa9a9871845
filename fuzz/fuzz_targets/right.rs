#![no_main]

use std::sync::Once;

static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // As for parquet: panics of that library are errors of its reader.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let _ = loadstone_trace::exercise::exercise("right", bytes);
});
