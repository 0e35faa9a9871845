//! The plan: plain, versioned data that says everything a run does.
//!
//! Python builds it as JSON, [`Plan::parse`] checks it, the engine executes it. The same JSON is
//! printed by `--dry-run`, saved in the bundle and sent to other hosts. It refers to traces and
//! models by path; it never holds them. Format: `docs/reference/formats/plan.md`.

#![warn(clippy::missing_errors_doc)]

mod around;
mod check;
mod check_program;
mod content;
mod program;
mod reading;
mod schedule;
mod set;
mod skew;
mod steering;
mod vary;
mod verify;

pub use around::{Advice, IoClass, IoPriority, LEAST_MEMORY, RequestPriority};
pub use check::{Error, MAX_DEPTH, MAX_TRANSFER, MOST_INTERVALS, MOST_TIME};
pub use content::Content;
pub use program::{Act, Op};
pub use reading::Reading;
pub use schedule::{Pause, Schedule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use set::{FileSet, Layout};
pub use skew::{Skew, Zone};
use std::path::PathBuf;
pub use steering::{Flow, Judged, LatencyTarget, Sampled, Steady};
pub use vary::{Later, Law, Row, Value, Variable};
pub use verify::Verify;

/// Version of the plan format written by this build.
pub const VERSION: u32 = 1;

/// One run: what it touches, who issues what, and in which steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format version, [`VERSION`].
    pub version: u32,
    /// Seed of everything drawn at random.
    #[serde(default)]
    pub seed: u64,
    /// Length of the recorder's intervals, nanoseconds.
    #[serde(default = "default_interval")]
    pub interval_ns: u64,
    /// Where the load goes.
    pub targets: Vec<Target>,
    /// Trees of numbered files on the targets, for programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<FileSet>,
    /// What values of programs and sets are drawn from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Events per second that programs may wait for; 0: nobody ever waits for one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_per_s: f64,
    /// Files the run needs besides: traces and models.
    #[serde(default)]
    pub artefacts: Vec<Artefact>,
    /// Files and directories of the run that it must leave alone: the script, job file or plan it was made from, and where
    /// its results go. They need not be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<PathBuf>,
    /// Who issues requests; all start together.
    pub workers: Vec<Worker>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// What everything written is like; nothing: random, and no two blocks alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Every block read is compared with what it should hold; nothing: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Bytes of memory the whole run gets, page cache included; nothing: as much as there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Where every request is logged as a request table (Parquet); it must not exist yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Record each thread of a worker apart, not only each worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_thread: bool,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

fn default_interval() -> u64 {
    1_000_000_000
}

/// Something requests go to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name used by the rest of the plan.
    pub id: String,
    /// What it is.
    pub kind: TargetKind,
    /// File or device; empty for `null`.
    #[serde(default)]
    pub path: PathBuf,
    /// Usable size, bytes; of a tree nothing.
    #[serde(default)]
    pub size: u64,
    /// What [`Step::Prepare`] does to it.
    #[serde(default)]
    pub prepare: Prepare,
    /// Bypass the page cache (`O_DIRECT`).
    #[serde(default)]
    pub direct: bool,
    /// Open flag that makes writes synchronous.
    #[serde(default)]
    pub sync: SyncMode,
    /// What the kernel is told of how it will be read.
    #[serde(default, skip_serializing_if = "Advice::is_normal")]
    pub advice: Advice,
    /// The user named this very target with `--allow-destroy`, so what it held may be overwritten.
    #[serde(default)]
    pub allow_destroy: bool,
    /// A run before this one of the same process made it: that very file may be overwritten, and nothing in its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_before: bool,
    /// The directory, a path without links, that the file must lie in when it is opened to be written: no link leads to it.
    /// If it is given up, it has no other name, and no other mount has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<PathBuf>,
    /// Space of a new file is not reserved: it has its size, and holes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// Each write is stored whole or not at all (`RWF_ATOMIC`); needs `direct`, and a device that can do it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomic: bool,
}

/// Kinds of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// Completes at once without touching anything; measures the engine itself.
    Null,
    /// A regular file.
    File,
    /// A block device.
    Device,
    /// A directory in which files are made and used by name; its size is not asked for.
    Tree,
}

/// How a target is made ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Prepare {
    /// Used as it is; reads of holes are refused.
    #[default]
    None,
    /// Written once from end to end with incompressible data.
    Fill,
}

