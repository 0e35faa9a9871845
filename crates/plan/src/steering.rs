//! What ends or steers a load by what it has reached: a steady state, a latency, shares of several workers.

use crate::check::invalid;
use crate::{Backend, Error, MAX_DEPTH, MOST_TIME, Order, Pace, Plan, Source, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most samples of a window.
const MOST_SAMPLES: u64 = 1 << 20;

/// Ends a run in a steady state: when samples of a sliding window differ little.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// What is sampled, of all workers together.
    pub of: Sampled,
    /// What is judged of the window.
    #[serde(default)]
    pub by: Judged,
    /// The run ends once that is below it, above 0.
    pub limit: f64,
    /// The limit is a share of the window's mean.
    #[serde(default)]
    pub relative: bool,
    /// Length of the window, ns; a multiple of `sample_ns`.
    pub window_ns: u64,
    /// Time from the start of what is measured before the first sample begins, ns.
    #[serde(default)]
    pub after_ns: u64,
    /// Length of a sample, ns; a multiple of the plan's `interval_ns`.
    #[serde(default = "second")]
    pub sample_ns: u64,
}

fn second() -> u64 {
    1_000_000_000
}

/// What a steady state is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sampled {
    /// Requests per second.
    Requests,
    /// Bytes per second.
    Bytes,
    /// Mean latency, ns: response where the pace is open, else service.
    Latency,
}

/// What is judged of a window of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Judged {
    /// The largest difference of a sample from the window's mean.
    #[default]
    Deviation,
    /// The slope of a line fitted to the samples by least squares, per sample.
    Slope,
}

/// Searches the greatest depth at which a share of the requests is fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyTarget {
    /// Longest latency, ns, from issue to completion.
    pub ns: u64,
    /// Share of the requests that must keep it, above 0 and up to 1.
    pub share: f64,
    /// Time that a depth is tried for, ns; 0: each look judges what came since the one before.
    #[serde(default)]
    pub window_ns: u64,
    /// Goes on and follows the latency once a depth is found, instead of ending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follow: bool,
}

/// Shares requests out among workers: none gets further ahead of its share than one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Workers of the same number share.
    #[serde(default)]
    pub id: u32,
    /// The worker's part, 1 or more, of the sum of all parts.
    pub weight: u32,
    /// Time that it waits where it is ahead, ns; 0: a moment.
    #[serde(default)]
    pub wait_ns: u64,
}

impl Plan {
    /// Checks what ends or steers its load.
    pub(crate) fn check_steering(&self) -> Result<(), Error> {
        for (i, step) in self.steps.iter().enumerate() {
            if let Step::Run { steady: Some(steady), .. } = step {
                self.check_steady(format!("steps[{i}].steady"), *steady)?;
            }
        }
        for (i, worker) in self.workers.iter().enumerate() {
            let place = |part: &str| format!("workers[{i}].{part}");
            let uniform = matches!(worker.source, Source::Uniform { .. });
            if let Some(target) = worker.latency_target {
                if target.ns == 0 || target.ns > MOST_TIME || target.window_ns > MOST_TIME {
                    let what =
                        format!("needs a latency above 0 and times of at most {MOST_TIME} ns (100 days)");
                    return invalid(place("latency_target"), what);
                }
                if !(target.share > 0.0 && target.share <= 1.0) {
                    return invalid(place("latency_target.share"), "must lie above 0 and be at most 1");
                }
                let usual = worker.pace == Pace::Closed && worker.order == Order::None;
                if worker.backend != Backend::IoUring || !uniform || !usual || worker.depth > MAX_DEPTH {
                    let what = "needs uniform requests at a closed pace, and the io_uring backend";
                    return invalid(place("latency_target"), what);
                }
            }
            if let Some(flow) = worker.flow {
                if flow.weight == 0 || flow.wait_ns > MOST_TIME {
                    let what = format!("needs a weight of 1 or more, and at most {MOST_TIME} ns (100 days)");
                    return invalid(place("flow"), what);
                }
                if !worker.schedule.after.is_empty() || worker.schedule.delay_ns > 0 {
                    return invalid(place("flow"), "is of a worker that begins later: the others would wait");
                }
                if worker.pace != Pace::Closed || worker.order != Order::None || !uniform {
                    return invalid(place("flow"), "needs uniform requests at a closed pace");
                }
            }
            if matches!(worker.backend, Backend::Allocate | Backend::Truncate) {
                if !uniform {
                    return invalid(place("backend"), "needs uniform requests");
                }
                if self.verify.is_some() {
                    return invalid(place("backend"), "moves no data that could be verified");
                }
            }
        }
        Ok(())
    }

