//! Every seed of the fuzz targets, and everything fuzzing ever found, is either read or refused.

use loadstone_dataset::exercise;
use std::path::Path;

#[test]
fn seeds_are_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (target, whole) in [("fstree", 2), ("profile", 5), ("fsl", 2), ("tar", 3)] {
        let mut read = 0;
        for entry in std::fs::read_dir(folder.join(target)).expect("seeds are there") {
            let bytes = std::fs::read(entry.expect("listed").path()).expect("readable");
            let files = match target {
                "fstree" => exercise::fstree(&bytes).unwrap_or(0),
                "tar" => exercise::tar(&bytes).unwrap_or(0),
                "fsl" => exercise::hash_file(&bytes).unwrap_or(0),
                _ => exercise::profile(&bytes).unwrap_or(0),
            };
            read += usize::from(files > 0);
        }
        assert!(read >= whole, "{target}: the seeds that are whole are used");
    }
}
