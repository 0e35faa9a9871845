//! Loads bytes as a model, draws from it, and checks what every consumer relies on; for fuzzing and
//! its seeds.

use crate::error::Result;
use crate::model::Model;
use crate::sample::Sampler;
use crate::transform::Scale;
use loadstone_trace::{Batch, NONE, Requests};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

/// Requests drawn at most.
const REQUESTS: u64 = 200_000;

/// Loads a model file's bytes and draws from it.
///
/// # Errors
/// When the file is found wrong.
///
/// # Panics
/// When what is drawn breaks a promise.
pub fn file(bytes: &[u8]) -> Result<u64> {
    let mut temporary = loadstone_files::unnamed(&std::env::temp_dir()).expect("room for a temporary file");
    temporary.write_all(bytes).expect("room for a temporary file");
    let path = PathBuf::from(format!("/proc/self/fd/{}", temporary.as_raw_fd()));
    evaluate();
    let model = Model::load(&path)?;
    change(&model);
    draw(model)
}

/// Takes bytes as a header's JSON, a zero byte, and rows of as many variable-length numbers (7 bits
/// to a byte, least significant first, off by one so that -1 is 0) as there are columns.
///
/// # Errors
/// When header or cells are found wrong.
///
/// # Panics
/// When what is drawn breaks a promise.
pub fn parts(bytes: &[u8]) -> Result<u64> {
    evaluate();
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    let dimensions = serde_json::from_str::<crate::Header>(&text).map_or(0, |h| h.dimensions.len().min(100));
    let mut columns = vec![Vec::new(); dimensions + 3];
    let (mut number, mut shift, mut at) = (0u64, 0, 0);
    for &byte in bytes.get(end + 1..).unwrap_or_default() {
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 || shift > 56 {
            columns[at].push((number as i64).wrapping_sub(1));
            at = (at + 1) % (dimensions + 3);
            (number, shift) = (0, 0);
        }
    }
    let rows = columns.last().map_or(0, Vec::len);
    columns.iter_mut().for_each(|c| c.truncate(rows));
    let model = Model::from_columns(&text, &columns)?;
    change(&model);
    draw(model)
}

/// The input of [`parts`] that gives this model; for seeds.
pub fn to_parts(model: &Model) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(&model.header).unwrap_or_default();
    bytes.push(0);
    let columns = model.stored_columns();
    for row in 0..columns[0].1.len() {
        for (_, column) in &columns {
            let mut number = (column[row] + 1) as u64;
            while number > 127 {
                bytes.push(number as u8 | 128);
                number >>= 7;
            }
            bytes.push(number as u8);
        }
    }
    bytes
}

/// Lets formulas be evaluated: shares are the parameters, over and over, whatever the family.
pub fn evaluate() {
    crate::chain::register(Box::new(|_, parameters, buckets| {
        Ok((0..buckets.len())
            .map(|i| parameters.get(i % parameters.len().max(1)).copied().unwrap_or(1.0))
            .collect())
    }));
}

/// Changes a model in all ways at once; one that comes out is drawn from, too.
fn change(model: &Model) {
    let scale = Scale { rate: Some(1.7), footprint: Some(3.0), read_share: Some(0.4), size: Some(0.6) };
    for scale in [
        scale,
        Scale { read_share: None, ..scale },
        Scale { rate: Some(0.3), size: Some(5.0), footprint: Some(0.2), ..Scale::default() },
    ] {
        if let Ok(changed) = model.scaled(&scale) {
            // What it draws is checked as that of any model; that it may refuse is said elsewhere.
            let _ = draw(changed);
        }
    }
}

fn draw(model: Model) -> Result<u64> {
    let (expected, of_files) = (model.requests(), model.header.is_of_files());
    let extents: Vec<_> = model.header.objects.iter().map(|o| (o.id, o.extent)).collect();
    let extent = |id: u32| extents.iter().find(|o| o.0 == id).map(|o| o.1);
    let mut sampler = Sampler::new(Arc::new(model), 1)?;
    let (mut batch, mut requests, mut last) = (Batch::default(), 0, 0);
    while requests < REQUESTS && sampler.next(&mut batch)? {
        requests += batch.len() as u64;
        for i in 0..batch.len() {
            assert!(batch.time[i] >= last, "time goes back");
            last = batch.time[i];
            let (offset, size) = (batch.offset[i], batch.size[i]);
            assert!(size == NONE || size >= 0, "negative size");
            if offset != NONE {
                let end = offset + if size == NONE { 0 } else { size };
                assert!(
                    offset >= 0 && (of_files || Some(end) <= extent(batch.object[i])),
                    "beyond the object"
                );
            }
        }
    }
    assert!(requests >= expected.min(REQUESTS), "fewer requests than the model has");
    Ok(requests)
}
