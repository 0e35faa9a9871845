//! What surrounds a load: priorities of its threads, advice to the kernel, memory.

use crate::check::invalid;
use crate::{Error, Plan, Step, TargetKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least memory a run may be limited to: Loadstone itself needs some of it.
pub const LEAST_MEMORY: u64 = 64 << 20;

/// I/O priority of a thread (ioprio_set(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoPriority {
    /// Its class.
    pub class: IoClass,
    /// 0, the highest, to 7; `idle` has no levels.
    #[serde(default)]
    pub level: u8,
}

/// Classes of I/O priority; schedulers such as BFQ and mq-deadline heed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoClass {
    /// Before all others; needs CAP_SYS_ADMIN or CAP_SYS_NICE.
    Realtime,
    /// What threads usually have.
    BestEffort,
    /// Only when nobody else wants the disk.
    Idle,
}

/// How a target is going to be read (posix_fadvise(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Advice {
    /// Nothing is said, and the kernel reads ahead as it sees fit.
    #[default]
    Normal,
    /// The kernel does not read ahead.
    Random,
    /// The kernel reads twice as far ahead.
    Sequential,
}

impl Advice {
    pub(crate) fn is_normal(&self) -> bool {
        *self == Advice::Normal
    }
}

impl Plan {
    /// Checks what surrounds the load.
    pub(crate) fn check_around(&self) -> Result<(), Error> {
        for (i, target) in self.targets.iter().enumerate() {
            let place = format!("targets[{i}].advice");
            if target.advice.is_normal() {
                continue;
            }
            if matches!(target.kind, TargetKind::Null | TargetKind::Tree) {
                return invalid(place, "is for files and devices; leave it out");
            }
            if target.direct {
                return invalid(place, "is for the page cache, which direct bypasses; leave one of them out");
            }
        }
        for (i, worker) in self.workers.iter().enumerate() {
            if let Some(nice) = worker.nice.filter(|nice| !(-20..=19).contains(nice)) {
                return invalid(format!("workers[{i}].nice"), format!("is {nice}; use -20 to 19"));
            }
            let Some(IoPriority { class, level }) = worker.ioprio else { continue };
            let place = format!("workers[{i}].ioprio.level");
            if class == IoClass::Idle && level != 0 {
                return invalid(place, format!("is {level}; the idle class has no levels"));
            }
            if level > 7 {
                return invalid(place, format!("is {level}; use 0, the highest, to 7"));
            }
        }
        self.check_caches()
    }

    fn check_caches(&self) -> Result<(), Error> {
        let before = || self.steps.iter().take_while(|step| !matches!(step, Step::Run { .. }));
        if self.steps.contains(&Step::Remount) {
            if !before().any(|step| *step == Step::Remount) {
                return invalid("steps", "remounts after the run; do it before");
            }
            let on = |target: &crate::Target| matches!(target.kind, TargetKind::File | TargetKind::Tree);
            if !self.targets.iter().any(on) {
                return invalid(
                    "steps",
                    "remounts, but no target lies in a file system; use drop_caches (`cache` drop)",
                );
            }
        }
        let Some(limit) = self.memory_limit else { return Ok(()) };
        if limit < LEAST_MEMORY {
            return invalid(
                "memory_limit",
                format!(
                    "is {limit} bytes; use at least {LEAST_MEMORY} (64m), as Loadstone's own memory counts"
                ),
            );
        }
        // A page counts where it was read first, so the limit holds only for pages that are not there yet.
        if !before().any(|step| matches!(step, Step::DropCaches { .. } | Step::Remount)) {
            return invalid(
                "memory_limit",
                "needs the step drop_caches or remount before the run (`cache` drop or remount): pages that are \
                 cached already count elsewhere",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn plan(change: impl FnOnce(&mut Value)) -> Result<Plan, Error> {
        let mut plan = json!({
            "version": 1,
            "targets": [{"id": "t", "kind": "file", "path": "/t", "size": 8192}],
            "workers": [{
                "source": {"kind": "uniform", "reads": 1.0, "size": 4096},
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 8192}]},
            }],
            "steps": [{"step": "prepare"}, {"step": "drop_caches"}, {"step": "run"}],
        });
        change(&mut plan);
        Plan::parse(&plan.to_string())
    }

    #[test]
    fn surroundings_are_kept_and_told_only_where_they_are_asked_for() {
        let usual = plan(|_| {}).unwrap().to_json();
        for word in ["nice", "ioprio", "advice", "memory_limit"] {
            assert!(!usual.contains(word), "{word}");
        }
        let all = plan(|p| {
            p["targets"][0]["advice"] = json!("random");
            p["workers"][0]["nice"] = json!(-5);
            p["workers"][0]["ioprio"] = json!({"class": "best_effort", "level": 7});
            p["memory_limit"] = json!(64 << 20);
            p["steps"][1] = json!({"step": "remount"});
        });
        let all = all.unwrap();
        assert_eq!(Plan::parse(&all.to_json()).unwrap(), all);
        assert_eq!(all.workers[0].ioprio, Some(IoPriority { class: IoClass::BestEffort, level: 7 }));
    }

    #[test]
    fn what_cannot_be_applied_is_refused_with_its_place() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 10] = [
            (|p| p["workers"][0]["nice"] = json!(20), "workers[0].nice: is 20; use -20 to 19"),
            (
                |p| p["workers"][0]["ioprio"] = json!({"class": "realtime", "level": 8}),
                "workers[0].ioprio.level: is 8; use 0",
            ),
            (
                |p| p["workers"][0]["ioprio"] = json!({"class": "idle", "level": 1}),
                "the idle class has no levels",
            ),
            (|p| p["workers"][0]["ioprio"] = json!({"class": "fast"}), "fast"),
            (
                |p| {
                    p["targets"][0]["advice"] = json!("random");
                    p["targets"][0]["direct"] = json!(true);
                },
                "targets[0].advice: is for the page cache",
            ),
            (
                |p| {
                    p["targets"][0] = json!({"id": "t", "kind": "null", "size": 8192, "advice": "random"});
                    p["workers"][0]["backend"] = json!("null");
                },
                "targets[0].advice: is for files and devices",
            ),
            (|p| p["memory_limit"] = json!(4096), "memory_limit: is 4096 bytes; use at least 67108864"),
            (
                |p| {
                    p["memory_limit"] = json!(1 << 30);
                    p["steps"] = json!([{"step": "prepare"}, {"step": "run"}]);
                },
                "memory_limit: needs the step drop_caches or remount before the run",
            ),
            (|p| p["steps"] = json!([{"step": "run"}, {"step": "remount"}]), "steps: remounts after the run"),
            (
                |p| {
                    p["targets"][0]["kind"] = json!("device");
                    p["steps"][1] = json!({"step": "remount"});
                },
                "no target lies in a file system; use drop_caches",
            ),
        ];
        for (change, wanted) in cases {
            let refused = plan(change).unwrap_err().to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
    }
}
