//! Measuring other requests with the dimensions of a model.

use crate::error::Result;
use crate::feature::Rows;
use crate::feature::files::catalog::Catalog;
use crate::fit::early::Known;
use crate::fit::encode::{Codes, ROWS};
use crate::model::Model;
use crate::room::admits;
use loadstone_trace::{Batch, Requests};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many of the first `most` requests of a stream have each code, by dimension of the model; codes are
/// masked as those of the model are; `catalog` is of the stream's files. Values of a category the model has not seen
/// get codes beyond its own.
///
/// # Errors
/// Those of the requests.
pub fn measure(
    model: &Model,
    requests: &mut dyn Requests,
    catalog: Catalog,
    most: u64,
) -> Result<Vec<FxHashMap<u32, u64>>> {
    let mut codes = Codes::of(&model.header, Arc::new(catalog));
    let mut counts = vec![FxHashMap::default(); model.header.dimensions.len()];
    let (mut batch, mut left) = (Batch::default(), most);
    while left > 0 && requests.next(&mut batch)? {
        admits(&batch)?;
        let n = batch.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        left -= n as u64;
        for from in (0..n).step_by(ROWS) {
            codes.fill(&Rows::of(&batch, from..(from + ROWS).min(n)), &Known::new());
            for (counts, codes) in counts.iter_mut().zip(codes.columns()) {
                for &code in codes {
                    *counts.entry(code).or_default() += 1;
                }
            }
        }
    }
    Ok(counts)
}