    fn check_steady(&self, place: String, steady: Steady) -> Result<(), Error> {
        if !(steady.limit > 0.0 && steady.limit.is_finite()) {
            return invalid(format!("{place}.limit"), "must be above 0");
        }
        let Steady { window_ns, sample_ns, after_ns, .. } = steady;
        if sample_ns == 0 || self.interval_ns == 0 || !sample_ns.is_multiple_of(self.interval_ns) {
            let what = format!("must be a multiple of interval_ns, {}", self.interval_ns);
            return invalid(format!("{place}.sample_ns"), what);
        }
        if !window_ns.is_multiple_of(sample_ns) || window_ns / sample_ns < 2 {
            return invalid(format!("{place}.window_ns"), "must be 2 samples or more, and whole ones");
        }
        if window_ns / sample_ns > MOST_SAMPLES || window_ns > MOST_TIME || after_ns > MOST_TIME {
            return invalid(place, format!("has times of more than {MOST_TIME} ns, or too many samples"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn plan(change: impl Fn(&mut Value)) -> Result<Plan, Error> {
        let mut plan = json!({
            "version": 1,
            "targets": [{"id": "t", "kind": "null", "size": 1 << 20}],
            "workers": [{
                "source": {"kind": "uniform", "reads": 1.0, "size": 4096},
                "backend": "null",
                "depth": 1,
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 20}]},
            }],
            "steps": [{"step": "run", "duration_ns": 1_000_000_000}],
        });
        change(&mut plan);
        Plan::parse(&plan.to_string())
    }

    fn steady(change: impl Fn(&mut Value)) -> Result<Plan, Error> {
        plan(|plan| {
            let mut steady = json!({"of": "requests", "limit": 0.1, "window_ns": 4_000_000_000u64});
            change(&mut steady);
            plan["steps"][0]["steady"] = steady;
        })
    }

    #[test]
    fn windows_are_whole_samples_and_these_whole_intervals() {
        let found = steady(|_| ()).unwrap();
        assert!(matches!(&found.steps[0], Step::Run { steady: Some(s), .. } if s.sample_ns == second()));
        for (key, value, said) in [
            ("limit", json!(0.0), "limit"),
            ("window_ns", json!(1_000_000_000u64), "window_ns"),
            ("window_ns", json!(2_500_000_000u64), "window_ns"),
            ("sample_ns", json!(1_500_000_000u64), "sample_ns"),
            ("sample_ns", json!(0), "sample_ns"),
        ] {
            let told = steady(|steady| steady[key] = value.clone()).unwrap_err().to_string();
            assert!(told.contains(&format!("steps[0].steady.{said}")), "{told}");
        }
    }

    #[test]
    fn steering_needs_uniform_requests_at_a_closed_pace() {
        let flow = json!({"weight": 2});
        assert!(plan(|plan| plan["workers"][0]["flow"] = flow.clone()).is_ok());
        let told = plan(|plan| plan["workers"][0]["flow"] = json!({"weight": 0})).unwrap_err();
        assert!(told.to_string().contains("workers[0].flow"), "{told}");
        let told = plan(|plan| {
            plan["workers"][0]["flow"] = flow.clone();
            plan["workers"][0]["pace"] = json!({"kind": "open", "speed": 1.0});
        });
        assert!(told.unwrap_err().to_string().contains("workers[0].flow"));
        // On null: there is no depth to be found.
        let told = plan(|plan| plan["workers"][0]["latency_target"] = json!({"ns": 1, "share": 1.0}));
        assert!(told.unwrap_err().to_string().contains("workers[0].latency_target"));
        let told = plan(|plan| plan["workers"][0]["latency_target"] = json!({"ns": 1, "share": 0.0}));
        assert!(told.unwrap_err().to_string().contains("workers[0].latency_target.share"));
    }
}
