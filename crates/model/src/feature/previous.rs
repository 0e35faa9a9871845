//! A feature of the request before.

use super::{Feature, Rows};
use loadstone_trace::NONE;

/// The number another feature gave for the previous request of the stream (not of the object: one
/// source is one stream); none for the first. Source: the private state of a feature function, MDH thesis section 3.2.
pub(super) struct Previous {
    inner: Box<dyn Feature>,
    last: i64,
}

impl Previous {
    pub fn new(inner: Box<dyn Feature>) -> Self {
        Previous { inner, last: NONE }
    }
}

impl Feature for Previous {
    fn values(&mut self, batch: &Rows<'_>, out: &mut Vec<i64>) {
        self.inner.values(batch, out);
        if let Some(&last) = out.last() {
            out.rotate_right(1);
            out[0] = self.last;
            self.last = last;
        }
    }
}
