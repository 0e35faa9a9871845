//! What a plan takes of memory as far as its numbers tell, looked at before any of it is taken: one number of a plan may
//! ask for more than there is.

use crate::host::target::length_of;
use crate::request::op;
use crate::source::open::{named, options};
use crate::{Error, Result};
use loadstone_files::{available_memory, limited_memory};
use loadstone_model::Model;
use loadstone_plan::{Artefact, Backend, FileSet, Layout, Plan, Source, TargetKind, Value, Worker};
use loadstone_trace::{Batch, Requests};

/// Bytes of an entry of a set: its word, its directory, its bits, and what building them takes.
const ENTRY: f64 = 16.0;
/// Bytes of a size of its own.
const SIZE: f64 = 8.0;
/// Bytes of a directory of a set.
const DIRECTORY: f64 = 24.0;
/// Directories are at most so deep.
const DEEPEST: f64 = 256.0;
/// Bytes of a thread: its stack as far as it is used, its histograms.
const THREAD: f64 = 256e3;
/// Bytes of address space that a run takes besides: stacks, the allocator's reserves, intervals, tables of results.
/// Measured for a replay on null: 60 MiB were too little, 80 MiB were enough.
const BESIDES: f64 = 128.0 * 1024.0 * 1024.0;

/// Of a memory limit, the share that what is known here may take: the kernel's own structures and at least some pages
/// of files need the rest. Measured with 100 threads of webproxy: 127 MiB known here, killed at 150, not at 250.
const OF_LIMIT: f64 = 0.75;

/// Something that takes memory.
struct Need {
    bytes: f64,
    what: String,
    /// Whether a run touches all of it; what it does not touch costs address space alone.
    touched: bool,
}

/// Refuses a plan that takes more memory than there is.
///
/// # Errors
/// What takes most of it, how much all takes, and how much there is.
pub fn check(plan: &Plan) -> Result<()> {
    // What a file system cannot have is told first: less memory would not help.
    plan.sets.iter().try_for_each(|set| has_inodes(plan, set))?;
    let mut needs = of_plan(plan);
    fits(&needs, available_memory())?;
    if let Some(left) = limited_memory() {
        share_reserve();
        fits_process(of_plan(plan), left)?;
    }
    if let Some(limit) = plan.memory_limit {
        for (i, worker) in plan.workers.iter().enumerate().filter(|(_, w)| w.backend != Backend::Null) {
            needs.extend(of_requests(plan, i, worker)?);
        }
        fits_limit(needs, limit)?;
    }
    Ok(())
}

/// Refuses a set of more files than its file system can ever have: making it known takes memory for each of them.
fn has_inodes(plan: &Plan, set: &FileSet) -> Result<()> {
    let target = plan.targets.iter().find(|target| target.id == set.target);
    let Some(target) = target.filter(|target| target.kind == TargetKind::Tree) else { return Ok(()) };
    let there = target.path.ancestors().find(|at| at.exists()).unwrap_or(&target.path);
    let Some(system) = crate::fileset::file_system(there) else { return Ok(()) };
    let files = (set.entries as f64 * set.present) as u64;
    // A file system that counts no inodes says 0 of 0.
    if system.f_files == 0 || files <= system.f_files {
        return Ok(());
    }
    let what =
        format!("the set {:?} needs {files} inodes, and its file system has {}", set.id, system.f_files);
    Err(Error::target(&target.path.join(&set.path), format!("{what}; make fewer files")))
}

fn of_plan(plan: &Plan) -> Vec<Need> {
    let mut needs: Vec<Need> = plan.workers.iter().enumerate().flat_map(|(i, w)| of_worker(i, w)).collect();
    needs.extend(plan.sets.iter().enumerate().map(|(i, set)| of_set(i, set)));
    needs.extend(of_verification(plan));
    needs
}

/// What is kept of the blocks of all targets that are verified.
fn of_verification(plan: &Plan) -> Option<Need> {
    let asked = plan.verify.as_ref()?;
    let unit = plan.content.as_ref().map_or(asked.unit, |content| content.unit);
    let sizes = plan.targets.iter().map(|target| match target.size {
        0 => length_of(&target.path).unwrap_or(0),
        size => size,
    });
    let blocks: f64 = sizes.map(|size| (size as f64 / f64::from(unit)).ceil()).sum();
    let what = format!("{blocks} blocks of {unit} bytes are verified");
    Some(Need { bytes: blocks * loadstone_verify::memory::BLOCK as f64, what, touched: true })
}

fn fits(needs: &[Need], there: u64) -> Result<()> {
    let (takes, what) = sum(needs.iter());
    if takes <= there as f64 {
        return Ok(());
    }
    Err(Error::Memory { takes: mib(takes), there: mib(there as f64), what })
}

