//! Programs made ready to run: every name looked up.

use crate::source::variables::Number;
use loadstone_plan::{Act, Op as PlanOp, Plan, Source};
use loadstone_trace::Op;
use std::path::PathBuf;

/// Code of steps that are no requests: waiting and thinking. No trace has it.
pub const OTHER: u8 = 255;

/// Descriptors that are used in turn.
pub const TURNS: usize = 128;

/// What completions of one kind are counted under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Frozen op code, or [`OTHER`].
    pub op: u8,
    /// Position of the name in the plan's names.
    pub name: u16,
}

/// A step with its names looked up.
pub struct Step {
    pub act: Act,
    /// Position in the program's labels.
    pub class: usize,
    pub times: Number,
    pub set: usize,
    pub slot: usize,
    pub other: Option<usize>,
    pub size: Number,
    pub working_set: Number,
    pub random: bool,
    pub position: Option<Number>,
    pub again: bool,
    pub echo: bool,
    pub timed: bool,
    pub skip_last: bool,
    pub whole_pieces: bool,
    pub zeros: bool,
    /// Flags its files are opened with, besides the access.
    pub flags: libc::c_int,
    pub direct: bool,
    pub no_readahead: bool,
    pub next: bool,
    pub index: Option<Number>,
    pub value: Number,
    /// What is unpacked.
    pub archive: Option<PathBuf>,
    pub blocking: bool,
    pub high_water: u64,
    /// What it waits at, posts to or counts; its meaning depends on the act.
    pub tie: usize,
    /// Name, for messages.
    pub name: String,
    pub inner: Vec<Step>,
}

/// What each thread of a worker does.
pub struct Code {
    pub steps: Vec<Step>,
    pub labels: Vec<Label>,
    /// Descriptors a thread needs.
    pub slots: usize,
    /// Words of memory that stores go to.
    pub memory: usize,
}

/// Everything that is shared between programs by name, while they are made ready.
#[derive(Default)]
pub struct Names {
    /// Names of ops, in order of their first appearance.
    pub ops: Vec<String>,
    /// Ops that wait for a wake-up.
    pub gates: Vec<String>,
    /// Ops that wait for posts: name, number of threads of each worker that have it.
    pub semaphores: Vec<(String, Vec<(usize, usize)>)>,
    /// Names under which values are told.
    pub records: Vec<String>,
    /// Names of groups whose times are told.
    pub spans: Vec<String>,
    /// What limits and ends count: the act and its target.
    pub counts: Vec<(Act, Option<String>)>,
}

fn position<T: PartialEq>(known: &mut Vec<T>, one: T) -> usize {
    known.iter().position(|other| *other == one).unwrap_or_else(|| {
        known.push(one);
        known.len() - 1
    })
}

/// The frozen op code of an act.
pub fn op_of(act: Act) -> u8 {
    let op = match act {
        Act::Read | Act::ReadWhole | Act::MmapRead | Act::Fread | Act::Getc => Op::Read,
        Act::Write
        | Act::WriteWhole
        | Act::Append
        | Act::AppendRandom
        | Act::AioWrite
        | Act::MmapWrite
        | Act::Fwrite
        | Act::Putc
        | Act::Extract => Op::Write,
        Act::Open => Op::Open,
        Act::Create => Op::Create,
        Act::Close => Op::Close,
        Act::Remove => Op::Remove,
        Act::Stat => Op::Stat,
        Act::Sync | Act::SyncSet => Op::Sync,
        Act::Datasync => Op::Datasync,
        Act::Mkdir => Op::Mkdir,
        Act::Rmdir => Op::Rmdir,
        Act::Readdir => Op::Readdir,
        Act::Readdirplus => Op::Readdirplus,
        Act::Rename => Op::Rename,
        Act::Link => Op::Link,
        Act::Symlink => Op::Symlink,
        Act::Readlink => Op::Readlink,
        Act::Access => Op::Access,
        Act::Truncate => Op::Truncate,
        Act::Fallocate => Op::Fallocate,
        Act::Setxattr => Op::Setxattr,
        Act::Getxattr => Op::Getxattr,
        Act::CopyRange => Op::CopyRange,
        _ => return OTHER,
    };
    op as u8
}

