//! The request table in memory: one vector per column, filled and consumed in batches.

use crate::Result;

/// Stands for "not known" in the nullable columns `offset`, `size` and `latency`.
pub const NONE: i64 = i64::MIN;

/// Stands for "there is none" in the column `other`.
pub const NO_OBJECT: u32 = u32::MAX;

/// Some requests of a trace, column by column; all vectors have the same length, those of columns that the
/// source does not have are empty.
///
/// Rows are ordered by `time`, ties in source order, within a batch and from one batch to the next.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Submission, nanoseconds from the start of the trace.
    pub time: Vec<i64>,
    /// What was asked for: an [`Op`] as its frozen number.
    pub op: Vec<u8>,
    /// Dense id of the device, file or handle that was touched.
    pub object: Vec<u32>,
    /// First byte touched, or [`NONE`].
    pub offset: Vec<i64>,
    /// Bytes touched, or [`NONE`].
    pub size: Vec<i64>,
    /// Completion minus submission in nanoseconds, or [`NONE`].
    pub latency: Vec<i64>,
    /// Bits of [`flag`].
    pub flags: Vec<u32>,
    /// Dense id of the process, thread or client that asked.
    pub actor: Vec<u32>,
    /// Fingerprint of the content, where the source has one; else empty.
    pub content: Vec<u64>,
    /// What it came to, where the source tells: bytes or a negative errno, or [`NONE`]; else empty.
    pub result: Vec<i64>,
    /// The second object of a rename, link, symlink or copy, or [`NO_OBJECT`]; empty where there is none.
    pub other: Vec<u32>,
    /// Rows back to the request whose completion it waited for, at most [`crate::depend::MOST_BACK`], or 0: it came at
    /// a time of its own; empty where dependencies are not told.
    pub after: Vec<u32>,
    /// Nanoseconds from that completion to its submission, or [`NONE`]; empty as `after` is.
    pub think: Vec<i64>,
}

impl Batch {
    /// Number of requests.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Drops all requests and keeps the memory.
    pub fn clear(&mut self) {
        self.time.clear();
        self.op.clear();
        self.object.clear();
        self.offset.clear();
        self.size.clear();
        self.latency.clear();
        self.flags.clear();
        self.actor.clear();
        self.content.clear();
        self.result.clear();
        self.other.clear();
        self.after.clear();
        self.think.clear();
    }
}

/// A stream of requests in time order: a trace being read, or a model being sampled.
pub trait Requests: Send {
    /// Replaces the content of `batch` by the next requests; `false` when there are none left.
    ///
    /// A returned batch is never empty; its length is the stream's choice (some ten thousand).
    ///
    /// # Errors
    /// What keeps the stream from going on, such as damage of a file; it has ended then.
    fn next(&mut self, batch: &mut Batch) -> Result<bool>;
}

macro_rules! ops {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        /// What a request asks for. The numbers are frozen in `docs/reference/formats/trace.md`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Op { $($name = $code,)* }

        impl Op {
            /// Every op in order of its number.
            pub const ALL: &'static [Op] = &[$(Op::$name,)*];

            /// The op's name as it is printed and typed.
            pub fn name(self) -> &'static str {
                match self { $(Op::$name => $text,)* }
            }

            /// The op with this frozen number.
            pub fn from_code(code: u8) -> Option<Op> {
                match code { $($code => Some(Op::$name),)* _ => None }
            }
        }
    };
}

ops! {
    Read = 0, "read";
    Write = 1, "write";
    Flush = 2, "flush";
    Discard = 3, "discard";
    Open = 16, "open";
    Close = 17, "close";
    Create = 18, "create";
    Remove = 19, "remove";
    Mkdir = 20, "mkdir";
    Rmdir = 21, "rmdir";
    Rename = 22, "rename";
    Link = 23, "link";
    Symlink = 24, "symlink";
    Readlink = 25, "readlink";
    Mknod = 26, "mknod";
    Stat = 27, "stat";
    Setattr = 28, "setattr";
    Lookup = 29, "lookup";
    Access = 30, "access";
    Readdir = 31, "readdir";
    Readdirplus = 32, "readdirplus";
    Truncate = 33, "truncate";
    Fallocate = 34, "fallocate";
    Sync = 35, "sync";
    Datasync = 36, "datasync";
    Getxattr = 37, "getxattr";
    Setxattr = 38, "setxattr";
    CopyRange = 39, "copy_range";
    Mmap = 40, "mmap";
    Commit = 64, "commit";
    Fsstat = 65, "fsstat";
    Fsinfo = 66, "fsinfo";
    Pathconf = 67, "pathconf";
    TxnBegin = 80, "txn_begin";
    TxnCommit = 81, "txn_commit";
    TxnAbort = 82, "txn_abort";
}

/// Bits of the `flags` column, frozen in `docs/reference/formats/trace.md`.
pub mod flag {
    /// The submitter waits for it (`REQ_SYNC`, `O_SYNC`).
    pub const SYNC: u32 = 1 << 0;
    /// Forced to stable media before completion (`REQ_FUA`, `O_DSYNC`).
    pub const FUA: u32 = 1 << 1;
    /// File-system metadata (`REQ_META`).
    pub const META: u32 = 1 << 2;
    /// Read ahead of demand (`REQ_RAHEAD`).
    pub const READAHEAD: u32 = 1 << 3;
    /// Bypasses the page cache (`O_DIRECT`).
    pub const DIRECT: u32 = 1 << 4;
    /// Position is the end of the file (`O_APPEND`).
    pub const APPEND: u32 = 1 << 5;
    /// Asked to be stable on return (NFS `stable`).
    pub const STABLE: u32 = 1 << 6;
    /// Flushes the volatile cache before the data (`REQ_PREFLUSH`).
    pub const PREFLUSH: u32 = 1 << 7;

    /// Their names, from the lowest bit.
    pub const NAMES: [&str; 8] =
        ["sync", "fua", "meta", "readahead", "direct", "append", "stable", "preflush"];
}