/// Durability of each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    /// Volatile until flushed.
    #[default]
    None,
    /// `O_SYNC`.
    Sync,
    /// `O_DSYNC`.
    Dsync,
    /// `RWF_DSYNC` on the requests whose trace flags carry FUA or sync.
    Recorded,
}

/// A file the run reads its requests from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artefact {
    /// Name used by the rest of the plan.
    pub id: String,
    /// `trace` (any known format), `model` (`.mdh`) or `dataset` (`.fst`).
    pub kind: ArtefactKind,
    /// Where it is.
    pub path: PathBuf,
    /// Hash of the content, `sha256:...`; checked by whoever loads it where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How a trace is read; nothing: as its content says.
    #[serde(default, skip_serializing_if = "Reading::is_usual")]
    pub reading: Reading,
}

/// Kinds of artefact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArtefactKind {
    /// A request table, in any format that can be read.
    Trace,
    /// A model file.
    Model,
    /// A series of file trees (`.fst`), whose chunks are written.
    Dataset,
}

/// A thread (or pool of threads) that issues requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// VM, client or host it belongs to.
    #[serde(default)]
    pub group: String,
    /// Where requests come from.
    pub source: Source,
    /// When they go out.
    #[serde(default)]
    pub pace: Pace,
    /// What must have completed before one goes out.
    #[serde(default)]
    pub order: Order,
    /// With dependencies, what times between a completion and the submission that waited for it are divided by; 0: there
    /// are none.
    #[serde(default = "default_think", skip_serializing_if = "is_default_think")]
    pub think: f64,
    /// With dependencies, the longest such time: a request later than that after any completion depends on none, ns.
    #[serde(default = "default_within", skip_serializing_if = "is_default_within")]
    pub within_ns: u64,
    /// How they are performed.
    #[serde(default)]
    pub backend: Backend,
    /// Most requests in flight.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// CPUs the worker is pinned to; empty: anywhere.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// Niceness of its issuing threads, -20 to 19; nothing: that of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// I/O priority of its issuing threads; nothing: that of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ioprio: Option<IoPriority>,
    /// I/O priorities of shares of its requests, with io_uring; other requests have that of their thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<RequestPriority>,
    /// Where the source's objects lie on the targets.
    #[serde(default)]
    pub map: Map,
    /// Stop after this many requests; 0: no limit.
    #[serde(default)]
    pub requests: u64,
    /// When it begins and ends within the run.
    #[serde(default, skip_serializing_if = "Schedule::is_usual")]
    pub schedule: Schedule,
    /// When it pauses; nothing: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Searches the greatest depth, up to `depth`, that keeps a latency; nothing: `depth` it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
    /// Its share of the requests of several workers; nothing: as many as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// The source holds reads only: its targets are opened for reading, so that not even a wrong
    /// promise can change them. Not needed for `uniform`, whose share of reads says it.
    #[serde(default)]
    pub reads_only: bool,
}

fn default_depth() -> u32 {
    32
}

fn default_think() -> f64 {
    1.0
}

fn is_default_think(think: &f64) -> bool {
    *think == default_think()
}

fn default_within() -> u64 {
    1_000_000_000
}

fn is_default_within(within_ns: &u64) -> bool {
    *within_ns == default_within()
}

