//! What keeps a plan from running. Every text says what, where, and what to do.

use std::path::Path;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What keeps a plan from running, or ended it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan itself does not hold together.
    #[error(transparent)]
    Plan(#[from] loadstone_plan::Error),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] loadstone_trace::Error),
    /// A model cannot be read or drawn from.
    #[error(transparent)]
    Model(#[from] loadstone_model::Error),
    /// The plan says of a trace how it is read, and that cannot be.
    #[error("reading of the trace: {0}")]
    Reading(String),
    /// The trace whose times requests arrive at cannot be read.
    #[error("{0}; `arrival` takes no options of reading: convert the trace (loadstone trace convert)")]
    Arrivals(loadstone_trace::Error),
    /// A target cannot be used.
    #[error("target {target}: {what}")]
    Target {
        /// Its path, or its id where it has none.
        target: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// A source delivers a request that cannot be performed.
    #[error("worker {worker}, request {row}: {what}")]
    Request {
        /// Position of the worker in the plan.
        worker: usize,
        /// Position of the request in its source, from 0.
        row: u64,
        /// What is wrong and what to do.
        what: String,
    },
    /// A program cannot go on.
    #[error("{0}")]
    Program(String),
    /// The plan asks for content that its data cannot have.
    #[error("content: {0}")]
    Content(String),
    /// What is verified is not what it should be, before anything was written.
    #[error("verify: {0}")]
    Verify(String),
    /// The plan takes more memory than there is.
    #[error(
        "this takes {takes} MiB of memory, and {there} MiB are available: {what}; use fewer or smaller ones"
    )]
    Memory {
        /// MiB.
        takes: u64,
        /// MiB.
        there: u64,
        /// What takes most of it.
        what: String,
    },
    /// A limit of the process leaves a run too little.
    #[error(
        "a limit of memory (ulimit -v or -d) leaves {left} MiB, and the run takes up to {takes} MiB, most of it for \
         {what}; raise the limit by {} MiB", takes - left
    )]
    ProcessLimit {
        /// MiB.
        takes: u64,
        /// MiB.
        left: u64,
        /// What takes most of it.
        what: String,
    },
    /// The plan takes more memory than its own limit leaves it.
    #[error(
        "`memory_limit`: this takes about {takes} MiB of memory besides pages of files, and the limit is {limit} \
         MiB: {what}; give it at least {least}m, or use fewer or smaller ones"
    )]
    MemoryLimit {
        /// MiB.
        takes: u64,
        /// MiB.
        limit: u64,
        /// MiB that the limit must be.
        least: u64,
        /// What takes most of it.
        what: String,
    },
    /// The operating system refused something the engine needs.
    #[error("{what}: {cause}{help}")]
    System {
        /// What was tried.
        what: String,
        /// The system's answer.
        cause: std::io::Error,
        /// What to do, starting with "; ", or nothing.
        help: &'static str,
    },
    /// A thread of the engine died: a defect of Loadstone.
    #[error("the engine's thread {0} died; this is a defect, please report it with the plan")]
    Thread(String),
    /// The run was joined before.
    #[error("the outcome of this run was taken before")]
    Taken,
}

impl Error {
    pub(crate) fn target(path: &Path, what: impl Into<String>) -> Error {
        Error::Target { target: path.display().to_string(), what: what.into() }
    }

    /// A path that cannot be used.
    pub(crate) fn files(e: loadstone_files::Error) -> Error {
        Error::target(&e.path, e.what)
    }

    pub(crate) fn target_io(path: &Path, what: &str, cause: &std::io::Error) -> Error {
        Error::target(path, format!("{what}: {cause}"))
    }

    pub(crate) fn no_memory(help: &str) -> Error {
        let cause = std::io::Error::from_raw_os_error(libc::ENOMEM);
        Error::System { what: format!("getting memory for transfers ({help})"), cause, help: "" }
    }

    /// A thread could not be started that does `what`.
    pub(crate) fn thread(what: &str, cause: std::io::Error) -> Error {
        Error::System {
            what: format!("starting the thread {what}"),
            cause,
            help: "; let more threads be started (ulimit -u, pids.max of the cgroup), or lower `depth`",
        }
    }

    pub(crate) fn system(what: impl Into<String>, cause: std::io::Error) -> Error {
        Error::System { what: what.into(), cause, help: "" }
    }
}
