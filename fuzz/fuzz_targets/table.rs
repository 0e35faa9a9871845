#![no_main]

use std::sync::Once;

static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // As of the target parquet: panics of the library become errors.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let Ok(columns) = loadstone_trace::table::read(bytes::Bytes::copy_from_slice(bytes)) else { return };
    for column in columns {
        let values = match &column.values {
            loadstone_trace::table::Values::Int(all) => all.len(),
            loadstone_trace::table::Values::Unsigned(all) => all.len(),
            loadstone_trace::table::Values::Float(all) => all.len(),
            loadstone_trace::table::Values::Text(all) => all.len(),
        };
        if let Some(offsets) = &column.offsets {
            assert!(offsets.is_sorted() && offsets.first() == Some(&0));
            assert_eq!(offsets.last(), Some(&(values as i64)));
        }
    }
});
