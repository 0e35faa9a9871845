//! What happened to a file so far, as requests and what they came to tell; the same of a trace and of what is drawn.

use crate::feature::files::catalog::Kind;
use loadstone_trace::{NONE, Op};

/// Stands for the op before the first one.
const NEW: i64 = 255;

const ENOENT: i64 = -2;
const EEXIST: i64 = -17;
const EISDIR: i64 = -21;
const EINVAL: i64 = -22;
const ENOTEMPTY: i64 = -39;

/// What must hold of an object so that a request on it comes to what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Its name is there.
    There,
    /// Its name is there, or it is open.
    Held,
    /// Its name is there, or can be: whoever opens may make.
    Opened,
    /// Nothing is there, but the directory is.
    Free,
    /// The directory is there.
    Directory,
    /// It is a directory with something in it.
    Full,
    /// It is there and has nothing in it.
    Empty,
    /// Nothing is there.
    Gone,
    /// Not even the directory is there.
    Orphan,
}

impl Need {
    /// Of an op with this result: 0 or more, or a negative errno.
    pub fn of(op: Op, result: i64) -> Need {
        let makes = matches!(op, Op::Create | Op::Mkdir | Op::Mknod | Op::Symlink);
        let takes = matches!(op, Op::Remove | Op::Rmdir | Op::Rename | Op::Link);
        match result {
            ENOENT if makes => Need::Orphan,
            ENOENT => Need::Gone,
            ENOTEMPTY => Need::Full,
            // Whatever kept a name from being taken away, only that it is not there does so again.
            _ if is_failure(result) && takes => Need::Gone,
            _ if is_failure(result) => Need::There,
            _ => match op {
                Op::Create => Need::Directory,
                Op::Open => Need::Opened,
                Op::Mkdir | Op::Mknod | Op::Symlink => Need::Free,
                Op::Rmdir | Op::Rename => Need::Empty,
                op if by_descriptor(op) => Need::Held,
                _ => Need::There,
            },
        }
    }

    /// Whether it says that an object was there when it was first heard of.
    pub fn is_there(self) -> bool {
        matches!(self, Need::There | Need::Held | Need::Opened | Need::Full | Need::Empty)
    }
}

/// Whether a result is a failure.
pub(crate) fn is_failure(result: i64) -> bool {
    result < 0 && result != NONE
}

/// Whether an op asks for an open file, whose name may be gone.
fn by_descriptor(op: Op) -> bool {
    use Op::{
        Close, Commit, CopyRange, Datasync, Discard, Fallocate, Flush, Getxattr, Mmap, Read, Readdir,
        Readdirplus, Setxattr, Sync, Truncate, Write,
    };
    matches!(
        op,
        Read | Write
            | Close
            | Commit
            | CopyRange
            | Datasync
            | Discard
            | Fallocate
            | Flush
            | Getxattr
            | Mmap
            | Readdir
            | Readdirplus
            | Setxattr
            | Sync
            | Truncate
    )
}

/// An object between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Node {
    /// The op of the last request on it, or in which it was the second object; `None` before the first.
    pub last: Option<(u8, bool)>,
    /// Whether its name is there.
    pub there: bool,
    /// How often it is open.
    pub open: u32,
}

impl Node {
    /// The number of its state: kind, whether it is there (4), whether it was a second object (8), and from 16 on
    /// the last op.
    pub fn state(&self, kind: Kind) -> i64 {
        match self.last {
            None => NEW << 4 | kind as i64,
            Some((op, second)) => {
                i64::from(op) << 4 | i64::from(second) << 3 | i64::from(self.there) << 2 | kind as i64
            }
        }
    }

    /// Whether the name was there in the state of this number.
    pub fn was_there(state: i64) -> bool {
        state & 4 != 0
    }

    /// Whether an object in the state of this number was not used before.
    pub fn is_new(state: i64) -> bool {
        state >> 4 == NEW
    }

    /// Takes a request on it.
    pub fn take(&mut self, code: u8, result: i64) {
        let Some(op) = Op::from_code(code) else { return };
        if self.last.is_none() {
            self.there = Need::of(op, result).is_there();
        }
        self.last = Some((code, false));
        match op {
            _ if is_failure(result) => match result {
                ENOENT => self.there = false,
                EEXIST | EISDIR | EINVAL | ENOTEMPTY => self.there = true,
                _ => {}
            },
            Op::Remove | Op::Rmdir | Op::Rename => self.there = false,
            Op::Open | Op::Create => (self.there, self.open) = (true, self.open + 1),
            Op::Close => self.open = self.open.saturating_sub(1),
            op if by_descriptor(op) => {}
            _ => self.there = true,
        }
    }

    /// Takes a request whose second object it is.
    pub fn take_second(&mut self, code: u8, result: i64) {
        let Some(op) = Op::from_code(code) else { return };
        if self.last.is_none() {
            self.there = matches!(op, Op::CopyRange | Op::Symlink);
        }
        self.last = Some((code, true));
        self.there |= matches!(op, Op::Rename | Op::Link) && !is_failure(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_tell_whether_a_name_is_there() {
        let after = |requests: &[(Op, i64)]| {
            let mut node = Node::default();
            requests.iter().for_each(|(op, result)| node.take(*op as u8, *result));
            node
        };
        assert!(after(&[(Op::Stat, 0)]).there);
        assert!(!after(&[(Op::Stat, ENOENT)]).there);
        assert!(after(&[(Op::Stat, ENOENT), (Op::Create, 0)]).there);
        assert!(after(&[(Op::Mkdir, EEXIST)]).there);
        // An open file is written on after its name is gone.
        let gone = after(&[(Op::Create, 0), (Op::Remove, 0), (Op::Write, 100)]);
        assert!(!gone.there && gone.open == 1);
        assert_eq!(after(&[(Op::Create, 0), (Op::Close, 0), (Op::Close, 0)]).open, 0);
        let mut target = Node::default();
        target.take_second(Op::Rename as u8, 0);
        assert!(target.there);
        assert_eq!(target.state(Kind::File), (Op::Rename as i64) << 4 | 8 | 4);
        assert_eq!(Node::default().state(Kind::Directory), NEW << 4 | 1);
        assert_eq!(Kind::of(target.state(Kind::Link)), Kind::Link);
    }

    #[test]
    fn a_failure_asks_for_what_makes_it_fail() {
        assert_eq!(Need::of(Op::Open, ENOENT), Need::Gone);
        assert_eq!(Need::of(Op::Open, 0), Need::Opened);
        assert_eq!(Need::of(Op::Create, ENOENT), Need::Orphan);
        assert_eq!(Need::of(Op::Mkdir, EEXIST), Need::There);
        assert_eq!(Need::of(Op::Remove, -13), Need::Gone);
        assert_eq!(Need::of(Op::Read, NONE), Need::Held);
    }
}
