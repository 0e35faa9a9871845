//! When a worker begins and ends within a run, and when it pauses.

use crate::check::invalid;
use crate::{Backend, Error, MOST_TIME, Pace, Plan, Source, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a worker begins and ends within a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Groups whose workers must all have ended before this one begins.
    #[serde(default)]
    pub after: Vec<String>,
    /// Time that it waits then, or from the start of the run, ns.
    #[serde(default)]
    pub delay_ns: u64,
    /// Longest time that it works from its begin, ns; 0: as long as the run goes on.
    #[serde(default)]
    pub duration_ns: u64,
    /// Its end ends the run.
    #[serde(default)]
    pub ends_run: bool,
}

impl Schedule {
    pub(crate) fn is_usual(&self) -> bool {
        *self == Schedule::default()
    }
}

/// A worker waits until all its requests have completed, and then for some time, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Requests between two pauses, 1 or more.
    pub requests: u64,
    /// Length of a pause, ns.
    pub ns: u64,
}

impl Plan {
    /// Checks when workers begin, pause and end.
    pub(crate) fn check_schedules(&self) -> Result<(), Error> {
        for (i, worker) in self.workers.iter().enumerate() {
            let place = |part: &str| format!("workers[{i}].{part}");
            let schedule = &worker.schedule;
            for ns in [schedule.delay_ns, schedule.duration_ns] {
                if ns > MOST_TIME {
                    return invalid(
                        place("schedule"),
                        format!("has {ns} ns; use at most {MOST_TIME} (100 days)"),
                    );
                }
            }
            if matches!(worker.source, Source::Program { .. }) && !schedule.is_usual() {
                return invalid(place("schedule"), "is of workers that are no programs; leave it out");
            }
            if let Some(name) =
                schedule.after.iter().find(|name| !self.workers.iter().any(|w| w.group == **name))
            {
                return invalid(place("schedule.after"), format!("no worker belongs to the group {name:?}"));
            }
            if let Some(pause) = worker.pause {
                self.check_pause(i, pause)?;
            }
        }
        self.check_order()?;
        let ramps = |step: &Step| matches!(step, Step::Run { ramp_ns, .. } if *ramp_ns > 0);
        if let Some(at) = self.steps.iter().position(ramps) {
            let place = format!("steps[{at}].ramp_ns");
            if matches!(self.steps[at], Step::Run { ramp_ns, .. } if ramp_ns > MOST_TIME) {
                return invalid(place, format!("is more than {MOST_TIME} (100 days)"));
            }
            let counted =
                |worker: &crate::Worker| matches!(worker.source, Source::Uniform { .. } | Source::Cpu { .. });
            if !self.workers.iter().all(counted) {
                return invalid(place, "needs workers of uniform requests; leave it out");
            }
        }
        Ok(())
    }

    fn check_pause(&self, i: usize, pause: Pause) -> Result<(), Error> {
        let (worker, place) = (&self.workers[i], format!("workers[{i}].pause"));
        if pause.requests == 0 || pause.ns > MOST_TIME {
            return invalid(place, format!("needs 1 request or more, and at most {MOST_TIME} ns (100 days)"));
        }
        if worker.pace != Pace::Closed || !matches!(worker.source, Source::Uniform { .. }) {
            return invalid(place, "needs uniform requests at a closed pace");
        }
        if worker.depth > 1 && worker.backend != Backend::IoUring {
            return invalid(place, "needs the io_uring backend, or a depth of 1");
        }
        Ok(())
    }

    /// Refuses groups that wait for each other: none of them would ever begin.
    fn check_order(&self) -> Result<(), Error> {
        let mut ends = vec![false; self.workers.len()];
        loop {
            let ended = |group: &String| {
                self.workers.iter().zip(&ends).all(|(worker, ended)| worker.group != *group || *ended)
            };
            let next: Vec<bool> =
                self.workers.iter().map(|worker| worker.schedule.after.iter().all(ended)).collect();
            if next == ends {
                break;
            }
            ends = next;
        }
        match ends.iter().position(|ends| !ends) {
            None => Ok(()),
            Some(i) => invalid(
                format!("workers[{i}].schedule.after"),
                "waits for groups that wait for this one; leave one of them out",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn plan(change: impl Fn(&mut Value)) -> Result<Plan, Error> {
        let worker = |group: &str| {
            json!({
                "group": group,
                "source": {"kind": "uniform", "reads": 1.0, "size": 4096},
                "backend": "null",
                "depth": 1,
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 20}]},
            })
        };
        let mut plan = json!({
            "version": 1,
            "targets": [{"id": "t", "kind": "null", "size": 1 << 20}],
            "workers": [worker("a"), worker("b"), worker("b")],
            "steps": [{"step": "run", "duration_ns": 1_000_000_000}],
        });
        change(&mut plan);
        Plan::parse(&plan.to_string())
    }

    #[test]
    fn groups_may_wait_for_others_and_not_for_themselves() {
        assert!(plan(|plan| plan["workers"][0]["schedule"] = json!({"after": ["b"], "delay_ns": 5})).is_ok());
        let told = plan(|plan| plan["workers"][1]["schedule"] = json!({"after": ["b"]})).unwrap_err();
        assert!(told.to_string().contains("workers[1].schedule.after: waits for groups"), "{told}");
        let told = plan(|plan| {
            plan["workers"][0]["schedule"] = json!({"after": ["b"]});
            plan["workers"][2]["schedule"] = json!({"after": ["a"]});
        });
        assert!(told.is_err());
        let told = plan(|plan| plan["workers"][0]["schedule"] = json!({"after": ["c"]})).unwrap_err();
        assert!(told.to_string().contains("no worker belongs to the group \"c\""), "{told}");
    }

    #[test]
    fn pauses_need_one_issuing_thread_and_a_closed_pace() {
        let pause = json!({"requests": 4, "ns": 1000});
        assert!(plan(|plan| plan["workers"][0]["pause"] = pause.clone()).is_ok());
        let wrong: [&dyn Fn(&mut Value); 3] = [
            &|worker| worker["pause"]["requests"] = json!(0),
            &|worker| worker["pace"] = json!({"kind": "open", "speed": 1.0}),
            &|worker| worker["depth"] = json!(2),
        ];
        for change in wrong {
            let told = plan(|plan| {
                plan["workers"][0]["pause"] = pause.clone();
                change(&mut plan["workers"][0]);
            });
            assert!(told.unwrap_err().to_string().contains("workers[0].pause"));
        }
    }
}
