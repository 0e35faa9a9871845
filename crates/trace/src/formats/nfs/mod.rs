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
mod fragments;
pub mod names;
pub mod pcap;
pub mod pcapng;
mod peel;
mod places;
mod rpc;
mod stream;
mod xdr;

use crate::chunk::Ids;
use crate::scan::extent;
use crate::{Info, NONE, Op, Result, flag};
pub use answer::errno;
use calls::{Call, Calls, Key};
use names::{Asked, Names, Told};
use std::borrow::Cow;

/// What a line of nfsdump says of files, each under one of two names by the version of NFS.
pub struct Line<'a> {
    /// Handle that the call is about, or that the reply tells.
    pub handle: Option<Cow<'a, [u8]>>,
    /// First byte.
    pub offset: Option<u64>,
    /// Bytes asked for or moved, and as writes of version 2 call them.
    pub count: Option<u64>,
    /// The latter.
    pub total: Option<u64>,
    /// Size among the attributes.
    pub length: Option<u64>,
    /// Name in the directory of the handle.
    pub name: Option<&'a [u8]>,
    /// Handle of the second directory of a rename, or of what a link is made in.
    pub target: Option<Cow<'a, [u8]>>,
    /// The name in it.
    pub second: Option<&'a [u8]>,
    /// Where a symbolic link leads.
    pub leads: Option<&'a [u8]>,
    /// First letter of how stable a write is to be: `U`nstable, `D`ata or `F`ile.
    pub stable: Option<u8>,
}

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

    /// Takes a line: a call, or a reply with its result.
    ///
    /// # Errors
    /// When an offset and size are impossible.
    pub fn line(
        &mut self,
        time: i64,
        key: Key,
        version: u8,
        reply: Option<i64>,
        op: Op,
        line: &Line<'_>,
    ) -> Result<()> {
        if let Some(result) = reply {
            let count = line.count.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            self.reply(
                time,
                key,
                &Told { result, count, handle: line.handle.as_deref(), entries: Vec::new() },
            );
            return Ok(());
        }
        let (offset, size) = match (op, line.offset, line.count.or(line.total)) {
            (Op::Read | Op::Write | Op::Commit, Some(offset), Some(size)) => extent(offset, size, 1, 1)?,
            _ => (NONE, NONE),
        };
        // Attributes to be set; a size among them makes a file so long.
        let (op, size) = match line.length.filter(|_| op == Op::Setattr) {
            Some(length) => (Op::Truncate, extent(0, length, 1, 1)?.1),
            None => (op, size),
        };
        let asked = Asked {
            op,
            handle: line.handle.as_deref().unwrap_or_default(),
            name: line.name.filter(|_| op != Op::Link),
            second: line.target.as_deref().zip(if op == Op::Link { line.name } else { line.second }),
            leads: line.leads.or(line.second).filter(|_| op == Op::Symlink),
            offset,
            size,
            flags: if matches!(line.stable, Some(b'D' | b'F')) { flag::STABLE } else { 0 },
        };
        self.call(time, key, version, &asked);
        Ok(())
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
