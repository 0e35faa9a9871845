//! Where and how eagerly threads run: CPUs, niceness, I/O priority. All are a thread's own on Linux.

use crate::{Error, Result};
use loadstone_plan::{IoClass, IoPriority, Plan, Worker};
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// `IOPRIO_WHO_PROCESS` of ioprio_set(2), which with 0 means the calling thread.
const WHO_PROCESS: libc::c_int = 1;
/// Bits of a level.
const LEVEL_BITS: libc::c_int = 13;

/// Gives the calling thread what its worker asks for.
///
/// # Errors
/// When the kernel refuses it.
pub fn apply(worker: &Worker) -> Result<()> {
    pin(&worker.cpus)?;
    if let Some(nice) = worker.nice {
        check(setpriority_process(None, nice).map_err(io::Error::from), || {
            let help = "; below that of this process (nice) it needs root or CAP_SYS_NICE";
            (format!("setting the niceness {nice}"), help)
        })?;
    }
    worker.ioprio.map_or(Ok(()), prioritise)
}

/// Gives the calling thread an I/O priority.
fn prioritise(ioprio: IoPriority) -> Result<()> {
    // SAFETY: no pointers; 0 is the calling thread. No library has this call.
    let set =
        unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, libc::c_int::from(number(ioprio))) };
    check(if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }, || {
        let help = "; the class realtime needs root, CAP_SYS_ADMIN or CAP_SYS_NICE";
        (format!("setting the I/O priority {:?}, level {}", ioprio.class, ioprio.level), help)
    })
}

/// Makes the calling thread one that waits until a CPU is free or its turn has come: SCHED_BATCH of sched(7),
/// which preempts no worker when it wakes up. A thread of another policy than the usual one keeps that.
pub fn in_background() {
    // SAFETY: the parameter is plain data; 0 is the calling thread, and the policy takes no priority. Rustix has no policies.
    unsafe {
        if libc::sched_getscheduler(0) == libc::SCHED_OTHER {
            let none: libc::sched_param = std::mem::zeroed();
            // Being refused costs punctuality only.
            libc::sched_setscheduler(0, libc::SCHED_BATCH, &none);
        }
    }
}

/// Finds out whether all workers may have what they ask for, by threads that do nothing else.
///
/// # Errors
/// What the kernel refuses.
pub fn permitted(plan: &Plan) -> Result<()> {
    let asks = |worker: &&Worker| {
        let priorities = worker.nice.is_some() || worker.ioprio.is_some() || !worker.priorities.is_empty();
        priorities || !worker.cpus.is_empty()
    };
    for worker in plan.workers.iter().filter(asks) {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("loadstone-try".into());
            let tried = thread.spawn_scoped(scope, || {
                apply(worker)?;
                worker.priorities.iter().try_for_each(|row| prioritise(row.ioprio))
            });
            let tried = tried.map_err(|e| Error::thread("that tries priorities", e))?;
            tried.join().map_err(|_| Error::Thread("loadstone-try".into()))?
        })?;
    }
    Ok(())
}

fn check(result: io::Result<()>, what: impl FnOnce() -> (String, &'static str)) -> Result<()> {
    result.map_err(|cause| {
        let (what, help) = what();
        Error::System { what, cause, help }
    })
}

/// An I/O priority as the kernel has it.
pub fn number(ioprio: IoPriority) -> u16 {
    let class = match ioprio.class {
        IoClass::Realtime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << LEVEL_BITS | u16::from(ioprio.level)
}

/// Pins the calling thread (sched_setaffinity(2)); nothing for an empty list.
fn pin(cpus: &[u32]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let fits = |cpu: u32| (cpu as usize) < CpuSet::MAX_CPU;
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| fits(**cpu)).for_each(|cpu| set.set(*cpu as usize));
    let what =
        || (format!("pinning to CPUs {cpus:?}"), "; name CPUs this process may use (nproc, taskset -p)");
    check(sched_setaffinity(None, &set).map_err(io::Error::from), what)?;
    // The kernel silently drops CPUs that do not exist.
    let had = sched_getaffinity(None).unwrap_or_default();
    match cpus.iter().find(|cpu| !fits(**cpu) || !had.is_set(**cpu as usize)) {
        None => Ok(()),
        Some(cpu) => {
            let (what, help) = (format!("pinning to CPU {cpu}"), what().1);
            Err(Error::System { what, cause: io::Error::from_raw_os_error(libc::EINVAL), help })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn worker(parts: serde_json::Value) -> Worker {
        let mut worker = json!({"source": {"kind": "uniform", "reads": 1.0, "size": 4096}});
        worker.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
        serde_json::from_value(worker).unwrap()
    }

    fn now() -> (i32, i64) {
        let nice = rustix::process::getpriority_process(None).unwrap();
        // SAFETY: no pointers; 0 is the calling thread.
        (nice, unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) })
    }

    #[test]
    fn a_thread_gets_its_priorities_and_no_other_does() {
        let before = now();
        let given = json!({"nice": 7, "ioprio": {"class": "best_effort", "level": 6}});
        let inside = std::thread::spawn(move || apply(&worker(given)).map(|()| now())).join().unwrap();
        assert_eq!(inside.unwrap(), (7, 2 << 13 | 6));
        let idle = json!({"ioprio": {"class": "idle"}});
        let inside = std::thread::spawn(move || apply(&worker(idle)).map(|()| now())).join().unwrap();
        assert_eq!(inside.unwrap().1, 3 << 13);
        assert_eq!(now(), before);
    }

    #[test]
    fn what_runs_in_the_background_preempts_nobody() {
        // SAFETY: no pointers; 0 is the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let inside = std::thread::spawn(move || {
            in_background();
            policy()
        });
        // Where this process runs under another policy, the thread keeps it.
        let expected = if policy() == libc::SCHED_OTHER { libc::SCHED_BATCH } else { policy() };
        assert_eq!(inside.join().unwrap(), expected);
    }

    #[test]
    fn what_the_kernel_refuses_says_what_and_why() {
        let refused = apply(&worker(json!({"cpus": [1023]}))).unwrap_err().to_string();
        assert!(refused.starts_with("pinning to CPUs [1023]: "), "{refused}");
    }
}