/// Lets all threads allocate from one reserve: by default each reserves 64 MiB of address space for itself, and a limit of
/// it is used up by what nobody uses (mallopt(3)).
fn share_reserve() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call changes a number of the allocator, at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// An allocation that fails ends the whole process, and its results with it.
fn fits_process(mut needs: Vec<Need>, left: u64) -> Result<()> {
    needs.push(Need { bytes: BESIDES, what: "threads, intervals and results".to_string(), touched: false });
    let (takes, what) = sum(needs.iter());
    if takes <= left as f64 {
        return Ok(());
    }
    Err(Error::ProcessLimit { takes: mib(takes), left: mib(left as f64), what })
}

/// The kernel kills what outgrows its memory group, and its results with it.
fn fits_limit(needs: Vec<Need>, limit: u64) -> Result<()> {
    let (takes, what) = sum(needs.iter().filter(|need| need.touched));
    let least = takes / OF_LIMIT;
    if least <= limit as f64 {
        return Ok(());
    }
    Err(Error::MemoryLimit { takes: mib(takes), limit: mib(limit as f64), least: mib(least) + 1, what })
}

/// Bytes of all, and what takes most of them.
fn sum<'a>(needs: impl Iterator<Item = &'a Need> + Clone) -> (f64, String) {
    let most = needs.clone().max_by(|a, b| a.bytes.total_cmp(&b.bytes));
    (needs.map(|need| need.bytes).sum(), most.map_or(String::new(), |need| need.what.clone()))
}

fn mib(bytes: f64) -> u64 {
    (bytes / f64::from(1 << 20)) as u64
}

fn of_worker(i: usize, worker: &Worker) -> Vec<Need> {
    let depth = f64::from(worker.depth);
    let mut needs = Vec::new();
    if let Source::Program { memory, .. } = &worker.source {
        let what = format!("workers[{i}] has {} threads with {memory} bytes of memory each", worker.depth);
        needs.push(Need { bytes: depth * *memory as f64, what, touched: false });
    }
    let mut add = |bytes: f64, what: String| {
        if bytes > 0.0 {
            needs.push(Need { bytes, what, touched: true });
        }
    };
    if !matches!(worker.backend, Backend::IoUring) {
        add(depth * THREAD, format!("workers[{i}] has {} threads", worker.depth));
    }
    if let Source::Uniform { once: true, size, .. } = &worker.source {
        // A bit for each block.
        let blocks: u64 =
            worker.map.objects.iter().fold(0, |sum, extent| sum.saturating_add(extent.size / size));
        add(blocks as f64 / 8.0, format!("workers[{i}] has {blocks} blocks that come once"));
    }
    if let Source::Uniform { reads, size, sizes, write_sizes, .. } = &worker.source
        && worker.backend != Backend::Null
    {
        let largest = sizes.iter().chain(write_sizes).map(|row| row.high).fold(0.0, f64::max);
        let largest = if sizes.is_empty() { *size as f64 } else { largest };
        // One to read into, one to write from.
        let sides = f64::from(u8::from(*reads > 0.0) + u8::from(*reads < 1.0));
        let what = format!("workers[{i}] has {} requests of up to {largest} bytes in flight", worker.depth);
        add(depth * largest * sides, what);
    }
    if worker.backend == Backend::Posix
        && let Source::Program { ops, .. } = &worker.source
    {
        let largest = largest_of(ops);
        add(
            depth * largest,
            format!("workers[{i}] has {} threads with requests of {largest} bytes", worker.depth),
        );
    }
    needs
}

/// What the largest requests of a trace or model take in flight, which takes a pass over the trace.
fn of_requests(plan: &Plan, i: usize, worker: &Worker) -> Result<Option<Need>> {
    let [read, written] = match &worker.source {
        Source::Trace { artefact } => largest_of_trace(named(plan, artefact))?,
        Source::Model { artefact, .. } => largest_of_model(named(plan, artefact))?,
        Source::Uniform { .. } | Source::Program { .. } | Source::Cpu { .. } => return Ok(None),
    };
    let depth = worker.depth;
    let what = format!(
        "workers[{i}] has up to {depth} requests in flight that read up to {read} and write up to {written} bytes"
    );
    Ok(Some(Need { bytes: f64::from(depth) * (read + written) as f64, what, touched: true }))
}

/// Bytes of the largest read and the largest write of a trace.
fn largest_of_trace(artefact: &Artefact) -> Result<[i64; 2]> {
    let mut reader =
        loadstone_trace::open(std::slice::from_ref(&artefact.path), &options(&artefact.reading)?)?;
    let (mut largest, mut batch) = ([0; 2], Batch::default());
    while reader.next(&mut batch)? {
        for (op, size) in batch.op.iter().zip(&batch.size) {
            match *op {
                op::READ => largest[0] = largest[0].max(*size),
                op::WRITE => largest[1] = largest[1].max(*size),
                _ => {}
            }
        }
    }
    Ok(largest)
}

