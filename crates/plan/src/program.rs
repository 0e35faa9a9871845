//! Programs: what a thread does over and over again.

use crate::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One step of a program. Which of its parts an act uses is said there; the others are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Op {
    /// Name it is counted under; ops of one name are counted together.
    pub name: String,
    /// What it does.
    pub act: Act,
    /// How many times in a row.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: Value,
    /// Id of the set whose files it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Descriptor of the thread that it uses, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub slot: u32,
    /// A second descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_slot: Option<u32>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub size: Value,
    /// Bytes from a file's beginning that random transfers keep to; 0: all.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub working_set: Value,
    /// At random multiples of the size, in place of one after the other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub random: bool,
    /// Byte at which a read or write begins, in place of the next one or one by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Value>,
    /// Where the descriptor's last transfer began, in place of where it ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
    /// Random transfers never touch the last block of what they keep to, unless it is the only one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub skip_last: bool,
    /// A whole file is written in whole pieces, so that it may become longer by a part of one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub whole_pieces: bool,
    /// Writes zeros in place of random data.
    #[serde(default, skip_serializing_if = "is_false")]
    pub zeros: bool,
    /// Writes what the thread read last, as far as that goes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub echo: bool,
    /// A group whose time from begin to end is told, with what was done in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timed: bool,
    /// Opens with `O_SYNC`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sync: bool,
    /// Opens with `O_DIRECT`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub direct: bool,
    /// Advises the kernel not to read ahead.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_readahead: bool,
    /// Takes the thread's next descriptor and its next file, each in turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub next: bool,
    /// Number of the file in its set, modulo the number of entries, in place of one by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Value>,
    /// What is unpacked: a tar archive, plain or compressed by gzip or zstd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<PathBuf>,
    /// What an act that is no transfer needs: seconds, stores, counts, bytes.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub value: Value,
    /// Name of the op that is meant, in any worker; without it the whole load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Waits while the other side has too much to do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub blocking: bool,
    /// What the other side may be behind by.
    #[serde(default, skip_serializing_if = "is_first")]
    pub high_water: u32,
    /// Steps of a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
}

fn once() -> Value {
    Value::Number(1.0)
}

fn is_once(value: &Value) -> bool {
    value.is(1.0)
}

fn is_nothing(value: &Value) -> bool {
    value.is(0.0)
}

