//! What surrounds a load: priorities of its threads, advice to the kernel, memory.

use crate::check::invalid;
use crate::{Backend, Error, Plan, Source, Step, TargetKind, Worker};
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

/// The I/O priority of a share of a worker's requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestPriority {
    /// Of reads, or of writes.
    pub reads: bool,
    /// Bytes of the requests; 0: of any size.
    #[serde(default)]
    pub size: u64,
    /// Share of those requests, 0 to 1, that have it.
    pub share: f64,
    /// The priority.
    pub ioprio: IoPriority,
    /// Hint to the device beside it, up to 1023: 1 to 7 are its command duration limits; 0: none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub hint: u16,
}

fn is_none(hint: &u16) -> bool {
    *hint == 0
}

/// Largest hint: the kernel has ten bits for it.
const MOST_HINT: u16 = 1023;
/// Most rows of priorities of a worker.
const MOST_PRIORITIES: usize = 1024;

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
            if target.atomic {
                self.check_atomic(i)?;
            }
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
            if let Some(ioprio) = worker.ioprio {
                check_level(ioprio, &format!("workers[{i}].ioprio.level"))?;
            }
            check_priorities(worker, &format!("workers[{i}].priorities"))?;
            check_cpu(self, worker, &format!("workers[{i}]"))?;
        }
        self.check_caches()
    }

    /// Checks a target whose writes are atomic; what its device can do is known once it is open.
    fn check_atomic(&self, i: usize) -> Result<(), Error> {
        let (target, place) = (&self.targets[i], format!("targets[{i}].atomic"));
        if !matches!(target.kind, TargetKind::File | TargetKind::Device) {
            return invalid(place, "is for files and devices; leave it out");
        }
        if !target.direct {
            return invalid(place, "needs direct: the page cache tears writes apart");
        }
        let writes = |worker: &&Worker| worker.map.objects.iter().any(|extent| extent.target == target.id);
        let can = |worker: &Worker| matches!(worker.backend, Backend::Sync | Backend::IoUring);
        if !self.workers.iter().filter(writes).all(can) {
            return invalid(place, "needs the backend sync or io_uring");
        }
        Ok(())
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

fn check_level(IoPriority { class, level }: IoPriority, place: &str) -> Result<(), Error> {
    if class == IoClass::Idle && level != 0 {
        return invalid(place, format!("is {level}; the idle class has no levels"));
    }
    if level > 7 {
        return invalid(place, format!("is {level}; use 0, the highest, to 7"));
    }
    Ok(())
}

fn check_priorities(worker: &Worker, place: &str) -> Result<(), Error> {
    let rows = &worker.priorities;
    if !rows.is_empty() && worker.backend != Backend::IoUring {
        return invalid(
            place,
            "needs the io_uring backend, as a thread has one priority for all its requests",
        );
    }
    // Each request looks through them.
    if rows.len() > MOST_PRIORITIES {
        return invalid(place, format!("has {} rows; use {MOST_PRIORITIES} at most", rows.len()));
    }
    for (i, row) in rows.iter().enumerate() {
        check_level(row.ioprio, &format!("{place}[{i}].ioprio.level"))?;
        if row.hint > MOST_HINT {
            return invalid(format!("{place}[{i}].hint"), format!("is {}; use 0 to {MOST_HINT}", row.hint));
        }
        if !(0.0..=1.0).contains(&row.share) {
            return invalid(format!("{place}[{i}].share"), format!("is {}; use 0 to 1", row.share));
        }
        let same = |other: &&RequestPriority| {
            other.reads == row.reads && (other.size == row.size || other.size == 0 || row.size == 0)
        };
        let sum: f64 = rows.iter().filter(same).map(|other| other.share).sum();
        if sum > 1.0 + 1e-9 {
            return invalid(format!("{place}[{i}].share"), format!("and those beside it add up to {sum}"));
        }
    }
    Ok(())
}

/// A worker that takes CPU time has none of what is about requests.
fn check_cpu(plan: &Plan, worker: &Worker, place: &str) -> Result<(), Error> {
    let Source::Cpu { load, chunk_ns, with_others, .. } = worker.source else { return Ok(()) };
    if !(load > 0.0 && load <= 1.0) {
        return invalid(
            format!("{place}.source.load"),
            format!("is {load}; use a share above 0 and up to 1"),
        );
    }
    if !(1000..=crate::MOST_TIME).contains(&chunk_ns) {
        let what = format!("is {chunk_ns}; use 1000 ns or more, up to 100 days");
        return invalid(format!("{place}.source.chunk_ns"), what);
    }
    if worker.backend != Backend::Null || worker.depth != 1 || worker.requests > 0 {
        return invalid(
            place,
            "issues no requests: its backend is null, its depth 1, and requests is left out",
        );
    }
    if !worker.map.objects.is_empty() || worker.pause.is_some() || worker.flow.is_some() {
        return invalid(place, "issues no requests; leave out map.objects, pause and flow");
    }
    if with_others && !plan.workers.iter().any(|other| !matches!(other.source, Source::Cpu { .. })) {
        return invalid(format!("{place}.source.with_others"), "is true, and no worker issues requests");
    }
    Ok(())
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

    type Change = fn(&mut Value);

    /// Of random reads with io_uring, a share of which has a priority.
    fn prioritised(rows: Value) -> Result<Plan, Error> {
        plan(|p| {
            p["workers"][0]["backend"] = json!("io_uring");
            p["workers"][0]["priorities"] = rows;
        })
    }

    #[test]
    fn shares_of_requests_that_overlap_are_at_most_all_of_them() {
        let row = |reads: bool, size: u64, share: f64| json!({"reads": reads, "size": size, "share": share, "ioprio": {"class": "realtime", "level": 1}});
        let found =
            prioritised(json!([row(true, 4096, 0.5), row(true, 8192, 1.0), row(false, 0, 1.0)])).unwrap();
        assert_eq!(found.workers[0].priorities.len(), 3);
        assert_eq!(Plan::parse(&found.to_json()).unwrap(), found);
        for (rows, said) in [
            (
                json!([row(true, 4096, 0.5), row(true, 0, 0.6)]),
                "priorities[0].share: and those beside it add up",
            ),
            (json!([row(true, 0, 1.5)]), "priorities[0].share: is 1.5"),
            (
                json!([{"reads": true, "share": 0.1, "ioprio": {"class": "idle"}, "hint": 1024}]),
                "priorities[0].hint: is 1024",
            ),
            (
                json!([{"reads": true, "share": 0.1, "ioprio": {"class": "idle", "level": 2}}]),
                "priorities[0].ioprio.level: is 2",
            ),
        ] {
            let error = prioritised(rows).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let many = vec![row(true, 4096, 0.0); 1025];
        assert!(prioritised(many.into()).unwrap_err().to_string().contains("use 1024 at most"));
        let error = plan(|p| p["workers"][0]["priorities"] = json!([row(true, 0, 0.1)])).unwrap_err();
        assert!(error.to_string().contains("needs the io_uring backend"), "{error}");
    }

    #[test]
    fn a_worker_that_takes_cpu_time_issues_nothing() {
        let cpu = |change: fn(&mut Value)| {
            plan(|p| {
                let mut worker =
                    json!({"source": {"kind": "cpu", "load": 0.5}, "backend": "null", "depth": 1});
                change(&mut worker);
                p["workers"].as_array_mut().unwrap().push(worker);
            })
        };
        let found = cpu(|_| {}).unwrap();
        assert!(matches!(
            found.workers[1].source,
            Source::Cpu { chunk_ns: 50_000_000, with_others: false, .. }
        ));
        cpu(|w| w["source"]["with_others"] = json!(true)).unwrap();
        let cases: [(Change, &str); 6] = [
            (|w| w["source"]["load"] = json!(0.0), "workers[1].source.load: is 0"),
            (|w| w["source"]["load"] = json!(1.1), "workers[1].source.load: is 1.1"),
            (|w| w["source"]["chunk_ns"] = json!(999), "workers[1].source.chunk_ns: is 999"),
            (|w| w["backend"] = json!("sync"), "workers[1]: issues no requests"),
            (|w| w["depth"] = json!(2), "workers[1]: issues no requests"),
            (|w| w["pause"] = json!({"requests": 1, "ns": 1}), "workers[1].pause"),
        ];
        for (change, said) in cases {
            let error = cpu(change).unwrap_err().to_string();
            assert!(error.contains(said), "{error}: not {said}");
        }
        let alone = plan(|p| {
            let source = json!({"kind": "cpu", "load": 1.0, "with_others": true});
            p["workers"] = json!([{"source": source, "backend": "null", "depth": 1}]);
        });
        assert!(alone.unwrap_err().to_string().contains("no worker issues requests"));
    }

    #[test]
    fn atomic_writes_pass_by_the_page_cache() {
        let atomic = |change: fn(&mut Value)| {
            plan(|p| {
                p["targets"][0]["atomic"] = json!(true);
                p["targets"][0]["direct"] = json!(true);
                change(p);
            })
        };
        assert!(atomic(|_| {}).unwrap().targets[0].atomic);
        let cases: [(Change, &str); 2] = [
            (|p| p["targets"][0]["direct"] = json!(false), "targets[0].atomic: needs direct"),
            (|p| p["workers"][0]["backend"] = json!("allocate"), "targets[0].atomic: needs the backend sync"),
        ];
        for (change, said) in cases {
            let error = atomic(change).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_applied_is_refused_with_its_place() {
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
