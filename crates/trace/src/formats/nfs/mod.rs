//! NFS traces: calls joined with their replies, whatever file they stand in.
//!
//! A request is a call; its latency is the time until the reply with the same transaction id from the same
//! client. Objects are file handles: that of the file, or of the directory in which a name is looked up,
//! made or removed. Actors are clients.

pub mod calls;
pub mod dump;
pub mod pcap;
mod rpc;
mod stream;

use crate::chunk::{Ids, Key};
use crate::{Object, Op};

/// What a procedure asks for, by its name in NFSv2 (RFC 1094) or v3 (RFC 1813) and as tools write it; `None`
/// for those that touch nothing.
pub fn op(name: &[u8]) -> Option<Op> {
    Some(match name.to_ascii_lowercase().as_slice() {
        b"getattr" => Op::Stat,
        b"setattr" => Op::Setattr,
        b"lookup" => Op::Lookup,
        b"access" => Op::Access,
        b"readlink" => Op::Readlink,
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"create" => Op::Create,
        b"mkdir" => Op::Mkdir,
        b"symlink" => Op::Symlink,
        b"mknod" => Op::Mknod,
        b"remove" => Op::Remove,
        b"rmdir" => Op::Rmdir,
        b"rename" => Op::Rename,
        b"link" => Op::Link,
        b"readdir" => Op::Readdir,
        b"readdirplus" | b"readdirp" => Op::Readdirplus,
        b"fsstat" | b"statfs" => Op::Fsstat,
        b"fsinfo" => Op::Fsinfo,
        b"pathconf" => Op::Pathconf,
        b"commit" => Op::Commit,
        _ => return None,
    })
}

/// Objects called by the digits of their file handles.
pub fn handle_names(handles: &Ids) -> Vec<Object> {
    let digits = |key: &Key| match key {
        Key::Text(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        key => key.name(),
    };
    (0..).zip(handles.keys()).map(|(id, key)| Object { id, name: digits(key) }).collect()
}
