//! Values of programs: constants, or drawn from the laws of a plan's variables.

use crate::source::random::unit;
use crate::source::skew::Permutation;
use crate::{Error, Result};
use loadstone_content::seed::derive;
use loadstone_plan::{Law, Value, Variable};
use rand_distr::{Distribution, Exp, Gamma, LogNormal, Normal, Pareto, Triangular, Weibull, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A law that values can be drawn from.
enum Drawn {
    Uniform(f64, f64),
    Exponential(Exp<f64>),
    Gamma(Gamma<f64>, f64),
    Normal(Normal<f64>),
    Lognormal(LogNormal<f64>),
    Triangular(Triangular<f64>),
    Weibull(Weibull<f64>),
    Pareto(Pareto<f64>),
    Zipf(Zipf<f64>),
    /// Cumulative shares, and the rows' bounds.
    Table(Vec<(f64, f64, f64)>),
    Quantiles(Vec<f64>),
    Sequence(Vec<f64>),
    Strided {
        count: u64,
        stride: u64,
        unit: f64,
        backward: bool,
    },
    /// Every thread has an order of its own.
    Permuted {
        count: u64,
        unit: f64,
    },
}

impl Drawn {
    /// The plan's check leaves nothing that a distribution would refuse.
    fn new(law: &Law) -> Option<Drawn> {
        Some(match law {
            Law::Uniform { low, high } => Drawn::Uniform(*low, high - low),
            Law::Exponential { mean } => Drawn::Exponential(Exp::new(1.0 / mean).ok()?),
            Law::Gamma { shape, scale, shift } => Drawn::Gamma(Gamma::new(*shape, *scale).ok()?, *shift),
            Law::Normal { mean, sigma } => Drawn::Normal(Normal::new(*mean, *sigma).ok()?),
            Law::Lognormal { mu, sigma } => Drawn::Lognormal(LogNormal::new(*mu, *sigma).ok()?),
            Law::Triangular { low, high, mode } => {
                Drawn::Triangular(Triangular::new(*low, *high, *mode).ok()?)
            }
            Law::Weibull { shape, scale } => Drawn::Weibull(Weibull::new(*scale, *shape).ok()?),
            Law::Pareto { scale, shape } => Drawn::Pareto(Pareto::new(*scale, *shape).ok()?),
            Law::Zipf { count, exponent } => Drawn::Zipf(Zipf::new(*count as f64, *exponent).ok()?),
            Law::Table { rows } => {
                let sum: f64 = rows.iter().map(|row| row.share).sum();
                let mut below = 0.0;
                let rows = rows.iter().filter(|row| row.share > 0.0).map(|row| {
                    below += row.share / sum;
                    (below, row.low, row.high - row.low)
                });
                Drawn::Table(rows.collect())
            }
            Law::Quantiles { values } => Drawn::Quantiles(values.clone()),
            Law::Sequence { values } => Drawn::Sequence(values.clone()),
            &Law::Strided { count, stride, unit, backward } => {
                Drawn::Strided { count, stride: stride.min(count), unit, backward }
            }
            &Law::Permuted { count, unit } => Drawn::Permuted { count, unit },
        })
    }

    #[inline]
    fn draw(&self, stream: &mut Stream) -> f64 {
        let random = &mut stream.random;
        match self {
            Drawn::Uniform(low, width) => low + width * unit(random),
            Drawn::Exponential(law) => law.sample(random),
            Drawn::Gamma(law, shift) => law.sample(random) + shift,
            Drawn::Normal(law) => law.sample(random),
            Drawn::Lognormal(law) => law.sample(random),
            Drawn::Triangular(law) => law.sample(random),
            Drawn::Weibull(law) => law.sample(random),
            Drawn::Pareto(law) => law.sample(random),
            // Its ranks begin at 1.
            Drawn::Zipf(law) => law.sample(random) - 1.0,
            Drawn::Table(rows) => {
                let at = unit(random);
                let row = rows.partition_point(|row| row.0 <= at).min(rows.len() - 1);
                rows[row].1 + rows[row].2 * unit(random)
            }
            Drawn::Quantiles(values) => {
                let at = unit(random) * (values.len() - 1) as f64;
                let below = (at as usize).min(values.len() - 2);
                values[below] + (values[below + 1] - values[below]) * (at - below as f64)
            }
            Drawn::Sequence(values) => {
                let at = stream.next;
                stream.next = (at + 1) % values.len();
                values[at % values.len()]
            }
            Drawn::Strided { count, stride, unit, backward } => {
                let at = stream.next as u64;
                let after = if *stride < count - at {
                    at + stride
                } else {
                    let lap = at % stride + 1;
                    if lap < *stride { lap } else { 0 }
                };
                stream.next = after as usize;
                unit * if *backward { count - 1 - at } else { at } as f64
            }
            Drawn::Permuted { count, unit } => {
                let order = stream.order.get_or_insert_with(|| Permutation::new(*count, random.next_u64()));
                let at = stream.next as u64;
                stream.next = (at + 1) as usize % *count as usize;
                unit * order.of(at) as f64
            }
        }
    }
}

/// A variable, shared by all threads.
struct Source {
    law: Drawn,
    later: Vec<(i64, Drawn)>,
    round: f64,
    min: f64,
    max: f64,
    seed: Option<u64>,
}

/// One thread's state of a variable.
struct Stream {
    random: Xoshiro256PlusPlus,
    next: usize,
    /// Of permuted numbers, once one was drawn.
    order: Option<Permutation>,
}

/// All variables of a plan.
pub struct Variables(Vec<Source>);

impl Variables {
    /// Of a checked plan; a law that cannot be drawn from after all gives its name back.
    ///
    /// # Errors
    /// When a variable cannot be drawn from.
    pub fn new(variables: &[Variable]) -> std::result::Result<Variables, String> {
        let sources = variables.iter().map(|variable| {
            let refused = || variable.id.clone();
            let later = variable.later.iter();
            Ok(Source {
                law: Drawn::new(&variable.law).ok_or_else(refused)?,
                later: later
                    .map(|later| {
                        Some((i64::try_from(later.from_ns).unwrap_or(i64::MAX), Drawn::new(&later.law)?))
                    })
                    .collect::<Option<_>>()
                    .ok_or_else(refused)?,
                round: variable.round,
                min: variable.min.unwrap_or(f64::NEG_INFINITY),
                max: variable.max.unwrap_or(f64::INFINITY),
                seed: variable.seed,
            })
        });
        Ok(Variables(sources.collect::<std::result::Result<_, String>>()?))
    }
}

/// The streams of one thread: the same seed gives the same values, however many threads there are.
pub struct Draws<'a> {
    variables: &'a Variables,
    streams: Vec<Stream>,
}