/// Where requests come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// The rows of a trace, once.
    Trace {
        /// Id of the artefact.
        artefact: String,
    },
    /// Requests drawn from a model.
    Model {
        /// Id of the artefact.
        artefact: String,
        /// When they are drawn.
        #[serde(default, skip_serializing_if = "Draw::is_auto")]
        draw: Draw,
    },
    /// Aligned requests at random or ascending offsets, without end.
    Uniform {
        /// Share of reads, 0 to 1.
        reads: f64,
        /// Bytes per block: offsets are multiples of it, and requests have this size unless `sizes` says others.
        size: u64,
        /// Sizes of requests where there are several, bytes: rows are chosen by their shares, and a row's sizes are
        /// `low`, `low + size` and so on up to `high`, all alike.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sizes: Vec<Row>,
        /// Sizes of what is no read, where these are others than `sizes`, which then are of reads. Random offsets of each
        /// are multiples of its smallest size.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        write_sizes: Vec<Row>,
        /// Ascending instead of random.
        #[serde(default)]
        sequential: bool,
        /// Bytes between the end of an ascending request and the begin of the next one; below 0 requests descend.
        #[serde(default, skip_serializing_if = "is_no_skip")]
        skip: i64,
        /// Share of random requests that begin where the one before them ended instead, 0 to 1.
        #[serde(default, skip_serializing_if = "is_zero")]
        follow: f64,
        /// How random requests are shared out among blocks.
        #[serde(default, skip_serializing_if = "Skew::is_uniform")]
        skew: Skew,
        /// Random blocks come once each before any comes again; a request ends before the next block that came already.
        #[serde(default, skip_serializing_if = "is_false")]
        once: bool,
        /// What becomes of requests that would cross the end of an object.
        #[serde(default, skip_serializing_if = "Fit::is_move")]
        fit: Fit,
        /// What is no read is a discard, and no write.
        #[serde(default, skip_serializing_if = "is_false")]
        discards: bool,
        /// Reads and writes that ascend do so from places of their own.
        #[serde(default, skip_serializing_if = "is_false")]
        apart: bool,
        /// End once requests have so many bytes; 0: no limit.
        #[serde(default, skip_serializing_if = "is_nothing")]
        bytes: u64,
        /// Bytes per second for an open pace, in place of `rate`: a request is due when those before it would have been
        /// moved at that rate.
        #[serde(default, skip_serializing_if = "is_zero")]
        byte_rate: f64,
        /// Requests per second for an open pace; 0 when the pace is closed, or as the trace of `arrival` has it.
        #[serde(default)]
        rate: f64,
        /// How they are spread over time at that rate.
        #[serde(default, skip_serializing_if = "Arrival::is_constant")]
        arrival: Arrival,
    },
    /// What each of `depth` threads does, over and over.
    Program {
        /// Its steps.
        ops: Vec<Op>,
        /// Bytes of memory of each thread that its stores go to.
        #[serde(default)]
        memory: u64,
    },
    /// No requests: one thread that takes CPU time, busy and asleep in turn.
    Cpu {
        /// Share of a CPU's time that it takes, above 0 and up to 1.
        load: f64,
        /// Time for which it is busy without a pause, ns.
        #[serde(default = "default_chunk", skip_serializing_if = "is_default_chunk")]
        chunk_ns: u64,
        /// Sorts numbers meanwhile, instead of looking at the clock over and over.
        #[serde(default, skip_serializing_if = "is_false")]
        sorts: bool,
        /// Ends once all workers that issue requests have ended.
        #[serde(default, skip_serializing_if = "is_false")]
        with_others: bool,
    },
}

fn default_chunk() -> u64 {
    50_000_000
}

fn is_default_chunk(chunk_ns: &u64) -> bool {
    *chunk_ns == default_chunk()
}

/// When the requests of a model are drawn. Before a run they are drawn up to its end, or until they fill the memory that
/// is left for them; what is left is drawn while the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// Before the run, unless drawing is four times as fast as the requests are due.
    #[default]
    Auto,
    /// Before the run.
    First,
    /// While the run goes on.
    Meanwhile,
}

impl Draw {
    fn is_auto(&self) -> bool {
        *self == Draw::Auto
    }
}

/// What becomes of requests that would cross the end of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Random ones are moved back, ascending ones begin the next object.
    #[default]
    Move,
    /// Their size is drawn again until it fits.
    Redraw,
}

impl Fit {
    fn is_move(&self) -> bool {
        *self == Fit::Move
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_no_skip(skip: &i64) -> bool {
    *skip == 0
}

fn is_nothing(value: &u64) -> bool {
    *value == 0
}

/// How arrivals at a rate are spread over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Arrival {
    /// Evenly.
    #[default]
    Constant,
    /// Without memory: exponential gaps.
    Poisson,
    /// Gamma distributed gaps: more even than without memory above a shape of 1, in bursts below.
    Gamma {
        /// Shape; the squared coefficient of variation is its inverse.
        shape: f64,
    },
    /// Hyper-exponential gaps, of two kinds with balanced means.
    Hyper {
        /// Squared coefficient of variation, 1 or more.
        variation: f64,
    },
    /// Without memory while on, nothing while off; both last exponentially distributed times.
    OnOff {
        /// Mean seconds of being on.
        on_s: f64,
        /// Mean seconds of being off.
        off_s: f64,
    },
    /// At the times of the requests of a trace, over and over; stretched to the rate where there is one.
    Trace {
        /// Id of the artefact.
        artefact: String,
    },
}

impl Arrival {
    fn is_constant(&self) -> bool {
        *self == Arrival::Constant
    }

