//! The model: multi-dimensional histograms (MDH) of a request stream, by phase.
//!
//! A stream of requests is cut into windows of time; each window is counted in a sparse matrix whose
//! dimensions are [`feature`]s put into buckets by a [`Rule`]; similar matrices are merged
//! ([`merge`]), which gives the phases. [`Fitter`] builds a [`Model`], [`Model::save`] and
//! [`Model::load`] keep it in one Parquet file (`docs/reference/formats/model.md`), and a [`Sampler`] turns it
//! back into requests. Source: T2M, chapter 3 of the MDH thesis (Tarasov et al., FAST '12).

#![warn(clippy::missing_errors_doc)]

pub mod chain;
mod error;
pub mod exercise;
pub mod feature;
mod file;
mod fit;
mod judge;
mod model;
mod random;
mod room;
mod sample;
mod schema;
pub mod transform;

pub use chain::{Chain, Link};
pub use error::{Error, ErrorKind, Result};
pub use feature::files::catalog::Catalog;
pub use feature::kinds as features;
pub use feature::recency::distances::Distances;
pub use feature::register as register_feature;
pub use fit::distance;
pub use fit::from_trace::fit_trace;
pub use fit::measure::measure;
pub use fit::{FitOptions, Fitter, fit};
pub use judge::portrait;
pub use model::{Matrix, Model, Phase};
pub use sample::{Sampler, Tally};
pub use schema::cells::{Cells, Layout};
pub use schema::dimension::{Dimension, OffsetRule, Role, Spec};
pub use schema::header::{Groups, Header, Object, OpCounts, Source, Table, VERSION, Windows};
pub use schema::mean_sizes::MeanSize;
pub use schema::merging::{Distance, Merge};
pub use schema::rates::{INTERVALS, Rates};
pub use schema::rule::{Range, Rule, RuleSpec};
