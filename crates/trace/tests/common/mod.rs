//! What the tests share: traces read whole, and the real ones where they are.
#![allow(dead_code)]

use loadstone_trace::input::Input;
use loadstone_trace::{Batch, Info, OpenOptions, Reader, Requests, Result, from_inputs, open};
use std::path::{Path, PathBuf};

/// All requests of a stream.
pub fn drain(requests: &mut dyn Requests) -> Result<Batch> {
    let (mut all, mut batch) = (Batch::default(), Batch::default());
    while requests.next(&mut batch)? {
        assert!(!batch.is_empty());
        all.time.extend(&batch.time);
        all.op.extend(&batch.op);
        all.object.extend(&batch.object);
        all.offset.extend(&batch.offset);
        all.size.extend(&batch.size);
        all.latency.extend(&batch.latency);
        all.flags.extend(&batch.flags);
        all.actor.extend(&batch.actor);
        all.content.extend(&batch.content);
        all.result.extend(&batch.result);
        all.other.extend(&batch.other);
    }
    assert!(all.time.is_sorted());
    Ok(all)
}

/// Reads a file.
pub fn read(path: &Path, options: &OpenOptions) -> Result<(Batch, Info)> {
    let mut reader: Reader = open(&[path.to_path_buf()], options)?;
    let all = drain(&mut reader)?;
    Ok((all, reader.info()))
}

/// Reads bytes.
pub fn read_bytes(bytes: impl Into<Vec<u8>>, options: &OpenOptions) -> Result<(Batch, Info)> {
    let input = Input::from_bytes(Path::new("trace"), bytes.into())?;
    let mut reader = from_inputs(vec![input], options)?;
    let all = drain(&mut reader)?;
    Ok((all, reader.info()))
}

/// Options for a format.
pub fn format(name: &str) -> OpenOptions {
    OpenOptions { format: Some(name.into()), ..OpenOptions::default() }
}

/// A real trace beside the project, for tests that are ignored where there is none (`make test-rust`).
pub fn shared(name: &str) -> PathBuf {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")).join(name);
    assert!(path.parent().is_some_and(Path::exists), "no real traces at {}", path.display());
    path
}