/// The same of what a model draws, which does not tell them apart.
fn largest_of_model(artefact: &Artefact) -> Result<[i64; 2]> {
    let model = Model::load(&artefact.path)?;
    let size = model.dimension("size").ok().and_then(|size| model.header.dimensions[size].largest);
    Ok([size.unwrap_or(0); 2])
}

/// Bytes of the largest transfers of a program that are told as numbers: one read and one write.
fn largest_of(ops: &[loadstone_plan::Op]) -> f64 {
    fn among(ops: &[loadstone_plan::Op], most: &mut [f64; 2]) {
        for op in ops {
            if let Value::Number(size) = op.size
                && op.act.transfers()
            {
                let side = &mut most[usize::from(op.act.writes())];
                *side = side.max(size);
            }
            among(&op.ops, most);
        }
    }
    let mut most = [0.0; 2];
    among(ops, &mut most);
    most[0] + most[1]
}

fn of_set(i: usize, set: &FileSet) -> Need {
    let (entries, leaves) = (set.entries as f64, set.leaf_directories as f64);
    let all = entries + leaves;
    let own_size = if matches!(set.size, Value::Number(_)) { 0.0 } else { SIZE };
    let directories = match set.layout {
        Layout::Flat => all / set.width,
        Layout::Gamma if set.width <= 1.0 => all,
        // Narrow trees have a chain of directories for each entry.
        Layout::Gamma => all * DEEPEST.min(1.0 / (set.width - 1.0)),
    };
    let bytes = all * ENTRY + entries * own_size + directories * DIRECTORY;
    let what = format!("sets[{i}] has {} files and {} leaf directories", set.entries, set.leaf_directories);
    Need { bytes, what, touched: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn refused(there: u64, change: impl FnOnce(&mut Json)) -> Option<String> {
        let mut plan = json!({
            "version": 1,
            "targets": [{"id": "t", "kind": "tree", "path": "/t"}],
            "sets": [{"id": "s", "target": "t", "path": "s", "entries": 100, "width": 20.0}],
            "workers": [{
                "source": {"kind": "program", "memory": 1 << 20, "ops": [
                    {"name": "r", "act": "read", "set": "s", "size": 65536},
                    {"name": "w", "act": "write", "set": "s", "size": 65536},
                ]},
                "backend": "posix",
                "depth": 10,
            }],
            "steps": [{"step": "prepare"}, {"step": "run"}],
        });
        change(&mut plan);
        let plan = Plan::parse(&plan.to_string()).unwrap();
        fits(&of_plan(&plan), there).err().map(|e| e.to_string())
    }

    #[test]
    fn what_fits_is_let_through_and_what_takes_most_is_named() {
        let there = 64 << 20;
        assert_eq!(refused(there, |_| {}), None);
        let told = refused(there, |p| p["workers"][0]["source"]["memory"] = json!(900u64 << 30)).unwrap();
        assert!(told.contains("takes 9216") && told.contains("64 MiB are available"), "{told}");
        assert!(told.contains("workers[0] has 10 threads with 966367641600 bytes of memory each"), "{told}");
        let told = refused(there, |p| p["sets"][0]["entries"] = json!(2_000_000_000)).unwrap();
        assert!(told.contains("sets[0] has 2000000000 files"), "{told}");
        let told = refused(there, |p| p["workers"][0]["source"]["ops"][0]["size"] = json!(1 << 28)).unwrap();
        assert!(told.contains("10 threads with requests of 268500992 bytes"), "{told}");
        // A chain of 256 directories for each file.
        let narrow = |width: f64| {
            refused(there, |p| {
                (p["sets"][0]["entries"], p["sets"][0]["width"]) = (json!(20_000), json!(width))
            })
        };
        assert!(narrow(1.0).is_none() && narrow(1.001).is_some() && narrow(2.0).is_none());
    }

    #[test]
    fn requests_in_flight_need_room_each() {
        let uniform = |p: &mut Json| {
            p["targets"][0] = json!({"id": "t", "kind": "file", "path": "/t", "size": 1u64 << 40});
            p["sets"] = json!([]);
            p["workers"][0] = json!({
                "source": {"kind": "uniform", "reads": 0.5, "size": 1 << 28},
                "map": {"objects": [{"object": 0, "target": "t", "base": 0, "size": 1u64 << 40}]},
                "depth": 4096,
            });
        };
        let told = refused(1 << 40, uniform).unwrap();
        assert!(told.contains("4096 requests of up to 268435456 bytes in flight"), "{told}");
        assert!(told.contains("takes 209") && told.contains("1048576 MiB"), "{told}");
        assert_eq!(refused(3 << 40, uniform), None);
    }
}
