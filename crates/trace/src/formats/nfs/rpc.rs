//! ONC RPC messages (RFC 5531) and the arguments of NFS version 2 and 3 (RFC 1094, RFC 1813), as far as a
//! request's file and place need them.

use super::names::Asked;
use super::op;
use super::xdr::Xdr;
use crate::{NONE, Op, flag};

/// Program numbers of NFS and of mounting.
const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;

/// Longest name, and longest path of a link or a mount, bytes; longer ones are damage.
const NAME: usize = 1 << 12;
const PATH: usize = 1 << 12;

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
    /// A request of NFS, and its version.
    Call { xid: u32, version: u8, asked: Asked<'a> },
    /// A directory is to be mounted, by a version of that protocol.
    Mount { xid: u32, version: u8, path: &'a [u8] },
    /// An answer, to whatever program: its status, unless the call was refused, and what stands behind.
    Reply { xid: u32, status: Option<u32>, results: &'a [u8] },
    /// A call of NFS version 4, which is not read.
    Version4,
    /// A call of another program, version or procedure.
    Other,
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
        (MOUNT, 1..=3) if procedure == 1 => {
            let path = xdr.bytes(PATH)?;
            return Some(Message::Mount { xid, version: version as u8, path });
        }
        _ => None,
    };
    let Some(op) = name.and_then(|name| op(name.as_bytes())) else { return Some(Message::Other) };
    let version = version as u8;
    let handle = xdr.handle(version)?;
    let (name, second, leads) = (None, None, None);
    let mut asked = Asked { op, handle, name, second, leads, offset: NONE, size: NONE, flags: 0 };
    match op {
        Op::Read | Op::Write | Op::Commit => place(&mut asked, &mut xdr, version)?,
        // The capture may have cut the rest; the file is known.
        Op::Setattr => {
            if let Some(Some(size)) = length(&mut xdr, version) {
                (_, asked.size) = crate::scan::extent(0, size, 1, 1).ok()?;
                asked.op = Op::Truncate;
            }
        }
        _ => drop(names(&mut asked, &mut xdr, version)),
    }
    Some(Message::Call { xid, version, asked })
}

/// Offset, size and stability.
fn place(asked: &mut Asked<'_>, xdr: &mut Xdr<'_>, version: u8) -> Option<()> {
    let (offset, size) = match (asked.op, version) {
        (op, 3) => {
            let place = (xdr.long()?, u64::from(xdr.word()?));
            // FILE_SYNC and DATA_SYNC are on stable storage before the answer.
            if op == Op::Write && xdr.word()? != 0 {
                asked.flags |= flag::STABLE;
            }
            place
        }
        (Op::Read, _) => (u64::from(xdr.word()?), u64::from(xdr.word()?)),
        _ => {
            xdr.word()?;
            let offset = xdr.word()?;
            xdr.word()?;
            asked.flags |= flag::STABLE;
            (u64::from(offset), u64::from(xdr.word()?))
        }
    };
    (asked.offset, asked.size) = crate::scan::extent(offset, size, 1, 1).ok()?;
    Some(())
}

/// Passes over attributes to be set (`sattr`); the size among them, if it is to be.
fn length(xdr: &mut Xdr<'_>, version: u8) -> Option<Option<u64>> {
    if version == 2 {
        // Mode, user, group, size, two times; all ones where one is not to be set.
        xdr.fixed(12)?;
        let size = xdr.word()?;
        xdr.fixed(16)?;
        return Some((size != u32::MAX).then_some(size.into()));
    }
    for _ in 0..3 {
        if xdr.word()? != 0 {
            xdr.word()?;
        }
    }
    let size = if xdr.word()? != 0 { Some(xdr.long()?) } else { None };
    for _ in 0..2 {
        // Times of the client's follow, the server's do not.
        if xdr.word()? == 2 {
            xdr.long()?;
        }
    }
    Some(size)
}

/// The names of a call on names, as far as they are there.
fn names<'a>(asked: &mut Asked<'a>, xdr: &mut Xdr<'a>, version: u8) -> Option<()> {
    match asked.op {
        Op::Lookup | Op::Create | Op::Mkdir | Op::Mknod | Op::Remove | Op::Rmdir => {
            asked.name = Some(xdr.bytes(NAME)?);
        }
        Op::Rename => {
            let name = xdr.bytes(NAME)?;
            asked.second = Some((xdr.handle(version)?, xdr.bytes(NAME)?));
            asked.name = Some(name);
        }
        Op::Link => asked.second = Some((xdr.handle(version)?, xdr.bytes(NAME)?)),
        Op::Symlink => {
            asked.name = Some(xdr.bytes(NAME)?);
            if version == 3 {
                length(xdr, version)?;
            }
            asked.leads = Some(xdr.bytes(PATH)?);
        }
        _ => {}
    }
    Some(())
}

