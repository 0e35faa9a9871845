//! ONC RPC messages (RFC 5531) and the arguments of NFS version 2 and 3 (RFC 1094, RFC 1813), as far as a
//! request's place needs them.

use super::op;
use crate::{NONE, Op, flag};

/// Program number of NFS.
const NFS: u32 = 100_003;

/// Most bytes of a file handle.
const HANDLE: usize = 64;

/// Names of procedures by number.
const V3: [&str; 22] = [
    "null",
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "mkdir",
    "symlink",
    "mknod",
    "remove",
    "rmdir",
    "rename",
    "link",
    "readdir",
    "readdirplus",
    "fsstat",
    "fsinfo",
    "pathconf",
    "commit",
];
const V2: [&str; 18] = [
    "null",
    "getattr",
    "setattr",
    "root",
    "lookup",
    "readlink",
    "read",
    "writecache",
    "write",
    "create",
    "remove",
    "rename",
    "link",
    "symlink",
    "mkdir",
    "rmdir",
    "readdir",
    "statfs",
];

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A request of NFS.
    Call { xid: u32, op: Op, handle: &'a [u8], offset: i64, size: i64, flags: u32 },
    /// An answer, to whatever program: whether it failed, and what stands after its status.
    Reply { xid: u32, failed: bool, results: &'a [u8] },
    /// A call of NFS version 4, which is not read.
    Version4,
    /// A call of another program, version or procedure.
    Other,
}

/// Numbers and bytes of an XDR stream (RFC 4506).
struct Xdr<'a>(&'a [u8]);

impl<'a> Xdr<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) << 32 | u64::from(self.word()?))
    }

    fn fixed(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let found = self.0.get(..bytes)?;
        self.0 = self.0.get(bytes.next_multiple_of(4)..).unwrap_or_default();
        Some(found)
    }

    fn bytes(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        if length <= most { self.fixed(length) } else { None }
    }
}

/// The message that begins here, if it is one.
pub fn message(bytes: &[u8]) -> Option<Message<'_>> {
    let mut xdr = Xdr(bytes);
    let xid = xdr.word()?;
    match xdr.word()? {
        0 => call(xid, xdr),
        1 => reply(xid, xdr),
        _ => None,
    }
}

fn call(xid: u32, mut xdr: Xdr<'_>) -> Option<Message<'_>> {
    if xdr.word()? != 2 {
        return None;
    }
    let (program, version, procedure) = (xdr.word()?, xdr.word()?, xdr.word()? as usize);
    // Credentials and verifier: a flavour and at most 400 bytes each.
    for _ in 0..2 {
        xdr.word()?;
        xdr.bytes(400)?;
    }
    let name = match (program, version) {
        (NFS, 3) => V3.get(procedure),
        (NFS, 2) => V2.get(procedure),
        (NFS, 4) => return Some(Message::Version4),
        _ => None,
    };
    let Some(op) = name.and_then(|name| op(name.as_bytes())) else { return Some(Message::Other) };
    let handle = if version == 3 { xdr.bytes(HANDLE)? } else { xdr.fixed(32)? };
    let mut flags = 0;
    let (offset, size) = match (op, version) {
        (Op::Read | Op::Write | Op::Commit, 3) => {
            let place = (xdr.long()?, u64::from(xdr.word()?));
            // FILE_SYNC and DATA_SYNC are on stable storage before the answer.
            if op == Op::Write && xdr.word()? != 0 {
                flags |= flag::STABLE;
            }
            place
        }
        (Op::Read, _) => (u64::from(xdr.word()?), u64::from(xdr.word()?)),
        (Op::Write, _) => {
            xdr.word()?;
            let offset = xdr.word()?;
            xdr.word()?;
            flags |= flag::STABLE;
            (u64::from(offset), u64::from(xdr.word()?))
        }
        _ => return Some(Message::Call { xid, op, handle, offset: NONE, size: NONE, flags }),
    };
    let (offset, size) = crate::scan::extent(offset, size, 1, 1).ok()?;
    Some(Message::Call { xid, op, handle, offset, size, flags })
}

fn reply(xid: u32, mut xdr: Xdr<'_>) -> Option<Message<'_>> {
    let denied = xdr.word()? != 0;
    if denied {
        return Some(Message::Reply { xid, failed: true, results: &[] });
    }
    xdr.word()?;
    xdr.bytes(400)?;
    let refused = xdr.word()? != 0;
    let status = xdr.word().unwrap_or(0);
    Some(Message::Reply { xid, failed: refused || status != 0, results: xdr.0 })
}

/// Bytes read or written, of the results of version 3 behind their status.
pub fn count(op: Op, results: &[u8]) -> Option<u32> {
    let mut xdr = Xdr(results);
    // Attributes before (a size and two times) of a write, then after.
    if op == Op::Write && xdr.word()? != 0 {
        xdr.fixed(24)?;
    }
    if xdr.word()? != 0 {
        xdr.fixed(84)?;
    }
    xdr.word()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    #[test]
    fn a_write_and_its_answer() {
        let call = words(&[7, 0, 2, NFS, 3, 7, 1, 4, 9, 0, 0, 8, 0xaaaa, 0xbbbb, 1, 16, 4096, 2]);
        let handle = [0, 0, 0xaa, 0xaa, 0, 0, 0xbb, 0xbb];
        let offset = (1 << 32) + 16;
        let expected =
            Message::Call { xid: 7, op: Op::Write, handle: &handle, offset, size: 4096, flags: flag::STABLE };
        assert_eq!(message(&call), Some(expected));
        let answer = words(&[7, 1, 0, 0, 0, 0, 0, 0, 0, 2048]);
        let Some(Message::Reply { xid: 7, failed: false, results }) = message(&answer) else { panic!() };
        assert_eq!(count(Op::Write, results), Some(2048));
        assert_eq!(message(&words(&[7, 1, 1])), Some(Message::Reply { xid: 7, failed: true, results: &[] }));
        assert_eq!(message(&words(&[7, 2])), None);
        assert_eq!(message(&words(&[7, 0, 2, 100_000, 2, 3, 0, 0, 0, 0])), Some(Message::Other));
    }
}
