//! Every seed of the fuzz targets, and everything fuzzing ever found, is either loaded or refused.

use loadstone_model::exercise;
use std::path::Path;

#[test]
fn seeds_are_loaded_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (target, run) in [("model", exercise::file as fn(&[u8]) -> _), ("model_parts", exercise::parts)] {
        let mut loaded = 0;
        for entry in std::fs::read_dir(folder.join(target)).expect("seeds are there") {
            let path = entry.expect("listed").path();
            match run(&std::fs::read(&path).expect("readable")) {
                Ok(requests) => loaded += usize::from(requests > 0),
                Err(error) => assert!(!error.to_string().is_empty(), "{}", path.display()),
            }
        }
        assert!(loaded >= 3, "{target}: the seeds that are models load");
    }
}
