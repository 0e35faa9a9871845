//! NFS traces: calls joined with their replies, whatever file they stand in.
//!
//! A request is a call; its latency is the time until the reply with the same transaction id from the same
//! client. Objects are paths, as far as the capture tells them: by the names and handles in calls and replies. Calls
//! on names have the path of what is named, not that of the directory. A handle without a name is a path below
//! `/.handles`. Actors are clients.

mod answer;
pub mod calls;
mod capture;
pub mod dump;
pub mod names;
pub mod pcap;
pub mod pcapng;
mod places;
mod rpc;
mod stream;
mod xdr;

use crate::chunk::Ids;
use crate::{Info, NONE, Op, Result};
pub use answer::errno;
use calls::{Call, Calls, Key};
use names::{Asked, Names, Told};

/// What is said between clients and servers.
#[derive(Default)]
pub struct Talk {
    /// Calls and their replies.
    pub calls: Calls,
    /// Files and their names.
    pub names: Names,
    /// Clients by their addresses.
    pub clients: Ids,
}

impl Talk {
    /// Takes a call.
    pub fn call(&mut self, time: i64, key: Key, version: u8, asked: &Asked) {
        let mut call = Call::new(time, version, key.0, asked);
        if self.calls.waiting(key).is_none() {
            (call.object, call.other, call.change) = self.names.ask(asked);
        }
        self.calls.call(key, call, 0);
    }

    /// Takes a reply.
    pub fn reply(&mut self, time: i64, key: Key, told: &Told) {
        let Some(call) = self.calls.reply(key, time, told.result) else { return };
        // What was read or written may be less than was asked for.
        if let (Op::Read | Op::Write, 0) = (call.op, told.result) {
            if let Some(count) = told.count {
                call.size = call.size.min(count.into());
            }
            // A write of version 2 is whole.
            let whole = told.count.is_some() || (call.op, call.version) == (Op::Write, 2);
            call.result = if whole && call.size != NONE { call.size } else { NONE };
        }
        let change = std::mem::take(&mut call.change);
        self.names.answer(change, told);
    }

    /// # Errors
    /// When there are more files or clients than a trace may have.
    pub fn check(&self) -> Result<()> {
        self.names.check()?;
        self.clients.check()
    }

    /// Adds what is known.
    pub fn info(&self, info: &mut Info) {
        info.layer = "nfs".into();
        info.start_unix_ns = Some(0);
        info.objects = self.names.objects();
        info.actors = self.clients.objects();
        let forgotten = self.names.forgotten();
        if forgotten > 0 {
            info.warnings.push(format!("{forgotten} names in replies were passed over: there are too many"));
        }
        self.calls.info(info);
    }
}

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
