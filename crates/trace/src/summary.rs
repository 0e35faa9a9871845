//! What planning needs to know of a trace: how far its objects reach, how many requests, how long.

use crate::{Batch, NONE, Requests, Result};
use serde::{Deserialize, Serialize};

/// Totals of a trace; the Parquet writer stores them so that planning needs no pass over the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Requests.
    pub requests: u64,
    /// Time of the first request, nanoseconds.
    pub first_ns: i64,
    /// Time of the last request, nanoseconds.
    pub span_ns: i64,
    /// Requests whose latency is known.
    pub latencies: u64,
    /// Requests that are known to have waited for another.
    pub dependent: u64,
    /// Extent of every object by its dense id.
    pub objects: Vec<Extent>,
}

/// How much of an object is touched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extent {
    /// Dense id.
    pub object: u32,
    /// Requests to it.
    pub requests: u64,
    /// Lowest offset, or 0 when no request has one.
    pub start: i64,
    /// One past the last byte touched: the largest offset plus size.
    pub end: i64,
}

impl Summary {
    /// Takes the next requests into account.
    pub fn add(&mut self, batch: &Batch) {
        let (Some(&first), Some(&last)) = (batch.time.first(), batch.time.last()) else { return };
        if self.requests == 0 {
            self.first_ns = first;
        }
        self.requests += batch.len() as u64;
        self.span_ns = last;
        self.latencies += batch.latency.iter().filter(|&&l| l != NONE).count() as u64;
        self.dependent += batch.after.iter().filter(|&&after| after != 0).count() as u64;
        for ((&object, &offset), &size) in batch.object.iter().zip(&batch.offset).zip(&batch.size) {
            let index = object as usize;
            if index >= self.objects.len() {
                let from = self.objects.len() as u32;
                self.objects.extend((from..=object).map(|object| Extent {
                    object,
                    start: -1,
                    ..Extent::default()
                }));
            }
            let extent = &mut self.objects[index];
            extent.requests += 1;
            if offset != NONE {
                let end = offset + if size == NONE { 0 } else { size };
                extent.start = if extent.start < 0 { offset } else { extent.start.min(offset) };
                extent.end = extent.end.max(end);
            }
        }
    }

    /// Ends the count: objects without offsets start at 0.
    pub fn finish(mut self) -> Summary {
        for extent in &mut self.objects {
            extent.start = extent.start.max(0);
        }
        self
    }
}

/// One pass over all requests.
///
/// # Errors
/// Those of the stream.
pub fn summarize(requests: &mut dyn Requests) -> Result<Summary> {
    let (mut summary, mut batch) = (Summary::default(), Batch::default());
    while requests.next(&mut batch)? {
        summary.add(&batch);
    }
    Ok(summary.finish())
}