impl<'a> Draws<'a> {
    /// For the thread that `seed` stands for; `salt` tells it from others that share a variable's own seed.
    pub fn new(variables: &'a Variables, seed: u64, salt: u64) -> Draws<'a> {
        let streams = variables.0.iter().enumerate().map(|(i, source)| {
            let (of, number) = source.seed.map_or((seed, i as u64), |own| (own, salt));
            let seed = derive(of, "variable", number);
            Stream { random: Xoshiro256PlusPlus::seed_from_u64(seed), next: 0, order: None }
        });
        Draws { variables, streams: streams.collect() }
    }

    /// A value, `elapsed` ns after the start of the run.
    #[inline(always)]
    pub fn value(&mut self, of: Number, elapsed: impl FnOnce() -> i64) -> f64 {
        match of {
            Number::Always(value) => value,
            Number::Drawn(i) => self.draw(i, elapsed),
        }
    }

    #[inline]
    fn draw(&mut self, i: usize, elapsed: impl FnOnce() -> i64) -> f64 {
        let source = &self.variables.0[i];
        let mut law = &source.law;
        if !source.later.is_empty() {
            let now = elapsed();
            let at = source.later.partition_point(|later| later.0 <= now);
            law = at.checked_sub(1).map_or(law, |at| &source.later[at].1);
        }
        let mut value = law.draw(&mut self.streams[i]);
        if source.round > 0.0 {
            value = (value / source.round).round() * source.round;
        }
        value.clamp(source.min, source.max)
    }
}

/// A value with its variable looked up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A constant.
    Always(f64),
    /// The position of its variable.
    Drawn(usize),
}

impl Number {
    /// Of a checked plan.
    pub fn of(value: &Value, variables: &[Variable]) -> Number {
        match value {
            Value::Number(number) => Number::Always(*number),
            Value::Drawn { variable } => Number::Drawn(
                variables.iter().position(|known| known.id == *variable).expect("checked by the plan"),
            ),
        }
    }
}

