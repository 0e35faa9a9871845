//! Every seed of the fuzz targets, and everything fuzzing ever found, is either read or refused.

use std::path::Path;

#[test]
fn seeds_are_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/fstree");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).expect("seeds are there") {
        let bytes = std::fs::read(entry.expect("listed").path()).expect("readable");
        read += usize::from(loadstone_dataset::exercise::fstree(&bytes).is_ok_and(|files| files > 0));
    }
    assert!(read >= 2, "the seeds that are series are read");
}
