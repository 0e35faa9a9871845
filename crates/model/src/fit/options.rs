//! How a model is fitted.

use crate::error::{Error, ErrorKind};
use crate::feature::{FeatureId, Field};
use crate::fit::windows;
use crate::schema::dimension::{OffsetRule, Role, Spec};
use crate::schema::merging::{Distance, Merge};
use crate::schema::rule::Rule;
use serde::{Deserialize, Serialize};

/// Requests that make a group of windows when nothing else is asked for.
const GROUP: u64 = 256;

/// How a model is fitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitOptions {
    /// Length of a window in nanoseconds; if not given, the smaller of 20 s and a thirtieth of the
    /// span, halved as long as windows hold many requests.
    pub window_ns: Option<i64>,
    /// Requests that a window should hold on average, where its length is not given.
    pub in_window: f64,
    /// Time of the last request, where known beforehand; needed to choose the window only for
    /// streams of more than a million requests.
    pub span_ns: Option<i64>,
    /// Which matrices a window may join.
    pub merge: Merge,
    /// How windows are compared.
    pub distance: Distance,
    /// Largest distance beyond chance that still merges.
    pub threshold: f64,
    /// Largest number of matrices.
    pub max_matrices: usize,
    /// Dimensions other than the defaults, or in their place.
    pub dimensions: Vec<Spec>,
    /// Defaults that are left out.
    pub without: Vec<FeatureId>,
    /// Whether these are all, without the defaults.
    pub only: bool,
    /// Which dimension decides where a request goes.
    pub offset_rule: OffsetRule,
    /// Longest jump that counts as near, bytes; one region if not given.
    pub far: Option<i64>,
    /// About how many regions an object is divided into.
    pub regions: u32,
    /// Times at which a new phase begins, ns, ascending, each taken to the start of its window; if any are given, all windows
    /// between two of them share a matrix, and none is compared.
    pub boundaries_ns: Vec<i64>,
    /// Requests that neighbouring windows must hold together to be compared, as few requests say little about their
    /// distribution. 0 compares each window by itself; so does a fit that does not merge windows.
    pub group: Option<u64>,
    /// Fits a model of files: these have dimensions of their own, and only jumps set their offsets. This is the default
    /// for traces of files, unless the dimension `object` is asked for.
    pub files: bool,
    /// Bits that each cell of a chain of tables has to save; if given, the joint table is stored as such a chain.
    pub cell_bits: Option<f64>,
    /// Usual dimensions that are only observed, as keys have no room for all.
    #[serde(skip)]
    pub spared: Vec<FeatureId>,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            window_ns: None,
            in_window: windows::IN_WINDOW,
            span_ns: None,
            merge: Merge::default(),
            distance: Distance::default(),
            threshold: 0.05,
            max_matrices: 256,
            dimensions: Vec::new(),
            without: Vec::new(),
            only: false,
            offset_rule: OffsetRule::default(),
            far: None,
            regions: 64,
            boundaries_ns: Vec::new(),
            group: None,
            files: false,
            cell_bits: None,
            spared: Vec::new(),
        }
    }
}

impl FitOptions {
    /// Requests that make a group; 0: each window is one.
    pub(crate) fn group(&self) -> u64 {
        self.group.unwrap_or(if self.merge == Merge::None { 0 } else { GROUP })
    }

    pub(crate) fn specs(&self) -> Vec<Spec> {
        let mut specs =
            if self.only { self.dimensions.clone() } else { Spec::defaults(&self.dimensions, self.files) };
        specs.retain(|spec| !self.without.contains(&spec.feature));
        let spare = match self.offset_rule {
            OffsetRule::Near => None,
            OffsetRule::Jump => Some(Field::Region),
            OffsetRule::Region => Some(Field::Jump),
        };
        for spec in &mut specs {
            let asked = self.dimensions.iter().any(|s| s.feature == spec.feature);
            if !asked && spec.feature.kind().field == Field::Region {
                // Linear over all regions; only an object that outgrows them gets wider buckets.
                let sub = self.regions.clamp(1, 4096).next_power_of_two();
                spec.rule.base = Rule::Log2 { sub, signed: false };
            }
            if !asked && Some(spec.feature.kind().field) == spare || self.spared.contains(&spec.feature) {
                spec.role = Role::Observed;
            }
        }
        specs
    }

    /// Does without one more of the usual dimensions that nobody `asked` for, where an error says that keys have no
    /// room for all; whether there was one.
    pub(crate) fn spare(&mut self, error: &Error, asked: &[Spec]) -> bool {
        let wide = error.kind() == ErrorKind::TooWide;
        let spared = wide.then(|| Spec::spare(&mut self.specs(), asked, self.files)).flatten();
        self.spared.extend(spared);
        spared.is_some()
    }

    /// What is to be said of dimensions that were done without.
    pub(crate) fn spared(&self) -> impl Iterator<Item = String> {
        self.spared.iter().map(|feature| {
            format!(
                "{feature} is only observed, not drawn: keys of 64 bits have no room for all usual dimensions"
            )
        })
    }
}
