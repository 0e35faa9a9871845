//! The model: multi-dimensional histograms (MDH) of a request stream, by phase.
//!
//! A stream of requests is cut into windows of time; each window is counted in a sparse matrix whose
//! dimensions are [`feature`]s put into buckets by a [`Rule`]; similar matrices are merged
//! ([`merge`]), which gives the phases. [`Fitter`] builds a [`Model`], [`Model::save`] and
//! [`Model::load`] keep it in one Parquet file (`docs/formats/model.md`), and a [`Sampler`] turns it
//! back into requests. Source: T2M, chapter 3 of the MDH thesis (Tarasov et al., FAST '12).

pub mod algebra;
mod calibrate;
mod catalog;
mod cells;
pub mod chain;
mod coder;
mod counting;
mod dimension;
pub mod distance;
mod distances;
mod early;
mod encode;
pub mod exercise;
pub mod feature;
mod file;
mod fit;
mod from_trace;
mod header;
mod mask;
mod measure;
pub mod merge;
mod model;
mod node;
mod pipeline;
pub mod portrait;
mod publish;
mod rates;
mod recent;
mod rule;
mod sample;
mod windows;

pub use catalog::Catalog;
pub use cells::{Cells, Layout};
pub use chain::{Chain, Link};
pub use dimension::{Dimension, OffsetRule, Role, Spec};
pub use distance::Distance;
pub use distances::Distances;
pub use feature::kinds as features;
pub use feature::register as register_feature;
pub use fit::{FitOptions, Fitter, fit};
pub use from_trace::fit_trace;
pub use header::{Groups, Header, Object, OpCounts, Source, Table, VERSION, Windows};
pub use loadstone_trace::{Error, Result};
pub use measure::measure;
pub use merge::Merge;
pub use model::{Matrix, Model, Phase};
pub use rates::{INTERVALS, Rates};
pub use rule::{Range, Rule, RuleSpec};
pub use sample::{Sampler, Tally};
