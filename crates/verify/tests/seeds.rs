//! Every seed of the fuzz target, and everything fuzzing ever found, is either read or refused.

use loadstone_verify::exercise;
use std::path::Path;

#[test]
fn seeds_are_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/verify_state");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).expect("seeds are there") {
        let path = entry.expect("listed").path();
        match exercise::state(&std::fs::read(&path).expect("readable")) {
            Ok(files) => read += usize::from(files > 0),
            Err(error) => assert!(!error.is_empty(), "{}", path.display()),
        }
    }
    assert!(read >= 4, "the seeds that are whole are used");
}
