//! Numbers that can be had before calibration is over, on whatever thread has time for them.

use crate::feature::{Context, Feature, Field, Rows};
use crate::schema::dimension::Spec;
use loadstone_trace::Batch;

/// Features that take long and ask for nothing but the stream.
const EARLY: [Field; 2] = [Field::Resume, Field::Reuse];

/// Numbers of a batch by dimension.
pub(crate) type Known = Vec<(usize, Vec<i64>)>;

/// A batch and what is known of it.
pub(crate) type Ahead = (Batch, Known);

/// The features of a model that are computed ahead.
#[derive(Default)]
pub(crate) struct Early(Vec<(usize, Box<dyn Feature>)>);

impl Early {
    /// Of these dimensions.
    pub fn new(specs: &[Spec]) -> Early {
        let early = |s: &Spec| !s.feature.previous && EARLY.contains(&s.feature.kind().field);
        let dimensions = specs.iter().enumerate().filter(|(_, spec)| early(spec));
        Early(dimensions.map(|(d, spec)| (d, spec.feature.start(&Context::default()))).collect())
    }

    /// Replaces `known` by the numbers of the next batch of the stream.
    pub fn numbers(&mut self, batch: &Batch, known: &mut Known) {
        known.resize(self.0.len(), Default::default());
        for ((d, feature), (dimension, values)) in self.0.iter_mut().zip(known) {
            *dimension = *d;
            feature.values(&Rows::of(batch, 0..batch.len()), values);
        }
    }
}
