//! Values and the variables they may be drawn from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number, or a variable of which a new value is drawn at each use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// Always this.
    Number(f64),
    /// Drawn anew.
    Drawn {
        /// Id of the variable.
        variable: String,
    },
}

impl Value {
    /// Whether it is this number and nothing else.
    pub fn is(&self, number: f64) -> bool {
        matches!(self, Value::Number(n) if *n == number)
    }

    /// The variable it is drawn from.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Value::Number(_) => None,
            Value::Drawn { variable } => Some(variable),
        }
    }
}

impl Default for Value {
    fn default() -> Value {
        Value::Number(0.0)
    }
}

/// Something values are drawn from. Every thread that uses it has a stream of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// Name used by the rest of the plan.
    pub id: String,
    /// What is drawn, from the start of the run.
    pub law: Law,
    /// Laws that take its place later, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Later>,
    /// Drawn values are rounded to the nearest multiple of this; 0: they are not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: f64,
    /// Smallest value; what is drawn below becomes this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest value; what is drawn above becomes this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Seed of its streams; without one they follow from the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Variable {
    /// Which of its parts is wrong, and how, if any.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let mut laws = std::iter::once(&self.law).chain(self.later.iter().map(|later| &later.law));
        if let Some(fault) = laws.find_map(Law::fault) {
            return Some((".law", fault));
        }
        if self.later.windows(2).any(|pair| pair[0].from_ns >= pair[1].from_ns) {
            return Some((".later", "is not in order of time".into()));
        }
        if !(self.round >= 0.0 && self.round.is_finite()) {
            return Some((".round", format!("is {}; use 0 or more", self.round)));
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && (min.is_nan() || max.is_nan() || min > max)
        {
            return Some(("", format!("min is {min} and max {max}; exchange them")));
        }
        None
    }
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// A law that holds from some moment of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Later {
    /// Nanoseconds from the start of the run.
    pub from_ns: u64,
    /// What is drawn from then on.
    pub law: Law,
}

/// Distributions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Law {
    /// All values from `low` to `high` alike.
    Uniform {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Gamma, moved by `shift`.
    Gamma {
        /// Shape, k.
        shape: f64,
        /// Scale, theta: the mean is `shape * scale + shift`.
        scale: f64,
        /// Added to every value.
        #[serde(default)]
        shift: f64,
    },
    /// Normal.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        sigma: f64,
    },
    /// The exponential of a normal variable.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Triangular.
    Triangular {
        /// Smallest.
        low: f64,
        /// Largest.
        high: f64,
        /// Most likely.
        mode: f64,
    },
    /// Weibull.
    Weibull {
        /// Shape, k.
        shape: f64,
        /// Scale, lambda.
        scale: f64,
    },
    /// Pareto, from `scale` on.
    Pareto {
        /// Smallest value.
        scale: f64,
        /// Exponent of the tail.
        shape: f64,
    },
    /// Whole numbers from 0 to `count - 1`; the number i has a probability in proportion to (i + 1)^-exponent.
    Zipf {
        /// How many there are.
        count: u64,
        /// Exponent; 0 makes all alike.
        exponent: f64,
    },
    /// Rows that are chosen by their shares; values of a row are alike.
    Table {
        /// The rows.
        rows: Vec<Row>,
    },
    /// The inverse of a distribution function at equally spaced probabilities from 0 to 1, linear between them.
    Quantiles {
        /// Values in ascending order, at least two.
        values: Vec<f64>,
    },
    /// One value after the other, then from the beginning again.
    Sequence {
        /// The values.
        values: Vec<f64>,
    },
    /// `unit` times each whole number below `count`, in strides: 0, `stride`, 2 `stride` and so on, then 1, 1 + `stride`
    /// and so on until all were had, and from the beginning again.
    Strided {
        /// How many there are.
        count: u64,
        /// From one to the next; 1: in order.
        #[serde(default = "one")]
        stride: u64,
        /// What they are multiplied by.
        #[serde(default = "unit")]
        unit: f64,
        /// From the last to the first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        backward: bool,
    },
    /// `unit` times each whole number below `count`, each once by chance, then each once again in the same order.
    Permuted {
        /// How many there are.
        count: u64,
        /// What they are multiplied by.
        #[serde(default = "unit")]
        unit: f64,
    },
}

fn one() -> u64 {
    1
}

fn unit() -> f64 {
    1.0
}

/// A row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its share, in any unit: shares are divided by their sum.
    pub share: f64,
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
}

impl Law {
    /// What is wrong with its parameters, if anything.
    pub fn fault(&self) -> Option<String> {
        let finite = |name: &str, value: f64| {
            (!value.is_finite()).then(|| format!("{name} is {value}; use a finite number"))
        };
        let positive = |name: &str, value: f64| {
            (!(value > 0.0 && value.is_finite())).then(|| format!("{name} is {value}; use a number above 0"))
        };
        let ordered = |low: f64, high: f64| {
            finite("low", low)
                .or(finite("high", high))
                .or_else(|| (low > high).then(|| format!("low is {low} and high {high}; exchange them")))
        };
        let whole =
            |count: u64| (count == 0).then(|| "count is 0; there is nothing to choose from".to_string());
        match self {
            Law::Uniform { low, high } => ordered(*low, *high),
            Law::Exponential { mean } => positive("mean", *mean),
            Law::Gamma { shape, scale, shift } => {
                positive("shape", *shape).or(positive("scale", *scale)).or(finite("shift", *shift))
            }
            Law::Normal { mean, sigma } => finite("mean", *mean).or(positive("sigma", *sigma)),
            Law::Lognormal { mu, sigma } => finite("mu", *mu).or(positive("sigma", *sigma)),
            Law::Triangular { low, high, mode } => ordered(*low, *high).or_else(|| {
                (!(low <= mode && mode <= high && low < high))
                    .then(|| format!("mode is {mode}; it must lie from low to high, and these must differ"))
            }),
            Law::Weibull { shape, scale } | Law::Pareto { scale, shape } => {
                positive("shape", *shape).or(positive("scale", *scale))
            }
            Law::Zipf { count, exponent } => whole(*count).or_else(|| {
                (!(*exponent >= 0.0 && exponent.is_finite()))
                    .then(|| format!("exponent is {exponent}; use 0 or more"))
            }),
            Law::Table { rows } => {
                let sum: f64 = rows.iter().map(|row| row.share).sum();
                let bad = rows
                    .iter()
                    .any(|row| row.share.is_nan() || row.share < 0.0 || ordered(row.low, row.high).is_some());
                (bad || !(sum > 0.0 && sum.is_finite())).then(|| {
                    "rows need shares of 0 or more that are not all 0, and a low that is not above its high".into()
                })
            }
            Law::Quantiles { values } => {
                let ascending = values.windows(2).all(|pair| pair[0] <= pair[1]);
                (values.len() < 2 || !ascending || values.iter().any(|value| !value.is_finite()))
                    .then(|| "values must be two or more finite numbers in ascending order".into())
            }
            Law::Strided { count, stride, unit, .. } => whole(*count)
                .or_else(|| (*stride == 0).then(|| "stride is 0; use 1 or more".into()))
                .or(finite("unit", *unit)),
            Law::Permuted { count, unit } => whole(*count).or(finite("unit", *unit)),
            Law::Sequence { values } => (values.is_empty() || values.iter().any(|value| !value.is_finite()))
                .then(|| "values must be one or more finite numbers".into()),
        }
    }
}