impl Names {
    /// Collects the ops that others wait for, before anything refers to them.
    pub fn collect(plan: &Plan) -> Names {
        fn among(ops: &[PlanOp], worker: usize, depth: usize, names: &mut Names) {
            for op in ops {
                match op.act {
                    Act::Block => {
                        position(&mut names.gates, op.name.clone());
                    }
                    Act::SemBlock => {
                        let at = match names.semaphores.iter().position(|known| known.0 == op.name) {
                            Some(at) => at,
                            None => {
                                names.semaphores.push((op.name.clone(), Vec::new()));
                                names.semaphores.len() - 1
                            }
                        };
                        let workers = &mut names.semaphores[at].1;
                        if workers.last().is_none_or(|last| last.0 != worker) {
                            workers.push((worker, depth));
                        }
                    }
                    _ => {}
                }
                among(&op.ops, worker, depth, names);
            }
        }
        let mut names = Names::default();
        for (i, worker) in plan.workers.iter().enumerate() {
            if let Source::Program { ops, .. } = &worker.source {
                among(ops, i, worker.depth as usize, &mut names);
            }
        }
        names
    }
}

impl Code {
    /// The program of a worker of a checked plan.
    ///
    /// # Errors
    /// When a step names what is not there, or an archive cannot be unpacked.
    pub fn new(plan: &Plan, worker: usize, names: &mut Names) -> Result<Code, String> {
        let Source::Program { ops, memory } = &plan.workers[worker].source else {
            return Err("is no program".into());
        };
        let mut code =
            Code { steps: Vec::new(), labels: Vec::new(), slots: 1, memory: (memory / 8).max(1) as usize };
        code.steps = code.steps_of(ops, plan, names)?;
        Ok(code)
    }

    /// Whether any step is such an act.
    pub fn has(&self, act: Act) -> bool {
        fn among(steps: &[Step], act: Act) -> bool {
            steps.iter().any(|step| step.act == act || among(&step.inner, act))
        }
        among(&self.steps, act)
    }

    fn steps_of(&mut self, ops: &[PlanOp], plan: &Plan, names: &mut Names) -> Result<Vec<Step>, String> {
        ops.iter().map(|op| self.step(op, plan, names)).collect()
    }

    fn step(&mut self, op: &PlanOp, plan: &Plan, names: &mut Names) -> Result<Step, String> {
        let number = |value| Number::of(value, &plan.variables);
        let name = position(&mut names.ops, op.name.clone());
        let label = Label {
            op: op_of(op.act),
            name: u16::try_from(name)
                .map_err(|_| "has more than 65,536 names of ops; use fewer".to_string())?,
        };
        let target = || op.target.clone().unwrap_or_default();
        let tie = match op.act {
            Act::Block => names.gates.iter().position(|gate| *gate == op.name),
            Act::Wakeup => names.gates.iter().position(|gate| *gate == target()),
            Act::SemBlock => names.semaphores.iter().position(|known| known.0 == op.name),
            Act::SemPost => names.semaphores.iter().position(|known| known.0 == target()),
            Act::IopsLimit
            | Act::OpsLimit
            | Act::BandwidthLimit
            | Act::FinishOnCount
            | Act::FinishOnBytes => Some(position(&mut names.counts, (op.act, op.target.clone()))),
            Act::Record => Some(position(&mut names.records, op.name.clone())),
            Act::Group if op.timed => Some(position(&mut names.spans, op.name.clone())),
            _ => Some(0),
        };
        let Some(tie) = tie else {
            return Err(format!("the op {:?} is for {:?}, which waits for nothing", op.name, target()));
        };
        if let Some(why) = op.archive.as_deref().and_then(super::extract::packed::unfit) {
            return Err(format!("the op {:?}: {why}", op.name));
        }
        let mut flags = 0;
        flags |= if op.sync { libc::O_SYNC } else { 0 };
        flags |= if op.direct { libc::O_DIRECT } else { 0 };
        let highest = op.slot.max(op.other_slot.unwrap_or(0)) as usize;
        self.slots = self.slots.max(highest + 1).max(if op.next { TURNS } else { 0 });
        let set = op.set.as_ref().and_then(|set| plan.sets.iter().position(|known| known.id == *set));
        Ok(Step {
            act: op.act,
            class: position(&mut self.labels, label),
            times: number(&op.times),
            set: set.unwrap_or(0),
            slot: op.slot as usize,
            other: op.other_slot.map(|slot| slot as usize),
            size: number(&op.size),
            working_set: number(&op.working_set),
            random: op.random,
            position: op.position.as_ref().map(number),
            again: op.again,
            echo: op.echo,
            timed: op.timed,
            skip_last: op.skip_last,
            whole_pieces: op.whole_pieces,
            zeros: op.zeros,
            flags,
            direct: op.direct,
            no_readahead: op.no_readahead,
            next: op.next,
            index: op.index.as_ref().map(number),
            value: number(&op.value),
            archive: op.archive.clone(),
            blocking: op.blocking,
            high_water: u64::from(op.high_water),
            tie,
            name: op.name.clone(),
            inner: self.steps_of(&op.ops, plan, names)?,
        })
    }
}