fn reply(xid: u32, mut xdr: Xdr<'_>) -> Option<Message<'_>> {
    let denied = xdr.word()? != 0;
    if denied {
        return Some(Message::Reply { xid, status: None, results: &[] });
    }
    xdr.word()?;
    xdr.bytes(400)?;
    let refused = xdr.word()? != 0;
    let status = xdr.word().unwrap_or(0);
    Some(Message::Reply { xid, status: (!refused).then_some(status), results: xdr.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    /// The head of a call of version 3 on the handle `aaaaaaaa`, then some more.
    fn asks(procedure: u32, more: &[&[u8]]) -> Vec<u8> {
        let head = words(&[7, 0, 2, NFS, 3, procedure, 1, 4, 9, 0, 0, 4, 0xaaaa_aaaa]);
        [&[&head[..]], more].concat().concat()
    }

    fn asked(bytes: &[u8]) -> Asked<'_> {
        let Some(Message::Call { asked, .. }) = message(bytes) else { panic!("no call") };
        asked
    }

    #[test]
    fn a_write_and_its_answer() {
        let call = words(&[7, 0, 2, NFS, 3, 7, 1, 4, 9, 0, 0, 8, 0xaaaa, 0xbbbb, 1, 16, 4096, 2]);
        let found = asked(&call);
        assert_eq!((found.op, found.handle), (Op::Write, &[0, 0, 0xaa, 0xaa, 0, 0, 0xbb, 0xbb][..]));
        assert_eq!((found.offset, found.size, found.flags), ((1 << 32) + 16, 4096, flag::STABLE));
        let answer = words(&[7, 1, 0, 0, 0, 0, 28, 0, 0, 2048]);
        let Some(Message::Reply { xid: 7, status: Some(28), results }) = message(&answer) else { panic!() };
        assert_eq!(results, words(&[0, 0, 2048]));
        let refused = Message::Reply { xid: 7, status: None, results: &[] };
        assert_eq!(message(&words(&[7, 1, 1])), Some(refused));
        assert_eq!(message(&words(&[7, 2])), None);
        assert_eq!(message(&words(&[7, 0, 2, 100_000, 2, 3, 0, 0, 0, 0])), Some(Message::Other));
    }

    #[test]
    fn names_are_found_as_far_as_they_are_there() {
        let rename = asks(14, &[&words(&[1]), b"a\0\0\0", &words(&[4, 0xbbbb_bbbb, 2]), b"b/\0\0"]);
        let found = asked(&rename);
        assert_eq!((found.name, found.second), (Some(&b"a"[..]), Some((&[0xbb; 4][..], &b"b/"[..]))));
        let cut = asked(&rename[..rename.len() - 4]);
        assert_eq!((cut.op, cut.name, cut.second), (Op::Rename, None, None));
        let times = words(&[0, 0, 0, 0, 2, 5, 5, 1]);
        let symlink = asks(10, &[&words(&[1]), b"l\0\0\0", &times, &words(&[2]), b"to\0\0"]);
        assert_eq!(asked(&symlink).leads, Some(&b"to"[..]));
        let sized = asks(2, &[&words(&[1, 0o644, 0, 0, 1, 0, 77, 0, 0, 0])]);
        assert_eq!((asked(&sized).op, asked(&sized).size), (Op::Truncate, 77));
        assert_eq!(asked(&asks(2, &[&words(&[0, 0, 0, 0, 0, 0, 0])])).op, Op::Setattr);
        let huge = asks(3, &[&words(&[u32::MAX])]);
        assert_eq!(asked(&huge).name, None);
        let mount = words(&[7, 0, 2, MOUNT, 3, 1, 0, 0, 0, 0, 4, 0x2f65_7870]);
        assert_eq!(message(&mount), Some(Message::Mount { xid: 7, version: 3, path: b"/exp" }));
    }
}
