//! A request ready to be issued: where it goes and when, with everything looked up beforehand.

/// Stands for "completion in the trace not known": never holds another request back.
pub const NEVER: i64 = i64::MAX;

/// One request, placed on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// When it shall go out, nanoseconds from the start of the run, already divided by the speed; until the completion
    /// has come that it waits for, counted from there.
    pub due: i64,
    /// First byte on the target.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// When it was submitted in the trace, unscaled.
    pub submitted: i64,
    /// When it completed in the trace, unscaled; [`NEVER`] where that is not known.
    pub completed: i64,
    /// Flags of the trace.
    pub flags: u32,
    /// Actor of the trace.
    pub actor: u32,
    /// Rows back to the request it waits for, 0: none; once it was read, the number by which dependencies know it.
    pub tag: u32,
    /// Position of the target in the worker's table.
    pub target: u16,
    /// A frozen op code; one of the first four (read, write, flush, discard) on a block target.
    pub op: u8,
    /// Flags of pwritev2(2) that a write carries: [`DSYNC`], [`ATOMIC`].
    pub write_flags: u8,
    /// Object of the source, where requests go to names.
    pub object: u32,
    /// Second object, where the op has two names.
    pub other: u32,
}

/// A write that is stable once it has completed.
pub const DSYNC: u8 = libc::RWF_DSYNC as u8;
/// A write that is stored whole or not at all.
pub const ATOMIC: u8 = libc::RWF_ATOMIC as u8;

impl Request {
    /// Whether it is a write that is stable once it has completed.
    #[inline(always)]
    pub fn is_stable(&self) -> bool {
        self.write_flags & DSYNC != 0
    }
}

/// Op codes a block backend performs, as frozen in `docs/reference/formats/trace.md`.
pub mod op {
    /// Reads `size` bytes at `offset`.
    pub const READ: u8 = 0;
    /// Writes `size` bytes at `offset`.
    pub const WRITE: u8 = 1;
    /// Makes everything written stable (`fdatasync`).
    pub const FLUSH: u8 = 2;
    /// Gives `size` bytes at `offset` back (hole punch).
    pub const DISCARD: u8 = 3;
    /// Number of codes above.
    pub const COUNT: usize = 4;
    /// Copies `size` bytes within the kernel.
    pub const COPY_RANGE: u8 = 39;
}

/// Flag of the engine's own: the request failed in the trace, and is to fail again.
pub const FAILED: u32 = 1 << 31;

/// Flags of the engine's own: what is to be made or taken away before the request, so that it can do what it did in the
/// trace (`loadstone_trace::tree::Lack`).
pub mod lack {
    /// A file at the object's name.
    pub const FILE: u32 = 1 << 30;
    /// A directory there.
    pub const DIRECTORY: u32 = 1 << 29;
    /// Whatever is at the name that the request makes.
    pub const NOTHING: u32 = 1 << 28;
    /// Any of them.
    pub const ANY: u32 = FILE | DIRECTORY | NOTHING;
}

/// The errno under which short transfers are counted: no real errno is negative.
pub const SHORT: i32 = -1;