    /// What is wrong with its parameters, if anything.
    pub fn fault(&self) -> Option<String> {
        let positive = |name: &str, value: f64| {
            (!(value > 0.0 && value.is_finite())).then(|| format!("{name} is {value}; use a number above 0"))
        };
        match self {
            Arrival::Constant | Arrival::Poisson | Arrival::Trace { .. } => None,
            Arrival::Gamma { shape } => positive("shape", *shape),
            Arrival::Hyper { variation } => (!(*variation >= 1.0 && variation.is_finite()))
                .then(|| format!("variation is {variation}; use 1 or more")),
            Arrival::OnOff { on_s, off_s } => positive("on_s", *on_s).or(positive("off_s", *off_s)),
        }
    }
}

/// When a request goes out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Pace {
    /// As soon as there is room: `depth` requests are always in flight.
    #[default]
    Closed,
    /// At its own time divided by `speed` (open loop).
    Open {
        /// Acceleration: 1 as recorded, 2 twice as fast.
        speed: f64,
    },
}

/// What a request waits for besides its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Nothing.
    #[default]
    None,
    /// Everything that had completed before its submission in the trace (MDH thesis, section 2.5).
    Completion,
    /// The completion of its actor that came last before its submission in the trace, and then the time between them
    /// again (MDH thesis, sections 2.5 and 2.6); the pace is that of requests that depend on none.
    Dependency,
}

/// How requests are performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// pread/pwrite by a pool of `depth` threads.
    #[default]
    Sync,
    /// Copies to and from the mapped target by a pool of `depth` threads.
    Mmap,
    /// One io_uring.
    #[serde(rename = "io_uring")]
    IoUring,
    /// System calls on the names and descriptors of a tree, by a pool of `depth` threads.
    Files,
    /// System calls of a program, by `depth` threads.
    Posix,
    /// Nothing is done.
    Null,
    /// fallocate(2) in place of each transfer: reads reserve space, writes also make the file longer.
    Allocate,
    /// ftruncate(2) to the offset of each write; all else fails with EINVAL.
    Truncate,
}

/// Where the objects of a source lie on the targets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// One extent per object; an object without one is an error when its request comes.
    pub objects: Vec<Extent>,
    /// What to do with requests beyond the end of the target.
    #[serde(default)]
    pub offsets: Offsets,
}

/// An object's place on a target: byte `o` of the object is byte `base + o` of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// Dense id in the source.
    pub object: u32,
    /// Id of the target.
    pub target: String,
    /// First byte on the target.
    pub base: u64,
    /// Length of the object: one past the last byte its requests touch.
    pub size: u64,
}

/// Fitting a source's offsets to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Offsets {
    /// A request beyond the end is an error, found when planning.
    #[default]
    Error,
    /// Modulo the target's size, never across its end.
    Wrap,
    /// Multiplied by target size over the span of all extents on it, rounded down to 4 KiB.
    Scale,
}

/// Something a run does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Makes every target ready as its `prepare` says.
    Prepare,
    /// Writes dirty pages and drops the page cache of the targets.
    DropCaches {
        /// Whether all clean caches of the host are dropped besides, which needs root.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        host: bool,
    },
    /// Unmounts the file systems of the targets and mounts them again.
    Remount,
    /// Lets the workers run.
    Run {
        /// Longest duration, nanoseconds; 0: until the sources end.
        #[serde(default)]
        duration_ns: u64,
        /// Time before that in which the load goes on and nothing is measured, ns.
        #[serde(default, skip_serializing_if = "is_nothing")]
        ramp_ns: u64,
        /// What else ends it.
        #[serde(default, skip_serializing_if = "Until::is_usual")]
        until: Until,
        /// Ends it in a steady state; nothing: it goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        steady: Option<Steady>,
    },
}

/// What ends a run of programs before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Nothing: a thread that finds no file to work on is an error.
    #[default]
    Time,
    /// All threads having ended.
    AllDone,
    /// The first thread having ended.
    FirstDone,
}

impl Until {
    fn is_usual(&self) -> bool {
        *self == Until::Time
    }
}