fn is_first(slot: &u32) -> bool {
    *slot == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// What an op does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Reads `size` bytes, at random or where the last one ended, from the start again at the end of the file.
    Read,
    /// Writes `size` bytes, likewise.
    Write,
    /// Reads the whole file in pieces of `size` bytes; 0: in one.
    ReadWhole,
    /// Writes the whole file in pieces of `size` bytes; its size is that of the file in `other_slot`, else its own.
    WriteWhole,
    /// Writes `size` bytes at the end.
    Append,
    /// Writes at the end; as many bytes as chance will have it, `size` at most.
    AppendRandom,
    /// Begins to write `size` bytes at random, and goes on; a later `aio_write` or `aio_wait` sees its end.
    AioWrite,
    /// Waits until half of the writes that were begun have ended, one at least, for a second at most; without
    /// `blocking` it looks for as many and waits for none.
    AioWait,
    /// Loads `size` bytes of the mapped file, at random or where the last one ended.
    MmapRead,
    /// Stores `size` bytes to the mapped file, likewise; with `sync` it waits until they are stable.
    MmapWrite,
    /// fread(3) of `size` bytes, where the last one ended; from the start again at the end of the file.
    Fread,
    /// fwrite(3) of `size` bytes, likewise.
    Fwrite,
    /// getc(3), `size` times, likewise.
    Getc,
    /// putc(3), `size` times, likewise.
    Putc,
    /// Unpacks `archive` into the directory `index` of a set of any names; each file is a request.
    Extract,
    /// Opens a file that is there.
    Open,
    /// Makes a file that is not there, and its directory, and opens it.
    Create,
    /// Closes.
    Close,
    /// Removes a file that nobody has open.
    Remove,
    /// Asks for the attributes of a file.
    Stat,
    /// fsync(2).
    Sync,
    /// fdatasync(2).
    Datasync,
    /// fsync(2) of each file of the set that the thread has open.
    SyncSet,
    /// Makes a leaf directory.
    Mkdir,
    /// Removes a leaf directory.
    Rmdir,
    /// Reads a directory from its beginning to its end.
    Readdir,
    /// Reads a directory and asks for the attributes of all in it.
    Readdirplus,
    /// Renames a file that is there to the name of one that is not.
    Rename,
    /// Gives a file that is there the name of one that is not, too.
    Link,
    /// Makes a symbolic link, with the name of a file that is not there, to one that is.
    Symlink,
    /// Asks where a symbolic link leads.
    Readlink,
    /// Asks whether a file may be read (4), written (2) or executed (1): the sum of these in `value`, 0: read.
    Access,
    /// Cuts a file to `size` bytes, or makes it as long.
    Truncate,
    /// Reserves `size` bytes at its beginning, or at random.
    Fallocate,
    /// Sets the attribute number `value`, of `size` bytes.
    Setxattr,
    /// Reads the attribute number `value`.
    Getxattr,
    /// copy_file_range(2) of `size` bytes from `other_slot`.
    CopyRange,
    /// Stores to the thread's memory `value` times.
    Hog,
    /// Sleeps for `value` seconds.
    Delay,
    /// Waits for the next event.
    EventLimit,
    /// Waits for as many events as there were reads and writes.
    IopsLimit,
    /// Waits for as many events as there were ops.
    OpsLimit,
    /// Waits for as many events as MiB were moved.
    BandwidthLimit,
    /// Ends the thread when there were `value` ops.
    FinishOnCount,
    /// Ends the thread when `value` bytes were moved.
    FinishOnBytes,
    /// Waits until somebody wakes it up.
    Block,
    /// Wakes up all that wait at `target`.
    Wakeup,
    /// Waits for `value` posts.
    SemBlock,
    /// Posts `value` to each instance of `target`.
    SemPost,
    /// Waits until all threads of the run wait there, or have ended.
    Barrier,
    /// Draws `value` and tells of all that were drawn in the end.
    Record,
    /// Steps in order.
    Group,
}

impl Act {
    /// Whether it uses the files of a set.
    pub fn needs_set(self) -> bool {
        use Act::*;
        !matches!(
            self,
            AioWait
                | Hog
                | Delay
                | EventLimit
                | IopsLimit
                | OpsLimit
                | BandwidthLimit
                | FinishOnCount
                | FinishOnBytes
                | Block
                | Wakeup
                | SemBlock
                | SemPost
                | Barrier
                | Record
                | Group
                | Close
                | Sync
                | Datasync
        )
    }

    /// Whether it can be done with a file that is neither made nor removed and keeps its size, such as a device.
    pub fn fits_one_file(self) -> bool {
        use Act::*;
        matches!(
            self,
            Read | Write
                | ReadWhole
                | WriteWhole
                | Fread
                | Getc
                | Open
                | Close
                | Stat
                | Sync
                | Datasync
                | SyncSet
        )
    }

    /// Whether it moves `size` bytes by one request.
    pub fn transfers(self) -> bool {
        use Act::*;
        matches!(
            self,
            Read | Write
                | ReadWhole
                | WriteWhole
                | Append
                | AppendRandom
                | AioWrite
                | MmapRead
                | MmapWrite
                | Fread
                | Fwrite
                | Getc
                | Putc
                | CopyRange
        )
    }

    /// Whether it changes what a file holds.
    pub fn writes(self) -> bool {
        use Act::*;
        matches!(
            self,
            Write
                | WriteWhole
                | Fwrite
                | Putc
                | Append
                | AppendRandom
                | AioWrite
                | MmapWrite
                | Extract
                | Truncate
                | Fallocate
                | Setxattr
                | CopyRange
        )
    }

    /// Whether it names an op that must be there.
    pub fn needs_target(self) -> bool {
        matches!(self, Act::Wakeup | Act::SemPost)
    }
}
