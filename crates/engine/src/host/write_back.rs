//! Writing back what a load left in the page cache: a write may succeed there and fail later, where no request is left to
//! be told of it. So whoever wrote asks once in the end, as fsync(2) advises.

use crate::Error;
use crate::host::target::{Open, uses};
use crate::metrics::progress::{Phase, Progress};
use loadstone_plan::{Backend, Plan, TargetKind};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a wait looks whether the run was stopped.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks again after that: for a second.
const PATIENCE: u32 = 20;

/// What came of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct WrittenBack {
    /// From the last completion until all was stable, or nobody waited any more, ns.
    pub elapsed_ns: i64,
    /// Targets of which something did not become stable, and why.
    pub errors: Vec<String>,
}

/// Makes stable what the workers wrote: files and devices by fdatasync(2), the file systems of trees by syncfs(2). `None`
/// where nothing was written. A run that is stopped waits for a second, and says so as an error if that was not enough.
pub fn write_back(plan: &Plan, targets: &[Open], progress: &Progress) -> Option<WrittenBack> {
    let names = plan.workers.iter().any(|w| w.backend == Backend::Files && !w.reads_only);
    let written = |kind: TargetKind, id: &str| uses(plan, id).writes || kind == TargetKind::Tree && names;
    let files: Vec<_> = (plan.targets.iter().zip(targets))
        .filter(|(target, _)| written(target.kind, &target.id))
        .filter_map(|(target, open)| Some((open, open.file.as_ref()?, target.kind == TargetKind::Tree)))
        .collect();
    if files.is_empty() {
        return None;
    }
    progress.begin(Phase::WritingBack, None);
    let began = Instant::now();
    let mut errors = Vec::new();
    for (open, file, tree) in files {
        match file.try_clone().and_then(|file| settle(file, tree, &progress.stop)) {
            Ok(()) => {}
            Err(cause) => {
                let what = "what was written did not all become stable";
                errors.push(Error::target_io(&open.path, what, &cause).to_string());
            }
        }
    }
    Some(WrittenBack { elapsed_ns: began.elapsed().as_nanos() as i64, errors })
}

/// Waits for one target, unless the run is stopped: a slow store may take minutes, and no signal ends the call.
fn settle(file: File, tree: bool, stop: &AtomicBool) -> io::Result<()> {
    let (file, (tell, told)) = (Arc::new(file), channel());
    let theirs = Arc::clone(&file);
    let thread = std::thread::Builder::new().name("loadstone-sync".into());
    if thread.spawn(move || tell.send(sync(&theirs, tree))).is_err() {
        // Where no thread is to be had, it cannot be stopped.
        return sync(&file, tree);
    }
    let mut left = PATIENCE;
    loop {
        match told.recv_timeout(LOOK) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) if left > 0 => left -= u32::from(stop.load(Relaxed)),
            Err(_) => return Err(io::Error::other("the run was stopped before it had")),
        }
    }
}

fn sync(file: &File, tree: bool) -> io::Result<()> {
    Ok(if tree { rustix::fs::syncfs(file) } else { rustix::fs::fdatasync(file) }?)
}