/// `count` values as a thread draws them `elapsed` ns after the start of a run, for tests and pictures of variables.
///
/// # Errors
/// When the variable holds what no plan may, or there is no memory for as many values.
pub fn values(variable: &Variable, count: usize, seed: u64, elapsed: i64) -> Result<Vec<f64>> {
    if let Some((part, fault)) = variable.fault() {
        return Err(Error::Program(format!("the variable {:?}{part}: {fault}", variable.id)));
    }
    let variables = Variables::new(std::slice::from_ref(variable)).map_err(|id| {
        Error::Program(format!("the variable {id:?} cannot be drawn from; check its parameters"))
    })?;
    let mut found = Vec::new();
    found.try_reserve_exact(count).map_err(|_| Error::no_memory("ask for fewer values"))?;
    let mut draws = Draws::new(&variables, seed, 0);
    found.extend((0..count).map(|_| draws.draw(0, || elapsed)));
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use loadstone_plan::{Later, Row};

    fn draws(law: Law, n: usize) -> Vec<f64> {
        let id = String::from("x");
        let variable = Variable { id, law, later: vec![], round: 0.0, min: None, max: None, seed: None };
        let variables = Variables::new(&[variable]).unwrap();
        let mut draws = Draws::new(&variables, 7, 0);
        (0..n).map(|_| draws.value(Number::Drawn(0), || 0)).collect()
    }

    /// Chi-square of counts in cells of these probabilities, against its 99.99 % point (Wilson and Hilferty 1931).
    pub fn fits(counts: &[u64], probabilities: &[f64]) {
        let n: u64 = counts.iter().sum();
        let mut statistic = 0.0;
        for (count, p) in counts.iter().zip(probabilities) {
            let expected = n as f64 * p;
            assert!(expected >= 5.0, "too few expected: {expected}");
            statistic += (*count as f64 - expected).powi(2) / expected;
        }
        let k = (counts.len() - 1) as f64;
        let limit = k * (1.0 - 2.0 / (9.0 * k) + 3.719 * (2.0 / (9.0 * k)).sqrt()).powi(3);
        assert!(statistic < limit, "{statistic} of at most {limit}: {counts:?}");
    }

    /// Draws fall evenly between the quantiles of their law.
    fn follows(law: Law, distribution: impl Fn(f64) -> f64) {
        let mut counts = [0u64; 50];
        for value in draws(law, 100_000) {
            counts[((distribution(value) * 50.0) as usize).min(49)] += 1;
        }
        fits(&counts, &[0.02; 50]);
    }

    #[test]
    fn continuous_laws_are_followed() {
        follows(Law::Uniform { low: 3.0, high: 8.0 }, |x| (x - 3.0) / 5.0);
        follows(Law::Exponential { mean: 9.0 }, |x| 1.0 - (-x / 9.0).exp());
        // Erlang of shape 2.
        follows(Law::Gamma { shape: 2.0, scale: 3.0, shift: 10.0 }, |x| {
            let y = (x - 10.0) / 3.0;
            1.0 - (-y).exp() * (1.0 + y)
        });
        // Of shape 1/2 it is the square of a normal variable.
        follows(Law::Gamma { shape: 0.5, scale: 2.0, shift: 0.0 }, |x| 2.0 * normal(x.sqrt()) - 1.0);
        follows(Law::Normal { mean: 5.0, sigma: 2.0 }, |x| normal((x - 5.0) / 2.0));
        follows(Law::Lognormal { mu: 1.0, sigma: 0.5 }, |x| normal((x.ln() - 1.0) / 0.5));
        follows(Law::Weibull { shape: 1.5, scale: 4.0 }, |x| 1.0 - (-(x / 4.0).powf(1.5)).exp());
        follows(Law::Pareto { scale: 2.0, shape: 1.2 }, |x| 1.0 - (2.0 / x).powf(1.2));
        follows(Law::Triangular { low: 0.0, high: 10.0, mode: 2.0 }, |x| {
            if x < 2.0 { x * x / 20.0 } else { 1.0 - (10.0 - x).powi(2) / 80.0 }
        });
        follows(Law::Quantiles { values: vec![0.0, 1.0, 3.0] }, |x| {
            if x < 1.0 { x / 2.0 } else { 0.5 + (x - 1.0) / 4.0 }
        });
        follows(
            Law::Table {
                rows: vec![
                    Row { share: 20.0, low: 1.0, high: 2.0 },
                    Row { share: 0.0, low: 5.0, high: 6.0 },
                    Row { share: 80.0, low: 10.0, high: 20.0 },
                ],
            },
            |x| if x < 5.0 { 0.2 * (x - 1.0) } else { 0.2 + 0.8 * (x - 10.0) / 10.0 },
        );
    }

    /// The normal distribution function (Abramowitz and Stegun 7.1.26, off by less than 1.5e-7).
    fn normal(x: f64) -> f64 {
        let z = x.abs() / std::f64::consts::SQRT_2;
        let t = 1.0 / (1.0 + 0.327_591_1 * z);
        let series = ((((1.061_405_429 * t - 1.453_152_027) * t + 1.421_413_741) * t - 0.284_496_736) * t
            + 0.254_829_592)
            * t;
        let upper = 0.5 * series * (-z * z).exp();
        if x < 0.0 { upper } else { 1.0 - upper }
    }

    #[test]
    fn zipf_is_exact_from_its_head_to_its_last_number() {
        for exponent in [0.0, 0.8, 1.0, 1.2] {
            let weights: Vec<f64> = (1..=100).map(|i| f64::from(i).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            let mut counts = [0u64; 100];
            draws(Law::Zipf { count: 100, exponent }, 300_000)
                .iter()
                .for_each(|value| counts[*value as usize] += 1);
            fits(&counts, &weights.iter().map(|weight| weight / sum).collect::<Vec<_>>());
        }
        // Of 2^40 numbers nearly half of those drawn lie in the upper half where all are alike.
        let huge = draws(Law::Zipf { count: 1 << 40, exponent: 0.0 }, 10_000);
        let upper = huge.iter().filter(|value| **value >= (1u64 << 39) as f64).count();
        assert!((4_700..5_300).contains(&upper), "{upper}");
    }

    #[test]
    fn strides_and_permutations_have_every_number_once() {
        let strided = |stride, backward| Law::Strided { count: 7, stride, unit: 10.0, backward };
        let once = [0.0, 30.0, 60.0, 10.0, 40.0, 20.0, 50.0];
        assert_eq!(draws(strided(3, false), 9), [&once[..], &once[..2]].concat());
        assert_eq!(draws(strided(3, true), 7), once.map(|value| 60.0 - value));
        let all: Vec<f64> = (0..7).map(|i| f64::from(i) * 10.0).collect();
        assert_eq!(draws(strided(1, false), 7), all);
        assert_eq!(draws(strided(1_000_000, false), 8), [&all[..], &[0.0]].concat());
        let mut found = draws(Law::Permuted { count: 1000, unit: 2.0 }, 2000);
        assert_eq!(found[..1000], found[1000..]);
        let first = found[..10].to_vec();
        found.truncate(1000);
        found.sort_by(f64::total_cmp);
        assert_eq!(found, (0..1000).map(|i| f64::from(i) * 2.0).collect::<Vec<_>>());
        assert_ne!(first, found[..10]);
    }

    #[test]
    fn sequences_rounding_limits_and_later_laws() {
        assert_eq!(draws(Law::Sequence { values: vec![3.0, 1.0, 2.0] }, 5), [3.0, 1.0, 2.0, 3.0, 1.0]);
        let later = vec![Later { from_ns: 100, law: Law::Sequence { values: vec![1e9] } }];
        let law = Law::Sequence { values: vec![13.0] };
        let (min, max) = (Some(1.0), Some(500.0));
        let variable = Variable { id: "x".into(), law, later, round: 8.0, min, max, seed: Some(1) };
        let variables = Variables::new(&[variable]).unwrap();
        let mut draws = Draws::new(&variables, 7, 0);
        assert_eq!(draws.value(Number::Drawn(0), || 99), 16.0);
        assert_eq!(draws.value(Number::Drawn(0), || 100), 500.0);
    }

    #[test]
    fn values_are_those_of_threads_or_are_refused() {
        let law = Law::Uniform { low: 0.0, high: 1.0 };
        let variable =
            Variable { id: "x".into(), law, later: vec![], round: 0.0, min: None, max: None, seed: None };
        assert_eq!(values(&variable, 9, 7, 0).unwrap(), self::draws(Law::Uniform { low: 0.0, high: 1.0 }, 9));
        let refused = |variable: Variable| values(&variable, 1, 0, 0).unwrap_err().to_string();
        let (min, max) = (Some(2.0), Some(1.0));
        let what = refused(Variable { min, max, ..variable.clone() });
        assert_eq!(what, "the variable \"x\": min is 2 and max 1; exchange them");
        let what = refused(Variable { law: Law::Exponential { mean: 0.0 }, ..variable.clone() });
        assert_eq!(what, "the variable \"x\".law: mean is 0; use a number above 0");
        assert!(values(&variable, usize::MAX / 8, 0, 0).is_err());
    }
}
