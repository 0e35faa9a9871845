//! Where the random requests of a uniform source go: which share of the blocks gets which share of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Its part of the requests, in proportion to those of the others.
    pub share: f64,
    /// Its part of the blocks, 0 to 1; zones follow each other from the beginning.
    pub space: f64,
}

/// How random requests are shared out among blocks. Which blocks are the hot ones follows from the plan's seed: they are
/// spread over the space, and are the same for all workers that choose from as many blocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Skew {
    /// All blocks alike.
    #[default]
    Uniform,
    /// The i-th hottest block is chosen with a probability in proportion to i^-exponent.
    Zipf {
        /// Exponent, fio's theta; 0 makes all alike.
        exponent: f64,
    },
    /// The hottest share `share` of the blocks gets `1 - share` of the requests, and so on within it: fio's Pareto law, in
    /// which a share x of the blocks gets x^(ln(1 - share) / ln(share)).
    Pareto {
        /// Between 0 and 1; 0.2 is the rule of 80 to 20, 0.5 makes all alike.
        share: f64,
    },
    /// Two kinds of blocks, alike among themselves.
    HotCold {
        /// Share of the requests that go to the hot blocks, 0 to 1.
        accesses: f64,
        /// Share of the blocks that are hot, between 0 and 1; at least one is.
        space: f64,
    },
    /// Stretches of blocks, alike within each; what lies behind the last gets no requests. They are where they are said to
    /// be, and not spread.
    Zones {
        /// In order of place.
        zones: Vec<Zone>,
    },
}

impl Skew {
    pub(crate) fn is_uniform(&self) -> bool {
        *self == Skew::Uniform
    }

    /// What is wrong with its parameters, if anything.
    pub fn fault(&self) -> Option<String> {
        let inside = |name: &str, value: f64| {
            (!(value > 0.0 && value < 1.0)).then(|| format!("{name} is {value}; use a share between 0 and 1"))
        };
        match self {
            Skew::Uniform => None,
            Skew::Zipf { exponent } => (!(*exponent >= 0.0 && exponent.is_finite()))
                .then(|| format!("exponent is {exponent}; use 0 or more")),
            Skew::Pareto { share } => inside("share", *share),
            Skew::HotCold { accesses, space } => (!(0.0..=1.0).contains(accesses))
                .then(|| format!("accesses is {accesses}; use a share from 0 to 1"))
                .or(inside("space", *space)),
            Skew::Zones { zones } => {
                let bad = |value: f64| !(value >= 0.0 && value.is_finite());
                if let Some(zone) = zones.iter().find(|zone| bad(zone.share) || bad(zone.space)) {
                    return Some(format!(
                        "has a zone of share {} and space {}; use 0 or more",
                        zone.share, zone.space
                    ));
                }
                let (share, space) =
                    zones.iter().fold((0.0, 0.0), |sum, zone| (sum.0 + zone.share, sum.1 + zone.space));
                // Shares of a percentage written with a few digits add up to a little more.
                if !(share > 0.0 && share.is_finite()) || space > 1.000_001 {
                    return Some(format!(
                        "has zones with {share} of the requests on {space} of the blocks; use shares that are not all 0, on 1 at most"
                    ));
                }
                None
            }
        }
    }
}
